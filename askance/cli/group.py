"""Commands of several commands, such as `askance eval`."""

from __future__ import annotations

import typer


def command_group(purpose: str) -> typer.Typer:
    """A group of commands, which prints its help where none of them is named."""
    return typer.Typer(help=purpose, no_args_is_help=True, rich_markup_mode=None)
