"""Visual question answering: a question of the user's own about a picture, and questions made from captions.

`ask_about_picture` asks it. `find_candidates` and `write_question` turn a caption into questions whose answers are
known (*WHOOPS!*, section 4.2). `ask_about_regions` asks about what is cut out of a picture.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import BeforeValidator
from typing_extensions import Unpack, override

from askance.agents.alternatives import Alternatives
from askance.agents.explain import Reply
from askance.agents.region import region_words
from askance.agents.reply_ladder import ChoosingNode, read_choice
from askance.errors import UsageError
from askance.images import Image
from askance.nodes import AnswerField, Node, NodeOptions, Read, TextAnswer, TextNode, TypedAnswer, Unreadable
from askance.nodes.answer import Texts, TypedInput, list_schema, text_list, text_schema
from askance.nodes.closed_set import ClosedSet
from askance.nodes.example import ANSWER, Example, Examples
from askance.nodes.reply import answer_lines, is_refusal, plain_text, says_none, strip_quotes
from askance.tools.vision import ToolImages, tool_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.tools import BaseTool

    from askance.chat import ImagePart
    from askance.images import ImagePolicy, RegionView
    from askance.models import ModelLike
    from askance.prompts import PromptLibrary

CANDIDATES = 5
"""Phrases of a caption at most, where the caller does not say."""
LONGEST = 100
"""Characters of a phrase at most."""

_REGIONS = "The images are regions of one larger image, cut out of it, in the order in which the question names them."

_NOUNS = frozenset(
    ["phrase", "phrases", "candidate", "candidates", "such", "thing", "place", "other", "short", "caption"]
)
_ASIDE = re.compile(r"(.*\S) \([^()]*\)")
_SEPARATORS = re.compile(r"[,;\n]")


class AnswerCandidates(TypedAnswer):
    """Phrases that a question could be answered with, each once."""

    texts: Texts

    def __str__(self) -> str:
        return ", ".join(self.texts)


class AnswerInCaption(TypedInput):
    """A caption, and what a question about it is to be answered with."""

    caption: str
    answer: str


class PictureQuestion(TypedInput):
    """A picture, and what is asked about it where the node does not say."""

    image: Annotated[Image, BeforeValidator(Image.load)]
    question: str | None = None
    examples: Examples = ()
    """Questions about other pictures with their answers, shown to the model before it is asked."""


class PictureAsker(ChoosingNode[PictureQuestion, Reply]):
    """Asks a question about the image.

    Args:
        question: what is asked, unless the question comes with the image.
        labels: the answers that there are; none leaves the answer free.
        several: whether several labels may be true; they are then given with a comma between them.
        prompt: name of a prompt of the user's own; it takes `question`, `labels` and `several`, or some of them.

    Raises:
        UsageError: labels of which one stands twice, is blank, or holds a comma, a semicolon or a line break.
    """

    prompt = "ask_about_picture"
    takes = PictureQuestion
    gives = Reply

    def __init__(
        self,
        model: ModelLike,
        *,
        question: str | None = None,
        labels: Sequence[str] = (),
        several: bool = False,
        **options: Unpack[NodeOptions],
    ) -> None:
        self.question = question
        self.labels = {_folded(label): label for label in labels}
        self.several = several
        self.chooses = bool(labels)
        if len(self.labels) < len(labels) or any(not key or _SEPARATORS.search(key) for key in self.labels):
            raise UsageError(
                f"These cannot all be labels: {list(labels)!r}.",
                hint="Each stands once, and holds no comma, semicolon or line break.",
            )
        super().__init__(model, **options)

    @override
    def accept(self, inputs: Any) -> PictureQuestion:
        return super().accept(inputs if isinstance(inputs, (PictureQuestion, Mapping)) else {"image": inputs})

    @override
    def pictures(self, subject: PictureQuestion) -> tuple[Image, ...]:
        return (subject.image,)

    def as_tool(self, images: ToolImages) -> BaseTool:  # pyright: ignore[reportIncompatibleMethodOverride]  # as that of the image tools
        """A tool that an agent of LangChain can call on the pictures given here, and on no others."""
        return tool_of(self, images)

    @cached_property
    def _alternatives(self) -> Alternatives:
        """The labels, which the prompt numbers; where one is a number, their places are not meant."""
        labels = [*self.labels.values()]
        return Alternatives(tuple((label,) for label in labels), numbered=not any(map(str.isdecimal, labels)))

    @override
    def examples(self, subject: PictureQuestion) -> tuple[Example, ...]:
        return subject.examples

    @override
    def example_variables(self, example: Example) -> Mapping[str, Any]:
        """Values for the prompt's variables in an example; its answer is a text or a list, as the prompt takes it."""
        own = dict(example.variables)
        question, answer = own.pop("question", None), own.get(ANSWER)
        if answer is not None:
            answers = answer if isinstance(answer, tuple) else (str(answer),)
            kinds = {prompt.declared[ANSWER].kind for prompt in self.prompts_in_use if ANSWER in prompt.declared}
            own[ANSWER] = answers if "list" in kinds else ", ".join(answers)
        return {**self._asked(None if question is None else str(question)), **own}

    @override
    def variables(self, subject: PictureQuestion) -> Mapping[str, Any]:
        return self._asked(subject.question)

    def _asked(self, question: str | None) -> Mapping[str, Any]:
        """Values for what is asked; by default the node's own question."""
        values: dict[str, Any] = {"question": question or self.question}
        if self.labels:
            values |= {"labels": list(self.labels.values()), "several": self.several or None}
        return {name: value for name, value in values.items() if value is not None and name in self._takes}

    @property
    def _takes(self) -> frozenset[str]:
        return frozenset(name for prompt in self.prompts_in_use for name in prompt.declared)

    @override
    def fields(self, subject: PictureQuestion) -> Sequence[AnswerField]:
        text = text_schema(least=1, among=[*self.labels.values()])
        answer = list_schema(text) if self.labels and self.several else text
        return (AnswerField("answer", answer, "text", self._checked_text),)

    def _checked_text(self, data: Mapping[str, Any], field: str) -> str:
        answer = data.get(field)
        if isinstance(answer, list) and self.several and self.labels:
            return self._chosen([str(each) for each in cast("list[object]", answer)])
        if not isinstance(answer, str) or not answer.strip():
            raise Unreadable("`answer` must be a text that is not empty")
        return self._read_answer(answer).value

    @override
    def read_reply(self, text: str, subject: PictureQuestion) -> Read[Reply]:
        answer, rung = self._read_answer(text)
        return Read(Reply(text=answer), rung)

    @override
    def closed_set(self, subject: PictureQuestion) -> ClosedSet | None:
        return ClosedSet(dict.fromkeys(self.labels.values(), ""), several=self.several) if self.labels else None

    @override
    def chosen(self, subject: PictureQuestion, places: Sequence[int]) -> Reply:
        labels = [*self.labels.values()]
        return Reply(text=self._chosen([labels[place - 1] for place in places]))

    def _read_answer(self, text: str) -> Read[str]:
        if not self.labels:
            return Read(text.strip())
        parts = self._answers_in(plain_text(text))
        if all(_folded(part) in self.labels for part in parts):
            return Read(self._chosen(parts), "whole")
        places, rung = read_choice(text, self._alternatives, single=not self.several)
        labels = [*self.labels.values()]
        return Read(self._chosen([labels[place - 1] for place in places]), rung)

    def _answers_in(self, text: str) -> list[str]:
        return [part for part in (_SEPARATORS.split(text) if self.several else [text]) if _folded(part)]

    def _chosen(self, answers: Sequence[str]) -> str:
        """The labels that `answers` are, in their own order, with commas between them."""
        unknown = [answer for answer in answers if _folded(answer) not in self.labels]
        if unknown:
            raise Unreadable(f"{unknown[0].strip()!r} is none of the answers that there are")
        chosen = {_folded(answer) for answer in answers}
        if not self.several and len(chosen) != 1:
            raise Unreadable("exactly one of the answers is asked for")
        return ", ".join(label for key, label in self.labels.items() if key in chosen)


