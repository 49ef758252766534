"""Every recipe on tiny models: the loss falls, only what is named changes, and faults end as they should."""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ModelId
from askance.errors import AskanceError, ConfigError, UsageError
from askance.images import Image
from askance.models.encoders.dual import DualEncoder
from askance.models.likelihood import likelihood_of
from askance.models.local import HFModel
from askance.models.settings import Local
from askance.training import ChatExample, Fit, FitRecipe, TrainingSet, fit, merge_adapter, plan_fit, trainer
from askance.training.chat_objective import request_of
from askance.training.objective import Control, DrawnExamples
from tests.training.colour_shapes import KindOfSet, make_set
from tests.training.conftest import DrawnSet, Learner

pytest.importorskip("trl", reason="TRL is not installed; tests/slow/test_training.py runs this where it is")
pytestmark = pytest.mark.slow(group="training")

QUICK: Mapping[str, Any] = {"warmup": 0, "batch": 8, "patience": None, "every": None}
CASES: dict[str, tuple[KindOfSet, str, dict[str, Any]]] = {
    "lora": ("words", "llama", {"rates": (1e-2,), "epochs": 4}),
    "whoops-blip2": ("chat", "blip2-t5", {"rates": (1e-2,), "epochs": 8}),
    "newyorker-clip": ("choices", "clip", {"rates": (1e-3,), "epochs": 8}),
    "newyorker-t5": ("text", "t5", {"rates": (1e-2,), "epochs": 6}),
    "sherlock-t5": ("text", "t5", {"rates": (1e-2,), "epochs": 6}),
    "sherlock-clip": ("pairs", "clip", {"rates": (1e-3,), "epochs": 12, "augment": (), "schedule": "constant"}),
}
"""By recipe: a training set, a base, and what is other than in the recipe."""
PLATEAU: Mapping[str, Any] = {"schedule": "plateau", "rates": (1e-2,)}
ALL = ("",)
CHANGED = {"whoops-blip2": ("qformer.", "query_tokens")}
"""What names of changed weights begin with, where those are not all."""


def training_of(
    recipe: str, drawn_set: DrawnSet, learner: Learner, *, control: Control | None = None, **changes: Any
) -> Fit:
    kind, family, own = CASES[recipe]
    provider = "clip" if family == "clip" else "hf"
    return Fit(
        recipe=FitRecipe.named(recipe, **{**QUICK, **own, **changes}),
        data=drawn_set(kind),
        base=f"{provider}:{learner(family)}",
        control=control,
        device="cpu",
    )


def weights_in(folder: Path) -> dict[str, Any]:
    (file,) = folder.glob("*.safetensors")
    return dict(import_module("safetensors.torch").load_file(file))


def log_in(out: Path) -> list[dict[str, Any]]:
    return [*map(json.loads, (out / "log.jsonl").read_text(encoding="utf-8").splitlines())]


def losses_in(out: Path) -> list[float]:
    return [line["loss"] for line in log_in(out) if "loss" in line]


@pytest.mark.parametrize("recipe", CASES)
def test_the_loss_falls_and_only_what_is_named_changes(
    recipe: str, drawn_set: DrawnSet, learner: Learner, tmp_path: Path
) -> None:
    training = training_of(recipe, drawn_set, learner)

    done = fit(training, tmp_path / "out")

    losses = losses_in(tmp_path / "out")
    assert len(losses) == done["rates"][0]["steps"] == 3 * training.recipe.fields.epochs
    # A Q-Former alone changes little before a language model that is frozen as it was drawn at random.
    assert sum(losses[-3:]) < (0.985 if recipe == "whoops-blip2" else 0.9) * sum(losses[:3])
    trained = weights_in(tmp_path / "out")
    assert done["selected"]["value"] == done["rates"][0]["value"]
    assert not list((tmp_path / "out").rglob("*.bin"))
    assert not (tmp_path / "out" / "rates").exists()
    if recipe == "lora":
        assert all(".lora_" in name for name in trained)
        assert done["parameters"]["trained"] == sum(each.numel() for each in trained.values())
        return
    before = weights_in(Path(training.base.partition(":")[2]))
    assert before.keys() == trained.keys()
    changed = {name for name in before if not before[name].equal(trained[name])}
    assert changed
    assert all(name.removeprefix("model.").startswith(CHANGED.get(recipe, ALL)) for name in changed)


def test_the_projection_is_trained_where_that_is_asked(drawn_set: DrawnSet, learner: Learner, tmp_path: Path) -> None:
    trained = (*FitRecipe.named("whoops-blip2").fields.trained, "language_projection.")
    training = training_of("whoops-blip2", drawn_set, learner, trained=trained, epochs=1)

    fit(training, tmp_path / "out")

    before, after = weights_in(learner("blip2-t5")), weights_in(tmp_path / "out")
    assert any("language_projection" in name and not before[name].equal(after[name]) for name in before)


