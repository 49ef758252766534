"""One run of a chain in batches, as a process that can be killed at any instant."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import resource
import signal
from collections.abc import AsyncIterable, Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from PIL import Image

from askance.chains import Chain, Reading, action_reason
from askance.chains.batch_passes import read_in_batches
from askance.images import prepare
from askance.models import BudgetGuard, Engine, get_model
from askance.models.batch.batch_job import BatchJob
from askance.models.batch.policy import BatchPolicy, BatchProgress
from askance.replay import Budget, Records, SqliteLedger, open_records
from tests.processes import begin
from tests.scripted import ANSWERS, OPTIONS
from tests.servers import default_text

QUICK = BatchPolicy(first_poll=0.002, poll=0.01, grace=0.1, max_wait=0.01)
"""For an endpoint that knows no delay."""

JsonObject = dict[str, Any]


def answer(body: JsonObject) -> str:
    """What the model says: its texts are different for every question."""
    name = body.get("response_format", {}).get("json_schema", {}).get("name")
    if name not in ANSWERS:
        return default_text(body)
    mark = sha256(json.dumps(body["messages"]).encode()).hexdigest()[:8]
    told = {key: f"{value} {mark}" if isinstance(value, str) else value for key, value in ANSWERS[name].items()}
    return json.dumps(told)


def draw(folder: Path, count: int) -> list[str]:
    """So many pictures, each of a colour of its own."""
    paths = [folder / f"{number:04d}.png" for number in range(count)]
    for number, path in enumerate(paths):
        Image.new("RGB", (8, 8), (number % 256, number // 256, 99)).save(path)
    return [str(path) for path in paths]


@dataclass(frozen=True)
class Run:
    """A run of the seven-call chain.

    Args:
        url: of the endpoint.
        place: folder for the records, the batches and the lines.
        pictures: in order.
        kill: the step of the journal, counted from 1 in this process, at which the process dies; and where: `before`
            it is written, `torn` in the middle, `after` it; or `put` for the answer that is about to be recorded.
        policy: of the batches.
        budget: that the run is held to, in the ledger `budget.db`.
        folder: name of the folder for the batches.
    """

    url: str
    place: Path
    pictures: Sequence[str]
    kill: tuple[int, str] | None = None
    policy: BatchPolicy = QUICK
    engine: JsonObject = field(default_factory=dict[str, Any])
    settings: JsonObject = field(default_factory=dict[str, Any])
    budget: Budget | None = None
    folder: str = "batches"

    def chain(self, *, store: str = "store", observers: Sequence[Callable[..., None]] = ()) -> tuple[Chain, Engine]:
        records = open_records(self.place / store)
        guard = None if self.budget is None else BudgetGuard(self.ledger)
        engine = Engine(records=records, observers=list(observers), budget=guard, **self.engine)
        model = get_model(f"openai:gpt-4o@{self.url}", engine=engine, **self.settings)
        return action_reason(model, model), engine

    @property
    def ledger(self) -> SqliteLedger:
        return SqliteLedger(self.place / "budget.db", self.budget or Budget(calls=0))

    @property
    def inputs(self) -> list[Any]:
        return [{"image": picture, "options": OPTIONS} for picture in self.pictures]

    def online(self, store: str = "online") -> list[JsonObject]:
        """The lines of the same run, asked call by call."""
        chain, engine = self.chain(store=store)
        return asyncio.run(lines_of(chain, engine, chain.read_all(self.inputs)))

    def in_batches(self, told: Callable[[BatchProgress], None] | None = None, **options: Any) -> list[JsonObject]:
        """The lines, read by batches in this process."""
        chain, engine = self.chain(**options)
        readings = read_in_batches(
            chain, self.inputs, folder=self.place / self.folder, policy=self.policy, on_progress=told
        )
        return asyncio.run(lines_of(chain, engine, readings))

    def alone(self) -> multiprocessing.Process:
        """The run as a process; it leaves its lines beside its folder."""
        return begin(_main, self)

    @property
    def lines(self) -> list[JsonObject]:
        return [json.loads(line) for line in (self.place / f"{self.folder}.lines.jsonl").read_text().splitlines()]

    @property
    def peak(self) -> int:
        """Bytes that the process took at most."""
        return int((self.place / "peak").read_text())

    def killed_at(self, count: int, where: str) -> Run:
        return replace(self, kill=(count, where))


async def lines_of(chain: Chain, engine: Engine, readings: AsyncIterable[Reading]) -> list[JsonObject]:
    """The lines of the readings, without what is volatile; all is closed then."""
    try:
        return [{**reading.to_dict(), "meta": None} async for reading in readings]
    finally:
        for node in chain.nodes:
            await node.model.aclose()
        await engine.aclose()
        if engine.records is not None:
            engine.records.close()


def _main(run: Run) -> None:
    # What is remembered of pictures has its own bound, which a small run does not reach.
    prepare.PREPARED_IMAGES._max_bytes = 8_000_000  # pyright: ignore[reportPrivateUsage]
    if run.kill is not None:
        _plant(*run.kill)
    chain, engine = run.chain()

    async def read() -> None:
        readings = read_in_batches(chain, run.inputs, folder=run.place / run.folder, policy=run.policy)
        with (run.place / f"{run.folder}.lines.jsonl").open("w") as file:
            async for reading in readings:
                print(json.dumps({**reading.to_dict(), "meta": None}), file=file)
        await engine.aclose()

    asyncio.run(read())
    (run.place / "peak").write_text(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024))


def _plant(count: int, where: str) -> None:
    """Has this process die at a step that no request shows."""
    left = count

    def due() -> bool:
        nonlocal left
        left -= 1
        return left == 0

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    note, put = BatchJob.note, Records.put

    def noted(self: BatchJob, event: str, *args: Any, **facts: Any) -> None:
        dies = due()
        if dies and where == "torn":
            self._journal.write(b'{"event":"' + event.encode()[:3])  # pyright: ignore[reportPrivateUsage]
            self._journal.flush()  # pyright: ignore[reportPrivateUsage]
        if dies and where != "after":
            die()
        note(self, event, *args, **facts)
        if dies:
            die()

    def recorded(self: Records, record: Any, /) -> None:
        if record.kind == "chat" and due():
            die()
        put(self, record)

    if where == "put":
        Records.put = recorded  # type: ignore[method-assign]
    else:
        BatchJob.note = noted  # type: ignore[method-assign]
