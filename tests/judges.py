"""Judges whose verdicts are known: by the words that two texts share, or by chance with known errors."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

from askance.agents import PreferenceValue, Verdict, VerdictValue
from askance.chat import ChatRequest
from askance.models import Capabilities, ScriptedModel
from tests.servers import Seen

FENCED = re.compile(r"<<(reference|candidate) ([0-9a-f]{8,})\n(.*?)\n\2>>", re.DOTALL)
WORD = re.compile(r"[a-z]{4,}")
SHARED = 0.4
"""Of the words of the shorter text, the share that has to be in the other one."""


def by_words(reference: str, candidate: str) -> VerdictValue:
    """Whether two texts share their longer words; unclear where one has none."""
    first, second = (set(WORD.findall(text.lower())) for text in (reference, candidate))
    fewer = min(len(first), len(second))
    if not fewer:
        return "unclear"
    return "true" if len(first & second) / fewer >= SHARED else "false"


def verdict_by_words(seen: Seen) -> str | None:
    """The reply of an endpoint that judges by words; None where it is asked something else."""
    form: dict[str, Any] = seen.json.get("response_format") or {}
    if form.get("json_schema", {}).get("name") != "judge_equivalence":
        return None
    texts = {found[1]: found[3] for found in FENCED.finditer(seen.json["messages"][-1]["content"])}
    verdict = by_words(texts["reference"], texts["candidate"])
    asked: dict[str, Any] = form["json_schema"]["schema"]["properties"]
    said = {name: "" for name in asked if name != "verdict"}
    return json.dumps({**said, "verdict": verdict if verdict in asked["verdict"]["enum"] else "false"})


class Scripted:
    """A judge that is a function of the two texts; None is a reply that cannot be read."""

    def __init__(self, says: Callable[[str, str], VerdictValue | None], *, name: str = "scripted") -> None:
        self.says = says
        self.name = name
        self.asked = 0

    async def judge(self, reference: str, candidate: str, *, question: str) -> Verdict:
        self.asked += 1
        value = self.says(reference, candidate)
        if value is None:
            return Verdict(outcome="invalid", reason="the reply is not one JSON object and nothing else")
        return Verdict(value=value, reason="so it is")

    def canonical(self) -> dict[str, str]:
        return {"judge": self.name}

    def __str__(self) -> str:
        return self.name


def erring(truth: bool, source: random.Random, *, sensitivity: float, specificity: float) -> bool:
    """A verdict on what is true or not, by a judge of these errors."""
    return source.random() < sensitivity if truth else source.random() >= specificity


COMPARED = re.compile(r"<<(about|first|second) ([0-9a-f]{8,})\n(.*?)\n\2>>", re.DOTALL)


def better_of(first: str, second: str, *, taste: str) -> str:
    """Which of two texts a judge of some taste prefers: `first`, `second` or `same`; else prose.

    Tastes: `long` prefers the longer text, `place` whatever stands first, any other the text that holds it as a word.
    """
    if taste == "prose":
        return "I would say that they are both fine."
    if taste == "place":
        place = "first"
    else:
        one, other = (len(text) if taste == "long" else int(taste in text.split()) for text in (first, second))
        place = "first" if one > other else "second" if other > one else "same"
    return json.dumps({"reason": f"it is {taste}", "better": place})


def preference_in(text: str, *, taste: str) -> str:
    """The reply of a judge of some taste to a prompt that holds two answers."""
    texts = {found[1]: found[3] for found in COMPARED.finditer(text)}
    return better_of(texts["first"], texts["second"], taste=taste)


def tasteful(taste: str) -> ScriptedModel:
    """A model that judges by a taste."""

    def reply(request: ChatRequest) -> str:
        return preference_in("\n".join(message.text for message in request.messages), taste=taste)

    return ScriptedModel(reply, identity=taste, capabilities=Capabilities(schema="enforced"))


def preference_by_taste(seen: Seen, taste: str = "") -> str | None:
    """The reply of a judge of some taste, by default the name of the model; None where something else is asked."""
    form: dict[str, Any] = seen.json.get("response_format") or {}
    if form.get("json_schema", {}).get("name") != "judge_preference":
        return None
    said = "\n".join(message["content"] for message in seen.json["messages"])
    return preference_in(said, taste=taste or seen.json["model"])


def gamma(votes: Sequence[Sequence[PreferenceValue | None]]) -> float:
    """Gwet's AC1 for two categories by its definition, over ordered pairs of raters (Gwet 2014, chapter 2)."""
    given = [[vote for vote in row if vote in {"a", "b"}] for row in votes]
    pairs = [[one == other for one, other in permutations(row, 2)] for row in given if len(row) > 1]
    observed = sum(sum(same) / len(same) for same in pairs) / len(pairs)
    rated = [row for row in given if row]
    share = sum(row.count("a") / len(row) for row in rated) / len(rated)
    expected = 2 * share * (1 - share)
    return (observed - expected) / (1 - expected)
