"""Entries of an index: one for each distinct text, with the images that it is true of."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from askance.data_table import DataRow, as_list, open_data_table
from askance.documents import MAX_SHOWN, UnreadableDocument, parse_json
from askance.errors import BadData, StoreError, UsageError

if TYPE_CHECKING:
    from askance.chat import JsonObject

STATEMENTS = "statements.jsonl"
"""File of an index with its entries, one a line."""

MOST_BYTES = 2_000_000_000
"""Most bytes of such a file."""
MOST_LINE = 1_000_000
"""Most bytes of one line."""
MOST_ENTRIES = 10_000_000
"""Most entries of an index."""

JUNK = "junk"
"""Mark of a text that says nothing: `n/a`, less than two words, or the instructions for annotators."""
NO_BECAUSE = "no because"
"""Mark of a text that gives no reason: it lacks the word `because`."""

_DAMAGED = "Delete the folder, and build the index again."
_WORD = re.compile(r"[^\W_]+")
_EMPTY_WORDS = frozenset({"a", "n", "na", "none", "nothing", "null", "nan", "unknown"})
"""A text of these alone is junk: `n/a`, `N / A`, `none`."""
_INSTRUCTIONS = re.compile(
    r"according to (?:this|the) ad\W*\?|what should (?:i|you) do\b|\(if it is an? \w+ ad\)", re.IGNORECASE
)
"""Pieces of what the annotators of the ads were asked, some of which stand among the statements."""
_BECAUSE = re.compile(r"\bbecause\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One distinct text of an index."""

    id: str
    """The first 16 hex digits of the text's sha256: equal in every index that has the text."""
    text: str
    """Exactly as written."""
    images: tuple[str, ...] = ()
    """Ids of the images that it is true of; none for a text that is only to be told from true ones."""
    split: str = ""
    """Of the data set: `train`, `test`, `test+train` where it is in both, or empty where it has none."""
    marks: tuple[str, ...] = ()
    """What is noticed about the text: `junk`, `no because`."""

    @classmethod
    def of(cls, text: str, images: Sequence[str] = (), split: str = "") -> IndexEntry:
        """The entry of a text, with its id and its marks."""
        return cls(entry_id(text), text, tuple(images), split, marks_of(text))


