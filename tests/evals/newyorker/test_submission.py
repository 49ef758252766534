"""The leaderboard's file: which runs can be submitted, by which letters, and what stands for missing answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from askance.errors import BadData, StoreError, UsageError
from askance.evals import Evaluation, Prediction, Run, Sample, evaluate
from askance.evals.newyorker import LEADERBOARD, NewYorker, submission_of
from askance.evals.newyorker.matching import CartoonMatching
from askance.evals.scorer import right_or_wrong
from askance.models import Engine
from askance.replay import MemoryStore
from tests.evals.newyorker import cartoons
from tests.evals.newyorker.recorded import IDS, as_json, item

MATCHING, EXPLANATION = "newyorker/matching", "newyorker/explanation"
CHOSEN = {name: [1 + place] for place, name in enumerate(IDS)}


def made(
    out: Path,
    *,
    task: str = MATCHING,
    samples: Sequence[Sample] = tuple(map(item, range(5))),
    answers: dict[str, Any] = CHOSEN,
    epochs: int = 1,
    **options: Any,
) -> Run:
    """A run of which the answers are given; None stands for no answer."""

    def answer(sample: Sample) -> Any:
        value = answers.get(sample.id)
        return Prediction(outcome="invalid", reason="no answer is given") if value is None else value

    found = Evaluation(samples=samples, solver=answer, scorer=right_or_wrong(), name=task, options=options)
    return evaluate(found, out=out, epochs=epochs, engine=Engine(records=MemoryStore()))


def test_a_letter_stands_for_each_id(tmp_path: Path) -> None:
    found = submission_of(made(tmp_path / "run"))
    assert found.answers == dict(zip(IDS, "ABCDE", strict=True))
    assert found.filled == ()
    path = found.write(tmp_path / "new" / "predictions.json")
    assert json.loads(path.read_text(encoding="utf-8")) == found.answers
    assert [each.name for each in path.parent.iterdir()] == ["predictions.json"]


def test_letters_are_those_of_the_data(tmp_path: Path) -> None:
    turned = [replace(item(n, order=2), id=IDS[n], tags={}) for n in range(5)]
    found = submission_of(made(tmp_path / "run", samples=turned))
    assert [*found.answers.values()] == list("EDCBA")


def test_an_explanation_is_its_text(tmp_path: Path) -> None:
    samples = [Sample(id=name) for name in IDS]
    texts = dict.fromkeys(IDS, "They bite. “Mice”")
    run = made(tmp_path / "run", task=EXPLANATION, samples=samples, answers=texts)
    path = submission_of(run).write(tmp_path / "explanation.json")
    assert json.loads(path.read_text(encoding="utf-8")) == texts


def test_what_is_missing_is_refused_or_filled_by_a_rule(tmp_path: Path) -> None:
    run = made(tmp_path / "run", answers={**CHOSEN, IDS[0]: None, IDS[3]: None})
    with pytest.raises(UsageError, match=f"2 samples have no answer, such as '{IDS[0]}'") as caught:
        submission_of(run)
    assert "--missing" in str(caught.value.hint)
    last = submission_of(run, missing="last")
    assert [*last.answers.values()] == list("EBCEE")
    assert last.filled == (IDS[0], IDS[3])
    drawn = [submission_of(run, missing="random", seed=seed).answers for seed in range(40)]
    assert {answers[IDS[0]] for answers in drawn} == set("ABCDE")
    assert drawn[0] == submission_of(run, missing="random").answers
    assert all(answers[IDS[1]] == "B" for answers in drawn)


def test_a_missing_explanation_cannot_be_filled(tmp_path: Path) -> None:
    samples = [Sample(id=name) for name in IDS]
    run = made(tmp_path / "run", task=EXPLANATION, samples=samples, answers=dict.fromkeys(IDS[1:], "They bite."))
    with pytest.raises(UsageError, match="1 sample has no explanation"):
        submission_of(run, missing="random")


def test_an_empty_explanation_counts_as_missing(tmp_path: Path) -> None:
    samples = [Sample(id=name) for name in IDS]
    run = made(tmp_path / "run", task=EXPLANATION, samples=samples, answers=dict.fromkeys(IDS, " "))
    with pytest.raises(UsageError, match="5 samples have no explanation"):
        submission_of(run)


REFUSED: Mapping[str, Callable[[Path], Run]] = {
    "which the leaderboard does not have": lambda out: made(out, task="whoops/matching"),
    "under the control 'swapped-image'": lambda out: made(out, control="swapped-image"),
    "answers each sample several times": lambda out: made(out, epochs=2),
    "in two orders": lambda out: made(out, samples=[item(0), item(0, order=2)], answers={**CHOSEN, f"{IDS[0]}#2": [1]}),
    "1 sample has an id that no official file has": lambda out: made(
        out, samples=[item(0), replace(item(1), tags={"official_id": False})]
    ),
}


@pytest.mark.parametrize("said", REFUSED)
def test_runs_that_are_no_submission(said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        submission_of(REFUSED[said](tmp_path / "run"))
    assert caught.value.hint


@pytest.mark.parametrize("value", [[], [6], [1, 2], ["A"], {"numbers": [1]}])
def test_an_answer_that_is_no_one_option_is_refused(value: Any, tmp_path: Path) -> None:
    run = made(tmp_path / "run", answers={**CHOSEN, IDS[0]: value})
    with pytest.raises(UsageError, match="is not one option of 5"):
        submission_of(run)


def test_a_run_that_is_not_finished_is_refused(tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    with pytest.raises(UsageError, match="is not finished"):
        submission_of(replace(run, finished=None))
    with pytest.raises(UsageError, match="is not finished"):
        submission_of(replace(run, left=3))


def samples_of(folder: Path, fold: int) -> list[Sample]:
    """The test items of matching as samples."""
    return [
        Sample(id=each.id, inputs={"options": list(each.choices)}, tags={} if fold == LEADERBOARD else {"fold": fold})
        for each in NewYorker.open(folder).items("matching", fold=fold)
    ]


def test_ids_are_held_against_those_of_the_data(tmp_path: Path) -> None:
    folder = cartoons.lines(tmp_path / "data", tasks=["matching"], folds=[0, 1], pictures=False)
    samples = [*samples_of(folder, 0), *samples_of(folder, 1)]
    answers: dict[str, Any] = {each.id: [1] for each in samples}
    run = made(tmp_path / "both", samples=samples, answers=answers)
    assert len(submission_of(run, data=NewYorker.open(folder)).answers) == len(samples)
    run = made(tmp_path / "short", samples=samples[1:], answers=answers)
    with pytest.raises(UsageError, match=f"lacks 1 of the {len(samples)} test items of the data and has 0 others"):
        submission_of(run, data=NewYorker.open(folder))
    run = made(
        tmp_path / "other", samples=[*samples, replace(item(0), tags={"fold": 0})], answers={**answers, **CHOSEN}
    )
    with pytest.raises(UsageError, match=f"has 1 other, such as '{IDS[0]}'"):
        submission_of(run, data=NewYorker.open(folder))


def test_the_leaderboard_has_a_fold_of_its_own(tmp_path: Path) -> None:
    folder = cartoons.leaderboard(tmp_path / "data")
    samples = samples_of(folder, LEADERBOARD)
    run = made(tmp_path / "run", samples=samples, answers={each.id: [2] for each in samples})
    found = submission_of(run, data=NewYorker.open(folder))
    assert [*found.answers.values()] == ["B"] * cartoons.LEADERBOARD_ITEMS
    run = made(tmp_path / "fold", samples=[replace(item(0), tags={"fold": 3})])
    with pytest.raises(BadData, match="no fold 3 of matching"):
        submission_of(run, data=NewYorker.open(folder))


def choosing(folder: Path, letter: str, path: Path) -> Path:
    """Recorded replies to all test items of matching in a folder, each with the same letter."""
    data = NewYorker.open(folder)
    folds = data.folds or (LEADERBOARD,)
    return as_json(path, {each.id: f"Answer: {letter}" for fold in folds for each in data.items("matching", fold=fold)})


def test_recorded_replies_become_a_submission(tmp_path: Path) -> None:
    folder = cartoons.lines(tmp_path / "data", tasks=["matching"], pictures=False)
    task = CartoonMatching(data=folder, answers=choosing(folder, "C", tmp_path / "r.json"), reading="official")
    run = evaluate(task, out=tmp_path / "run", engine=Engine(records=MemoryStore()))
    labels = {
        row["instance_id"]: row["label"] for fold in range(5) for row in cartoons.hub_rows("matching", fold, "test")
    }
    share = [label == "C" for label in labels.values()].count(True) / len(labels)
    assert run.figure("accuracy, pooled").value == pytest.approx(share)
    found = submission_of(run, data=NewYorker.open(folder))
    assert found.answers == dict.fromkeys(sorted(labels), "C")


def test_the_leaderboard_is_answered_without_labels(tmp_path: Path) -> None:
    folder = cartoons.leaderboard(tmp_path / "data")
    path = choosing(folder, "B", tmp_path / "r.json")
    task = CartoonMatching(data=folder, answers=path, fold="leaderboard", reading="official")
    run = evaluate(task, out=tmp_path / "run", engine=Engine(records=MemoryStore()))
    assert run.figure("accuracy").value is None
    found = submission_of(run, data=NewYorker.open(folder))
    assert [*found.answers.values()] == ["B"] * cartoons.LEADERBOARD_ITEMS


def test_ids_of_our_own_are_no_submission(tmp_path: Path) -> None:
    folder = cartoons.repository(tmp_path / "data")
    task = CartoonMatching(data=folder, answers=choosing(folder, "A", tmp_path / "r.json"), fold=0)
    run = evaluate(task, out=tmp_path / "run", engine=Engine(records=MemoryStore()))
    with pytest.raises(UsageError, match="samples have ids that no official file has"):
        submission_of(run)


def test_recorded_replies_go_with_one_order(tmp_path: Path) -> None:
    folder = cartoons.lines(tmp_path / "data", tasks=["matching"], pictures=False)
    task = CartoonMatching(data=folder, answers=choosing(folder, "A", tmp_path / "r.json"), orders=2)
    with pytest.raises(UsageError, match="in one order"):
        task.evaluation()


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    found = submission_of(made(tmp_path / "run"))
    (tmp_path / "file").write_text("old", encoding="utf-8")
    with pytest.raises(StoreError, match="cannot be written"):
        found.write(tmp_path / "file" / "predictions.json")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "old"
