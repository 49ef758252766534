from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from askance.agents import Judge, judge_equivalence, judge_panel
from askance.chat import ChatRequest, ChatResponse
from askance.errors import CallError, InvalidOutput, Skipped, UsageError
from askance.evals import Evaluation, Run, Sample, Scorer, evaluate
from askance.evals.judges import (
    JUDGED,
    JudgeCard,
    JudgeNote,
    Label,
    Labels,
    corrected_rate,
    judged_score,
    judged_scoring,
    verdict_job,
)
from askance.evals.scorer import scored
from askance.models import Counters, Engine, ScriptedModel, get_model
from askance.replay import MemoryStore
from askance.statistics import ClusteredScores, clustered_rogan_gladen, prediction_powered_mean, rogan_gladen
from tests.judges import Scripted, erring
from tests.scripted import ENFORCED, model_of

about: Any = pytest.approx
SAYS = Scripted(lambda reference, candidate: "true" if candidate.startswith(reference) else "false", name="begins")
"""Says true where the candidate begins with the reference."""


def card_of(judge: Judge, rows: list[Label]) -> JudgeCard:
    cases = asyncio.run(verdict_job(judge, rows, draws=1, swaps=False).run())
    return JudgeCard.of(judge, Labels(name="labels.csv", digest="0" * 64, rows=tuple(rows)), cases)


def pair(candidate: str, verdict: bool, *, group: str = "", name: str = "") -> Label:
    return Label(reference="a", candidate=candidate, verdict=verdict, group=group or candidate, id=name)


LABELS = [pair("a1", True), pair("a2", True), pair("b1", True), pair("b2", False), pair("b3", False), pair("a3", False)]
"""Sensitivity and specificity are two thirds each."""


class Held:
    """A client that has to be closed, and counts what it is asked."""

    id = "held"
    capabilities = ENFORCED
    open = True
    asked = 0

    async def generate(self, request: ChatRequest) -> ChatResponse:  # whatever is asked
        self.asked += 1
        return ChatResponse(text=json.dumps({"verdict": "true"}))

    async def counted(self) -> Counters:
        return Counters(answers=self.asked)

    async def aclose(self) -> None:
        self.open = False


@pytest.mark.parametrize("draws", [1, 3])
def test_a_judge_is_closed_when_the_run_ends(draws: int, tmp_path: Path) -> None:
    client = Held()
    judge = judge_equivalence(get_model(client, engine=Engine(records=MemoryStore())), form="short")
    scoring = judged_scoring(judge if draws == 1 else judge_panel(judge, draws=draws))
    task = Evaluation(name="t", samples=[Sample(id="s", target="a")], solver=lambda _: "b", scorer=scoring)
    run = evaluate(task, out=tmp_path / "run", engine=Engine(records=MemoryStore()))

    assert (run.figure(JUDGED).value, client.open) == (1, False)
    assert scoring.questions(task.samples[0]) == [draws]


PANELS: dict[str, tuple[Callable[[Judge, Judge], Judge], list[int]]] = {
    "one": (lambda judge, _: judge, [1]),
    "a panel": (lambda one, other: judge_panel(one, other, draws=3), [3, 3]),
    "a panel in another": (lambda one, other: judge_panel(judge_panel(one, draws=2), other, draws=2), [4, 2]),
    "in two of them": (lambda one, _: judge_panel(judge_panel(one, draws=2), one, draws=2), [4]),
}
"""Judges of two models, and how often these are asked about one answer."""
NOTHING = Counters().canonical()


@pytest.mark.parametrize(("panel", "asked"), PANELS.values(), ids=PANELS)
def test_every_judge_of_a_run_is_counted_and_closed(
    panel: Callable[[Judge, Judge], Judge], asked: list[int], tmp_path: Path
) -> None:
    engine, clients = Engine(records=MemoryStore()), (Held(), Held())
    models = [get_model(client, identity=str(place), engine=engine) for place, client in enumerate(clients)]
    judges = [judge_equivalence(model, form="short") for model in models]
    scoring = judged_scoring(panel(*judges))
    task = Evaluation(name="t", samples=[Sample(id="s", target="a")], solver=lambda _: "b", scorer=scoring)
    run = evaluate(task, out=tmp_path / "run", engine=engine)

    used = [client for client in clients if client.asked]
    assert scoring.questions(task.samples[0]) == [client.asked for client in used] == asked
    assert run.counters == {str(models[clients.index(each)].id): {**NOTHING, "answers": each.asked} for each in used}
    assert not any(client.open for client in used)


async def test_a_score_says_who_judged_and_what_is_known_of_it() -> None:
    score = await judged_score(SAYS, ["x", "a", "b"], "a1")

    assert score.values == {JUDGED: 1.0, "judged_per_reference": about(1 / 3)}
    assert score.notes == {
        "verdict": "true",
        "reason": "so it is",
        "references": ["false", "true", "false"],
        "judge": {"judge": "begins", "digest": JudgeNote.of(SAYS).digest, "card": None},
    }


