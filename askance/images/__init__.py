"""Pictures: lazy, frozen, guarded, known by the digest of their bytes."""

from __future__ import annotations

from askance.images.image import Image
from askance.images.info import SUFFIXES, ImageInfo
from askance.images.policy import CLEAN, ORIGINAL, ImagePolicy, policy
from askance.images.prepare import PreparedImage
from askance.images.view import WHOLE, View

__all__ = [
    "CLEAN",
    "ORIGINAL",
    "SUFFIXES",
    "WHOLE",
    "Image",
    "ImageInfo",
    "ImagePolicy",
    "PreparedImage",
    "View",
    "policy",
]
