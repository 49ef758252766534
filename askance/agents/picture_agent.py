"""What most agents reason about: a picture that is described to the model, or that the model sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, ParamSpec, TypeVar

from pydantic import BeforeValidator, ValidationError
from typing_extensions import Unpack, override

from askance.errors import UsageError
from askance.images import Image
from askance.nodes import AnswerField, Node, NodeOptions
from askance.nodes.answer import TypedInput, Words, faults, text_schema
from askance.nodes.example import Example, Examples

if TYPE_CHECKING:
    from askance.models import ModelLike

STEP_BY_STEP = "step_by_step"
"""Input of a prompt that can ask for reasoning before the answer."""


class Subject(TypedInput):
    """One picture, described in words, as an image, or both.

    Raises:
        BadImage: the image cannot be used.
    """

    description: Words | None = None
    image: Annotated[Image, BeforeValidator(Image.load)] | None = None
    examples: Examples = ()
    """Questions of the same kind with their answers, shown to the model before it is asked."""


class VisualQuestion(Subject):
    """A picture, and what is asked about it where the prompt does not say."""

    question: str | None = None


class PictureOptions(NodeOptions, total=False):
    """What agents take beside their model and their own options, as `PictureAgent` says."""

    sees: bool
    step_by_step: bool


P = ParamSpec("P")
Made = TypeVar("Made")
About = TypeVar("About", bound=Subject)
Out = TypeVar("Out")


class PictureAgent(Node[About, Out]):
    """Reasons about one picture; takes its `Subject`, a mapping of its fields, or the description or image alone.

    Args:
        sees: whether the model sees the picture; else it is described to it. Each way has a prompt of its own.
        step_by_step: whether the model is asked to write down its reasoning before it answers. Its prompt has to have
            the input `step_by_step`.

    Raises:
        UsageError: `sees`, and the agent reads descriptions alone; or `step_by_step`, and the prompt has no such input.
    """

    picture_prompt: ClassVar[str | None] = None
    """Name of the prompt for a model that sees the picture; None for an agent that reads descriptions alone."""

    def __init__(
        self,
        model: ModelLike,
        *,
        sees: bool = False,
        step_by_step: bool = False,
        **options: Unpack[NodeOptions],
    ) -> None:
        self.sees = sees
        self.step_by_step = step_by_step
        if sees and self.picture_prompt is None:
            raise UsageError(f"`{self.prompt}` is asked about no picture that is seen.", hint="Leave out `sees`.")
        self.prompt = self.picture_prompt if sees and self.picture_prompt else self.prompt
        super().__init__(model, **options)
        if step_by_step and not all(STEP_BY_STEP in prompt.declared for prompt in self.prompts_in_use):
            raise UsageError(
                f"The prompt {self.prompt_name!r} asks for no reasoning before the answer.",
                hint=f"Leave out `{STEP_BY_STEP}`, or use a prompt that has it among its inputs.",
            )

    @override
    def accept(self, inputs: Any) -> About:
        what = "image" if self.sees else "description"
        subject = super().accept(inputs if isinstance(inputs, (Subject, Mapping)) else {what: inputs})
        if getattr(subject, what) is None:
            raise UsageError(f"`{self.name}` is asked without the picture's {what}.", hint=f"Give its `{what}`.")
        return subject

    @override
    def pictures(self, subject: About) -> tuple[Image, ...]:
        return (subject.image,) if self.sees and subject.image is not None else ()

    @override
    def examples(self, subject: About) -> tuple[Example, ...]:
        return subject.examples

    @override
    def example_variables(self, example: Example) -> Mapping[str, Any]:
        """Values for the prompt's variables in an example: those of its question, as if it were asked, and its answer.

        Raises:
            UsageError: its values are no question of the kind that the agent takes.
        """
        fields = self.takes.model_fields
        question = {name: value for name, value in example.variables.items() if name in fields}
        try:
            subject = self.takes(**question, image=example.image)
        except ValidationError as error:
            raise UsageError(
                f"An example is no {self.takes.__name__}: {faults(error)}.",
                hint="Give its `values` what the agent is asked with.",
            ) from error
        answered = {name: value for name, value in example.variables.items() if name not in fields}
        return {**self.variables(subject), **answered}

    @override
    def variables(self, subject: About) -> Mapping[str, Any]:
        described = {} if self.sees else {"description": subject.description}
        return {**described, **self.asks_for_steps}

    @property
    def asks_for_steps(self) -> Mapping[str, Any]:
        """The value that asks the prompt for reasoning before the answer; none where it is not wanted."""
        return {STEP_BY_STEP: True} if self.step_by_step else {}

    def with_steps(self, fields: Sequence[AnswerField]) -> Sequence[AnswerField]:
        """`fields`, and before them one for the reasoning where it is asked for."""
        return (AnswerField("reasoning", text_schema()), *fields) if self.step_by_step else fields


def preset(kind: Callable[P, Made], **options: Any) -> Callable[P, Made]:
    """`kind` with some of its options set, such as `sees=True`; `help` shows what it makes, and the others."""

    @wraps(kind, updated=())
    def make(*args: P.args, **others: P.kwargs) -> Made:
        return kind(*args, **{**options, **others})  # pyright: ignore[reportCallIssue]  # both are options of `kind`

    return make
