"""Untrusted documents: JSON, YAML, TOML and zip archives, read within limits and validated against a schema.

A file may have been made to harm whoever opens it. So there are limits to its size, its depth and the length of its
numbers, and everything that is wrong with it is raised as one error that says so in words.
"""

from __future__ import annotations

import json
import math
import struct
import tomllib
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from askance.errors import UsageError
from askance.registry import near_file

if TYPE_CHECKING:
    import yaml
    from jsonschema.protocols import Validator
    from pydantic import ValidationError

MAX_DEPTH = 100
"""Most levels of nested lists and maps, many times more than any document needs."""
MAX_DIGITS = 18
"""Most digits of a whole number."""
MAX_SHOWN = 100
"""Most characters of a value that a message quotes."""
_CHUNK = 1 << 20


class UnreadableDocument(ValueError):
    """A document that cannot be used; the message continues a sentence after its name: `is no JSON (…)`."""


def parse_json(text: str | bytes, *, finite: bool = True, unique: bool = False, max_digits: int = MAX_DIGITS) -> Any:
    """The value of a JSON text.

    Args:
        text: bytes are read as UTF-8.
        finite: whether NaN, Infinity and numbers beyond the range of a float are refused.
        unique: whether a name that is given twice in one object is refused.
        max_digits: digits of a whole number.

    Raises:
        UnreadableDocument: it is no JSON text, breaks one of these rules, or is nested deeper than `MAX_DEPTH` levels.
    """
    try:
        text = text.decode("utf-8") if isinstance(text, bytes) else text
        value = decoder(finite=finite, unique=unique, max_digits=max_digits).decode(text)
    except UnicodeDecodeError as error:
        raise UnreadableDocument("is no text in UTF-8") from error
    except json.JSONDecodeError as error:
        raise UnreadableDocument(f"is no JSON ({error.msg}, column {error.colno})") from error
    except RecursionError as error:
        raise UnreadableDocument(_TOO_DEEP) from error
    if text.count("[") + text.count("{") > MAX_DEPTH and not _within_depth(value):
        raise UnreadableDocument(_TOO_DEEP)
    return value


_TOO_DEEP = f"is nested deeper than {MAX_DEPTH} levels"


def stream_json(chunks: Iterable[str], *, max_item: int = 1 << 24) -> Iterator[tuple[str | int, Any]]:
    """The items of the list or object that a JSON text is, each when it has been read; no other is kept.

    It is for files of millions of items. So their numbers are what Python makes of them, without the limits of
    `parse_json` but without NaN and Infinity, and of a name that an object gives twice the last value counts.

    Args:
        chunks: the text, in parts of any length.
        max_item: characters of an item at most.

    Yields:
        Each item after its place in the list, from 0, or after its name in the object.

    Raises:
        UnreadableDocument: it is no JSON text, no list or object, or an item breaks one of these rules.
    """
    text = _StreamedText(chunks, max_item)
    if text.mark("[{") == "[":
        yield from enumerate(text.items())
    else:
        yield from text.members()
    text.end()


