"""The command of the slow tests that investigate a real photograph by real small weights, and what holds of its line.

What such weights find is of no interest, nor whether they look before they answer. Every investigation ends in a named
outcome within its budget.
"""

from __future__ import annotations

from typing import Any

from askance.chat import OUTCOMES
from tests.slow.commands import Ran

CALLS = 4
INVESTIGATE = (
    *("run", "investigate", "photos/coffee.png", "--goal", "explain"),
    *("--calls", str(CALLS), "--tools", "ask,zoom,unusual", "--json"),
)
ENDED = {*OUTCOMES, "answered", "forced", "budget", "unreadable", "recursion"}


def checked(ran: Ran) -> list[dict[str, Any]]:
    """The line of an investigation, which ends as it may."""
    assert ran.code in {0, 1}, ran.err
    (line,) = ran.lines
    link = line["links"]["reply"]
    assert line["outcome"] in OUTCOMES
    assert link["trace"]["ended"] in ENDED
    assert 1 <= len(link["calls"]) <= CALLS
    assert sum(len(step.get("calls", ())) for step in link["trace"]["steps"]) <= CALLS
    return ran.lasting
