"""Image policies: how a picture is prepared before it is sent. Name, version and limits are part of a request's key."""

from __future__ import annotations

import math
from base64 import b64encode
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from hashlib import sha256
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import ref

from askance.errors import UsageError
from askance.images import pixels
from askance.images.header import read_header
from askance.images.info import MEDIA_TYPES, Format, ImageInfo, UnusableImage
from askance.images.strip import is_uncompressed_png, strip_metadata

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

FORMATS: tuple[str, ...] = ("gif", "jpeg", "png", "webp")
"""Formats that endpoints take; any other is re-encoded."""

_NAMES = ("clean", "original")


@dataclass(frozen=True, slots=True)
class ImagePolicy:
    """A way to prepare pictures; everything in it can change what is sent.

    `dataclasses.replace(CLEAN_POLICY, max_side=1024)` makes one with other limits.

    Raises:
        UsageError: an unknown name, an unknown format, or a limit below 1.
    """

    name: str
    """`clean` strips the metadata and re-encodes where it must; `original` sends the file as it is."""
    version: int = 1
    """Rises when the policy of this name begins to send other bytes."""
    max_side: int = 4096
    """Longest side in pixels; a larger picture is scaled down."""
    max_bytes: int = 10_000_000
    """Largest file in bytes; a larger one is re-encoded."""
    formats: tuple[str, ...] = FORMATS
    """Formats that are sent without re-encoding, out of `FORMATS`; what is re-encoded becomes JPEG or PNG."""
    min_side: int = 1
    """Pixels of the longer side at least; a smaller picture is enlarged."""

    def __post_init__(self) -> None:
        if self.name not in _NAMES:
            raise UsageError(f"No image policy is called {self.name!r}.", hint=f"Known ones: {', '.join(_NAMES)}.")
        if unknown := sorted(set(self.formats) - set(FORMATS)):
            raise UsageError(
                f"No picture is sent as {unknown[0]!r}.", hint=f"Formats that can be: {', '.join(FORMATS)}."
            )
        if min(self.min_side, self.max_side, self.max_bytes) < 1:
            raise UsageError(
                "The limits of an image policy are 1 or more.", hint="Mend `min_side`, `max_side` or `max_bytes`."
            )
        if self.min_side > self.max_side:
            raise UsageError(
                f"No picture has a longer side of {self.min_side} pixels at least and {self.max_side} at most.",
                hint="Lower `min_side` or raise `max_side`.",
            )

    @property
    def params(self) -> Mapping[str, Any]:
        """The settings that are not at their default, as JSON values."""
        return {
            name: list(value) if name == "formats" else value
            for name, default in _DEFAULTS.items()
            if (value := getattr(self, name)) != default
        }

    def canonical(self) -> dict[str, Any]:
        """Name, version and the settings that are not at their default, as JSON values."""
        return {"name": self.name, "version": self.version, **self.params}

    def sent_size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Width and height in which a picture of this size is sent, unless `max_bytes` makes it smaller."""
        longest = min(max(*size, self.min_side), self.max_side)
        if self.name == "original" or longest == max(size):
            return size
        scale = longest / max(size)
        return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


_DEFAULTS: Mapping[str, Any] = {setting.name: setting.default for setting in fields(ImagePolicy)[2:]}

CLEAN_POLICY = ImagePolicy("clean")
"""The coded pixels without the metadata, where the picture is upright, within the limits and in an accepted format.

Any other is rotated upright, scaled down and re-encoded: as JPEG, or as PNG where it has transparency or a palette.
"""

ORIGINAL_POLICY = ImagePolicy("original")
"""The file as it is, metadata included; only its header is checked."""

POLICIES: Mapping[str, ImagePolicy] = MappingProxyType({"clean": CLEAN_POLICY, "original": ORIGINAL_POLICY})


VIEW_SIDES = (448, 1568)
"""Pixels of the longer side of a part of a picture: at least, so that small print is read; and at most.

