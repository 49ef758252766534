"""A listwise reranker: a model chooses the best of a window of hits, and the window moves from the end to the front.

Hits that are chosen move to the front of their window, and those that are not keep their order behind them. Windows
overlap, so that a hit can rise from the last place to the first (Sun et al., *Is ChatGPT Good at Search?*, 2023).
Within a window the texts are shown in a random order, so that the order of the search says nothing to the model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from askance.agents.choose import ActionReasonChooser
from askance.errors import UsageError
from askance.nodes import Result
from askance.retrieval.retriever import TEXTS

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from askance.chains import Planner
    from askance.chat import JsonObject
    from askance.models import ModelLike
    from askance.nodes.result import Call
    from askance.prompts import PromptLibrary
    from askance.retrieval.retriever import RetrievalHit

PROMPT = "rerank_action_reasons"
"""As `choose_action_reasons`, with the options fenced: texts of an index are strangers' text."""


@dataclass(slots=True)
class _Walk:
    """A reranking on its way."""

    texts: list[str]
    """In the order so far."""
    windows: int = 0
    """Windows that the model was asked about."""
    ended: Result[Any] | None = None
    """Of the window without an answer, where there is one; it is the last that was asked."""
    calls: tuple[Call, ...] = ()


class ListwiseReranker:
    """Puts hits in a new order by what a model chooses.

    Args:
        model: reads a description of the picture, and texts.
        window: texts that it sees at once.
        step: how far the window moves, and how many texts it is asked for.
        keep: how many hits are given back; None gives all.
        seed: of the orders in which texts are shown.
        prompts: where the prompt comes from.

    Raises:
        UsageError: the step is not shorter than the window, or nothing is kept.
    """

    def __init__(
        self,
        model: ModelLike,
        *,
        window: int = 20,
        step: int = 10,
        keep: int | None = None,
        seed: int = 0,
        prompts: PromptLibrary | None = None,
    ) -> None:
        if not 1 <= step < window or (keep is not None and keep < 1):
            raise UsageError(
                f"Hits cannot be reranked with window={window}, step={step}, keep={keep}.",
                hint="A step is 1 or more and shorter than the window; 1 hit or more is kept.",
            )
        self.window = window
        self.step = step
        self.keep = keep
        self.seed = seed
        self.node = ActionReasonChooser(model, count=step, prompt=PROMPT, prompts=prompts, name="rerank")
        """The agent that is asked about a window."""

    def form(self) -> JsonObject:
        """Everything but the hits that decides their new order, as JSON."""
        settings = {"window": self.window, "step": self.step, "keep": self.keep, "seed": self.seed}
        prompts = {prompt.path.name: prompt.digest for prompt in self.node.prompts_in_use}
        return {"model": self.node.model.form(), **settings, "prompts": prompts}

    def calls(self, count: int) -> int:
        """How many windows there are for so many hits of different texts."""
        return len(self._starts(count))

    async def rerank(
        self,
        description: str,
        hits: Sequence[RetrievalHit],
        *,
        statement: str | None = None,
        config: RunnableConfig | None = None,
    ) -> Result[tuple[RetrievalHit, ...]]:
        """The hits in their new order, with the scores of the search.

        A window without an answer ends the reranking: the result has its outcome and names the window, and there is no
        order.

        Args:
            description: of the picture, or what else is searched for.
            hits: at most `TEXTS`, the best first, each with its text. Of equal texts one is shown, and the others
                follow it.
            statement: the atypicality statement that holds in the picture.
            config: a LangChain configuration whose handlers listen.

        Raises:
            UsageError: there is no description, a hit has no text, or there are too many.
        """
        if not description.strip():
            raise UsageError("There is no description to rerank hits by.", hint="Say what the picture shows.")
        groups = _by_text(hits)
        walk = await self._walk(list(groups), {"description": description, "statement": statement}, config)
        if walk.ended is None:
            ranked = tuple(hit for text in walk.texts for hit in groups[text])[: self.keep]
            return Result(outcome="answered", value=ranked, calls=walk.calls)
        starts = self._starts(len(groups))
        first = starts[walk.windows - 1]
        reason = (
            f"Window {walk.windows} of {len(starts)} (hits {first + 1} to {min(first + self.window, len(groups))}) has "
            f"no answer ({walk.ended.outcome}), so that the hits have no new order: {walk.ended.reason}"
        )
        return replace(walk.ended, value=None, reason=reason, calls=walk.calls)

    async def plan(
        self,
        planner: Planner,
        description: str | None,
        hits: Sequence[RetrievalHit],
        *,
        statement: str | None = None,
        count: int = 0,
    ) -> None:
        """Counts the calls of a reranking, without making them.

        Args:
            planner: counts.
            description: None where it is not known yet.
            hits: none where they are not known yet.
            statement: as for `rerank`.
            count: how many hits there will be, where they are not known.

        Raises:
            UsageError: as for `rerank`.
        """
        counter = planner.counter("rerank", self.node)
        groups = _by_text(hits)
        if description is None or not groups:
            counter.add_dependent(self.calls(count))
            return
        with planner.counting(), counter.counting(self.node):
            walk = await self._walk(list(groups), {"description": description, "statement": statement})
        counter.add_dependent(self.calls(len(groups)) - walk.windows)

    async def _walk(self, texts: list[str], about: Mapping[str, Any], config: RunnableConfig | None = None) -> _Walk:
        """Asks about one window after the other, as long as there are answers."""
        walk = _Walk(texts)
        for start in self._starts(len(texts)):
            window = walk.texts[start : start + self.window]
            shown = self._shown(window, f"{start}\n{about['description']}")
            result = await self.node.ask({**about, "options": shown}, config)
            walk.windows += 1
            walk.calls += result.calls
            if result.value is None:
                walk.ended = result
                break
            chosen = [shown[number - 1] for number in result.value.numbers]
            walk.texts[start : start + self.window] = [*chosen, *(text for text in window if text not in chosen)]
        return walk

    def _starts(self, count: int) -> list[int]:
        """Where the windows over so many texts begin, in the order in which they are asked about."""
        if count < 2:
            return []
        last = max(0, count - self.window)
        return [*range(last, 0, -self.step), 0]

    def _shown(self, texts: Sequence[str], key: str) -> tuple[str, ...]:
        """The texts in a random order that depends on nothing but themselves, the seed and `key`."""
        return tuple(sorted(texts, key=lambda text: sha256(json.dumps([self.seed, key, text]).encode()).digest()))


def _by_text(hits: Sequence[RetrievalHit]) -> dict[str, list[RetrievalHit]]:
    if len(hits) > TEXTS:
        raise UsageError(f"{len(hits)} hits are too many to rerank.", hint=f"Rerank the first {TEXTS} or fewer.")
    groups: dict[str, list[RetrievalHit]] = {}
    for hit in hits:
        if not hit.text.strip():
            raise UsageError(f"The hit {hit.id!r} has no text, and is reranked by it.", hint="Leave it out.")
        groups.setdefault(hit.text, []).append(hit)
    return groups