class RegionAsker(PictureAsker):
    """Asks a question about regions of the image, each of which is shown as a picture of its own.

    Args:
        views: the crops, in the order in which the question speaks of them.
        policy: how they are prepared; by default as the model's pictures are.
    """

    prompt = "ask_about_picture_regions"

    def __init__(
        self,
        model: ModelLike,
        *,
        views: Sequence[RegionView] = (),
        policy: ImagePolicy | None = None,
        question: str | None = None,
        prompts: PromptLibrary | None = None,
    ) -> None:
        self.views = tuple(views)
        self.policy = policy
        super().__init__(model, question=question, prompts=prompts)

    @override
    def picture_parts(self, subject: PictureQuestion) -> tuple[ImagePart, ...]:
        return tuple(self.model.image(subject.image, view, self.policy) for view in self.views)

    @override
    def variables(self, subject: PictureQuestion) -> Mapping[str, Any]:
        region = region_words(self.views[0]) if len(self.views) == 1 else _REGIONS
        return {**super().variables(subject), "region": region}


class CandidateFinder(Node[str, AnswerCandidates]):
    """Finds phrases of a caption that a question could be answered with; takes the caption.

    Args:
        count: phrases at most.
    """

    prompt = "answer_candidates"
    takes = str
    gives = AnswerCandidates

    def __init__(self, model: ModelLike, *, count: int = CANDIDATES, **options: Unpack[NodeOptions]) -> None:
        self.count = count
        super().__init__(model, **options)

    @override
    def accept(self, inputs: Any) -> str:
        return str(inputs.text if isinstance(inputs, TextAnswer) else inputs)

    @override
    def variables(self, subject: str) -> Mapping[str, Any]:
        return {"caption": subject, "count": self.count}

    @override
    def fields(self, subject: str) -> Sequence[AnswerField]:
        texts = list_schema(text_schema(least=1), least=1, most=self.count)
        return (AnswerField("answers", texts, "texts", self._listed),)

    def _listed(self, data: Mapping[str, Any], field: str) -> tuple[str, ...]:
        return self._checked(text_list(data, field))

    @override
    def read_text(self, text: str, subject: str) -> AnswerCandidates:
        lines = [line.rstrip(",;.") for line in answer_lines(text, _NOUNS)]
        if len(lines) == 1 and lines[0].casefold() not in subject.casefold():
            lines = [line.strip() for line in re.split("[,;]", lines[0])]
        if is_refusal(text) or (len(lines) == 1 and says_none(lines[0], _NOUNS)):
            raise Unreadable("no phrase is given; give at least one")
        return AnswerCandidates(texts=self._checked([_phrase(line, subject) for line in lines]))

    def _checked(self, texts: list[str]) -> tuple[str, ...]:
        distinct = [*dict.fromkeys(text for text in texts if text)]
        if not distinct:
            raise Unreadable("no phrase is given; give at least one")
        too_long = next((text for text in distinct if len(text) > LONGEST), None)
        if too_long is not None:
            raise Unreadable(f"{too_long[:40]!r}… is no phrase; each has at most {LONGEST} characters")
        return tuple(distinct[: self.count])


