"""Plots: places on a strip, and the numbers beside them."""

from __future__ import annotations

import pytest

from askance.evals.report.elements import (
    SHARES,
    Bars,
    Curve,
    Curves,
    Dot,
    GridPlot,
    Intervals,
    Plot,
    Scale,
    drawn_across,
    drawn_upward,
    scale_of,
)
from askance.statistics import Interval
from tests.evals.report.runs import Parsed, drawn

DOT = Dot(name="<one>", value=0.5, interval=Interval(low=0.25, high=0.75, method="wilson"), count="9 / 10")


def plotted(plot: Plot) -> Parsed:
    return drawn("plots.html", "plot", plot)


@pytest.mark.parametrize(("value", "place"), [(0.0, "2.00%"), (0.5, "50.00%"), (1.0, "98.00%"), (7.0, "98.00%")])
def test_numbers_have_their_places(value: float, place: str) -> None:
    assert SHARES.at(value) == place


def test_a_scale_fits_what_it_shows() -> None:
    assert scale_of([DOT], percent=True) == SHARES
    worse = Dot(name="worse than chance", value=-0.12, interval=None)
    assert scale_of([DOT, worse], percent=True).low == -1
    assert scale_of([DOT], percent=False) == Scale(low=0.0, high=0.75, percent=False, marks=(0.0, 0.75))
    around = scale_of([DOT], percent=True, around_zero=True)
    assert (around.low, around.high) == pytest.approx((-0.7875, 0.7875))
    assert scale_of([], percent=False) == Scale(low=0.0, high=1.0, percent=False)


def test_an_interval_is_drawn_from_low_to_high_and_written_beside() -> None:
    parsed = plotted(Intervals(title="Scores", dots=[DOT], scale=SHARES, heads=("figure", "%", "n"), note="Mind this."))

    (whisker,) = [each for _, each in parsed.elements if each.get("class") == "whisker"]
    assert (whisker["x1"], whisker["x2"]) == ("26.00%", "74.00%")
    assert "<one> 50.00 25.00 – 75.00 9 / 10" in parsed.text
    assert parsed.text.strip().endswith("Mind this.")


def test_a_figure_without_value_has_no_dot() -> None:
    dot = Dot(name="x", value=None, interval=None)
    parsed = plotted(Intervals(title="Scores", dots=[dot], scale=SHARES, heads=("a", "b", "c")))

    assert not [each for _, each in parsed.elements if each.get("class") in {"dot", "whisker"}]
    assert "x – –" in parsed.text


def test_bars_are_as_long_as_their_share_of_the_longest() -> None:
    parsed = plotted(Bars(title="Errors", counts=[("a", 8), ("b", 2), ("c", 0)], heads=("kind", "times")))

    assert [each["width"] for tag, each in parsed.elements if tag == "rect"] == ["100.00%", "25.00%", "0.00%"]


def test_a_grid_has_its_numbers_and_shades() -> None:
    parsed = plotted(
        GridPlot(
            title="Confusion",
            rows=["<a>", "b"],
            columns=["<a>", "b"],
            cells=[[3.0, 1.0], [0.0, 1234.0]],
            shades=[[0.75, 0.25], [0.0, 1.0]],
            heads=("true", "said"),
        )
    )

    assert [each["width"] for tag, each in parsed.elements if tag == "rect"] == ["21", "7", "0", "28"]
    assert "true ↓ said → <a> b <a> 3 1 b 0 1,234" in parsed.text


def test_places_by_logarithms_are_as_far_apart_as_their_ratio() -> None:
    scale = drawn_across(1000.0, low=1.0, percent=False, log=True)

    assert scale.marks == (1.0, 10.0, 100.0, 1000.0)
    assert [round(scale.share(mark), 6) for mark in scale.marks] == [0.0, round(1 / 3, 6), round(2 / 3, 6), 1.0]


def test_points_below_zero_have_their_place() -> None:
    below = Dot(name="two", value=-0.5, interval=Interval(low=-0.75, high=-0.25, level=0.95, method="wilson"))
    parsed = plotted(
        Curves(
            title="Cost",
            curves=[Curve(name="two", points=[(1.0, below)])],
            across="dollars",
            upward="%",
            over=drawn_across(2.0, percent=False),
            up=drawn_upward([-0.75]),
        )
    )

    dots = [each["cy"] for tag, each in parsed.elements if tag == "circle"]
    assert dots == ["67.25%", "5"]  # the point, and its key in the legend
    (whisker,) = (each for _, each in parsed.elements if (each.get("class") or "").startswith("whisker"))
    assert (whisker["y1"], whisker["y2"]) == ("77.62%", "56.88%")
    assert "-100" in parsed.text
