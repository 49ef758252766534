"""Which options interpret a picture: from its description, or from the picture itself."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from typing_extensions import override

from askance.agents.answers import read_answer, read_numbers
from askance.agents.questions import OptionsQuestion, PictureQuestion, check_options, question_of
from askance.nodes import Node
from askance.tools import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from askance.images import Image
    from askance.models import ModelLike
    from askance.prompts import PromptLibrary

Mode = Literal["single", "multi"]
"""One best option, or the best ones in order."""

COUNT = 3
"""How many options the multi-option task asks for (section 3.2)."""

Asked = TypeVar("Asked", OptionsQuestion, PictureQuestion)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(Value):
    """The numbers of the chosen options, from 1, best first."""

    numbers: tuple[int, ...]

    def __post_init__(self) -> None:
        numbers = tuple(self.numbers)
        if not all(type(number) is int for number in numbers):
            msg = f"{numbers!r} are no numbers of options"
            raise TypeError(msg)
        object.__setattr__(self, "numbers", numbers)

    def __str__(self) -> str:
        return ", ".join(map(str, self.numbers))


class Chooser(Node[Asked, Choice]):
    """What both choosers share: the options, how many are wanted, and how a choice is read.

    Args:
        mode: `single` asks for the one best option, `multi` for the `count` best.
        count: how many options `multi` asks for; a reply may give fewer or more, in its order.
    """

    gives = Choice

    def __init__(
        self,
        model: ModelLike,
        *,
        mode: Mode = "multi",
        count: int = COUNT,
        prompt: str | None = None,
        prompts: PromptLibrary | None = None,
        name: str | None = None,
    ) -> None:
        self.mode: Mode = mode
        self.count = count
        super().__init__(model, prompt=prompt or self.prompt_of(mode), prompts=prompts, name=name or self.prompt)

    @staticmethod
    @abstractmethod
    def prompt_of(mode: Mode) -> str:
        """Name of the prompt for `mode`."""

    @override
    def schema(self, subject: Asked) -> Mapping[str, Any]:
        numbers = {
            "type": "array",
            "items": {"type": "integer", "minimum": 1, "maximum": len(subject.options)},
            "minItems": 1,
            "maxItems": 1 if self.mode == "single" else min(self.count, len(subject.options)),
        }
        return {
            "type": "object",
            "properties": {"answers": numbers},
            "required": ["answers"],
            "additionalProperties": False,
        }

    @override
    def read_json(self, data: Mapping[str, Any], subject: Asked) -> Choice:
        options = subject.options
        numbers = read_numbers(data, "answers", len(options), single=self.mode == "single", options=options)
        return Choice(numbers=numbers)

    @override
    def read_text(self, text: str, subject: Asked) -> Choice:
        return Choice(numbers=read_answer(text, subject.options, single=self.mode == "single"))

    def _wanted(self, subject: Asked) -> dict[str, Any]:
        values: dict[str, Any] = {"options": check_options(subject.options)}
        if self.mode == "multi":
            values["count"] = min(self.count, len(subject.options))
        if subject.statement is not None:
            values["statement"] = subject.statement
        if subject.description is not None:
            values["description"] = subject.description
        return values


class ActionReasonChooser(Chooser[OptionsQuestion]):
    """Chooses the action-reason statements that interpret a described picture (section 3.2, step iii)."""

    prompt = "choose_action_reasons"

    @staticmethod
    @override
    def prompt_of(mode: Mode) -> str:
        return "choose_action_reason" if mode == "single" else "choose_action_reasons"

    @override
    def accept(self, given: Any) -> OptionsQuestion:
        return question_of(OptionsQuestion, given)

    @override
    def variables(self, subject: OptionsQuestion) -> Mapping[str, Any]:
        return self._wanted(subject)


class PictureChooser(Chooser[PictureQuestion]):
    """Chooses the options that interpret a picture which the model sees: the end-to-end baseline.

    Args:
        step_by_step: whether the model is asked to reason before it answers.
    """

    prompt = "end_to_end"

    def __init__(
        self,
        model: ModelLike,
        *,
        mode: Mode = "multi",
        count: int = COUNT,
        step_by_step: bool = False,
        prompt: str | None = None,
        prompts: PromptLibrary | None = None,
        name: str | None = None,
    ) -> None:
        self.step_by_step = step_by_step
        super().__init__(model, mode=mode, count=count, prompt=prompt, prompts=prompts, name=name)

    @staticmethod
    @override
    def prompt_of(mode: Mode) -> str:
        return f"end_to_end_{mode}"

    @override
    def accept(self, given: Any) -> PictureQuestion:
        return question_of(PictureQuestion, given)

    @override
    def pictures(self, subject: PictureQuestion) -> tuple[Image, ...]:
        return (subject.image,)

    @override
    def variables(self, subject: PictureQuestion) -> Mapping[str, Any]:
        values = self._wanted(subject)
        return {**values, "step_by_step": True} if self.step_by_step else values

    @override
    def schema(self, subject: PictureQuestion) -> Mapping[str, Any]:
        schema = dict(super().schema(subject))
        if self.step_by_step:
            schema["properties"] = {"reasoning": {"type": "string"}, **schema["properties"]}
            schema["required"] = ["reasoning", *schema["required"]]
        return schema


choose_action_reasons = ActionReasonChooser
choose_from_picture = PictureChooser