def entry_id(text: str) -> str:
    """The id of a text in any index."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def digest_of(ids: Iterable[str]) -> str:
    """The digest of entries by their ids, in order."""
    return sha256("\n".join(ids).encode()).hexdigest()


def marks_of(text: str) -> tuple[str, ...]:
    """What is noticed about a text: `junk`, `no because`."""
    words = _WORD.findall(text.lower())
    junk = len(words) < 2 or _EMPTY_WORDS.issuperset(words) or _INSTRUCTIONS.search(text) is not None
    return (*((JUNK,) if junk else ()), *(() if _BECAUSE.search(text) else (NO_BECAUSE,)))


def merge_entries(rows: Iterable[IndexEntry]) -> list[IndexEntry]:
    """One entry for each distinct text, by id; images, splits and marks of equal texts come together.

    Raises:
        UsageError: an id is not that of its text, or two texts have one id.
    """
    merged: dict[str, IndexEntry] = {}
    for row in rows:
        if row.id != entry_id(row.text):
            raise UsageError(
                f"The entry {row.id[:MAX_SHOWN]!r} has the id of another text than {row.text[:60]!r}.",
                hint="Make entries with `IndexEntry.of(text, images)`.",
            )
        earlier = merged.get(row.id)
        merged[row.id] = row if earlier is None else _merged(earlier, row)
    return [merged[key] for key in sorted(merged)]


def _merged(one: IndexEntry, other: IndexEntry) -> IndexEntry:
    if one.text != other.text:
        raise UsageError(
            f"Two texts have the id {one.id!r}: {one.text[:60]!r} and {other.text[:60]!r}.",
            hint="Leave one of them out.",
        )
    splits = {*one.split.split("+"), *other.split.split("+")} - {""}
    marks = dict.fromkeys((*one.marks, *other.marks))
    images = dict.fromkeys((*one.images, *other.images))
    return IndexEntry(one.id, one.text, tuple(images), "+".join(sorted(splits)), tuple(marks))


# --- any table ---

COLUMNS = ("text", "image", "split")
"""What can be taken from the columns of a table of texts."""


def table_entries(source: str | Path, columns: Mapping[str, str] | None = None) -> Iterator[IndexEntry]:
    """The texts of a table, row by row, as `merge_entries` takes them.

    Args:
        source: a CSV file, JSON lines, Parquet, Arrow, or a data set of Hugging Face (`askance.data_table`).
        columns: what its columns of `text`, `image` and `split` are called; those that are not named here go by these
            names, and only that of the text has to be there. A cell may hold a list of texts, or of images.

    Raises:
        BadData: the table cannot be read, or lacks a column; a row has no text, or something else in its place.
        UsageError: something else is to be taken from a column.
        MissingExtra: what reads the table is not installed.
    """
    named = columns or {}
    if unknown := sorted({*named} - {*COLUMNS}):
        raise UsageError(f"No {unknown[0]!r} is taken from a table of texts.", hint=f"Name {', '.join(COLUMNS)}.")
    table = open_data_table(source)
    wanted = {"text": "text", **{name: name for name in COLUMNS if name in table.columns}, **named}
    for row in table.rows(wanted):
        texts, images, split = (_cell_texts(row, name) for name in COLUMNS)
        if not texts:
            raise BadData(f"{row.where}: it has no text.", hint="Take the row out, or give it one.")
        if len(split) > 1:
            raise BadData(f"{row.where}: it is of {len(split)} splits.", hint="Give a row one split, or none.")
        yield from (IndexEntry.of(text, images, "".join(split)) for text in texts)


def _cell_texts(row: DataRow, name: str) -> list[str]:
    """The texts in a cell: one, several where it holds a list, or none where it is empty.

    Raises:
        BadData: it holds something else.
    """
    value = row.get(name)
    several = as_list(value)
    texts: list[Any] = several if several is not None else [] if value is None else [value]
    if wrong := [text for text in texts if isinstance(text, bool) or not isinstance(text, (str, int))]:
        raise BadData(
            f"{row.where}: its {name} is {str(wrong[0])[:60]!r}, which is no text.",
            hint="A cell holds a text, or a JSON list of texts.",
        )
    return list(map(str, texts))


# --- statements.jsonl ---


def entry_lines(entries: Iterable[IndexEntry]) -> Iterator[bytes]:
    """The lines of `statements.jsonl`. Half a surrogate pair, as a file may hold, is written as JSON's escape."""
    for entry in entries:
        form = {
            "id": entry.id,
            "text": entry.text,
            "images": list(entry.images),
            "split": entry.split,
            "marks": list(entry.marks),
        }
        yield json.dumps(form, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def read_entries(path: Path) -> tuple[list[IndexEntry], str]:
    """The entries in a `statements.jsonl`, and the sha256 of the file.

    Raises:
        StoreError: the file is missing or cannot be read, is too large, or has a line that is no entry; an id is not
            that of its text; or the entries do not stand by id, each once.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise _refused(path, f"it is larger than {MOST_BYTES:,} bytes")
        with path.open("rb") as file:
            return _read(path, file)
    except OSError as error:
        raise StoreError(f"The entries {str(path)!r} cannot be read: {error.strerror}.", hint=_DAMAGED) from error


def _read(path: Path, file: BinaryIO) -> tuple[list[IndexEntry], str]:
    digest, entries, last = sha256(), list[IndexEntry](), ""
    while line := file.readline(MOST_LINE + 1):
        digest.update(line)
        number = len(entries) + 1
        if len(line) > MOST_LINE:
            raise _refused(path, f"line {number:,} is longer than {MOST_LINE:,} bytes")
        if number > MOST_ENTRIES:
            raise _refused(path, f"it has more than {MOST_ENTRIES:,} lines")
        try:
            entry = _entry(parse_json(line, unique=True))
        except UnreadableDocument as error:
            raise _refused(path, f"line {number:,} {error}") from error
        if entry.id <= last:
            raise _refused(path, f"line {number:,} does not stand where its id belongs")
        entries.append(entry)
        last = entry.id
    return entries, digest.hexdigest()


def _entry(form: Any) -> IndexEntry:
    """The entry in a line.

    Raises:
        UnreadableDocument: it holds none.
    """
    try:
        fields: JsonObject = dict(form)
        name, text, split = (_text_field(fields.pop(field)) for field in ("id", "text", "split"))
        images, marks = (tuple(map(_text_field, fields.pop(field))) for field in ("images", "marks"))
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableDocument("is no entry of an index") from error
    if fields:
        raise UnreadableDocument(f"has an unknown field {next(iter(fields))[:MAX_SHOWN]!r}")
    if name != entry_id(text):
        raise UnreadableDocument(f"has a text that is not that of the id {name[:MAX_SHOWN]!r}")
    return IndexEntry(name, text, images, split, marks)


def _text_field(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _refused(path: Path, why: str) -> StoreError:
    return StoreError(f"The entries {str(path)!r} cannot be used: {why}.", hint=_DAMAGED)
