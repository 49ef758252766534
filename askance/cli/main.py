"""The commands, and what ends them: one message and an exit code, never a traceback."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from askance import __version__
from askance.cli import cache, demo, models, prompts, run
from askance.cli.exits import HELP, INTERRUPTED, code_of, complain
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
app.add_typer(models.app, name="models")
app.add_typer(prompts.app, name="prompts")
app.add_typer(cache.app, name="cache")


def main(arguments: list[str] | None = None) -> None:
    """The entry point: runs the command and ends the process with its exit code."""
    try:
        code = app(args=arguments, standalone_mode=False)
    except typer.Abort:
        code = INTERRUPTED
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        code = _piped_through_head()
    except AskanceError as error:
        complain(error)
        code = code_of(error)
    except Exception as error:  # noqa: BLE001  # errors of the command line are shown, any other passes through
        code = _usage(error)
    _flush()
    sys.exit(code if isinstance(code, int) else 0)


def _usage(error: Exception) -> int:
    """The exit code of an error of the command line itself, which shows itself; any other is a bug and is raised."""
    show = getattr(error, "show", None)
    if show is None:
        raise error
    show()
    return getattr(error, "exit_code", 2)


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _piped_through_head()


def _piped_through_head() -> int:
    """The reader went away: nothing is left to say, and nothing must be said about it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
