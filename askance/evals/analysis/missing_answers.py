"""What a run has no answer to, and why. A verdict must not rest on it.

A call that failed, was filtered or was never made is no answer of the model, so its sample is counted as wrong and as
right: in the worst case and in the best. A reply that could not be read, was cut off or was a refusal is the model's
own, and counts as the convention says.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from askance.evals.run import Run
    from askance.evals.sample import SampleResult

NoAnswer: TypeAlias = Literal["failed", "filtered", "unscored", "missing", "invalid", "refused", "truncated", "skipped"]
"""Why a sample has no score. `unscored`: its answer could not be judged. `missing`: the run has no line of it."""

LACKING: frozenset[NoAnswer] = frozenset({"failed", "filtered", "unscored", "missing"})
"""No answer of the model: counted as wrong and as right."""

_WORDS: Mapping[NoAnswer, tuple[str, str]] = {
    "failed": ("{} call of {} failed", "{} calls of {} failed"),
    "filtered": ("{} call of {} was filtered", "{} calls of {} were filtered"),
    "unscored": ("{} answer of {} has no score", "{} answers of {} have no score"),
    "missing": ("{} sample is missing from {}", "{} samples are missing from {}"),
    "invalid": ("{} reply of {} could not be read", "{} replies of {} could not be read"),
    "refused": ("{} reply of {} was a refusal", "{} replies of {} were refusals"),
    "truncated": ("{} reply of {} was cut off", "{} replies of {} were cut off"),
    "skipped": ("nothing could be asked of {} sample of {}", "nothing could be asked of {} samples of {}"),
}
"""By reason, how one sample and several are told of a run."""

NoAnswerCounts: TypeAlias = Mapping[NoAnswer, int]
"""How many samples of a run have no score, by reason."""


def no_answer_of(answer: SampleResult) -> NoAnswer | None:
    """Why a sample has no score; None if it has one. Of links that were skipped the one that failed first counts."""
    if answer.score is not None:
        return None
    prediction = answer.prediction
    if prediction.outcome == "answered":
        return "unscored"
    if prediction.outcome != "skipped":
        return prediction.outcome
    causes = (link["outcome"] for link in prediction.links.values() if link["outcome"] not in {"answered", "skipped"})
    return next(causes, "skipped")


def lacks_samples(run: Run) -> bool:
    """Whether a run has fewer lines than the samples that it was given."""
    return len(run.answers) < run.configuration["samples"]["count"] * run.configuration["epochs"]


def counts_by_reason(reasons: Sequence[NoAnswer | None]) -> NoAnswerCounts:
    """How many samples have no score, by reason."""
    counts = Counter(reason for reason in reasons if reason is not None)
    return {reason: counts[reason] for reason in _WORDS if counts[reason]}


def in_words(name: str, counts: NoAnswerCounts) -> Iterator[str]:
    """Each reason of a run with its number of samples: `8 calls of B failed`."""
    for reason, count in counts.items():
        one, more = _WORDS[reason]
        yield (one if count == 1 else more).format(f"{count:,}", name)


_ASKED: Mapping[NoAnswer, str] = {
    "failed": "for what failed",
    "unscored": "for what has no score",
    "missing": "for what is missing",
    "filtered": "with `--retry filtered` for what was filtered",
}
"""By reason, what the command that began a run asks for."""


def way_out(name: str, run: Run, reasons: Collection[NoAnswer]) -> str:
    """Which command asks for what a run lacks; empty if it lacks nothing."""
    ways = [words for reason, words in _ASKED.items() if reason in reasons]
    if not ways:
        return ""
    task = str(run.origin.get("task") or run.task)
    command = f"askance eval run {shlex.quote(task)} … --out {shlex.quote(run.path.as_posix())}"
    return f"{name}: the command that began it (`{command}`) asks {', '.join((*ways, 'and for nothing else'))}."
