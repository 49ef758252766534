"""The work of a command that asks models: planned or done, what is said of its budget, and how Ctrl-C ends it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from askance.cli.columns import Report
from askance.cli.output import left_text, plan_form, plan_text
from askance.cli.process import INTERRUPTED, OK, SOME
from askance.cli.progress import BatchStatus
from askance.models import run_sync
from askance.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from askance.chains import Plan
    from askance.evals.runner import BatchOptions
    from askance.models import Engine
    from askance.models.budget import BudgetGuard
    from askance.workspace import Workspace

Made = TypeVar("Made")
Shown = TypeVar("Shown")

GOES_ON = "Interrupted. The same command goes on where this one stopped"
ON_RECORD = "what is on record is not asked again."


def execute(
    work: Workspace,
    do: Callable[[Shown], Coroutine[Any, Any, Made]],
    report: Callable[[Made], Report],
    *,
    plan: Callable[[], Coroutine[Any, Any, Any]],
    planned: Callable[[Any], Report] | None = None,
    as_json: bool = False,
    progress: Callable[[], AbstractContextManager[Shown]],
    interrupted: Callable[[Shown], str] = lambda _: f"{GOES_ON}.",
) -> int:
    """Does the work of a command, or says what it would ask; returns the exit code.

    Args:
        work: the command's workspace.
        do: does it.
        report: says what was made; called when the progress is closed.
        plan: makes the plan, which asks nobody.
        planned: says what was planned; by default for a `Plan`.
        as_json: whether either is printed as one JSON object.
        progress: begins to show how far the work is.
        interrupted: what is printed on stderr after Ctrl-C, which may say how far the work is.
    """
    if work.plan:
        result = run_sync(plan())
        return (plan_report(result, work.engine) if planned is None else planned(result)).print(as_json=as_json)
    with progress() as shown:
        try:
            end = partial(_print, report, run_sync(do(shown)), as_json=as_json)
        except KeyboardInterrupt:
            end = partial(_end, interrupted, shown)
    return end()


def _print(report: Callable[[Made], Report], made: Made, *, as_json: bool) -> int:
    return report(made).print(as_json=as_json)


def _end(interrupted: Callable[[Shown], str], shown: Shown) -> int:
    echo(interrupted(shown), err=True)
    return INTERRUPTED


def plan_report(plan: Plan, engine: Engine, *, notes: Sequence[str] = ()) -> Report:
    """A plan as it is printed; the exit code is 1 where pictures cannot be used.

    Args:
        plan: what would be asked.
        engine: that the calls would be made with.
        notes: on the data.
    """
    return Report(
        lambda: {**plan_form(plan, engine), **({"notes": list(notes)} if notes else {})},
        lambda: [plan_text(plan, engine), *(f"· {note}" for note in notes)],
        breaks=False,
        ends=lambda: SOME if plan.unusable else OK,
    )


def batch_options(folder: Path | None = None) -> BatchOptions:
    """Work that goes by the provider's batch interface, and says on stderr what is new about its batches.

    Args:
        folder: where batches under way are kept; by default in the run's.
    """
    from askance.evals.runner import BatchOptions

    return BatchOptions(folder=folder, on_progress=BatchStatus())


def say_budget(guard: BudgetGuard | None, left: Callable[[], Coroutine[Any, Any, Plan]] | None) -> None:
    """Says what was spent and, where that stopped the work, what is left to do and what it would cost.

    Args:
        guard: of the budget; without one nothing is said.
        left: plans what is left; None where nothing is.
    """
    if guard is None:
        return
    balance, budget = run_sync(guard.balance()), guard.ledger.budget
    lost = f", {budget.words(balance.lost)} of it by processes that were killed" if balance.lost.calls else ""
    echo(f"Of the budget of {budget}, {budget.words(balance.spent)} spent{lost}.", err=True)
    if left is not None:
        echo(
            f"The next call might have passed the budget. {left_text(run_sync(left()))}\n"
            f"The same command with a larger --budget goes on; {ON_RECORD}",
            err=True,
        )
