"""A chain through the batch interface: passes over all pictures, and a batch of what was not on record in each.

In a pass every picture goes as far as the records carry it; its missing calls are queued, and it is set aside. When the
answers are on record the next pass begins, and once nothing is missing the readings come out. The chain is the same one
as online, and so are the readings.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING

from askance.chains.chain import CONCURRENCY
from askance.chat import key_of
from askance.errors import UsageError
from askance.models.batch.batch_job import BatchJob
from askance.models.batch.batches import Batches
from askance.models.call_scope import on_miss

if TYPE_CHECKING:
    from askance.chains.chain import Chain
    from askance.chains.reading import Given, Reading
    from askance.chat import JsonObject
    from askance.models import Model
    from askance.models.batch.policy import BatchPolicy, BatchProgress
    from askance.models.batch.queue import CallQueue

FOLDER = "batches"
"""Folder of a store, or of a run, that holds what is under way."""

MOST_ROUNDS = 100
"""Passes that end with something in the queue; a chain of seven calls takes three, more where calls are repeated."""


async def read_in_batches(
    chain: Chain,
    inputs: Iterable[Given],
    *,
    folder: Path | None = None,
    policy: BatchPolicy | None = None,
    on_progress: Callable[[BatchProgress], None] | None = None,
    concurrency: int = CONCURRENCY,
) -> AsyncGenerator[Reading, None]:
    """The readings of `inputs`, in order, by batches; none comes before all of them can.

    The process may end at any instant. The same call goes on where it stopped, and submits nothing twice.

    Args:
        chain: of models of one engine.
        inputs: gone through once a pass, so no iterator.
        folder: where the state of the batches is kept; by default with the store, under what the chain asks.
        policy: bounds.
        on_progress: called after every step.
        concurrency: pictures under way at once in a pass.

    Raises:
        UsageError: a model or its endpoint has no batch interface, or the inputs cannot be gone through again.
        StoreError: another process works on these batches, or the disk takes no more.
        CallError: an endpoint cannot be asked; everything is kept for the next time.
    """
    models = models_of(chain)
    if isinstance(inputs, Iterator):
        raise UsageError("The inputs are gone through once a pass, and an iterator only once.", hint="Give a list.")
    with BatchJob(folder or place_of(chain), tries=policy.tries if policy else 3) as job:
        batches = Batches(job, models, policy=policy, on_progress=on_progress)
        try:
            await batches.begin()
            await batches.drain()
            rounds = 0
            while True:
                queue = await _pass(chain, inputs, batches, concurrency=concurrency)
                if not queue.count:
                    if not queue.asked_elsewhere:
                        break
                    await batches.wait_for_others(queue.asked_elsewhere)
                    continue
                await batches.drain()
                batches.round += 1
                rounds += batches.end_pass(queue)
                if rounds >= MOST_ROUNDS:
                    raise UsageError(
                        "The chain asks something else each time that it reads the same pictures.",
                        hint="Ask without `--batch`, or have what it asks depend on nothing but the pictures.",
                    )
            batches.end_pass(queue)
        finally:
            await batches.aclose()
            if not job.parts:
                job.remove()
        # All is on record now. What has failed is this run's outcome, and asked again by the next.
        job.remove()
        async for reading in _readings(chain, inputs, batches.queue(closed=True), concurrency=concurrency):
            yield reading


def models_of(chain: Chain) -> list[Model]:
    """The models of a chain, each once.

    Raises:
        UsageError: it has none, they share no engine, or what a node asks depends on each answer.
    """
    models = [*chain.models]
    if not models:
        raise UsageError(f"The chain {chain.name!r} asks no model.", hint="It needs no batches.")
    if any(node.most_calls > 1 for node in chain.nodes):
        raise UsageError(
            f"The chain {chain.name!r} decides after each answer what it asks next, so no batch can hold its calls.",
            hint="Leave `--batch` out.",
        )
    if any(model.engine is not models[0].engine for model in models):
        raise UsageError("The chain's models have engines of their own.", hint="Give them one `engine=`.")
    return models


def place_of(chain: Chain) -> Path:
    """Where the state of a chain's batches is kept by default.

    Raises:
        UsageError: its records are in no folder.
    """
    models = models_of(chain)
    place = models[0].engine.recorder.records.folder
    if place is None:
        raise UsageError("The records are in no folder that could keep the batches as well.", hint="Give `folder`.")
    form: JsonObject = {
        "chain": chain.get_name(),
        "links": [step.link.name for step in chain.steps],
        "models": [model.id.canonical() for model in models],
        "prompts": {prompt.name: prompt.digest for node in chain.nodes for prompt in node.prompts_in_use},
    }
    return place / FOLDER / key_of("batches", form)


async def _pass(chain: Chain, inputs: Iterable[Given], batches: Batches, *, concurrency: int) -> CallQueue:
    """One pass; the queue that it put calls into."""
    queue = batches.queue()
    try:
        async for _ in _readings(chain, inputs, queue, concurrency=concurrency):
            if queue.count:
                await batches.check()
            _start(queue, batches)
            await batches.wait_for_room()
            batches.report("queueing", queued=queue.count)
        await asyncio.to_thread(queue.finish)
        _start(queue, batches)
        return queue
    finally:
        queue.abandon()


def _start(queue: CallQueue, batches: Batches) -> None:
    while queue.complete_parts:
        batches.start(queue.complete_parts.popleft())


async def _readings(
    chain: Chain, inputs: Iterable[Given], queue: CallQueue, *, concurrency: int
) -> AsyncGenerator[Reading, None]:
    """The readings as far as the records carry them, in order."""
    with on_miss(queue):
        context = copy_context()
    under_way: list[asyncio.Task[Reading]] = []
    try:
        for source in inputs:
            under_way.append(asyncio.create_task(chain.read(source), context=context.copy()))
            if len(under_way) >= concurrency:
                yield await _next(under_way, queue)
        while under_way:
            yield await _next(under_way, queue)
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


async def _next(under_way: list[asyncio.Task[Reading]], queue: CallQueue) -> Reading:
    reading = await under_way.pop(0)
    if queue.error is not None:
        raise queue.error
    return reading
