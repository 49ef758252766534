from __future__ import annotations

from pathlib import Path

import pytest

from askance.errors import BadData, UsageError
from askance.evals.pittads import index_entries
from askance.evals.suite.statements import TEST_OPTIONS
from askance.retrieval import merge_entries
from tests.evals.pittads.files import KEYS, draw, key_of, record, release_b, true_of, write_json

TRAIN, TESTED, OLD = "1/11.jpg", key_of(170_002), key_of(170_003)


@pytest.fixture
def both_releases(tmp_path: Path) -> Path:
    """An image of the training part, one of the test part with its truths, both in release A, and one in that alone."""
    release_b(tmp_path, {TRAIN: record(TRAIN)})
    options = [f"I should say option {place} because I can" for place in range(TEST_OPTIONS - 3)]
    write_json(tmp_path / "test/QA_Combined_Action_Reason_test.json", {TESTED: [*options, *true_of(TESTED)]})
    write_json(tmp_path / "test_right.json", {TESTED.partition("/")[2]: true_of(TESTED)})
    write_json(tmp_path / "QA_Combined_Action_Reason.json", {key: true_of(key) for key in (TESTED, OLD)})
    return tmp_path


def test_every_true_statement_is_a_row_with_its_image_and_its_part(tmp_path: Path) -> None:
    release_b(tmp_path, {key: record(key) for key in KEYS})

    found = index_entries(tmp_path)

    assert [(row.text, row.images, row.split) for row in found.rows] == [
        (text, (key,), "train") for key in KEYS for text in true_of(key)
    ]
    assert (found.images, found.left_out) == ({"train": len(KEYS)}, {})


def test_the_test_part_is_left_out_unless_it_is_named(both_releases: Path) -> None:
    by_default = index_entries(both_releases)
    both = index_entries(both_releases, splits=["train", "test"])

    assert {(row.images, row.split) for row in by_default.rows} == {((TRAIN,), "train"), ((OLD,), "")}
    assert (by_default.images, by_default.left_out) == ({"": 1, "train": 1}, {"of the test part": 1})
    assert {row.text for row in both.rows} == {text for key in (TRAIN, TESTED, OLD) for text in true_of(key)}
    test = index_entries(both_releases, splits=["test"])
    assert (test.images, test.left_out) == ({"": 1, "test": 1}, {"of the training part": 1})
    assert (both.images, both.left_out) == ({"": 1, "test": 1, "train": 1}, {})


@pytest.mark.parametrize("known_by", ["options", "truths", "folder"])
def test_release_a_brings_no_statement_of_the_test_part(both_releases: Path, known_by: str) -> None:
    if known_by != "options":
        (both_releases / "test/QA_Combined_Action_Reason_test.json").unlink()
    if known_by != "truths":
        (both_releases / "test_right.json").unlink()
    if known_by == "folder":
        draw(both_releases / "test_images", TESTED)

    found = index_entries(both_releases)

    assert not {row.text for row in found.rows} & {*true_of(TESTED)}
    assert found.left_out["of the test part"] == 1


def test_release_a_is_left_out_where_nothing_says_which_images_are_tested(both_releases: Path) -> None:
    for name in ("test/QA_Combined_Action_Reason_test.json", "test_right.json"):
        (both_releases / name).unlink()

    found = index_entries(both_releases)

    assert {row.images for row in found.rows} == {(TRAIN,)}
    assert found.left_out == {"perhaps of the test part": 2}


def test_release_a_alone_has_no_parts(tmp_path: Path) -> None:
    write_json(tmp_path / "QA_Combined_Action_Reason.json", {OLD: true_of(OLD)})

    found = index_entries(tmp_path)

    assert {row.split for row in found.rows} == {""}
    assert found.images == {"": 1}


def test_a_file_of_statements_will_do(both_releases: Path) -> None:
    train, old, truths = (
        index_entries(both_releases / name, splits=["train", "test"])
        for name in ("train/QA_Combined_Action_Reason_train.json", "QA_Combined_Action_Reason.json", "test_right.json")
    )

    assert [found.images for found in (train, old, truths)] == [{"train": 1}, {"": 2}, {"test": 1}]
    with pytest.raises(BadData, match="of the test part"):
        index_entries(both_releases / "test_right.json")
    with pytest.raises(BadData, match="No action-reason"):
        index_entries(both_releases / "test/QA_Combined_Action_Reason_test.json", splits=["train", "test"])


def test_the_same_statement_of_several_files_and_images_is_one_entry(both_releases: Path) -> None:
    write_json(
        both_releases / "QA_Combined_Action_Reason.json", {OLD: [true_of(TRAIN)[0], "n/a"], TRAIN: true_of(TRAIN)}
    )

    entries = {entry.text: entry for entry in merge_entries(index_entries(both_releases).rows)}

    assert entries[true_of(TRAIN)[0]].images == (TRAIN, OLD)
    assert "junk" in entries["n/a"].marks


def test_wrong_options_come_in_as_texts_of_no_image(both_releases: Path) -> None:
    true, options = record(TRAIN)
    stolen = true_of(TESTED)[0]
    write_json(both_releases / "hard.json", {TRAIN: [true, [*options, stolen]]})

    found = index_entries(both_releases, negatives=["hard.json", both_releases / "hard.json"])
    named = index_entries(both_releases, splits=("train", "test"), negatives=["hard.json"])

    wrong = [row.text for row in found.rows if not row.images]
    assert sorted(wrong) == sorted({*options} - {*true}), "and none that is true of an image of the test part"
    assert stolen in {row.text for row in named.rows if not row.images}


@pytest.mark.parametrize("name", ["test/QA_Combined_Action_Reason_test.json", "QA_Combined_Action_Reason.json"])
def test_a_file_that_does_not_say_what_is_wrong_brings_no_negatives(both_releases: Path, name: str) -> None:
    with pytest.raises(BadData, match="does not say which options are wrong"):
        index_entries(both_releases, negatives=[name])


@pytest.mark.parametrize("splits", [("tset",), (), ("train", "val")])
def test_a_part_that_there_is_not_is_refused(tmp_path: Path, splits: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="part") as said:
        index_entries(tmp_path, splits=splits)
    assert "train,test" in (said.value.hint or "")


def test_a_folder_without_statements_that_may_be_taken_is_refused(both_releases: Path) -> None:
    (both_releases / "train/QA_Combined_Action_Reason_train.json").unlink()
    write_json(both_releases / "QA_Combined_Action_Reason.json", {TESTED: true_of(TESTED)})

    with pytest.raises(BadData, match="of the test part") as said:
        index_entries(both_releases)
    assert "--split train,test" in (said.value.hint or "")
    (both_releases / "test_right.json").unlink(missing_ok=True)
    write_json(both_releases / "QA_Combined_Action_Reason.json", {TRAIN: true_of(TRAIN)})
    write_json(both_releases / "train/QA_Combined_Action_Reason_train.json", {TRAIN: record(TRAIN)})
    with pytest.raises(BadData, match="of the training part") as said:
        index_entries(both_releases, splits=["test"])
    assert "test_right.json" in (said.value.hint or "")
    with pytest.raises(BadData, match="No action-reason"):
        index_entries(both_releases / "test", splits=["train"])