class _StreamedText:
    """A text that is read as it is needed; what has been decoded is dropped."""

    def __init__(self, chunks: Iterable[str], max_item: int) -> None:
        self._chunks = iter(chunks)
        self._max_item = max_item
        self._decode = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode
        self._text, self._at, self._count = "", 0, 0

    def _more(self) -> bool:
        """Reads on; whether there was more."""
        chunk = next(self._chunks, "")
        self._text, self._at = self._text[self._at :] + chunk, 0
        return bool(chunk)

    def _skip_blanks(self) -> None:
        while True:
            while self._text[self._at : self._at + 1] in _BLANKS:
                self._at += 1
            if self._at < len(self._text) or not self._more():
                return

    def _ahead(self) -> str:
        """The next character that is no blank; empty at the end."""
        self._skip_blanks()
        return self._text[self._at : self._at + 1]

    def closes(self, mark: str) -> bool:
        """Whether `mark` comes next; it is passed over then."""
        found = self._ahead() == mark
        self._at += found
        return found

    def mark(self, marks: str) -> str:
        """The next character, which is one of `marks`."""
        found = self._ahead()
        if not found or found not in marks:
            wanted = " or ".join(map(repr, marks))
            raise UnreadableDocument(f"is no JSON ({wanted} is expected, and {repr(found) if found else 'it ends'})")
        self._at += 1
        return found

    def items(self) -> Iterator[Any]:
        """The items of a list whose bracket has been read."""
        more = not self.closes("]")
        while more:
            yield self.value()
            self._count += 1
            more = self.mark(",]") == ","

    def members(self) -> Iterator[tuple[str, Any]]:
        """The names and values of an object whose brace has been read."""
        more = not self.closes("}")
        while more:
            name = self.value()
            if not isinstance(name, str):
                raise UnreadableDocument(f"is no JSON (the name of item {self._count:,} is no text)")
            self.mark(":")
            yield name, self.value()
            self._count += 1
            more = self.mark(",}") == ","

    def value(self) -> Any:
        """The next value."""
        self._skip_blanks()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
                reason = "it ends"
            except RecursionError as error:
                raise UnreadableDocument(_TOO_DEEP) from error
            except UnreadableDocument:
                raise
            except json.JSONDecodeError as error:
                value, end, reason = None, len(self._text), error.msg
            except ValueError as error:  # Python converts no more than some thousand digits
                raise UnreadableDocument(f"holds a number of thousands of digits in item {self._count:,}") from error
            if self._text[end : end + 1] in _ENDS:  # else more of a number may follow
                self._at = end
                return value
            if len(self._text) - self._at > self._max_item:
                reason = f"{reason}, or it is longer than {self._max_item:,} characters"
                break
            if not self._more():
                break
        raise UnreadableDocument(f"is no JSON (item {self._count:,}: {reason})")

    def end(self) -> None:
        """Checks that nothing comes next."""
        if self._ahead():
            raise UnreadableDocument("is no JSON (something stands behind its end)")


_BLANKS = frozenset(" \t\n\r")
_ENDS = _BLANKS | frozenset(",:]}")
"""What may follow a value within a list or an object."""


@cache
def decoder(*, finite: bool = True, unique: bool = False, max_digits: int = MAX_DIGITS) -> json.JSONDecoder:
    """The decoder of `parse_json`, without its limit of depth; it raises `UnreadableDocument` and errors of `json`."""

    def whole(text: str) -> int:
        if len(text) > max_digits:
            raise UnreadableDocument(f"holds {text[:MAX_DIGITS]}…, a number of {len(text):,} digits")
        return int(text)

    def broken(text: str) -> float:
        number = float(text)
        if not math.isfinite(number):
            raise UnreadableDocument(f"holds {text[:MAX_SHOWN]}, a number that is too large")
        return number

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        form = dict(pairs)
        if len(form) != len(pairs):
            raise UnreadableDocument("gives a name twice in one object")
        return form

    hook = once if unique else None
    if finite:
        return json.JSONDecoder(
            parse_int=whole, parse_float=broken, parse_constant=_refuse_constant, object_pairs_hook=hook
        )
    return json.JSONDecoder(parse_int=whole, object_pairs_hook=hook)


def _refuse_constant(name: str) -> float:
    raise UnreadableDocument(f"holds {name}, which is no JSON")


