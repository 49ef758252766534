"""Cartoons and their captions: which was written for a cartoon, which is funnier and why, and what one could be.

The first three are the tasks of *Do Androids Laugh at Electric Sheep?* (section 2), and the last is its appendix G. The
tasks are asked from the picture, from a description of it, or from nothing, which is a description that says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from typing_extensions import Unpack, override

from askance.agents.choose import LetterChooser
from askance.agents.explain import Reply
from askance.agents.picture_agent import PictureAgent, Subject, preset
from askance.nodes import AnswerField, NodeOptions, TextNode, TypedAnswer, Unreadable
from askance.nodes.answer import Texts, Words, list_schema, text_field, text_list, text_schema
from askance.nodes.reply import plain_text, strip_quotes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from askance.chat import ChatRequest
    from askance.models import ModelLike, OutputMode


class CaptionMatcher(LetterChooser):
    """Chooses the caption that was written for a cartoon, among captions of other cartoons (matching)."""

    prompt = "match_caption"
    picture_prompt = "match_caption_from_picture"


class CaptionRanker(LetterChooser):
    """Chooses the funnier of two captions of a cartoon (quality ranking)."""

    prompt = "rank_captions"
    picture_prompt = "rank_captions_from_picture"


class Joke(Subject):
    """A cartoon and its caption."""

    caption: Words


class JokeExplainer(TextNode[Joke, Reply], PictureAgent[Joke, Reply]):
    """Explains in two or three sentences why a caption is funny under its cartoon (explanation)."""

    prompt = "explain_joke"
    picture_prompt = "explain_joke_from_picture"
    takes = Joke
    gives = Reply
    field = "explanation"

    @override
    def fields(self, subject: Joke) -> Sequence[AnswerField]:
        return self.with_steps(super().fields(subject))

    @override
    def variables(self, subject: Joke) -> Mapping[str, Any]:
        return {**super().variables(subject), "caption": subject.caption}

    @override
    def read_json(self, data: Mapping[str, Any], subject: Joke) -> Reply:
        return Reply(text=text_field(data, self.field).strip())

    @override
    def read_text(self, text: str, subject: Joke) -> Reply:
        """The whole reply; where steps were asked for, what stands behind the last `Explanation:`."""
        if not self.step_by_step:
            return super().read_text(text, subject)
        marks = [*_MARK.finditer(plain := plain_text(text))]
        explained = plain[marks[-1].end() :].strip() if marks else ""
        if not explained:
            raise Unreadable("no explanation stands behind `Explanation:` on a line of its own")
        return Reply(text=explained)


MOST_CONCEPTS = 8
"""Concepts at most; the prompt of appendix G has four to six."""
MOST_CHOSEN = 3
"""Concepts that a caption combines, at most (appendix G)."""

TEMPERATURE, TOP_P = 0.8, 0.9
"""Sampling of appendix G, where the model's settings say nothing."""
PENALTIES: Mapping[str, float] = {"frequency_penalty": 0.2, "presence_penalty": 0.05}
"""The same for what has been said already, for endpoints that take it."""
_TAKE_PENALTIES = ("openai", "vllm")


class CandidateCaption(TypedAnswer):
    """A caption for a cartoon that a model wrote, and what it is made of; a candidate, which no person has judged."""

    concepts: Texts
    """What the cartoon brings to mind."""
    chosen: Texts
    """One to three of the concepts, which the caption combines."""
    caption: str
    explanation: str
    """How the caption goes with the cartoon, in the model's words."""

    def __str__(self) -> str:
        return self.caption


class Brainstormer(PictureAgent[Subject, CandidateCaption]):
    """Thinks of concepts for a described cartoon, and makes a caption of one to three of them (appendix G).

    Args:
        draw: index of the draw; each draw is a caption of its own.
    """

    prompt = "brainstorm"
    takes = Subject
    gives = CandidateCaption

    def __init__(self, model: ModelLike, *, draw: int = 0, **options: Unpack[NodeOptions]) -> None:
        self.draw = draw
        super().__init__(model, **options)

    @override
    def request(self, subject: Subject, mode: OutputMode) -> ChatRequest:
        request = super().request(subject, mode)
        own = request.sampling
        sampling = replace(
            own,
            temperature=TEMPERATURE if own.temperature is None else own.temperature,
            top_p=TOP_P if own.top_p is None else own.top_p,
        )
        takes = request.model.provider in _TAKE_PENALTIES and request.model.api == "chat"
        extra = {**PENALTIES, **request.extra} if takes else request.extra
        return replace(request, sampling=sampling, extra=extra, draw=request.draw + self.draw)

    @override
    def fields(self, subject: Subject) -> Sequence[AnswerField]:
        text = text_schema(least=1)
        return (
            AnswerField("concepts", list_schema(text, least=1, most=MOST_CONCEPTS), "concepts", _concepts),
            AnswerField("chosen", list_schema(text, least=1, most=MOST_CHOSEN), "chosen", _chosen),
            AnswerField("caption", text, "caption", _unquoted),
            AnswerField("explanation", text, "explanation", _unquoted),
        )

    @override
    def read_text(self, text: str, subject: Subject) -> CandidateCaption:
        """The lines `Concepts:`, `Chosen:`, `Caption:` and `Explanation:`, each with what follows it."""
        plain = plain_text(text)
        labels = [*_LABEL.finditer(plain)]
        ends = [*(label.start() for label in labels[1:]), len(plain)]
        parts = {label[1].casefold(): plain[label.end() : end] for label, end in zip(labels, ends, strict=False)}
        if len(parts) < len(labels):
            raise Unreadable("a line stands twice; give one caption")
        lists = {name: _SEPARATOR.split(parts.get(name, "")) for name in ("concepts", "chosen")}
        return self.read_json({**parts, **lists}, subject)


def _concepts(data: Mapping[str, Any], field: str) -> tuple[str, ...]:
    concepts = tuple(text.strip(" .-") for text in text_list(data, field))
    concepts = tuple(text for text in concepts if text)
    if not concepts:
        raise Unreadable(f"`{field}` is empty; give at least one")
    return concepts[:MOST_CONCEPTS]


def _chosen(data: Mapping[str, Any], field: str) -> tuple[str, ...]:
    concepts = _concepts(data, field)
    if len(concepts) > MOST_CHOSEN:
        raise Unreadable(f"`{field}` names {len(concepts)} concepts; choose one to {MOST_CHOSEN}")
    return concepts


def _unquoted(data: Mapping[str, Any], field: str) -> str:
    return strip_quotes(text_field(data, field))


_SEPARATOR = re.compile(r"[,;\n]")
_LABEL = re.compile(r"^\W{0,4}(concepts|chosen|caption|explanation)\W{0,3}:", re.IGNORECASE | re.MULTILINE)
_MARK = re.compile(r"^\W{0,4}(?:final )?explanation(?: of the (?:joke|caption))?\W{0,3}:", re.IGNORECASE | re.MULTILINE)

match_caption = CaptionMatcher
match_caption_from_picture = preset(CaptionMatcher, sees=True)
rank_captions = CaptionRanker
rank_captions_from_picture = preset(CaptionRanker, sees=True)
explain_joke = JokeExplainer
explain_joke_from_picture = preset(JokeExplainer, sees=True)
brainstorm_caption = Brainstormer
