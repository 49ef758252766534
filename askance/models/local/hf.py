"""`hf:`, a model that transformers runs on this machine; requests that are made at once are answered in one batch."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from askance.amounts import many
from askance.chat import ModelId
from askance.models.capabilities import Capabilities
from askance.models.counters import Counters
from askance.models.local.batch_row import Completion, to_response, to_row
from askance.models.local.collector import BatchCollector
from askance.models.local.folder import ModelFolder, find_folder, identity_of, is_identity, no_weights
from askance.models.local.generator import TextGenerator
from askance.models.local.runtime import free_memory
from askance.models.local.transformers_model import load_model
from askance.models.settings import Local, ModelSettings, family_of_name

if TYPE_CHECKING:
    from askance.chat import ChatRequest, ChatResponse
    from askance.models.local.batch_row import BatchRow
    from askance.models.local.generator import RowOutcome
    from askance.models.local.prompt_writer import PromptWriter
    from askance.models.local.transformers_model import TransformersModel

LINGER = 0.01
"""Seconds that a batch waits for requests that are made at the same time."""
PATIENCE = 1.0
"""Most seconds that it waits for requests that are still being turned into tokens and pixels."""

_log = logging.getLogger("askance")


@dataclass(frozen=True, eq=False)
class _Ready:
    """The model and what works with it, once the weights are loaded."""

    model: TransformersModel
    writer: PromptWriter
    generator: TextGenerator


class HFModel:
    """A model that transformers runs on this machine; its weights are loaded at the first request.

    Args:
        source: a folder, or a name on the hub that was downloaded before.
        local: how it is run.
        family: by which prompts are worded; None goes by the name.

    Raises:
        ConfigError: it is not on this machine, or not whole.
    """

    def __init__(
        self,
        source: str | Path,
        *,
        local: Local | None = None,
        family: str | None = None,
    ) -> None:
        self.source = str(source)
        self.local = local or Local()
        self.counters = Counters(unknown=frozenset({"found"}))
        """What was computed, and what was reused."""
        self._folder: ModelFolder | None = None
        if not is_identity(self.source):
            self._folder = find_folder(self.source, self.local)
        self._family = family or family_of_name(Path(self.source).name)
        self._ready: _Ready | None = None
        self._loading = Lock()
        self._preparing = ThreadPoolExecutor(1, thread_name_prefix="askance-prepare")
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="askance-write")
        self._arriving = 0
        self._collector: BatchCollector[BatchRow, Completion] = BatchCollector(
            self._run, self._writing, most=lambda: self._most, group=lambda row: row.pictures, fill=self._fill
        )

    @property
    def id(self) -> ModelId:
        """By the digest of the weights and how they are held, never by the folder."""
        name = f"hf:{self.source}" if self._folder is None else identity_of(self._folder, self.local)
        return ModelId("hf", self.source, name=name)

    @property
    def capabilities(self) -> Capabilities:
        """Answers are held to any schema, no tool is called; whether it takes pictures is known once it is loaded."""
        sees = None if self._ready is None else self._ready.model.processor is not None
        return Capabilities(schema="enforced", json_object=True, images=sees, seed=True, logprobs=True, tools=False)

    async def generate(self, request: ChatRequest) -> ChatResponse:
        """The answer to `request`.

        Raises:
            CallError: the call ended without an answer.
            BadImage: a picture cannot be used.
            ConfigError: the model cannot be loaded.
            MissingExtra: a package is not installed.
            UsageError: only the digest of the weights is known.
        """
        loop = asyncio.get_running_loop()
        self._arriving += 1
        try:
            row = await loop.run_in_executor(self._preparing, self._row_of, request)
        finally:
            self._arriving -= 1
        try:
            completion = await self._collector.put(row)
        except asyncio.CancelledError:
            row.abandoned = True
            raise
        return to_response(row, completion, model=request.model.name or str(request.model))

    async def likelihood(self, request: ChatRequest) -> ChatResponse:
        """How likely the text `request.given` is; see `askance.models.likelihood`. It raises what `generate` raises."""
        return await self.generate(request)

    @property
    def doing(self) -> str:
        """Loading the weights, or generating: how many tokens of how many answers."""
        ready = self._ready
        if ready is None:
            return f"{self._short} loads its weights" if self._loading.locked() else ""
        drafts = ready.generator.drafts
        tokens = sum(len(draft.tokens) for draft in drafts)
        return f"{self._short} writes: {many(tokens, 'token')} of {many(len(drafts), 'answer')}" if drafts else ""

    @property
    def _short(self) -> str:
        return Path(self.source).name

    async def counted(self) -> Counters:
        """A copy of what was counted so far."""
        return replace(self.counters)

    async def aclose(self) -> None:
        """Releases the weights and ends the answers under way. The next request loads the weights again."""
        for row in self._collector.items:
            row.abandoned = True
        await asyncio.get_running_loop().run_in_executor(self._writing, self._unload)

    def __repr__(self) -> str:
        return f"HFModel({self.source!r})"

    def _row_of(self, request: ChatRequest) -> BatchRow:
        ready = self._loaded()
        return to_row(request, ready.model, ready.writer)

    def _loaded(self) -> _Ready:
        with self._loading:
            if self._ready is None:
                model = self._load()
                generator = TextGenerator(
                    model,
                    name=f"hf:{self.source}",
                    most=self.local.batch,
                    share=self.local.share,
                    counters=self.counters,
                )
                self._ready = _Ready(model, model.prompt_writer(), generator)
            return self._ready

    def _load(self) -> TransformersModel:
        if self._folder is None:
            raise no_weights(f"hf:{self.source}")
        dtype = self._folder.dtype_in(self.local.dtype)
        return load_model(self._folder, self.local, name=self.source, dtype=dtype, family=self._family)

    def _unload(self) -> None:
        with self._loading:
            ready, self._ready = self._ready, None
        if ready is None:
            return
        _log.info("%s: %s.", self.source, self.counters)
        torch = ready.model.torch
        del ready
        free_memory(torch)

    async def _fill(self) -> None:
        """Waits for requests that are made at the same time, until a batch is full."""
        late = time.monotonic() + PATIENCE
        await asyncio.sleep(LINGER)
        while self._arriving and self._collector.waiting < self._most and time.monotonic() < late:  # noqa: ASYNC110
            await asyncio.sleep(LINGER)

    @property
    def _most(self) -> int:
        return self.local.batch if self._ready is None else self._ready.generator.most

    def _run(self, rows: Sequence[BatchRow]) -> Sequence[RowOutcome]:
        return self._loaded().generator.run(rows)


def from_settings(settings: ModelSettings) -> HFModel:
    """The model that `settings` describes."""
    return HFModel(settings.id.model, local=settings.local, family=settings.family)