def _within_depth(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [each for one in level for each in _children(one)]
        if not level:
            return True
    return False


def _children(value: Any) -> Collection[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()


def parse_toml(text: str) -> dict[str, Any]:
    """The value of a TOML text.

    Raises:
        UnreadableDocument: it is no TOML text, is nested deeper than `MAX_DEPTH` levels, or holds a whole number of
            more than 64 bits.
    """
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UnreadableDocument(f"is not TOML: {error}") from error
    except ValueError as error:  # Python converts no more than some thousand digits
        raise UnreadableDocument(_TOO_LARGE) from error
    except RecursionError as error:
        raise UnreadableDocument(_TOO_DEEP) from error
    if not _within_depth(value):
        raise UnreadableDocument(_TOO_DEEP)
    if any(isinstance(each, int) and each.bit_length() > 64 for each in _leaves(value)):
        raise UnreadableDocument(_TOO_LARGE)
    return value


_TOO_LARGE = "holds a whole number of more than 64 bits"


def _leaves(value: Any) -> Iterator[Any]:
    """The values in a document that are neither lists nor maps."""
    if isinstance(value, (dict, list)):
        for each in _children(value):
            yield from _leaves(each)
    else:
        yield value


def parse_yaml(text: str, *, max_depth: int) -> tuple[Any, list[tuple[int, str]]]:
    """The value of a YAML text, or what is wrong with it: line and message of each fault.

    Aliases are refused, since a short text can grow without end by them. So is a name that is given twice in one map,
    of which YAML would silently keep the last. A text with a fault is not loaded.

    Args:
        text: with newlines as line ends.
        max_depth: most levels of nested lists and maps.

    Returns:
        The value and no faults, or None and the faults; lines count from 1.
    """
    import yaml

    try:
        faults = [*_yaml_faults(text, max_depth)]
        return (None, faults) if faults else (yaml.load(text, Loader=yaml_loader()), [])  # noqa: S506  # it is a safe one
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return None, [(mark.line + 1 if mark else 1, f"this is not YAML: {error.problem or error.context}")]
    except (
        yaml.YAMLError,
        RecursionError,
        ValueError,
        ArithmeticError,
        LookupError,
        AttributeError,
        TypeError,
    ) as error:
        return None, [(1, f"this is not YAML: {' '.join(str(error).split()) or type(error).__name__}")]


MAX_YAML_BYTES = 200_000
"""Most bytes of a YAML file."""
MAX_YAML_DEPTH = 12


def read_yaml(path: Path, *, what: str) -> Mapping[str, Any]:
    """The mapping in a YAML file, as plain values.

    Args:
        path: of the file.
        what: noun for its content in messages, such as `a task`.

    Raises:
        UsageError: the file cannot be read, is too large or too deep, is not YAML or no mapping, or has an alias or a
            key twice.
    """
    content, faults = parse_yaml(_yaml_text(path, what), max_depth=MAX_YAML_DEPTH)
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
        if path.exists() and not path.is_file():
            raise UsageError(f"{str(path)!r} is no regular file.", hint="Name the file itself.")
        if path.stat().st_size > MAX_YAML_BYTES:
            raise UsageError(f"{str(path)!r} is larger than {MAX_YAML_BYTES:,} bytes.", hint=f"Is it {what}?")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        hint = f"{near_file(path)}Check the name."
        raise UsageError(f"{str(path)!r} cannot be read: {error.strerror}.", hint=hint) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{str(path)!r} is not UTF-8 text.", hint="Save it as UTF-8.") from error


@cache
def yaml_loader() -> Any:
    """The safe loader of YAML, in C where that is installed."""
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _yaml_faults(text: str, max_depth: int) -> Iterator[tuple[int, str]]:
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=yaml_loader()):
        line = event.start_mark.line + 1 if event.start_mark else 1
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent):
            yield line, "aliases (`*name`) are not taken"
            return
        if depth > max_depth:
            yield line, f"lists and maps are nested more than {max_depth} deep"
            return
    yield from _node_faults(yaml.compose(text, Loader=yaml_loader()))


def _node_faults(node: yaml.Node | None) -> Iterator[tuple[int, str]]:
    """Names that stand twice, and numbers that are too long: YAML has some to the base 60 and 16 as well."""
    import yaml

    if isinstance(node, yaml.ScalarNode):
        if node.tag in _YAML_NUMBERS and len(node.value) > MAX_SHOWN:
            yield (
                node.start_mark.line + 1,
                f"`{node.value[:MAX_DIGITS]}…` is a number of {len(node.value):,} digits",
            )
    elif isinstance(node, yaml.MappingNode):
        seen = set[str]()
        for name, value in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            if (key := str(name.value)) in seen:
                yield name.start_mark.line + 1, f"`{key}` stands twice"
            seen.add(key)
            yield from _node_faults(name)
            yield from _node_faults(value)
    elif isinstance(node, yaml.SequenceNode):
        for each in cast("list[yaml.Node]", node.value):
            yield from _node_faults(each)


