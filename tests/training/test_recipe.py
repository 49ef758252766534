from __future__ import annotations

from pathlib import Path

import pytest

from askance.errors import UsageError
from askance.training import FitRecipe, recipe_names


def test_recipes_of_the_papers_are_there() -> None:
    assert recipe_names() == (
        *("lora", "newyorker-clip", "newyorker-t5", "sherlock-clip", "sherlock-t5", "t5-seq2seq", "whoops-blip2"),
    )


@pytest.mark.parametrize("name", recipe_names())
def test_every_field_says_where_it_is_from(name: str) -> None:
    recipe = FitRecipe.named(name)

    assert {source.by for source in recipe.sources.values()} <= {"paper", "code", "ours"}
    assert {"data", "loss", "trained", "optimizer", "rates", "batch", "epochs", "metric"} <= recipe.sources.keys()
    for field, source in recipe.sources.items():
        assert source.by != "paper" or source.at, field
    assert recipe.form["fields"]["rates"] == {
        "value": list(recipe.fields.rates),
        "by": recipe.sources["rates"].by,
        **({"at": recipe.sources["rates"].at} if recipe.sources["rates"].at else {}),
        **({"why": recipe.sources["rates"].why} if recipe.sources["rates"].why else {}),
    }


def test_what_the_papers_give() -> None:
    whoops, clip, sherlock = map(FitRecipe.named, ("whoops-blip2", "newyorker-clip", "sherlock-clip"))

    assert whoops.fields.trained == ("qformer.", "query_tokens")
    assert (whoops.fields.rates, whoops.fields.epochs) == ((1e-5, 5e-5), 15)
    assert (clip.fields.rates, clip.fields.batch, clip.fields.warmup) == ((5e-5, 1e-5, 5e-6), 32, 200)
    assert (sherlock.fields.rates, sherlock.fields.batch, sherlock.fields.every) == ((1e-5,), 512, 300)
    assert FitRecipe.named("sherlock-t5").fields.optimizer == "adafactor"
    assert FitRecipe.named("newyorker-t5").fields.longest == FitRecipe.named("t5-seq2seq").fields.longest == 512


def test_a_changed_field_is_yours() -> None:
    recipe = FitRecipe.named("newyorker-clip", rates="1e-4, 2e-4", epochs="3", augment="", patience=None)

    assert recipe.fields.rates == (1e-4, 2e-4)
    assert (recipe.fields.epochs, recipe.fields.augment, recipe.fields.patience) == (3, (), None)
    assert recipe.sources["rates"].by == recipe.sources["epochs"].by == "yours"
    assert recipe.sources["batch"].by == "paper"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epoch": 3}, "has no field 'epoch'"),
        ({"epochs": "many"}, "The field 'epochs' of the recipe 'lora' cannot be 'many'"),
        ({"epochs": 0}, "cannot be 0"),
        ({"rates": ""}, "The field 'rates'"),
        ({"batch": 8, "accumulate": 3}, "A batch of 8 rows cannot be computed in 3 equal parts."),
    ],
)
def test_other_fields_and_values_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        FitRecipe.named("lora", **changes)


def test_an_unknown_recipe_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="There is no recipe 'loras'") as caught:
        FitRecipe.named("loras")

    assert "lora, newyorker-clip" in (caught.value.hint or "")


def test_a_file_of_ones_own_stands_on_a_recipe(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("title: Mine\nbased_on: t5-seq2seq\nepochs: {value: 9, by: ours, why: tried}\n", encoding="utf-8")

    recipe = FitRecipe.named(str(file))

    assert (recipe.name, recipe.fields.epochs, recipe.fields.optimizer) == ("mine", 9, "adafactor")
    assert recipe.sources["epochs"].why == "tried"
    assert recipe.warnings == ()


def test_warnings_of_the_base_stay_beside_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("based_on: whoops-blip2\nwarnings: tried on two pictures\n", encoding="utf-8")

    assert FitRecipe.named(str(file)).warnings == (
        *FitRecipe.named("whoops-blip2").warnings,
        "tried on two pictures",
    )


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("based_on: lroa", "is based on 'lroa', which is no recipe.", "Nearest: 'lora'"),
        ("title: Mine", "lacks the field 'data'.", "or `based_on: lora`"),
        ("based_on: lora\nepochs: {value: 0, by: ours}", "cannot be 0", "`askance train recipes` shows"),
    ],
)
def test_what_is_wrong_in_ones_own_file_is_named(text: str, message: str, hint: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(f"{text}\n", encoding="utf-8")

    with pytest.raises(UsageError) as caught:
        FitRecipe.named(str(file))

    assert message in caught.value.message
    assert repr(str(file)) in caught.value.message
    assert hint in (caught.value.hint or "")


def test_a_field_without_a_source_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("based_on: lora\nepochs: 9\n", encoding="utf-8")

    with pytest.raises(UsageError, match=r"The field 'epochs' of the recipe .* does not say where it is from"):
        FitRecipe.named(str(file))


def test_notes_say_how_many_negatives_there_are() -> None:
    recipe = FitRecipe.named("sherlock-clip", accumulate=4)

    assert "sees no picture reaches 94 %" in next(iter(FitRecipe.named("whoops-blip2", epochs=1).notes))
    assert "each picture has 127 texts against it" in " ".join(recipe.notes)
    assert "pictures are flipped at random" in " ".join(recipe.notes)
