"""Figures for a paper: their numbers are those of the runs, their text is text, equal runs make equal files."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from PIL import Image
from typing_extensions import override

from askance.errors import MissingExtra, UsageError
from askance.evals import Prediction, Run, Sample, Score, Scorer, evaluate, mean
from askance.evals.report.elements import Curves, Dot, GridPlot, GroupPlot, Intervals, ReliabilityPlot
from askance.evals.report.plot_file import COLUMN, DOTS, save_plots
from askance.evals.report.run_plots import KINDS, PlotKind, pareto_line, plots_of, rank_line
from askance.evals.solver import SolverLike
from tests.evals.report.plotted import LABELS, NAMES, Relations, runs_of
from tests.evals.report.runs import plain_run
from tests.golden.commands import askance

TASK = str(Path(__file__).with_name("plotted.py"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    return runs_of(tmp_path_factory.mktemp("plotted"))


def plots(runs: list[Run], kind: PlotKind, **more: Any) -> list[Any]:
    return plots_of(runs, kind, task=TASK, **more)


# --- the numbers ---


def test_scores_are_the_main_figures_of_the_runs(runs: list[Run]) -> None:
    (plot,) = plots(runs, "score")

    assert isinstance(plot, Intervals)
    assert [(dot.name, dot.value, dot.interval) for dot in plot.dots] == [
        (run.name, run.figure("accuracy").value, run.figure("accuracy").interval) for run in runs
    ]


def test_folds_are_the_figures_of_the_folds_and_then_that_of_all(runs: list[Run]) -> None:
    (plot,) = plots(runs, "fold")

    assert isinstance(plot, GroupPlot)
    assert [name for name, _ in plot.rows] == ["fold 0", "fold 1", "fold 2", "fold 3", "all"]
    for number, run in enumerate(runs):
        values = [dot.value for _, dots in plot.rows if (dot := dots[number]) is not None]
        assert values == [run.figure(f"accuracy: fold {fold}").value for fold in range(4)] + [
            run.figure("accuracy").value
        ]


def test_categories_stand_side_by_side_in_natural_order(runs: list[Run]) -> None:
    (plot,) = plots(runs, "category", only=["topic"])

    assert isinstance(plot, GroupPlot)
    assert [name for name, _ in plot.rows] == ["cars", "food & drink", "politics"]
    right = [answer.score is not None and answer.score.values["accuracy"] for answer in runs[1].answers]
    cars = [
        value for answer, value in zip(runs[1].answers, right, strict=True) if answer.sample.tags["topic"] == "cars"
    ]
    assert plot.rows[0][1][1] is not None
    assert plot.rows[0][1][1].value == pytest.approx(sum(cars) / 20)


def test_cost_is_the_mean_of_a_sample_and_the_line_leaves_out_what_is_dearer_and_no_better(runs: list[Run]) -> None:
    (plot,) = plots(runs, "cost")

    assert isinstance(plot, Curves)
    line, *points = plot.curves
    places = [(cost, dot.value) for curve in points for cost, dot in curve.points]
    assert places == [
        (pytest.approx(cost), run.figure("accuracy").value)
        for cost, run in zip((0.0005, 0.002, 0.03), runs, strict=True)
    ]
    assert [*line.line] == places[:2]  # the dearest is as good as the second


def test_the_line_of_the_best_is_by_rising_cost() -> None:
    def dot(value: float) -> Dot:
        return Dot(name="", value=value, interval=None)

    assert pareto_line([(3.0, dot(0.9)), (1.0, dot(0.5)), (1.0, dot(0.6)), (2.0, dot(0.6))]) == [(1.0, 0.6), (3.0, 0.9)]


def test_confusion_counts_every_answer_once(runs: list[Run]) -> None:
    plot = plots(runs, "confusion")[0]

    assert isinstance(plot, GridPlot)
    assert (plot.rows, plot.columns) == (sorted(LABELS), [*sorted(LABELS), "no answer"])
    assert sum(number or 0 for row in plot.cells for number in row) == 60
    right = sum(plot.cells[place][place] or 0 for place in range(3))
    pooled = runs[0].figure("accuracy, pooled").value
    assert right / 60 == pytest.approx(pooled)


def test_ranks_at_one_are_the_share_of_right_answers(runs: list[Run]) -> None:
    (plot,) = plots(runs, "ranks")

    assert [curve.line[0] for curve in plot.curves] == [
        (1.0, pytest.approx(run.figure("accuracy, pooled").value)) for run in runs
    ]


def test_a_rank_curve_rises_where_true_entries_stand() -> None:
    assert rank_line([1, 3, None, 3], 5) == [(1.0, 0.25), (3.0, 0.75), (5.0, 0.75)]


def test_risk_and_reliability_are_those_of_the_statistics(runs: list[Run]) -> None:
    (risk,), reliability = plots(runs, "risk"), plots(runs, "reliability")

    assert [curve.line[-1] for curve in risk.curves] == [
        (1.0, pytest.approx(1 - (run.figure("accuracy, pooled").value or 0))) for run in runs
    ]
    assert [type(plot) for plot in reliability] == [ReliabilityPlot] * 3
    assert sum(point.count for point in reliability[0].points) == 57  # three have no answer


def test_a_heatmap_has_every_sample(runs: list[Run]) -> None:
    (plot,) = plots(runs, "heatmap")

    assert sorted(plot.rows) == sorted(answer.sample.id for answer in runs[0].answers)
    sums = [sum(cell or 0 for cell in row) for row in plot.cells]
    assert sums == sorted(sums, reverse=True)


# --- the files ---


@pytest.mark.parametrize("kind", KINDS)
def test_names_come_out_as_they_are_as_text(runs: list[Run], kind: PlotKind, tmp_path: Path) -> None:
    file = tmp_path / "fig.svg"
    save_plots(plots(runs, kind), file)

    tree = ElementTree.parse(file)
    text = "".join("".join(each.itertext()) for each in tree.iter("{http://www.w3.org/2000/svg}text"))
    for name in NAMES:
        assert name.replace(" ", "") in text.replace(" ", "")


def test_a_file_is_as_wide_as_one_column_and_equal_runs_make_equal_files(runs: list[Run], tmp_path: Path) -> None:
    for form in ("png", "svg", "pdf"):
        files = [tmp_path / f"{number}.{form}" for number in range(2)]
        for file in files:
            save_plots(plots(runs, "score"), file)
        assert files[0].read_bytes() == files[1].read_bytes()
    with Image.open(tmp_path / "0.png") as picture:
        assert picture.width == round(COLUMN * DOTS)
    pdf = (tmp_path / "0.pdf").read_bytes()
    assert pdf.startswith(b"%PDF-")
    assert b"/FontFile2" in pdf  # TrueType: text stays text
    assert b"/CreationDate" not in pdf
    assert b"<dc:date>" not in (tmp_path / "0.svg").read_bytes()


def test_a_character_that_the_font_lacks_is_told(tmp_path: Path) -> None:
    run = plain_run(tmp_path / "run", label="画像 \x1b[31m")

    (note,) = save_plots(plots_of([run, plain_run(tmp_path / "other", shift=2)], "score"), tmp_path / "fig.svg")
    assert note.startswith("2 characters of names have no glyph")
    assert "画像" in (tmp_path / "fig.svg").read_text(encoding="utf-8")


# --- the command, and what cannot be drawn ---


def test_the_command_writes_the_file_and_prints_a_caption(runs: list[Run], tmp_path: Path) -> None:
    file = tmp_path / "new" / "fig.pdf"
    done = askance("plot", str(runs[0].path.parent), "--kind", "heatmap", "-o", str(file))

    assert done.code == 0
    assert done.out.startswith("Samples by run. Samples that all runs have")
    assert file.is_file()


@pytest.mark.parametrize("kind", ["confusion", "ranks"])
def test_a_run_that_has_none_of_a_kind_is_named(runs: list[Run], tmp_path: Path, kind: PlotKind) -> None:
    class Several(Relations):
        name = "tests/plotted"

        @override
        def samples(self) -> list[Sample]:
            return [replace(sample, target=[*LABELS]) for sample in super().samples()]

        @override
        def solver(self) -> SolverLike:
            return lambda _: Prediction(outcome="answered", value=[*LABELS[:2]], confidence=0.7)

        @override
        def scorer(self) -> Scorer:
            half = Score(values={"accuracy": 0.5})
            metrics = (mean("accuracy"),)
            return Scorer(
                score=lambda sample, value: half,
                metrics=metrics,
                if_wrong=lambda _: half,
                if_right=lambda _: half,
            )

    bare = evaluate(Several(which="bare"), out=tmp_path / "bare")

    *_, last = plots([runs[0], bare], kind)

    assert "Not drawn: bare, since " in last.note
    assert "Not drawn" not in plots(runs[:2], kind)[-1].note


def test_what_cannot_be_drawn_is_told(runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = plain_run(tmp_path / "plain")
    with pytest.raises(UsageError, match=r"^There is nothing to draw as 'ranks': no score says"):
        plots([plain], "ranks")
    with pytest.raises(UsageError, match=r"are of different tasks"):
        plots([plain, runs[0]], "heatmap")
    with pytest.raises(UsageError, match=r"^No tag 'colour' has from two to a few values\."):
        plots([plain], "category", only=["colour"])
    with pytest.raises(UsageError, match=r"^A plot is written as PDF, SVG or PNG, and '.*fig\.gif' is none\."):
        save_plots(plots([plain], "score"), tmp_path / "fig.gif")
    with pytest.raises(UsageError, match=r"^A width of 0 inches is not between 2 and 20\."):
        save_plots(plots([plain], "score"), tmp_path / "fig.svg", width=0)
    done = askance("plot", str(plain.path), "--by", "half", "-o", "fig.svg")
    assert (done.code, done.err.splitlines()[0]) == (2, "askance: `--by` is for `--kind category`.")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"^matplotlib is not installed\."):
        save_plots(plots([plain], "score"), tmp_path / "fig.svg")
