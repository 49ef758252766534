"""Free answers about a picture, which is seen or described: explanations, captions, answers to a question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, get_args

from typing_extensions import override

from askance.agents.answers import Alternatives, choices
from askance.agents.questions import question_of
from askance.images import Image
from askance.nodes import Node, Unreadable
from askance.tools import TextValue, text_field

if TYPE_CHECKING:
    from collections.abc import Mapping

Oddness = Literal["weird", "normal"]
"""Whether something in a picture goes against common sense (*WHOOPS!*, section 4.1)."""
ODDNESS: tuple[Oddness, ...] = get_args(Oddness)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(TextValue):
    """What was answered about a picture, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identified(Reply):
    """Whether a picture is `weird` or `normal`.

    Raises:
        ValueError: it is neither.
    """

    def __post_init__(self) -> None:
        if self.text not in ODDNESS:
            msg = f"{self.text!r} is neither weird nor normal"
            raise ValueError(msg)

    @property
    def weird(self) -> bool:
        """Whether something in the picture goes against common sense."""
        return self.text == "weird"


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutPicture:
    """A picture that the model sees, and what is asked about it where the prompt does not say."""

    image: Image
    question: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "image", Image.load(self.image))


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutDescription:
    """A picture that is described, and what is asked about it where the prompt does not say."""

    description: str
    question: str | None = None


Asked = TypeVar("Asked", AboutPicture, AboutDescription)


class Replier(Node[Asked, Reply]):
    """What all share: one text, in the field of a JSON object or as it is."""

    gives = Reply
    field: ClassVar[str]
    """Name of the text in the JSON form."""
    said: ClassVar[tuple[str, ...]] = ()
    """The answers that there are; none leaves the answer free."""

    @override
    def schema(self, subject: Asked) -> Mapping[str, Any]:
        text: dict[str, Any] = {"type": "string", "enum": [*self.said]} if self.said else {"type": "string"}
        return {
            "type": "object",
            "properties": {self.field: text if self.said else {**text, "minLength": 1}},
            "required": [self.field],
            "additionalProperties": False,
        }

    @override
    def read_json(self, data: Mapping[str, Any], subject: Asked) -> Reply:
        return self.read_text(text_field(data, self.field), subject)

    @override
    def read_text(self, text: str, subject: Asked) -> Reply:
        return Reply(text=text.strip())


class PictureReplier(Replier[AboutPicture]):
    """Answers about a picture that the model sees; takes `AboutPicture`, or a picture alone."""

    @override
    def accept(self, given: Any) -> AboutPicture:
        return _asked(AboutPicture, "image", given)

    @override
    def pictures(self, subject: AboutPicture) -> tuple[Image, ...]:
        return (subject.image,)

    @override
    def variables(self, subject: AboutPicture) -> Mapping[str, Any]:
        return {} if subject.question is None else {"question": subject.question}


class DescriptionReplier(Replier[AboutDescription]):
    """Answers about a picture that is described; takes `AboutDescription`, or a description alone."""

    @override
    def accept(self, given: Any) -> AboutDescription:
        return _asked(AboutDescription, "description", given.text if isinstance(given, TextValue) else given)

    @override
    def variables(self, subject: AboutDescription) -> Mapping[str, Any]:
        asked = {} if subject.question is None else {"question": subject.question}
        return {"description": subject.description, **asked}


def _asked(kind: type[Asked], name: str, given: Any) -> Asked:
    """`given` as a question of `kind`: one, a mapping of its fields, or the field `name` alone."""
    if isinstance(given, (AboutPicture, AboutDescription, dict)):
        return question_of(kind, given)
    return question_of(kind, {name: given})


_WORDS = Alternatives(tuple((word,) for word in ODDNESS), numbered=False)


class _Identifies:
    """How `weird` and `normal` are read: where one of them is the answer, so that "not weird" is none."""

    gives = Identified
    field = "answer"
    said = ODDNESS

    def read_text(self, text: str, subject: object) -> Identified:  # noqa: ARG002  # as of every node
        places = {*choices(text, _WORDS, single=True)}
        if len(places) != 1:
            raise Unreadable("the answer must be one word, weird or normal")
        return Identified(text=ODDNESS[places.pop() - 1])


class PictureExplainer(PictureReplier):
    """Explains in one sentence what is unusual about a picture that it sees (*WHOOPS!*, section 4.1)."""

    prompt = "explain_from_picture"
    field = "explanation"


class DescriptionExplainer(DescriptionReplier):
    """Explains in one sentence what is unusual about a described picture: the pipeline's second half."""

    prompt = "explain_from_description"
    field = "explanation"


class PictureIdentifier(_Identifies, PictureReplier):
    """Says whether a picture that it sees is weird or normal (*WHOOPS!*, section 4.1)."""

    prompt = "identify_from_picture"


class DescriptionIdentifier(_Identifies, DescriptionReplier):
    """Says whether a described picture is weird or normal."""

    prompt = "identify_from_description"


class PictureAnswerer(PictureReplier):
    """Answers a question about a picture that it sees in a few words."""

    prompt = "answer_from_picture"
    field = "answer"


class DescriptionAnswerer(DescriptionReplier):
    """Answers a question about a described picture in a few words."""

    prompt = "answer_from_description"
    field = "answer"


class DescriptionCaptioner(DescriptionReplier):
    """Writes a caption of one sentence for a described picture."""

    prompt = "caption_from_description"
    field = "description"


explain_from_picture = PictureExplainer
explain_from_description = DescriptionExplainer
identify_from_picture = PictureIdentifier
identify_from_description = DescriptionIdentifier
answer_from_picture = PictureAnswerer
answer_from_description = DescriptionAnswerer
caption_from_description = DescriptionCaptioner
