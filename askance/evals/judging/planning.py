"""What a judge's card would ask and cost, before anything is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from askance.agents import Panel
from askance.agents.judge import QUESTION, EquivalenceJudge
from askance.errors import UsageError
from askance.evals.judging.asking import DRAWS, ask_about
from askance.evals.rehearsing import Rehearsal

if TYPE_CHECKING:
    from askance.agents import Judge
    from askance.chains import Plan
    from askance.evals.judging.labels import Labels


async def planned_card(
    judge: Judge, labels: Labels, *, draws: int = DRAWS, swaps: bool = True, question: str = QUESTION
) -> Plan:
    """What the card of `judge` would ask; nothing is asked.

    Args:
        judge: a judge of equivalence, or a panel of such.
        labels: that it would be asked about.
        draws: how often about each pair.
        swaps: whether once more with its texts in each other's place.
        question: where a pair has none of its own.

    Raises:
        UsageError: the judge is of another kind, so that nobody can tell what it asks; or the mode is `replay`.
    """
    rehearsal = Rehearsal(unit="pair")
    twin = _rehearsed(judge, rehearsal)
    with rehearsal.walking():
        await ask_about(twin, labels.rows, draws=draws, swaps=swaps, question=question)
    return rehearsal.plan(sum(label.verdict is not None for label in labels.rows))


def _rehearsed(judge: Judge, rehearsal: Rehearsal) -> Judge:
    members = judge.judges if isinstance(judge, Panel) else (judge,)
    twins = [
        rehearsal.stand_in("judge" if len(members) == 1 else f"judge {place}", member)
        for place, member in enumerate(members, start=1)
        if isinstance(member, EquivalenceJudge)
    ]
    if len(twins) < len(members):
        raise UsageError("Nobody can tell what a judge asks that is no node.", hint="Plan a judge that is a model.")
    return Panel(*twins, draws=judge.draws) if isinstance(judge, Panel) else twins[0]
