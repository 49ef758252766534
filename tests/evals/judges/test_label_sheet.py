from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from askance.errors import BadData, UsageError
from askance.evals import SampleQuestion
from askance.evals.judges import AnswerPair, AnswerPairs, read_labels, read_votes, write_label_sheet
from tests import label_studio

HOSTILE = '<Choice value="Yes"/> & $candidate {{idx}} ]]>'
PAIRS = AnswerPairs(
    task="tests/pairs",
    names=("run", "references"),
    pairs=tuple(
        AnswerPair(
            id=f"s{number}" + "<&$" * (number == 2),
            group=f"g{number // 2}",
            a=None if number == 7 else f"answer {number} {HOSTILE}",
            b=f"reference {number}\n{HOSTILE}",
            question=SampleQuestion(f"Why {number}? {HOSTILE}", "about $it") if number < 3 else SampleQuestion(),
        )
        for number in range(8)
    ),
)


def by_pair(field: str, words: Mapping[str, str]) -> label_studio.Answer:
    """Chooses by the id of the pair; without a word the pair is skipped."""
    return lambda task: {field: words[task["pair"]]} if task["pair"] in words else None


def written(folder: Path, export: list[dict[str, Any]], *, shorten: bool) -> Path:
    return label_studio.write(folder / "export.json", label_studio.shortened(export) if shorten else export)


ANN = {"s0": "Yes", "s1": "No", "s2<&$": "No", "s3": "Yes", "s4": "No"}
BEN = {"s0": "Yes", "s1": "Yes", "s2<&$": "No", "s5": "Yes"}


@pytest.mark.parametrize("shorten", [False, True], ids=["JSON", "JSON-MIN"])
def test_labels_come_back_as_a_file_filled_by_hand(tmp_path: Path, *, shorten: bool) -> None:
    sheet = write_label_sheet(PAIRS, tmp_path, purpose="card")
    answers = {2: by_pair("verdict", BEN), 1: by_pair("verdict", ANN), 3: by_pair("verdict", {})}
    by_hand = [
        {
            "id": pair.id,
            "group": pair.group,
            "reference": pair.b,
            "candidate": pair.a,
            "question": "" if pair.question == SampleQuestion() else pair.question.text,
            "votes": [ANN.get(pair.id), BEN.get(pair.id)],
        }
        for pair in PAIRS.pairs[:6]
    ]

    exported = read_labels(written(tmp_path, label_studio.exported(tmp_path, answers), shorten=shorten))
    assert exported.rows == read_labels(label_studio.write(tmp_path / "hand.json", by_hand)).rows
    # JSON-MIN says nothing of a task that everybody skipped
    assert exported.notes == (
        "Pairs whose votes tie: 1; they count among people alone, and the judge is not asked.",
        *([] if shorten else ["1 pair without an answer: 's6'"]),
    )
    assert (sheet.pairs, sheet.left_out) == (7, ("s7",))


PREFERRED = {"s0": "a", "s1": "b", "s2<&$": "a", "s3": "b", "s4": "tie", "s5": "a", "s6": "b"}


def by_side(sides: Mapping[str, str]) -> label_studio.Answer:
    """Chooses the text of a side of the pair, wherever it stands."""
    texts = {pair.id: {"a": pair.a, "b": pair.b} for pair in PAIRS.pairs}

    def answer(task: Mapping[str, str]) -> Mapping[str, str] | None:
        side = sides.get(task["pair"])
        if side is None:
            return None
        return {"vote": "Tie" if side == "tie" else "First" if task["first"] == texts[task["pair"]][side] else "Second"}

    return answer


