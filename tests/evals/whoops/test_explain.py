"""`whoops/explain`: judged against five references, by people where they were asked, in every context."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest
from askance.errors import BadData, UsageError
from askance.evals import evaluate
from askance.evals.analysis.blame import ablame, blame_job, make_blame
from askance.evals.analysis.trial import Trials
from askance.evals.whoops import Explain
from askance.models import Engine
from tests.evals.pittads.worlds import shown
from tests.evals.whoops import files
from tests.evals.whoops.files import IDS
from tests.evals.whoops.worlds import by_picture, description, judging, model

SAID = {IDS[0]: "rules 1 and 2", IDS[1]: "rule 4", IDS[2]: "nothing of it", IDS[3]: "rule 0"}
"""What is said of each picture but the last, of which it is 'unclear'."""


def same(reference: str, candidate: str) -> str:
    """True where the number of the reference's rule stands in the candidate."""
    number = reference.split("rule ")[1][0]
    return "true" if number in candidate else "false"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return files.first_release(tmp_path / "data")


def seeing(**more: Any) -> Any:
    return model(explain_from_picture=by_picture("explanation", SAID, "unclear"), **more)


def test_figures_by_hand(data: Path, tmp_path: Path) -> None:
    judge = model(judge_equivalence=judging(same))
    run = evaluate(Explain(data=data, vlm=seeing(), judge=judge), out=tmp_path / "run")

    assert shown(run) == {  # 2, 1, 0, 1 and 0 of five references
        "judged": pytest.approx(100 * 3 / 5),
        "judged_per_reference": pytest.approx(100 * 4 / 25),
        "judged: Art knowledge": 0,
        "judged: Biological rules": 100,
        "judged: Nutrition mismatch": 100,
        "judged: Physical rules": 50,
    }
    assert run.notes[0].startswith("Judged by scripted (short), which has no card")
    assert run.answers[0].score is not None
    assert run.answers[0].score.notes["references"] == ["false", "true", "true", "false", "false"]


def test_a_reply_that_cannot_be_read_is_neither_true_nor_false(data: Path, tmp_path: Path) -> None:
    def odd(reference: str, candidate: str) -> str:
        return "perhaps" if candidate == "nothing of it" else same(reference, candidate)

    judge = model(judge_equivalence=judging(odd))
    run = evaluate(Explain(data=data, vlm=seeing(), judge=judge), out=tmp_path / "run")
    judged = run.figure("judged")

    assert (judged.samples, judged.answered) == (5, 4)
    assert (judged.if_wrong, judged.if_right) == (pytest.approx(3 / 5), pytest.approx(4 / 5))
    assert any("1 answer has no score" in note for note in run.notes)


def test_an_unreadable_judge_leaves_everything_open(data: Path, tmp_path: Path) -> None:
    judge = model(judge_equivalence="Well, it depends.")
    judged = evaluate(Explain(data=data, vlm=seeing(), judge=judge), out=tmp_path / "run").figure("judged")

    assert (judged.answered, judged.among_answered, judged.if_wrong, judged.if_right) == (0, None, 0, 1)


