"""Which options interpret a picture: from its description, from the picture itself, or from the options alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import Unpack, override

from askance.agents.alternatives import alternatives_of
from askance.agents.choice_fields import read_letters, read_numbers
from askance.agents.picture_agent import PictureAgent, PictureOptions, Subject, preset
from askance.agents.reply_ladder import ChoosingNode, read_choice
from askance.errors import BadOptions
from askance.nodes import AnswerField, Read, TypedAnswer
from askance.nodes.answer import Texts, list_schema, number_schema, text_schema
from askance.nodes.closed_set import ClosedSet
from askance.prompts.fence import LETTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from askance.models import ModelLike

ChoiceMode = Literal["single", "multi"]
"""One best option, or the best ones in order."""

COUNT = 3
"""How many options the multi-option task asks for (section 3.2)."""

_HINT = "Give at least two different options, one a line or as a JSON list."


class OptionsQuestion(Subject):
    """Which of the options interpret a picture."""

    options: Texts
    statement: str | None = None
    """An atypicality statement about the picture, where one is known."""


class Choice(TypedAnswer):
    """The numbers of the chosen options, from 1, best first."""

    numbers: tuple[int, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.numbers))


class Chooser(ChoosingNode[OptionsQuestion, Choice], PictureAgent[OptionsQuestion, Choice]):
    """Chooses among options.

    Args:
        mode: `single` asks for the one best option, `multi` for the `count` best.
        count: how many options `multi` asks for; a reply may give fewer or more, in its order.
        sees: whether the model sees the picture; else it is described to it.
        step_by_step: whether the model is asked to write down its reasoning before it answers, where its prompt can ask
            for that.
    """

    takes = OptionsQuestion
    gives = Choice

    def __init__(
        self,
        model: ModelLike,
        *,
        mode: ChoiceMode = "multi",
        count: int = COUNT,
        **options: Unpack[PictureOptions],
    ) -> None:
        self.mode: ChoiceMode = mode
        self.count = count
        super().__init__(model, **options)
        self.name = options.get("name") or self.prompt

    @override
    def fields(self, subject: OptionsQuestion) -> Sequence[AnswerField]:
        most = 1 if self.mode == "single" else min(self.count, len(subject.options))
        numbers = list_schema(number_schema(len(subject.options)), least=1, most=most)
        return self.with_steps((AnswerField("answers", numbers, "numbers", self._reader(subject)),))

    def _reader(self, subject: OptionsQuestion) -> Callable[[Mapping[str, Any], str], tuple[int, ...]]:
        single = self.mode == "single"
        return partial(read_numbers, count=len(subject.options), single=single, options=subject.options)

    @override
    def read_reply(self, text: str, subject: OptionsQuestion) -> Read[Choice]:
        numbers, rung = read_choice(text, alternatives_of(subject.options), single=self.mode == "single")
        return Read(Choice(numbers=numbers), rung)

    @override
    def closed_set(self, subject: OptionsQuestion) -> ClosedSet:
        options = {str(number): option for number, option in enumerate(subject.options, start=1)}
        return ClosedSet(options, several=self.mode == "multi")

    @override
    def chosen(self, subject: OptionsQuestion, places: Sequence[int]) -> Choice:
        return Choice(numbers=tuple(places))

    @override
    def variables(self, subject: OptionsQuestion) -> Mapping[str, Any]:
        values: dict[str, Any] = {"options": check_options(subject.options)}
        if self.mode == "multi":
            values["count"] = min(self.count, len(subject.options))
        if subject.statement is not None:
            values["statement"] = subject.statement
        if subject.description is not None:
            values["description"] = subject.description
        return {**values, **self.asks_for_steps}


class ActionReasonChooser(Chooser):
    """Chooses the action-reason statements that interpret a picture.

    They are chosen from a description (section 3.2, step iii), or from the picture: the end-to-end baseline. With
    `step_by_step` the model reasons first (Table 9).
    """

    prompt = "choose_action_reasons"
    picture_prompt = "end_to_end"

    @override
    def prompt_of(self) -> str:
        if self.sees:
            return f"end_to_end_{self.mode}"
        return "choose_action_reason" if self.mode == "single" else "choose_action_reasons"


class LetterChooser(Chooser):
    """Chooses the best one of options that its prompt puts letters before."""

    def __init__(self, model: ModelLike, **options: Unpack[PictureOptions]) -> None:
        super().__init__(model, mode="single", **options)

    @override
    def fields(self, subject: OptionsQuestion) -> Sequence[AnswerField]:
        letters = text_schema(among=LETTERS[: len(subject.options)])
        read = partial(read_letters, options=subject.options, single=True)
        return self.with_steps((AnswerField("answer", letters, "numbers", read),))

    @override
    def read_reply(self, text: str, subject: OptionsQuestion) -> Read[Choice]:
        numbers, rung = read_choice(text, alternatives_of(subject.options, lettered=True), single=True)
        return Read(Choice(numbers=numbers), rung)

    @override
    def closed_set(self, subject: OptionsQuestion) -> ClosedSet:
        return ClosedSet(dict(zip(LETTERS, subject.options, strict=False)))


class CaptionChooser(Chooser):
    """Chooses the caption that is better for a picture (*WHOOPS!*, section 4.2)."""

    prompt = "choose_caption"
    picture_prompt = "choose_caption_from_picture"


class ExplanationChooser(Chooser):
    """Chooses what explains best what is unusual about a picture (section 7.3)."""

    prompt = "choose_explanation"
    picture_prompt = "choose_explanation_from_picture"


class BlindChooser(Chooser):
    """Guesses which `count` of the options are true of an image that is neither shown nor described.

    It takes the options alone. What it gets right shows what the wording of the options gives away.
    """

    prompt = "choose_blind"

    @override
    def accept(self, inputs: Any) -> OptionsQuestion:
        return inputs if isinstance(inputs, OptionsQuestion) else OptionsQuestion(options=check_options(inputs))

    @override
    def variables(self, subject: OptionsQuestion) -> Mapping[str, Any]:
        count = 1 if self.mode == "single" else min(self.count, len(subject.options))
        return {"options": check_options(subject.options), "count": count}


def check_options(options: Iterable[Any]) -> tuple[str, ...]:
    """The options, exactly as they are.

    Raises:
        BadOptions: fewer than two, one that is blank or no text, or one that stands twice.
    """
    if isinstance(options, str):
        raise BadOptions("The options are one text, not a list.", hint=_HINT)
    texts = tuple(options)
    try:
        return _checked(texts)
    except TypeError:  # one of them is no text, and cannot be looked up
        return _checked.__wrapped__(texts)


@lru_cache(maxsize=64)
def _checked(options: tuple[Any, ...]) -> tuple[str, ...]:
    """Checked once: many pictures have the same options."""
    if len(options) < 2:
        raise BadOptions(f"There {'is one option' if options else 'are no options'} to choose from.", hint=_HINT)
    for number, option in enumerate(options, start=1):
        if not isinstance(option, str) or not option.strip():
            raise BadOptions(f"Option {number} is blank or no text: {option!r}.", hint=_HINT)
    if len(set(options)) < len(options):
        option = next(option for option, times in Counter(options).items() if times > 1)
        same = " and ".join(str(number) for number, other in enumerate(options, start=1) if other == option)
        raise BadOptions(f"Options {same} are the same: {option!r}.", hint="Remove all but one of them.")
    return options


choose_action_reasons = ActionReasonChooser
choose_from_picture = preset(ActionReasonChooser, sees=True)
choose_step_by_step = preset(ActionReasonChooser, step_by_step=True)
choose_caption = CaptionChooser
choose_caption_from_picture = preset(CaptionChooser, sees=True)
choose_explanation = ExplanationChooser
choose_explanation_from_picture = preset(ExplanationChooser, sees=True)
choose_blind = BlindChooser
