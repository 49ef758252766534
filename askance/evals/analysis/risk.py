"""Risk by coverage of several runs: which of them knows best when to withhold its answers.

The samples of a run are ranked by how sure its answers are, in one of three ways. An agent that may abstain has to beat
the other two, which need nothing but a threshold on finished runs of a fixed chain.

| by | how sure an answer is |
|---|---|
| `confidence` | what the solver says: `Prediction.confidence` |
| `agreement` | the share of the draws (`--epochs 5`) that give the most frequent answer, which is the one that counts |
| `logprob` | the probability of the reply that it was read from, where its tokens' log-probabilities are on record |

By `confidence` and `logprob` the first draw of each sample counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from askance.chat import canonical_json
from askance.errors import UsageError
from askance.evals.abstention import (
    AREA,
    BRIER,
    CALIBRATION,
    Ranked,
    calibration,
    losses_and_ranks,
    ranked_samples,
    ranks_by,
    risk_area,
)
from askance.evals.analysis.compare import check_scores, common_samples
from askance.evals.metric import figure
from askance.evals.run_tables import names_of
from askance.evals.scorer import scored_rows
from askance.evals.tables import NONE, shown_value
from askance.evals.task_catalog import task_of
from askance.models import Engine
from askance.statistics import (
    Comparison,
    RiskPoint,
    compare_risk_areas,
    holm_adjusted,
    risk_coverage_curve,
)

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.metric import Figure
    from askance.evals.run import Run
    from askance.evals.sample import SampleResult
    from askance.evals.scorer import Scorer

ConfidenceSource = Literal["confidence", "agreement", "logprob"]
"""By what the samples of a run are ranked."""
SOURCES: tuple[ConfidenceSource, ...] = get_args(ConfidenceSource)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRisk:
    """One run with its samples ranked by how sure its answers are."""

    run: Run
    name: str
    by: ConfidenceSource
    samples: tuple[Ranked, ...]
    """In the order of their ids."""
    worth: Figure
    """The task's main figure: abstentions and samples without an answer count as wrong."""
    coverage: float
    """Share of the samples whose answers are given."""
    among_answered: float | None
    """The main figure over those, all samples together."""
    area: Figure
    calibration: tuple[Figure, ...]
    """Calibration error and Brier score; empty where answers may be partly right."""
    curve: tuple[RiskPoint, ...]
    """Risk by coverage from the surest answers on; samples without an answer come last."""

    def form(self) -> JsonObject:
        """The run as JSON."""
        return {
            "name": self.name,
            "folder": self.run.path.as_posix(),
            "by": self.by,
            "samples": len(self.samples),
            "coverage": self.coverage,
            "among_answered": self.among_answered,
            "figures": [each.form() for each in (self.worth, self.area, *self.calibration)],
            "curve": [{"coverage": each.coverage, "risk": each.risk} for each in self.curve],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskComparison:
    """Runs of a task on the same samples, by the area under the curve of risk by coverage."""

    metric: str
    runs: tuple[RunRisk, ...]
    comparisons: tuple[Comparison, ...]
    """The first run against each of the others, by the area, of which less is better."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdicts in plain words."""
        first, *others = (each.name for each in self.runs)
        pairs = zip(others, self.comparisons, strict=True)
        return tuple(comparison.sentence(first, other, AREA, unit="") for other, comparison in pairs)

    def form(self) -> JsonObject:
        """The comparison as JSON."""
        first, *others = (each.name for each in self.runs)
        return {
            "metric": self.metric,
            "runs": [each.form() for each in self.runs],
            "comparisons": [
                {"metric": AREA, "a": first, "b": other, **asdict(each)}
                for other, each in zip(others, self.comparisons, strict=True)
            ],
        }


def compare_risks(
    first: Run,
    *others: Run,
    by: ConfidenceSource | None = None,
    names: Sequence[str] | None = None,
    task: str | None = None,
    seed: int = 0,
) -> RiskComparison:
    """The risk by coverage of one or several runs, on the samples that all of them have.

    Where there are several comparisons, their p is adjusted by Holm's method.

    Args:
        first: the run that the others are compared with.
        others: runs of the same task.
        by: how the samples are ranked; None takes, for each run, the first way of `SOURCES` that it has.
        names: of the runs; by default those that they have in tables.
        task: where the task is defined, if not where the runs say.
        seed: of the resampling.

    Raises:
        UsageError: the runs cannot be compared, nothing says how sure the answers of a run are, or the task's main
            figure is no mean of what each answer is worth.
    """
    runs = (first, *others)
    for run in runs:
        if run.of_pictures:
            raise UsageError(
                f"The run {str(run.path)!r} is of pictures that nobody scores.", hint="Name runs of `askance eval run`."
            )
        check_scores(run)
    common = {row[0].sample.id for row in common_samples(runs).rows} if others else None
    engine = Engine(mode="replay", records=first.records)
    scoring = task_of(first, task).of_run(first.configuration["options"], engine=engine).scorer()
    metric = scoring.metrics[0]
    if not ranks_by(metric):
        raise UsageError(
            f"The risk of an answer cannot be told by {metric.name!r}, the main figure of {first.task!r}: it is no "
            "mean of what each answer is worth.",
            hint="Compare the runs by `askance compare`; coverage stands in their figures.",
        )
    shown = names_of(runs) if names is None else names
    several = tuple(
        _risk_of(run, name, scoring, by=by, common=common, seed=seed) for run, name in zip(runs, shown, strict=True)
    )
    clusters = [each.cluster for each in several[0].samples]
    sides = [losses_and_ranks(each.samples) for each in several]
    comparisons = [compare_risk_areas(sides[0], other, clusters, seed=seed) for other in sides[1:]]
    return RiskComparison(metric=metric.name, runs=several, comparisons=holm_adjusted(comparisons))


def _risk_of(
    run: Run, name: str, scoring: Scorer, *, by: ConfidenceSource | None, common: set[str] | None, seed: int
) -> RunRisk:
    metric = scoring.metrics[0]
    draws: dict[str, list[SampleResult]] = {}
    for answer in run.answers:
        if common is None or answer.sample.id in common:
            draws.setdefault(answer.sample.id, []).append(answer)
    source, answers = _with_confidence(run, [*draws.values()], by=by)
    rows = scored_rows(answers, scoring)
    ranked = tuple(ranked_samples(metric, answers, rows))
    if not ranked:
        raise UsageError(
            f"The run {str(run.path)!r} has no samples, or what its answers are worth by {metric.name!r} is no share.",
            hint="Name runs that are finished, of a task whose main figure is an accuracy or the like.",
        )
    given = [each.worth for each in ranked if each.given]
    return RunRisk(
        run=run,
        name=name,
        by=source,
        samples=ranked,
        worth=figure(metric, rows, seed=seed),
        coverage=len(given) / len(ranked),
        among_answered=math.fsum(given) / len(given) if given else None,
        area=risk_area(ranked, seed=seed),
        calibration=tuple(calibration(ranked, seed=seed)),
        curve=risk_coverage_curve(*losses_and_ranks(ranked)),
    )


# --- how sure answers are ---


def says_how_sure(run: Run) -> bool:
    """Whether its samples can be ranked in one of the ways of `SOURCES`."""
    try:
        return bool(_with_confidence(run, [[answer] for answer in run.answers if not answer.epoch], by=None))
    except UsageError:
        return False


def _with_confidence(
    run: Run, draws: Sequence[Sequence[SampleResult]], *, by: ConfidenceSource | None
) -> tuple[ConfidenceSource, list[SampleResult]]:
    """One answer to each sample, with the confidence that it is ranked by.

    Args:
        run: of the draws.
        draws: of each sample its answers, by epoch.
        by: one of `SOURCES`; None takes the first that the run has.

    Raises:
        UsageError: the run has none, or not the one that is asked for.
    """
    for source in SOURCES if by is None else (by,):
        if (answers := _SOURCES[source](run, draws)) is not None:
            return source, answers
    raise UsageError(
        f"Nothing says how sure the answers of the run {str(run.path)!r} are"
        + ("." if by is None else f" by {by!r}: {_LACKS[by]}."),
        hint="Run the task with `--epochs 5`, whose draws agree or not; with a model whose settings have "
        "`logprobs = 0`; or with a solver that says how sure it is.",
    )


def _by_confidence(run: Run, draws: Sequence[Sequence[SampleResult]]) -> list[SampleResult] | None:  # noqa: ARG001
    first = [several[0] for several in draws]
    return first if any(each.prediction.confidence is not None for each in first) else None


def _by_agreement(run: Run, draws: Sequence[Sequence[SampleResult]]) -> list[SampleResult] | None:
    epochs = int(run.configuration["epochs"])
    return [_most_frequent(several, epochs) for several in draws] if epochs > 1 else None


def _most_frequent(draws: Sequence[SampleResult], epochs: int) -> SampleResult:
    """The first draw with the most frequent answer, of those that answer; its confidence is the share of them."""
    texts = [canonical_json(each.prediction.value) if each.prediction.answered else None for each in draws]
    counts = Counter(text for text in texts if text is not None)
    if not counts:
        return draws[0]
    text, count = counts.most_common(1)[0]  # of equally frequent ones the first
    return _sure(draws[texts.index(text)], count / epochs)


def _by_logprob(run: Run, draws: Sequence[Sequence[SampleResult]]) -> list[SampleResult] | None:
    first = [several[0] for several in draws]
    keys = [_key_of_answer(each) for each in first]
    records = run.records.get_all([key for key in keys if key is not None])
    confidences = [_likelihood(records[key].response) if key in records else None for key in keys]
    if all(each is None for each in confidences):
        return None
    return [_sure(answer, confidence) for answer, confidence in zip(first, confidences, strict=True)]


def _key_of_answer(answer: SampleResult) -> str | None:
    """Key of the call whose reply has the answer: the last one of the last link."""
    if not answer.prediction.answered:
        return None
    keys = [str(key) for link in answer.prediction.links.values() for key in link["calls"]]
    return keys[-1] if keys else None


def _likelihood(response: Mapping[str, Any]) -> float | None:
    """The probability of a reply, from the log-probabilities of its tokens; None where they are not on record."""
    tokens = response.get("logprobs")
    return min(1.0, math.exp(math.fsum(float(each["logprob"]) for each in tokens))) if tokens else None


def _sure(answer: SampleResult, confidence: float | None) -> SampleResult:
    return replace(answer, prediction=replace(answer.prediction, confidence=confidence))


_SOURCES: Mapping[ConfidenceSource, Callable[[Run, Sequence[Sequence[SampleResult]]], list[SampleResult] | None]] = {
    "confidence": _by_confidence,
    "agreement": _by_agreement,
    "logprob": _by_logprob,
}
_LACKS: Mapping[ConfidenceSource, str] = {
    "confidence": "its solver does not say",
    "agreement": "each sample has a single draw",
    "logprob": "no log-probabilities of its replies are on record",
}


# --- risks as lines of a table, for terminals and pages ---

HEAD = ("run", "ranked by", "samples", "value", "coverage", "among answered", "area", "95 % interval", "ECE", "Brier")
"""Heads of the table."""
NOTES = (
    "value: the main figure, in %; abstentions and samples without an answer count as wrong",
    "area: mean risk over all coverages, from 0 to 1, less is better; the error rate where confidences tell nothing",
)


def line_of_risk(each: RunRisk) -> tuple[str, ...]:
    """One run as a line of the table, under `HEAD`."""
    by_name = {figure.metric: figure.value for figure in each.calibration}
    interval = each.area.interval
    return (
        each.name,
        each.by,
        f"{len(each.samples):,}",
        shown_value(each.worth.value, percent=True),
        shown_value(each.coverage, percent=True),
        shown_value(each.among_answered, percent=True),
        shown_value(each.area.value, percent=False),
        NONE if interval is None else f"{interval.low:.3f} – {interval.high:.3f}",
        shown_value(by_name.get(CALIBRATION), percent=False),
        shown_value(by_name.get(BRIER), percent=False),
    )
