"""A picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from askance.errors import BadImage
from askance.images.policy import CLEAN, ImagePolicy
from askance.images.prepare import PreparedImage


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Image:
    """A picture, known by the digest of its bytes; nothing is read until needed."""

    name: str
    path: Path | None = None
    _bytes: bytes | None = None
    _digest: str | None = field(default=None, init=False)

    @classmethod
    def from_path(cls, path: str | Path) -> Image:
        return cls(Path(path).name, Path(path))

    @classmethod
    def from_bytes(cls, data: bytes, *, name: str = "image") -> Image:
        return cls(name, None, data)

    @classmethod
    def load(cls, source: Image | str | Path | bytes, *, name: str | None = None, allow_urls: bool = False) -> Image:
        if isinstance(source, Image):
            return source
        if isinstance(source, bytes):
            return cls.from_bytes(source, name=name or "image")
        return cls.from_path(source)

    @property
    def data(self) -> bytes:
        if self._bytes is not None:
            return self._bytes
        try:
            return Path(self.path or "").read_bytes()
        except OSError as error:
            raise BadImage(f"The picture {str(self.path)!r} cannot be read: {error}.") from error

    @property
    def sha256(self) -> str:
        if self._digest is None:
            object.__setattr__(self, "_digest", sha256(self.data).hexdigest())
        assert self._digest is not None
        return self._digest

    def prepare(self, policy: ImagePolicy = CLEAN) -> PreparedImage:
        """Provisional: as it is."""
        data = self.data
        kind = "image/png" if data[:4] == b"\x89PNG" else "image/jpeg"
        return PreparedImage(data, kind, 0, 0, sha256(data).hexdigest())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Image) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        return f"Image({self.name!r}, {self.sha256[:12]})"
