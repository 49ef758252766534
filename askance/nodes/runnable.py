"""What nodes and chains are built on: LangChain's `Runnable`, or a bare class in a process that leaves LangChain out.

Loading LangChain takes as long as replaying hundreds of pictures. A program of the user's may compose nodes and listen
to them, so there they are Runnables. In the command's own process nobody does, and it says `leave_langchain_out` before
nodes are loaded. The classes of nodes and chains are the same either way; only this base differs.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from askance.models.langchain.tracing import tracing_asked

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable

__all__ = ["Bare", "Runnable", "leave_langchain_out", "may_be_traced"]

In = TypeVar("In")
Out = TypeVar("Out")


class Bare(Generic[In, Out]):
    """A node or chain without LangChain: it can be asked and invoked, but not composed, traced or drawn."""

    name: str

    def get_name(self) -> str:
        """Its name."""
        return self.name


_left_out = False


def leave_langchain_out() -> bool:
    """Has nodes and chains that are loaded from now on do without LangChain; whether they will.

    It is for a process whose nodes nobody composes. Where LangChain is loaded or tracing is asked for, handlers may
    listen, and nothing changes.
    """
    global _left_out  # noqa: PLW0603  # the choice is the process's
    _left_out = _left_out or not ("langchain_core" in sys.modules or tracing_asked())
    return _left_out


def may_be_traced() -> bool:
    """Whether handlers may listen to the runs of nodes: they may where nodes are LangChain's Runnables."""
    return not _left_out


def __getattr__(name: str) -> Any:
    if name != "Runnable":
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    if _left_out:
        return Bare
    from langchain_core.runnables import Runnable

    return Runnable
