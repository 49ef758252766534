"""The command of the slow tests that investigate real photographs by real small weights, and what holds of its lines.

What such weights find is of no interest, nor whether they look before they answer. Every investigation ends in a named
outcome within its budget.
"""

from __future__ import annotations

from typing import Any

from askance.chat import OUTCOMES
from tests.slow.commands import Ran

CALLS = 4
PHOTOGRAPHS = ("coffee.png", "chelsea.png")
INVESTIGATE = (
    *("run", "investigate", *(f"photos/{name}" for name in PHOTOGRAPHS), "--goal", "explain"),
    *("--calls", str(CALLS), "--tools", "ask,zoom,unusual", "--json"),
)
ENDED = {*OUTCOMES, "answered", "forced", "budget", "unreadable", "recursion"}


def checked(ran: Ran) -> list[dict[str, Any]]:
    """The lines of investigations, each of which ends as it may."""
    assert ran.code in {0, 1}, ran.err
    assert len(ran.lines) == len(PHOTOGRAPHS), ran.err
    for line in ran.lines:
        trace = line["links"]["reply"]["trace"]
        assert line["outcome"] in OUTCOMES
        assert trace["ended"] in ENDED
        assert 1 <= len(line["links"]["reply"]["calls"]) <= CALLS
        assert sum(len(step.get("calls", ())) for step in trace["steps"]) <= CALLS
    return ran.lasting
