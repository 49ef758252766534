"""`askance train lora`, `recipe` and `recipes`, as far as they go without torch; and a model for each fold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from askance.errors import UsageError
from askance.evals.task_options import of_own_fold
from tests.cli.command import Command
from tests.evals.newyorker import cartoons
from tests.models.local.conftest import safetensors
from tests.training.colour_shapes import make_set


def base(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "llama"}', encoding="utf-8")
    (folder / "model.safetensors").write_bytes(safetensors(b"1234"))
    return folder


def test_recipes_are_listed_with_the_source_of_each_field(askance: Command) -> None:
    listed = askance("train", "recipes", "newyorker-clip")
    every = json.loads(askance("train", "recipes", "--json").out)

    lines = [line.split() for line in listed.out.splitlines()]
    assert listed.out.startswith("newyorker-clip: New Yorker matching or ranking by CLIP\n")
    assert ["rates", "5e-05,", "1e-05,", "5e-06", "paper", "appendix", "B.2,", "for", "each", "split", "on", "its"] in [
        line[:12] for line in lines
    ]
    assert ["epochs", "12", "code"] in lines
    assert [each["name"] for each in every] == sorted(each["name"] for each in every)
    assert every[0]["fields"]["trained"] == {"value": ["adapter"], "by": "ours"}


def test_an_unknown_recipe_is_answered_with_a_near_one(askance: Command) -> None:
    done = askance("train", "recipes", "newyorker-clp")

    assert done.code == 2
    assert "There is no recipe 'newyorker-clp'." in done.err
    assert "newyorker-clip" in done.err


def test_without_the_extra_nothing_is_begun(askance: Command, own_place: Path) -> None:
    make_set(Path("set"), "words")
    base(Path("models/llama"))

    done = askance("train", "lora", "set", "--base", "hf:models/llama", "-o", "out")

    assert done.code == 2
    assert "Training needs torch, which is not installed." in done.err
    assert "pip install 'askance[train]'" in done.err
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("lora", "set", "--base", "clip:m"), "trains a model of `hf:`, and the base is 'clip:m'"),
        (("lora", "set", "--base", "hf:nowhere"), "There is no model 'hf:nowhere' on this machine"),
        (("lora", "none", "--base", "hf:m"), "'none' is no training set"),
        (("lora", "set", "--base", "hf:m", "-R", "epochs"), "'epochs' is no option of a recipe."),
        (("lora", "set", "--base", "hf:m", "-R", "epoch=3"), "The recipe 'lora' has no field 'epoch'."),
        (("lora", "set", "--base", "hf:m", "--epochs", "0"), "The field 'epochs' of the recipe 'lora' cannot be 0"),
        (("recipe", "sherlock-t5", "set", "--base", "hf:m"), "is for a training set of the kind 'text'"),
        (("recipe", "lora", "set", "--base", "hf:m", "--control", "shuffled"), "The training set has no pictures"),
    ],
)
def test_what_cannot_be_trained_is_refused(words: tuple[str, ...], message: str, askance: Command) -> None:
    make_set(Path("set"), "words")

    done = askance("train", *words, "-o", "out")

    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ((), "'merged' is there already."),
        (("-R", "trained=all"), "The training in 'out' makes a whole model, so there is nothing to merge."),
    ],
)
def test_what_cannot_be_merged_is_refused_before_it_is_trained(
    more: tuple[str, ...], message: str, askance: Command
) -> None:
    make_set(Path("set"), "words")
    base(Path("models/llama"))
    Path("merged").mkdir()

    done = askance("train", "lora", "set", "--base", "hf:models/llama", "-o", "out", "--merge", "merged", *more)

    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert not Path("out").exists()


def test_a_folder_of_folds_is_trained_on_fold_by_fold(askance: Command) -> None:
    for fold in range(3):
        make_set(Path(f"sets/fold-{fold}"), "words", seed=10 * fold)
    make_set(Path("sets/fold-3"), "text")
    base(Path("models/llama"))

    done = askance("train", "lora", "sets", "--base", "hf:models/llama", "-o", "out")

    assert "'sets/fold-3' is of the kind 'text'" in " ".join(done.err.split())


# --- a model for each fold ---


def test_each_fold_is_answered_by_a_model_of_its_own(askance: Command) -> None:
    cartoons.lines(Path("data"), tasks=("matching",))

    done = askance("eval", "run", "newyorker/matching", "--data", "data", "--vlm", "hf:w/fold-{fold}", "--fold", "2")
    every = askance("eval", "run", "newyorker/matching", "--data", "data", "--vlm", "hf:w/fold-{fold}")

    assert "There is no model 'hf:w/fold-2' on this machine" in " ".join(done.err.split())
    assert every.code == 2
    assert "'hf:w/fold-{fold}' names a model for each fold, and the task is run on no single one." in " ".join(
        every.err.split()
    )


def test_the_fold_stands_in_names_of_models_alone() -> None:
    options = {"fold": 3, "vlm": "hf:w/{fold}", "scorer": "clip:{fold}?long=max", "note": "{fold}", "llm": None}

    named = of_own_fold(options)

    assert named == {**options, "vlm": "hf:w/3", "scorer": "clip:3?long=max"}
    assert of_own_fold({"vlm": "hf:w", "fold": "all"}) == {"vlm": "hf:w", "fold": "all"}
    with pytest.raises(UsageError, match="run on no single one"):
        of_own_fold({"vlm": "hf:w/{fold}", "fold": "all"})
