"""Tracing of LangSmith that the environment switches on: off in a process that replays; elsewhere announced."""

from __future__ import annotations

import logging
import os

_SWITCHES = ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2")
_log = logging.getLogger("askance")
_announced: set[str] = set()


def settle_tracing(mode: str) -> None:
    """Switches tracing off for an engine that replays; announces it for others.

    A replay opens no connection, and what a user composes around a chain is traced before the chain is reached. So an
    engine in `replay` switches tracing off for the process, and says so; other engines say that traces leave the
    machine.
    """
    variables = tracing_asked()
    if not variables:
        return
    names = ", ".join(variables)
    if mode == "replay":
        import langsmith

        langsmith.configure(enabled=False)
        _say(f"A replay opens no connection: the tracing that {names} asks for is off in this process.")
    else:
        _say(
            f"LangSmith tracing is switched on by {names}: prompts and answers leave this machine, pictures as digests "
            "only. Unset it to keep them here."
        )


def tracing_asked() -> list[str]:
    """The variables of the environment that switch tracing on."""
    return [name for name in _SWITCHES if os.environ.get(name, "").lower() in {"true", "1"}]


def _say(message: str) -> None:
    if message not in _announced:
        _announced.add(message)
        _log.warning(message)
