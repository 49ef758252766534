"""Runs that look with tools beside runs that do not: gain, harm and net, and quality at equal dollars."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import Field
from typing_extensions import override

from askance.chat import ChatResponse, Message, ModelId, TextPart, Usage
from askance.evals import (
    Prediction,
    Run,
    RunsComparison,
    Sample,
    Scorer,
    Solver,
    Task,
    compare,
    evaluate,
    right_or_wrong,
)
from askance.evals.analysis.marked_table import marked_table
from askance.evals.report import build_comparison, build_report, comparison_page, report_page
from askance.models import Capabilities, Engine, Model, ScriptedModel, get_model
from askance.replay import MemoryStore
from tests.evals.numbers import samples
from tests.evals.report.runs import Parsed
from tests.golden.commands import askance

DOLLAR = 1_000_000 / 0.15
"""Tokens of input that a dollar buys of the model below, at list price."""


class Asks(Solver):
    """Asks a model a number of times and is right on some samples; with `steps` it says that it looked."""

    def __init__(self, right: range, *, calls: int, steps: bool, cached: int | None, priced: bool) -> None:
        usage = Usage(input=10_000, output=0, cached=cached)
        scripted = ScriptedModel(
            lambda _: ChatResponse(text="x", usage=usage), identity="x", capabilities=Capabilities()
        )
        if priced:
            scripted.id = ModelId("openai", "gpt-4o-mini")
        self.model = get_model(scripted, engine=Engine(records=MemoryStore()))
        self.right, self.calls, self.steps, self.priced = right, calls, steps, priced

    @property
    @override
    def models(self) -> list[Model]:
        return [self.model]

    @override
    async def answer(self, sample: Sample) -> Prediction:
        """Right on some; it is the surer of an answer the lower its number, and withholds that to 39."""
        paid = 0.0
        for call in range(self.calls):
            text = TextPart(f"{sample.id} {call} of {self.calls} {self.steps}")
            response = await self.model.generate(self.model.request([Message("user", (text,))]))
            paid += 0.0 if response.meta.replayed else 10_000 / DOLLAR
        value = sample.target if sample.inputs["number"] in self.right else not sample.target
        trace = {"steps": [{"step": 1, "tool": "zoom"}]} if self.steps else {}
        sure: dict[str, Any] = (
            {"confidence": 1 - sample.inputs["number"] / 40, "abstained": sample.id == "39"} if self.steps else {}
        )
        meta = {"cost": paid} if self.priced else {}
        return Prediction(outcome="answered", value=value, trace=trace, meta=meta, **sure)


class Numbers(Task):
    """Whether each of forty numbers is odd."""

    name = "tests/looking"
    solves: Any = Field(exclude=True)
    context: str = ""
    calls: int = 0

    def samples(self) -> list[Sample]:
        return samples(40)

    def solver(self) -> Solver:
        return self.solves

    def scorer(self) -> Scorer:
        return right_or_wrong()

    def label(self) -> str:
        return self.context or f"agent {self.calls}"


def run(name: str, right: range, *, calls: int, steps: bool = False, **more: Any) -> Run:
    solver = Asks(right, calls=calls, steps=steps, cached=more.get("cached"), priced=more.get("priced", True))
    options: dict[str, Any] = {"calls": calls} if steps else {"context": name}
    return evaluate(Numbers(solves=solver, **options), out=name, seed=0)


def both(**agent: Any) -> RunsComparison:
    """A fixed chain that is right on 0 to 19, and an agent that is right on 10 to 34: 15 gains, 10 harms."""
    return compare(run("UH", range(20), calls=2), run("agent", range(10, 35), calls=4, steps=True, **agent))


def test_gain_harm_and_net_of_looking_are_counted_by_sample_and_by_dollar() -> None:
    (gain,) = both().gains

    assert (gain.without, gain.looking) == ("UH", "agent 4")
    assert (gain.gained, gain.harmed) == (15, 10)
    assert (gain.gain.value, gain.harm.value, gain.net.value) == (15 / 40, 10 / 40, 5 / 40)
    more = 2 * 10_000 * 40 / DOLLAR
    assert gain.more_dollars == pytest.approx(more)
    assert gain.net.per_dollar == pytest.approx(5 / more)
    assert all(each.interval and (each.value or 0) in each.interval for each in (gain.gain, gain.harm, gain.net))
    assert gain.net.interval is not None
    assert (gain.net.interval.low < 0 < gain.net.interval.high, gain.comparison.verdict) == (True, "tied")


def test_the_command_says_it_in_words_and_a_tie_is_called_one() -> None:
    both()

    done = askance("compare", "UH", "agent")
    form: Any = json.loads(askance("compare", "UH", "agent", "--json").out)
    turned = askance("compare", "agent", "UH").out

    line = next(line for line in done.out.splitlines() if line.startswith("Looking ("))
    assert line.startswith(
        "Looking (agent 4) against not looking (UH), by accuracy over 40 samples: gain 15 (37.50 %, 95"
    )
    assert line.endswith("net +12.50 points, 95 % interval -12.05 to +35.44: tied.")
    assert "Looking costs $0.1200 more at list price as asked; a dollar: gain 125 samples (" in done.out
    assert line in turned  # the run that looks is the same, whatever the order
    assert form["looking"][0]["gained"] == 15


def test_looking_at_the_same_cost_has_no_difference_of_cost() -> None:
    (gain,) = compare(run("UH", range(20), calls=2), run("agent", range(10, 35), calls=2, steps=True)).gains

    assert (gain.more_dollars, gain.net.per_dollar) == (0, None)
    assert [*gain.sentences()][1] == "Looking costs no more here at list price as asked."


def test_what_looking_costs_is_not_known_where_a_price_is_not() -> None:
    (gain,) = both(priced=False).gains

    assert gain.more_dollars is None
    assert gain.gain.per_dollar is None
    assert [*gain.sentences()][1] == "What looking costs is not known: a call of either run has no known price."


def test_runs_of_which_none_looks_are_compared_as_ever() -> None:
    comparison = compare(run("UH", range(20), calls=2), run("T_V", range(30), calls=6))

    assert comparison.gains == ()
    assert "looking" not in comparison.form()


def test_a_replayed_run_pays_nothing_and_costs_what_it_would_as_asked() -> None:
    solver = Asks(range(20), calls=2, steps=False, cached=None, priced=True)
    first = evaluate(Numbers(solves=solver), out="first")
    again = evaluate(Numbers(solves=solver), out="again")

    dollars = 40 * 2 * 10_000 / DOLLAR
    table = marked_table([first, again], metrics=["accuracy"], costs=True)
    assert table.columns[-2:] == ("paid, $", "as asked, $")
    assert [row[-2:] for row in table.rows] == [
        (pytest.approx(paid), pytest.approx(dollars)) for paid in (dollars, 0.0)
    ]
    text = Parsed(report_page(build_report([again]))).text
    assert "$0.0000 paid $0.1200 as asked, at list price" in text


def test_what_is_not_known_of_a_cost_is_no_nought() -> None:
    unpriced = run("UH", range(20), calls=2, priced=False)

    assert marked_table([unpriced], costs=True).rows[0][-2:] == (None, None)


@pytest.mark.parametrize(
    ("right", "calls", "verdict"), [(range(40), 4, "better"), (range(5), 4, "worse"), (range(26), 4, "tied")]
)
def test_an_agent_is_held_against_the_fixed_chain_at_equal_dollars(right: range, calls: int, verdict: str) -> None:
    comparison = compare(
        run("T_V", range(30), calls=6), run("UH", range(20), calls=2), run("agent", right, calls=calls, steps=True)
    )

    curve = comparison.cost_curve
    assert curve is not None
    (held,) = curve.verdicts
    assert held.comparison is not None
    assert held.comparison.verdict == verdict
    assert held.comparison.figure_b == pytest.approx(25 / 40)  # half-way between 20 and 30 right
    assert held.dollars == pytest.approx(calls * 10_000 / DOLLAR)
    assert [(name, [point.run.name for point in line]) for name, line in curve.families()] == [
        ("the fixed chain", ["UH", "T_V"]),
        ("looking with tools", ["agent 4"]),
    ]


def test_beyond_the_ends_of_the_fixed_chain_there_is_no_verdict() -> None:
    comparison = compare(run("UH", range(20), calls=2), run("agent", range(40), calls=9, steps=True))

    assert comparison.cost_curve is not None
    (held,) = comparison.cost_curve.verdicts
    assert held.sentence("accuracy") == (
        "agent 9 costs $0.0135 a sample, and the fixed chain $0.0030: at equal dollars nothing can be said."
    )


def test_input_that_was_read_from_a_cache_is_priced_apart() -> None:
    comparison = both(cached=10_000)

    agent = comparison.costs[1][0]
    assert agent.dollars == pytest.approx(agent.uncached and agent.uncached / 2)


def test_the_page_shows_gain_and_harm_quality_against_dollars_and_risk_by_coverage() -> None:
    several = (run("T_V", range(30), calls=6), run("UH", range(20), calls=2))
    comparison = compare(*several, run("<b>agent", range(39), calls=4, steps=True))

    page = Parsed(comparison_page(build_comparison(comparison)))

    for words in (
        "Gain, harm and net of looking",
        "gain T_V agent 4 9 22.50",
        "Quality against dollars",
        "At $0.0060 a sample: agent 4 is better than the fixed chain on accuracy: 97.50 % against 62.50 %",
        "C agent 4 looking with tools $0.0060",
        "Risk by coverage",
        "C agent 4 confidence 40 97.50 97.50 100.00",
    ):
        assert words in page.text
    lines = [each["points"] for tag, each in page.elements if tag == "polyline"]
    assert lines[0] == "333.3,500.0 1000.0,250.0"  # the fixed chain: a third of the dollars, then all


def test_the_report_of_a_run_draws_its_risk_and_whether_its_confidences_can_be_trusted() -> None:
    page = Parsed(report_page(build_report([run("agent", range(39), calls=4, steps=True)])))

    assert "→ coverage: share of the samples that are answered" in page.text
    assert "Reliability of confidences" in page.text
    assert "accuracy among answered 100.00" in page.text
