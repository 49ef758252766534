from __future__ import annotations

from typing import Any

from askance.evals.report.elements import Curves
from askance.evals.report.training_page import MOST_POINTS, training_page, training_plots

RECORD: dict[str, Any] = {
    "state": "finished",
    "recipe": {
        "name": "newyorker-clip",
        "title": "CLIP",
        "fields": {"rates": {"value": [1e-3, 1e-4], "by": "paper", "at": "appendix B.2"}},
    },
    "values": {"metric": "accuracy"},
    "base": {"spec": "clip:<b>bold</b>", "digest": "0f3a"},
    "selected": {"rate": 1e-3, "step": 20, "value": 0.91},
    "rates": [
        {"rate": 1e-3, "steps": 40, "step": 20, "value": 0.91},
        {"rate": 1e-4, "steps": 40, "step": 40, "value": 0.5},
    ],
    "seed": 7,
}


def log() -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    for rate in (1e-3, 1e-4):
        for step in range(1, 1_001):
            lines.append({"rate": rate, "step": step, "loss": 2 / step})
            if step % 500 == 0:
                lines.append({"rate": rate, "step": step, "validation": {"loss": 1 / step, "accuracy": step / 2_000}})
    return lines


def test_a_curve_for_each_rate_of_the_loss_and_of_validation() -> None:
    plots = [*training_plots(RECORD, log())]

    assert [plot.title for plot in plots] == ["Loss of training", "Loss of validation", "Validation: accuracy"]
    for plot in plots:
        assert isinstance(plot, Curves)
        assert [curve.name for curve in plot.curves] == ["rate 0.001", "rate 0.0001"]
    loss, _, accuracy = plots
    assert isinstance(loss, Curves)
    assert isinstance(accuracy, Curves)
    assert len(loss.curves[0].line) <= MOST_POINTS
    assert accuracy.curves[0].line == [(500.0, 0.25), (1000.0, 0.5)]


def test_the_page_has_what_decided_the_result_and_trusts_nothing() -> None:
    page = training_page(RECORD, log())

    for text in ("newyorker-clip", "appendix B.2", "0f3a", "0.91", "0.001, 0.0001"):
        assert text in page
    assert "<b>bold</b>" not in page
    assert "under way" not in page


def test_a_training_under_way_and_damaged_lines_are_drawn_as_far_as_they_go() -> None:
    damaged: list[Any] = [
        {"rate": 1e-3, "step": 1, "loss": 2.0},
        {"rate": "x", "step": 2, "loss": 1.0},
        {"rate": 1e-3, "step": 2, "loss": float("nan")},
        {"rate": 1e-3, "step": 3, "validation": "none"},
        {},
    ]

    page = training_page({"state": "training", "rates": [None, 3], "recipe": {"fields": {"x": 3}}}, damaged)

    assert "under way" in page
    assert [*training_plots({}, damaged)][0].title == "Loss of training"  # noqa: RUF015  # the whole list is made
    assert [*training_plots({}, [])] == []