def test_what_is_not_there_cannot_be_trained(drawn_set: DrawnSet, learner: Learner) -> None:
    training = training_of("newyorker-clip", drawn_set, learner, trained=("qformer.",))

    with pytest.raises(UsageError, match=r"no parameters whose names begin with 'qformer\.'"):
        training.objective()


# --- what decides a result ---


def test_equal_seeds_give_equal_weights_and_others_do_not(
    drawn_set: DrawnSet, learner: Learner, tmp_path: Path
) -> None:
    training = training_of("lora", drawn_set, learner, epochs=1)

    results = [
        fit(each, tmp_path / name)["result"]
        for name, each in {
            "a": training,
            "b": training,
            "c": Fit(recipe=training.recipe, data=training.data, base=training.base, device="cpu", seed=1),
        }.items()
    ]

    assert results[0] == results[1] != results[2]


def test_each_rate_begins_anew_and_validation_chooses(drawn_set: DrawnSet, learner: Learner, tmp_path: Path) -> None:
    several = fit(training_of("newyorker-t5", drawn_set, learner, rates=(1e-6, 1e-2), epochs=2), tmp_path / "several")
    single = fit(training_of("newyorker-t5", drawn_set, learner, rates=(1e-2,), epochs=2), tmp_path / "single")

    assert [each["rate"] for each in several["rates"]] == [1e-6, 1e-2]
    assert several["rates"][1]["validation"] == single["rates"][0]["validation"]
    assert several["selected"] == single["selected"]
    assert several["result"] == single["result"]
    base, again = (line["validation"]["loss"] for line in log_in(tmp_path / "several") if line["step"] == 0)
    assert base == again > several["rates"][1]["validation"][0]["loss"]


