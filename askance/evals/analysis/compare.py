"""Comparing runs of a task on the same samples: paired tests say which is better, or that they are tied."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from typing import TYPE_CHECKING, Literal

from askance.amounts import many
from askance.chains.link import link_named
from askance.errors import UsageError
from askance.evals.analysis.asked_cost import asked_costs
from askance.evals.analysis.category_wins import CATEGORY, category_wins
from askance.evals.analysis.configuration import difference_rows, differences
from askance.evals.analysis.equal_cost import PricedRun, cost_curve, families_of, mean_dollars
from askance.evals.analysis.gain import PairOfAnswers, looking_gain, looks
from askance.evals.analysis.links import compare_links, differing_links, said_by_links
from askance.evals.analysis.missing_answers import (
    LACKING,
    NoAnswer,
    NoAnswerCounts,
    counts_by_reason,
    in_words,
    lacks_samples,
    no_answer_of,
    way_out,
)
from askance.evals.metric import ends_of_rows, first_columns, stacked
from askance.evals.report.html import render
from askance.evals.run_tables import names_of
from askance.evals.scorer import bounds_of, ends_of
from askance.evals.tables import NONE, shown_value
from askance.evals.task_catalog import task_of
from askance.models import Engine
from askance.statistics import (
    Comparison,
    Verdict,
    compare_paired,
    compare_statistics,
    compare_totals,
    holm_adjusted,
    settled,
)

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.analysis.asked_cost import AskedCost
    from askance.evals.analysis.category_wins import CategoryWins
    from askance.evals.analysis.configuration import ConfigurationDifference, DifferenceRow
    from askance.evals.analysis.equal_cost import CostCurve
    from askance.evals.analysis.gain import LookingGain
    from askance.evals.analysis.links import LinkComparison, SaidByLink
    from askance.evals.metric import Matrix, Metric, MissingAnswerPolicy
    from askance.evals.run import Run
    from askance.evals.sample import Sample, SampleResult, Score
    from askance.evals.scorer import Scorer


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonSamples:
    """The samples that several runs have in common; each epoch of a sample counts as one."""

    rows: tuple[tuple[SampleResult, ...], ...]
    """For each sample the results of all runs, in the order of the runs."""
    alone: tuple[int, ...]
    """By run, how many of its answers are to samples that not all runs have."""
    unlike: int
    """How many samples differ between the runs: another picture, other options, or another target."""

    @property
    def answered(self) -> tuple[int, ...]:
        """By run, how many of the common samples it answered."""
        return tuple(sum(row[place].prediction.answered for row in self.rows) for place in range(len(self.alone)))

    @property
    def by_all(self) -> int:
        """How many of the common samples all runs answered."""
        return sum(all(answer.prediction.answered for answer in row) for row in self.rows)


def common_samples(runs: Sequence[Run]) -> CommonSamples:
    """The results of `runs` for the samples that all of them have, in the order of the samples.

    Raises:
        UsageError: there are fewer than two runs, one is given twice, they are of different tasks, or have no sample in
            common.
    """
    check_runs(runs)
    several = [{(answer.sample.id, answer.epoch): answer for answer in run.answers} for run in runs]
    keys = [key for key in several[0] if all(key in each for each in several)]
    if not keys:
        raise _nothing_common(runs, [set(each) for each in several])
    rows = tuple(tuple(each[key] for each in several) for key in keys)
    return CommonSamples(
        rows=rows, alone=tuple(len(each) - len(rows) for each in several), unlike=sum(map(asked_otherwise, rows))
    )


def asked_otherwise(row: Sequence[SampleResult]) -> bool:
    """Whether the samples of a row are not all equal."""
    first = row[0].sample.question()
    return any(answer.sample.question() != first for answer in row[1:])


def check_runs(runs: Sequence[Run]) -> None:
    """Refuses runs that cannot be held against each other.

    Raises:
        UsageError: there are fewer than two, one is given twice, or they are of different tasks or kinds.
    """
    if len(runs) < 2:
        raise UsageError("A comparison needs at least two runs.", hint="Name another run of the same task.")
    places = [run.path.resolve() for run in runs]
    twice = next((run for number, run in enumerate(runs) if places[number] in places[:number]), None)
    if twice is not None:
        raise UsageError(f"The run {str(twice.path)!r} is named twice.", hint="Name each run once.")
    mixed = next((run for run in runs if run.of_pictures != runs[0].of_pictures), None)
    if mixed is not None:
        scored, pictures = (runs[0], mixed) if mixed.of_pictures else (mixed, runs[0])
        raise UsageError(
            f"The run {str(scored.path)!r} is scored, and {str(pictures.path)!r} is of pictures that nobody scores.",
            hint="Compare runs of one kind; `askance report` takes runs of both.",
        )
    other = next((run for run in runs if run.task != runs[0].task), None)
    if other is not None and not other.of_pictures:  # other chains may read the same pictures
        raise UsageError(
            f"The runs {str(runs[0].path)!r} and {str(other.path)!r} are of different tasks, {runs[0].task!r} and "
            f"{other.task!r}.",
            hint="Compare runs of one task; `askance report` and `askance eval table` take runs of several.",
        )


def _nothing_common(runs: Sequence[Run], keys: Sequence[set[tuple[str, int]]]) -> UsageError:
    empty = next((run for run, own_keys in zip(runs, keys, strict=True) if not own_keys), None)
    if empty is not None:
        return UsageError(
            f"The run {str(empty.path)!r} has no {empty.noun}s yet.", hint="Finish it by the command that began it."
        )
    apart = next(
        (pair for pair in combinations(range(len(runs)), 2) if not keys[pair[0]] & keys[pair[1]]), range(len(runs))
    )
    names = " and ".join(repr(str(runs[place].path)) for place in apart)
    return UsageError(
        f"The runs {names} have no {runs[0].noun} in common.",
        hint="Run all over the same pictures, named in the same way."
        if runs[0].of_pictures
        else "Run all over the same data, or the same `--ids`.",
    )


Pairs = Literal["first", "all"]
"""Which runs are tested against each other: the first against every other, or all pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricComparison:
    """Two runs compared by one metric, the first against the second."""

    a: int
    b: int
    """Places of the two runs in the comparison, from 0."""
    names: tuple[str, str]
    metric: str
    comparison: Comparison
    percent: bool
    cluster: Literal["image", "group"]
    """What samples share that are not independent of each other."""
    by_sample: tuple[int, int, int] | None
    """On how many samples the first is better, worse and equal; None for a metric that single samples do not have."""
    exploratory: bool = False
    """Whether the metric is neither the task's first nor one that was asked for. Then its p is not adjusted."""
    no_answer: tuple[NoAnswerCounts, NoAnswerCounts] = ({}, {})
    """By run, how many samples have no answer, by reason."""
    worst_and_best: tuple[Comparison, ...] = ()
    """The same comparison in the worst and in the best case for the first run: answers that a run lacks are counted
    against it, and for it. Empty where neither run lacks any."""
    worst_and_best_of_unread: tuple[Comparison, ...] = ()
    """The same where replies without an answer are counted so as well; not worked out where `exploratory`."""

    @property
    def verdict(self) -> Verdict:
        """That of the comparison: `undecided` where it is another one in the worst or the best case."""
        return self.comparison.verdict

    @property
    def holds_for_unread(self) -> bool | None:
        """Whether the verdict would stand however replies without an answer are counted; None if that is not known."""
        if not self.worst_and_best_of_unread or self.verdict == "undecided":
            return None
        return all(case.verdict == self.verdict for case in self.worst_and_best_of_unread)

    @property
    def sentence(self) -> str:
        """The verdict in plain words."""
        unit = "%" if self.percent else ""
        if self.verdict == "undecided":
            text = self._undecided()
        else:
            text = self.comparison.sentence(*self.names, self.metric, unit=unit, cluster=self.cluster)
            text += self._either_way()
        return f"Exploratory: {text}" if self.exploratory else text

    def _reasons(self, *, lacking: bool) -> list[str]:
        """Why samples have no answer of the model, or why a reply is none."""
        return [
            words
            for name, counts in zip(self.names, self.no_answer, strict=True)
            for words in in_words(name, {why: n for why, n in counts.items() if (why in LACKING) is lacking})
        ]

    def _undecided(self) -> str:
        worst, best = self.worst_and_best
        one, other = self.names
        return (
            f"Which of {one} and {other} is better on {self.metric} is not decided: "
            f"{', '.join(self._reasons(lacking=True))}. Over {many(worst.n, 'sample')} "
            f"{one} {self._range(worst.figure_a, best.figure_a)}; "
            f"{other} {self._range(best.figure_b, worst.figure_b)}."
        )

    def _range(self, wrong: float | None, right: float | None) -> str:
        """What a run has, by how samples that lack an answer count."""
        least, most = (_with_unit(value, percent=self.percent) for value in (wrong, right))
        if least == most:
            return f"has {least}"
        return f"has {least} if those without an answer are wrong and {most} if they are right"

    def _either_way(self) -> str:
        """What a reader has to know of the samples that the verdict counts as wrong without an answer to them."""
        if self.holds_for_unread is False:
            return f" The verdict rests on how these count: {', '.join(self._reasons(lacking=False))}."
        reasons = self._reasons(lacking=True) if self.worst_and_best else []
        if self.holds_for_unread:
            reasons += self._reasons(lacking=False)
        return f" The verdict holds either way: {', '.join(reasons)}." if reasons else ""

    def _repr_html_(self) -> str:
        return render("notebook.html", task="", parts=(), head=(), rows=(), notes=[self.sentence])

    def form(self) -> JsonObject:
        """The comparison as JSON."""
        counts = None if self.by_sample is None else dict(zip(("better", "worse", "tied"), self.by_sample, strict=True))
        one, other = self.names
        entry = {"metric": self.metric, "a": one, "b": other, "exploratory": self.exploratory, "by_sample": counts}
        return {**entry, **asdict(self.comparison), **self._no_answer_form()}

    def _no_answer_form(self) -> JsonObject:
        sides = dict(zip("ab", self.no_answer, strict=True))
        lacking, unread = (
            {side: {why: n for why, n in counts.items() if (why in LACKING) is kind} for side, counts in sides.items()}
            for kind in (True, False)
        )
        return {
            "lacking": lacking,
            "unread": unread,
            "worst_and_best": [_case_form(case) for case in self.worst_and_best],
            "holds_for_unread": self.holds_for_unread,
        }


