"""Reading the files of a data set within limits: text, JSON, CSV, archives and folders; errors name the place."""

from __future__ import annotations

import codecs
import io
import json
import os
import stat
import zipfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, cast

from askance.chat import Json, JsonObject
from askance.data_table import csv_records, encoding_of
from askance.documents import BROKEN_ZIP, UnreadableDocument, stream_json
from askance.errors import BadData
from askance.images import SUFFIXES

MAX_FILE = 256_000_000
"""Most bytes of a file; the largest of the data set, the statements of 51,223 images, has about 70 million."""

MAX_STREAM = 4_000_000_000
"""Most bytes of a JSON file of which one item at a time is read."""
_CHUNK = 1 << 20

MAX_MARKS = 16_000_000
"""Most commas and brackets of a JSON file, since a byte of text can become a hundred bytes of memory."""

Problems = list[BadData]
"""A list to which a reader adds errors of single records before it goes on; without it, it raises the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """How many of something were found, and how many are published."""

    found: int
    published: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderReport:
    """What a folder of a data set holds."""

    folder: str
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """What should be mended, one sentence each."""

    @property
    def sound(self) -> bool:
        """Whether there are no problems."""
        return not self.problems

    def canonical(self) -> JsonObject:
        """The report as JSON."""
        return {**asdict(self), "sound": self.sound}


_ANOTHER = "No file of the data set is like that."


def files_below(
    folder: Path,
    *,
    deepest: int,
    most: int,
    takes: Callable[[str], bool] = lambda _: True,
    enters: Callable[[str], bool] = lambda _: True,
) -> Iterator[Path]:
    """The files below a folder, ordered by name; hidden files and folders are left out, and links are followed.

    Args:
        folder: where they are looked for.
        deepest: levels of folders below it at most.
        most: files and folders that are looked at, at most.
        takes: whether a file is taken, by its name.
        enters: whether a folder is looked into, by its name.

    Raises:
        BadData: a folder cannot be read, or there are more than `most` files and folders.
    """
    seen = 0

    def below(place: Path, depth: int) -> Iterator[Path]:
        nonlocal seen
        try:
            entries = sorted(os.scandir(place), key=lambda entry: entry.name)
        except OSError as error:
            raise BadData(
                f"The folder {str(place)!r} cannot be read: {error.strerror}.",
                hint="Check the path and its permissions.",
            ) from error
        seen += len(entries)
        if seen > most:
            raise BadData(
                f"The folder {str(folder)!r} holds more than {most:,} files.", hint="Name the folder of the data set."
            )
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if takes(entry.name) and entry.is_file():
                yield Path(entry.path)
            elif depth < deepest and enters(entry.name) and entry.is_dir():
                yield from below(Path(entry.path), depth + 1)

    return below(folder, 0)


def is_picture(name: str) -> bool:
    """Whether the name of a file has the ending of a picture."""
    return os.path.splitext(name)[1].lower() in SUFFIXES  # noqa: PTH122  # it is asked of each of 64,832


def note(error: BadData, problems: Problems | None) -> None:
    """Adds `error` to `problems`; raises it if there is no such list."""
    if problems is None:
        raise error
    problems.append(error)


@contextmanager
def noting(problems: Problems | None) -> Generator[None]:
    """A block that ends at a `BadData`, which is added to `problems`; raises it if there is no such list."""
    try:
        yield
    except BadData as error:
        note(error, problems)


def read_text(path: Path, *, otherwise: str | None = None) -> str:
    """The text of a file, in the encoding of its byte order mark, else in UTF-8.

    Args:
        path: a regular file of at most `MAX_FILE` bytes.
        otherwise: the encoding of a file that is not UTF-8; without it such a file is an error.

    Raises:
        BadData: the file is missing, cannot be read, is too large, or is no text.
    """
    return _decoded(read_bytes(path), str(path), otherwise)


def _decoded(data: bytes, source: str, otherwise: str | None = None) -> str:
    encoding = encoding_of(data)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        if otherwise is not None:
            return data.decode(otherwise)
        raise BadData(
            f"The file {source!r} is no {encoding.removesuffix('-sig').upper()} text: "
            f"byte {error.start} is {data[error.start]:#04x}.",
            hint="Save it as UTF-8, or fetch it again.",
        ) from error


def read_bytes(path: Path) -> bytes:
    """The content of a regular file of at most `MAX_FILE` bytes.

    Raises:
        BadData: the file is missing, cannot be read, or is too large.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise BadData(f"{str(path)!r} is no regular file.", hint="Name the file itself.")
        if status.st_size > MAX_FILE:
            raise BadData(f"The file {str(path)!r} has more than {MAX_FILE // 1_000_000} MB.", hint=_ANOTHER)
        return path.read_bytes()
    except FileNotFoundError as error:
        raise BadData(f"There is no file {str(path)!r}.", hint="Mend the path.") from error
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise BadData(f"The file {str(path)!r} cannot be read: {reason}.", hint="Mend its rights.") from error


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a data set, on the disk or in a zip archive; nothing is extracted to disk."""

    path: Path
    member: str = ""
    """Its name within the archive `path`; empty for a file on the disk."""

    def __str__(self) -> str:
        return f"{self.path}:{self.member}" if self.member else str(self.path)

    @property
    def stem(self) -> str:
        """The name of the file without its ending."""
        return PurePosixPath(self.member).stem if self.member else self.path.stem

    def members(self) -> tuple[DataFile, ...]:
        """The files of the archive that this file is, in its order, without hidden ones and what macOS adds.

        Raises:
            BadData: it is no archive.
        """
        try:
            with zipfile.ZipFile(self.path) as archive:
                names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
        except (OSError, *BROKEN_ZIP) as error:
            raise BadData(f"The archive {str(self)!r} cannot be read: {error}.", hint="Fetch it again.") from error
        shown = (name for name in names if not PurePosixPath(name).name.startswith(".") and "__MACOSX" not in name)
        return tuple(DataFile(self.path, name) for name in shown)

    def read(self, most: int = MAX_FILE) -> bytes:
        """The content of the file.

        Raises:
            BadData: it is missing, cannot be read, or has more than `most` bytes.
        """
        if not self.member:
            return read_bytes(self.path)
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as stream:
                data = stream.read(most + 1)
        except (OSError, KeyError, *BROKEN_ZIP) as error:
            raise BadData(
                f"{self.member!r} cannot be taken out of {str(self.path)!r}: {error}.", hint="Unpack it."
            ) from error
        if len(data) > most:
            raise BadData(f"{self.member!r} in {str(self.path)!r} has more than {most // 1_000_000} MB.", hint=_ANOTHER)
        return data

    def text(self) -> str:
        """The text of the file, as `read_text` decodes it.

        Raises:
            BadData: as `read`; or it is no text.
        """
        return _decoded(self.read(), str(self))

    def stream(self) -> Iterator[tuple[str | int, Any]]:
        """The items of the JSON list or object in the file, as `stream_json`; only one is in memory.

        Raises:
            BadData: the file is missing, cannot be read, has more than `MAX_STREAM` bytes, or is no such JSON in UTF-8.
        """
        try:
            yield from stream_json(self._chunks())
        except UnreadableDocument as error:
            raise BadData(f"The file {str(self)!r} {error}.", hint="Fetch it again.") from error
        except UnicodeDecodeError as error:
            raise BadData(f"The file {str(self)!r} is no UTF-8 text.", hint="Fetch it again.") from error
        except FileNotFoundError as error:
            raise BadData(f"There is no file {str(self)!r}.", hint="Mend the path.") from error
        except (OSError, KeyError, *BROKEN_ZIP) as error:
            raise BadData(f"The file {str(self)!r} cannot be read: {error}.", hint="Fetch it again.") from error

    def _chunks(self) -> Iterator[str]:
        size = 0
        with ExitStack() as stack:
            if self.member:
                archive = stack.enter_context(zipfile.ZipFile(self.path))
                raw = stack.enter_context(archive.open(self.member))
            else:
                raw = stack.enter_context(self.path.open("rb"))
            decoder = codecs.getincrementaldecoder("utf-8-sig")()
            while chunk := raw.read(_CHUNK):
                size += len(chunk)
                if size > MAX_STREAM:
                    raise UnreadableDocument(f"has more than {MAX_STREAM // 1_000_000:,} MB")
                yield decoder.decode(chunk)
            yield decoder.decode(b"", final=True)

    def json(self, problems: Problems | None = None, *, nan_is_null: bool = False) -> Json:
        """The JSON in the file; see `read_json`.

        Args:
            problems: takes keys that stand twice.
            nan_is_null: whether NaN, which is no JSON, is read as null.

        Raises:
            BadData: as `text` and `read_json`.
        """
        return _json_in(self.text(), str(self), problems, nan_is_null=nan_is_null)


def read_json(path: Path, problems: Problems | None = None) -> Json:
    """The JSON in a file; a key that an object has twice is a problem, and its last value counts.

    Raises:
        BadData: the file is no JSON, has NaN or Infinity, is nested too deeply, or has more values than `MAX_MARKS`.
    """
    return DataFile(path).json(problems)


def _json_in(text: str, source: str, problems: Problems | None, *, nan_is_null: bool) -> Json:
    if sum(map(text.count, ",[{")) > MAX_MARKS:
        raise BadData(f"The file {source!r} holds more than {MAX_MARKS:,} values.", hint=_ANOTHER)
    twice: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> JsonObject:
        form = dict(pairs)
        if len(form) != len(pairs):
            twice.extend(_repeated([key for key, _ in pairs]))
        return form

    def constant(name: str) -> None:
        if name != "NaN" or not nan_is_null:
            msg = f"it holds {name}"
            raise ValueError(msg)

    try:
        content = cast("Json", json.loads(text, object_pairs_hook=unique, parse_constant=constant))
    except RecursionError as error:
        raise BadData(f"The file {source!r} is nested too deeply.", hint=_ANOTHER) from error
    except ValueError as error:
        raise BadData(f"The file {source!r} is no JSON: {error}.", hint="Fetch it again.") from error
    for key in twice:
        note(BadData(f"The file {source!r} has the key {key!r} twice.", hint="Keep one of the two."), problems)
    return content


def read_map(path: Path, problems: Problems | None = None) -> JsonObject:
    """The JSON object in a file, with at least one key.

    Raises:
        BadData: as `read_json`; or it is no object, or an empty one.
    """
    content = read_json(path, problems)
    if not isinstance(content, dict):
        raise BadData(
            f"The file {str(path)!r} holds no JSON object.", hint="Its keys should be image paths, '9/142269.jpg'."
        )
    if not content:
        raise BadData(f"The file {str(path)!r} is an empty object.", hint="Fetch it again.")
    return cast("JsonObject", content)


def _repeated(keys: Sequence[str]) -> list[str]:
    seen = set[str]()
    return [key for key in keys if key in seen or seen.add(key)]


def read_table(path: Path, columns: Mapping[str, Sequence[str]]) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a CSV file: the number of the line on which each ends, and its values by column.

    Missing fields of a row are empty, as in pandas; empty lines are left out.

    Args:
        path: the file; its first row has the names of the columns.
        columns: the columns to read, each with the spellings that it may have.

    Raises:
        BadData: the file is empty, lacks a column, has a row with more fields than columns, or a quotation mark that
            is never closed.
    """
    header, rows = csv_records(io.StringIO(read_text(path), newline=""), str(path))
    if not any(header):
        raise BadData(f"The file {str(path)!r} is empty.", hint=f"Its first line should name {_listed(columns)}.")
    places = {name: _place(header, spellings, path) for name, spellings in columns.items()}
    count = 0
    for line, row in rows:
        count += 1
        yield line, {name: row[place] if place < len(row) else "" for name, place in places.items()}
    if not count:
        raise BadData(f"The file {str(path)!r} has no row below its header.", hint="Fetch it again.")


def _place(header: Sequence[str], spellings: Sequence[str], path: Path) -> int:
    places = [place for place, name in enumerate(header) if name in spellings]
    if len(places) == 1:
        return places[0]
    wrong = f"has no column {spellings[0]!r}" if not places else f"has the column {spellings[0]!r} {len(places)} times"
    raise BadData(f"The file {str(path)!r} {wrong}.", hint=f"It has {', '.join(map(repr, header[:20]))}.")


def _listed(columns: Mapping[str, Sequence[str]]) -> str:
    return ", ".join(spellings[0] for spellings in columns.values())
