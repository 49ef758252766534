"""Whether the process is the command's alone, so that it can be set up for one job and nothing else."""

from __future__ import annotations

import gc
import os
import signal
from dataclasses import dataclass

import typer


@dataclass(slots=True, kw_only=True)
class Process:
    """The process that a command runs in; what commands find as the context's object."""

    own: bool
    """Whether the command began it, rather than a program that calls `main` with arguments of its own."""
    terminated: bool = False
    """Whether it was asked to stop by SIGTERM."""

    @classmethod
    def of(cls, context: typer.Context) -> Process:
        """The process of a command that is being run."""
        found = context.find_object(Process)
        return found if found is not None else cls(own=False)

    def begin(self) -> None:
        """Has the garbage collector look less often: what a command loads is not garbage, and a command ends soon.

        SIGTERM becomes Ctrl-C with a word before it, so that a command that a scheduler stops ends as well as one that
        a person stops.
        """
        if self.own:
            gc.set_threshold(50_000, 20, 20)
            signal.signal(signal.SIGTERM, self._terminated)

    def _terminated(self, _number: int, _frame: object) -> None:
        self.terminated = True
        os.write(2, b"askance: asked to stop (SIGTERM).\n")  # a buffer may be in use just now
        signal.raise_signal(signal.SIGINT)

    def without_langchain(self) -> None:
        """Leaves LangChain out of a command that composes nothing: loading it takes longer than most replays."""
        if self.own:
            from askance.nodes.runnable import leave_langchain_out

            leave_langchain_out()

    def settled(self) -> None:
        """All is loaded: the garbage collector need not look through it again and again."""
        if self.own:
            gc.freeze()