def _case_form(case: Comparison) -> JsonObject:
    """What the worst or the best case gives."""
    return {"figure_a": case.figure_a, "figure_b": case.figure_b, "p": case.p, "n": case.n, "verdict": case.verdict}


def _with_unit(value: float | None, *, percent: bool) -> str:
    return f"{shown_value(value, percent=percent)}{' %' if percent else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleValues:
    """What the samples in common are worth by one metric."""

    metric: str
    percent: bool
    higher: bool
    """Whether more is better."""
    values: tuple[tuple[float | None, ...], ...]
    """By sample and run, in the order of the rows in common; None where a sample does not count."""


@dataclass(frozen=True, kw_only=True)
class RunsComparison:
    """Several runs compared on the same samples; iterating gives the comparisons, pair by pair."""

    runs: tuple[Run, ...]
    names: tuple[str, ...]
    common: CommonSamples
    metrics: tuple[MetricComparison, ...]
    pairs: Pairs
    values: SampleValues | None = None
    """By the first metric that single samples have; None without one."""
    task: str | None = None
    """Where the task is defined, if not where the runs say."""
    seed: int = 0
    """Of the resampling."""

    def __iter__(self) -> Iterator[MetricComparison]:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)

    def __repr__(self) -> str:
        samples = many(len(self.common.rows), "common sample")
        return f"RunsComparison({', '.join(self.names)}: {many(len(self.metrics), 'comparison')} over {samples})"

    @property
    def of_pictures(self) -> bool:
        """Whether the runs are over single pictures: they are compared link by link, and by no metric."""
        return self.runs[0].of_pictures

    @property
    def ways_out(self) -> Iterator[str]:
        """Where a verdict is undecided, which commands ask again for what it lacks, a sentence for each run."""
        undecided = [each for each in self.metrics if each.verdict == "undecided"]
        for place, (name, run) in enumerate(zip(self.names, self.runs, strict=True)):
            sides = [each.no_answer[(each.a, each.b).index(place)] for each in undecided if place in (each.a, each.b)]
            if words := way_out(name, run, {reason for counts in sides for reason in counts}):
                yield words

    @cached_property
    def said(self) -> tuple[SaidByLink, ...]:
        """By sample in common, what the links of each run say of it."""
        return tuple(said_by_links(row) for row in self.common.rows)

    @cached_property
    def differing(self) -> tuple[tuple[Sequence[SampleResult], SaidByLink], ...]:
        """The samples of which not all runs say the same, each with those links that differ and that all runs have."""
        each = ((row, differing_links(row, links)) for row, links in zip(self.common.rows, self.said, strict=True))
        return tuple((row, links) for row, links in each if links)

    @cached_property
    def links(self) -> tuple[LinkComparison, ...]:
        """For every pair of runs that is compared, link by link, how often the two say the same."""
        pairs = [(a, b) for a, b in combinations(range(len(self.runs)), 2) if self.pairs == "all" or a == 0]
        return tuple(compare_links(self.said, pairs))

    @cached_property
    def gains(self) -> tuple[LookingGain, ...]:
        """What looking with tools changes, for each pair that is compared and of which one run looks.

        Of two runs that look, the first stands for the one without. Empty also where samples have no worth of 0 to 1.
        """
        pairs = [(a, b) for a, b in combinations(range(len(self.runs)), 2) if self.pairs == "all" or a == 0]
        pairs = [(b, a) if self.looking[a] and not self.looking[b] else (a, b) for a, b in pairs]
        return tuple(self._gain(a, b) for a, b in pairs if self.looking[b] and self._graded)

    def _gain(self, without: int, looking: int) -> LookingGain:
        """What one run that looks changes in the answers of another."""
        values = self.values
        assert values is not None
        pairs: list[PairOfAnswers] = []
        for place, (row, worths) in enumerate(zip(self.common.rows, values.values, strict=True)):
            one, other = worths[without], worths[looking]
            if one is not None and other is not None:
                less, more = (self.costs[run][place].dollars for run in (without, looking))
                dollars = None if less is None or more is None else more - less
                pairs.append(
                    PairOfAnswers(cluster=row[0].sample.cluster, without=one, looking=other, more_dollars=dollars)
                )
        names = self.names[without], self.names[looking]
        return looking_gain(pairs, without=names[0], looking=names[1], metric=values.metric, seed=self.seed)

    @cached_property
    def categories(self) -> CategoryWins | None:
        """Of two runs, who wins in how many categories; None where samples have none, or no worth of their own."""
        values = self.values
        if values is None or len(self.runs) != 2:
            return None
        rows = [
            (row[0].sample.tags.get(CATEGORY), (worths[0], worths[1]))
            for row, worths in zip(self.common.rows, values.values, strict=True)
            if worths[0] is not None and worths[1] is not None
        ]
        names = self.names[0], self.names[1]
        return category_wins(rows, names=names, metric=values.metric, higher=values.higher)

    @cached_property
    def looking(self) -> tuple[bool, ...]:
        """By run, whether any of its answers came about by looking with tools."""
        return tuple(any(looks(row[place]) for row in self.common.rows) for place in range(len(self.runs)))

    @cached_property
    def costs(self) -> tuple[tuple[AskedCost, ...], ...]:
        """By run, what each sample in common cost."""
        return tuple(
            tuple(asked_costs(run, (row[place] for row in self.common.rows))) for place, run in enumerate(self.runs)
        )

    @property
    def _graded(self) -> bool:
        """Whether samples are worth 0 to 1, and more is better."""
        values = self.values
        known = [] if values is None else [worth for row in values.values for worth in row if worth is not None]
        return values is not None and values.higher and all(0 <= worth <= 1 for worth in known)

    @cached_property
    def cost_curve(self) -> CostCurve | None:
        """Quality of the runs against what a sample costs; None where samples have no worth of 0 to 1."""
        values = self.values
        if values is None or not self._graded:
            return None
        counted = [place for place, row in enumerate(values.values) if None not in row]
        runs = [
            PricedRun(
                name=name,
                family=family,
                looks=looking,
                worths=[values.values[place][number] or 0.0 for place in counted],
                dollars=mean_dollars([costs[place].dollars for place in counted]),
                uncached=mean_dollars([costs[place].uncached for place in counted]),
            )
            for number, (name, family, looking, costs) in enumerate(
                zip(self.names, families_of(self.runs, self.looking), self.looking, self.costs, strict=True)
            )
        ]
        clusters = [self.common.rows[place][0].sample.cluster for place in counted]
        return cost_curve(runs, clusters, metric=values.metric, seed=self.seed)

    @cached_property
    def differences(self) -> tuple[ConfigurationDifference, ...]:
        """Where the configurations of the runs differ."""
        return tuple(differences(self.runs))

    @cached_property
    def difference_rows(self) -> tuple[DifferenceRow, ...]:
        """The same as a person reads it: prompts by the words that changed, each difference once."""
        return tuple(difference_rows(self.runs))

    def _repr_html_(self) -> str:
        return render(
            "notebook.html",
            task=self.runs[0].task,
            parts=[(letter(place), name) for place, name in enumerate(self.names)],
            head=link_head(self) if self.of_pictures else HEAD,
            rows=[link_line(self, each) for each in self.links] if self.of_pictures else [*map(line_of, self.metrics)],
            notes=(*counts_of(self), *notes_of_tests(self), *self.ways_out),
        )

    def form(self) -> JsonObject:
        """The comparison as JSON."""
        common = self.common
        return {
            "runs": [
                {"name": name, "folder": run.path.as_posix(), "alone": alone, "answered": answered}
                for name, run, alone, answered in zip(self.names, self.runs, common.alone, common.answered, strict=True)
            ],
            "samples": len(common.rows),
            "answered_by_all": common.by_all,
            "unlike": common.unlike,
            "pairs": self.pairs,
            "metrics": [each.form() for each in self.metrics],
            **self._looking_forms(),
            **({} if self.categories is None else {"categories": self.categories.form()}),
            **({"ways_out": ways} if (ways := [*self.ways_out]) else {}),
            **(self._link_forms() if self.of_pictures else {}),
            "differences": [{"place": each.place, "values": list(each.values)} for each in self.differences],
        }

    def _looking_forms(self) -> JsonObject:
        """Gain, harm and net, and quality against dollars; empty where no run looks with tools."""
        if not any(self.looking):
            return {}
        curve = self.cost_curve
        gains = [each.form() for each in self.gains]
        return {"looking": gains, **({} if curve is None else {"quality_against_dollars": curve.form()})}

    def _link_forms(self) -> JsonObject:
        return {"links": [each.form() for each in self.links], "pictures": [*self._pictures()]}

    def _pictures(self) -> Iterator[JsonObject]:
        """The pictures of which not all runs say the same: by link that differs, what each run says."""
        for row, row_values in self.differing:
            outcomes = [answer.prediction.outcome for answer in row]
            links = {name: list(values) for name, values in row_values.items()}
            yield {"image": row[0].sample.id, "outcomes": outcomes, "links": links}