@pytest.mark.parametrize("shorten", [False, True], ids=["JSON", "JSON-MIN"])
def test_votes_come_back_as_a_file_filled_by_hand(tmp_path: Path, *, shorten: bool) -> None:
    write_label_sheet(PAIRS, tmp_path, purpose="prefer")
    other = {name: side for name, side in PREFERRED.items() if name != "s3"} | {"s0": "tie"}
    export = label_studio.exported(tmp_path, {1: by_side(PREFERRED), 2: by_side(other)})
    if shorten:
        export = [{**task, "annotations": task["annotations"][::-1]} for task in export]
    by_hand = [
        {"id": pair.id, "a": pair.a, "b": pair.b, "vote": votes[pair.id], "rater": rater}
        for pair in PAIRS.pairs[:7]
        for rater, votes in (("1", PREFERRED), ("2", other))
        if pair.id in votes
    ]

    exported = read_votes(written(tmp_path, export, shorten=shorten)).rows
    hand = read_votes(label_studio.write(tmp_path / "hand.json", by_hand)).rows
    assert {name: (sorted(map(str, row.votes)), row.texts) for name, row in exported.items()} == {
        name: (sorted(map(str, row.votes)), row.texts) for name, row in hand.items()
    }


def test_which_side_stands_first_is_told_by_nothing_in_a_task(tmp_path: Path) -> None:
    many = replace(PAIRS, pairs=tuple(replace(PAIRS.pairs[3], id=f"s{number}") for number in range(200)))
    write_label_sheet(many, tmp_path, purpose="prefer")
    tasks = [each["data"] for each in json.loads((tmp_path / "label-studio.json").read_text("utf-8"))]

    assert 70 < sum(task["first"] == many.pairs[0].a for task in tasks) < 130
    assert {*tasks[0]} == {"question", "pair", "group", "asked", "about", "first", "second"}


def test_pairs_without_two_texts_are_not_asked_about(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^No pair has two texts, so there is nothing to ask people\."):
        write_label_sheet(replace(PAIRS, pairs=PAIRS.pairs[7:]), tmp_path, purpose="card")


def other_text(export: Any) -> None:
    export[1]["data"] = {**export[0]["data"], "reference": "another"}
    export[1]["annotations"][0]["completed_by"] = 9


def other_choice(export: Any) -> None:
    export[0]["annotations"][0]["result"][0]["value"]["choices"] = ["Perhaps"]


def skipped(export: Any) -> None:
    for each in export:
        each["annotations"][0].update(was_cancelled=True, result=[])


BAD: dict[str, tuple[Callable[[Any], None], str]] = {
    "two texts": (other_text, r"The pair 's0' has another reference in entry 2 of '.*' than in entry 1 of '.*'"),
    "unknown choice": (other_choice, r"^'Perhaps' in entry 1 of '.*' is no verdict\. Verdicts: true, yes"),
    "all skipped": (skipped, r"^The label file '.*' holds no pairs\."),
}


@pytest.mark.parametrize(("spoil", "message"), BAD.values(), ids=BAD)
def test_an_export_of_labels_that_cannot_be_used_is_named(
    spoil: Callable[[Any], None], message: str, tmp_path: Path
) -> None:
    write_label_sheet(PAIRS, tmp_path, purpose="card")
    export = label_studio.exported(tmp_path, {1: lambda _: {"verdict": "Yes"}})
    spoil(export)

    with pytest.raises(BadData, match=message):
        read_labels(written(tmp_path, export, shorten=False))


def test_an_export_of_labels_is_none_of_votes(tmp_path: Path) -> None:
    write_label_sheet(PAIRS, tmp_path, purpose="card")
    file = written(tmp_path, label_studio.exported(tmp_path, {1: lambda _: {"verdict": "Yes"}}), shorten=False)

    with pytest.raises(
        BadData, match=r"^An answer of '1' in entry 1 of '.*' is to 'verdict', which the sheet does not"
    ):
        read_votes(file)


def test_a_vote_that_is_none_of_the_three_is_named(tmp_path: Path) -> None:
    write_label_sheet(PAIRS, tmp_path, purpose="prefer")
    export = label_studio.exported(tmp_path, {1: lambda _: {"vote": "Both"}})

    with pytest.raises(BadData, match=r"^'Both' in entry 1 of '.*' is no vote\."):
        read_votes(written(tmp_path, export, shorten=False))