def test_the_rate_rises_and_is_cut_wherever_validation_has_not_gained(
    drawn_set: DrawnSet, learner: Learner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = training_of("sherlock-clip", drawn_set, learner, warmup=4, every=2, epochs=6, **PLATEAU)
    rates, on_log = dict[int, float](), trainer._Watch.on_log  # pyright: ignore[reportPrivateUsage]

    def noted(watch: Any, entry: Mapping[str, Any], step: int, epoch: float) -> None:
        rates.update({step: entry["learning_rate"]} if "learning_rate" in entry else {})
        on_log(watch, entry, step, epoch)

    monkeypatch.setattr(trainer._Watch, "on_log", noted)  # pyright: ignore[reportPrivateUsage]

    done = fit(training, tmp_path / "out")

    assert [rates[step] for step in range(1, 6)] == pytest.approx([0, 0.0025, 0.005, 0.0075, 0.01])
    (values,) = [[each["p@1"] for each in rate["validation"]] for rate in done["rates"]]
    expected, best = 0.01, -1.0
    for place, value in enumerate(values[:-1], start=1):
        expected, best = (expected, value) if value > best else (expected / 10, best)
        if 2 * place <= 4:
            expected = 0.01
        else:
            assert rates[2 * place + 1] == pytest.approx(expected)
    assert expected < 0.01


def test_a_finished_training_is_not_repeated_and_another_is_refused(
    drawn_set: DrawnSet, learner: Learner, tmp_path: Path
) -> None:
    training = training_of("sherlock-t5", drawn_set, learner, epochs=1)
    done = fit(training, tmp_path / "out")
    steps: list[object] = []

    def tell(*progress: object) -> None:
        steps.append(progress)

    again = fit(training, tmp_path / "out", on_progress=tell)

    assert again == json.loads(json.dumps(done))
    assert not steps
    with pytest.raises(UsageError, match="another training: epochs was 1 there, and is 2 here"):
        fit(training_of("sherlock-t5", drawn_set, learner, epochs=2), tmp_path / "out")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(UsageError, match="is there already, and holds no training"):
        fit(training, tmp_path / "other")


def test_a_plan_makes_ten_steps_and_keeps_nothing(drawn_set: DrawnSet, learner: Learner, tmp_path: Path) -> None:
    training = training_of("newyorker-clip", drawn_set, learner, rates=(1e-3, 1e-4), epochs=8)
    before, told = sorted(tmp_path.iterdir()), list[tuple[int, int]]()

    plan = plan_fit(training, on_progress=lambda done: told.append((done.step, done.steps)))
    short = plan_fit(training_of("newyorker-clip", drawn_set, learner, epochs=1))

    assert told == [(step, 10) for step in range(1, 11)]
    assert (short.steps, short.timed) == (3, 3)
    assert (plan.rows, plan.rates, plan.steps, plan.timed) == (24, 2, 2 * 8 * 3, 10)
    assert plan.hours == pytest.approx(plan.steps * plan.seconds_a_step / 3600)
    assert plan.trained == plan.parameters
    assert plan.state == 4 * 4 * plan.parameters
    assert plan.peak > plan.state
    assert sorted(tmp_path.iterdir()) == before


# --- killed, and gone on with ---


def forked(do: Callable[[], object]) -> int:
    """The process in which `do` is done; it ends with the code 0, or 1 after an error of ours."""
    child = os.fork()
    if child:
        return child
    code = 3
    try:
        do()
        code = 0
    except AskanceError:
        code = 1
    finally:
        os._exit(code)


@pytest.mark.parametrize(
    ("recipe", "changes"),
    [
        (
            "sherlock-clip",
            {"augment": ("flip", "jitter", "grey"), "every": 2, "epochs": 4, "patience": 9, "warmup": 4, **PLATEAU},
        ),
        ("lora", {"dropout": 0.3, "every": 2, "epochs": 4}),
        pytest.param("whoops-blip2", {"epochs": 4, "rates": (1e-3, 1e-2)}, marks=pytest.mark.soak),
    ],
)
def test_killed_and_gone_on_with_equals_the_whole(
    recipe: str, changes: dict[str, Any], drawn_set: DrawnSet, learner: Learner, tmp_path: Path
) -> None:
    training = training_of(recipe, drawn_set, learner, **changes)
    whole = fit(training, tmp_path / "whole")
    out = tmp_path / "killed"

    for steps in (5, 8):
        child = forked(lambda: fit(training, out))
        deadline = time.monotonic() + 60
        while len(losses_in(out) if (out / "log.jsonl").exists() else ()) < steps and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(child, signal.SIGKILL)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        assert not (out / "model.safetensors").exists()
    resumed = fit(training, out)

    assert resumed["result"] == whole["result"]
    assert resumed["selected"] == whole["selected"]
    assert losses_in(out) == losses_in(tmp_path / "whole")
    timeless = [[{**each, "seconds": 0} for each in done["rates"]] for done in (resumed, whole)]
    assert timeless[0] == timeless[1]


def test_no_space_for_a_checkpoint_leaves_the_last_one(drawn_set: DrawnSet, learner: Learner, tmp_path: Path) -> None:
    training = training_of("newyorker-clip", drawn_set, learner, every=2, epochs=4)
    said = tmp_path / "said.txt"

    def until_full() -> None:
        def fill(progress: Any, *_: int) -> None:
            if progress.step == 5:  # from here on no file may be larger: a real limit, which writing runs into
                resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

        try:
            fit(training, tmp_path / "out", on_progress=fill)
        except AskanceError as error:
            said.write_text(f"{error.message} {error.hint}", encoding="utf-8")
            raise

    assert os.waitstatus_to_exitcode(os.waitpid(forked(until_full), 0)[1]) == 1
    message = said.read_text(encoding="utf-8")
    assert message.startswith("There is no space for a checkpoint in ")
    assert "checkpoint-4'. Make room; the same command goes on from there." in message
    assert [each.name for each in (tmp_path / "out").rglob("checkpoint-*") if each.name == "checkpoint-6"] == []

    resumed = fit(training, tmp_path / "out")

    assert resumed["result"] == fit(training, tmp_path / "whole")["result"]


def test_a_loss_that_is_no_number_ends_it_and_the_last_good_checkpoint_stays(
    drawn_set: DrawnSet, learner: Learner, tmp_path: Path
) -> None:
    # The rate is 0 at the first step of the warm-up, and ruins the weights from the second on.
    training = training_of("newyorker-t5", drawn_set, learner, rates=(1e30,), warmup=1, every=1)

    with pytest.raises(AskanceError, match=r"no numbers? any more at step \d of the rate 1e\+30") as caught:
        fit(training, tmp_path / "out")

    kept = sorted(each for each in (tmp_path / "out").rglob("checkpoint-*") if each.is_dir())
    assert f"The last good checkpoint is {str(kept[-1])!r}. Take a lower rate" in (caught.value.hint or "")
    for each in kept:
        assert all(bool(weight.isfinite().all()) for weight in weights_in(each).values())
    before, first = weights_in(learner("t5")), weights_in(kept[0])
    assert all(first[name].equal(before[name]) for name in first)


def test_two_processes_do_not_train_in_one_folder(drawn_set: DrawnSet, learner: Learner, tmp_path: Path) -> None:
    training = training_of("sherlock-t5", drawn_set, learner)
    refused: list[str] = []

    def meet(*_: object) -> None:
        if not refused:
            with pytest.raises(UsageError, match="Another process trains in") as caught:
                fit(training, tmp_path / "out")
            refused.append(caught.value.message)

    fit(training, tmp_path / "out", on_progress=meet)

    assert len(refused) == 1


# --- controls ---


@pytest.mark.parametrize("recipe", ["newyorker-clip", "whoops-blip2"])
def test_no_picture_changes_a_logit_of_the_text_only_control(
    recipe: str, drawn_set: DrawnSet, learner: Learner
) -> None:
    training = training_of(recipe, drawn_set, learner, control="text-only")
    examples, _ = training.examples()
    shuffled, _ = training_of(recipe, drawn_set, learner, control="shuffled").examples()
    assert [each.pictures for each in examples] != [each.pictures for each in shuffled]
    seeing = training_of(recipe, drawn_set, learner).objective()

    blind = training.objective()

    def loss(objective: Any, rows: Any) -> float:
        batch = objective.collate([DrawnExamples(rows, seed=None)[place] for place in range(8)])
        model = objective.model.eval()
        return (objective.loss(model, batch)[0] if objective.loss else model(**batch).loss).item()

    assert loss(blind, examples) == loss(blind, shuffled)
    assert loss(seeing, examples) != loss(seeing, shuffled)


async def test_what_the_text_only_control_saves_is_blind(drawn_set: DrawnSet, learner: Learner, tmp_path: Path) -> None:
    training = training_of("newyorker-clip", drawn_set, learner, control="text-only", epochs=1)
    fit(training, tmp_path / "out")
    images: list[Image] = [example.pictures[0] for example in training.data.examples("validation")]
    texts = ["a red circle", "a blue cross"]

    scores = [
        [await DualEncoder(str(folder), local=Local(device="cpu")).score(image, texts) for image in images]
        for folder in (tmp_path / "out", learner("clip"))
    ]

    assert all(score == scores[0][0] for score in scores[0])
    assert not all(score == scores[1][0] for score in scores[1])


async def test_a_chat_model_of_the_text_only_control_weighs_an_answer_alike_over_all_pictures(
    drawn_set: DrawnSet, learner: Learner, tmp_path: Path
) -> None:
    """It is asked as `hf:` asks, in what was saved."""
    training = training_of("whoops-blip2", drawn_set, learner, control="text-only", epochs=1)
    fit(training, tmp_path / "out")
    first, *others = (each for each in training.data.examples("validation") if isinstance(each, ChatExample))
    shown = [first, *(replace(first, images=other.images) for other in others)]
    requests = [request_of(each, ModelId("hf", "weighed")) for each in shown]

    async def weighed(folder: Path) -> list[float]:
        model = HFModel(str(folder), local=Local(device="cpu", dtype="float32", batch=1))
        answers = [likelihood_of(await model.likelihood(request)) for request in requests]
        return [answer.nll for answer in answers if answer is not None]

    blind, seeing = await weighed(tmp_path / "out"), await weighed(Path(training.folder.path))

    assert len(blind) == len(shown) > 1
    assert blind == [blind[0]] * len(shown)
    assert len({*seeing}) > 1


def test_texts_have_no_control(drawn_set: DrawnSet, learner: Learner) -> None:
    with pytest.raises(UsageError, match="The training set has no pictures"):
        training_of("newyorker-t5", drawn_set, learner, control="shuffled")


# --- adapters ---


def test_an_adapter_is_merged_and_belongs_to_its_base(drawn_set: DrawnSet, learner: Learner, tmp_path: Path) -> None:
    training = training_of("lora", drawn_set, learner, epochs=1)
    done = fit(training, tmp_path / "out")

    merge_adapter(training, tmp_path / "out", tmp_path / "merged")

    before, merged = weights_in(learner("llama")), weights_in(tmp_path / "merged")
    changed = {name for name in merged if not merged[name].equal(before[name])}
    assert changed
    assert all(name.endswith("_proj.weight") for name in changed)
    assert done["base"]["identity"] != done["result"]
    with pytest.raises(UsageError, match="is there already"):
        merge_adapter(training, tmp_path / "out", tmp_path / "merged")
    other = Fit(recipe=training.recipe, data=training.data, base=f"hf:{learner('vicuna')}", device="cpu")
    with pytest.raises(ConfigError, match="was trained on another base"):
        merge_adapter(other, tmp_path / "out", tmp_path / "second")


def test_a_set_without_validation_takes_one_rate_and_all_epochs(learner: Learner, tmp_path: Path) -> None:
    data = make_set(tmp_path / "set", "words", validation=0)
    base = f"hf:{learner('llama')}"

    with pytest.raises(UsageError, match="has no split `validation`"):
        Fit(recipe=FitRecipe.named("lora"), data=data, base=base)
    recipe = FitRecipe.named("lora", patience=None, epochs=1, rates=(1e-3,))
    done = fit(Fit(recipe=recipe, data=TrainingSet.open(tmp_path / "set"), base=base, device="cpu"), tmp_path / "out")

    assert done["selected"] == {"rate": 1e-3, "step": 3, "value": None}
    assert (tmp_path / "out" / "adapter_model.safetensors").is_file()
