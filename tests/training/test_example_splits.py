"""Splits by group, and pictures that no example of a split may be about."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from askance.errors import UsageError
from askance.evals import Run
from askance.images import Image
from askance.models import Engine, get_embedder
from askance.models.encoders.embedder import RecordedEmbedder, ScriptedEmbedder
from askance.replay import MemoryStore
from askance.training.example_splits import EvaluationPictures, split_by_group, without_leaks
from askance.training.training_set import ChatExample, Split
from tests.faults.run import picture

PICTURES = [picture(number) for number in range(40)]


def example(number: int, *, shown: bool = True) -> ChatExample:
    image = PICTURES[number]
    return ChatExample(prompt=(), completion=(), images=(image,) if shown else (), group=f"group {number}")


def pictures_of(*numbers: int) -> Mapping[str, Mapping[str, Image | None]]:
    return {f"group {number}": {PICTURES[number].sha256: PICTURES[number]} for number in numbers}


def numbers(splits: Mapping[Split, list[ChatExample]]) -> dict[str, list[int]]:
    return {split: [int(each.group.split()[1]) for each in examples] for split, examples in splits.items()}


def test_groups_stay_whole_and_the_seed_decides() -> None:
    examples = [example(number, shown=shown) for number in range(20) for shown in (True, False)]

    splits = split_by_group(examples, validation=0.2, seed=3, held_out={"group 7"})

    found = numbers(splits)
    assert found["test"] == [7, 7]
    assert len(found["validation"]) == 2 * 4
    assert not {*found["train"]} & {*found["validation"]}
    assert splits == split_by_group(examples, validation=0.2, seed=3, held_out={"group 7"})
    assert splits != split_by_group(examples, validation=0.2, seed=4, held_out={"group 7"})


def test_something_is_left_to_train_on() -> None:
    assert numbers(split_by_group([example(0)], validation=0.9))["train"] == [0]
    assert len(numbers(split_by_group([example(0), example(1)], validation=0.1))["validation"]) == 1
    assert numbers(split_by_group([example(0), example(1)], validation=0))["validation"] == []
    with pytest.raises(UsageError, match="A share of 1 cannot be for validation"):
        split_by_group([example(0)], validation=1)


def test_examples_about_a_kept_picture_go_even_where_they_do_not_show_it() -> None:
    splits = split_by_group(
        [example(number, shown=shown) for number in range(4) for shown in (True, False)], validation=0
    )
    kept_out = EvaluationPictures(digests=frozenset({PICTURES[2].sha256}))

    made, left_out = asyncio.run(without_leaks(splits, pictures_of(0, 1, 2), kept_out))

    assert numbers(made)["train"] == [0, 0, 1, 1]
    assert left_out == {"about a picture to evaluate on": 2, "nothing says which picture it is about": 2}


def brightness(image: Image) -> list[float]:
    """Pictures of neighbouring numbers are near-twins."""
    number = PICTURES.index(image) if image in PICTURES else 0
    return [float(number // 2 == place) for place in range(20)]


@pytest.fixture
def embedder() -> RecordedEmbedder:
    return get_embedder(
        ScriptedEmbedder(lambda _: [1.0], image=brightness, identity="bright"), engine=Engine(records=MemoryStore())
    )


def test_near_twins_of_what_is_evaluated_on_are_left_out(embedder: RecordedEmbedder) -> None:
    splits: dict[Split, list[ChatExample]] = {
        "train": [example(0), example(2), example(4), example(6), example(8)],
        "validation": [example(3), example(5)],
        "test": [example(1)],
    }
    kept_out = EvaluationPictures(digests=frozenset({PICTURES[7].sha256}), images=(PICTURES[7],))

    made, left_out = asyncio.run(without_leaks(splits, pictures_of(*range(9)), kept_out, embedder=embedder))

    assert numbers(made) == {"train": [8], "validation": [3, 5], "test": [1]}
    assert left_out == {"about a near-twin of a picture to evaluate on": 4}


def test_what_cannot_be_compared_is_left_out(embedder: RecordedEmbedder) -> None:
    splits: dict[Split, list[ChatExample]] = {"train": [example(0, shown=False), example(2)]}
    pictures = {**pictures_of(2), "group 0": {PICTURES[0].sha256: None}}

    made, left_out = asyncio.run(without_leaks(splits, pictures, EvaluationPictures(), embedder=embedder))

    assert numbers(made)["train"] == [2]
    assert left_out == {"about a picture that is not at hand to be compared": 1}


def test_pictures_to_evaluate_on_come_from_folders_and_files(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "x.png").write_bytes(PICTURES[0].data)
    (tmp_path / "y.png").write_bytes(PICTURES[1].data)

    found = EvaluationPictures.of([tmp_path / "a", tmp_path / "y.png"], open_run=Run.open)

    assert found.digests == {PICTURES[0].sha256, PICTURES[1].sha256}
    assert len(found.images) == 2
    with pytest.raises(UsageError, match=r"There is no picture in '.*nowhere' to keep out"):
        EvaluationPictures.of([tmp_path / "nowhere"], open_run=Run.open)
