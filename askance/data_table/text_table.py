"""Tables of text: JSON lines and CSV, read line by line."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, TextIO, cast

from askance.data_table.row import DataRow, column_places, numbered_rows
from askance.documents import UnreadableDocument, parse_json
from askance.errors import BadData

MOST_LINE = 1_000_000
"""Most characters of a line of text."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def encoding_of(start: bytes) -> str:
    """The encoding that the byte order mark at the start of a file names; else UTF-8."""
    return next((encoding for mark, encoding in _BOMS if start.startswith(mark)), "utf-8")


class _TextTable:
    """A file of text.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.source = str(path)
        self.home: Path | None = path.parent
        self._columns: tuple[str, ...] | None = None

    def _numbered_lines(self) -> Iterator[tuple[int, str]]:
        """Each line with its number and its line end.

        Raises:
            BadData: it cannot be read, is no text, or has a line longer than `MOST_LINE`.
        """
        try:
            with self._opened() as file:
                number = 0
                while line := file.readline(MOST_LINE + 1):
                    number += 1
                    if len(line) > MOST_LINE:
                        raise BadData(
                            f"{self.source!r}, line {number}: it is longer than {MOST_LINE:,} characters.",
                            hint="Give a row a line, and pictures as files beside it.",
                        )
                    yield number, line
        except OSError as error:
            raise BadData(f"{self.source!r} cannot be read: {error.strerror}.", hint="Check the file.") from error
        except UnicodeError as error:
            raise BadData(f"{self.source!r} is no text in UTF-8: {error}.", hint="Save it as UTF-8.") from error

    def _opened(self) -> TextIO:
        with self._path.open("rb") as file:
            start = file.read(4)
        return self._path.open(encoding=encoding_of(start), newline="")


class JsonLinesTable(_TextTable):
    """A JSON object a line."""

    @property
    def columns(self) -> tuple[str, ...]:
        if self._columns is None:
            self._columns = next((tuple(form) for _, form in self._objects()), ())
        return self._columns

    def rows(self, columns: Mapping[str, str] | None = None) -> Iterator[DataRow]:
        def located_rows() -> Iterator[tuple[str, Mapping[str, Any]]]:
            unseen = set((columns or {}).values())
            for where, form in self._objects():
                unseen -= form.keys()
                yield (
                    where,
                    form
                    if columns is None
                    else {name: form[column] for name, column in columns.items() if column in form},
                )
            if unseen:
                raise BadData(
                    f"{self.source!r} has {min(unseen)!r} in no row.",
                    hint=f"Its first row has {', '.join(map(repr, self.columns))}.",
                )

        return numbered_rows(self.source, located_rows())

    def _objects(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for number, line in self._numbered_lines():
            if not line.strip():
                continue
            where = f"{self.source!r}, line {number}"
            try:
                form = parse_json(line, unique=True)
            except UnreadableDocument as error:
                raise BadData(f"{where} {error}.", hint="Write a JSON object a line.") from error
            if not isinstance(form, dict):
                raise BadData(f"{where} is no JSON object.", hint='A row reads like {"image": "a.jpg"}.')
            yield where, cast("dict[str, Any]", form)


_END = "\x1eend"
"""A last row that is added to a CSV file: where it does not come out again, a quotation mark was left open."""


class CsvTable(_TextTable):
    """Values between commas; between tabs where the file ends in `.tsv`."""

    @property
    def columns(self) -> tuple[str, ...]:
        if self._columns is None:
            self._columns, _ = self._records()
            if not any(self._columns):
                raise BadData(f"{self.source!r} is empty.", hint="Its first line names the columns.")
        return self._columns

    def rows(self, columns: Mapping[str, str] | None = None) -> Iterator[DataRow]:
        places = column_places(self.source, self.columns, columns)

        def located_rows() -> Iterator[tuple[str, Mapping[str, Any]]]:
            for line, cells in self._records()[1]:
                values = {name: cells[at] for name, at in places.items() if at < len(cells) and cells[at] != ""}
                yield f"{self.source!r}, line {line}", values

        return numbered_rows(self.source, located_rows())

    def _records(self) -> tuple[tuple[str, ...], Iterator[tuple[int, list[str]]]]:
        delimiter = "\t" if self._path.suffix.lower() == ".tsv" else ","
        return csv_records((line for _, line in self._numbered_lines()), self.source, delimiter=delimiter)


def csv_records(
    lines: Iterable[str], source: str, *, delimiter: str = ",", strict: bool = False
) -> tuple[tuple[str, ...], Iterator[tuple[int, list[str]]]]:
    """The names in the first row of CSV, and the rows below it, each with the number of the line on which it ends.

    Empty lines are left out.

    Args:
        lines: with their line ends.
        source: what they are of, for messages.
        delimiter: between two fields.
        strict: whether a row with fewer fields than names is refused, and text behind a closing quotation mark, rather
            than taken for a part of the field.

    Raises:
        BadData: it is no CSV, a quotation mark is never closed, or a row has more fields than there are names.
    """
    fields = _csv_fields(lines, source, delimiter=delimiter, strict=strict)
    names = tuple(name.strip() for name in next(fields, (0, list[str]()))[1])

    def rows() -> Iterator[tuple[int, list[str]]]:
        for line, cells in fields:
            if len(cells) > len(names) or (strict and len(cells) < len(names)):
                raise BadData(
                    f"The file {source!r}, line {line}: {len(cells)} fields, and the first line names {len(names)}.",
                    hint="A field with a comma or a line break in it stands in double quotes.",
                )
            yield line, cells

    return names, rows()


def _csv_fields(lines: Iterable[str], source: str, *, delimiter: str, strict: bool) -> Iterator[tuple[int, list[str]]]:
    """The rows as lists of fields, each with the number of the line on which it ends."""
    at_end = False

    def end() -> Iterator[str]:
        nonlocal at_end
        yield "\n"
        at_end = True
        yield f"{_END}\n"

    reader = csv.reader(chain(lines, end()), delimiter=delimiter, strict=strict)
    try:
        for cells in reader:
            if at_end and cells == [_END]:
                return
            if cells:
                yield reader.line_num, cells
    except csv.Error as error:
        if not at_end:
            raise BadData(
                f"The file {source!r}, line {reader.line_num}: no CSV ({error}).", hint="Save it as CSV again."
            ) from error
    raise BadData(
        f"The file {source!r} ends within a quoted field.", hint="It is cut off, or a quotation mark is missing."
    )