def compare(
    *runs: Run,
    metric: str | Sequence[str] | None = None,
    pairs: Pairs = "first",
    task: str | None = None,
    convention: MissingAnswerPolicy | None = None,
    seed: int = 0,
) -> RunsComparison:
    """Compares `runs`, two by two, on the samples that all of them have.

    The metrics that are asked for, or else the task's first metric, make one family over all pairs. If it has several
    comparisons, their p is adjusted by Holm's method, which needs no test of all runs at once before. Metrics that
    nobody asked for are exploratory: their p is not adjusted.

    Args:
        runs: two or more runs of one task; the first is the one that the others are compared with.
        metric: one or several names; None takes the task's first metric, and as exploratory ones all others of which
            higher or lower is better.
        pairs: the first run against every other, or all pairs.
        task: where the task is defined, if not where the runs say.
        convention: whether samples without an answer count as wrong; `answered` compares the samples that all runs
            answered. None takes the convention of the first run.
        seed: of the resampling.

    Runs over single pictures have no scores: they are compared picture by picture, link by link (`links`), without a
    metric.

    Raises:
        UsageError: there are fewer than two runs, one is given twice, they are of different tasks or kinds, have no
            sample in common or no scores yet, or there is no such metric.
    """
    common = common_samples(runs)
    if runs[0].of_pictures:
        if metric is not None:
            name = metric if isinstance(metric, str) else next(iter(metric), "")
            raise UsageError(
                f"Runs over pictures have no scores, so that there is no metric {name!r} to compare them by.",
                hint="Leave it out: they are compared link by link.",
            )
        return RunsComparison(runs=runs, names=_names(runs), common=common, metrics=(), pairs=pairs)
    for run in runs:
        check_scores(run)
    engine = Engine(mode="replay", records=runs[0].records)
    scoring = task_of(runs[0], task).of_run(runs[0].configuration["options"], engine=engine).scorer()
    rows = [*_rows(common, scoring, convention or runs[0].convention)]
    counted = [row for row in rows if row.counted]
    chosen, names = _chosen(scoring.metrics, metric, rows), _names(runs)
    main = {each.name for each in (chosen if metric is not None else chosen[:1])}
    compared = [
        _compared(
            each,
            rows,
            (a, b),
            missing=missing,
            names=(names[a], names[b]),
            scoring=scoring,
            exploratory=each.name not in main,
            seed=seed,
        )
        for a, b in combinations(range(len(runs)), 2)
        if pairs == "all" or a == 0
        for missing in [[*_missing((runs[a], runs[b]), scoring)]]
        for each in chosen
    ]
    values = next((_values(each, counted, common) for each in chosen if _by_itself(each)), None)
    metrics = tuple(_settled(_adjusted(compared)))
    return RunsComparison(
        runs=runs, names=names, common=common, metrics=metrics, pairs=pairs, values=values, task=task, seed=seed
    )


