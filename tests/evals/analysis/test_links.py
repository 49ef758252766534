"""Runs over pictures beside each other, link by link: who says the same, who something else, and who nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from askance.errors import Refused, UsageError
from askance.evals import Run, compare
from askance.evals.report import build_comparison, comparison_page
from tests.evals.numbers import run_of
from tests.evals.pictures import picture_run
from tests.evals.report.runs import HOSTILE, Parsed


@pytest.fixture
def whole(tmp_path: Path) -> Run:
    return picture_run(tmp_path / "whole", tmp_path / "pictures")


@pytest.fixture
def other(tmp_path: Path) -> Run:
    """The same pictures, where scene text is refused and other options are chosen."""
    chosen = {"answers": [3]}
    return picture_run(
        tmp_path / "other", tmp_path / "pictures", scene_text=Refused("no"), choose_action_reasons=chosen
    )


def test_links_are_counted_by_what_they_say(whole: Run, tmp_path: Path) -> None:
    same = picture_run(tmp_path / "same", tmp_path / "pictures")
    narrated = picture_run(tmp_path / "narrated", tmp_path / "pictures", narration={"description": "Another view."})

    found = compare(whole, same, narrated)
    counts = {(each.b, each.link): (each.same, each.other, each.first, each.second) for each in found.links}

    assert (found.metrics, found.of_pictures, found.names) == ((), True, ("whole", "same", "narrated"))
    assert {each for (b, _), each in counts.items() if b == 1} == {(3, 0, 0, 0)}
    assert counts[2, "narration"] == (0, 3, 0, 0)
    assert counts[2, "objects"] == (3, 0, 0, 0)
    assert {name for _, said in found.differing for name in said} == {"narration"}


def test_a_link_that_one_run_alone_says_is_counted_for_it(whole: Run, other: Run) -> None:
    found = compare(whole, other)
    text = next(each for each in found.links if each.link == "scene_text")

    assert (text.same, text.other, text.first, text.second, text.differing) == (0, 0, 3, 0, 3)
    form = found.form()
    assert form["metrics"] == []
    assert [each["image"] for each in form["pictures"]] == [answer.sample.id for answer in whole.answers]
    assert form["pictures"][0]["links"]["scene_text"] == [["A solid start."], None]


def test_every_pair_may_be_compared(whole: Run, other: Run, tmp_path: Path) -> None:
    third = picture_run(tmp_path / "third", tmp_path / "pictures")

    assert {(each.a, each.b) for each in compare(whole, other, third, pairs="all").links} == {(0, 1), (0, 2), (1, 2)}


def test_pictures_that_not_both_have_are_left_out(whole: Run, tmp_path: Path) -> None:
    less = picture_run(tmp_path / "less", tmp_path / "few", count=1)
    (less.path / "samples.jsonl").write_text(
        (less.path / "samples.jsonl").read_text(encoding="utf-8").replace("/few/", "/pictures/"), encoding="utf-8"
    )

    found = compare(whole, Run.open(less.path))

    assert (len(found.common.rows), found.common.alone) == (1, (2, 0))


def test_what_cannot_be_compared_is_told(whole: Run, other: Run, tmp_path: Path) -> None:
    elsewhere = picture_run(tmp_path / "elsewhere", tmp_path / "others", count=1)
    scored = run_of(out=tmp_path / "scored")

    for runs, metric, message in (
        ((whole, other), "accuracy", "have no scores, so that there is no metric 'accuracy'"),
        ((whole, scored), None, "scored' is scored, and '.*whole' is of pictures"),
        ((scored, whole), None, "scored' is scored, and '.*whole' is of pictures"),
        ((whole, elsewhere), None, "have no picture in common"),
        ((whole, whole), None, "is named twice"),
    ):
        with pytest.raises(UsageError, match=message) as caught:
            compare(*runs, metric=metric)
        assert caught.value.hint


def test_the_page_says_what_differs_and_that_no_run_is_better(whole: Run, other: Run) -> None:
    parsed = Parsed(comparison_page(build_comparison(compare(whole, other))))
    index, text = parsed.data("index"), parsed.text

    for words in (
        "3 of 3 pictures are not answered alike",
        "Nobody scores them",
        "link same other A alone B alone",
        "scene text 0 0 3 0",
        "The 3 pictures of which not every link says the same",
    ):
        assert words in text
    assert "Figures" not in text
    assert (index["many"], index["scored"], index["sorts"]) == ("pictures", False, ["order"])
    assert index["rows"][0]["links"]["scene_text"] == [0, 1]
    assert index["rows"][0]["links"]["objects"] == [0, 0]
    assert parsed.samples()[0][0][0]["verbalization"]["scene_text"] == ["A solid start."]


def test_a_notebook_shows_the_links(whole: Run, other: Run) -> None:
    text = Parsed(compare(whole, other)._repr_html_()).text  # pyright: ignore[reportPrivateUsage]  # a notebook's

    assert "scene text 0 0 3 0" in text


def test_what_means_harm_is_text(whole: Run, tmp_path: Path) -> None:
    harm = picture_run(tmp_path / "harm", tmp_path / "pictures", narration={"description": HOSTILE[0]})

    parsed = Parsed(comparison_page(build_comparison(compare(whole, harm))))

    assert not [tag for tag, _ in parsed.elements if tag == "img"]
    assert parsed.code == Parsed(comparison_page(build_comparison(compare(whole, whole.open(harm.path))))).code
