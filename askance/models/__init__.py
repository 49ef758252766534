"""Models: the seam, the backends behind it, and the wrappers around them.

`get_model` turns a spec, a configured name or an object into a `Model`; an `Engine` holds what the models of one run
share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from askance.models.backend import load as _load
from askance.models.budget import Amount, Budget
from askance.models.budgeted import Purse
from askance.models.capabilities import Capabilities
from askance.models.config import Config
from askance.models.engine import Engine
from askance.models.events import CallEvent
from askance.models.loop import run_sync
from askance.models.model import Model
from askance.models.resolve import ModelLike, get_model
from askance.models.retry import RetryPolicy
from askance.models.scripted import ScriptedModel
from askance.models.seam import ChatModel
from askance.models.settings import Azure, ModelSettings, Price, Rung
from askance.models.spec import Spec
from askance.models.within import drawing, noting

if TYPE_CHECKING:
    from askance.models.langchain import LangChainModel, as_langchain
    from askance.models.ledger import Ledger
    from askance.models.openai import OpenAIModel

_LAZY = {
    "LangChainModel": "askance.models.langchain:LangChainModel",
    "Ledger": "askance.models.ledger:Ledger",
    "OpenAIModel": "askance.models.openai:OpenAIModel",
    "as_langchain": "askance.models.langchain:as_langchain",
}
"""Names whose modules load a vendor's package, or what not every system has."""

__all__ = [
    "Amount",
    "Azure",
    "Budget",
    "CallEvent",
    "Capabilities",
    "ChatModel",
    "Config",
    "Engine",
    "LangChainModel",
    "Ledger",
    "Model",
    "ModelLike",
    "ModelSettings",
    "OpenAIModel",
    "Price",
    "Purse",
    "RetryPolicy",
    "Rung",
    "ScriptedModel",
    "Spec",
    "as_langchain",
    "drawing",
    "get_model",
    "noting",
    "run_sync",
]


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return _load(_LAZY[name])
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
