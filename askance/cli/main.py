"""The commands, and what ends them: one message and an exit code, never a traceback."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated

import typer

from askance import __version__
from askance.cli import cache, compare, data, demo, models, packs, prompts, run, upkeep
from askance.cli import eval as evaluation
from askance.cli.alone import Process
from askance.cli.exits import CANNOT_START, HELP, INTERRUPTED, OK, USAGE, code_of, complain
from askance.errors import AskanceError

app = typer.Typer(
    name="askance",
    help="What is odd about an image, and what it argues for: agents that reason over verbalized images.",
    epilog=HELP,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"askance {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """What every command takes."""


app.command("run", epilog=HELP)(run.run)
app.command("demo")(demo.demo)
app.add_typer(evaluation.app, name="eval")
app.command("compare")(compare.compare)
app.command("pack")(packs.pack)
app.command("replay")(packs.replay)
app.add_typer(models.app, name="models")
app.add_typer(prompts.app, name="prompts")
for command in (upkeep.diff, upkeep.merge, upkeep.prune):
    cache.app.command(command.__name__)(command)
app.add_typer(cache.app, name="cache")
app.add_typer(data.app, name="data")


def main(arguments: list[str] | None = None) -> None:
    """The entry point: runs the command and ends the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what its encoding lacks is escaped; nobody's data ends a command
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _ended(arguments, Process(own=arguments is None))
        sys.stdout.flush()
    except BrokenPipeError:
        code = _reader_went_away()
    sys.exit(code)


def _ended(arguments: list[str] | None, process: Process) -> int:
    """Runs the command; the exit code, once all is said."""
    try:
        code = app(args=arguments, prog_name="askance", standalone_mode=False, obj=process)
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
        complain(_trouble(error))
        return CANNOT_START
    except Exception as error:  # noqa: BLE001  # errors of the command line are shown, any other passes through
        return _usage(error)
    return code if isinstance(code, int) else OK


def _usage(error: Exception) -> int:
    """The exit code of an error of the command line itself, which shows itself; any other is a bug and is raised."""
    show = getattr(error, "show", None)
    if show is None:
        raise error
    if isinstance(message := getattr(error, "message", None), str):
        error.__dict__["message"] = message.removeprefix("Value error, ")  # how the library marks a failed choice
    show()
    return getattr(error, "exit_code", USAGE)


def _trouble(error: OSError) -> AskanceError:
    """What the system refused: a full disk, a folder that may not be written."""
    place = f"{str(error.filename)!r}: " if error.filename else ""
    return AskanceError(f"{place}{error.strerror or error}.", hint="Check the disk and the rights to the folder.")


def _reader_went_away() -> int:
    """Nobody listens any more, as behind `head`: nothing is left to say, at exit neither."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())
    return OK
