"""Plots of one or several runs, as values: a page draws them as SVG, `askance plot` by matplotlib.

| kind | what is drawn |
|---|---|
| `score` | figures with intervals: of one run all that say how right its answers are, of several the main one of each |
| `category` | the mean by the values of each tag |
| `fold` | the main figure by fold |
| `cost` | the main figure against the dollars of a sample, with the line of runs that no cheaper run equals |
| `risk` | risk by coverage |
| `reliability` | share of right answers by confidence |
| `confusion` | what is true against what was said |
| `ranks` | share of the samples with a true entry among the first so many |
| `heatmap` | what each sample is worth in each run |

Every number is one of the runs' figures, or made from their lines by the function that a page uses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from askance.errors import UsageError
from askance.evals.analysis.compare import check_runs, common_samples, letter
from askance.evals.analysis.equal_cost import mean_dollars
from askance.evals.analysis.risk import compare_risks
from askance.evals.report.elements import (
    MOST_FIGURES,
    Bars,
    Curve,
    Curves,
    Dot,
    GridPlot,
    GroupPlot,
    Intervals,
    Plot,
    dot_of,
    drawn_across,
    drawn_upward,
    ends_of,
    scale_of,
    score_dots,
)
from askance.evals.report.looking_part import plots_of_confidence, reliability_plots, risk_plot
from askance.evals.report.run_part import (
    RunPart,
    by_task,
    natural,
    options_of,
    part_of,
    places_in,
    plain,
    true_places,
    worth_of,
)
from askance.evals.run_tables import names_of

if TYPE_CHECKING:
    from askance.evals.metric import Figure
    from askance.evals.report.run_part import Breakdown
    from askance.evals.run import Run
    from askance.evals.sample import Sample, SampleResult

PlotKind = Literal["score", "category", "fold", "cost", "risk", "reliability", "confusion", "ranks", "heatmap"]
KINDS: tuple[PlotKind, ...] = get_args(PlotKind)

MOST_LABELS = 10
"""Most labels of a confusion matrix."""
NO_ANSWER = "no answer"
_DECADES = 20.0
"""How often the dearest run must cost the cheapest for the scale of dollars to go by logarithms."""


def plots_of(runs: Sequence[Run], kind: PlotKind, *, only: Sequence[str] = (), task: str | None = None) -> list[Plot]:
    """The plots of one kind, all runs together.

    Args:
        runs: finished, for `score` and `cost` of any tasks, else of one.
        kind: what is drawn.
        only: for `category` the names of tags, for `score`, `fold` and `cost` those of figures; by default all tags of
            few values, and the main figures.
        task: for `risk` and `reliability` where the task is defined, if not where the runs say.

    Raises:
        UsageError: the runs have nothing of the kind, or no such figure or tag; or are not of one task.
    """
    _check(runs, kind)
    if kind in {"risk", "reliability"}:
        risks = compare_risks(*runs, task=task).runs
        plots: list[Plot] = [risk_plot(risks)] if kind == "risk" else [*reliability_plots(risks)]
        left_out: list[str] = []  # a run without confidences is refused
    else:
        parts = [part_of(run, name=name) for run, name in zip(runs, names_of(runs), strict=True)]
        plots = [*_MAKERS[kind](parts, only)]
        each_has_own = kind in {"confusion", "ranks"}
        left_out = [part.name for part in parts if each_has_own and not any(_MAKERS[kind]([part], only))]
    if not plots:
        raise UsageError(f"There is nothing to draw as {kind!r}: {_NEEDS[kind]}", hint="Draw `--kind score`.")
    if left_out:
        note = f"Not drawn: {', '.join(left_out)}, since {_NEEDS[kind]}"
        plots[-1] = replace(plots[-1], note=" ".join(filter(None, (plots[-1].note, note))))
    return plots


def _check(runs: Sequence[Run], kind: PlotKind) -> None:
    if not runs:
        raise UsageError("A plot is of at least one run.", hint="Name the folder of a run.")
    for run in runs:
        if run.of_pictures:
            raise UsageError(
                f"The run {str(run.path)!r} is of pictures that nobody scores.", hint="Name runs of `askance eval run`."
            )
    if kind not in {"score", "cost"} and len(runs) > 1:
        check_runs(runs)


_NEEDS: Mapping[PlotKind, str] = {
    "score": "no run has a figure. Is it finished?",
    "category": "no tag of the samples has from two to a few values.",
    "fold": "the runs have no figures by fold.",
    "cost": "the main figure of each run must be a share, and what a sample costs must be known.",
    "risk": "nothing says how sure the answers are.",
    "reliability": "no answers that are right or wrong have a confidence.",
    "confusion": f"each sample must have one true label, of at most {MOST_LABELS} in all.",
    "ranks": "no score says which ranks the true entries have.",
    "heatmap": "no sample has a value of its own.",
}


def plots_of_runs(parts: Sequence[RunPart]) -> Iterator[Plot]:
    """The plots of a page about runs, in its order."""
    yield from _scores(parts)
    for part in parts:
        prefix = _prefix(part, parts)
        if part.kinds:
            yield Bars(title=f"{prefix}Errors by kind", counts=list(part.kinds.items()), heads=("kind", "times"))
        yield from _confusion(part, prefix)
        yield from plots_of_confidence(part, prefix)
        if len(part.outcomes) > 1:
            yield Bars(
                title=f"{prefix}Outcomes", counts=list(part.outcomes.items()), heads=("outcome", f"{part.run.noun}s")
            )
    tasks = by_task(parts)
    for task, several in tasks.items():
        for plot in _categories(several, ()):
            yield replace(plot, title=f"{plot.title} ({task})") if len(tasks) > 1 else plot
    yield from _ranks(parts)
    if len(parts) > 1:
        yield from cost_plots(parts)


def _prefix(part: RunPart, parts: Sequence[RunPart]) -> str:
    return f"{part.name}: " if len(parts) > 1 else ""


# --- figures with intervals ---


def _scores(parts: Sequence[RunPart], metrics: Sequence[str] = ()) -> Iterator[Plot]:
    yield from _scores_of_runs(parts, metrics) if len(parts) > 1 else _scores_of(parts[0], metrics)


def _scores_of(part: RunPart, metrics: Sequence[str]) -> Iterator[Plot]:
    figures = [part.run.figure(name) for name in metrics] or part.run.figures
    dots = score_dots(figures)
    if dots:
        yield Intervals(
            title="Scores with intervals",
            dots=dots[:MOST_FIGURES],
            scale=scale_of(dots[:MOST_FIGURES], percent=True),
            heads=("figure", "%", "answered / samples"),
            note=f"The first {MOST_FIGURES} of {len(dots)} figures." if len(dots) > MOST_FIGURES else "",
        )
    for figure in figures if metrics else ():
        if not figure.percent:
            yield _scores_plot(part.run.task, figure.metric, [(part.name, figure)])


def _scores_of_runs(parts: Sequence[RunPart], metrics: Sequence[str]) -> Iterator[Plot]:
    """For each task its main figure, or those that are asked for, run by run."""
    by_metric: dict[tuple[str, str], list[tuple[str, Figure]]] = {}
    for part in parts:
        for figure in [part.run.figure(name) for name in metrics] or part.run.figures[:1]:
            by_metric.setdefault((part.run.task, figure.metric), []).append((part.name, figure))
    yield from (_scores_plot(task, metric, named) for (task, metric), named in by_metric.items())


def _scores_plot(task: str, metric: str, named: Sequence[tuple[str, Figure]]) -> Plot:
    dots = [dot_of(name, figure) for name, figure in named]
    scale = scale_of(dots, percent=named[0][1].percent)
    heads = ("run", "%" if scale.percent else metric, "answered / samples")
    return Intervals(title=f"{metric} ({task})", dots=dots, scale=scale, heads=heads)


def _categories(parts: Sequence[RunPart], tags: Sequence[str]) -> Iterator[Plot]:
    """By tag the mean of each value, runs side by side."""
    names = dict.fromkeys(breakdown.name for part in parts for breakdown in part.breakdowns)
    unknown = next((tag for tag in tags if tag not in names), None)
    if unknown is not None:
        raise UsageError(
            f"No tag {unknown!r} has from two to a few values.", hint=f"There are: {', '.join(names) or 'none'}."
        )
    for name in tags or names:
        own = [(part, each) for part in parts for each in part.breakdowns if each.name == name]
        if len(parts) == 1:
            yield _breakdown(own[0][1], own[0][0])
            continue
        dots = {part.name: {dot.name: dot for dot in _dots_of(breakdown)} for part, breakdown in own}
        yield _grouped(
            f"{own[0][0].column} by {name}",
            parts,
            dots,
            rows=natural({row for each in dots.values() for row in each}),
            heads=(name, "%" if all(part.share for part, _ in own) else "mean"),
            note=_note([(part.name, breakdown.note) for part, breakdown in own]),
        )


def _breakdown(breakdown: Breakdown, part: RunPart) -> Plot:
    dots = _dots_of(breakdown)
    scale = scale_of(dots, percent=part.share)
    return Intervals(
        title=f"{part.column} by {breakdown.name}",
        dots=dots,
        scale=scale,
        heads=(breakdown.name, "%" if scale.percent else "mean", "answered / samples"),
        note=_sentence(breakdown.note),
    )


def _dots_of(breakdown: Breakdown) -> list[Dot]:
    return [
        Dot(name=each.name, value=each.value, interval=each.interval, count=f"{each.answered:,} / {each.samples:,}")
        for each in breakdown.shares
    ]


def _note(notes: Sequence[tuple[str, str]]) -> str:
    """The notes of runs, each run named where they differ."""
    differ = len({note for _, note in notes}) > 1
    return " ".join(f"{name}: {note}." for name, note in notes) if differ else _sentence(notes[0][1])


def _sentence(note: str) -> str:
    return f"{note[:1].upper()}{note[1:]}."


def _grouped(
    title: str,
    parts: Sequence[RunPart],
    dots: Mapping[str, Mapping[str, Dot]],
    *,
    rows: Sequence[str],
    heads: tuple[str, str],
    note: str = "",
) -> Plot:
    names = [part.name for part in parts]
    every = [dot for of_run in dots.values() for dot in of_run.values()]
    return GroupPlot(
        title=title,
        names=names,
        rows=[(row, [dots.get(name, {}).get(row) for name in names]) for row in rows],
        scale=scale_of(every, percent=heads[1] == "%"),
        heads=heads,
        note=note,
    )


_FOLD = re.compile(r": ((?:fold|chunk|split) \d+)$")


def _folds(parts: Sequence[RunPart], metrics: Sequence[str]) -> Iterator[Plot]:
    """The main figure of each fold, and over all."""
    for metric in metrics or [*dict.fromkeys(figure.metric for part in parts for figure in part.run.figures[:1])]:
        dots: dict[str, dict[str, Dot]] = {}
        for part in parts:
            figures = {figure.metric: figure for figure in part.run.figures}
            folds = {
                found[1]: each
                for name, each in figures.items()
                if name.startswith(f"{metric}: ") and (found := _FOLD.search(name))
            }
            if folds:
                dots[part.name] = {name: dot_of(name, each) for name, each in {**folds, "all": figures[metric]}.items()}
        rows = [*natural({row for each in dots.values() for row in each} - {"all"}), "all"]
        percent = all(part.run.figure(metric).percent for part in parts if part.name in dots)
        if dots:
            yield _grouped(f"{metric} by fold", parts, dots, rows=rows, heads=("fold", "%" if percent else metric))


# --- quality against dollars ---


def cost_plots(parts: Sequence[RunPart], metrics: Sequence[str] = ()) -> Iterator[Plot]:
    """For each task its main figure, where it is a share, against the dollars of a sample, as its calls were asked.

    Runs whose cost is not known are named in the note. No plot where no run cost anything.
    """
    by_figure: dict[tuple[str, str], list[tuple[RunPart, Figure]]] = {}
    for part in parts:
        for figure in [part.run.figure(name) for name in metrics] or part.run.figures[:1]:
            if figure.percent and figure.value is not None:
                by_figure.setdefault((part.run.task, figure.metric), []).append((part, figure))
    dollars = {part.name: mean_dollars([each.dollars for each in part.asked_costs]) for part in parts}
    place = {part.name: number for number, part in enumerate(parts)}
    for (task, metric), several in by_figure.items():
        points = [
            (cost, replace(dot_of(part.name, each), count=letter(place[part.name])))
            for part, each in several
            if (cost := dollars[part.name]) is not None
        ]
        unpriced = [part.name for part, _ in several if dollars[part.name] is None]
        if points and any(cost for cost, _ in points):
            lacking = f" What is not known: the cost of {', '.join(unpriced)}." if unpriced else ""
            plot = _cost_plot(points, title=f"Cost against score ({task})", metric=metric)
            yield replace(plot, note=f"{plot.note}{lacking}")


def _cost_plot(points: Sequence[tuple[float, Dot]], *, title: str, metric: str) -> Plot:
    costs = [cost for cost, _ in points]
    low, high = min(costs), max(costs)
    by_decades = low > 0 and high / low >= _DECADES
    ends = [end for _, dot in points for end in ends_of(dot)]
    return Curves(
        title=title,
        curves=[
            Curve(name="no cheaper run is as good", line=pareto_line(points)),
            *(Curve(name=dot.name, points=[(cost, dot)]) for cost, dot in points),
        ],
        across="US dollars a sample",
        upward=f"{metric}, in %",
        over=drawn_across(high * 1.6, low=low / 1.6, percent=False, log=True)
        if by_decades
        else drawn_across(1.05 * high, percent=False),
        up=drawn_upward(ends),
        named=True,
        note="Dollars are the mean of a sample at list price as asked: calls that were on record are counted, too.",
    )


def pareto_line(points: Sequence[tuple[float, Dot]]) -> list[tuple[float, float]]:
    """The places of the runs that are better than all that cost less or as much, by rising cost."""
    line: list[tuple[float, float]] = []
    known = ((cost, dot.value) for cost, dot in points if dot.value is not None)
    for cost, value in sorted(known, key=lambda each: (each[0], -each[1])):
        if not line or value > line[-1][1]:
            line.append((cost, value))
    return line


# --- confusion ---


def _confusion(part: RunPart, prefix: str) -> Iterator[Plot]:
    """What was said of the samples of each label; none where samples have no single label, or too many labels."""
    truths = [_label(answer.sample) for answer in part.answers]
    said = [_said(answer) for answer in part.answers]
    pairs = Counter((truth, each) for truth, each in zip(truths, said, strict=True) if truth is not None)
    labels = dict.fromkeys(sorted({truth for truth, _ in pairs}))
    others = dict.fromkeys(sorted({each for _, each in pairs} - {*labels, NO_ANSWER}))
    if not 1 < len(labels) + len(others) <= MOST_LABELS or len(labels) < 2:
        return
    columns = [*labels, *others, *([NO_ANSWER] if any(each == NO_ANSWER for _, each in pairs) else [])]
    cells = [[float(pairs[truth, each]) for each in columns] for truth in labels]
    left = len(part.answers) - sum(pairs.values())
    yield GridPlot(
        title=f"{prefix}Confusion",
        rows=[*labels],
        columns=columns,
        cells=cells,
        shades=[[cell / max(sum(row), 1.0) for cell in row] for row in cells],
        heads=("true", "said"),
        note="Counts of answers; shades and bars are shares of a row."
        + (f" Left out: {left:,} of more than one label, or of none." if left else ""),
    )


def _label(sample: Sample) -> str | None:
    """The one label that is true of a sample; None where there are several, or none."""
    options = options_of(sample)
    target: Any = sample.target
    places = true_places(sample, options)
    if places is not None:
        return options[places[0] - 1] if len(places) == 1 else None
    return _one(cast("dict[str, Any]", target).get("labels") if isinstance(target, dict) else target)


def _one(value: Any) -> str | None:
    if isinstance(value, list):
        several = cast("list[Any]", value)
        return _one(several[0]) if len(several) == 1 else None
    return plain(value) if isinstance(value, (str, bool, int)) and len(str(value)) <= 60 else None


def _said(answer: SampleResult) -> str:
    if not answer.prediction.answered or answer.prediction.abstained:
        return NO_ANSWER
    options = options_of(answer.sample)
    places = places_in(answer.prediction.value, options)
    if places is not None and len(places) == 1:
        return options[places[0] - 1]
    return _one(answer.prediction.value) or "something else"


# --- ranks ---


def _ranks(parts: Sequence[RunPart]) -> Iterator[Plot]:
    """The rank curves of the runs that rank."""
    ranks = {part.name: [rank for answer in part.answers for rank in _first_rank(answer)] for part in parts}
    named = {name: own for name, own in ranks.items() if any(rank is not None for rank in own)}
    if named:
        yield _rank_plot(named)


def _first_rank(answer: SampleResult) -> Iterator[int | None]:
    noted: Any = None if answer.score is None else answer.score.notes.get("ranks")
    if isinstance(noted, dict):
        ranks = [each for each in cast("dict[str, Any]", noted).values() if isinstance(each, int)]
        yield min(ranks, default=None)
    elif not answer.prediction.answered:
        yield None


def _rank_plot(named: Mapping[str, Sequence[int | None]]) -> Plot:
    last = max(rank for ranks in named.values() for rank in ranks if rank is not None)
    return Curves(
        title="Ranks",
        curves=[Curve(name=name, line=rank_line(ranks, last)) for name, ranks in named.items()],
        across="k: first entries of a ranking",
        upward="samples with a true entry among the first k, in %",
        over=drawn_across(float(max(last, 2)), low=1.0, percent=False, log=True),
        up=drawn_upward([1.0]),
        note="Samples without an answer count as not found.",
    )


def rank_line(ranks: Sequence[int | None], last: int) -> list[tuple[float, float]]:
    """By k the share of samples whose rank is at most k: at 1, where it changes, and at the last rank.

    Args:
        ranks: of each sample that of its first true entry, from 1; None where none was found.
        last: the k that the line ends at.
    """
    counts, found = Counter(ranks), 0
    line: list[tuple[float, float]] = []
    for k in sorted({1, last, *(rank for rank in counts if rank is not None)}):
        found += counts[k]
        line.append((float(k), found / len(ranks)))
    return line


# --- samples × runs ---


def _heatmap(parts: Sequence[RunPart]) -> Iterator[Plot]:
    """What each sample is worth in each run, the samples that all runs answer best first."""
    if any(part.column is None or not part.share for part in parts):
        return
    rows = (
        common_samples([part.run for part in parts]).rows if len(parts) > 1 else [(each,) for each in parts[0].answers]
    )
    worths = [[worth_of(answer, part.column) for answer, part in zip(row, parts, strict=True)] for row in rows]
    ids = [row[0].sample.id for row in rows]
    epochs = len(set(ids)) < len(ids)
    named = [f"{row[0].sample.id} ({row[0].epoch})" if epochs else row[0].sample.id for row in rows]
    order = sorted(
        range(len(rows)), key=lambda place: (-sum(worth or 0.0 for worth in worths[place]), None in worths[place])
    )
    column = dict.fromkeys(part.column for part in parts)
    yield GridPlot(
        title="Samples by run",
        rows=[named[place] for place in order],
        columns=[part.name for part in parts],
        cells=[worths[place] for place in order],
        shades=[worths[place] for place in order],
        heads=(f"{len(rows):,} samples", "run"),
        legend=f"{', '.join(str(each) for each in column)} of a sample, in %",
        note="Samples that all runs have, the ones with the highest mean first; those without a score are crossed out.",
    )


_MAKERS: Mapping[str, Callable[[Sequence[RunPart], Sequence[str]], Iterator[Plot]]] = {
    "score": _scores,
    "category": _categories,
    "fold": _folds,
    "cost": cost_plots,
    "confusion": lambda parts, _: (plot for part in parts for plot in _confusion(part, _prefix(part, parts))),
    "ranks": lambda parts, _: _ranks(parts),
    "heatmap": lambda parts, _: _heatmap(parts),
}
"""By kind what makes the plots, from the runs and the names of the figures or tags that are drawn."""
