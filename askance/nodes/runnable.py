"""The base class of nodes and chains: LangChain's `Runnable`, or `Bare` in a process that leaves LangChain out.

Loading LangChain takes as long as replaying hundreds of pictures. A user's program may compose nodes and listen to
them, so there the base is `Runnable`. In a process of the command line nobody does: it calls `leave_langchain_out`
before it loads nodes. The classes of nodes and chains are the same either way; only this base differs.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from askance.models.langchain.langsmith_switch import tracing_asked

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
    """Makes nodes and chains that are loaded from now on do without LangChain, and says whether they will.

    It is for a process in which nobody composes nodes. Where LangChain is loaded already, or tracing is asked for,
    handlers may listen, and nothing changes.
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