def test_people_stand_beside_the_judge(data: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    rows = [
        {"id": IDS[0], "reference": "r", "candidate": "rules 1 and 2", "votes": "true;true;false"},
        {"id": IDS[2], "reference": "r", "candidate": "nothing of it", "votes": "true;true;true"},
        {"id": IDS[3], "reference": "r", "candidate": "what nobody said", "votes": "false;false;false"},
        {"id": IDS[1], "reference": "r", "candidate": "rule 4", "votes": "true;false"},
    ]
    files.write_table(labels, rows)
    judge = model(judge_equivalence=judging(same))
    run = evaluate(Explain(data=data, vlm=seeing(), judge=judge, labels=labels), out=tmp_path / "run")

    assert (run.figure("people").value, run.figure("people").samples) == (1, 2)
    assert run.figure("judge agrees with people").value == 0.5


def test_labels_of_other_images_are_no_labels(data: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    files.write_table(labels, [{"id": "x", "reference": "r", "candidate": "c", "verdict": "true"}])

    with pytest.raises(BadData, match="are of none of the images"):
        Explain(data=data, vlm=seeing(), judge=model(), labels=labels).evaluation()


CONTEXTS = {
    "caption": "A predicted caption.",
    "gold-caption": "A brick cup stands on a table, says person 2",
    "T_V": "COMBINED.",
    "text-only": "No description of the image is available.",
}


@pytest.mark.parametrize(("context", "read"), CONTEXTS.items(), ids=CONTEXTS)
def test_each_pipeline_reads_its_description(context: str, read: str, data: Path, tmp_path: Path) -> None:
    texts: list[str] = []

    def answer(request: ChatRequest) -> Any:
        texts.append(description(request))
        return {"explanation": "rule 1"}

    vlm = model(
        caption={"description": "A predicted caption."},
        objects={"objects": ["cup"]},
        scene_text={"lines": []},
        narration={"description": "N."},
        unusual={"unusual": "U."},
    )
    llm = model(explain_from_description=answer, combine={"description": "COMBINED."})
    task = Explain(data=data, vlm=vlm, llm=llm, judge=model(judge_equivalence=judging(same)), context=context, limit=1)
    run = evaluate(task, out=tmp_path / "run")

    assert texts == [read]
    assert shown(run)["judged_per_reference"] == pytest.approx(20)


def test_the_oracle_needs_no_picture(data: Path, tmp_path: Path) -> None:
    for path in (data / "whoops_images").iterdir():
        path.unlink()
    llm = model(explain_from_description={"explanation": "rule 3"})
    judge = model(judge_equivalence=judging(same))

    run = evaluate(Explain(data=data, llm=llm, judge=judge, context="gold-caption"), out=tmp_path / "run")

    assert shown(run)["judged"] == 100
    with pytest.raises(BadData, match="have no pictures"):
        Explain(data=data, vlm=llm, judge=judge).evaluation()


def test_the_judge_is_asked_in_the_words_of_the_paper(data: Path, tmp_path: Path) -> None:
    texts: list[str] = []

    def noting(request: ChatRequest) -> Any:
        texts.append(request.messages[-1].text)
        return {"verdict": "true"}

    evaluate(Explain(data=data, vlm=seeing(), judge=model(judge_equivalence=noting), limit=1), out=tmp_path / "run")

    assert len(texts) == 5
    assert 'equivalence of the following explanations for the question "What is unusual in this image?"' in texts[0]


def test_without_a_judge_there_is_no_task(data: Path) -> None:
    with pytest.raises(UsageError, match=r"'whoops/explain' needs 'judge'\. Give -T judge="):
        Explain(data=data, vlm=model()).evaluation()


def test_a_card_of_another_judge_is_refused(data: Path, tmp_path: Path) -> None:
    card = tmp_path / "card.json"
    card.write_text(json.dumps({"format": 0}), encoding="utf-8")

    with pytest.raises(BadData, match="no card of a judge"):
        Explain(data=data, vlm=model(), judge=model(), card=card).evaluation()


def test_a_fold_is_its_test_images(data: Path) -> None:
    tasks = [Explain(data=data, vlm=model(), judge=model(), fold=fold) for fold in range(5)]

    assert sorted(sample.id for task in tasks for sample in task.samples()) == sorted(IDS)
    assert [sample.tags["fold"] for task in tasks for sample in task.samples()] == [0, 1, 2, 3, 4]
    with pytest.raises(UsageError, match=r"cannot be 5\. It takes a whole number from 0 to 4\."):
        Explain(data=data, vlm=model(), judge=model(), fold=5).evaluation()


def test_a_listed_image_is_in_the_fold_that_it_has_in_all_the_data(data: Path) -> None:
    whole = {sample.id: sample.tags["fold"] for sample in Explain(data=data, vlm=model(), judge=model()).samples()}
    listed = IDS[1:]

    for name in listed:
        task = Explain(data=data, vlm=model(), judge=model(), ids=listed, fold=whole[name])
        assert [sample.id for sample in task.samples()] == [name]
        assert f"the 1 test images of fold {whole[name]} of 5, seed 0" in task.notes()
    with pytest.raises(BadData, match=f"There is no image in fold {whole[IDS[0]]}"):
        Explain(data=data, vlm=model(), judge=model(), ids=listed, fold=whole[IDS[0]]).samples()
    assert not any("fold" in each.tags for each in Explain(data=data, vlm=model(), judge=model(), ids=listed).samples())


async def test_blame_plans_and_asks_the_judge_of_its_trials(data: Path, tmp_path: Path) -> None:
    """The run describes its judge, whom nobody could ask; the one that is named judges the new answers."""

    def explained(request: ChatRequest) -> dict[str, str]:
        return {"explanation": f"nothing of {description(request).split()[0]}"}

    vlm = model(
        objects={"objects": ["cup"]},
        scene_text={"lines": []},
        narration={"description": "N."},
        unusual={"unusual": "U."},
        combine={"description": "COMBINED."},
        explain_from_description=explained,
    )
    judge = model(judge_equivalence=judging(same))
    task = Explain(data=data, vlm=vlm, judge=judge, context="T_V", limit=1)
    run = evaluate(task, out=tmp_path / "run")
    own, alone = {"vlm": vlm, "judge": judge}, {"vlm": vlm}

    trials = Trials(run, Explain, engine=vlm.engine, models=own, links=["description"])
    before = await blame_job(trials).plan()
    blame = await make_blame(trials)
    after = await blame_job(trials).plan()
    elsewhere = tmp_path / "elsewhere"

    assert [(line.link, line.calls) for line in before.links if line.calls] == [("reply", 1), ("judge", 5)]
    assert ([trial.worth for trial in blame.trials], after.calls) == ([0.0], 0)
    with pytest.raises(UsageError, match="nobody can be asked"):
        await ablame(run, Explain, engine=Engine(), models=alone, links=["description"], out=elsewhere)
