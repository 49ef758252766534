"""Examples before the questions of the ads and WHOOPS! suites: of other folds, in prompts, planned and read again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest, ImagePart
from askance.errors import BadData, UsageError
from askance.evals import Run, Task, evaluate
from askance.evals.analysis.rescore import rescore
from askance.evals.controls import swapped_images
from askance.evals.pittads import Aor, ArrMulti, ArrSingle, Asr, Mac
from askance.evals.run_plan import planning
from askance.evals.runner import SampleEpoch, run_job
from askance.evals.suite import fold_of
from askance.evals.whoops import Captioning, CaptionMatching, Explain, ExplainChoice, Identify, Vqa
from askance.images import Image
from askance.models import Engine, ScriptedEmbedder
from askance.replay import MemoryStore
from tests.evals.pittads.files import key_of, write_csv
from tests.evals.pittads.worlds import model as ads_model
from tests.evals.pittads.worlds import numbers, world
from tests.evals.whoops import files
from tests.evals.whoops.worlds import model
from tests.scripted import PICTURES

ADS = 7
SHOTS = 2
PARTS = {"combine": "T_V of {}.", "V": "cup, brick {}", "T": "BUY {}"}
"""What is published of each ad."""


@pytest.fixture
def ads(tmp_path: Path) -> Path:
    folder = world(tmp_path / "ads", true=(3,) * (ADS - 1) + (2,))
    for part, text in PARTS.items():
        rows = [[key_of(number), text.format(number)] for number in numbers(ADS)]
        write_csv(folder / "said" / f"{part}_LLAVA_description_ARR.csv", rows, ("ID", "description"))
    return folder


@pytest.fixture
def whoops(tmp_path: Path) -> Path:
    folder = files.first_release(tmp_path / "whoops")
    for place, picture in enumerate(sorted(PICTURES.glob("*.jpg"))[:6]):
        for kind in ("weird", "normal"):
            target = folder / "pairs" / kind / f"p{place}.jpg"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(picture.read_bytes() + kind.encode())
    return folder


def letters(text: str) -> list[float]:
    return [1.0 + text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz0123456789"]


def pixels(image: Image) -> list[float]:
    return [float(byte) for byte in bytes.fromhex(image.sha256)]


def by_text(**more: Any) -> ScriptedEmbedder:
    return ScriptedEmbedder(letters, identity="letters", **more)


def by_picture() -> ScriptedEmbedder:
    return ScriptedEmbedder(letters, identity="pixels", image=pixels)


ANSWERS: dict[str, Any] = {
    "classify_atypicality": {"categories": ["TR1"]},
    "classify_from_picture": {"categories": ["TR1"]},
    "detect_statement": {"statement": 1},
    "choose_statement_from_picture": {"statement": 1},
    "fill_statement": {"primary": "bottle", "secondary": "feather"},
    "fill_from_picture": {"primary": "bottle", "secondary": "feather"},
    **{
        name: {"answers": [1]}
        for name in (
            *("choose_action_reasons", "end_to_end"),
            *("choose_explanation", "choose_explanation_from_picture", "choose_caption", "choose_caption_from_picture"),
        )
    },
    **{name: {"explanation": "It is odd."} for name in ("explain_from_description", "explain_from_picture")},
    **{name: {"answer": "weird"} for name in ("identify_from_description", "identify_from_picture")},
    **{name: {"answer": "two"} for name in ("answer_from_description", "answer_from_picture")},
    **{name: {"description": "A cup."} for name in ("caption", "caption_from_description")},
    "judge_equivalence": {"verdict": "true"},
}

ADS_TASKS: dict[str, type[Task]] = {each.name: each for each in (Mac, Asr, Aor, ArrMulti, ArrSingle)}
WHOOPS_TASKS: dict[str, type[Task]] = {
    each.name: each for each in (Explain, ExplainChoice, Identify, CaptionMatching, Vqa, Captioning)
}
FREE = {"whoops/explain", "whoops/vqa", "whoops/captioning"}
"""Tasks whose answers have no labels."""


def noting(asked: list[ChatRequest], make: Callable[..., Any]) -> Any:
    """A model that answers as `ANSWERS` says, and notes what it is asked."""

    def noted(answer: Any) -> Callable[[ChatRequest], Any]:
        def reply(request: ChatRequest) -> Any:
            asked.append(request)
            return answer

        return reply

    return make(**{name: noted(answer) for name, answer in ANSWERS.items()})


def made(name: str, asked: list[ChatRequest], *, ads: Path, whoops: Path, **options: Any) -> Task:
    """The task of that name with two examples before each question."""
    given: dict[str, Any] = {"shots": SHOTS, "context": "I", **options}
    if name in ADS_TASKS:
        given.setdefault("embedder", by_text() if name == "pittads/aor" else None)
        return ADS_TASKS[name](data=ads, vlm=noting(asked, ads_model), **given)
    judge = {"judge": noting([], model)} if name == "whoops/explain" else {}
    count = {"count": 3} if name == "whoops/explain-choice" else {}
    return WHOOPS_TASKS[name](data=whoops, vlm=noting(asked, model), **judge, **count, **given)


def check(run: Run, asked: list[ChatRequest], *, pictures: bool) -> None:
    """Holds what was shown against folds and prompts."""
    assert run.totals["outcomes"].keys() == {"answered"}
    chosen = {answer.sample.id: answer.sample.trace["shots"]["chosen"] for answer in run.answers}
    assert all(len({each["group"] for each in some}) == SHOTS for some in chosen.values())
    for request in asked:
        roles = [message.role for message in request.messages if message.role != "system"]
        shown = [sum(isinstance(part, ImagePart) for part in message.parts) for message in request.messages]
        assert roles == ["user", "assistant"] * SHOTS + ["user"]
        assert sum(shown) == (SHOTS + 1 if pictures else 0)
    assert asked


@pytest.mark.parametrize("name", [*ADS_TASKS, *WHOOPS_TASKS])
@pytest.mark.parametrize("how", ["random", "knn", "mmr", "balanced"])
async def test_pictures_stand_before_the_question_with_their_answers(
    name: str, how: Any, ads: Path, whoops: Path, tmp_path: Path
) -> None:
    asked: list[ChatRequest] = []
    embedder = {} if how == "random" else {"embedder": by_picture()}
    if how == "balanced" and name in FREE:
        with pytest.raises(UsageError, match="has no label"):
            made(name, asked, ads=ads, whoops=whoops, shots_from=how, **embedder).samples()
        return
    task = made(name, asked, ads=ads, whoops=whoops, shots_from=how, **embedder)

    run = evaluate(task, out=tmp_path / "run")

    check(run, asked, pictures=True)
    own = {answer.sample.id: answer.sample.group for answer in run.answers}
    folds = fold_of(own.values())
    for answer in run.answers:
        groups = [each["group"] for each in answer.sample.trace["shots"]["chosen"]]
        assert all(folds[group] != folds[own[answer.sample.id]] for group in groups)
    assert any("are not of the paper" in note for note in run.notes)
    assert f"{SHOTS} shots" in run.name
    shutil.rmtree(ads)
    shutil.rmtree(whoops)
    again = await rescore(Run.open(run.path), type(task), reread=True)
    assert (again.reread, again.changed, again.kept) == (len(run.answers), (), ())
    assert (again.run.figures, again.run.notes) == (run.figures, run.notes)


SAID: dict[str, str] = {
    **dict.fromkeys(ADS_TASKS, "V+T"),
    **dict.fromkeys(("whoops/explain", "whoops/explain-choice", "whoops/vqa"), "gold-caption"),
}


@pytest.mark.parametrize("name", SAID)
def test_descriptions_stand_before_the_question_as_it_has_its_own(
    name: str, ads: Path, whoops: Path, tmp_path: Path
) -> None:
    asked: list[ChatRequest] = []
    more: dict[str, Any] = {"descriptions": ads / "said"} if name in ADS_TASKS else {}
    task = made(name, asked, ads=ads, whoops=whoops, shots_from="knn", embedder=by_text(), context=SAID[name], **more)

    check(evaluate(task, out=tmp_path / "run"), asked, pictures=False)

    for request in asked:
        *shown, own = [message.text for message in request.messages if message.role == "user"]
        wanted = ("Objects: cup, brick", "Text in the image: BUY") if name in ADS_TASKS else ("stands on a table",)
        assert all(text in each for text in wanted for each in (*shown, own))
        assert len({*shown, own}) == SHOTS + 1


def test_a_description_that_is_made_of_all_parts_is_the_published_one(ads: Path, whoops: Path) -> None:
    task = made("pittads/mac", [], ads=ads, whoops=whoops, context="T_V", descriptions=ads / "said")

    shown = [example.values["description"] for sample in task.samples() for example in sample.inputs["examples"]]

    assert all(text.startswith("T_V of 1") for text in shown)


def test_only_ads_with_as_many_true_statements_as_are_asked_for_are_examples(ads: Path, whoops: Path) -> None:
    task = made("pittads/arr-multi", [], ads=ads, whoops=whoops, shots=4)
    answers = [example.answer for sample in task.samples() for example in sample.inputs["examples"]]

    assert {answer.count(",") for answer in answers} == {2}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("pittads/mac", {"context": "UH"}, "The ads of examples are not verbalized, so the context 'UH' takes no"),
        ("pittads/arr-multi", {"context": "I+s_IN"}, "The statements of examples are not detected"),
        ("pittads/arr-multi", {"step_by_step": True}, "Examples show answers without reasoning"),
        ("whoops/explain", {"context": "T_V"}, "The images of examples are not described"),
        ("pittads/mac", {"shots": 0, "shots_from": "knn"}, "chooses examples, and none are shown"),
        ("pittads/mac", {"shots_from": "knn"}, "Nothing says what examples are like a question"),
    ],
)
def test_what_has_no_examples_is_refused(
    name: str, options: dict[str, Any], message: str, ads: Path, whoops: Path
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        made(name, [], ads=ads, whoops=whoops, **options)
    assert caught.value.hint


@pytest.mark.parametrize("how", ["knn", "mmr", "balanced"])
def test_examples_that_tell_of_the_own_picture_go_with_no_swapped_one(how: Any, ads: Path, whoops: Path) -> None:
    task = made("pittads/mac", [], ads=ads, whoops=whoops, shots_from=how, embedder=by_picture())

    with pytest.raises(UsageError, match=rf"cannot be swapped.*shots_from={how}") as refused:
        swapped_images(task)

    assert "shots_from=random" in str(refused.value.hint)
    drawn = made("pittads/mac", [], ads=ads, whoops=whoops, shots_from="random")
    assert all(sample.inputs["examples"] for sample in swapped_images(drawn).samples)


def test_too_few_images_for_folds_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="3 images cannot be split into 5 folds"):
        Mac(data=world(tmp_path), vlm=ads_model(), context="I", shots=1).samples()


def test_the_true_statement_stands_beside_a_picture_and_its_examples(ads: Path, whoops: Path, tmp_path: Path) -> None:
    asked: list[ChatRequest] = []
    task = made("pittads/arr-single", asked, ads=ads, whoops=whoops, context="I+s_true", shots_from="random")
    evaluate(task, out=tmp_path / "run")

    for request in asked:
        users = [message.text for message in request.messages if message.role == "user"]
        assert all("mimics the texture of" in text or "feather" in text for text in users)


def test_without_examples_a_task_is_the_run_that_it_was(ads: Path, whoops: Path) -> None:
    for name in (*ADS_TASKS, *WHOOPS_TASKS):
        kept = made(name, [], ads=ads, whoops=whoops, shots=0).evaluation().options
        assert not [option for option in kept if option.startswith("shots")]
        assert name == "pittads/aor" or "embedder" not in kept


async def test_a_plan_counts_vectors_of_the_pool_and_of_the_question(ads: Path, whoops: Path) -> None:
    asked: list[ChatRequest] = []
    engine = Engine(records=MemoryStore())
    options: dict[str, Any] = {"shots_from": "knn", "embedder": by_picture(), "engine": engine, "limit": 2}
    with planning():
        task = made("pittads/mac", asked, ads=ads, whoops=whoops, **options).evaluation()
    epochs = [SampleEpoch(sample=sample, epoch=0) for sample in task.samples]

    planned = await run_job(task, epochs, engine).plan()

    lines = {line.link: line for line in planned.links}
    assert (lines["vectors"].known, lines["labels"].known) == (ADS, 2)
    assert asked == []
    assert json.dumps([sample.form() for sample in task.samples])


def test_examples_do_not_depend_on_how_many_are_asked(ads: Path, whoops: Path) -> None:
    def shown(**options: Any) -> dict[str, Any]:
        task = made("pittads/asr", [], ads=ads, whoops=whoops, **options)
        return {sample.id: sample.form()["inputs"]["examples"] for sample in task.samples()}

    whole = shown(shots_from="mmr", embedder=by_picture())
    part = shown(shots_from="mmr", embedder=by_picture(), limit=3)

    assert len(part) == 3
    assert part.items() <= whole.items()


def test_a_copied_picture_is_refused_by_name(ads: Path, whoops: Path) -> None:
    first, *_, last = sorted((ads / "train_images").rglob("*.*"))
    last.write_bytes(first.read_bytes())

    with pytest.raises(BadData, match=r"would be shown the example .*, which has the same picture") as caught:
        made("pittads/mac", [], ads=ads, whoops=whoops, shots_from="knn", embedder=by_picture(), seed=0).samples()
    assert "shots_leaks=leave-out" in str(caught.value.hint)