def _adjusted(comparisons: Sequence[MetricComparison]) -> Iterator[MetricComparison]:
    """The comparisons with p adjusted for the family of those that are not exploratory, in each case."""
    family = [each for each in comparisons if not each.exploratory]
    if len(family) < 2:
        yield from comparisons
        return
    plain = holm_adjusted([each.comparison for each in family])
    cases = [*zip(*(_adjusted_case(family, place, "worst_and_best") for place in (0, 1)), strict=True)]
    unread = [*zip(*(_adjusted_case(family, place, "worst_and_best_of_unread") for place in (0, 1)), strict=True)]
    adjusted = iter(
        replace(
            each,
            comparison=comparison,
            worst_and_best=of_lacking if each.worst_and_best else (),
            worst_and_best_of_unread=of_unread if each.worst_and_best_of_unread else (),
        )
        for each, comparison, of_lacking, of_unread in zip(family, plain, cases, unread, strict=True)
    )
    yield from (each if each.exploratory else next(adjusted) for each in comparisons)


def _adjusted_case(
    family: Sequence[MetricComparison], place: int, name: Literal["worst_and_best", "worst_and_best_of_unread"]
) -> tuple[Comparison, ...]:
    """The family in the worst (0) or the best case (1) for the first run of each; what nobody lacks counts as it is."""
    cases = [getattr(each, name) for each in family]
    return holm_adjusted([case[place] if case else each.comparison for each, case in zip(family, cases, strict=True)])