Many models read pictures in squares of 14, 28 or 32 pixels and were trained at 448; 1568 is the longest side that
Anthropic's models read without scaling it down.
"""


def view_policy(policy: ImagePolicy) -> ImagePolicy:
    """`policy` for parts of a picture that are looked at closely: the longer side is within `VIEW_SIDES`.

    A part is drawn anew in any case, so `original` is `clean` here.
    """
    least, most = VIEW_SIDES
    longest = min(policy.max_side, most)
    return replace(policy, name="clean", max_side=longest, min_side=min(max(policy.min_side, least), longest))


def image_policy(name: str) -> ImagePolicy:
    """The policy of that name, with its limits at their defaults.

    Raises:
        UsageError: no policy has this name.
    """
    return POLICIES[name] if name in POLICIES else ImagePolicy(name)


_CacheKey: TypeAlias = Hashable


@dataclass(frozen=True)
class PreparedImage:
    """A picture as it is sent."""

    data: bytes = field(repr=False)
    media_type: str
    width: int
    """Pixels."""
    height: int
    sha256: str
    """Of `data`, 64 hex digits."""

    @cached_property
    def base64(self) -> str:
        """`data` in base64, made once."""
        return b64encode(self.data).decode("ascii")

    @property
    def data_uri(self) -> str:
        """`data` as a `data:` URI."""
        return f"data:{self.media_type};base64,{self.base64}"


def prepare(data: bytes, policy: ImagePolicy) -> PreparedImage:
    """The picture as `policy` sends it.

    Under `clean` every picture is decoded once, so that nobody pays for a question about a broken one.

    Raises:
        UnusableImage: no picture, or one that is broken, cut off or too large.
    """
    info = read_header(data)
    if policy.name == "original":
        return _prepared(data, info.media_type, (info.width, info.height))
    stripped = strip_metadata(data, info.format)
    if _must_reencode(stripped, info, policy):
        return _reencode(stripped, info, policy)
    pixels.verify(stripped, info.format)
    return _prepared(stripped, info.media_type, (info.width, info.height))


def prepare_drawn(picture: Picture, source: Format, policy: ImagePolicy) -> PreparedImage:
    """What was drawn of a picture, as `policy` sends it: as PNG where its file is PNG or GIF, else as JPEG.

    Under `original` no limit holds.

    Raises:
        UnusableImage: it does not fit into the policy's limits.
    """
    scaled = pixels.resize(picture, policy.sent_size(picture.size))
    most = math.inf if policy.name == "original" else policy.max_bytes
    data, sent, form = pixels.encode_within(scaled, "png" if source in {"gif", "png"} else "jpeg", max_bytes=most)
    return _prepared(data, MEDIA_TYPES[form], sent.size)


def _prepared(data: bytes, media_type: str, size: tuple[int, int]) -> PreparedImage:
    return PreparedImage(data, media_type, *size, sha256(data).hexdigest())


def _must_reencode(stripped: bytes, info: ImageInfo, policy: ImagePolicy) -> bool:
    """Whether the picture has to be encoded anew, because its coded pixels cannot be sent as they are."""
    return (
        info.format not in policy.formats
        or info.orientation != 1
        or not policy.min_side <= max(info.width, info.height) <= policy.max_side
        or len(stripped) > policy.max_bytes
        or info.mode == "CMYK"
        or info.bits > 8
        # An animated PNG has become a still one with its metadata.
        or (info.frames > 1 and info.format != "png")
        or (info.format == "png" and is_uncompressed_png(stripped))
    )


def _reencode(stripped: bytes, info: ImageInfo, policy: ImagePolicy) -> PreparedImage:
    picture = pixels.decode(stripped, info)
    picture = pixels.resize(picture, policy.sent_size(picture.size))
    few_colours = info.mode in {"1", "P"} or picture.mode == "RGBA"
    lossless = few_colours or (info.format == "png" and is_uncompressed_png(stripped))
    data, picture, form = pixels.encode_within(picture, "png" if lossless else "jpeg", max_bytes=policy.max_bytes)
    return _prepared(data, MEDIA_TYPES[form], picture.size)


@dataclass(slots=True)
class _CacheEntry:
    """One picture, prepared in one way: not yet, done, or found to be unusable."""

    lock: Lock = field(default_factory=Lock)
    made: PreparedImage | UnusableImage | None = None
    holders: dict[int, ref[object]] = field(default_factory=dict[int, "ref[object]"])
    """The objects that may ask for it again, by identity."""

    @property
    def size(self) -> int:
        """Bytes held, counting base64 as if it had been asked for."""
        return len(self.made.data) * 7 // 3 if isinstance(self.made, PreparedImage) else 0


class PreparedImageCache:
    """A cache of prepared pictures: each is prepared once and kept while the `Image` that it belongs to is in use.

    The latest of those that are not in use any more stay too, in case the same file is read again. Where all together
    are too large, the least recently used are evicted. Threads that ask for the same key wait for the first of them;
    threads that ask for another key do not wait.

    Args:
        max_bytes: most bytes of all pictures together.
        max_idle_bytes: most bytes of those that are not in use; by default `max_bytes`.
        max_count: most pictures.
    """

    def __init__(self, max_bytes: int, *, max_idle_bytes: int | None = None, max_count: int = 10_000) -> None:
        self.made = 0
        """How many pictures were prepared so far."""
        self._max_bytes = max_bytes
        self._max_idle_bytes = max_bytes if max_idle_bytes is None else max_idle_bytes
        self._max_count = max_count
        self._bytes = self._idle_bytes = 0
        self._lock = Lock()
        self._entries: OrderedDict[_CacheKey, _CacheEntry] = OrderedDict()
        self._idle: OrderedDict[_CacheKey, int] = OrderedDict()
        """Sizes of the pictures that are not in use, the longest unused first."""
        self._released: deque[tuple[_CacheKey, int]] = deque()
        """Holders that were garbage-collected since the last call. That may happen at any time, also under the lock."""

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: _CacheKey, make: Callable[[], PreparedImage], *, holder: object = None) -> PreparedImage:
        """The prepared picture of `key`, made by `make` at the first call and taken from the cache afterwards.

        Args:
            key: what is prepared, and how.
            make: prepares the picture.
            holder: the picture is kept while this object exists; None where no other call is expected.

        Raises:
            UnusableImage: what `make` raised; this is cached too.
        """
        with self._lock:
            self._evict_idle()
            slot = self._entries.setdefault(key, _CacheEntry())
            self._entries.move_to_end(key)
            self._idle_bytes -= self._idle.pop(key, 0)
            if holder is not None and id(holder) not in slot.holders:
                gone = key, id(holder)
                slot.holders[id(holder)] = ref(holder, lambda _: self._released.append(gone))
        with slot.lock:
            made = slot.made or self._make(key, slot, make)
        if holder is None:
            self._released.append((key, id(None)))
        if isinstance(made, UnusableImage):
            raise UnusableImage(made.reason, made.hint)
        return made

    def _make(
        self, key: _CacheKey, slot: _CacheEntry, make: Callable[[], PreparedImage]
    ) -> PreparedImage | UnusableImage:
        try:
            made = make()
        except UnusableImage as error:
            made = UnusableImage(error.reason, error.hint)
        with self._lock:
            slot.made = made
            self.made += 1
            if self._entries.get(key) is slot:
                self._bytes += slot.size
            while self._entries and (self._bytes > self._max_bytes or len(self._entries) > self._max_count):
                self._evict(next(iter(self._entries)))
        return made

    def _evict_idle(self) -> None:
        """Evicts pictures that are not in use, the longest unused first, until they are within their limit."""
        while self._released:
            key, holder = self._released.popleft()
            slot = self._entries.get(key)
            if slot is None:
                continue
            slot.holders.pop(holder, None)
            if not slot.holders:
                self._idle_bytes += slot.size - self._idle.pop(key, 0)
                self._idle[key] = slot.size
        while self._idle_bytes > self._max_idle_bytes:
            self._evict(next(iter(self._idle)))

    def _evict(self, key: _CacheKey) -> None:
        self._bytes -= self._entries.pop(key).size
        self._idle_bytes -= self._idle.pop(key, 0)


PREPARED_IMAGES = PreparedImageCache(128_000_000, max_idle_bytes=16_000_000)
"""The cache of this process: at most 128 MB, of which 16 MB for pictures that are not in use."""
