"""How a picture is prepared before it is sent: a named, versioned policy that enters the request's key."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from askance.errors import UsageError

FORMATS: tuple[str, ...] = ("gif", "jpeg", "png", "webp")
"""Formats that endpoints take; any other is re-encoded."""


@dataclass(frozen=True, slots=True)
class ImagePolicy:
    """A way to prepare pictures; everything in it can change what is sent."""

    name: str
    """`clean` takes the metadata out and re-encodes where it must, `original` sends the file as it is."""
    version: int = 1
    """Rises when the same name begins to send other bytes."""
    max_side: int = 4096
    """Longest side in pixels; a larger picture is scaled down."""
    max_bytes: int = 10_000_000
    """Largest file in bytes; a larger one is re-encoded."""
    formats: tuple[str, ...] = FORMATS
    """Formats that are sent without re-encoding, out of `FORMATS`."""

    def canonical(self) -> dict[str, Any]:
        """Name, version and the settings that are not at their default, as JSON values."""
        form: dict[str, Any] = {"name": self.name, "version": self.version}
        for setting in fields(self)[2:]:
            value = getattr(self, setting.name)
            if value != setting.default:
                form[setting.name] = list(value) if isinstance(value, tuple) else value
        return form


CLEAN = ImagePolicy("clean")
"""The original pixels without the metadata, if upright, within limits and of a format that endpoints take; else re-encoded."""

ORIGINAL = ImagePolicy("original")
"""The file as it is, metadata included; only its header is checked."""

POLICIES: dict[str, ImagePolicy] = {"clean": CLEAN, "original": ORIGINAL}


def policy(name: str) -> ImagePolicy:
    """The policy of that name.

    Raises:
        UsageError: no policy has this name.
    """
    try:
        return POLICIES[name]
    except KeyError:
        raise UsageError(
            f"No image policy is called {name!r}.", hint=f"Known ones: {', '.join(sorted(POLICIES))}."
        ) from None
