"""A run's figures as a drawing that stands alone: places, words, what others say, what cannot be drawn."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from askance.errors import UsageError
from askance.evals import Figure, Run
from askance.statistics import Interval
from tests.evals.report.runs import HOSTILE, plain_run

SVG = "{http://www.w3.org/2000/svg}"


def figure(metric: str, value: float | None, *, percent: bool = True) -> Figure:
    interval = None if value is None else Interval(low=value / 2, high=value, method="wilson")
    return Figure(
        metric=metric,
        value=value,
        interval=interval,
        convention="wrong",
        samples=12,
        clusters=12,
        answered=10,
        among_answered=value,
        if_wrong=value,
        if_right=value,
        percent=percent,
    )


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return plain_run(tmp_path / "plain")


def drawn(run: Run, *figures: Figure) -> ElementTree.Element:
    return ElementTree.fromstring(run.scored(run.answers, figures).plot().svg)


def places(svg: ElementTree.Element) -> list[str | None]:
    return [each.get("cx") for each in svg.iter(f"{SVG}circle")]


def test_every_figure_has_its_place_its_value_and_its_interval(run: Run) -> None:
    svg = drawn(run, figure("one", 0.5), figure("other", 1.0), figure("none", None))

    assert places(svg) == ["355.0", "500.0"]
    words = [each.text for each in svg.iter(f"{SVG}text")]
    assert words[-13:-1] == [
        *("one", "50.00", "25.00 – 50.00", "10 / 12"),
        *("other", "100.00", "50.00 – 100.00", "10 / 12"),
        *("none", "–", "–", "10 / 12"),
    ]
    assert svg.findtext(f"{SVG}desc") == "one 50.00, 25.00 – 50.00; other 100.00, 50.00 – 100.00; none –"


def test_what_says_something_else_than_how_right_answers_are_is_left_out(run: Run) -> None:
    svg = drawn(run, figure("accuracy", 0.5), figure("error: colour", 0.2), figure("words", 7.0, percent=False))

    assert len(places(svg)) == 1


def test_numbers_that_are_no_shares_are_drawn_where_there_is_nothing_else(run: Run) -> None:
    assert places(drawn(run, figure("words", 7.0, percent=False))) == ["500.0"]


def test_a_notebook_shows_what_is_saved(run: Run, tmp_path: Path) -> None:
    plot = run.plot()
    shown = plot._repr_html_()  # pyright: ignore[reportPrivateUsage]  # the name is that of notebooks

    assert shown == plot._repr_svg_() == plot.svg  # pyright: ignore[reportPrivateUsage]
    assert plot.save(tmp_path / "run.svg").read_text(encoding="utf-8").endswith(f"\n{plot.svg}\n")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_what_means_harm_is_text(run: Run, tmp_path: Path, text: str) -> None:
    plot = run.scored(run.answers, [figure(text, 0.5)]).plot()
    file = plot.save(tmp_path / "run.svg")

    tags = {each.tag.removeprefix(SVG) for each in ElementTree.parse(file).iter()}
    assert tags == {"svg", "title", "desc", "text", "line", "circle"}


def test_what_cannot_be_drawn_is_told(run: Run, tmp_path: Path) -> None:
    mixed = run.scored(run.answers, [figure("a", 0.5), figure("b", 7.0, percent=False)])

    with pytest.raises(UsageError, match=r"^The run '.*' has no figures to draw\."):
        run.scored(run.answers, []).plot()
    with pytest.raises(UsageError, match=r"^Shares and other numbers share no scale\."):
        mixed.plot(["a", "b"])
    with pytest.raises(UsageError, match=r"^A plot is written as SVG, and '.*run\.png' is none\."):
        run.plot().save(tmp_path / "run.png")
