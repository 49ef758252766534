"""What `askance data check sherlock` says of a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from askance.evals.sherlock import CorpusReport, SherlockReport, check
from askance.evals.suite import Counted
from tests.evals.sherlock import corpus
from tests.evals.sherlock.corpus import CORPUS, PROPOSALS, SCENES, Row

REAL = Path(os.environ.get("ASKANCE_TEST_SHERLOCK", ""))
REAL_FILE = "sherlock_val_with_split_idxs_v1_1.json.zip"


def of(report: SherlockReport) -> CorpusReport:
    """What is said of the validation corpus."""
    assert report.corpus is not None
    return report.corpus


def test_a_whole_folder_is_counted(tmp_path: Path) -> None:
    report = check(corpus.write(tmp_path))
    found = of(report)

    assert report.problems == ()
    assert report.files == (f"{CORPUS}.zip:{CORPUS}", f"{PROPOSALS}.zip:{PROPOSALS}")
    assert {name: count.found for name, count in found.counts.items()} == {
        "instances": 13,
        "instances of VG": 8,
        "instances of VCR": 5,
        "images": 5,
        "images of VG": 3,
        "images of VCR": 2,
        "pictures of VG": 3,
        "pictures of VCR": 2,
        "images with proposals": 5,
    }
    assert {words: count.found for words, count in found.confidence.items()} == {
        "possibly": 3,
        "likely": 6,
        "definitely": 4,
    }
    assert found.chunks == {0: Counted(found=7, published=983), 1: Counted(found=6, published=992)}
    assert report.pairs == {
        f"{split}_{name}": count
        for split in ("test", "val")
        for name, count in {"comparison": 12, "localization": 96, "retrieval_0": 49, "retrieval_1": 36}.items()
    }
    assert check(tmp_path, all_pairs=True) == report


def test_what_limits_the_figures_is_counted(tmp_path: Path) -> None:
    corpus.write_json(tmp_path / CORPUS, corpus.rows())
    found = of(check(tmp_path))

    assert (found.boxes, found.clipped) == (14, 1)
    assert (found.twins, found.twins_of_image) == (2, 1)
    assert found.doubled == (SCENES[2].url,)
    assert found.shared_chunks == 4
    assert (found.off_centre, found.long, found.between) == (2, {"VG": 0, "VCR": 1}, 1)
    assert found.ceiling == pytest.approx(100 * (5 / 7 + 4 / 6) / 2)
    assert found.chance == pytest.approx(100 * (3 / 3 + 2 / 2) / 5)


def test_what_is_not_there_is_a_note_and_no_problem(tmp_path: Path) -> None:
    corpus.write_json(tmp_path / CORPUS, corpus.rows())
    report = check(tmp_path)

    assert report.sound
    assert [note.partition(":")[0].partition(",")[0] for note in report.notes[:3]] == [
        "There are no pictures",
        "There are no boxes of a detector",
        "There are no ratings",
    ]
    assert "Of the 23 chunks 23 are missing or have another size" in report.notes[-1]


def test_a_folder_with_the_leaderboard_alone_is_sound(tmp_path: Path) -> None:
    corpus.write_leaderboard(tmp_path, "test")
    report = check(tmp_path)

    assert (report.sound, report.corpus, report.files) == (True, None, ())
    assert report.notes[0].startswith("There is no validation corpus")
    assert report.notes[-1] == (
        "Parts of the leaderboard with another number of pairs than published: test_comparison has 12 and not 4,719, "
        "test_localization has 96 and not 2,365,256, test_retrieval_0 has 49 and not 1,000,000 …."
    )


def test_training_is_counted_beside(tmp_path: Path) -> None:
    rows = [{name: value for name, value in row.items() if name != "split_idx"} for row in corpus.rows()]
    corpus.write_json(tmp_path / "sherlock_train_v1_1.json", rows)
    assert check(tmp_path).training == 13

    corpus.write_json(tmp_path / CORPUS, rows)
    both = check(tmp_path)

    assert (both.training, of(both).chunks, of(both).ceiling) == (13, {}, None)
    assert both.notes[-1].startswith("The corpus has no chunks")


def test_every_bad_row_is_a_problem_and_the_rest_is_counted(tmp_path: Path) -> None:
    rows: list[Row] = json.loads(json.dumps(corpus.rows()))
    rows[0]["inputs"]["bboxes"] = []
    rows[4]["instance_id"] = "0" * 32
    rows[5]["inputs"]["bboxes"][0]["left"] = 600
    rows[5] = corpus.sealed(rows[5]["inputs"], rows[5]["targets"]["inference"], 0)
    corpus.write_json(tmp_path / CORPUS, [*rows, rows[1]])
    report = check(tmp_path)

    assert not report.sound
    assert [problem.partition(", ")[2].partition(":")[0] for problem in report.problems] == [
        "item 0",
        "item 4",
        "item 5",
        "item 13",
    ]
    assert of(report).counts["instances"].found == 10


def test_pictures_that_are_missing_broken_or_of_another_size_are_problems(tmp_path: Path) -> None:
    images = corpus.write(tmp_path) / "images"
    (images / SCENES[0].path).unlink()
    (images / SCENES[1].path).write_bytes(b"no picture")
    Pillow.new("RGB", (30, 20)).save(images / SCENES[4].path)
    report = check(tmp_path)

    assert of(report).counts["pictures of VG"].found == 2
    assert report.problems[0] == f"1 image has no picture: {SCENES[0].url}."
    assert "102.jpg" in report.problems[1]
    assert report.problems[2] == (
        f"1 picture has another size than the corpus says, so that boxes lie elsewhere: {SCENES[4].url}; the first "
        "should have 60×40 pixels."
    )


def test_a_picture_that_exif_turns_has_the_size_of_its_pixels(tmp_path: Path) -> None:
    images = corpus.write(tmp_path) / "images"
    exif = Pillow.Exif()
    exif[0x0112] = 6
    Pillow.new("RGB", SCENES[0].size).save(images / SCENES[0].path, exif=exif)

    assert check(tmp_path).sound


BROKEN: dict[str, tuple[str, Callable[[Any], object], str]] = {
    "comparison": ("comparison_answer_key", lambda key: key["test_id_map"].clear(), "lacks the 'test_id'"),
    "retrieval": ("retrieval_0_instances", lambda rows: rows[7].update(region=[]), "item 7: the region has no box"),
    "localization": ("localization_instances", lambda rows: rows.pop(), "has 96 ids, and there are 95 instances"),
}


@pytest.mark.parametrize(("file", "change", "why"), BROKEN.values(), ids=BROKEN)
def test_pairs_that_do_not_fit_are_problems(
    file: str, change: Callable[[Any], object], why: str, tmp_path: Path
) -> None:
    home = corpus.write(tmp_path) / "leaderboard_eval" / f"val_{file.partition('_')[0]}" / f"val_{file}.json"
    content = json.loads(home.read_text(encoding="utf-8"))
    change(content)
    home.write_text(json.dumps(content), encoding="utf-8")

    (problem,) = check(tmp_path, all_pairs=True).problems
    assert why in problem
    assert check(tmp_path).sound == ("comparison" not in file)


def test_proposals_that_cannot_be_used_are_problems(tmp_path: Path) -> None:
    corpus.write_json(tmp_path / CORPUS, corpus.rows())
    boxes = corpus.proposals()
    boxes[SCENES[0].url] = boxes[SCENES[0].url][:1]
    boxes[SCENES[0].url][0]["left"] = 700
    del boxes[SCENES[1].url]
    corpus.write_json(tmp_path / PROPOSALS, boxes)
    report = check(tmp_path)

    assert of(report).counts["images with proposals"].found == 3
    assert ["no box in the image" in problem for problem in report.problems] == [True, False]
    assert report.problems[1] == f"2 images have no proposals: {SCENES[0].url}, {SCENES[1].url}."

    (tmp_path / PROPOSALS).write_text("{", encoding="utf-8")
    assert "is no JSON (item 0: " in check(tmp_path).problems[0]


@pytest.mark.skipif(not (REAL / REAL_FILE).is_file(), reason="ASKANCE_TEST_SHERLOCK names no folder with real files")
def test_the_real_corpus_is_the_published_one() -> None:
    report = check(REAL)
    found = of(report)

    assert report.sound
    assert all(
        count.found == count.published for counts in (found.confidence, found.chunks) for count in counts.values()
    )
    assert {name for name, count in found.counts.items() if count.found != count.published} <= {
        "pictures of VG",
        "pictures of VCR",
        "images with proposals",
    }
    assert (found.boxes, found.clipped, found.twins, found.twins_of_image) == (26_785, 590, 701, 117)
    assert (len(found.doubled), found.shared_chunks, found.off_centre, found.between) == (3, 1_250, 1_656, 82)
    assert found.long == {"VG": 48, "VCR": 805}
    assert found.ceiling == pytest.approx(94.705, abs=0.0005)
    assert found.chance == pytest.approx(30.63, abs=0.005)
