"""`Image`: a picture that is read when it is needed and known by the digest of its bytes."""

from __future__ import annotations

import binascii
import stat
import sys
from base64 import b64decode, b64encode
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from askance.amounts import shortened
from askance.errors import BadImage
from askance.images import fetch, pixels
from askance.images.header import read_header
from askance.images.info import ImageInfo, UnusableImage
from askance.images.strip import strip_metadata

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

MAX_FILE = 512_000_000
"""Most bytes of a file that is read."""

ImageSource: TypeAlias = "Image | Picture | Path | str | bytes | bytearray | memoryview"
"""What a picture is loaded from."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False, repr=False)
class Image:
    """A picture, known by the digest of its bytes.

    Make one with `load` or one of the `from_…` methods. A file is read when it is needed, and its bytes are not kept.
    Pixels are decoded by `open` and `thumbnail`, and by `Shown.prepare`, which makes what is sent. Two images are equal
    when their bytes are equal. A picture that cannot be used raises `BadImage`, which names it and the reason.
    """

    name: str
    """Shown in messages: the file's name, or what the caller gives. Never part of a key."""
    _file: str | None = None
    """The path of a picture from a file, as text: that takes a fifth of a `Path`'s memory, and a data set has many."""
    _bytes: bytes | None = None
    _digest: str | None = field(default=None, init=False)
    _info: ImageInfo | None = field(default=None, init=False)

    @classmethod
    def load(cls, source: ImageSource, *, name: str | None = None, allow_urls: bool = False) -> Image:
        """A picture from whatever holds one.

        Args:
            source: A path, a data URI, an http(s) address, the bytes of a file, a Pillow image, or an `Image`, which is
                returned as it is.
            name: What to call it; by default the file's name.
            allow_urls: Whether an http(s) address may be fetched.

        Raises:
            BadImage: an address without `allow_urls`, an unknown kind of address, or no kind of source at all.
        """
        if isinstance(source, Image):
            return source
        if isinstance(source, Path):
            return cls.from_path(source, name=name)
        if isinstance(source, str):
            return cls._from_text(source, name, allow_urls=allow_urls)
        if isinstance(source, (bytes, bytearray, memoryview)):
            return cls.from_bytes(bytes(source), name=name)
        if _is_pillow(source):
            return cls.from_pil(source, name=name)
        raise BadImage(
            f"An object of the type {type(source).__name__!r} is no picture.",
            hint="Give a path, bytes, a data URI, a Pillow image or an `Image`.",
        )

    @classmethod
    def _from_text(cls, text: str, name: str | None, *, allow_urls: bool) -> Image:
        scheme = text[: text.find(":")].lower() if ":" in text else ""
        if scheme == "data":
            return cls.from_data_uri(text, name=name)
        if scheme in {"http", "https"}:
            if allow_urls:
                return cls.from_url(text, name=name)
            raise BadImage(
                f"The picture {shortened(text)!r} is an address on the web, and those are fetched only when asked for.",
                hint="Allow it with `allow_urls=True`, or save the picture and name the file.",
            )
        if "://" in text:
            raise BadImage(
                f"The picture {shortened(text)!r} has an address of the kind {scheme!r}, which is not fetched.",
                hint="Save the picture and name the file.",
            )
        return cls.from_path(text, name=name)

    @classmethod
    def from_path(cls, path: str | Path, *, name: str | None = None, sha256: str | None = None) -> Image:
        """The picture in a file, which is not read yet; `sha256` is the digest that its bytes must have."""
        image = cls(name or Path(path).name or str(path), str(Path(path)))
        object.__setattr__(image, "_digest", sha256)
        return image

    @classmethod
    def from_bytes(cls, data: bytes, *, name: str | None = None) -> Image:
        """The picture in the bytes of a file."""
        return cls(name or f"image {sha256(data).hexdigest()[:12]}", None, bytes(data))

    @classmethod
    def from_pil(cls, picture: Picture, *, name: str | None = None) -> Image:
        """The pixels of a Pillow image as they are now, in 8 bits.

        They are known by the digest of an uncompressed PNG file of them, which does not depend on the version of
        Pillow. An EXIF orientation beside the pixels is not applied; `PIL.ImageOps.exif_transpose` does that.

        Raises:
            BadImage: a picture without pixels, or of a closed file.
        """
        with _errors_named(name or "in memory"):
            return cls.from_bytes(pixels.uncompressed_png(picture), name=name)

    @classmethod
    def from_data_uri(cls, uri: str, *, name: str | None = None) -> Image:
        """The picture in a `data:` URI; its media type is ignored.

        Raises:
            BadImage: no data URI, or one that is not well formed.
        """
        with _errors_named(name or shortened(uri, 40)):
            return cls.from_bytes(_read_data_uri(uri), name=name)

    @classmethod
    def from_digest(cls, sha256: str, *, name: str | None = None) -> Image:
        """A picture of which only the digest is known: enough to replay recorded answers, and for nothing else."""
        image = cls(name or f"image {sha256[:12]}")
        object.__setattr__(image, "_digest", sha256)
        return image

    @classmethod
    def from_form(cls, form: Mapping[str, Any]) -> Image | None:
        """The picture that a `form` names, as by `from_digest`; None where the digest is null.

        Raises:
            KeyError: the form has no name or no digest.
        """
        name, digest = form["name"], form["sha256"]
        return None if digest is None else cls.from_digest(str(digest), name=str(name))

    @classmethod
    def from_url(
        cls,
        url: str,
        *,
        name: str | None = None,
        max_bytes: int = fetch.MAX_BYTES,
        timeout: float = fetch.TIMEOUT,
        resolve: fetch.Resolver | None = None,
    ) -> Image:
        """The picture at an http(s) address, fetched now.

        Private, loopback, link-local and reserved addresses are refused, also behind a redirect. The format is
        what the content says, not the address or the server.

        Args:
            url: The address.
            name: What to call it; by default the last part of the address.
            max_bytes: Most bytes that are read.
            timeout: Seconds for the whole, redirects included.
            resolve: Gives the addresses at which a host may be reached; a test lets its own server through with it.

        Raises:
            BadImage: an address that is refused or does not answer with a picture within the limits.
        """
        with _errors_named(shortened(url)):
            data = fetch.fetch(url, max_bytes=max_bytes, timeout=timeout, resolve=resolve)
            read_header(data)
        return cls.from_bytes(data, name=name or PurePosixPath(unquote(urlsplit(url).path)).name or None)

    @property
    def path(self) -> Path | None:
        """The file of a picture from a file; None for any other."""
        return None if self._file is None else Path(self._file)

    @property
    def data(self) -> bytes:
        """The bytes of the source, read anew where it is a file.

        Raises:
            BadImage: a file that cannot be read, or that is not the one read before; a digest without bytes.
        """
        if self._bytes is not None:
            return self._bytes
        try:
            return self._read()
        except UnusableImage as error:
            raise _bad_image(self._label, error) from error

    def _read(self) -> bytes:
        """The bytes of the file; their digest is kept, and compared with the one of an earlier read."""
        path = self.path
        if path is None:
            raise UnusableImage("is not at hand: only its digest is known", "Say where the pictures are.")
        data = _read_file(path)
        digest = sha256(data).hexdigest()
        if self._digest is None:
            object.__setattr__(self, "_digest", digest)
        elif self._digest != digest:
            raise UnusableImage("has changed since its digest was taken", "Load it again.")
        return data

    @property
    def sha256(self) -> str:
        """Digest of the source bytes, 64 hex digits; computed once.

        Raises:
            BadImage: a file that cannot be read.
        """
        if self._digest is None and self._bytes is not None:
            object.__setattr__(self, "_digest", sha256(self._bytes).hexdigest())
        elif self._digest is None:
            _ = self.data  # reading a file takes its digest
        return self._digest or ""

    def form(self) -> dict[str, str | None]:
        """Its name and digest, as JSON; the digest is null if the file cannot be read."""
        try:
            return {"name": self.name, "sha256": self.sha256}
        except BadImage:
            return {"name": self.name, "sha256": None}

    @property
    def info(self) -> ImageInfo:
        """What the header says; no pixels are decoded.

        Raises:
            BadImage: no picture, an unknown format, a broken header, no pixels or more than 50 million.
        """
        if self._info is None:
            with self.errors_named():
                object.__setattr__(self, "_info", read_header(self.data))
        return self._info or read_header(self.data)

    def open(self) -> Picture:
        """The first frame, decoded and upright, as a Pillow image of mode `RGB`, or `RGBA` where it has transparency.

        Raises:
            BadImage: a picture that cannot be decoded.
        """
        picture = self._decoded()
        return picture if picture.mode == "RGBA" else pixels.to_rgb(picture)

    def thumbnail(self, side: int = 256) -> bytes:
        """A small JPEG on white, with no side longer than `side` pixels.

        Raises:
            BadImage: a picture that cannot be decoded.
        """
        decoded = self._decoded(least=2 * side)  # of twice the size, no difference is seen
        return pixels.encode(pixels.scale_down(decoded, side), "jpeg", quality=80)

    def _decoded(self, *, least: int | None = None) -> Picture:
        with self.errors_named():
            return pixels.decode(strip_metadata(self.data, self.info.format), self.info, least=least)

    def errors_named(self) -> AbstractContextManager[None]:
        """Within it an `UnusableImage` becomes a `BadImage` that names this picture."""
        return _errors_named(self._label)

    @property
    def _label(self) -> str:
        return shortened(self._file or self.name)

    def __eq__(self, other: object) -> bool:
        return self.sha256 == other.sha256 if isinstance(other, Image) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        try:
            return f"Image({self.name!r}, {self.sha256[:12]})"
        except BadImage:
            return f"Image({self.name!r}, unreadable)"

    def _repr_html_(self) -> str:
        from html import escape  # for notebooks alone: replays do without its tables

        label = escape(self.name)
        try:
            picture = b64encode(self.thumbnail()).decode()
        except BadImage as error:
            return f"<p><bdi>{escape(str(error))}</bdi></p>"
        return f'<img alt="{label}" title="{label}" src="data:image/jpeg;base64,{picture}">'

    def __copy__(self) -> Image:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Image:
        return self