def _settled(comparisons: Iterator[MetricComparison]) -> Iterator[MetricComparison]:
    """The comparisons, undecided where the verdict is another one in the worst or the best case."""
    return (replace(each, comparison=settled(each.comparison, each.worst_and_best)) for each in comparisons)


def _names(runs: Sequence[Run]) -> tuple[str, ...]:
    """Names of the runs; their folders if all have one name."""
    folders = tuple(run.path.name for run in runs)
    one_name = len({run.name for run in runs}) == 1 and len({*folders}) == len(runs)
    return folders if one_name else tuple(names_of(runs))


def check_scores(run: Run) -> None:
    """Refuses a run that is not scored yet: its answers would count as wrong.

    Raises:
        UsageError: the run has answers without scores.
    """
    if run.finished is None and any(each.prediction.answered and each.score is None for each in run.answers):
        raise UsageError(
            f"The run {str(run.path)!r} is not finished, and its answers have no scores yet.",
            hint=f"Finish it by the command that began it, or score what is there: `askance eval score {run.path}`.",
        )


@dataclass(frozen=True, slots=True)
class _Row:
    """The scores that every run has for one sample."""

    place: int
    """Among the samples in common; -1 for a sample that is missing from one of two runs."""
    sample: Sample
    scores: tuple[Score, ...]
    """Those of a wrong answer where there is none."""
    no_answer: tuple[NoAnswer | None, ...]
    """By run, why it has no score of its own."""
    counted: bool = True
    """Whether the convention counts it."""


