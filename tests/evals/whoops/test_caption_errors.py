"""Errors of captions over triplets: what people call right, which pattern a triplet has, and what is no triplet."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path

import pytest

from askance.chat import ChatRequest
from askance.errors import BadData
from askance.evals import Run, evaluate
from askance.evals.whoops import CaptionErrors
from askance.evals.whoops.caption_errors import KINDS, PATTERNS
from tests.evals.whoops import files, worlds

CAPTION = "A cup on a table."


def run_of(folder: Path, caption: str = CAPTION) -> Run:
    def said(_: ChatRequest) -> object:
        return {"description": caption}

    return evaluate(CaptionErrors(data=folder, vlm=worlds.model(caption=said)))


def labels(rights: Mapping[str, tuple[bool, ...]]) -> dict[str, tuple[str, bool]]:
    return {
        f"{name}#{kind}": (CAPTION, right)
        for name, triplet in rights.items()
        for kind, right in zip(KINDS, triplet, strict=True)
    }


def test_a_triplet_has_the_pattern_of_its_right_captions(tmp_path: Path) -> None:
    names = [f"t{number}" for number in range(8)]
    rights = dict(zip(names, product((True, False), repeat=3), strict=True))
    files.triplets(tmp_path / "triplets", labels(rights), names=names)

    run = run_of(tmp_path)

    assert {name: run.figure(name).value for name in PATTERNS} == dict.fromkeys(PATTERNS, 1 / 8)
    assert [run.figure(f"right captions: {kind}").value for kind in KINDS] == [0.5, 0.5, 0.5]


def test_the_patterns_are_those_of_table_3(tmp_path: Path) -> None:
    rights = {"a": (False, True, True), "b": (False, True, True), "c": (True, True, True), "d": (False, False, True)}
    files.triplets(tmp_path, labels(rights), names=[*rights])

    run = run_of(tmp_path)

    shares = {name: figure.value for name in PATTERNS if (figure := run.figure(name)).value}
    assert shares == {"weird wrong": 0.5, "all right": 0.25, "natural alone right": 0.25}
    assert run.figure("right captions: weird").value == 0.25


def test_a_caption_that_nobody_judged_counts_in_no_figure(tmp_path: Path) -> None:
    rights = {"a": (True, True, True), "b": (False, False, False)}
    files.triplets(tmp_path, {**labels(rights), "b#weird": ("Another caption.", False)}, names=[*rights])

    run = run_of(tmp_path)

    assert run.figure("all right").value == 1.0
    assert run.figure("all wrong").value == 0.0
    assert run.figure("right captions").value == 3 / 5


def test_without_labels_a_run_gives_captions_and_no_figures(tmp_path: Path) -> None:
    files.triplets(tmp_path, {})

    run = run_of(tmp_path)

    assert [answer.prediction.value for answer in run.answers] == [CAPTION] * 6
    assert run.figure("all right").value is None
    assert "People have judged no caption" in " ".join(run.notes)


def test_half_a_triplet_and_a_row_without_a_verdict_are_refused(tmp_path: Path) -> None:
    files.triplets(tmp_path, {})
    (tmp_path / "natural" / "t2.png").unlink()
    with pytest.raises(BadData, match="'t2' has no picture in natural/"):
        run_of(tmp_path)

    files.triplets(tmp_path / "other", {})
    files.write_table(tmp_path / "other" / "labels.csv", [{"id": "t1#weird", "caption": "x", "right": "maybe"}])
    with pytest.raises(BadData, match="line 2: a row has an id, a caption, and true or false"):
        run_of(tmp_path / "other")
    with pytest.raises(BadData, match="it holds no triplet"):
        run_of(tmp_path / "natural")


def test_two_pictures_of_one_name_and_labels_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    files.triplets(tmp_path / "two", {})
    (tmp_path / "two" / "weird" / "t1.jpg").write_bytes((tmp_path / "two" / "weird" / "t1.png").read_bytes())
    with pytest.raises(BadData, match=r"in weird/, 't1\.jpg' and 't1\.png' have one name"):
        run_of(tmp_path / "two")

    files.triplets(tmp_path / "both", {})
    rows = [{"id": "t1#weird", "caption": "x", "right": right} for right in ("true", "yes", "false")]
    files.write_table(tmp_path / "both" / "labels.csv", rows)
    with pytest.raises(BadData, match="line 4: the caption 'x' of 't1#weird' is both right and wrong"):
        run_of(tmp_path / "both")


def test_labels_of_no_picture_are_not_counted_and_are_said(tmp_path: Path) -> None:
    rights = labels({"t1": (True, True, True)})
    files.triplets(tmp_path, {**rights, "t9#weird": (CAPTION, True)})

    notes = " ".join(run_of(tmp_path).notes)

    assert "People have judged 3 captions" in notes
    assert "1 label is of no picture that is there, and left out: t9#weird" in notes
