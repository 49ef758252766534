"""`askance demo`: the whole chain over pictures that ship with the package, offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from askance.cli.process import Process


def demo(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line for each image.")] = False,
    copy: Annotated[
        Path | None,
        typer.Option(help="Copy the pictures and their options into this folder instead, for a run of your own."),
    ] = None,
) -> None:
    """Run the whole chain offline over pictures that ship with askance; the answers on record are hand-written."""
    Process.of(context).without_langchain()
    from askance.cli.demonstration import copy_demo, demonstrate

    raise typer.Exit(demonstrate(as_json=as_json) if copy is None else copy_demo(copy))
