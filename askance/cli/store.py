"""`askance store`: the stores that hold records, on this machine or in a database that a team shares."""

from __future__ import annotations

from typing import Annotated

import typer

from askance.amounts import many
from askance.cli.group import command_group
from askance.cli.process import OK, SOME
from askance.errors import UsageError
from askance.terminal import echo

app = command_group("Stores of records: copy one into another.")


@app.command("copy")
def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="A folder, a cassette, or postgres://USER@HOST/DB.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="The store that takes the records; it may hold some.")],
) -> None:
    """Copy all records of a store into another, each checked, and read them back.

    Answers that the target has stay.
    """
    from pathlib import Path

    from askance.replay import Cassette, Records, open_records
    from askance.replay import copy as copy_records

    def opened(address: str, *, read_only: bool) -> Records:
        return Cassette(address) if Path(address).is_file() else open_records(address, read_only=read_only)

    if Path(target).is_file():
        raise UsageError(
            f"{target!r} is a cassette, which is written whole.",
            hint="`askance cache export FILE --store …` makes one.",
        )
    with opened(source, read_only=True) as theirs:
        if next(theirs.keys(), None) is None:
            raise UsageError(
                f"{theirs.name!r} holds no records.",
                hint="Name a store, such as .askance, or a cassette, such as calls.jsonl.",
            )
        with opened(target, read_only=False) as ours:
            copied = copy_records(theirs, ours)
        counts = copied.counts
        echo(f"{many(counts.new, 'record')} copied to {ours.name}, {counts.same:,} were there.")
        if counts.conflicting:
            echo(f"{many(len(counts.conflicting), 'answer')} of the target differ and stay.", err=True)
        echo(f"sha256 {copied.digest}, {'equal to' if copied.whole else 'not equal to'} that of {theirs.name}.")
    raise typer.Exit(OK if copied.whole else SOME)
