"""Action-reason retrieval: figures worked out by hand, contexts, orders, kinds of wrong options, what is left out."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest
from askance.errors import BadData, UsageError
from askance.evals import Run, Sample, Task, evaluate
from askance.evals.negatives import generate, read_statements
from askance.evals.pittads import ArrBaseline, ArrMulti, ArrSingle, statements_in
from askance.evals.pittads.arr import NEGATIVE_KINDS
from askance.evals.suite.choice import MULTI_NOTES, answers_in, multi_scorer, score_multi, score_single
from tests.evals.pittads.files import key_of, row, write_csv, write_json
from tests.evals.pittads.worlds import (
    DETECTED,
    REFUSAL,
    choosing,
    is_wrong,
    listed,
    model,
    requests_of,
    shown,
    statements,
    world,
    writer,
)
from tests.scripted import name_of

KEY = key_of(11)


def sample(*kinds: str, order: int | None = None) -> Sample:
    return Sample(
        id="1.jpg",
        inputs={"options": [f"option {place}" for place in range(len(kinds))]},
        target={"true": [n for n, kind in enumerate(kinds, start=1) if kind == "true"], "kinds": list(kinds)},
        tags={} if order is None else {"order": order},
    )


SIX = sample("true", "action", "true", "other image", "true", "action")

BY_HAND: dict[str, tuple[list[int], tuple[float, ...]]] = {
    # p@1, p@2, p@3, acc@1, acc@2, mean of five, mean of precisions
    "all right": ([1, 3, 5], (1, 1, 1, 1, 1, 1, 1)),
    "second wrong": ([1, 2, 3], (1, 1, 2 / 3, 1, 1, 14 / 15, 8 / 9)),
    "third right": ([2, 4, 5], (1, 1 / 2, 1 / 3, 0, 0, 11 / 30, 11 / 18)),
    "second right": ([2, 1, 4], (1, 1 / 2, 1 / 3, 0, 1, 17 / 30, 11 / 18)),
    "none right": ([2, 4, 6], (0, 0, 0, 0, 0, 0, 0)),
    "one answer": ([1], (1, 1 / 2, 1 / 3, 1, 1, 23 / 30, 11 / 18)),
    "more than three": ([2, 4, 6, 1, 3], (0, 0, 0, 0, 0, 0, 0)),
    "one twice": ([2, 2, 4, 1], (1, 1 / 2, 1 / 3, 0, 0, 11 / 30, 11 / 18)),
}


@pytest.mark.parametrize(("answer", "values"), BY_HAND.values(), ids=BY_HAND)
def test_an_answer_is_worth_what_was_worked_out(answer: list[int], values: tuple[float, ...]) -> None:
    names = ("p@1", "p@2", "p@3", "acc@1", "acc@2", "mean of five", "mean of precisions")

    found = score_multi(SIX, answer).values

    assert [found[name] for name in names] == pytest.approx(list(values))
    assert found["acc@3"] == found["p@1"]  # as the paper notes


def test_errors_are_told_by_kind() -> None:
    score = score_multi(SIX, [2, 4, 1])

    assert score.notes == {"chosen": ["action", "other image", "true"], "errors": {"action": 1, "other image": 1}}
    assert {name: value for name, value in score.values.items() if "error" in name} == pytest.approx(
        {"error: action": 1 / 3, "error: other image": 1 / 3}
    )


def test_a_single_answer_is_right_or_of_a_kind() -> None:
    right, wrong = score_single(SIX, [3]), score_single(SIX, [4])

    assert right.values == {"accuracy": 1.0, "error: action": 0.0, "error: other image": 0.0, "place": 0.4}
    assert wrong.values == {"accuracy": 0.0, "error: action": 0.0, "error: other image": 1.0, "place": 0.6}
    assert (right.notes, wrong.notes["errors"]) == ({"chosen": ["true"]}, {"other image": 1})


@pytest.mark.parametrize("value", [[], None, [0], [7], ["1"], [True], {"answers": [1]}], ids=repr)
def test_what_is_no_answer_has_no_score(value: Any) -> None:
    with pytest.raises(UsageError, match="names no options of 6"):
        answers_in(value, 6)


@pytest.mark.parametrize("true", [1, 2, 3, 4])
def test_a_random_answer_has_its_exact_expectation(true: int) -> None:
    """Over all answers of three of seven options: hits follow the hypergeometric distribution."""
    options = sample(*["true"] * true, *["reason"] * (7 - true))
    scores = [score_multi(options, [*answer]).values for answer in itertools.permutations(range(1, 8), 3)]

    def average(name: str) -> float:
        return math.fsum(score[name] for score in scores) / len(scores)

    hits = [math.comb(true, h) * math.comb(7 - true, 3 - h) / math.comb(7, 3) for h in range(4)]
    for k in (1, 2, 3):
        assert average(f"p@{k}") == pytest.approx(sum(share * min(k, h) / k for h, share in enumerate(hits)))
        assert average(f"acc@{k}") == pytest.approx(1 - math.comb(7 - true, k) / math.comb(7, k))
    assert average("error: reason") == pytest.approx(1 - true / 7)
    assert average("place") == pytest.approx(0.5)


@pytest.mark.parametrize(("true", "ceiling"), [(1, 1 / 3), (2, 2 / 3), (3, 1), (4, 1)])
def test_bounds_are_nothing_and_the_ceiling(true: int, ceiling: float) -> None:
    options, scoring = sample(*["true"] * true, "reason"), multi_scorer(NEGATIVE_KINDS)

    worst, best = scoring.if_wrong(options).values, scoring.if_right(options).values

    assert (worst["p@3"], worst["mean of five"], worst["acc@1"]) == (0, 0, 0)
    assert (best["p@3"], best["acc@1"]) == (pytest.approx(ceiling), 1)
    assert best["ceiling mean of five"] == worst["ceiling mean of five"] == best["mean of five"]


# --- whole runs ---


def run_of(task: Task, folder: Path) -> Run:
    return evaluate(task, out=folder / "run")


def test_a_perfect_chooser_gets_the_ceiling(tmp_path: Path) -> None:
    llm = model(choose_action_reasons=choosing(is_wrong))

    figures = shown(run_of(ArrMulti(data=world(tmp_path, true=(1, 2, 3, 4)), vlm=llm, context="IN"), tmp_path))

    assert {name: figures[name] for name in ("p@1", "p@2", "p@3", "acc@1", "acc@2")} == {
        "p@1": 100,
        "p@2": 87.5,
        "p@3": 75,
        "acc@1": 100,
        "acc@2": 100,
    }
    assert (figures["ceiling p@2"], figures["ceiling p@3"]) == (87.5, 75)
    assert figures["mean of five"] == figures["ceiling mean of five"] == 92.5
    assert figures["error: other image"] == pytest.approx(100 * (2 / 3 + 1 / 3) / 4)
    assert figures["error: action"] is None


def test_an_abstaining_chooser_is_between_nothing_and_the_ceiling(tmp_path: Path) -> None:
    llm = model(choose_action_reasons=REFUSAL)

    run = run_of(ArrMulti(data=world(tmp_path, true=(1, 3)), vlm=llm, context="IN"), tmp_path)
    figure = run.figure("p@3")

    assert (figure.value, figure.if_wrong, figure.if_right) == (0, 0, pytest.approx(2 / 3))
    assert (figure.samples, figure.answered, figure.among_answered) == (2, 0, None)
    assert run.totals["outcomes"] == {"refused": 2}
    assert set(MULTI_NOTES) <= set(run.notes)


def test_order_is_nothing_to_who_reads_the_texts(tmp_path: Path) -> None:
    llm, data = model(choose_action_reasons=choosing(lambda text: text[::-1])), world(tmp_path)

    runs = [
        evaluate(ArrMulti(data=data, vlm=llm, context="IN", seed=seed, orders=2), out=tmp_path / str(seed))
        for seed in (0, 1)
    ]
    first, second = (shown(run) for run in runs)

    assert first["same answer in both orders"] == 100
    assert first["difference between orders"] == 0
    places = {"place of the first answer": 50}
    assert {**first, **places} == {**second, **places}
    assert first["place of the first answer"] == 50  # an option and itself, listed backwards
    assert len(runs[0].answers) == 6
    assert runs[0].figure("p@1").clusters == 3


def test_order_is_all_to_who_takes_the_first(tmp_path: Path) -> None:
    llm = model(choose_action_reasons={"answers": [1, 2, 3]})

    run = run_of(ArrMulti(data=world(tmp_path, true=(3, 3)), vlm=llm, context="IN", orders=2), tmp_path)
    scores = {answer.sample.id: answer.score.values["mean of five"] for answer in run.answers if answer.score}
    apart = [abs(scores[key_of(number)] - scores[f"{key_of(number)}#2"]) for number in (11, 12)]

    assert shown(run)["same answer in both orders"] == 0
    assert shown(run)["place of the first answer"] == 0
    assert run.figure("difference between orders").value == pytest.approx(sum(apart) / 2)


def test_a_non_answer_is_no_equal_answer_but_could_be_one(tmp_path: Path) -> None:
    seen: list[set[str]] = []

    def once(request: ChatRequest) -> Any:
        options = set(listed(request))
        seen.append(options)
        return {"answers": [1]} if seen.count(options) == 1 else REFUSAL

    llm = model(choose_action_reasons=once)
    figure = run_of(ArrMulti(data=world(tmp_path), vlm=llm, context="IN", orders=2), tmp_path).figure(
        "same answer in both orders"
    )

    assert (figure.value, figure.if_wrong, figure.if_right, figure.among_answered) == (0, 0, 1, None)


CONTEXTS: dict[str, tuple[list[str], list[str]]] = {
    # what is asked before the answer, in order; what the answering model reads
    "V+T": (["objects", "scene_text"], ["Objects: cup, brick\nText in the image: BUY"]),
    "IN": (["narration"], ["NARRATED."]),
    "UH": (["unusual"], ["ODD."]),
    "V+T+IN+UH": (["objects", "scene_text", "narration", "unusual"], ["NARRATED.", "ODD."]),
    "T_V": (["objects", "scene_text", "narration", "unusual", "combine"], ["COMBINED."]),
    "T_V-UH": (["objects", "scene_text", "narration", "combine"], ["COMBINED."]),
    "T_V+s_IN": (
        ["objects", "scene_text", "narration", "unusual", "combine", "detect_statement NARRATED."],
        ["COMBINED.", DETECTED],
    ),
    "T_V+s_TV": (
        ["objects", "scene_text", "narration", "unusual", "combine", "detect_statement COMBINED."],
        ["COMBINED.", DETECTED],
    ),
    "IN+s_true": (["narration"], ["NARRATED.", "The surface of bottle 0 mimics the texture of feather 0, while"]),
    "text-only": ([], ["No description of the image is available."]),
    "I": ([], ["picture"]),
    "I+T_V": (["objects", "scene_text", "narration", "unusual", "combine"], ["picture", "COMBINED."]),
    "I+s_IN": (["objects", "narration", "detect_statement NARRATED."], ["picture", DETECTED]),
    "I+s_TV": (
        ["objects", "scene_text", "narration", "unusual", "combine", "detect_statement COMBINED."],
        ["picture", DETECTED],
    ),
    "I+s_true": ([], ["picture", "The surface of bottle 0 mimics the texture of feather 0, while"]),
    "I+s_wrong": ([], ["picture", "bottle 0"]),
}
EVERYTHING = ["NARRATED.", "ODD.", "COMBINED.", DETECTED, "picture", "bottle 0", "No description of the image"]


@pytest.mark.parametrize(("context", "expected"), CONTEXTS.items(), ids=CONTEXTS)
def test_a_context_asks_and_shows_what_it_says(
    context: str, expected: tuple[list[str], list[str]], tmp_path: Path
) -> None:
    asked: list[ChatRequest] = []
    both = requests_of(asked, choose_action_reasons={"answers": [1]}, end_to_end={"answers": [1]})

    run_of(ArrMulti(data=world(tmp_path, true=(3,)), vlm=both, context=context), tmp_path)
    *before, last = [_seen(request) for request in asked]

    assert sorted(map(_named, asked[:-1])) == sorted(expected[0])
    assert [part for part in expected[1] if part not in last] == []
    assert [part for part in EVERYTHING if part in last and not any(part in shown for shown in expected[1])] == []
    assert len(before) == len(expected[0])


def _named(request: ChatRequest) -> str:
    name, text = name_of(request), request.messages[-1].text
    detected = next((said for said in ("NARRATED.", "COMBINED.") if said in text), "")
    return f"{name} {detected}" if name == "detect_statement" else name


def _seen(request: ChatRequest) -> str:
    parts = request.messages[-1].parts
    return ("picture\n" if len(parts) > 1 else "") + request.messages[-1].text


def test_a_wrong_statement_has_the_right_objects_and_a_relation_that_nobody_sees(tmp_path: Path) -> None:
    rows = [[row(KEY, "1", "bottle", "feather"), row(KEY, "3", "bottle", "box"), row(KEY, "8", "beer", "lamp")]]
    task = ArrMulti(data=world(tmp_path, true=(3,), rows=rows), vlm=model(), context="I+s_wrong")

    assert task.samples()[0].inputs["statement"] == {"relation": "TR2", "primary": "bottle", "secondary": "feather"}


def test_ads_without_what_a_context_needs_are_left_out_and_told(tmp_path: Path) -> None:
    keys = [key_of(number) for number in (11, 12, 13)]
    rows = [[row(keys[0])], [row(keys[1], "1", "", "")], [row(keys[2])]]
    data = world(tmp_path, rows=rows)
    (data / "train_images" / keys[2]).unlink()

    task = ArrMulti(data=data, vlm=model(), context="I+s_true", which="labelled")

    assert [sample.id for sample in task.samples()] == [keys[0]]
    assert task.notes()[1:-1] == (
        "1 of 3 ads are left out: those with no image",
        "1 of 2 ads are left out: those with no atypicality statement to give",
    )


def test_published_descriptions_are_not_asked_for(tmp_path: Path) -> None:
    asked: list[ChatRequest] = []
    data = world(tmp_path, true=(3, 3))
    texts = [[key_of(11), "A bottle."], [key_of(12), "A jar."]]
    write_csv(tmp_path / "said" / "combine_LLAVA_description_ARR.csv", texts, ("ID", "description"))
    llm = requests_of(asked, choose_action_reasons={"answers": [1]})

    task = ArrMulti(data=data, llm=llm, context="T_V", descriptions=tmp_path / "said")
    run_of(task, tmp_path)

    assert task.kept()["given"] == ["description"]
    assert [name_of(request) for request in asked] == ["choose_action_reasons"] * 2
    assert ["A bottle." in request.messages[-1].text for request in asked] == [True, False]


def test_without_a_vlm_ads_that_nobody_described_are_left_out(tmp_path: Path) -> None:
    data = world(tmp_path, true=(3, 3))
    texts = [[key_of(11), "A bottle."]]
    write_csv(tmp_path / "said" / "IN_LLAVA_description_ARR.csv", texts, ("ID", "description"))

    task = ArrMulti(data=data, llm=model(), context="IN", descriptions=tmp_path / "said")

    assert [sample.inputs["narration"] for sample in task.samples()] == ["A bottle."]
    assert task.notes()[1] == "1 of 2 ads are left out: those that nobody described"
    with pytest.raises(BadData, match=r"No ad of .* can be used.*Name a model that describes them, `--vlm`"):
        ArrMulti(data=data, llm=model(), context="UH", descriptions=tmp_path / "said").evaluation()


def test_roles_are_asked_for_their_part(tmp_path: Path) -> None:
    asked: dict[str, list[ChatRequest]] = {"vlm": [], "llm": [], "combiner": []}
    answers = {"choose_action_reasons": {"answers": [1]}}
    models: dict[str, Any] = {role: requests_of(requests, **answers) for role, requests in asked.items()}

    run_of(ArrMulti(data=world(tmp_path, true=(3,)), context="T_V+s_IN", **models), tmp_path)

    assert {role: {name_of(request) for request in requests} for role, requests in asked.items()} == {
        "vlm": {"objects", "scene_text", "narration", "unusual"},
        "llm": {"detect_statement", "choose_action_reasons"},
        "combiner": {"combine"},
    }


@pytest.mark.parametrize(("context", "name"), [("IN", "choose_action_reasons"), ("I", "end_to_end")])
def test_steps_are_asked_for(context: str, name: str, tmp_path: Path) -> None:
    asked: list[ChatRequest] = []
    vlm = requests_of(asked, **{name: {"reasoning": "1, then 2.", "answers": [2]}})

    run = run_of(ArrMulti(data=world(tmp_path, true=(3,)), vlm=vlm, context=context, step_by_step=True), tmp_path)

    assert "Think step by step" in asked[-1].messages[-1].text
    assert run.answers[0].prediction.value == [2]
    assert run.name.endswith(f"({context}, step by step)")


def test_options_stand_in_an_order_of_their_own_for_each_image_and_seed(tmp_path: Path) -> None:
    data = world(tmp_path)

    def options(seed: int, limit: int | None = None) -> list[list[str]]:
        task = ArrMulti(data=data, vlm=model(), context="I", seed=seed, limit=limit)
        return [sample.inputs["options"] for sample in task.samples()]

    assert options(0) == options(0)
    assert options(0, 1) == options(0)[:1]
    assert options(0) != options(1)
    assert [sorted(shown) for shown in options(0)] == [sorted(shown) for shown in options(1)]
    assert len({tuple("right" in text for text in shown) for shown in options(0)}) == 3


def test_the_second_order_is_the_first_one_backwards(tmp_path: Path) -> None:
    task = ArrMulti(data=world(tmp_path, true=(3,)), vlm=model(), context="I", orders=2)
    first, second = task.samples()

    assert (first.id, second.id, first.cluster, second.cluster) == (KEY, f"{KEY}#2", KEY, KEY)
    assert first.inputs["options"][::-1] == second.inputs["options"]
    for each in task.samples():
        target: Any = each.target
        assert [each.inputs["options"][n - 1].endswith("right") for n in target["true"]] == [True] * 3


# --- one true statement ---


def test_single_has_all_true_statements_among_its_options_or_one(tmp_path: Path) -> None:
    data = world(tmp_path, true=(1, 3, 5), wrong=10)

    one = ArrSingle(data=data, vlm=model(), context="I", true="one")
    all_of_them = ArrSingle(data=data, vlm=model(), context="I")

    assert [len(sample.inputs["options"]) for sample in one.samples()] == [11, 11, 11]
    assert [_true(sample) for sample in one.samples()] == [1, 1, 1]
    assert [_true(sample) for sample in all_of_them.samples()] == [1, 3, 5]


def _true(of: Sample) -> int:
    target: Any = of.target
    return len(target["true"])


def test_single_is_scored_by_accuracy(tmp_path: Path) -> None:
    right = choosing(is_wrong, count=1)

    def half(request: ChatRequest) -> Any:
        return right(request) if "1/11.jpg" in request.messages[-1].text else {"answers": [1, 2]}

    llm = model(choose_action_reasons=half)
    run = run_of(ArrSingle(data=world(tmp_path, true=(3, 3)), vlm=llm, context="IN"), tmp_path)
    figure = run.figure("accuracy")

    assert (figure.value, figure.among_answered, figure.if_right) == (0.5, 1, 1)
    assert run.totals["outcomes"] == {"answered": 1, "invalid": 1}  # two where one was asked for


# --- kinds of wrong options ---

HARD = "_hard_QA_Combined_Action_Reason_train.json"


@pytest.mark.parametrize(("name", "kind"), [("action", "action"), ("semantic", "statement")])
def test_a_file_of_one_kind_says_the_kind(name: str, kind: str, tmp_path: Path) -> None:
    data = world(tmp_path, true=(3,))
    write_json(data / "train" / f"{name}{HARD}", {KEY: statements(KEY, 3, 3)})
    llm = model(end_to_end=choosing(lambda text: not is_wrong(text)))

    run = run_of(ArrMulti(data=data, vlm=llm, context="I", qa=Path(f"{name}{HARD}")), tmp_path)

    assert {name: value for name, value in shown(run).items() if "error" in name and value is not None} == {
        f"error: {kind}": 100
    }
    assert run.configuration["options"]["qa"] == f"{name}{HARD}"


def test_in_a_file_of_all_kinds_the_files_of_one_kind_tell(tmp_path: Path) -> None:
    data = world(tmp_path, true=(1,))
    true = statements(KEY, 1, 0)[0]
    write_json(data / "train" / f"action{HARD}", {KEY: [true, [*true, "act"]]})
    write_json(data / "train" / f"object{HARD}", {KEY: [true, [*true, "thing"]]})
    write_json(data / "train" / f"large_combined{HARD}", {KEY: [true, [*true, "act", "thing", "else"]]})

    task = ArrMulti(data=data, vlm=model(), context="I", qa=Path(f"large_combined{HARD}"))
    target: Any = task.samples()[0].target

    assert dict(zip(task.samples()[0].inputs["options"], target["kinds"], strict=True)) == {
        true[0]: "true",
        "act": "action",
        "thing": "object",
        "else": "unknown hard negative",
    }


LARGE = f"large_combined{HARD}"
WRITTEN = dict.fromkeys(("action", "reason", "adjective", "object", "statement"), 3)


def generated(data: Path, out: Path) -> Path:
    """The file of all kinds that is written for the statements of `data`."""
    generate(read_statements(statements_in(data)), writer(), out=out)
    return out / LARGE


PLACES = {
    "as it is": f"hard/{LARGE}",
    "under another name": "hard/hard.json",
    "beside the folder": f"../beside/{LARGE}",
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_kinds_go_with_the_file_that_is_written(place: str, tmp_path: Path) -> None:
    data = world(tmp_path / "data", true=(3,))
    file = generated(data, (data / place).parent).rename(data / place)

    task = ArrBaseline(data=data, qa=file)
    target: Any = task.samples()[0].target

    assert Counter(target["kinds"]) == {"true": 3, **WRITTEN}
    assert task.notes()[1] == f"Options of an image: 18, 3 of them true; wrong ones: hard negatives; {file.name}"


def test_hard_negatives_are_those_that_lie_in_the_folder(tmp_path: Path) -> None:
    data = world(tmp_path, true=(3,))
    with pytest.raises(BadData) as missing:
        ArrBaseline(data=data, negatives="hard").evaluation()
    generated(data, data / "hard")

    easy, hard = ArrBaseline(data=data), ArrBaseline(data=data, negatives="hard")
    kinds: list[Counter[str]] = [Counter(task.samples()[0].target["kinds"]) for task in (easy, hard)]

    assert f"`askance negatives generate {data} --llm openai:gpt-4o --out {data}/hard`" in str(missing.value)
    assert kinds == [{"true": 3, "other image": 12}, {"true": 3, **WRITTEN}]
    assert [task.kept().get("negatives") for task in (easy, hard)] == [None, "hard"]
    with pytest.raises(UsageError, match=r"^The file 'a\.json' says itself which options there are\."):
        ArrBaseline(data=data, negatives="hard", qa=Path("a.json")).evaluation()


def test_without_what_tells_them_kinds_are_unknown_and_that_is_said(tmp_path: Path) -> None:
    data = world(tmp_path / "data", true=(3, 3))
    own = json.loads((data / "train" / "QA_Combined_Action_Reason_train.json").read_text("utf-8"))
    true, options = own[KEY]
    other = own[key_of(12)][0][0]
    file = write_json(tmp_path / "mixed.json", {**own, KEY: [true, [*options, other, "written by somebody"]]})

    task = ArrBaseline(data=data, qa=file)
    found = Counter(kind for sample in task.samples() for kind in sample.target["kinds"])

    assert found == {"true": 6, "other image": 25, "unknown hard negative": 1}
    assert "25 statements of other images, 1 of an unknown kind; mixed.json" in task.notes()[1]
    assert task.notes()[2].endswith("where the negatives.jsonl that was written with their file lies beside it")


def test_typical_images_are_a_set_of_their_own(tmp_path: Path) -> None:
    keys = [key_of(number) for number in (11, 12, 13)]
    rows = [[row(keys[0])], [row(keys[1], "Regular_Object", "", "")] * 3, [row(keys[2], "5")]]

    task = ArrMulti(data=world(tmp_path, rows=rows), vlm=model(), context="T_V", which="typical")

    assert [sample.id for sample in task.samples()] == [keys[1]]


def test_options_of_blanks_are_not_shown(tmp_path: Path) -> None:
    data = world(tmp_path, true=(1,))
    true = statements(KEY, 1, 0)[0]
    write_json(data / "train" / "QA_Combined_Action_Reason_train.json", {KEY: [true, [*true, "  ", "n/a"]]})

    task = ArrMulti(data=data, vlm=model(), context="I")

    assert sorted(task.samples()[0].inputs["options"]) == sorted([*true, "n/a"])


# --- what cannot be ---

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "context": ({"context": "V+UH"}, "The task 'pittads/arr-multi' has no context 'V+UH'."),
    "statement in another description": (
        {"context": "IN+s_TV"},
        "The context 'IN+s_TV' detects a statement in T_V and shows another description.",
    ),
    "orders": (
        {"orders": 3},
        "The option 'orders' of the task 'pittads/arr-multi' cannot be 3. It takes one of `1`, `2`.",
    ),
    "limit": (
        {"limit": 0},
        "The option 'limit' of the task 'pittads/arr-multi' cannot be 0. It takes a whole number from 1.",
    ),
}


@pytest.mark.parametrize(("options", "message"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_is_said(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        ArrMulti(data=world(tmp_path), vlm=model(), **options).evaluation()

    assert str(refused.value).startswith(message)


def test_a_picture_needs_somebody_who_sees(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^The context 'I' shows the picture\. Give a `vlm`\.$"):
        ArrMulti(data=world(tmp_path), llm=model(), context="I").evaluation()


def test_single_takes_one_true_statement_or_all(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be 'two'\. It takes one of `one`, `all`"):
        ArrSingle(data=world(tmp_path), vlm=model(), context="I", true="two").evaluation()


@pytest.mark.parametrize("name", ["I", "T_V", "T_V-UH", "V+T+IN+UH", "T_V+s_IN", "I+T_V+s_true", "text-only"])
def test_contexts_have_names(name: str) -> None:
    assert ArrMulti(data=Path("ads"), context=name).parsed_context.name == name


def test_two_orders_share_a_pair_and_equal_answers_a_number() -> None:
    first, second = (score_multi(sample("true", "reason", order=order), [1]).values for order in (1, 2))

    assert (first["order"], second["order"]) == (1, 2)
    assert first["pair"] == second["pair"]
    assert first["answer"] == second["answer"] < 2**48
