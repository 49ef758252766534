"""A run under way: answers and scores as they come, kept at once, and what is told of them."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from askance.errors import FATAL, OverBudget
from askance.evals.run import Answer, answer_of, line_of_answer
from askance.evals.scoring import figures_of, scored

if TYPE_CHECKING:
    from askance.evals.figures import Convention, Figure
    from askance.evals.predicting import Stream, Turn
    from askance.evals.run_folder import RunFolder
    from askance.evals.tasks import Scoring
    from askance.evals.values import Prediction, Sample
    from askance.models import Model


SIDE_BY_SIDE = 64
"""Answers that are scored at once; the models that judge have limits of their own."""


@dataclass(kw_only=True)
class Progress:
    """Where a run stands, as whoever watches it is told after each sample."""

    total: int = 0
    done: int = 0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    left: int = 0
    """Samples that the budget had nothing left for, or none yet."""
    metric: str = ""
    """Name of the metric that stands for the task."""
    running: Callable[[], Figure | None] = lambda: None
    """That metric over the samples so far; worked out when it is called."""


Told = Callable[[Progress], None]


class UnderWay:
    """One run under way: the answers as they come, their scores, and what is told of them."""

    def __init__(self, scoring: Scoring, folder: RunFolder, *, convention: Convention, told: Told | None) -> None:
        self._scoring = scoring
        self._folder = folder
        self._told = told
        self._reached = False
        """Whether a model has answered a call of this process; what is on record says nothing of its being there."""
        self._samples: Mapping[str, Sample] = {}
        self._scored: deque[asyncio.Task[Answer]] = deque()
        self.answers: list[Answer] = []
        """What they are worth; what they say lies in the folder."""
        headline = scoring.metrics[0]
        self.progress = Progress(
            metric=headline.name,
            running=lambda: figures_of(self.answers, replace(scoring, metrics=(headline,)), convention=convention)[0],
        )

    async def run(self, turns: Sequence[Turn], models: Sequence[Model], stream: Stream) -> None:
        """Answers and scores what the folder has no answer for, and takes over what it has."""
        self.progress.total = len(turns)
        self._samples = {turn.sample.id: turn.sample for turn in turns}
        unread = [turn for turn in turns if turn.name not in self._folder.finished]
        try:
            for line in self._folder.finished.values():
                await self._take(line)
            for model in models if unread else ():
                await model.rung()
            async with aclosing(stream(unread)) as predictions:
                async for turn, prediction in predictions:
                    if _unaffordable(prediction):
                        self.progress.left += 1
                        continue
                    if not self._reached:
                        stop_if_hopeless(prediction)
                    # Of a solver that counts no calls, any answer may be one.
                    self._reached |= prediction.answered and prediction.meta.get("calls", 1) > 0
                    answer = Answer(sample=turn.sample, epoch=turn.epoch, prediction=prediction)
                    await self._take(self._folder.add(line_of_answer(answer)))
            await self._count(until=0)
        finally:
            for task in self._scored:
                task.cancel()
            await asyncio.gather(*self._scored, return_exceptions=True)
            for model in models:
                await model.aclose()
        self.progress.left = len(turns) - len(self.answers)

    async def _take(self, line: Mapping[str, Any]) -> None:
        """Scores what a line says, so that it is all the same whether it was answered now or earlier.

        A judge takes its time: a number of answers are scored side by side, and count in their order.
        """
        answer = answer_of(line)
        own = self._samples.get(answer.sample.id, answer.sample)
        # A sample is held once, unless its JSON form is not what it was made of: then it is scored as it is written.
        sample = own if own.form() == line["sample"] else replace(answer.sample, image=own.image)
        answer = replace(answer, sample=sample)
        self._scored.append(asyncio.create_task(scored(answer, self._scoring)))
        await self._count(until=SIDE_BY_SIDE)

    async def _count(self, *, until: int) -> None:
        """Counts answers whose score is there, and waits for others as long as there are more than `until`."""
        await asyncio.sleep(0)  # lets a scoring that waits for nothing end
        while self._scored and (len(self._scored) > until or self._scored[0].done()):
            answer = await self._scored.popleft()
            self.answers.append(answer.bare)
            self.progress.done += 1
            self.progress.outcomes[answer.prediction.outcome] += 1
            if self._told is not None:
                self._told(self.progress)


def stop_if_hopeless(prediction: Prediction) -> None:
    """Ends the run where the first sample that was asked about failed as all others would.

    Raises:
        CallError: it did; of the same kind.
    """
    if prediction.meta.get("calls", 0) > 0:
        return
    for link in prediction.links.values():
        kind = FATAL.get(str(link.get("error")))
        if kind is not None:
            reason = str(link.get("reason") or prediction.reason)
            raise kind(reason, hint="Stopped at the first sample, since the others would fail alike.")


def _unaffordable(prediction: Prediction) -> bool:
    """Whether the budget had nothing left for it, so that it is no outcome of the sample."""
    return any(link.get("error") == OverBudget.__name__ for link in prediction.links.values())
