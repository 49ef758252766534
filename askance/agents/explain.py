"""Replies about a picture, seen or described: what is unusual, whether it is weird, an answer, a caption."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

from typing_extensions import override

from askance.agents.alternatives import Alternatives
from askance.agents.choice_fields import read_values
from askance.agents.picture_agent import PictureAgent, VisualQuestion, preset
from askance.agents.reply_ladder import ChoosingNode, read_choice
from askance.nodes import Read, TextAnswer, TextNode
from askance.nodes.answer import text_field
from askance.nodes.closed_set import ClosedSet

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

IdentificationLabel = Literal["weird", "normal"]
"""Whether something in a picture goes against common sense (*WHOOPS!*, section 4.1)."""
IDENTIFICATION_LABELS: tuple[IdentificationLabel, ...] = get_args(IdentificationLabel)
_ALTERNATIVES = Alternatives(tuple((label,) for label in IDENTIFICATION_LABELS), numbered=False)


class Reply(TextAnswer):
    """What was answered about a picture, in words."""


class Identification(Reply):
    """Whether a picture is `weird` or `normal`."""

    text: IdentificationLabel  # pyright: ignore[reportIncompatibleVariableOverride]  # narrower, and frozen


class Replier(TextNode[VisualQuestion, Reply], PictureAgent[VisualQuestion, Reply]):
    """Answers about a picture in one text."""

    takes = VisualQuestion
    gives = Reply

    @override
    def variables(self, subject: VisualQuestion) -> Mapping[str, Any]:
        question = {} if subject.question is None else {"question": subject.question}
        return {**super().variables(subject), **question}


class Explainer(Replier):
    """Explains in one sentence what is unusual about a picture (*WHOOPS!*, section 4.1).

    From a description it is the second half of a pipeline.
    """

    prompt = "explain_from_description"
    picture_prompt = "explain_from_picture"
    field = "explanation"


class Identifier(ChoosingNode[VisualQuestion, Reply], Replier):
    """Says whether a picture is weird or normal (*WHOOPS!*, section 4.1)."""

    prompt = "identify_from_description"
    picture_prompt = "identify_from_picture"
    gives = Identification
    field = "answer"
    labels = IDENTIFICATION_LABELS

    @override
    def read_json(self, data: Mapping[str, Any], subject: VisualQuestion) -> Identification:
        return _identification(read_values([text_field(data, self.field)], _ALTERNATIVES, single=True))

    @override
    def read_reply(self, text: str, subject: VisualQuestion) -> Read[Reply]:
        """`weird` or `normal` where one of them is the answer; "not weird" is not an answer."""
        places, rung = read_choice(text, _ALTERNATIVES, single=True)
        return Read(_identification(places), rung)

    @override
    def closed_set(self, subject: VisualQuestion) -> ClosedSet:
        return ClosedSet(dict.fromkeys(IDENTIFICATION_LABELS, ""))

    @override
    def chosen(self, subject: VisualQuestion, places: Sequence[int]) -> Identification:
        return _identification(places)


def _identification(places: Sequence[int]) -> Identification:
    return Identification(text=IDENTIFICATION_LABELS[places[0] - 1])


class OpenAnswerer(Replier):
    """Answers a question about a picture in a few words."""

    prompt = "answer_from_description"
    picture_prompt = "answer_from_picture"
    field = "answer"


class CaptionWriter(Replier):
    """Writes a caption of one sentence for a picture; unlike the tool that captions, behind examples."""

    prompt = "caption_from_description"
    picture_prompt = "caption"
    field = "description"


explain_from_picture = preset(Explainer, sees=True)
explain_from_description = Explainer
identify_from_picture = preset(Identifier, sees=True)
identify_from_description = Identifier
answer_from_picture = preset(OpenAnswerer, sees=True)
answer_from_description = OpenAnswerer
caption_from_description = CaptionWriter
