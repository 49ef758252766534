"""A small task of the tests whose answers are texts: why a caption is funny. Several writers have answered it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from askance.errors import Refused
from askance.evals import Run, Sample, SampleQuestion, Scorer, Task, evaluate, right_or_wrong

TEXTS: Mapping[str, Sequence[str | None]] = {
    "plain": [
        "apt",
        "apt and so on and on",
        "it is long and it is wrong",
        "it is wrong",
        "apt",
        None,
        "the same text",
        "apt text of eight words in all here",
    ],
    "wordy": [
        "it is wrong",
        "it is long and it is wrong",
        "apt",
        "it is bad",
        "no",
        "apt",
        "the same text",
        "no text of eight words in all here",
    ],
    "mute": [None] * 8,
}
"""By writer, the answers to the samples c0 to c7; None is none."""
REFERENCES = [
    "apt reference",
    "a reference",
    "apt reference",
    "a reference",
    "apt",
    "",
    "the same text",
    "no reference",
]
QUESTION = "Why is this caption funny?"


class Explained(Task):
    """Why a caption is funny."""

    name = "tests/explained"
    writer: str = "plain"
    """Who answers."""
    count: int = 8
    """How many samples there are."""
    described: bool = False
    """Whether the samples hold a description."""

    def samples(self) -> list[Sample]:
        return [
            Sample(
                id=f"c{number}",
                group=f"contest {number // 2}",
                inputs={"caption": f"Caption {number}.", **({"description": "A dog."} if self.described else {})},
                target={"references": [REFERENCES[number]] if REFERENCES[number] else []},
            )
            for number in range(self.count)
        ]

    def solver(self) -> Callable[[Sample], Any]:
        texts = TEXTS[self.writer]

        def answer(sample: Sample) -> str:
            text = texts[int(sample.id[1:])]
            if text is None:
                raise Refused("it would not say")
            return text

        return answer

    def scorer(self) -> Scorer:
        return right_or_wrong(lambda sample, value: value in sample.target["references"])

    def question_of(self, sample: Sample) -> SampleQuestion:
        texts = [f"{name}: {sample.inputs[name]}" for name in ("caption", "description") if name in sample.inputs]
        return SampleQuestion(QUESTION, about="\n".join(texts))


def explained(writer: str, out: Path, **options: Any) -> Run:
    """The run of a writer, in the folder `out`."""
    return evaluate(Explained(writer=writer, **options), out=out)