UNSCORED: dict[str, tuple[list[str], type[CallError], str]] = {
    "unreadable": (["a"], InvalidOutput, "the reply is not one JSON object and nothing else"),
    "no reference": ([], Skipped, "there is no reference to compare with"),
}


@pytest.mark.parametrize(("references", "kind", "reason"), UNSCORED.values(), ids=UNSCORED)
async def test_what_is_unscored_is_no_score(references: list[str], kind: type[CallError], reason: str) -> None:
    with pytest.raises(kind, match=f"^{reason}"):
        await judged_score(Scripted(lambda reference, candidate: None), references, "a1")


def test_a_note_is_a_sentence() -> None:
    note = JudgeNote.of(SAYS, card_of(SAYS, LABELS))

    assert JudgeNote.of(SAYS).sentence == ("Judged by begins, which has no card: how often it is wrong is not known.")
    assert note.sentence == (
        "Judged by begins; on 6 labelled pairs (labels.csv) its accuracy is 0.667 beside a base rate of 0.500, "
        "and Cohen's κ 0.333."
    )


def test_a_card_of_another_judge_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^The card is that of begins, and the judge is other\."):
        judged_scoring(Scripted(SAYS.says, name="other"), card=card_of(SAYS, LABELS))


def test_another_form_model_or_prompt_is_another_judge() -> None:
    def model(name: str) -> Any:
        return model_of(ScriptedModel([], identity=name, capabilities=ENFORCED))

    judges = [judge_equivalence(model(name), form=form) for name in "ab" for form in ("short", "rubric")]
    again = judge_equivalence(model("b"), form="rubric")

    digests = [JudgeNote.of(judge).digest for judge in judges]
    assert len({*digests}) == 4
    assert JudgeNote.of(again).digest == digests[-1]


def run_of(judge: Judge, answers: dict[str, str], card: JudgeCard | None = None, **options: Any) -> Run:
    """A run whose samples, in pairs, have the reference `a`."""
    samples = [
        Sample(id=name, target=["a"], group=f"g{place // 2}", inputs={"said": said})
        for place, (name, said) in enumerate(answers.items())
    ]
    task = Evaluation(
        name="judged",
        samples=samples,
        solver=lambda sample: sample.inputs["said"],
        scorer=judged_scoring(judge, card=card),
    )
    return evaluate(task, out=Path("run"), engine=Engine(records=MemoryStore()), **options)


ANSWERS = {f"s{number}": ("a1" if number % 3 else "b1") for number in range(12)}


