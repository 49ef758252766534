"""What the tasks share in which an option is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from askance.agents import OptionsQuestion
from askance.chains import picture

if TYPE_CHECKING:
    from askance.chains import Reading


def seen_question(reading: Reading) -> OptionsQuestion:
    """The picture and the options."""
    return OptionsQuestion(image=picture(reading), options=reading.options or ())
