"""Which runs a leaderboard takes: finished ones of its tasks that answer each sample once, as it is."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from askance.errors import UsageError

if TYPE_CHECKING:
    from askance.evals.run import Run

RETRY = "Ask for them again: the command of the run with `--retry invalid,refused,filtered,truncated`."
"""What to do about samples without an answer."""


def check_submittable(run: Run, tasks: Collection[str]) -> None:
    """Refuses a run that no leaderboard of some tasks takes.

    Args:
        run: to be submitted.
        tasks: names of the leaderboard's tasks.

    Raises:
        UsageError: it is of another task, not finished, under a control, or in several epochs.
    """
    if run.task not in tasks:
        raise UsageError(
            f"The run {str(run.path)!r} is of {run.task!r}, which the leaderboard does not have.",
            hint=f"Name a run of {', '.join(tasks)}.",
        )
    if run.finished is None or run.left:
        raise UsageError(f"The run {str(run.path)!r} is not finished.", hint="Finish it by the command that began it.")
    if control := run.options.get("control"):
        raise UsageError(f"The run {str(run.path)!r} is under the control {control!r}.", hint="Run it without.")
    if any(answer.epoch for answer in run.answers):
        raise UsageError(
            f"The run {str(run.path)!r} answers each sample several times.", hint="Run it with one epoch: --epochs 1."
        )
