from __future__ import annotations

import json
from typing import Any

import pytest

from askance.agents import PanelVerdict, Verdict, judge_equivalence, judge_panel, judge_references, panel_agreement
from askance.agents.verdict import VerdictValue, canonical_judge
from askance.chat import ChatRequest
from askance.errors import UsageError
from askance.models import ScriptedModel, use_draw
from tests.scripted import ENFORCED, model_of


class Says:
    """A judge that says the same of everything, or what a table has for the reference."""

    def __init__(self, said: VerdictValue | None, *, table: dict[str, VerdictValue | None] | None = None) -> None:
        self.said: VerdictValue | None = said
        self.table = table

    async def judge(self, reference: str, candidate: str, *, question: str) -> Verdict:
        value = self.said if self.table is None else self.table[reference]
        if not reference:
            return Verdict(outcome="skipped", reason="empty")
        return Verdict(outcome="invalid", reason="prose") if value is None else Verdict(value=value, calls=(reference,))


PANELS: dict[str, tuple[list[VerdictValue | None], VerdictValue | None, str]] = {
    "all": (["true", "true", "true"], "true", "3 true"),
    "two of three": (["false", "true", "false"], "false", "2 false, 1 true"),
    "two that gave one": (["true", None, "true"], "true", "2 true, 1 unscored"),
    "tie": (["true", "false"], "unclear", "no majority: 1 false, 1 true"),
    "tie of those that gave one": (["true", None, "false"], "unclear", "no majority: 1 false, 1 true, 1 unscored"),
    "no majority of three": (["true", "false", "unclear"], "unclear", "no majority: 1 false, 1 true, 1 unclear"),
    "unclear": (["unclear", "unclear", "true"], "unclear", "1 true, 2 unclear"),
    "too few": ([None, None, "true"], None, "1 of 3 judges gave a verdict; another: prose"),
    "half": ([None, "true"], None, "1 of 2 judges gave a verdict; another: prose"),
    "none": ([None], None, "0 of 1 judges gave a verdict; another: prose"),
}


@pytest.mark.parametrize(("said", "value", "reason"), PANELS.values(), ids=PANELS)
async def test_the_majority_is_the_verdict(said: list[Any], value: Any, reason: str) -> None:
    verdict = await judge_panel(*map(Says, said)).judge("r", "c")

    assert (verdict.value, verdict.reason) == (value, reason)
    assert verdict.outcome == ("answered" if value else "invalid")
    assert verdict.calls == ("r",) * sum(each is not None for each in said)


async def test_draws_of_one_judge_are_calls_of_their_own() -> None:
    def reply(request: ChatRequest) -> str:
        return json.dumps({"verdict": "true" if request.draw % 2 else "false"})

    script = ScriptedModel(reply, identity="judge", capabilities=ENFORCED)
    panel = judge_panel(judge_equivalence(model_of(script), form="short"), draws=3)

    first = await panel.vote("r", "c")
    with use_draw(1):
        second = await panel.vote("r", "c")

    assert [vote.value for vote in first.votes] == ["false", "true", "false"]
    assert [vote.value for vote in second.votes] == ["true", "false", "true"]
    assert sorted(request.draw for request in script.requests) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(("judges", "draws"), [(0, 1), (1, 0)])
def test_a_panel_of_nobody_is_none(judges: int, draws: int) -> None:
    with pytest.raises(UsageError, match=f"^{judges} judges with {draws} draws each are no panel"):
        judge_panel(*[Says("true")] * judges, draws=draws)


def test_a_panel_says_who_is_in_it() -> None:
    panel = judge_panel(Says("true"), Says("false"), draws=2)

    assert canonical_judge(panel) == {"judge": "panel", "members": [{"judge": "Says"}] * 2, "draws": 2}


def test_members_agree_as_far_as_they_do() -> None:
    rows = [["true", "true"], ["false", "false"], ["true", "false"], ["true", None]]
    verdicts = [
        PanelVerdict(votes=tuple(Verdict(value=value) if value else Verdict(outcome="invalid") for value in row))  # pyright: ignore[reportArgumentType]
        for row in rows
    ]

    agreement = panel_agreement(verdicts)

    assert agreement.pairwise.value == pytest.approx(2 / 3)
    assert agreement.alpha.value == pytest.approx(4 / 9)
    assert [each.items for each in agreement] == [3, 3, 3]


REFERENCES: dict[str, tuple[dict[str, VerdictValue | None], VerdictValue | None, str, float | None]] = {
    "one is enough": ({"a": "false", "b": "true", "c": None}, "true", "answered", 0.5),
    "none": ({"a": "false", "b": "false"}, "false", "answered", 0.0),
    "it might have been the unscored one": ({"a": "false", "b": None}, None, "invalid", 0.0),
    "unclear": ({"a": "false", "b": "unclear"}, "unclear", "answered", 0.0),
    "all unscored": ({"a": None, "b": None}, None, "invalid", None),
    "a blank one counts for nothing": ({"a": "false", "": None}, "false", "answered", 0.0),
    "all blank": ({"": None}, None, "skipped", None),
    "no reference": ({}, None, "skipped", None),
}


@pytest.mark.parametrize(("said", "value", "outcome", "share"), REFERENCES.values(), ids=REFERENCES)
async def test_any_of_several_references_and_each(
    said: dict[str, VerdictValue | None], value: Any, outcome: str, share: float | None
) -> None:
    verdict = await judge_references(Says(None, table=said), [*said], "c")

    assert (verdict.any_of.value, verdict.any_of.outcome, verdict.share) == (value, outcome, share)
    assert len(verdict.each) == len(said)
    assert verdict.any_of.reason or value
