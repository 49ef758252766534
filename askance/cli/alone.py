"""Whether the process is the command's alone, so that it can be set up for one job and nothing else."""

from __future__ import annotations

import gc
from dataclasses import dataclass

import typer


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """The process that a command runs in; what commands find as the context's object."""

    own: bool
    """Whether the command began it, rather than a program that calls `main` with arguments of its own."""

    @classmethod
    def of(cls, context: typer.Context) -> Process:
        """The process of a command that is being run."""
        found = context.find_object(Process)
        return found if found is not None else cls(own=False)

    def begin(self) -> None:
        """Has the garbage collector look less often: what a command loads is not garbage, and a command ends soon."""
        if self.own:
            gc.set_threshold(50_000, 20, 20)

    def without_langchain(self) -> None:
        """Leaves LangChain out of a command that composes nothing: loading it takes longer than most replays."""
        if self.own:
            from askance.nodes.runnable import leave_langchain_out

            leave_langchain_out()

    def settled(self) -> None:
        """All is loaded: the garbage collector need not look through it again and again."""
        if self.own:
            gc.freeze()