def _rows(common: CommonSamples, scoring: Scorer, convention: MissingAnswerPolicy) -> Iterator[_Row]:
    for place, row in enumerate(common.rows):
        scores = tuple(answer.score or scoring.if_wrong(answer.sample) for answer in row)
        counted = convention == "wrong" or all(answer.score is not None for answer in row)
        yield _Row(place, row[0].sample, scores, tuple(no_answer_of(answer) for answer in row), counted)


def _missing(runs: tuple[Run, Run], scoring: Scorer) -> Iterator[_Row]:
    """The samples of one of two runs that the other was to answer and has not."""
    for lacks, has in (runs, runs[::-1]):
        if not lacks_samples(lacks):
            continue
        places = {(answer.sample.id, answer.epoch) for answer in lacks.answers}
        for answer in has.answers:
            if (answer.sample.id, answer.epoch) not in places:
                wrong = scoring.if_wrong(answer.sample)
                scores = (wrong, answer.score or wrong)
                row = _Row(-1, answer.sample, scores, ("missing", no_answer_of(answer)))
                yield row if lacks is runs[0] else _of_two(row, (1, 0))


def _chosen(metrics: Sequence[Metric], wanted: str | Sequence[str] | None, rows: Sequence[_Row]) -> list[Metric]:
    """The metrics that are asked for, or else all of which higher or lower is better and that any sample has."""
    known = {metric.name: metric for metric in metrics}
    if wanted is None:
        ended = [metric for metric in metrics if metric.better != "neither" and not metric.beside]
        return [metric for metric in ended if any(metric.covers(score) for row in rows for score in row.scores)]
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    for name in names:
        if name not in known:
            raise UsageError(f"The task has no metric {name!r}.", hint=f"It has {', '.join(known)}.")
        if known[name].better == "neither":
            raise UsageError(f"Neither higher nor lower is better for {name!r}.", hint="Leave it out.")
    return [known[name] for name in dict.fromkeys(names)]


def _by_itself(metric: Metric) -> bool:
    """Whether single samples have a value of the metric."""
    return metric.of_sums is None and metric.statistic is None


def _values(metric: Metric, rows: Sequence[_Row], common: CommonSamples) -> SampleValues:
    by_place: list[tuple[float | None, ...]] = [(None,) * len(row) for row in common.rows]
    for row in rows:
        if all(metric.covers(score) for score in row.scores):
            by_place[row.place] = tuple(metric.matrix(row.scores)[:, 0].tolist())
    return SampleValues(
        metric=metric.name, percent=metric.percent, higher=metric.better == "higher", values=tuple(by_place)
    )


def _compared(
    metric: Metric,
    rows: Sequence[_Row],
    places: tuple[int, int],
    *,
    missing: Sequence[_Row],
    names: tuple[str, str],
    scoring: Scorer,
    exploratory: bool,
    seed: int,
) -> MetricComparison:
    every = (*(_of_two(row, places) for row in rows), *missing)
    of_two = [row for row in every if all(map(metric.covers, row.scores))]
    about = [row for row in of_two if row.place >= 0 and row.counted]
    comparison = _tested(metric, about, scoring, seed=seed)
    above, below = comparison.discordant if metric.better == "higher" else comparison.discordant[::-1]
    no_answer = tuple(counts_by_reason([row.no_answer[side] for row in of_two]) for side in (0, 1))
    reasons: set[NoAnswer] = {*no_answer[0], *no_answer[1]}
    lacking, unread = reasons & LACKING, reasons - LACKING
    cases = partial(_worst_and_best, metric, of_two, scoring, seed=seed)
    return MetricComparison(
        a=places[0],
        b=places[1],
        names=names,
        metric=metric.name,
        comparison=comparison,
        percent=metric.percent,
        cluster="image" if all(row.sample.image is not None for row in about) else "group",
        by_sample=(above, below, comparison.n - above - below) if _by_itself(metric) else None,
        exploratory=exploratory,
        no_answer=(no_answer[0], no_answer[1]),
        worst_and_best=cases(counted=lacking) if lacking else (),
        worst_and_best_of_unread=cases(counted=reasons) if unread and not exploratory else (),
    )


def _of_two(row: _Row, places: tuple[int, int]) -> _Row:
    """A row of two of the runs."""
    one, other = places
    why: tuple[NoAnswer | None, ...] = (row.no_answer[one], row.no_answer[other])
    return replace(row, scores=(row.scores[one], row.scores[other]), no_answer=why)


