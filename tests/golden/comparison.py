"""The golden files: what they are, whether they are as they were written, and how something is held against one."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
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
LONGEST = 400
"""Characters of each."""

JsonObject = dict[str, Any]


def digests() -> str:
    """What `DIGESTS` has to say: a line a golden file, `sha256sum -c` reads it too."""
    files = sorted(file for file in FILES.rglob("*") if file.is_file())
    return "".join(f"{sha256(file.read_bytes()).hexdigest()}  {file.relative_to(FOLDER)}\n" for file in files)


def text_of(table: Mapping[str, Any]) -> str:
    """A table as JSON, a line an entry, so that a change of it can be read."""
    entries = ((json.dumps(each, ensure_ascii=False) for each in entry) for entry in table.items())
    lines = ",\n".join(f"  {': '.join(entry)}" for entry in entries)
    return f"{{\n{lines}\n}}\n"


def check(name: str, found: str) -> None:
    """Holds a text against the golden file of this name.

    Raises:
        AssertionError: they differ; it names the file and shows the first lines that do. Or there is no such file.
    """
    file = FILES / name
    if not file.is_file():
        raise AssertionError(f"There is no tests/golden/files/{name}. Write it with `python -m tests.golden {name}`.")
    _same(name, file.read_text(encoding="utf-8"), found)


def check_lines(name: str, found: Iterable[JsonObject]) -> None:
    """As `check`, of the lines of a run, in any order and without what is volatile."""
    _same(name, _steady(map(json.loads, (FILES / name).read_text(encoding="utf-8").splitlines())), _steady(found))


@contextmanager
def over(*names: str) -> Generator[None]:
    """Has whatever goes wrong within it name these golden files."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"This was over a copy of tests/golden/files/{', '.join(names)}. {WAY_OUT}")
        raise


def lines_of(file: Path) -> list[JsonObject]:
    """The lines of a file of JSON lines."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _steady(lines: Iterable[JsonObject]) -> str:
    texts = (json.dumps({**line, "meta": None}, ensure_ascii=False, sort_keys=True) for line in lines)
    return "\n".join(sorted(texts))


def _same(name: str, golden: str, found: str) -> None:
    if golden != found:
        shown = "\n".join([*_difference(golden, found)][:SHOWN])
        raise AssertionError(f"tests/golden/files/{name} is not what comes out now:\n{shown}\n{WAY_OUT}")


def _difference(golden: str, found: str) -> Iterator[str]:
    for line in unified_diff(golden.splitlines(), found.splitlines(), "golden", "now", n=0, lineterm=""):
        yield line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
