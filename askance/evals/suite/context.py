"""What every suite's contexts have in common: the control without any, and what stands in its place."""

from __future__ import annotations

TEXT_ONLY = "text-only"
"""The context in which nothing is told of the picture: a control."""

NOTHING = "No description of the image is available."
"""What stands in place of a description there."""
