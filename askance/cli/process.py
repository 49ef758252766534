"""The process of a command: its exit codes and its signals."""

from __future__ import annotations

import gc
import os
import signal
from dataclasses import dataclass

import typer

from askance.errors import AskanceError, CassetteError, UsageError

OK = 0
"""Every picture has an answer; or the command succeeded."""
SOME = 1
"""Some pictures have no answer, or a check found something."""
USAGE = 2
"""The command line, a file or a setting cannot be used as it stands."""
CANNOT_START = 3
"""The model cannot be reached, knows no such key or name, or the store cannot be opened."""
INTERRUPTED = 130
"""Ctrl-C."""
TERMINATED = 143
"""SIGTERM, as a scheduler sends it before it kills."""

HELP = (
    "Exit codes: 0 all answered · 1 some have no answer · 2 the command, a file or a setting is wrong · "
    "3 cannot start · 130 interrupted · 143 terminated."
)


def code_of(error: AskanceError) -> int:
    """The exit code for an error that ends a command."""
    return USAGE if isinstance(error, (UsageError, CassetteError)) else CANNOT_START


@dataclass(slots=True, kw_only=True)
class Process:
    """The process that a command runs in; what commands find as the context's object."""

    own: bool
    """Whether the process was started for the command; else a program called `main` with its own arguments."""
    terminated: bool = False
    """Whether it was asked to stop by SIGTERM."""

    @classmethod
    def of(cls, context: typer.Context) -> Process:
        """The process of the running command."""
        process = context.find_object(Process)
        return process if process is not None else cls(own=False)

    def begin(self) -> None:
        """Runs the garbage collector less often, since a command ends soon; and handles SIGTERM.

        SIGTERM prints a message and then acts as Ctrl-C, so that a command that a scheduler stops ends in order. That
        holds in the background, too, where a shell has commands ignore Ctrl-C itself.
        """
        if self.own:
            gc.set_threshold(200_000, 20, 20)
            signal.signal(signal.SIGTERM, self._terminated)
            if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
                signal.signal(signal.SIGINT, signal.default_int_handler)  # what asyncio ends its work by

    def _terminated(self, _number: int, _frame: object) -> None:
        self.terminated = True
        os.write(2, b"askance: asked to stop (SIGTERM).\n")  # a buffer may be in use just now
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.raise_signal(signal.SIGINT)

    def without_langchain(self) -> None:
        """Keeps LangChain from being loaded, which takes longer than most replays; commands do not compose with it."""
        if self.own:
            from askance.nodes.runnable import leave_langchain_out

            leave_langchain_out()

    def settled(self) -> None:
        """Tells the garbage collector that everything is loaded, so that it does not scan that again."""
        if self.own:
            gc.freeze()
