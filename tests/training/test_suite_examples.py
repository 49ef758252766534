"""Examples of WHOOPS!, of the New Yorker caption contest and of Sherlock: what there are, and in which split."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest
from askance.errors import BadData, UsageError
from askance.evals import evaluate, find_task
from askance.evals.suite.selection import fold_of
from askance.images import RegionView
from askance.models import ScriptedModel
from askance.prompts import PromptLibrary
from askance.training import ChatExample, ChoiceExample, MadeSet, PairExample, TextExample, write_training_set
from askance.training.newyorker_examples import Form, newyorker_set
from askance.training.sherlock_examples import sherlock_set
from askance.training.whoops_examples import whoops_set
from tests.evals.newyorker import cartoons
from tests.evals.sherlock import corpus
from tests.evals.whoops import files
from tests.scripted import ENFORCED, model_of

# --- WHOOPS! ---


def said(example: ChatExample) -> tuple[str, str]:
    """Question and answer."""
    return example.prompt[0]["content"][1]["text"], example.completion[0]["content"][0]["text"]


def in_splits(made: MadeSet) -> dict[str, set[str]]:
    return {split: {example.group for example in examples} for split, examples in made.splits.items()}


def test_the_six_formats_are_those_of_the_paper(tmp_path: Path) -> None:
    files.first_release(tmp_path)
    files.pairs(tmp_path / "pairs", count=5)

    made = whoops_set(tmp_path, fold=0)

    examples = [example for split in made.splits.values() for example in split if isinstance(example, ChatExample)]
    of_one = Counter(example.meta["task"] for example in examples if example.group == files.IDS[0])
    assert of_one == {
        "whoops/vqa": 2,
        "whoops/captioning": 5,
        "whoops/matching": 5,
        "whoops/explain": 5,
        "whoops/explain in detail": 1,
        "whoops/identify": 2,
    }
    assert made.source.origin["tasks"]["whoops/captioning"] == 25
    about = {example.meta["task"]: said(example) for example in examples if example.group == files.IDS[0]}
    assert about["whoops/vqa"] == ("Question: How many are 0?", "two")
    assert about["whoops/captioning"][0] == "Describe the image."
    assert about["whoops/explain"][0] == "Why is it weird?"
    assert about["whoops/explain in detail"] == ("Why is it weird, in detail?", "Nobody has seen a brick cup before.")
    assert about["whoops/identify"][0] == "Is this normal or weird?"


def test_the_letter_is_that_of_the_detailed_caption_in_either_place(tmp_path: Path) -> None:
    made = whoops_set(files.first_release(tmp_path), fold=0)

    matching = [said(each) for split in made.splits.values() for each in split if isinstance(each, ChatExample)]
    letters = Counter[str]()
    for question, answer in matching:
        if question.startswith("Which is better? "):
            first, second = question.removeprefix("Which is better? A: ").split(" B: ")
            letters[answer] += 1
            assert "stands on a table" in (first if answer == "A" else second)
    assert {*letters} == {"A", "B"}
    assert letters.total() == 25


def test_test_images_of_a_fold_are_those_of_the_suite(tmp_path: Path) -> None:
    files.first_release(tmp_path)
    places = fold_of(files.IDS, seed=3)

    for fold in range(5):
        groups = in_splits(whoops_set(tmp_path, fold=fold, seed=3))
        assert groups["test"] == {name for name, place in places.items() if place == fold}
        assert groups["validation"] == {name for name, place in places.items() if place == (fold + 1) % 5}
        assert groups["train"] == {*files.IDS} - groups["test"] - groups["validation"]


def test_pairs_are_in_no_split_that_another_task_has_otherwise(tmp_path: Path) -> None:
    files.first_release(tmp_path)
    files.pairs(tmp_path / "pairs", count=5)
    (tmp_path / "pairs" / "normal" / f"{files.IDS[0]}.png").rename(tmp_path / "pairs" / "normal" / "other.png")
    (tmp_path / "pairs" / "weird").mkdir()
    for name in (*files.IDS[1:], "other"):
        picture = (tmp_path / "pairs" / "normal" / f"{name}.png").read_bytes() + b"weird"
        (tmp_path / "pairs" / "weird" / f"{name}.png").write_bytes(picture)

    for fold in range(5):
        made = whoops_set(tmp_path, fold=fold)
        groups = in_splits(made)
        assert not groups["train"] & (groups["test"] | groups["validation"])
        assert write_training_set(tmp_path / f"set-{fold}", made.splits, source=made.source).kind == "chat"


def test_without_pairs_identifying_is_left_out_and_said(tmp_path: Path) -> None:
    made = whoops_set(files.first_release(tmp_path), fold=1)

    assert "whoops/identify" not in made.source.origin["tasks"]
    assert made.source.notes[0].startswith("Identifying is left out: the pairs")
    assert "94 %" in made.source.notes[-1]
    with pytest.raises(UsageError, match="There is no fold 5"):
        whoops_set(tmp_path, fold=5)


# --- New Yorker ---


def newyorker(folder: Path, form: Form, **options: Any) -> MadeSet:
    wanted: dict[str, Any] = {"task": "matching", "fold": 0, "form": form, "prompts": PromptLibrary(), **options}
    return newyorker_set(folder, **wanted)


@pytest.fixture(scope="module")
def contests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cartoons.parquet(tmp_path_factory.mktemp("contests"), folds=(0, 1))


def test_choices_are_items_with_their_cartoon_once(contests: Path, tmp_path: Path) -> None:
    made = newyorker(contests, "choices")

    assert in_splits(made) == {
        split: {f"contest {contest}" for contest in cartoons.contests_of(0, split)} for split in cartoons.SPLITS
    }
    for split in made.splits.values():
        for example in split:
            assert isinstance(example, ChoiceExample)
            contest = int(example.group.split()[1])
            assert cartoons.animal(contest) in example.choices[example.label]
            assert len(example.choices) == 5
    assert len(made.splits["train"]) == cartoons.CAPTIONS * len(cartoons.contests_of(0, "train"))
    written = write_training_set(tmp_path / "set", made.splits, source=made.source)
    assert written.manifest["pictures"] == len(cartoons.CONTESTS)


def test_in_training_a_cartoon_is_described_in_six_ways(contests: Path) -> None:
    made = newyorker(contests, "text", task="explanation")

    per_contest = {
        split: {*Counter(example.group for example in examples).values()} for split, examples in made.splits.items()
    }
    assert per_contest["train"] == {6 * count for count in per_contest["test"]}
    assert per_contest["test"] == per_contest["validation"]
    assert all(isinstance(example, TextExample) for example in made.splits["test"])


@pytest.mark.parametrize("task", ["matching", "ranking", "explanation"])
@pytest.mark.parametrize("form", ["text", "json"])
def test_what_is_learnt_is_what_the_suite_asks(contests: Path, task: str, form: str) -> None:
    asked = dict[str, str]()

    def reply(request: ChatRequest) -> str:
        asked["\n".join(message.text for message in request.messages)] = ""
        return "Answer: A" if form == "text" else '{"answer": "A", "explanation": "It is."}'

    script = ScriptedModel(reply, identity="asked", capabilities=ENFORCED)
    model = model_of(script, protocol="paper" if form == "text" else None)
    evaluate(find_task(f"newyorker/{task}")(data=contests, fold=0, context="description", llm=model))

    made = newyorker(contests, "text", task=task, prompt_form=form)
    learnt = {example.input: example.target for example in made.splits["test"] if isinstance(example, TextExample)}
    assert learnt.keys() == asked.keys()
    if task != "explanation":
        letters = {
            json.loads(each)["answer"] if form == "json" else each.removeprefix("Answer: ") for each in learnt.values()
        }
        assert letters <= {*"ABCDE"}
        assert len(letters) > 1


def test_chats_are_the_same_as_turns(contests: Path) -> None:
    texts, chats = newyorker(contests, "text"), newyorker(contests, "chat")

    for text, chat in zip(texts.splits["train"], chats.splits["train"], strict=True):
        assert isinstance(text, TextExample)
        assert isinstance(chat, ChatExample)
        assert "\n".join(turn["content"][0]["text"] for turn in chat.prompt) == text.input
        assert chat.completion[0]["content"][0]["text"] == text.target


def test_an_explanation_is_no_choice_and_a_fold_must_be_there(contests: Path) -> None:
    with pytest.raises(UsageError, match="An explanation is written, not chosen"):
        newyorker(contests, "choices", task="explanation")
    with pytest.raises(BadData, match="has no fold 4 of matching"):
        newyorker(contests, "choices", fold=4)


def test_folds_that_share_a_contest_are_refused(tmp_path: Path) -> None:
    cartoons.lines(tmp_path, tasks=("matching",), folds=(0,))
    (folder,) = [path for path in tmp_path.iterdir() if (path / "train.jsonl").is_file()]
    train = (folder / "train.jsonl").read_text(encoding="utf-8")
    (folder / "test.jsonl").write_text(train, encoding="utf-8")

    with pytest.raises(BadData, match=r"stands there twice|both in"):
        newyorker(tmp_path, "choices")


# --- Sherlock ---


def train_corpus(folder: Path) -> Path:
    """The made-up corpus as one for training: without chunks."""
    corpus.write_pictures(folder / "images")
    rows = [{name: value for name, value in row.items() if name != "split_idx"} for row in corpus.rows()]
    corpus.write_json(folder / "sherlock_train_v1_1.json.zip", rows)
    return folder


def test_each_region_has_its_clue_and_its_inference(tmp_path: Path) -> None:
    made = sherlock_set(train_corpus(tmp_path), validation=0.3)

    pairs = [each for split in made.splits.values() for each in split if isinstance(each, PairExample)]
    regions = [region for scene in corpus.SCENES for region in scene.regions]
    assert {(each.kind, each.text) for each in pairs} == {
        *(("clue", clue) for _, _, clue, _, _ in regions),
        *(("inference", inference) for _, _, _, inference, _ in regions),
    }
    sandals = next(each for each in pairs if each.text == "two sandals")
    assert sandals.view == RegionView(
        "highlight", ((10, 24, 22, 34), (40, 30, 50, 38)), unit="native pixels", style="sherlock"
    )
    groups = in_splits(made)
    assert groups["validation"]
    assert not groups["train"] & groups["validation"]
    assert write_training_set(tmp_path / "set", made.splits, source=made.source).kind == "pairs"


def test_clues_and_inferences_need_no_pictures(tmp_path: Path) -> None:
    train_corpus(tmp_path)
    for picture in (tmp_path / "images").rglob("*.jpg"):
        picture.unlink()

    made = sherlock_set(tmp_path, form="text")

    assert {
        (each.input, each.target) for split in made.splits.values() for each in split if isinstance(each, TextExample)
    } == {(clue, inference) for scene in corpus.SCENES for _, _, clue, inference, _ in scene.regions}
    lost = sherlock_set(tmp_path)
    with pytest.raises(UsageError, match=r"No example is left to train on\. Left out: 26 examples: the folder has no"):
        write_training_set(tmp_path / "set", lost.splits, source=lost.source)


def test_the_validation_corpus_may_not_share_pictures_with_that_for_training(tmp_path: Path) -> None:
    train_corpus(tmp_path)
    corpus.write_json(tmp_path / f"{corpus.CORPUS}.zip", corpus.rows())

    made = sherlock_set(tmp_path, official=True)

    assert "as in the paper" in made.source.notes[-1]
    with pytest.raises(UsageError, match=r"The group '.*101.jpg' is in the splits 'train' and 'validation'"):
        write_training_set(tmp_path / "set", made.splits, source=made.source)


def test_a_folder_without_the_training_corpus_says_so(tmp_path: Path) -> None:
    corpus.write(tmp_path)

    with pytest.raises(BadData, match="has no corpus for train; it has the corpus for val"):
        sherlock_set(tmp_path)
