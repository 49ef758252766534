"""Blanks keys and secret headers out of replies: an endpoint may repeat them anywhere.

Replies, headers, error messages and the files of batches are cleared before they are parsed or written. An endpoint may
also repeat them encoded: escaped as in JSON, in UTF-16 or UTF-32, percent-encoded, as HTML entities, in base64,
or in several of these forms, one inside another. So a reply is decoded, layer by layer, to look for secrets. The bytes
that a secret was decoded from are blanked out; all others stay as they came. Most replies hold no escapes, and take a
few searches.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from bisect import bisect_right
from collections.abc import AsyncIterable, AsyncIterator, Collection, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from askance.models.settings import ModelSettings

T = TypeVar("T")

SHORTEST_SECRET = 8
"""Characters; blanking out shorter secrets would blank out words."""

BLANK = "[key]"
"""What replaces a secret."""

LAYERS = 6
"""Most encodings, one inside another, that are decoded."""

REACH = 96
"""Most bytes that one character of a secret may take up in a stream of escapes that is cut into chunks."""

WINDOW = 2**20
"""Bytes that are decoded together."""

MOST_ESCAPES = 100_000
"""Most escapes in a window; of a reply with more the rest is blanked out."""

Span = tuple[int, int]

# What may stand for a character, in groups: \\u, \\U, \\u{}, \\x, a character behind \\, %, &#x, &#, &name.
# A character of ASCII: most secrets have no others, and most escapes stand for others.
_ASCII = re.compile(
    rb"\\\\{0,7}(?:u00([2-7][0-9a-fA-F]|00)|U000000([2-7][0-9a-fA-F]|00)|u\{0{0,6}([2-7][0-9a-fA-F])\}"
    rb"|x([2-7][0-9a-fA-F]|00)|(/))|%([2-7][0-9a-fA-F]|00)"
    rb"|&#[xX]0{0,7}([2-7][0-9a-fA-F]);?|&#0{0,7}([0-9]{2,3});?|&([a-zA-Z]{2,8});?|\0\0{0,2}"
)
# Any character, and quotation marks and backslashes too.
_ANY = re.compile(
    rb"\\(?:u([0-9a-fA-F]{4})|U00([0-9a-fA-F]{6})|u\{0{0,6}([0-9a-fA-F]{1,6})\}|x([0-9a-fA-F]{2})|([\\/\"']))"
    rb"|%([0-9a-fA-F]{2})"
    rb"|&#[xX]0{0,7}([0-9a-fA-F]{1,6});?|&#0{0,7}([0-9]{1,7});?|&([a-zA-Z][a-zA-Z0-9]{1,31});?|\0\0{0,2}"
)
_MARKS = (b"\\", b"%", b"&", b"\0")
_CHARACTER, _PERCENT, _DECIMAL, _NAME = 5, 6, 8, 9


class HiddenValues(dict[str, Any]):
    """A dictionary whose values its `repr` does not show."""

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{name!r}: …' for name in self)}}}"


class Secrets:
    """Secrets that must not be repeated; neither `repr` nor the locals of a traceback show them.

    Args:
        values: keys and secret headers; those shorter than `SHORTEST_SECRET` are ignored.
    """

    __slots__ = ("_escape", "_forms", "_longest", "_values")

    def __init__(self, values: Collection[str] = ()) -> None:
        self._values = frozenset(value for value in values if len(value) >= SHORTEST_SECRET)
        plain = all(value.isascii() and not {*"\"'\\"} & {*value} for value in self._values)
        self._escape = _ASCII if plain else _ANY
        self._forms = frozenset(form for value in self._values for form in _forms(value, self._escape))
        self._longest = max(map(len, self._forms), default=0)

    def __bool__(self) -> bool:
        return bool(self._values)

    def __or__(self, other: Secrets) -> Secrets:
        return Secrets(self._values | other._values)

    def blanked(self, data: bytes) -> bytes:
        """`data` with every secret in it blanked out, however it is encoded."""
        if not self:
            return data
        done, held = list[bytes](), b""
        try:
            for start in range(0, len(data) - WINDOW, WINDOW):
                piece, held = self._settled(held + data[start : start + WINDOW])
                done.append(piece)
            held += data[len(done) * WINDOW :]
            return b"".join((*done, _without(held, self._spans(held))))
        except _TooMany:
            return b"".join((*done, BLANK.encode()))

    def cleared(self, value: T) -> T:
        """`value` with every secret blanked out of its texts, at any depth of dictionaries and lists."""
        return cast("T", self._cleared(value)) if self else value

    def are_in(self, text: str) -> bool:
        """Whether `text` holds a secret."""
        return bool(self) and self.cleared(text) != text

    async def stream(self, chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        """`chunks` with every secret blanked out, also one that two chunks share."""
        held = b""
        async for chunk in chunks:
            try:
                piece, held = self._settled(held + chunk)
            except _TooMany:
                piece, held = BLANK.encode(), b""
            yield piece
        yield self.blanked(held)

    def _settled(self, data: bytes) -> tuple[bytes, bytes]:
        """The beginning of `data`, blanked, and its end, which may be the beginning of a secret."""
        if not self:
            return data, b""
        spans, tail = self._spans(data), data[-REACH * self._longest :]
        # An escape is longer than what it stands for.
        longest = len(tail) + 1 if any(mark in tail for mark in _MARKS) else self._longest
        safe = max(0, len(data) - longest + 1)
        cut = max([safe, *(end for start, end in spans if start < safe)])
        return _without(data[:cut], [span for span in spans if span[0] < cut]), data[cut:]

    def _spans(self, data: bytes) -> list[Span]:
        """Where secrets are in `data`, in order and without overlaps."""
        spans = [*self._literal(data)]
        layers: list[_Decoded] = []
        while len(layers) < LAYERS and (b"\\" in data or b"%" in data or b"&" in data or b"\0" in data):
            layers.append(layer := _Decoded(data, self._escape))
            if len(layer.data) == len(data):
                break
            data = layer.data
            for span in self._literal(data):
                for each in reversed(layers):
                    span = each.source(span)  # noqa: PLW2901  # the same place, a layer further out
                spans.append(span)
        return _merged(spans)

    def _literal(self, data: bytes) -> Iterator[Span]:
        for form in self._forms:
            start = data.find(form)
            while start >= 0:
                yield start, start + len(form)
                start = data.find(form, start + len(form))

    def _cleared(self, value: object) -> object:
        if isinstance(value, str):
            data = value.encode("utf-8", "surrogatepass")
            blanked = self.blanked(data)
            return value if blanked == data else blanked.decode("utf-8", "surrogatepass")
        if isinstance(value, bytes):
            return self.blanked(value)
        if isinstance(value, dict):
            form = cast("dict[Any, Any]", value)
            return {self._cleared(name): self._cleared(inner) for name, inner in form.items()}
        if isinstance(value, (list, tuple)):
            items = [self._cleared(inner) for inner in cast("Collection[object]", value)]
            return items if isinstance(value, list) else tuple(items)
        return value


_SECRET_NAMES = ("KEY", "PASSWORD", "SECRET", "TOKEN")


def is_secret_name(name: str) -> bool:
    """Whether the name of an environment variable ends as those of secrets do."""
    return name.upper().endswith(_SECRET_NAMES)


def environment_secrets() -> Secrets:
    """What the environment variables hold whose names end as those of secrets do."""
    return Secrets({value for name, value in os.environ.items() if is_secret_name(name)})


def named_variables(settings: ModelSettings) -> tuple[str, ...]:
    """The environment variables that the settings of a model name: of its key, and of headers."""
    headers = [value.removeprefix("env:") for value in settings.headers.values() if value.startswith("env:")]
    return (*headers, *([] if settings.key_variable is None else [settings.key_variable]))


class _TooMany(Exception):
    """More escapes than an answer has."""


class _Decoded:
    """`data` with one layer of escapes decoded, and where each byte of it came from."""

    def __init__(self, data: bytes, escape: re.Pattern[bytes]) -> None:
        out, end = bytearray(), 0
        self._at: list[int] = []
        """Where each decoded escape begins in the decoded data."""
        self._escapes: list[tuple[int, int, int]] = []
        """For each escape: the length of what it stands for, in bytes, and where the escape begins and ends."""
        for match in escape.finditer(data):
            meaning = _meaning(match)
            if meaning is None:
                continue
            out += data[end : match.start()]
            if len(self._at) == MOST_ESCAPES:
                raise _TooMany
            self._at.append(len(out))
            self._escapes.append((len(meaning), *match.span()))
            out += meaning
            end = match.end()
        self.data = bytes(out + data[end:])

    def source(self, span: Span) -> Span:
        """Where the bytes of `span` came from."""
        return self._place(span[0])[0], self._place(span[1] - 1)[1]

    def _place(self, at: int) -> Span:
        """Where one byte came from."""
        number = bisect_right(self._at, at) - 1
        if number < 0:
            return at, at + 1
        length, start, end = self._escapes[number]
        beyond = at - self._at[number] - length
        return (start, end) if beyond < 0 else (end + beyond, end + beyond + 1)


def _forms(value: str, escape: re.Pattern[bytes]) -> Iterator[bytes]:
    """What `value` is once all escapes are decoded."""
    data = value.encode("utf-8", "surrogatepass")
    if not value.isascii():
        wide = value.encode("utf-16-be", "surrogatepass")
        yield from (wide, value.encode("utf-16-le", "surrogatepass"))
        yield from (value.encode(encoding, "surrogatepass") for encoding in ("utf-32-le", "utf-32-be"))
        # As pairs of escapes, each for half a character.
        halves = (chr(int.from_bytes(wide[place : place + 2])) for place in range(0, len(wide), 2))
        yield from _unescaped("".join(halves).encode("utf-8", "surrogatepass"), escape)
        yield value.encode("latin-1", "ignore")
    for before in range(3):
        # A character of base64 may hold bits of what stands beside the secret: such ones stay.
        whole = b64encode(bytes(before) + data)[(0, 2, 3)[before] : (before + len(data)) * 8 // 6]
        yield from (whole, whole.translate(bytes.maketrans(b"+/", b"-_")))
    yield from _unescaped(data, escape)


def _unescaped(data: bytes, escape: re.Pattern[bytes]) -> Iterator[bytes]:
    """`data`, then `data` with one more layer of escapes decoded each time: a secret may itself look like an escape."""
    yield data
    for _ in range(LAYERS):
        if (decoded := _Decoded(data, escape).data) == data:
            return
        data = decoded
        yield data


def _meaning(escape: re.Match[bytes]) -> bytes | None:
    """What an escape stands for, in UTF-8; None where it is none."""
    number = escape.lastindex
    if number is None:
        return b""  # the empty bytes of UTF-16 and UTF-32
    part = escape[number]
    if number == _CHARACTER:
        return part
    if number == _NAME:
        from html.entities import html5

        meaning = html5.get(f"{part.decode()};")
        return None if meaning is None else meaning.encode()
    code = int(part, 10 if number == _DECIMAL else 16)
    if code < 0x80 or number == _PERCENT:
        return bytes((code,))
    return chr(code).encode("utf-8", "surrogatepass") if code < 0x110000 else None


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _without(data: bytes, spans: list[Span]) -> bytes:
    """`data` with the spans blanked out; a blank in UTF-16 or UTF-32 has the width of its characters."""
    if not spans:
        return data
    out, last = list[bytes](), 0
    for start, end in spans:
        after = data[start + 1 : start + 4]
        between = after[: len(after) - len(after.lstrip(b"\0"))]
        out += (data[last:start], between.join(bytes([mark]) for mark in BLANK.encode()))
        last = end
    return b"".join((*out, data[last:]))
