"""Pictures: lazy, frozen, guarded, known by the digest of their bytes."""

from __future__ import annotations

from askance.images.image import Image
from askance.images.info import SUFFIXES, ImageInfo
from askance.images.prepare import CLEAN_POLICY, ORIGINAL_POLICY, ImagePolicy, PreparedImage, image_policy
from askance.images.regions import WHOLE_IMAGE, RegionView

__all__ = [
    "CLEAN_POLICY",
    "ORIGINAL_POLICY",
    "SUFFIXES",
    "WHOLE_IMAGE",
    "Image",
    "ImageInfo",
    "ImagePolicy",
    "PreparedImage",
    "RegionView",
    "image_policy",
]
