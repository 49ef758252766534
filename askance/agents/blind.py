"""Which of the options are true of an image that is neither shown nor described: what wording alone gives away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from askance.agents.choose import Chooser
from askance.agents.questions import OptionsQuestion, check_options

if TYPE_CHECKING:
    from collections.abc import Mapping


class BlindChooser(Chooser[OptionsQuestion]):
    """Guesses which `count` of the options are true, of an image that it knows nothing of.

    Takes the options alone. What it gets right is no evidence of having understood an image.
    """

    prompt = "choose_blind"

    @staticmethod
    @override
    def prompt_of(mode: str) -> str:
        return "choose_blind"

    @override
    def accept(self, given: Any) -> OptionsQuestion:
        if isinstance(given, OptionsQuestion):
            return given
        return OptionsQuestion(description="", options=check_options(given))

    @override
    def variables(self, subject: OptionsQuestion) -> Mapping[str, Any]:
        count = 1 if self.mode == "single" else min(self.count, len(subject.options))
        return {"options": list(check_options(subject.options)), "count": count}


choose_blind = BlindChooser
