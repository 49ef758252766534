"""How a picture is prepared before it is sent: a named, versioned policy that enters the request's key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from askance.errors import UsageError

FORMATS: tuple[str, ...] = ("gif", "jpeg", "png", "webp")
"""Formats that endpoints take; any other is re-encoded."""

_NAMES = ("clean", "original")


@dataclass(frozen=True, slots=True)
class ImagePolicy:
    """A way to prepare pictures; everything in it can change what is sent.

    `dataclasses.replace(CLEAN, max_side=1024)` makes one with other limits.

    Raises:
        UsageError: an unknown name, an unknown format, or a limit below 1.
    """

    name: str
    """`clean` takes the metadata out and re-encodes where it must, `original` sends the file as it is."""
    version: int = 1
    """Rises when the same name begins to send other bytes."""
    max_side: int = 4096
    """Longest side in pixels; a larger picture is scaled down."""
    max_bytes: int = 10_000_000
    """Largest file in bytes; a larger one is re-encoded."""
    formats: tuple[str, ...] = FORMATS
    """Formats that are sent without re-encoding, out of `FORMATS`; what is re-encoded becomes JPEG or PNG."""

    def __post_init__(self) -> None:
        if self.name not in _NAMES:
            raise UsageError(f"No image policy is called {self.name!r}.", hint=f"Known ones: {', '.join(_NAMES)}.")
        if unknown := sorted(set(self.formats) - set(FORMATS)):
            raise UsageError(
                f"No picture is sent as {unknown[0]!r}.", hint=f"Formats that can be: {', '.join(FORMATS)}."
            )
        if self.max_side < 1 or self.max_bytes < 1:
            raise UsageError("The limits of an image policy are 1 or more.", hint="Mend `max_side` or `max_bytes`.")

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


_DEFAULTS: Mapping[str, Any] = {setting.name: setting.default for setting in fields(ImagePolicy)[2:]}

CLEAN = ImagePolicy("clean")
"""The original pixels without the metadata, if upright, within limits and of a format that endpoints take.

Any other is turned upright, scaled down and re-encoded: as JPEG, or as PNG where it has transparency or a palette.
"""

ORIGINAL = ImagePolicy("original")
"""The file as it is, metadata included; only its header is checked."""

POLICIES: Mapping[str, ImagePolicy] = MappingProxyType({"clean": CLEAN, "original": ORIGINAL})


def policy(name: str) -> ImagePolicy:
    """The policy of that name, with its limits at their defaults.

    Raises:
        UsageError: no policy has this name.
    """
    return POLICIES[name] if name in POLICIES else ImagePolicy(name)
