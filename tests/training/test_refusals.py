"""What is refused before anything is loaded, and what is said without the extra."""

from __future__ import annotations

import errno
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from askance.errors import AskanceError, ConfigError, MissingExtra, UsageError
from askance.training import Fit, FitRecipe, TrainingSet, fit
from askance.training.objective import check_control, shuffled
from askance.training.trainer import no_space
from tests.models.local.conftest import safetensors
from tests.training.colour_shapes import KindOfSet, examples
from tests.training.conftest import DrawnSet


def model(folder: Path, **config: Any) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "llama"}', encoding="utf-8")
    (folder / "model.safetensors").write_bytes(safetensors(b"1234"))
    return folder


@pytest.mark.parametrize(
    ("recipe", "kind", "base", "message"),
    [
        ("lora", "pairs", "hf:base", "is for a training set of the kind 'chat', and .* is of the kind 'pairs'"),
        ("sherlock-clip", "pairs", "hf:base", "trains a model of `clip:`, and the base is 'hf:base'"),
        ("lora", "words", "clip:base", "trains a model of `hf:`, and the base is 'clip:base'"),
        ("lora", "words", "base", "trains a model of `hf:`, and the base is 'base'"),
    ],
)
def test_what_does_not_belong_together_is_refused(
    recipe: str, kind: KindOfSet, base: str, message: str, drawn_set: DrawnSet
) -> None:
    with pytest.raises(UsageError, match=message):
        Fit(recipe=FitRecipe.named(recipe), data=drawn_set(kind), base=base)


def test_a_base_that_is_not_there_is_refused_before_anything_is_written(drawn_set: DrawnSet, tmp_path: Path) -> None:
    training = Fit(recipe=FitRecipe.named("lora"), data=drawn_set("words"), base=f"hf:{tmp_path / 'none'}")

    with pytest.raises(ConfigError, match="There is no model"):
        fit(training, tmp_path / "out")

    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("missing", ["torch", "transformers", "accelerate", "trl", "peft", "datasets"])
def test_without_the_extra_its_name_is_said(
    missing: str, drawn_set: DrawnSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    for name in {"torch", "transformers", "accelerate", "trl", "peft", "datasets"} - {missing}:
        monkeypatch.setitem(sys.modules, name, sys)  # as if it were there
    base = model(tmp_path / "base")
    training = Fit(recipe=FitRecipe.named("lora"), data=drawn_set("words"), base=f"hf:{base}")

    with pytest.raises(MissingExtra, match=f"Training needs {missing}, which is not installed") as caught:
        fit(training, tmp_path / "out")

    assert caught.value.hint == "pip install 'askance[train]'"
    assert not (tmp_path / "out").exists()


def test_a_set_whose_rows_were_changed_is_refused(drawn_set: DrawnSet, tmp_path: Path) -> None:
    source = drawn_set("words").folder
    for file in ("manifest.json", "train/metadata.parquet", "validation/metadata.parquet"):
        (tmp_path / "set" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "set" / file).write_bytes((source / file).read_bytes())
    with (tmp_path / "set" / "train" / "metadata.parquet").open("ab") as rows:
        rows.write(b"more")

    with pytest.raises(AskanceError, match="is not the file that"):
        Fit(recipe=FitRecipe.named("lora"), data=TrainingSet.open(tmp_path / "set"), base="hf:base").examples()


@pytest.mark.parametrize("kind", ["chat", "pairs", "choices"])
def test_shuffled_pictures_are_the_same_ones_elsewhere(kind: KindOfSet) -> None:
    before = list(examples(kind, 40, seed=1))

    after = shuffled(before, seed=3)

    digests = [[each.pictures[0].sha256 for each in some] for some in (before, after)]
    assert sorted(digests[0]) == sorted(digests[1])
    assert sum(a == b for a, b in zip(*digests, strict=True)) < 8
    assert [each.group for each in before] == [each.group for each in after]
    assert shuffled(before, seed=3) == after != shuffled(before, seed=4)


def test_chats_without_pictures_stay_as_they_are_among_others() -> None:
    plain, seen = list(examples("words", 5, seed=1)), list(examples("chat", 5, seed=1))
    mixed = [each for pair in zip(plain, seen, strict=True) for each in pair]

    check_control("shuffled", mixed)
    after = shuffled(mixed, seed=3)

    assert after[::2] == plain
    assert after[1::2] == shuffled(seen, seed=3)
    assert after[1::2] != seen


def test_examples_without_pictures_have_no_control() -> None:
    texts = list(examples("text", 3, seed=1))

    for control in ("shuffled", "text-only"):
        with pytest.raises(UsageError, match="has no pictures, and so needs no control"):
            check_control(control, texts)
    check_control(None, texts)


def test_what_another_process_finished_in_the_meantime_is_not_done_again(
    drawn_set: DrawnSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = model(tmp_path / "base")
    training = Fit(recipe=FitRecipe.named("lora"), data=drawn_set("words"), base=f"hf:{base}")
    finished = {"format": "askance-training/1", "state": "finished", **training.decides, "result": "hf:other"}

    def finish(_: Fit) -> None:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "train.json").write_text(json.dumps(finished), encoding="utf-8")

    monkeypatch.setattr(Fit, "check_packages", finish)

    assert fit(training, tmp_path / "out")["result"] == "hf:other"


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "full"), RuntimeError("I/O error: No space left on device (os error 28)")]
)
def test_no_space_says_what_was_written_and_what_is_kept(error: Exception, tmp_path: Path) -> None:
    with pytest.raises(AskanceError) as caught, no_space("the weights", tmp_path, lambda: "All is there."):
        raise error

    assert caught.value.message == f"There is no space for the weights in {str(tmp_path)!r}."
    assert caught.value.hint == "All is there. Make room; the same command goes on from there."
    with pytest.raises(OSError, match="other"), no_space("the weights", tmp_path, str):
        raise OSError(errno.EPERM, "other")
