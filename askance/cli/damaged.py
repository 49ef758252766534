"""What a command says of damaged records that it has left out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from askance.cli.exits import OK, SOME

if TYPE_CHECKING:
    from askance.replay import Sound


def say_left_out(*holders: Sound) -> int:
    """Says how many damaged records each holder has left out; returns the exit code, `SOME` where there are any."""
    code = OK
    for holder in holders:
        if holder.left_out:
            code = SOME
            print(left_out(holder.left_out, holder.name), file=sys.stderr)
    return code


def left_out(count: int, name: str) -> str:
    """So many damaged records of a store are left out, and the way out."""
    from pathlib import Path

    from askance.replay import visible
    from askance.replay.mounts import network_at

    records = f"1 damaged record of {name!r} is" if count == 1 else f"{count:,} damaged records of {name!r} are"
    take = (
        f"`askance cache merge --skip-damaged {name}` takes the others into a store on a local disk"
        if network_at(Path(name)) is not None
        else f"`askance cache prune --damaged --store {name}` takes them out"
    )
    return visible(f"{records} left out: `askance cache verify --store {name}` names them, {take}.")
