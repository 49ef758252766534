"""The work of a command that asks models: planned or done, what is said of its budget, and how Ctrl-C ends it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from askance.cli.output import left_text, plan_form, plan_text
from askance.cli.process import INTERRUPTED, OK, Report
from askance.models import run_sync
from askance.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextlib import AbstractContextManager

    from askance.chains import Plan
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
    report: Callable[[Made], int],
    *,
    plan: Callable[[], int],
    progress: Callable[[], AbstractContextManager[Shown]],
    interrupted: Callable[[Shown], str] = lambda _: f"{GOES_ON}.",
) -> int:
    """Does the work of a command, or says what it would ask; returns the exit code.

    Args:
        work: the command's workspace.
        do: does it.
        report: prints what was made, and returns the exit code; called when the progress is closed.
        plan: prints what would be asked, and returns the exit code.
        progress: begins to show how far the work is.
        interrupted: what is printed on stderr after Ctrl-C, which may say how far the work is.
    """
    if work.plan:
        return plan()
    with progress() as shown:
        try:
            end = partial(report, run_sync(do(shown)))
        except KeyboardInterrupt:
            end = partial(_end, interrupted, shown)
    return end()


def _end(interrupted: Callable[[Shown], str], shown: Shown) -> int:
    echo(interrupted(shown), err=True)
    return INTERRUPTED


def print_plan(plan: Coroutine[Any, Any, Plan], engine: Engine, *, as_json: bool, unusable: int = OK) -> int:
    """Prints a plan, as a table or as one JSON object; returns the exit code.

    Args:
        plan: makes it.
        engine: that the calls would be made with.
        as_json: whether it is printed as JSON.
        unusable: the exit code where pictures cannot be used.
    """
    planned = run_sync(plan)
    Report(lambda: plan_form(planned, engine), lambda: [plan_text(planned, engine)], breaks=False).print(
        as_json=as_json
    )
    return unusable if planned.unusable else OK


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
