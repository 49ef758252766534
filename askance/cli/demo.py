"""`askance demo`: the whole chain over pictures that ship with the package, offline."""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line for each image.")] = False,
) -> None:
    """Run the whole chain offline over pictures that ship with askance; the answers on record are hand-written."""
    from askance.cli.demonstration import demonstrate

    raise typer.Exit(demonstrate(as_json=as_json))
