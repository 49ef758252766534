"""Statement retrieval: which wrong statements there are, and who falls for which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from askance.atypicality import RELATIONS, Statement
from askance.chat import ChatRequest
from askance.errors import BadData, UsageError
from askance.evals import Sample, Task, evaluate
from askance.evals.pittads import Asr
from askance.evals.suite.choice import score_single
from tests.evals.pittads.files import key_of, row
from tests.evals.pittads.worlds import Reply, listed, model, requests_of, shown, world
from tests.scripted import name_of

KEY = key_of(11)


def made(folder: Path, count: int = 5, **options: Any) -> Task:
    return Asr(**dict[str, Any]({"data": world(folder, true=(3,) * count), "vlm": model(), "context": "I", **options}))


def kinds(sample: Sample) -> dict[str, str]:
    target: Any = sample.target
    return dict(zip(sample.inputs["options"], target["kinds"], strict=True))


def test_there_are_four_wrong_pairs_three_wrong_relations_and_the_swapped_pair(tmp_path: Path) -> None:
    task = made(tmp_path)

    for number, sample in enumerate(task.samples()):
        found = kinds(sample)
        true = Statement("TR1", f"bottle {number}", f"feather {number}")
        assert Counter(found.values()) == {"true": 1, "wrong objects": 4, "wrong relation": 3, "swapped": 1}
        assert found[true.text] == "true"
        assert found[Statement("TR1", true.secondary, true.primary).text] == "swapped"
        assert {Statement.parse(text).relation for text, kind in found.items() if kind == "wrong relation"} == {
            *RELATIONS
        } - {"TR1"}
        assert sample.target == {"true": [[*found].index(true.text) + 1], "kinds": [*found.values()]}


def test_wrong_objects_are_those_of_two_other_images_in_both_orders(tmp_path: Path) -> None:
    for number, sample in enumerate(made(tmp_path).samples()):
        wrong = [Statement.parse(text) for text, kind in kinds(sample).items() if kind == "wrong objects"]
        pairs = {frozenset((statement.primary, statement.secondary)) for statement in wrong}

        assert {statement.relation for statement in wrong} == {"TR1"}
        assert len(pairs) == 2
        assert {(one.secondary, one.primary) for one in wrong} == {(one.primary, one.secondary) for one in wrong}
        assert frozenset((f"bottle {number}", f"feather {number}")) not in pairs


def test_what_an_annotator_says_is_never_wrong(tmp_path: Path) -> None:
    rows = [
        [row(KEY, "1", "beer", "feather"), row(KEY, "3", "beer", "lamp"), row(KEY, "1", "Feather", "beer")],
        [row(key_of(12), "8", "BEER", "Feather")],
    ]
    task = Asr(data=world(tmp_path, true=(3, 3), rows=rows), vlm=model(), context="I")

    assert Counter(kinds(task.samples()[0]).values()) == {"true": 1, "wrong relation": 2}  # neither TR1 nor OIO
    assert Statement("OR", "beer", "feather").text in kinds(task.samples()[0])


def test_two_names_of_one_object_cannot_be_swapped(tmp_path: Path) -> None:
    rows = [[row(KEY, "2", "tree", "tree")]]

    found = kinds(Asr(data=world(tmp_path, true=(3,), rows=rows), vlm=model(), context="I").samples()[0])

    assert Counter(found.values()) == {"true": 1, "wrong relation": 3}


def test_options_are_a_matter_of_seed_and_image(tmp_path: Path) -> None:
    data = world(tmp_path, true=(3,) * 5)

    def options(**more: Any) -> list[list[str]]:
        return [sample.inputs["options"] for sample in Asr(data=data, vlm=model(), context="I", **more).samples()]

    assert options() == options()
    assert options(limit=2) == options()[:2]  # drawn from all annotated images
    assert options(seed=1) != options()


@pytest.mark.parametrize(("context", "name"), [("I", "choose_statement_from_picture"), ("IN", "detect_statement")])
def test_a_perfect_chooser_is_right_and_the_order_is_nothing_to_it(context: str, name: str, tmp_path: Path) -> None:
    asked: list[ChatRequest] = []
    true = {
        frozenset(found): text
        for found in map(kinds, made(tmp_path).samples())
        for text in found
        if found[text] == "true"
    }
    vlm = requests_of(asked, **{name: by_options(true)})

    run = evaluate(made(tmp_path, vlm=vlm, context=context, orders=2), out=tmp_path / "run")
    figures = shown(run)

    assert (figures["accuracy"], figures["same answer in both orders"]) == (100, 100)
    assert figures["error: wrong objects"] == figures["error: wrong relation"] == figures["error: swapped"] == 0
    assert {name_of(request) for request in asked} == {name, *(["narration"] if context == "IN" else [])}
    assert len(listed(asked[-1])) == 9


def by_options(texts: Mapping[frozenset[str], str]) -> Reply:
    """Chooses the text that belongs to the options that are shown."""

    def reply(request: ChatRequest) -> dict[str, int]:
        options = listed(request)
        return {"statement": options.index(texts[frozenset(options)]) + 1}

    return reply


def test_errors_are_counted_by_kind(tmp_path: Path) -> None:
    wanted = ["true", "swapped", "swapped", "wrong relation"]
    chosen: dict[frozenset[str], str] = {}
    for sample, want in zip(made(tmp_path, 4).samples(), wanted, strict=True):
        found = kinds(sample)
        chosen[frozenset(found)] = next(text for text, kind in found.items() if kind == want)
    vlm = model(choose_statement_from_picture=by_options(chosen))

    figures = shown(evaluate(made(tmp_path / "again", 4, vlm=vlm), out=tmp_path / "run"))

    assert {name: figures[name] for name in ("accuracy", "error: swapped", "error: wrong relation")} == {
        "accuracy": 25,
        "error: swapped": 50,
        "error: wrong relation": 25,
    }


def test_a_random_choice_is_right_one_time_in_nine(tmp_path: Path) -> None:
    scores = [score_single(sample, [number]) for sample in made(tmp_path).samples() for number in range(1, 10)]

    assert sum(score.values["accuracy"] for score in scores) / len(scores) == pytest.approx(1 / 9)
    assert sum(score.values["error: wrong objects"] for score in scores) / len(scores) == pytest.approx(4 / 9)


def test_images_without_usable_objects_have_no_statement(tmp_path: Path) -> None:
    rows = [[row(KEY, "1", "", "")], [row(key_of(12), "1", "cup", "brick")]]
    data = world(tmp_path, true=(3, 3), rows=rows)

    assert [sample.id for sample in Asr(data=data, vlm=model(), context="I", which="labelled").samples()] == [
        key_of(12)
    ]
    with pytest.raises(BadData, match="have no atypicality statements"):
        Asr(data=data, vlm=model(), context="I", which="labelled", ids=[KEY]).evaluation()


@pytest.mark.parametrize("context", ["I+T_V", "IN+s_IN", "nothing"])
def test_contexts_with_two_things_are_no_contexts_here(context: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="context"):
        made(tmp_path, context=context).evaluation()
