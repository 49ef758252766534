"""What the tasks share in which an option is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from askance.agents import PictureQuestion
from askance.chains import picture

if TYPE_CHECKING:
    from askance.chains import Reading


def seen_question(reading: Reading) -> PictureQuestion:
    """The picture and the options."""
    return PictureQuestion(image=picture(reading), options=reading.options or ())
