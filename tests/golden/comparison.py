"""The golden files: what they are, whether they are as they were written, and how something is held against one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from hashlib import sha256
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
FILES = FOLDER / "files"
DIGESTS = FOLDER / "DIGESTS"
WAY_OUT = (
    "Golden files say what users have on their disks. If the change is meant, write them anew with `python -m "
    "tests.golden`, in a commit of its own with a line in CHANGELOG.md that says what users lose."
)
SHOWN = 12
"""Lines of a difference that are shown."""


def digests() -> str:
    """What `DIGESTS` has to say: a line a golden file, `sha256sum -c` reads it too."""
    files = sorted(file for file in FILES.rglob("*") if file.is_file())
    return "".join(f"{sha256(file.read_bytes()).hexdigest()}  {file.relative_to(FOLDER)}\n" for file in files)


def text_of(table: Mapping[str, Any]) -> str:
    """A table as JSON, a line an entry, so that a change of it can be read."""
    lines = ",\n".join(f"  {json.dumps(name, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}" for name, value in table.items())
    return f"{{\n{lines}\n}}\n"


def check(name: str, found: str) -> None:
    """Holds a text against the golden file of this name.

    Raises:
        AssertionError: they differ; it names the file and shows the first lines that do.
    """
    golden = (FILES / name).read_text(encoding="utf-8")
    if golden != found:
        shown = "\n".join([*_difference(golden, found)][:SHOWN])
        raise AssertionError(f"tests/golden/files/{name} is not what comes out now:\n{shown}\n{WAY_OUT}")


def _difference(golden: str, found: str) -> Iterator[str]:
    for line in unified_diff(golden.splitlines(), found.splitlines(), "golden", "now", n=0, lineterm=""):
        yield line if len(line) <= 400 else f"{line[:400]}…"