def _worst_and_best(
    metric: Metric, rows: Sequence[_Row], scoring: Scorer, *, counted: Collection[NoAnswer], seed: int
) -> tuple[Comparison, Comparison]:
    """The comparison in the worst and in the best case for the first run.

    Args:
        metric: that is compared.
        rows: of the two runs.
        scoring: of the task.
        counted: reasons for which samples are counted so; others stay as the convention says.
        seed: of the resampling.
    """
    about = [row for row in rows if row.counted or (any(row.no_answer) and {*row.no_answer} <= {*counted, None})]

    def case(*, against: bool) -> Comparison:
        scored = [_counted_so(row, scoring, counted=counted, against=against) for row in about]
        return _tested(metric, [row for row in scored if all(map(metric.covers, row.scores))], scoring, seed=seed)

    return case(against=True), case(against=False)


def _counted_so(row: _Row, scoring: Scorer, *, counted: Collection[NoAnswer], against: bool) -> _Row:
    """A row with samples that lack an answer counted against the first run, or for it."""
    if not any(why in counted for why in row.no_answer):
        return row
    ends = bounds_of(row.sample, scoring)[:: 1 if against else -1]
    scores = tuple(
        end if why in counted else score for score, why, end in zip(row.scores, row.no_answer, ends, strict=True)
    )
    return replace(row, scores=scores)


def _tested(metric: Metric, rows: Sequence[_Row], scoring: Scorer, *, seed: int) -> Comparison:
    """Two runs compared by the scores of rows, which all have the metric."""
    comparison = _compared_by(metric, rows, scoring, seed=seed) if rows else compare_paired([], [], seed=seed)
    return comparison if metric.better == "higher" else comparison.with_lower_better()


def _compared_by(metric: Metric, rows: Sequence[_Row], scoring: Scorer, *, seed: int) -> Comparison:
    """`_tested`, as if higher values were better."""
    one, other = [row.scores[0] for row in rows], [row.scores[1] for row in rows]
    clusters, strata = [row.sample.cluster for row in rows], metric.strata_of(one)
    a, b = metric.matrix(one), metric.matrix(other)
    if metric.of_sums is not None:
        return compare_totals(
            metric.totalled,
            a,
            b,
            seed=seed,
            clusters=clusters,
            strata=strata,
            bounds=partial(_ends, metric, rows, scoring),
        )
    if metric.statistic is None:
        left: list[float] = a[:, 0].tolist()
        right: list[float] = b[:, 0].tolist()
        return compare_paired(
            left,
            right,
            clusters,
            seed=seed,
            strata=strata,
            binary=all(value in {0.0, 1.0} for value in (*left, *right)),
            bounds=lambda: first_columns(_ends(metric, rows, scoring)),
        )
    # Rows are places in a matrix that also holds those of the ends, so that a draw is one step of numpy.
    ends = _ends(metric, rows, scoring)
    whole = stacked(a, b, *(ends or ()))
    places = [range(start * len(rows), (start + 1) * len(rows)) for start in range(4)]
    return compare_statistics(
        lambda drawn: metric.figured(whole[list(drawn)]),
        places[0],
        places[1],
        seed=seed,
        clusters=clusters,
        strata=strata,
        bounds=None if ends is None else lambda: (places[2], places[3]),
    )


def _ends(metric: Metric, rows: Sequence[_Row], scoring: Scorer) -> tuple[Matrix, Matrix] | None:
    """The columns of wrong and of right answers to the samples; None where one of them would lack the metric."""
    return ends_of_rows(metric, [row.scores[0] for row in rows], [ends_of(row.sample, scoring) for row in rows])


# --- a comparison as lines of a table and notes, for terminals, notebooks and pages ---

HEAD = ("figure", "runs", "first", "second", "difference", "95 % interval", "p", "verdict", "better", "worse", "tied")
"""Heads of the table; the last three columns count samples."""

_TESTS: Mapping[str, str] = {
    "mcnemar exact": "Exact McNemar test",
    "sign flip": "Sign-flip test, whole clusters",
    "swap": "Swap test, whole clusters",
}


def link_head(comparison: RunsComparison) -> tuple[str, ...]:
    """Names of the cells of `link_line`; the last four count pictures."""
    if len(comparison.runs) == 2:
        return ("link", "same", "other", "A alone", "B alone")
    return ("link", "runs", "same", "other", "first alone", "second alone")


def link_line(comparison: RunsComparison, each: LinkComparison) -> tuple[str, ...]:
    """One link of two runs, as `link_head` names its cells."""
    pair = () if len(comparison.runs) == 2 else (pair_of(each.a, each.b),)
    counts = (each.same, each.other, each.first, each.second)
    return (link_named(each.link).heading, *pair, *(f"{count:,}" for count in counts))


def letter(place: int) -> str:
    """Letters for a run: A, B, and after Z AA, AB."""
    before, last = divmod(place, 26)
    return (letter(before - 1) if before else "") + chr(ord("A") + last)


def pair_of(a: int, b: int) -> str:
    """Letters for two runs, without a line break."""
    return f"{letter(a)}\u00a0–\u00a0{letter(b)}"


