"""Which of some given atypicality statements holds: from a description of the picture, or from the picture itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from askance.agents.answers import read_numbers
from askance.agents.choose import Asked, Choice, Chooser, Mode
from askance.agents.questions import OptionsQuestion, PictureQuestion, check_options, question_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from askance.images import Image
    from askance.models import ModelLike
    from askance.prompts import PromptLibrary


class StatementChooser(Chooser[Asked]):
    """What both choosers share: one statement is asked for, by its number."""

    def __init__(
        self,
        model: ModelLike,
        *,
        prompt: str | None = None,
        prompts: PromptLibrary | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(model, mode="single", prompt=prompt or self.prompt, prompts=prompts, name=name)

    @override
    def schema(self, subject: Asked) -> Mapping[str, Any]:
        return {
            "type": "object",
            "properties": {"statement": {"type": "integer", "minimum": 1, "maximum": len(subject.options)}},
            "required": ["statement"],
            "additionalProperties": False,
        }

    @override
    def read_json(self, data: Mapping[str, Any], subject: Asked) -> Choice:
        options = subject.options
        return Choice(numbers=read_numbers(data, "statement", len(options), single=True, options=options))


class DescribedStatementChooser(StatementChooser[OptionsQuestion]):
    """Chooses the statement that holds in a described picture (ASR, section 3.1)."""

    prompt = "detect_statement"

    @staticmethod
    @override
    def prompt_of(mode: Mode) -> str:
        return DescribedStatementChooser.prompt

    @override
    def accept(self, given: Any) -> OptionsQuestion:
        return question_of(OptionsQuestion, given)

    @override
    def variables(self, subject: OptionsQuestion) -> Mapping[str, Any]:
        return {"description": subject.description, "options": list(check_options(subject.options))}


class PictureStatementChooser(StatementChooser[PictureQuestion]):
    """Chooses the statement that holds in a picture which the model sees: the baseline of ASR."""

    prompt = "choose_statement_from_picture"

    @staticmethod
    @override
    def prompt_of(mode: Mode) -> str:
        return PictureStatementChooser.prompt

    @override
    def accept(self, given: Any) -> PictureQuestion:
        return question_of(PictureQuestion, given)

    @override
    def pictures(self, subject: PictureQuestion) -> tuple[Image, ...]:
        return (subject.image,)

    @override
    def variables(self, subject: PictureQuestion) -> Mapping[str, Any]:
        return {"options": list(check_options(subject.options))}


choose_statement = DescribedStatementChooser
choose_statement_from_picture = PictureStatementChooser