def _phrase(line: str, caption: str) -> str:
    """A line without what is remarked on the phrase in it, in brackets or behind a colon."""
    if (aside := _ASIDE.fullmatch(line)) is not None:
        return aside[1]
    phrase, colon, _ = line.partition(": ")
    caption_text = caption.casefold()
    return phrase if colon and phrase.casefold() in caption_text and line.casefold() not in caption_text else line


class QuestionWriter(TextNode[AnswerInCaption, Reply]):
    """Writes a question about an image whose caption and whose answer are known."""

    prompt = "write_question"
    takes = AnswerInCaption
    gives = Reply
    field = "question"

    @override
    def variables(self, subject: AnswerInCaption) -> Mapping[str, Any]:
        return {"caption": subject.caption, "answer": subject.answer}

    @override
    def read_text(self, text: str, subject: AnswerInCaption) -> Reply:
        question = strip_quotes(" ".join(plain_text(text).split()))
        if not question.endswith("?"):
            raise Unreadable("a question ends with a question mark")
        return Reply(text=question)


def _folded(text: str) -> str:
    """`text` as labels are compared: without case, blanks around it, quotes and a period at its end."""
    return " ".join(text.strip().strip("\"'`").rstrip(".").split()).casefold()


ask_about_picture = PictureAsker
ask_about_regions = RegionAsker
find_candidates = CandidateFinder
write_question = QuestionWriter
