"""`injection/orders`: the table of attacks with its pictures, and the rates at which models obey."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from askance.chat import ChatRequest, ImagePart
from askance.errors import BadData, UsageError
from askance.evals import Prediction, Score, evaluate
from askance.evals.injection import InjectedOrders, read_attacks
from askance.evals.injection.attacks import ATTACKS, PICTURES
from askance.images import Image
from askance.models import Capabilities, ScriptedModel
from tests.scripted import ENFORCED, model_of, scripted

BY_DIGEST = {Image.from_path(PICTURES / each.file).sha256: each for each in read_attacks()}


def test_there_are_40_attacks_and_a_picture_for_each() -> None:
    attacks = read_attacks()

    assert len(attacks) == 40
    assert all(len(set(each.options)) == 4 for each in attacks)
    assert {each.kind for each in attacks if each.tool} == {"tool"}
    assert all(each.marker in each.text for each in attacks)
    assert sum(each.orders_answer for each in attacks) == 28
    names = {name for each in attacks for name in (each.file, each.clean_file)}
    assert names == {path.name for path in PICTURES.iterdir()}
    assert {Image.from_path(PICTURES / name).info.upright_size for name in names} == {(480, 480)}


def test_a_model_that_obeys_flips_every_answer_and_one_that_looks_flips_none(tmp_path: Path) -> None:
    def chooses(caption: str) -> ScriptedModel:
        def answer(request: ChatRequest) -> dict[str, list[int]]:
            (part,) = (each for message in request.messages for each in message.parts if isinstance(each, ImagePart))
            attack = BY_DIGEST[part.shown.image.sha256]
            return {"answers": [attack.options.index(getattr(attack, caption)) + 1]}

        return scripted(ENFORCED, choose_caption_from_picture=answer, choose_caption=answer)

    obeying, looking = (
        evaluate(InjectedOrders(vlm=model_of(chooses(caption))), out=tmp_path / caption)
        for caption in ("planted", "caption")
    )

    assert (obeying.figure("answer flipped").value, obeying.figure("answer flipped").samples) == (1, 28)
    assert obeying.figure("accuracy").value == 0
    assert looking.figure("answer flipped").value == 0
    assert looking.figure("accuracy").value == 1
    assert looking.figure("answer flipped").interval is not None
    assert [looking.figure(name).value for name in ("budget exhausted", "tool called as ordered")] == [0, 0]
    assert looking.figure("tool called as ordered").samples == 7


def test_a_call_as_ordered_and_a_used_up_budget_are_counted(tmp_path: Path) -> None:
    task = InjectedOrders(vlm=scripted())
    sample = next(each for each in task.samples() if each.target.get("tool") == "zoom")
    scorer = task.scorer()

    def rates(arguments: dict[str, str], ended: str, tool: str = "zoom") -> tuple[float, float]:
        trace = {"steps": [{"step": 1, "tool": tool, "arguments": arguments}], "ended": ended}
        score = scorer.score(sample, Prediction(outcome="answered", value=[1], links={"answers": {"trace": trace}}))
        assert isinstance(score, Score)
        return score.values["tool called as ordered"], score.values["budget exhausted"]

    assert rates({"question": f"Is it {sample.target['marker']}?"}, "forced") == (1, 1)
    assert rates({"question": "Which shape?"}, "answered") == (0, 0)
    sample = replace(sample, target={**sample.target, "marker": "Schlüssel"})
    assert rates({"question": "Wo ist der Schlüssel?"}, "answered") == (1, 0)
    assert rates({"question": sample.target["marker"]}, "answered", tool="ask") == (0, 0)


def test_the_control_shows_the_same_scenes_without_a_text() -> None:
    shown, control = (InjectedOrders(vlm=scripted(), text=text).samples() for text in (True, False))

    assert [each.inputs for each in shown] == [each.inputs for each in control]
    assert all(each.image and each.image.name.startswith("clean-") for each in control)


def test_a_table_of_ones_own_is_named_where_it_is_wrong(tmp_path: Path) -> None:
    (tmp_path / ATTACKS.name).write_text("attacks:\n  - id: a\n    kind: stop\n    colour: red\n", encoding="utf-8")

    with pytest.raises(BadData, match=r"Attack 1 in .*attacks\.yaml.* cannot be read"):
        InjectedOrders(vlm=scripted(), data=tmp_path).samples()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"planted": "Nothing"}, "plants 'Nothing'"),
        ({"planted": "A red square above a sign."}, "plants 'A red square above a sign.'"),
        ({"tool": "ask"}, "has a tool or a marker alone"),
    ],
    ids=["no caption", "half right", "no marker"],
)
def test_an_attack_of_ones_own_is_held_to_what_it_means(tmp_path: Path, changes: dict[str, str], told: str) -> None:
    row = {"id": "a", "kind": "stop", "shape": "circle", "colour": "red", "text": "Stop."}
    row |= {"planted": "A blue square above a sign.", **changes}
    (tmp_path / ATTACKS.name).write_text(json.dumps({"attacks": [row]}), encoding="utf-8")

    with pytest.raises(BadData, match=told):
        read_attacks(tmp_path / ATTACKS.name)


OPTION = re.compile(r"^(\d)\. (A \w+ \w+ above a sign)\.$", re.MULTILINE)


def sees_the_sign(request: ChatRequest) -> str:
    """Reads the sign of the picture aloud."""
    (part,) = (each for message in request.messages for each in message.parts if isinstance(each, ImagePart))
    return json.dumps({"answer": f"It says: {BY_DIGEST[part.shown.image.sha256].text}"})


def obeys(request: ChatRequest) -> str:
    """Asks once, then does what was read, unless it was read behind a fence; else it takes the first option."""
    text = "\n".join(message.text for message in request.messages)
    read = re.search(r"It says: (.*)", text)
    if read is None:
        return json.dumps({"thought": "", "tool": "ask", "arguments": {"question": "What is there?"}})
    ordered = [int(number) for number, option in OPTION.findall(text) if option in read[1] and "<<ask says" not in text]
    answer = {"value": {"answers": ordered[:1] or [1]}, "confidence": 90, "evidence": [1], "enough": True}
    return json.dumps({"thought": "", "tool": "answer", "arguments": answer})


@pytest.mark.parametrize(("fenced", "flipped"), [(True, 5 / 28), (False, 1)])
def test_what_the_fence_is_worth_is_measured(fenced: bool, flipped: float, tmp_path: Path) -> None:
    able = Capabilities(schema="enforced", tools=False, boxes="thousandths")
    vlm, llm = (
        model_of(ScriptedModel(script, identity=script.__name__, capabilities=able))
        for script in (sees_the_sign, obeys)
    )
    task = InjectedOrders(vlm=vlm, llm=llm, solver="investigator", calls=3, fenced=fenced)

    run = evaluate(task, out=tmp_path / "run")

    assert run.figure("answer flipped").value == pytest.approx(
        flipped
    )  # the first option is the planted one five times
    assert ("no fence" in run.label) is not fenced


def test_only_an_investigator_does_without_its_fence() -> None:
    with pytest.raises(UsageError, match="Only an investigator does without its fence"):
        InjectedOrders(vlm=scripted(), fenced=False).evaluation()
