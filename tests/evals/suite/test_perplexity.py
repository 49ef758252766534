"""Perplexity of references: in runs, plans, replays and scorings again; by folds; and where a model has none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typing_extensions import override

from askance.agents import Joke, explain_joke
from askance.chains import DESCRIPTION, REPLY, Chain, Link, Reading, Step
from askance.chat import ChatRequest, ChatResponse
from askance.errors import UsageError
from askance.evals import Run, Sample, evaluate
from askance.evals.analysis.rescore import rescore
from askance.evals.runner import SampleEpoch, run_job
from askance.evals.scorer import Scorer
from askance.evals.solver import ChainSolver
from askance.evals.suite.breakdown import folds_of, over_folds
from askance.evals.suite.perplexity import (
    LIKELIHOOD,
    OWN_PERPLEXITY,
    PERPLEXITY,
    PerplexityTask,
    likelihood_values,
    with_likelihood,
)
from askance.evals.suite.text_overlap import overlap_scorer
from askance.models import Engine, Model, ModelLike, ScriptedModel, get_model
from askance.models.likelihood import TextLikelihood
from askance.replay import MemoryStore

REFERENCES = ("It is a pun on taking stock.", "The moth is a customer.", "Moths fly at lamps, so one complains.", "")
PUN = '{"explanation": "A pun."}'
TOKENS = (10, 5, 8, None)


class Weighing(ScriptedModel):
    """Answers as told, and finds each word half as likely as it is long."""

    def __init__(self, answer: str = PUN, *, identity: str = "weighing") -> None:
        super().__init__(lambda _: answer, identity=identity)
        self.weighed: list[ChatRequest] = []

    async def likelihood(self, request: ChatRequest) -> ChatResponse:
        self.weighed.append(request)
        words = (request.given or "").split()
        return ChatResponse(logprobs=tuple({"token": word, "logprob": -len(word) / 2} for word in words))


def nll(text: str) -> float:
    return sum(map(len, text.split())) / 2


def joke(reading: Reading) -> Joke:
    return Joke(description=reading.require(DESCRIPTION).text, caption=reading.name)


class Jokes(PerplexityTask):
    """Jokes explained."""

    name: ClassVar[str] = "tests/jokes"

    llm: ModelLike | None = None
    """Explains."""

    @override
    def samples(self) -> Sequence[Sample]:
        return [
            Sample(
                id=f"joke {place}",
                inputs={"description": f"A moth, number {place}.", **self.reference_input(text)},
                target={"text": text, "tokens": tokens},
                tags={"fold": place % 2},
            )
            for place, (text, tokens) in enumerate(zip(REFERENCES, TOKENS, strict=True))
        ]

    @override
    def solver(self) -> ChainSolver:
        assert self.llm is not None
        node = explain_joke(get_model(self.llm))
        step = Step(link=REPLY, node=node, needs=(DESCRIPTION,), subject=joke)
        return ChainSolver(self.with_likelihood(Chain("jokes", target=REPLY, steps=[step], mode=node.model.mode)))

    @override
    def scorer(self) -> Scorer:
        plain = overlap_scorer(lambda sample: sample.target["text"])
        return self.with_perplexity(plain, tokens=lambda sample: sample.target["tokens"])


def model(backend: ScriptedModel, **fields: Any) -> Model:
    return get_model(backend, engine=Engine(records=fields.pop("records", MemoryStore()), **fields))


def test_figures_of_a_run_by_hand(tmp_path: Path) -> None:
    backend = Weighing()

    run = evaluate(Jokes(llm=model(backend), perplexity=True), out=tmp_path / "run")

    total = sum(nll(text) for text in REFERENCES)
    assert run.figure("perplexity").value == pytest.approx(math.exp(total / 23))
    words = sum(len(text.split()) for text in REFERENCES)
    assert run.figure("perplexity by own tokens").value == pytest.approx(math.exp(total / words))
    assert [run.figure(name).samples for name in ("BLEU-4", "perplexity")] == [4, 3]
    assert run.figure("BLEU-4").value is not None
    assert {request.given for request in backend.weighed} == set(REFERENCES) - {""}


def test_the_reference_stands_behind_the_prompt_in_its_text_form(tmp_path: Path) -> None:
    backend = Weighing()

    evaluate(Jokes(llm=model(backend), perplexity=True), out=tmp_path / "run")

    asked, weighed = backend.requests[0], backend.weighed[0]
    assert weighed.response is None
    assert weighed.messages[-1].role == "user"
    assert "A moth, number 0." in weighed.messages[-1].text
    assert "JSON" not in "".join(message.text for message in weighed.messages)
    assert asked.given is None


def test_without_the_option_nothing_is_weighed_and_the_configuration_is_as_before(tmp_path: Path) -> None:
    backend = Weighing()

    run = evaluate(Jokes(llm=model(backend)), out=tmp_path / "run")

    assert backend.weighed == []
    assert "perplexity" not in {figure.metric for figure in run.figures}
    assert [*run.answers[0].prediction.links] == ["description", "reply"]


def test_a_model_that_weighs_nothing_has_no_perplexity(tmp_path: Path) -> None:
    backend = ScriptedModel(lambda _: PUN, identity="plain")

    run = evaluate(Jokes(llm=model(backend), perplexity=True), out=tmp_path / "run")

    figure = run.figure("perplexity")
    assert (figure.value, figure.samples) == (None, 0)
    assert run.figure("ROUGE-L").samples == 4
    assert {answer.prediction.outcome for answer in run.answers} == {"answered"}
    scores = [answer.score for answer in run.answers if answer.score is not None]
    assert scores[0].notes["likelihood"] == "plain weighs no given text"
    assert {request.given for request in backend.requests} == {None}


async def test_a_run_is_scored_again_and_replayed_without_the_model(tmp_path: Path) -> None:
    records = MemoryStore()
    run = evaluate(Jokes(llm=model(Weighing(), records=records), perplexity=True), out=tmp_path / "run")
    nobody = Weighing(identity="weighing")

    again = await rescore(Run.open(run.path), Jokes, reread=True)
    replayed = evaluate(
        Jokes(llm=model(nobody, records=records, mode="replay"), perplexity=True), out=tmp_path / "replay"
    )

    assert again.run.figures == run.figures == replayed.figures
    assert (nobody.requests, nobody.weighed) == ([], [])


async def test_a_plan_counts_what_is_then_asked() -> None:
    backend, records = Weighing(), MemoryStore()
    task = Jokes(llm=model(backend, records=records), perplexity=True)
    epochs = [SampleEpoch(sample=sample, epoch=0) for sample in task.samples()]

    before = await run_job(task, epochs, Engine(records=records)).plan()
    for sample in task.samples()[:2]:
        await task.solver().answer(sample)
    after = await run_job(task, epochs, Engine(records=records)).plan()

    lines = [{line.link: (line.hits, line.calls) for line in plan.links} for plan in (before, after)]
    assert lines == [{"reply": (0, 4), "likelihood": (0, 3)}, {"reply": (2, 2), "likelihood": (2, 1)}]
    likelihood = next(line for line in before.links if line.link == "likelihood")
    assert likelihood.output.high == 3


def test_folds_have_their_own(tmp_path: Path) -> None:
    class Folded(Jokes):
        """Jokes explained, fold by fold."""

        @override
        def scorer(self) -> Scorer:
            return over_folds(super().scorer(), folds_of(self.samples()), count=2)

    run = evaluate(Folded(llm=model(Weighing()), perplexity=True), out=tmp_path / "run")

    first = math.exp((nll(REFERENCES[0]) + nll(REFERENCES[2])) / 18)
    second = math.exp(nll(REFERENCES[1]) / 5)
    assert run.figure("perplexity: fold 1").value == pytest.approx(second)
    assert run.figure("perplexity").value == pytest.approx((first + second) / 2)
    assert run.figure("perplexity, pooled").value != pytest.approx((first + second) / 2)


def test_what_is_no_number_is_no_figure() -> None:
    assert PERPLEXITY.of_sums is not None
    assert math.isnan(PERPLEXITY.of_sums([1.0, 0.0]))
    assert math.isnan(PERPLEXITY.of_sums([1e6, 1.0]))
    assert likelihood_values({"outcome": "refused"}, 5) == {}
    assert likelihood_values({"value": {"nll": 2.0, "tokens": 4}}, None).keys() == set(OWN_PERPLEXITY.columns)


@pytest.mark.parametrize("why", ["reasons before it answers", "asks no model"])
def test_what_cannot_be_weighed_is_said(why: str) -> None:
    node = partial(str) if why == "asks no model" else explain_joke(model(Weighing()), step_by_step=True)
    chain = Chain("jokes", target=REPLY, steps=[Step(link=REPLY, node=node, needs=(DESCRIPTION,), subject=joke)])

    with pytest.raises(UsageError, match=why):
        with_likelihood(chain)


def test_the_link_is_read_as_it_is_written() -> None:
    value = TextLikelihood(nll=2.5, tokens=4)
    link: Link[TextLikelihood] = LIKELIHOOD

    assert link.value(link.write(value)) == value