_YAML_NUMBERS = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})


def schema_violation(value: Any, schema: Path, *, whole: str = "it") -> str | None:
    """The first violation of a JSON Schema of the package, in words.

    Args:
        value: as JSON has it.
        schema: a file of the package.
        whole: what to call the value itself.

    Returns:
        Such as `files[0].size: 3 is not of type 'string'`; None where the value is valid.
    """
    error = next(validator(schema).iter_errors(value), None)
    if error is None:
        return None
    return f"{_place(error.absolute_path) or whole}: {_shortened(error.message)}"


@cache
def validator(schema: Path) -> Validator:
    """The validator of the JSON Schema in a file of the package."""
    from jsonschema import Draft202012Validator

    form = json.loads(schema.read_text(encoding="utf-8"))
    return Draft202012Validator(_inlined(form, form.get("$defs", {})))


def _inlined(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """`schema` with each reference replaced by its definition: to look them up takes half of the time of a check."""
    if isinstance(schema, list):
        return [_inlined(item, definitions) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    form = {name: value for name, value in cast("dict[str, Any]", schema).items() if name != "$defs"}
    referred: dict[str, Any] = definitions[form.pop("$ref").rpartition("/")[2]] if "$ref" in form else {}
    return {name: _inlined(value, definitions) for name, value in {**referred, **form}.items()}


def validation_message(error: ValidationError) -> str:
    """The first error of a pydantic validation, in words: `totals.samples is "x", not …`."""
    first = error.errors(include_url=False)[0]
    place = _place(first["loc"]) or "it"
    if first["type"] == "missing":
        return f"{place} is missing"
    wanted = first["msg"].removeprefix("Input should be ")
    if wanted == first["msg"]:
        return f"{place}: {wanted.removeprefix('Value error, ')}"
    return f"{place} is {_shortened(json.dumps(first['input'], ensure_ascii=False, default=str))}, not {wanted}"


def _place(steps: Iterable[str | int]) -> str:
    """A path within a document: `figures[0].value`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")


def _shortened(text: str) -> str:
    most = 2 * MAX_SHOWN
    return text if len(text) <= most else f"{text[:MAX_SHOWN]} … {text[-MAX_SHOWN:]}"


class Archive:
    """An untrusted zip file, open for reading; nothing is extracted to disk, and no name in it is used as a path.

    Every byte belongs to one of its files or to their directory. Otherwise another program might take it for a script,
    a page or another archive, which no check of its files would see.

    Args:
        path: of the file.
        max_bytes: most unpacked bytes of all its files together.
        max_ratio: most unpacked bytes for each byte of the archive; `MIN_LIMIT` is allowed in any case.

    Raises:
        UnreadableDocument: it is no zip file, holds one name twice, is encrypted or not compressed by deflate, is too
            large, or has bytes, comments or fields beside its files.
        OSError: it cannot be read.
    """

    MIN_LIMIT = 64_000_000
    """Unpacked bytes that any archive may have."""

    def __init__(self, path: Path, *, max_bytes: int, max_ratio: int = 200) -> None:
        self._raw = path.open("rb")
        try:
            self._file = _opened(self._raw)
            self._check(max_bytes, max(self.MIN_LIMIT, max_ratio * path.stat().st_size))
        except BaseException:
            self._raw.close()
            raise

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._raw.close()

    def _check(self, max_bytes: int, max_unpacked: int) -> None:
        entries = self._file.infolist()
        if len({entry.filename for entry in entries}) != len(entries):
            raise UnreadableDocument("holds two files of one name")
        for entry in entries:
            if entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED} or entry.flag_bits & 1:
                raise UnreadableDocument(f"holds {entry.filename[:MAX_SHOWN]!r}, which is not packed by deflate")
        size = sum(entry.file_size for entry in entries)
        if size > min(max_bytes, max_unpacked):
            raise UnreadableDocument(f"holds {size / 1e6:,.0f} MB once it is unpacked, which is too much")
        if not self._is_gapless():
            raise UnreadableDocument(_STRAY)

    def _is_gapless(self) -> bool:
        """Whether the files, their directory and its end follow each other, from the first byte to the last."""
        at = 0
        for entry in sorted(self._file.infolist(), key=lambda entry: entry.header_offset):
            mark, name, extra = self._header(_FILE_HEADER, at)
            if (entry.header_offset, mark, extra) != (at, b"PK\3\4", 0):
                return False
            at += _FILE_HEADER.size + name + entry.compress_size
        for entry in self._file.infolist():
            mark, name, extra, comment = self._header(_DIRECTORY_HEADER, at)
            far = entry.header_offset > zipfile.ZIP64_LIMIT  # then, and only then, its place stands in a field
            if mark != b"PK\1\2" or comment or (extra and not far):
                return False
            at += _DIRECTORY_HEADER.size + name + extra
        self._raw.seek(at)
        end = self._raw.read(_END_SIZE + _END64_SIZE + 1)
        long = len(end) == _END_SIZE + _END64_SIZE and end.startswith(b"PK\6\6")
        return (long or len(end) == _END_SIZE) and end[-_END_SIZE:].startswith(b"PK\5\6") and end.endswith(b"\0\0")

    def _header(self, form: struct.Struct, at: int) -> tuple[Any, ...]:
        self._raw.seek(at)
        content = self._raw.read(form.size)
        return form.unpack(content.ljust(form.size, b"\0"))

    def _is_full(self, entry: zipfile.ZipInfo) -> bool:
        """Whether nothing stands behind the end of what is packed in a file."""
        if entry.compress_type == zipfile.ZIP_STORED:
            return entry.compress_size == entry.file_size
        _, name, _ = self._header(_FILE_HEADER, entry.header_offset)
        self._raw.seek(entry.header_offset + _FILE_HEADER.size + name)
        inflating, left, size = zlib.decompressobj(-zlib.MAX_WBITS), entry.compress_size, 0
        while not inflating.eof:
            packed = inflating.unconsumed_tail
            if not packed:
                packed = self._raw.read(min(_CHUNK, left))
                left -= len(packed)
            unpacked = inflating.decompress(packed, _CHUNK)
            size += len(unpacked)
            if size > entry.file_size or not (packed or unpacked):
                return False
        return not left and not inflating.unused_data

    @property
    def sizes(self) -> Mapping[str, int]:
        """The unpacked size of each file, in bytes, by name."""
        return {entry.filename: entry.file_size for entry in self._file.infolist()}

    def chunks(self, name: str) -> Iterator[bytes]:
        """The content of a file in chunks, together no larger than `sizes` says.

        Raises:
            UnreadableDocument: it is broken.
        """
        try:
            with self._file.open(name) as source:
                while chunk := source.read(_CHUNK):
                    yield chunk
            full = self._is_full(self._file.getinfo(name))
        except BROKEN_ZIP as error:
            raise UnreadableDocument(f"holds {name[:MAX_SHOWN]!r}, which is broken") from error
        if not full:
            raise UnreadableDocument(_STRAY)

    def read(self, name: str) -> bytes:
        """The content of a file.

        Raises:
            UnreadableDocument: it is broken.
        """
        return b"".join(self.chunks(name))


_STRAY = "holds bytes that belong to none of its files"
_FILE_HEADER = struct.Struct("<4s22xHH")
"""Before each file: mark, and the lengths of name and further fields (APPNOTE.TXT of PKWARE, 4.3.7)."""
_DIRECTORY_HEADER = struct.Struct("<4s24xHHH12x")
"""In the directory, for each file: mark, and the lengths of name, further fields and comment (4.3.12)."""
_END_SIZE, _END64_SIZE = 22, 76
"""Bytes of the end of the directory, and of what stands before it in a long archive (4.3.14 to 4.3.16)."""


def _opened(file: BinaryIO) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except BROKEN_ZIP as error:
        raise UnreadableDocument("is no zip file") from error


BROKEN_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
)
"""What `zipfile` raises for a broken file."""
