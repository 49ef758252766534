"""The command line: its commands, and how each ends: with an exit code, and with one message for an error.

A command, or a group of commands, is a module beside this one. It declares its options, makes a workspace of those that
say how models are asked, calls the library's own function, and prints; work that asks models is planned, done and
interrupted by `askance.cli.execute`. `askance --help` loads all of these modules, so the functions of a command import
what they use.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from importlib import import_module
from types import TracebackType
from typing import Annotated, Any

import typer

from askance import __version__
from askance.cli.chain_command import ChainCommand
from askance.cli.columns import complain
from askance.cli.completion import whole_words
from askance.cli.log import print_warnings
from askance.cli.process import CANNOT_START, HELP, INTERRUPTED, OK, TERMINATED, USAGE, Process, code_of
from askance.errors import AskanceError
from askance.terminal import echo

_COMMANDS: Mapping[str, str] = {
    "run": "run:run",
    "demo": "demo:demo",
    "init": "init:init",
    "eval": "eval:app",
    "compare": "compare:compare",
    "blame": "blame:blame",
    "watch": "watch:watch",
    "report": "report:report",
    "plot": "plot:plot",
    "export": "export:export",
    "pack": "pack:pack",
    "replay": "pack:replay",
    "models": "models:app",
    "trust": "trust:trust",
    "prompts": "prompts:app",
    "cache": "cache:app",
    "store": "store:app",
    "negatives": "negatives:app",
    "data": "data:app",
    "judge": "judge:app",
    "index": "index:app",
    "newyorker": "newyorker:app",
    "sherlock": "sherlock:app",
    "scale": "scale:app",
    "mcp": "mcp:mcp",
    "train": "train:app",
}
"""Module and name of every command, or group of commands, in the order in which help lists them."""

_MAY_LOAD_LANGCHAIN = ("run", "eval")
"""Commands that load LangChain where they run code of the user's, which may compose with it; others leave it out."""


def _version(wanted: bool) -> None:
    if wanted:
        echo(f"askance {__version__}")
        raise typer.Exit


def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """What every command takes."""


def command_line(words: Sequence[str]) -> Callable[..., Any]:
    """The command line with all commands; if `words` begin with a command, with that one alone, which loads faster."""
    return _command_line(tuple(words[:1]) if words and words[0] in _COMMANDS else tuple(_COMMANDS))


@cache
def _command_line(names: tuple[str, ...]) -> Callable[..., Any]:
    """The command line with these commands."""
    app = typer.Typer(
        name="askance",
        help="What is odd about an image, and what it argues for: agents that reason over verbalized images.",
        epilog=HELP,
        add_completion=len(names) > 1,  # a single command is only run: it needs neither of these two
        add_help_option=len(names) > 1,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(common)
    for name in names:
        module, _, shown = _COMMANDS[name].partition(":")
        command: Any = getattr(import_module(f"askance.cli.{module}"), shown)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        elif name == "run":
            app.command(name, cls=ChainCommand, epilog=HELP)(command)
        else:
            app.command(name)(command)
    return typer.main.get_command(app)


def main(arguments: list[str] | None = None) -> None:
    """The entry point: runs the command and ends the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # escapes what its encoding lacks
            stream.reconfigure(errors="backslashreplace")
    process = Process(own=arguments is None)
    process.begin()
    if process.own:
        sys.excepthook = print_bug
    try:
        code = _run_command(arguments, process)
        sys.stdout.flush()
    except BrokenPipeError:
        code = _end_of_pipe()
    sys.exit(TERMINATED if process.terminated else code)


def _run_command(arguments: list[str] | None, process: Process) -> int:
    """Runs the command and prints its errors; returns the exit code."""
    try:
        print_warnings()
        words = sys.argv[1:] if arguments is None else arguments
        if words and words[0] not in _MAY_LOAD_LANGCHAIN:
            process.without_langchain()
        command = command_line(words)
        with whole_words() if os.environ.get("_ASKANCE_COMPLETE") == "complete_bash" else nullcontext():
            code = command(args=arguments, prog_name="askance", standalone_mode=False, obj=process)
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # as the command line's own package ends a broken pipe
            raise BrokenPipeError from end
        raise
    except AskanceError as error:
        complain(error)
        return code_of(error)
    except OSError as error:
        complain(_system_error(error))
        return CANNOT_START
    except Exception as error:  # noqa: BLE001  # errors of the command line are shown, any other passes through
        return _usage(error)
    return code if isinstance(code, int) else OK


def _usage(error: Exception) -> int:
    """Prints an error in the use of the command line and returns its exit code; raises any other error, a bug."""
    show = getattr(error, "show", None)
    if show is None:
        raise error
    if isinstance(message := getattr(error, "message", None), str):
        error.__dict__["message"] = message.removeprefix("Value error, ")  # how the library marks a failed choice
    words = io.StringIO()
    show(file=words)
    echo(words.getvalue(), err=True, end="")
    return getattr(error, "exit_code", USAGE)


def print_bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Prints the traceback of a bug, safe for a terminal: its message may quote text from outside."""
    from traceback import format_exception

    echo("".join(format_exception(kind, error, trace)), err=True, end="")


def _system_error(error: OSError) -> AskanceError:
    """The error as a message: a full disk, a folder that may not be written."""
    place = f"{str(error.filename)!r}: " if error.filename else ""
    return AskanceError(f"{place}{error.strerror or error}.", hint="Check the disk and the rights to the folder.")


def _end_of_pipe() -> int:
    """The reader of a pipe has ended, as `head` does: nothing more is printed, at exit neither."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())
    return OK