def image_digest(image: Image) -> str | None:
    """The digest of `image`; None where its file cannot be read."""
    try:
        return image.sha256
    except BadImage:
        return None


@contextmanager
def _errors_named(label: str) -> Generator[None]:
    """Turns an `UnusableImage` into a `BadImage` that names the picture."""
    try:
        yield
    except UnusableImage as error:
        raise _bad_image(label, error) from error


def _bad_image(label: str, error: UnusableImage) -> BadImage:
    return BadImage(f"The picture {label!r} {error.reason}.", hint=error.hint)


def _is_pillow(source: object) -> bool:
    """Whether `source` is a Pillow image; Pillow is not loaded, since whoever has such an image has loaded it."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(source, module.Image)


def _read_file(path: Path) -> bytes:
    """The bytes of a regular file.

    Raises:
        UnusableImage: a missing file, a folder, a device, a file that may not be read or is larger than `MAX_FILE`.
    """
    try:
        status = path.stat()
        _check_regular(status.st_mode, status.st_size)
        with path.open("rb", buffering=0) as file:
            return file.readall()
    except UnusableImage:
        raise
    except FileNotFoundError as error:
        raise UnusableImage("does not exist", "Mend the path.") from error
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise UnusableImage(f"cannot be read: {reason}", "Mend the path or the permissions.") from error


def _check_regular(mode: int, size: int) -> None:
    if stat.S_ISDIR(mode):
        raise UnusableImage("is a folder", "Name a file in it.")
    if not stat.S_ISREG(mode):
        raise UnusableImage("is not a regular file", "Copy it into one first.")
    if size > MAX_FILE:
        raise UnusableImage(f"has more than {MAX_FILE // 1_000_000} MB", "Scale it down first.")


def _read_data_uri(uri: str) -> bytes:
    """The bytes in a `data:` URI; its media type is ignored.

    Raises:
        UnusableImage: no data URI, or one that is not well formed.
    """
    head, comma, body = uri.partition(",")
    if not head.lower().startswith("data:") or not comma:
        raise UnusableImage("is no data URI", "It reads like data:image/png;base64,iVBORw0KGgo…")
    if not head.lower().rstrip().endswith(";base64"):
        return unquote_to_bytes(body)
    try:
        return b64decode("".join(unquote(body).split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise UnusableImage(f"is not well formed base64: {error}", "Encode it again.") from error
