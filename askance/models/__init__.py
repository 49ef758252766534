"""Models: the seam, the backends behind it, and the way of a call.

`get_model` turns a spec, a configured name or an object into a `Model`; an `Engine` holds what the models of one run
share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from askance.models.backend import ChatModel
from askance.models.backend import load as _load
from askance.models.budget import Budget, BudgetGuard, Cost
from askance.models.capabilities import Capabilities
from askance.models.config import Config
from askance.models.counters import Counters
from askance.models.engine import Engine
from askance.models.events import CallEvent
from askance.models.factory import ModelLike, get_model
from askance.models.loop import run_sync
from askance.models.model import Model
from askance.models.retry import RetryPolicy
from askance.models.scope import collect_keys, use_draw
from askance.models.scripted import ScriptedModel
from askance.models.settings import Azure, ModelSettings, OutputMode, Price
from askance.models.spec import Spec

if TYPE_CHECKING:
    from askance.models.encoders.embedder import (
        Embedder,
        EmbedderLike,
        RecordedEmbedder,
        ScriptedEmbedder,
        get_embedder,
    )
    from askance.models.encoders.scorer import RecordedScorer, Scorer, ScorerLike, ScriptedScorer, get_scorer
    from askance.models.encoders.search import Hit, best_texts, nearest_texts
    from askance.models.encoders.vectors import cosine
    from askance.models.langchain.chat_model import as_langchain
    from askance.models.langchain.langchain_model import LangChainModel
    from askance.models.ledger import Ledger, SqliteLedger
    from askance.models.openai.openai_model import OpenAIModel

_LAZY = {
    "Embedder": "askance.models.encoders.embedder:Embedder",
    "EmbedderLike": "askance.models.encoders.embedder:EmbedderLike",
    "Hit": "askance.models.encoders.search:Hit",
    "LangChainModel": "askance.models.langchain.langchain_model:LangChainModel",
    "Ledger": "askance.models.ledger:Ledger",
    "OpenAIModel": "askance.models.openai.openai_model:OpenAIModel",
    "RecordedEmbedder": "askance.models.encoders.embedder:RecordedEmbedder",
    "RecordedScorer": "askance.models.encoders.scorer:RecordedScorer",
    "Scorer": "askance.models.encoders.scorer:Scorer",
    "ScorerLike": "askance.models.encoders.scorer:ScorerLike",
    "ScriptedEmbedder": "askance.models.encoders.embedder:ScriptedEmbedder",
    "SqliteLedger": "askance.models.ledger:SqliteLedger",
    "ScriptedScorer": "askance.models.encoders.scorer:ScriptedScorer",
    "as_langchain": "askance.models.langchain.chat_model:as_langchain",
    "best_texts": "askance.models.encoders.search:best_texts",
    "cosine": "askance.models.encoders.vectors:cosine",
    "get_embedder": "askance.models.encoders.embedder:get_embedder",
    "get_scorer": "askance.models.encoders.scorer:get_scorer",
    "nearest_texts": "askance.models.encoders.search:nearest_texts",
}
"""Names whose modules load a vendor's package, what not every system has, or what a chain has no use for."""

__all__ = [
    "Azure",
    "Budget",
    "BudgetGuard",
    "CallEvent",
    "Capabilities",
    "ChatModel",
    "Config",
    "Cost",
    "Counters",
    "Embedder",
    "EmbedderLike",
    "Engine",
    "Hit",
    "LangChainModel",
    "Ledger",
    "Model",
    "ModelLike",
    "ModelSettings",
    "OpenAIModel",
    "OutputMode",
    "Price",
    "RecordedEmbedder",
    "RecordedScorer",
    "RetryPolicy",
    "Scorer",
    "ScorerLike",
    "ScriptedEmbedder",
    "ScriptedModel",
    "ScriptedScorer",
    "Spec",
    "SqliteLedger",
    "as_langchain",
    "best_texts",
    "collect_keys",
    "cosine",
    "get_embedder",
    "get_model",
    "get_scorer",
    "nearest_texts",
    "run_sync",
    "use_draw",
]


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return _load(_LAZY[name])
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
