"""The format of training sets: what is written is what is read, each picture once, and no split leaks into another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askance.data_table import ArrowFiles
from askance.errors import BadData, BadImage, UsageError
from askance.images import Image, RegionView
from askance.training import (
    ChatExample,
    ChoiceExample,
    PairExample,
    Source,
    TextExample,
    TrainingExample,
    TrainingSet,
    write_training_set,
)
from askance.training.openai_lines import write_openai_lines
from tests.faults.run import picture

RED, BLUE = (Image.from_bytes(picture(place).data, name=name) for place, name in enumerate(("red", "blue")))
SOURCE = Source(origin={"data": "here"}, licences=("For research alone.",), left_out={"no picture": 2, "cut off": 0})


def chat(image: Image | None, text: str = "What is odd?") -> ChatExample:
    picture = [] if image is None else [{"type": "image"}]
    return ChatExample(
        prompt=(
            {"role": "system", "content": [{"type": "text", "text": "Look."}]},
            {"role": "user", "content": [*picture, {"type": "text", "text": text}]},
        ),
        completion=({"role": "assistant", "content": [{"type": "text", "text": "Nothing."}]},),
        images=() if image is None else (image,),
        group="" if image is None else image.sha256,
        meta={"key": "k1", "score": 0.5},
    )


def rows(made: TrainingSet) -> list[dict[str, Any]]:
    """What the file of the split `train` has, as whoever knows nothing of the format reads it."""
    files = ArrowFiles([made.folder / "train" / "metadata.parquet"])
    return files.rows(files.columns)


VIEW = RegionView("highlight", ((1, 1, 4, 4),), style="askance")
EXAMPLES: dict[str, tuple[TrainingExample, TrainingExample]] = {
    "chat": (chat(RED), chat(BLUE)),
    "chat, text alone": (chat(None), chat(None, "And here?")),
    "pairs": (
        PairExample(image=RED, view=VIEW, text="a mug", kind="clue", group="r"),
        PairExample(image=BLUE, text="someone left", kind="inference", group="b"),
    ),
    "choices": (
        ChoiceExample(image=RED, choices=("a", "b"), label=1, group="1"),
        ChoiceExample(image=BLUE, choices=("c", "d"), label=0, group="2"),
    ),
    "text": (TextExample(input="in", target="out", group="1"), TextExample(input="in", target="up", group="2")),
}


@pytest.mark.parametrize(("first", "second"), EXAMPLES.values(), ids=EXAMPLES)
def test_what_is_written_is_read(tmp_path: Path, first: TrainingExample, second: TrainingExample) -> None:
    made = write_training_set(tmp_path / "set", {"train": [first, first], "validation": [second]}, source=SOURCE)

    read = TrainingSet.open(tmp_path / "set")
    assert read == made
    assert [*read.examples()] == [first, first]
    assert (read.splits, read.count("train"), read.count("test")) == (("train", "validation"), 2, 0)
    (back,) = read.examples("validation")
    assert back == second
    assert [each.data for each in back.pictures] == [BLUE.data for _ in second.pictures]


def test_a_set_has_each_picture_once_and_rows_for_load_dataset(tmp_path: Path) -> None:
    made = write_training_set(tmp_path / "set", {"train": [chat(RED), chat(RED)], "test": [chat(BLUE)]}, source=SOURCE)

    files = sorted(str(path.relative_to(made.folder)) for path in made.folder.rglob("*") if path.is_file())
    assert files == sorted(
        [
            "manifest.json",
            *(f"{split}/metadata.parquet" for split in ("train", "test")),
            f"train/pictures/{RED.sha256}.png",
            f"test/pictures/{BLUE.sha256}.png",
        ]
    )
    assert not [*tmp_path.glob("*.part")]
    row, _ = rows(made)
    assert row["images_file_names"] == [f"pictures/{RED.sha256}.png"]
    assert row["prompt"][1]["content"][0]["type"] == "image"
    assert json.loads(row["meta"]) == {"key": "k1", "score": 0.5}


def test_content_is_text_where_no_example_has_a_picture(tmp_path: Path) -> None:
    made = write_training_set(tmp_path / "set", {"train": [chat(None)]}, source=SOURCE)

    (row,) = rows(made)
    assert row["completion"] == [{"role": "assistant", "content": "Nothing."}]
    assert "images_file_names" not in row
    assert not made.has_pictures


def test_the_digest_goes_by_rows_and_pictures_alone(tmp_path: Path) -> None:
    one = write_training_set(tmp_path / "one", {"train": [chat(RED)]}, source=SOURCE)
    same = write_training_set(tmp_path / "same", {"train": [chat(RED)]}, source=Source(origin={"data": "there"}))
    other = write_training_set(tmp_path / "other", {"train": [chat(BLUE)]}, source=SOURCE)

    assert one.digest == same.digest != other.digest
    assert one.manifest["left_out"] == {"no picture": 2}
    assert one.manifest["licences"] == ["For research alone."]


def test_splits_that_share_a_picture_or_a_group_are_refused(tmp_path: Path) -> None:
    twin = Image.from_bytes(RED.data, name="twin")
    of_one = [PairExample(image=image, text="a", kind="clue", group="contest 7") for image in (RED, BLUE)]

    with pytest.raises(UsageError) as caught:
        write_training_set(tmp_path / "set", {"train": [chat(RED)], "test": [chat(twin)]}, source=SOURCE)
    assert "is in the splits 'train' and 'test'" in str(caught.value)
    with pytest.raises(UsageError) as caught:
        write_training_set(tmp_path / "set", {"train": of_one[:1], "validation": of_one[1:]}, source=SOURCE)
    assert "The group 'contest 7' is in the splits 'train' and 'validation'." in str(caught.value)
    named = [ChoiceExample(image=image, choices=("a", "b"), label=0, group=image.name) for image in (RED, twin)]
    with pytest.raises(UsageError) as caught:
        write_training_set(tmp_path / "set", {"train": named[:1], "validation": named[1:]}, source=SOURCE)
    assert str(caught.value).startswith("The picture 'twin' of the split 'validation' is 'red' of the split 'train'.")
    assert not (tmp_path / "set").exists()


def test_a_lone_surrogate_of_a_model_is_written_as_its_escape(tmp_path: Path) -> None:
    made = write_training_set(tmp_path / "set", {"train": [chat(None, "And \ud800?")]}, source=SOURCE)

    (row,) = rows(made)
    assert row["prompt"][1]["content"] == "And \\ud800?"


def test_nothing_to_train_on_says_what_was_left_out(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        write_training_set(tmp_path / "set", {"train": [], "test": [chat(RED)]}, source=SOURCE)

    assert str(caught.value) == "No example is left to train on. Left out: 2 examples: no picture."


def test_a_broken_picture_leaves_no_folder(tmp_path: Path) -> None:
    broken = Image.from_bytes(b"no picture", name="broken")

    with pytest.raises(BadImage, match="'broken'"):
        write_training_set(tmp_path / "set", {"train": [chat(RED), chat(broken)]}, source=SOURCE)
    assert not (tmp_path / "set").exists()
    assert not [*tmp_path.glob("*.part")]


def test_a_replaced_file_is_refused(tmp_path: Path) -> None:
    made = write_training_set(tmp_path / "set", {"train": [chat(RED)]}, source=SOURCE)
    other = write_training_set(tmp_path / "other", {"train": [chat(BLUE)]}, source=SOURCE)
    (example,) = made.examples()
    picture = made.folder / "train" / "pictures" / f"{RED.sha256}.png"
    picture.write_bytes(BLUE.data)
    with pytest.raises(BadImage, match="has changed since its digest was taken"):
        _ = example.pictures[0].data

    (other.folder / "train" / "metadata.parquet").replace(made.folder / "train" / "metadata.parquet")
    with pytest.raises(BadData) as caught:
        next(made.examples())
    assert "is not the file that manifest.json of the set names. Make the set again" in str(caught.value)


WRONG = {
    "nothing": (None, "is no training set: its manifest.json cannot be read."),
    "no JSON": ("{", "is no training set"),
    "another version": ('{"format": "askance-training-set/9"}', "is not of the format 'askance-training-set/1'"),
    "no splits": ('{"format": "askance-training-set/1", "kind": "chat", "pictures": 1}', "is no manifest"),
    "strange split": (
        '{"format": "askance-training-set/1", "kind": "chat", "pictures": 1, "splits": {"train": {}, "../x": {}}}',
        "is no manifest",
    ),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_what_is_no_set_is_refused(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "manifest.json").write_text(text, encoding="utf-8")

    with pytest.raises(BadData) as caught:
        TrainingSet.open(tmp_path)
    assert message in str(caught.value)


def test_a_split_that_is_not_there_is_refused(tmp_path: Path) -> None:
    made = write_training_set(tmp_path / "set", {"train": [chat(RED)]}, source=SOURCE)

    with pytest.raises(BadData, match=r"has no split 'test'. It has train\."):
        next(made.examples("test"))


def test_lines_for_openai_leave_out_a_picture_that_the_user_did_not_show(tmp_path: Path) -> None:
    shown = chat(RED)
    answered = ChatExample(
        prompt=shown.prompt[:1], completion=({"role": "assistant", "content": [{"type": "image"}]},), images=(RED,)
    )

    lines, left_out = write_openai_lines(tmp_path / "lines", {"train": [*[shown] * 10, answered]})

    assert lines == {"train": 10}
    assert left_out == {"a picture in a turn that is not the user's": 1}
