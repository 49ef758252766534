"""A made-up task of choice over captions, and files of replies in the shapes in which they were published."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import override

from askance.evals import Sample, Scorer, Task
from askance.evals.newyorker.reply_conventions import RecordedChoices, by_convention
from askance.evals.part import Question
from askance.evals.scorer import right_or_wrong
from askance.evals.suite import InContext

CAPTIONS = ("Do they bite?", "All of them do.", "I'll take A.", "It came with the house.", "Answer: B or not to B.")
LABELS = "CABED"


def item(number: int, *, order: int = 1) -> Sample:
    """One item of matching: five captions, each with its letter of the data; a second order shows them reversed."""
    letters = "ABCDE"[:: 1 if order == 1 else -1]
    options = {letter: f"{number}: {caption}" for letter, caption in zip("ABCDE", CAPTIONS, strict=True)}
    return Sample(
        id=f"{number:032x}" + ("#2" if order == 2 else ""),
        inputs={"options": [options[letter] for letter in letters]},
        target={"true": [letters.index(LABELS[number]) + 1], "letters": list(letters)},
        group=f"contest {number}",
        tags={"fold": 0, "contest": number, **({"order": order} if order == 2 else {})},
    )


IDS = tuple(item(number).id for number in range(5))


class Captions(Task):
    """Which of five captions was written for a cartoon."""

    name = "tests/captions"

    count: int = 5
    """How many items there are."""

    model: InContext = InContext()
    replies: RecordedChoices = RecordedChoices()

    @override
    def samples(self) -> Sequence[Sample]:
        return [item(number) for number in range(self.count)]

    @override
    def ids_left_out(self) -> Sequence[str]:
        return [item(number).id for number in range(self.count, 5)]

    @override
    def question(self) -> Question:
        return Question(name="captions")

    @override
    def scorer(self) -> Scorer:
        found = right_or_wrong(lambda sample, value: value == sample.target["true"])
        return by_convention(found, "accuracy") if self.replies.is_chosen else found


def right(number: int) -> str:
    """A reply that is right by every convention."""
    return f"The mice look glum, so the first one fits.\n\nFinal Answer: {LABELS[number]}"


def row(name: str, response: Any, **more: Any) -> dict[str, Any]:
    """A row as the authors' cache has it, with the question beside the reply."""
    return {"query": "Choices:\nA: …", "response": response, "instance_id": name, **more}


def extractor_row(reply: str, answer: str) -> dict[str, Any]:
    """The row of the extractor that was asked about a reply."""
    return row(hashlib.md5(reply.encode()).hexdigest(), answer)


def completion(text: str | None, finish: str = "stop", **message: Any) -> dict[str, Any]:
    """A reply as OpenAI's endpoint gives it."""
    return {
        "id": "chatcmpl-1",
        "model": "gpt-4-0314",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def as_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """A file of JSON lines."""
    path.write_text("".join(f"{json.dumps(each)}\n" for each in rows), encoding="utf-8")
    return path


def as_json(path: Path, content: Any) -> Path:
    """A file of JSON over several lines."""
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
    return path