def line_of(each: MetricComparison, *, digits: int | None = None) -> tuple[str, ...]:
    """One comparison as a line of the table, under `HEAD`; figures with so many digits behind the point."""
    comparison = each.comparison
    return (
        each.metric,
        pair_of(each.a, each.b),
        shown_value(comparison.figure_a, percent=each.percent, digits=digits),
        shown_value(comparison.figure_b, percent=each.percent, digits=digits),
        _change(comparison.difference, percent=each.percent, digits=digits),
        _interval(comparison, percent=each.percent, digits=digits),
        shown_p(comparison.p),
        verdict_of(each),
        *((NONE,) * 3 if each.by_sample is None else (f"{count:,}" for count in each.by_sample)),
    )


VERDICT_WORDS: Mapping[str, str] = {"tied": "tied", "undecided": "not decided"}
"""Verdicts by which neither of the two is better."""


def verdict_of(each: MetricComparison) -> str:
    """Which of the two is better."""
    verdict, exploring = each.comparison.verdict, " (exploratory)" if each.exploratory else ""
    if verdict in VERDICT_WORDS:
        return f"{VERDICT_WORDS[verdict]}{exploring}"
    return f"{letter(each.a if verdict == 'better' else each.b)} is better{exploring}"


def shown_p(value: float | None) -> str:
    """A p-value with three places."""
    if value is None:
        return NONE
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def stated_p(value: float | None) -> str:
    """A p-value as it stands in a sentence."""
    shown = shown_p(value)
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"


def counts_of(comparison: RunsComparison) -> Iterator[str]:
    """Which samples are compared, one sentence a line."""
    common, last = comparison.common, len(comparison.runs)
    every = "both" if last == 2 else f"all {last}"
    alone = ", ".join(f"{count:,} more in {letter(place)}" for place, count in enumerate(common.alone))
    yield f"{many(len(common.rows), comparison.runs[0].noun)} in {every}, {alone}"
    answered = ", ".join(f"{count:,} by {letter(place)}" for place, count in enumerate(common.answered))
    yield f"{common.by_all:,} of them answered by {every}, {answered}"
    if common.unlike:
        yield f"{common.unlike:,} of them were not asked the same: another image, other options, another target"


def notes_of_tests(comparison: RunsComparison) -> Iterator[str]:
    """What a reader has to know of the tests, one sentence a line."""
    if len(comparison.runs) > 2 and not comparison.of_pictures:
        pairs = "every two of the runs" if comparison.pairs == "all" else "A against each of the others"
        yield f"Compared: {pairs}, on the samples that all have"
    by_test: dict[str, list[str]] = {}
    for each in comparison.metrics:
        if each.comparison.test != "none" and each.metric not in by_test.setdefault(each.comparison.test, []):
            by_test[each.comparison.test].append(each.metric)
    yield from (f"{_TESTS[test]}: {', '.join(names)}" for test, names in by_test.items())
    yield from notes_of_p(comparison.metrics)
    yield from _reach(comparison)


def notes_of_p(metrics: Sequence[MetricComparison]) -> Iterator[str]:
    """For which comparisons p is adjusted and for which it is not, one sentence a line."""
    family = max((each.comparison.family for each in metrics), default=1)
    if family > 1:
        yield f"p adjusted for {family} comparisons by Holm's method; intervals each for itself"
    exploratory = dict.fromkeys(each.metric for each in metrics if each.exploratory)
    if exploratory:
        yield f"Exploratory, p not adjusted: {', '.join(exploratory)}"


def _reach(comparison: RunsComparison) -> Iterator[str]:
    """For metrics with a tie, the smallest true difference that so many samples would show."""
    tied = [each for each in comparison.metrics if each.comparison.verdict == "tied"]
    by_reach: dict[str, list[str]] = {}
    for metric in dict.fromkeys(each.metric for each in tied):
        several = [each for each in tied if each.metric == metric]
        by_reach.setdefault(_least(several), []).append(metric)
    for least, metrics in by_reach.items():
        words = f"so many samples show true differences of {least} or more in about 80 % of cases"
        none = "these samples show no difference at all, or none below 100 points"
        yield f"Tied on {', '.join(metrics)}: {words if least else none}"


def _least(tied: Sequence[MetricComparison]) -> str:
    """The smallest difference that all of the pairs would show; empty if one of them would show none."""
    detectable = [each.comparison.detectable for each in tied]
    known = [value for value in detectable if value is not None]
    percent = tied[0].percent
    if len(known) < len(detectable) or (percent and max(known) >= 1):
        return ""
    return f"{_change(max(known), percent=percent).removeprefix('+')}{' points' if percent else ''}"


def _change(value: float | None, *, percent: bool, digits: int | None = None) -> str:
    text = shown_value(value, percent=percent, digits=digits)
    return text if text.startswith(("-", NONE)) else f"+{text}"


def _interval(comparison: Comparison, *, percent: bool, digits: int | None = None) -> str:
    if comparison.interval is None:
        return NONE
    ends = (comparison.interval.low, comparison.interval.high)
    low, high = (_change(end, percent=percent, digits=digits) for end in ends)
    return f"{low} – {high}"
