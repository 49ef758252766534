"""Documents that strangers wrote: JSON, YAML and archives, read within limits and held against a schema.

A file may have been made to harm whoever opens it. So its size, the depth of its nesting and the length of its numbers
have limits here, and whatever is wrong with it ends in one error that says so in words.
"""

from __future__ import annotations

import json
import math
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from askance.errors import UsageError

if TYPE_CHECKING:
    import yaml
    from jsonschema.protocols import Validator
    from pydantic import ValidationError

DEEPEST = 100
"""Levels of lists and maps within each other that any document has a use for, many times over."""
MOST_DIGITS = 18
"""Digits of a whole number."""
LONGEST_SHOWN = 100
"""Characters of a value that a message repeats."""
_CHUNK = 1 << 20


class UnreadableDocument(ValueError):
    """A document that cannot be used; the message goes on from its name: `is no JSON (…)`."""


def parse_json(text: str | bytes, *, finite: bool = True, unique: bool = False, most_digits: int = MOST_DIGITS) -> Any:
    """What a JSON text says.

    Args:
        text: bytes are read as UTF-8.
        finite: whether NaN, Infinity and numbers beyond the range of a float are refused.
        unique: whether a name that is given twice in one object is refused.
        most_digits: digits of a whole number.

    Raises:
        UnreadableDocument: it is no such text, or is nested deeper than `DEEPEST` levels.
    """
    try:
        text = text.decode("utf-8") if isinstance(text, bytes) else text
        found = decoder(finite=finite, unique=unique, most_digits=most_digits).decode(text)
    except UnicodeDecodeError as error:
        raise UnreadableDocument("is no text in UTF-8") from error
    except json.JSONDecodeError as error:
        raise UnreadableDocument(f"is no JSON ({error.msg}, column {error.colno})") from error
    except RecursionError as error:
        raise UnreadableDocument(_TOO_DEEP) from error
    if text.count("[") + text.count("{") > DEEPEST and not _shallow(found):
        raise UnreadableDocument(_TOO_DEEP)
    return found


_TOO_DEEP = f"is nested deeper than {DEEPEST} levels"


@cache
def decoder(*, finite: bool = True, unique: bool = False, most_digits: int = MOST_DIGITS) -> json.JSONDecoder:
    """What `parse_json` decodes with, but for the depth; it raises `UnreadableDocument` and what the library raises."""

    def whole(text: str) -> int:
        if len(text) > most_digits:
            raise UnreadableDocument(f"holds {text[:MOST_DIGITS]}…, a number of {len(text):,} digits")
        return int(text)

    def broken(text: str) -> float:
        number = float(text)
        if not math.isfinite(number):
            raise UnreadableDocument(f"holds {text[:LONGEST_SHOWN]}, a number that is too large")
        return number

    def constant(name: str) -> float:
        raise UnreadableDocument(f"holds {name}, which is no JSON")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        form = dict(pairs)
        if len(form) != len(pairs):
            raise UnreadableDocument("gives a name twice in one object")
        return form

    hook = once if unique else None
    if finite:
        return json.JSONDecoder(parse_int=whole, parse_float=broken, parse_constant=constant, object_pairs_hook=hook)
    return json.JSONDecoder(parse_int=whole, object_pairs_hook=hook)


def _shallow(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        level = [each for one in level for each in _inside(one)]
        if not level:
            return True
    return False


def _inside(value: Any) -> Collection[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()


def parse_yaml(text: str, *, deepest: int) -> tuple[Any, list[tuple[int, str]]]:
    """What a YAML text says, or what is wrong with it: line and message of each fault.

    Aliases are refused, since a text grows without end by them, and so is a name that is given twice in one map, of
    which YAML would silently keep the last. Nothing is built of a text with a fault.

    Args:
        text: with newlines as line ends.
        deepest: levels of lists and maps within each other.

    Returns:
        The value and no faults, or None and the faults; lines count from 1.
    """
    import yaml

    try:
        faults = [*_yaml_faults(text, deepest)]
        return (None, faults) if faults else (yaml.load(text, Loader=yaml_loader()), [])  # noqa: S506  # it is a safe one
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return None, [(mark.line + 1 if mark else 1, f"this is not YAML: {error.problem or error.context}")]
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        return None, [(1, f"this is not YAML: {' '.join(str(error).split()) or type(error).__name__}")]


MOST_YAML_BYTES = 200_000
"""Most bytes of a YAML file."""
MOST_YAML_DEPTH = 12


def read_yaml(path: Path, *, what: str) -> Mapping[str, Any]:
    """The mapping in a YAML file, as plain values.

    Args:
        path: of the file.
        what: noun for its content in messages, such as `a task`.

    Raises:
        UsageError: the file cannot be read, is too large or too deep, is not YAML or no mapping, or has an alias or a
            key twice.
    """
    content, faults = parse_yaml(_yaml_text(path, what), deepest=MOST_YAML_DEPTH)
    for line, message in faults:
        raise UsageError(
            f"{str(path)!r}, line {line}: {message}.",
            hint=f"Write {what} in plain YAML; texts with a colon want quotes.",
        )
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in cast("dict[Any, Any]", content)):
        raise UsageError(
            f"{str(path)!r} holds no map of names to values.", hint=f"Write {what} as `name: value` lines."
        )
    return cast("dict[str, Any]", content)


def _yaml_text(path: Path, what: str) -> str:
    try:
        if path.stat().st_size > MOST_YAML_BYTES:
            raise UsageError(f"{str(path)!r} is larger than {MOST_YAML_BYTES:,} bytes.", hint=f"Is it {what}?")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be read: {error.strerror}.", hint="Check the name.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{str(path)!r} is not UTF-8 text.", hint="Save it as UTF-8.") from error


@cache
def yaml_loader() -> Any:
    """The loader of plain values, written in C where that is installed."""
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _yaml_faults(text: str, deepest: int) -> Iterator[tuple[int, str]]:
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=yaml_loader()):
        line = event.start_mark.line + 1 if event.start_mark else 1
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent):
            yield line, "aliases (`*name`) are not taken"
            return
        if depth > deepest:
            yield line, f"lists and maps stand more than {deepest} deep in one another"
            return
    yield from _repeated_names(yaml.compose(text, Loader=yaml_loader()))