def test_a_run_says_what_is_known_of_its_judge() -> None:
    run = run_of(SAYS, ANSWERS)

    assert run.notes == ("Judged by begins, which has no card: how often it is wrong is not known.",)
    assert (run.figure(JUDGED).value, run.figure(JUDGED).clusters) == (about(8 / 12), 6)
    scores = [json.loads(line) for line in (run.path / "scores.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {line["notes"]["judge"]["judge"] for line in scores} == {"begins"}


@pytest.mark.parametrize("convention", ["wrong", "answered"])
def test_an_unreadable_judge_gives_only_unscored_and_full_bounds(convention: Any) -> None:
    run = run_of(Scripted(lambda reference, candidate: None), ANSWERS, convention=convention)

    figure = run.figure(JUDGED)
    assert (figure.answered, figure.among_answered, figure.if_wrong, figure.if_right) == (0, None, 0.0, 1.0)
    assert [answer.score for answer in run.answers] == [None] * 12
    assert run.notes[-1].startswith("12 answers have no score and count as no answer")


def test_a_rate_is_corrected_by_the_card() -> None:
    card = card_of(SAYS, LABELS)
    run = run_of(SAYS, ANSWERS, card)

    rate = corrected_rate(card, run)

    assert rate.measured.value == about(8 / 12)
    assert rate.rogan_gladen.value == about((8 / 12 + 2 / 3 - 1) / (1 / 3))
    assert (rate.powered.state, rate.labelled, rate.unscored, rate.notes) == ("no data", 0, 0, ())
    assert rate.rogan_gladen.n_clusters == 6


def test_a_rate_is_corrected_by_labels_of_its_own_answers() -> None:
    """Of four labelled answers the judge is wrong about one; a label of another answer counts for nothing."""
    rows = [pair("a1", name != "s1", group=name, name=name) for name in ("s1", "s2", "s4")]
    rows += [pair("b1", False, group="s0", name="s0"), pair("another", True, group="s3", name="s3")]
    card = card_of(SAYS, rows)

    rate = corrected_rate(card, run_of(SAYS, ANSWERS, card))

    truth, judged = [0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 0.0]
    others = ClusteredScores(scores=[5 / 8] * 8)
    assert (rate.labelled, rate.powered.n) == (4, 12)
    assert rate.powered.value == about(
        prediction_powered_mean(truth, ClusteredScores(scores=judged), others).value, abs=0.1
    )


def test_a_run_of_another_judge_is_refused() -> None:
    card = card_of(SAYS, LABELS)
    run = run_of(Scripted(SAYS.says, name="other"), ANSWERS)

    with pytest.raises(UsageError, match=r"^The run 'run' was judged by other, and the card is that of begins\."):
        corrected_rate(card, run)
    with pytest.raises(UsageError, match=r"^The run 'run' has no score 'funny'\."):
        corrected_rate(card, run, value="funny")


def test_a_constant_judge_has_no_rate_to_correct() -> None:
    judge = Scripted(lambda reference, candidate: "true")
    card = card_of(judge, LABELS)

    rate = corrected_rate(card, run_of(judge, ANSWERS))

    assert (rate.rogan_gladen.value, rate.rogan_gladen.state) == (None, "no data")
    assert rate.notes[0].startswith("By its card the judge is no better than chance")


RUNS, PAIRS, GROUP, CARD = 500, 240, 2, 160
TRUE_RATE, ERRORS = 0.35, {"sensitivity": 0.85, "specificity": 0.8}


def test_corrected_rates_of_simulated_judges_hold_the_truth_as_often_as_they_say() -> None:
    source = random.Random(11)
    held = {"measured": 0, "Rogan–Gladen": 0, "prediction-powered": 0}
    for seed in range(RUNS):
        truth = [source.random() < TRUE_RATE for _ in range(PAIRS)]
        said = [float(erring(true, source, **ERRORS)) for true in truth]
        groups = [place // GROUP for place in range(PAIRS)]
        labels = [source.random() < 0.5 for _ in range(CARD)]
        card = ClusteredScores(scores=[float(erring(true, source, **ERRORS)) for true in labels], clusters=range(CARD))
        judged = ClusteredScores(scores=said, clusters=groups)
        corrected = clustered_rogan_gladen(judged, card, labels, seed=seed, draws=300).interval
        parts = [ClusteredScores(scores=said[part], clusters=groups[part]) for part in (slice(80), slice(80, PAIRS))]
        powered = prediction_powered_mean([float(true) for true in truth[:80]], *parts).interval
        held["measured"] += abs(sum(said) / PAIRS - TRUE_RATE) < 1.96 * (TRUE_RATE * (1 - TRUE_RATE) / PAIRS) ** 0.5
        held["Rogan–Gladen"] += corrected is not None and TRUE_RATE in corrected
        held["prediction-powered"] += powered is not None and TRUE_RATE in powered

    sys.stdout.write(f"intervals of 95 % that hold the truth, of {RUNS} runs: {held}\n")
    assert held["measured"] < 0.7 * RUNS
    assert 0.92 * RUNS <= held["Rogan–Gladen"] <= 0.97 * RUNS
    assert 0.93 * RUNS <= held["prediction-powered"] <= 0.97 * RUNS


def test_a_run_with_an_unreadable_reply_is_scored_again_from_its_own_records() -> None:
    """The reply that could not be read is kept with the run, so that nobody has to ask again."""

    def scoring(engine: Engine) -> Scorer:
        script = ScriptedModel(lambda _: "I would say so.", identity="prose", capabilities=ENFORCED)
        return judged_scoring(judge_equivalence(get_model(script, engine=engine), form="short"))

    samples = [Sample(id="s", target="a", inputs={"said": "b"})]
    made = Evaluation(name="prose", samples=samples, solver=lambda sample: sample.inputs["said"], scorer=scoring)
    run = evaluate(made, out=Path("run"), engine=Engine(records=MemoryStore()))

    (answer,) = run.answers
    again = asyncio.run(scored(answer, scoring(Engine(mode="replay", records=run.records))))

    assert len(again.tried) == 2
    assert again.unscored == "the reply is not one JSON object and nothing else"


PUBLISHED = {"brucellosis": (23 / 150, 0.96, 0.89, 0.051), "Helicobacter": (6 / 151, 0.964, 0.927, 0.0)}
"""Worked examples in the manual of the R package epiR, `epi.prev`: the second after Moujaber et al. (2008)."""


@pytest.mark.parametrize(("rate", "sensitivity", "specificity", "true"), PUBLISHED.values(), ids=PUBLISHED)
def test_published_corrections(rate: float, sensitivity: float, specificity: float, true: float) -> None:
    assert rogan_gladen(rate, sensitivity, specificity) == pytest.approx(true, abs=5e-4)
