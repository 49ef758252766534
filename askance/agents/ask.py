"""A question of the user's own about a picture, with free answers or with a closed set of them."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from askance.agents.answers import Alternatives, choices, names_one
from askance.agents.replying import Reply
from askance.errors import UsageError
from askance.nodes import Unreadable
from askance.nodes.reply import body, plain
from askance.tools.tool import ImageTool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from askance.images import Image
    from askance.models import ModelLike
    from askance.prompts import PromptLibrary

_SEPARATORS = re.compile(r"[,;\n]")


class PictureAsker(ImageTool[Reply]):
    """Asks a question about the image.

    Args:
        question: what is asked.
        labels: the answers that there are; none leaves the answer free.
        several: whether several labels may be true; they are then given with a comma between them.
        prompt: name of a prompt of the user's own; it takes `question`, `labels` and `several`, or some of them.

    Raises:
        UsageError: labels of which one stands twice, is blank, or holds a comma, a semicolon or a line break.
    """

    prompt = "ask_about_picture"
    gives = Reply

    def __init__(
        self,
        model: ModelLike,
        *,
        question: str | None = None,
        labels: Sequence[str] = (),
        several: bool = False,
        prompt: str | None = None,
        prompts: PromptLibrary | None = None,
        name: str | None = None,
    ) -> None:
        self.question = question
        self.labels = {_folded(label): label for label in labels}
        self.several = several
        if len(self.labels) < len(labels) or any(not key or _SEPARATORS.search(key) for key in self.labels):
            raise UsageError(
                f"These cannot all be labels: {list(labels)!r}.",
                hint="Each stands once, and holds no comma, semicolon or line break.",
            )
        super().__init__(model, prompt=prompt, prompts=prompts, name=name)

    @cached_property
    def _alternatives(self) -> Alternatives:
        """The labels, which the prompt numbers; where one is a number, their places are not meant."""
        labels = [*self.labels.values()]
        return Alternatives(tuple((label,) for label in labels), numbered=not any(map(str.isdecimal, labels)))

    @override
    def variables(self, subject: Image) -> Mapping[str, Any]:
        values: dict[str, Any] = {"question": self.question}
        if self.labels:
            values |= {"labels": list(self.labels.values()), "several": self.several or None}
        return {name: value for name, value in values.items() if value is not None and name in self._takes}

    @property
    def _takes(self) -> frozenset[str]:
        return frozenset(name for prompt in self.prompts_in_use for name in prompt.declared)

    @override
    def schema(self, subject: Image) -> Mapping[str, Any]:
        text: dict[str, Any] = {"type": "string", "enum": [*self.labels.values()]}
        answer = text if self.labels else {"type": "string", "minLength": 1}
        if self.labels and self.several:
            answer = {"type": "array", "items": text}
        return {
            "type": "object",
            "properties": {"answer": answer},
            "required": ["answer"],
            "additionalProperties": False,
        }

    @override
    def read_json(self, data: Mapping[str, Any], subject: Image) -> Reply:
        answer: Any = data.get("answer")
        if isinstance(answer, list) and self.several and self.labels:
            return Reply(text=self._chosen([str(each) for each in answer]))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        if not isinstance(answer, str) or not answer.strip():
            raise Unreadable("`answer` must be a text that is not empty")
        return self.read_text(answer, subject)

    @override
    def read_text(self, text: str, subject: Image) -> Reply:
        if not self.labels:
            return Reply(text=text.strip())
        parts = self._parts(plain(text))
        if any(_folded(part) not in self.labels for part in parts):
            with suppress(Unreadable):
                parts = self._parts("\n".join(body(text, ()))) or parts
            if all(names_one(part, self._alternatives) for part in parts):
                labels = [*self.labels.values()]
                places = choices(text, self._alternatives, single=not self.several, apart=False)
                parts = [labels[place - 1] for place in places if place <= len(labels)] or parts
        return Reply(text=self._chosen(parts))

    def _parts(self, text: str) -> list[str]:
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


def _folded(text: str) -> str:
    """`text` as labels are compared: without case, blanks around it, quotes and a period at its end."""
    return " ".join(text.strip().strip("\"'`").rstrip(".").split()).casefold()


ask_about_picture = PictureAsker
