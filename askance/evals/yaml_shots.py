"""Examples before the questions of a YAML task: other rows of its table, with their answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from askance.agents.picture_agent import PictureAgent
from askance.chains.link import STATEMENT
from askance.errors import BadData, UsageError
from askance.evals.sample import EXAMPLES, Sample, grouped_by_picture
from askance.evals.suite.selection import FOLDS, fold_of
from askance.evals.suite.shots import Examples, ShotFacts
from askance.evals.yaml_rows import Wanted
from askance.nodes import Example

if TYPE_CHECKING:
    from askance.chains import Chain, Step
    from askance.nodes.example import ExampleValue

UNANSWERED = ("none", "regex")
"""Scores that name no answer: one compares nothing, the targets of the other are patterns."""


class RowExamples(Examples):
    """Answered rows of other pictures that may stand before each question."""

    settings = Examples.settings | {"shots_draw"}

    shots_seed: int = 0
    """Seed of the five folds that pictures fall into, and of examples at random."""


class Answered(Wanted, Protocol):
    """The part of a declaration that decides what an example shows."""

    @property
    def chain(self) -> str:
        """Name of the chain, as the file has it."""
        ...

    @property
    def choose(self) -> str:
        """`multi` or `single`."""
        ...

    @property
    def count(self) -> int:
        """How many options `multi` asks for."""
        ...

    @property
    def step_by_step(self) -> bool:
        """Whether the model reasons before it answers."""
        ...


@dataclass(frozen=True)
class ShownRows:
    """Shows rows as examples before the questions of other rows.

    Args:
        declared: the declaration.
        chain: the chain of the task.

    Raises:
        UsageError: the chain shows no examples, or nothing says what is right.
    """

    declared: Answered
    chain: Chain

    def __post_init__(self) -> None:
        if not self.chain.shows_examples:
            raise UsageError(
                f"The chain `{self.declared.chain}` shows its model no examples.",
                hint="Leave `shots` out, or take `ask`.",
            )
        if self.declared.score in UNANSWERED:
            raise UsageError(
                f"`score: {self.declared.score}` does not say which words are a right answer, and examples show some.",
                hint="Leave `shots` out, or score by `exact`, `contains`, `choice`, `labels` or the like.",
            )
        if self.declared.step_by_step:
            raise UsageError(
                "Examples show answers without reasoning, so a model cannot be asked to reason after them.",
                hint="Leave `shots` or `step_by_step` out.",
            )

    def before(self, samples: Sequence[Sample], examples: RowExamples) -> list[Sample]:
        """The samples with examples of pictures outside their own folds.

        Raises:
            BadData: a row has examples of its own, too few pictures are there, or as `Examples.shown_before`.
            UsageError: no row can be shown, or as `Examples.shown_before`.
        """
        own = next((sample.id for sample in samples if EXAMPLES in sample.inputs), None)
        if own is not None:
            raise BadData(
                f"The row {own!r} has `examples` of its own, and `shots` chooses some.",
                hint="Leave one of the two out.",
            )
        grouped = grouped_by_picture(samples)
        pictures = {sample.cluster for sample in grouped}
        if len(pictures) < FOLDS:
            raise BadData(
                f"Examples come from other pictures, which fall into {FOLDS} folds, and the data has {len(pictures)}.",
                hint=f"Give at least {FOLDS} pictures, or leave `shots` out.",
            )
        return examples.of_other_folds(
            grouped,
            self._shown(grouped),
            folds=fold_of(pictures, seed=examples.shots_seed),
            example=self._example,
            facts=self._facts,
            seed=examples.shots_seed,
        )

    def _shown(self, samples: Sequence[Sample]) -> Sequence[Sample]:
        """The rows that can be shown: with whatever else the answering model is told, and with a whole answer.

        Raises:
            UsageError: there is none.
        """
        told = [sample for sample in samples if self._needed <= sample.inputs.keys()]
        if not told:
            links = ", ".join(f"`{name}`" for name in sorted(self._needed))
            raise UsageError(
                f"The chain `{self.declared.chain}` answers from {links}, which no row gives, and nobody asks "
                "about the pictures of examples.",
                hint="Give rows what is missing, or take the chain `end-to-end` with no `context` and no `statement`.",
            )
        answered = [sample for sample in told if self._answer(sample) is not None]
        if not answered:
            raise UsageError(
                f"{self.declared.count} options are asked for, and no row has as many right ones to show.",
                hint="Write `choose: single`, or a smaller `count`.",
            )
        return answered

    @cached_property
    def _answering(self) -> Step | None:
        return next((step for step in self.chain.steps if step.link.name == self.chain.target.name), None)

    @cached_property
    def _needed(self) -> frozenset[str]:
        """Links that the answering node is told, and that models are asked for."""
        needs = () if self._answering is None else self._answering.needs
        return frozenset(need.name for need in needs) & {step.link.name for step in self.chain.steps}

    @property
    def _sees(self) -> bool:
        node: Any = None if self._answering is None else self._answering.node
        return not isinstance(node, PictureAgent) or node.sees

    def _example(self, sample: Sample) -> Example:
        links = {name: self._words(sample, name) for name in sorted(self._needed)}
        asked = {name: value for name, value in sample.inputs.items() if name in {"options", "question"}}
        image = sample.image if self._sees else None
        return Example(values={**asked, **links}, answer=self._answer(sample), image=image)

    def _answer(self, sample: Sample) -> ExampleValue | None:
        """The answer as an example shows it; None where the row does not have a whole one."""
        target: Any = sample.target
        match self.declared.score:
            case "choice" if self.declared.choose == "single":
                return target[0]
            case "choice":
                best = target[: self.declared.count]
                return ", ".join(map(str, best)) if len(best) == self.declared.count else None
            case "labels":
                return tuple(map(str, target)) or None
            case "vqa":
                return Counter(map(str, target)).most_common(1)[0][0]
            case _:
                return target[0]

    def _facts(self, sample: Sample) -> ShotFacts:
        links = [name for name in self.chain.links if name in sample.inputs and name != STATEMENT.name]
        own = {"question", "options"} if not self.declared.options else {"question"}
        asked = [value for name, value in sample.inputs.items() if name in own]
        return ShotFacts(
            id=sample.id,
            group=sample.cluster,
            text="\n".join(self._words(sample, name) for name in links),
            asked="\n".join(each if isinstance(each, str) else "\n".join(each) for each in asked),
            picture=lambda: sample.image,
            label=self._label(sample),
        )

    def _label(self, sample: Sample) -> str:
        """The answer, where all rows choose among the same ones."""
        if not (self.declared.labels or self.declared.options):
            return ""
        answer = self._answer(sample)
        return ", ".join(map(str, answer)) if isinstance(answer, tuple) else "" if answer is None else str(answer)

    def _words(self, sample: Sample, link: str) -> str:
        return str(self.chain.links[link].value(sample.inputs[link]))
