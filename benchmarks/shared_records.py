"""Replay pictures from records in a PostgreSQL database, beside the same from the store on this disk, in turn.

    python benchmarks/shared_records.py ADDRESS [--images N] [--runs N]

ADDRESS is that of an empty schema, postgres://USER@HOST/DATABASE?schema=bench. The records are copied there first. Each
run is a fresh process, imports included: once with nothing in the store in front, once with everything.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

from measuring import Contender, in_turn, python, table
from replay import check, prepare

LOCAL = "from the store on this disk"
COLD = "from the database, with nothing in front"
WARM = "from the database, all of it read before"


def main() -> None:
    """Make what is needed, copy it, measure, check and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("address", help="of an empty schema")
    parser.add_argument("--images", type=int, default=1168, help="how many pictures")
    parser.add_argument("--runs", type=int, default=5, help="how many runs of each")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        prepare(folder, images=given.images)
        copied = [python(tool="askance"), "store", "copy", str(folder / ".askance"), given.address]
        subprocess.run(copied, check=True)
        both = "&" if "?" in given.address else "?"
        cold, warm = (f"{given.address}{both}front={folder / name}" for name in ("cold", "warm"))
        contenders = [
            contender(folder, LOCAL, str(folder / ".askance")),
            contender(folder, COLD, cold, clears=folder / "cold"),
            contender(folder, WARM, warm),
        ]
        found = in_turn(contenders, runs=given.runs)
        check(folder / "lines.jsonl", images=given.images)
    print(f"\n{given.images} pictures, {7 * given.images} calls, {given.runs} runs of each\n")
    print(table(found, against=LOCAL))


def contender(folder: Path, name: str, store: str, *, clears: Path | None = None) -> Contender:
    """The command as a user types it."""
    words = ["run", "action-reason", "images", "--vlm", "bench", "--llm", "bench"]
    words += ["--options", "options.txt", "--json", "--replay", "--store", store]
    return Contender(
        name=name,
        command=[python(tool="askance"), *words],
        folder=folder,
        reads=(folder / "images",),
        clears=clears,
        prints_to=folder / "lines.jsonl",
    )


if __name__ == "__main__":
    main()
