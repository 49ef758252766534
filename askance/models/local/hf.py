"""`hf:`: a model on this machine behind the seam. Requests that are made at once are answered in one batch."""

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
from askance.models.local.folder import ModelFolder, find_folder, identity_of, is_identity, no_weights
from askance.models.local.generator import TextGenerator
from askance.models.local.inputs import Completion, to_response, to_row
from askance.models.local.runtime import free_memory
from askance.models.local.transformers_model import load_model
from askance.models.settings import Local, ModelSettings, family_of_name

if TYPE_CHECKING:
    from askance.chat import ChatRequest, ChatResponse
    from askance.models.local.generator import RowOutcome
    from askance.models.local.inputs import BatchRow, PromptWriter
    from askance.models.local.transformers_model import TransformersModel

LINGER = 0.01
"""Seconds that a batch waits for requests that are made at the same time."""
PATIENCE = 1.0
"""Seconds that it waits, at most, for those that are still being cut into tokens and pixels."""

_log = logging.getLogger("askance")


@dataclass(eq=False)
class _Waiting:
    """A row and who waits for its answer."""

    row: BatchRow
    future: asyncio.Future[Completion]


@dataclass(frozen=True, eq=False)
class _Ready:
    """The model and what works with it, once the weights are loaded."""

    model: TransformersModel
    writer: PromptWriter
    generator: TextGenerator


class HFModel:
    """A model that transformers runs on this machine; its weights are loaded at the first question.

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
        self._waiting: list[_Waiting] = []
        self._under_way: list[_Waiting] = []
        self._worker: asyncio.Task[None] | None = None

    @property
    def id(self) -> ModelId:
        """By the digest of the weights, how they are held, and never by the folder."""
        name = f"hf:{self.source}" if self._folder is None else identity_of(self._folder, self.local)
        return ModelId("hf", self.source, name=name)

    @property
    def capabilities(self) -> Capabilities:
        """Answers are held to any schema; whether it sees is known when it is loaded."""
        sees = None if self._ready is None else self._ready.model.processor is not None
        return Capabilities(schema="enforced", json_object=True, images=sees, seed=True, logprobs=True)

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
            row = await loop.run_in_executor(self._preparing, self._row, request)
        finally:
            self._arriving -= 1
        waiting = _Waiting(row, loop.create_future())
        self._waiting.append(waiting)
        if self._worker is None:
            self._worker = loop.create_task(self._work())
        try:
            completion = await waiting.future
        except asyncio.CancelledError:
            row.abandoned = True
            raise
        return to_response(row, completion, model=request.model.name or str(request.model))

    @property
    def under_way(self) -> int:
        """Answers that are being written."""
        return len(self._under_way)

    @property
    def doing(self) -> str:
        """Loading the weights, or writing: how many answers, and how far they are."""
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
        """Releases the weights; what is being written is broken off. The next question loads them again."""
        for waiting in (*self._waiting, *self._under_way):
            waiting.row.abandoned = True
        await asyncio.get_running_loop().run_in_executor(self._writing, self._unload)

    def __repr__(self) -> str:
        return f"HFModel({self.source!r})"

    def _row(self, request: ChatRequest) -> BatchRow:
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

    async def _work(self) -> None:
        """Answers what waits, batch after batch."""
        try:
            while self._waiting:
                await self._fill()
                self._under_way = self._next()
                await self._answer(self._under_way)
        finally:
            self._worker = None
            self._under_way = []

    async def _fill(self) -> None:
        """Waits for those that come at the same time, until a batch is full."""
        late = time.monotonic() + PATIENCE
        await asyncio.sleep(LINGER)
        while self._arriving and len(self._waiting) < self._most and time.monotonic() < late:  # noqa: ASYNC110
            await asyncio.sleep(LINGER)

    @property
    def _most(self) -> int:
        return self.local.batch if self._ready is None else self._ready.generator.most

    def _next(self) -> list[_Waiting]:
        """Those that came first, with all that are about the same pictures, as many as a batch holds."""
        waiting = [each for each in self._waiting if not each.future.done()]
        first: dict[tuple[str, ...], int] = {}
        for place, each in enumerate(waiting):
            first.setdefault(each.row.pictures, place)
        most = self._most
        ordered = sorted(waiting, key=lambda each: first[each.row.pictures])
        self._waiting = ordered[most:]
        return ordered[:most]

    async def _answer(self, batch: Sequence[_Waiting]) -> None:
        try:
            outcomes: Sequence[RowOutcome | Exception] = await asyncio.get_running_loop().run_in_executor(
                self._writing, self._run, [each.row for each in batch]
            )
        except Exception as error:  # noqa: BLE001  # whoever waits is told
            outcomes = [error] * len(batch)
        for each, outcome in zip(batch, outcomes, strict=True):
            if each.future.done():
                continue
            if isinstance(outcome, Exception):
                each.future.set_exception(outcome)
            else:
                each.future.set_result(outcome)

    def _run(self, rows: Sequence[BatchRow]) -> Sequence[RowOutcome]:
        return self._loaded().generator.run(rows)


def from_settings(settings: ModelSettings) -> HFModel:
    """The model that `settings` describes."""
    return HFModel(settings.id.model, local=settings.local, family=settings.family)
