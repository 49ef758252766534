"""What notebooks show: all that matters, small, and nothing that a model, a name or a file says is markup."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Protocol

import pytest
from pydantic import Field

from askance.atypicality import Statement
from askance.evals import Run, Sample, Scorer, Task, compare, evaluate, right_or_wrong
from askance.nodes import Result, given, skipped
from tests.evals.numbers import always_odd, run_of

HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(1)>\u202e&amp;"


class Shown(Protocol):
    """What a notebook shows as HTML."""

    def _repr_html_(self) -> str: ...


class Tags(HTMLParser):
    """Collects the tags and the text of a piece of HTML."""

    def __init__(self, shown: Shown) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(shown._repr_html_())  # pyright: ignore[reportPrivateUsage]  # the name is that of notebooks

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags |= {tag, *(name for name, _ in attrs)}

    def handle_data(self, data: str) -> None:
        self.text += data


class Named(Task):
    """Numbers that are small."""

    name = "tests/html"
    title: str = Field(default="", exclude=True)
    right: int = 3

    def samples(self) -> list[Sample]:
        return [Sample(id=str(number), target=True) for number in range(4)]

    def solver(self) -> Callable[[Sample], bool]:
        return lambda each: int(each.id) < self.right

    def scorer(self) -> Scorer:
        return right_or_wrong()

    def label(self) -> str:
        return self.title


def test_a_run_shows_its_figures(tmp_path: Path) -> None:
    shown = Tags(run_of(always_odd, count=4, out=tmp_path / "run"))

    assert shown.text == (
        "numbers · run · 4 samples: 4 answeredmetricvalue95 % intervalnansweredaccuracy50.0015.00 – 85.0044"
    )


def test_a_run_that_is_not_finished_says_so(tmp_path: Path) -> None:
    run = run_of(always_odd, count=4, out=tmp_path / "run")

    assert Tags(Run(path=run.path, configuration=run.configuration)).text == "numbers · run · not finished"


def test_a_comparison_shows_its_sentence(tmp_path: Path) -> None:
    one, other = (evaluate(Named(right=right), out=tmp_path / str(right)) for right in (4, 0))
    (comparison,) = compare(one, other)

    assert Tags(comparison).text == comparison.sentence


def test_a_comparison_of_several_runs_shows_a_line_for_each_pair(tmp_path: Path) -> None:
    runs = [evaluate(Named(right=right, title=f"{right} right"), out=tmp_path / str(right)) for right in (4, 2, 0)]
    shown = Tags(compare(*runs))

    assert shown.text.startswith("tests/html · A 4 right · B 2 right · C 0 rightfigurerunsfirstsecond")
    assert "accuracyA\u00a0–\u00a0B100.0050.00+50.00" in shown.text
    assert "4 samples in all 3, 0 more in A, 0 more in B, 0 more in C" in shown.text
    assert "p adjusted for 2 comparisons by Holm's method" in shown.text


def test_a_statement_shows_its_relation_and_its_text() -> None:
    statement = Statement("TR1", "cup", "brick")

    assert Tags(statement).text == f"TR1 {statement.text}"


RESULTS: dict[str, tuple[Result[object], str]] = {
    "answered": (given("a cup"), "answered a cup"),
    "skipped": (skipped("no objects"), "skipped no objects"),
    "long": (given("x" * 5000), f"answered {'x' * 1999}…"),
}


@pytest.mark.parametrize(("result", "text"), RESULTS.values(), ids=RESULTS)
def test_a_result_shows_its_outcome_and_what_it_says(result: Result[object], text: str) -> None:
    assert Tags(result).text == text


def test_what_others_say_is_never_markup(tmp_path: Path) -> None:
    run = evaluate(Named(title=HOSTILE), out=tmp_path / "run")
    shown = [
        Tags(run),
        Tags(compare(run, evaluate(Named(title=f"{HOSTILE}2", right=2), out=tmp_path / "other"))),
        Tags(Statement("OR", HOSTILE, HOSTILE)),
        Tags(given(HOSTILE)),
        Tags(skipped(HOSTILE)),
    ]

    assert set[str]().union(*(each.tags for each in shown)) == {
        "p", "b", "bdi", "code", "title", "table", "thead", "tbody", "tr", "th", "td", "br",
    }  # fmt: skip
    assert all("<script>alert(1)</script>" in each.text for each in shown)