def _repeated_names(node: yaml.Node | None) -> Iterator[tuple[int, str]]:
    import yaml

    if isinstance(node, yaml.MappingNode):
        seen = set[str]()
        for name, value in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            if (key := str(name.value)) in seen:
                yield name.start_mark.line + 1, f"`{key}` stands twice"
            seen.add(key)
            yield from _repeated_names(value)
    elif isinstance(node, yaml.SequenceNode):
        for each in cast("list[yaml.Node]", node.value):
            yield from _repeated_names(each)


def misfit(value: Any, schema: Path, *, whole: str = "it") -> str | None:
    """The first place where a value does not fit the JSON Schema in a file of the package, in words.

    Args:
        value: as JSON has it.
        schema: a file of the package.
        whole: what to call the value itself.

    Returns:
        As `files.tables/x is 3, not of type string`; None where the value fits.
    """
    error = next(validator(schema).iter_errors(value), None)
    if error is None:
        return None
    return f"{_place(error.absolute_path) or whole}: {_shortened(error.message)}"


@cache
def validator(schema: Path) -> Validator:
    """What checks values against the JSON Schema in a file of the package."""
    from jsonschema import Draft202012Validator

    form = json.loads(schema.read_text(encoding="utf-8"))
    return Draft202012Validator(_inlined(form, form.get("$defs", {})))


def _inlined(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """`schema` with each reference replaced by what it refers to: looking them up is half of the time of a check."""
    if isinstance(schema, list):
        return [_inlined(item, definitions) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    form = {name: value for name, value in cast("dict[str, Any]", schema).items() if name != "$defs"}
    referred: dict[str, Any] = definitions[form.pop("$ref").rpartition("/")[2]] if "$ref" in form else {}
    return {name: _inlined(value, definitions) for name, value in {**referred, **form}.items()}


def misfit_of(error: ValidationError) -> str:
    """The first place at which pydantic found a value not to fit, in words: `totals.samples is "x", not …`."""
    first = error.errors(include_url=False)[0]
    place = _place(first["loc"]) or "it"
    if first["type"] == "missing":
        return f"{place} is missing"
    wanted = first["msg"].removeprefix("Input should be ")
    if wanted == first["msg"]:
        return f"{place}: {wanted.removeprefix('Value error, ')}"
    return f"{place} is {_shortened(json.dumps(first['input'], ensure_ascii=False, default=str))}, not {wanted}"


def _place(steps: Iterable[str | int]) -> str:
    """A place within a document: `figures[0].value`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")


def _shortened(text: str) -> str:
    most = 2 * LONGEST_SHOWN
    return text if len(text) <= most else f"{text[:LONGEST_SHOWN]} … {text[-LONGEST_SHOWN:]}"


class Archive:
    """A zip file from outside, open for reading; nothing of it is written anywhere, and no name in it is followed.

    Args:
        path: of the file.
        most: bytes that all files in it may have together, unpacked.
        most_times: how many times its own size that may be at most; small archives may have `SMALL` in any case.

    Raises:
        UnreadableDocument: it is no zip file, holds one name twice, is packed in another way than zip files mostly are,
            or is too large.
        OSError: it cannot be read.
    """

    SMALL = 64_000_000

    def __init__(self, path: Path, *, most: int, most_times: int = 200) -> None:
        try:
            self._file = zipfile.ZipFile(path)
        except _BROKEN as error:
            raise UnreadableDocument("is no zip file") from error
        try:
            self._check(most, max(self.SMALL, most_times * path.stat().st_size))
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _check(self, most: int, most_packed: int) -> None:
        entries = self._file.infolist()
        if len({entry.filename for entry in entries}) != len(entries):
            raise UnreadableDocument("holds two files of one name")
        for entry in entries:
            if entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED} or entry.flag_bits & 1:
                raise UnreadableDocument(f"holds {entry.filename[:LONGEST_SHOWN]!r}, which is not packed by deflate")
        size = sum(entry.file_size for entry in entries)
        if size > min(most, most_packed):
            raise UnreadableDocument(f"holds {size / 1e6:,.0f} MB once it is unpacked, which is too much")

    @property
    def sizes(self) -> Mapping[str, int]:
        """The unpacked size of each file, in bytes, by name."""
        return {entry.filename: entry.file_size for entry in self._file.infolist()}

    def chunks(self, name: str) -> Iterator[bytes]:
        """The content of a file, a piece at a time; there is no more of it than `sizes` says.

        Raises:
            UnreadableDocument: it is broken.
        """
        try:
            with self._file.open(name) as source:
                while chunk := source.read(_CHUNK):
                    yield chunk
        except _BROKEN as error:
            raise UnreadableDocument(f"holds {name[:LONGEST_SHOWN]!r}, which is broken") from error

    def read(self, name: str) -> bytes:
        """The content of a file.

        Raises:
            UnreadableDocument: it is broken.
        """
        return b"".join(self.chunks(name))


_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
)
"""What the reading of a zip file raises over one that is broken."""
