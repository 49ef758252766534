"""One run of the seven-call chain over pictures of its own, also as a process that can be killed."""

from __future__ import annotations

import asyncio
import io
import json
import multiprocessing
import resource
from collections import Counter
from collections.abc import Generator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from PIL import Image as Pillow

from askance.chains import action_reason
from askance.chat import OUTCOMES
from askance.images import Image
from askance.models import Engine, RetryPolicy, get_model
from askance.replay import Address, Mode, open_records
from tests.batch_client import answer
from tests.processes import begin
from tests.scripted import OPTIONS
from tests.servers import FakeEndpoint, JsonObject

CALLS = 7
"""Calls that the chain makes for a picture."""
QUICK = RetryPolicy(first_wait=0.02)


@dataclass(frozen=True, kw_only=True)
class Run:
    """Settings of a run.

    Args:
        url: of the endpoint.
        store: address of the records.
        pictures: how many.
    """

    url: str
    store: Address
    pictures: int = 4
    mode: Mode = "auto"
    timeout: float = 20.0
    concurrency: int | None = None
    rpm: float | None = None
    policy: RetryPolicy = QUICK

    async def lines(self) -> list[JsonObject]:
        """The line of each picture."""
        with open_records(self.store, read_only=self.mode == "replay") as records:
            engine = Engine(
                records=records,
                mode=self.mode,
                timeout=self.timeout,
                concurrency=self.concurrency,
                rpm=self.rpm,
                policy=self.policy,
            )
            model = get_model(f"openai:fake-model@{self.url}", identity="fake", engine=engine)
            chain = action_reason(model)
            sources = ({"image": picture(number), "options": OPTIONS} for number in range(self.pictures))
            try:
                return [reading.to_dict() async for reading in chain.read_all(sources)]
            finally:
                await model.aclose()
                await engine.aclose()


def picture(number: int) -> Image:
    """A small picture like no other."""
    out = io.BytesIO()
    Pillow.new("RGB", (16, 16), (number % 256, number // 256, 90)).save(out, "PNG")
    return Image.from_bytes(out.getvalue(), name=f"{number:05}.png")


def digest(body: JsonObject) -> str:
    """What tells one question from another."""
    return sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def stable(lines: Sequence[JsonObject]) -> list[JsonObject]:
    """The lines without what changes from run to run."""
    return [{name: value for name, value in line.items() if name != "meta"} for line in lines]


def outcomes(lines: Sequence[JsonObject]) -> list[str]:
    return [line["outcome"] for line in lines]


def invented(store: Address, endpoint: FakeEndpoint) -> set[str]:
    """Texts on record that the endpoint never said."""
    said = {answer(body) for body in endpoint.bodies}
    with open_records(store, read_only=True) as records:
        kept = {record.response["text"] for record in records.of_kind("chat")}
    return kept - said


def asked_twice(endpoint: FakeEndpoint) -> int:
    """Calls beyond the first of each question."""
    return sum(count - 1 for count in Counter(map(digest, endpoint.bodies)).values())


async def ended_well(
    run: Run,
    endpoint: FakeEndpoint,
    lines: Sequence[JsonObject],
    *,
    twice: int,
    outcome: str | None = "answered",
    also: Set[str] = frozenset(),
    kept: bool = True,
) -> None:
    """Checks what holds of a run after every fault.

    Every picture has an outcome, no answer is made up, nothing that was answered is lost, and no more was paid for
    twice than was under way when the fault came.

    Args:
        run: as it was asked for.
        endpoint: what it asked.
        lines: what came out of it.
        twice: calls that may have been paid for twice, at most.
        outcome: of each picture; None is one of several, which the caller checks.
        also: texts that the endpoint said besides the usual ones.
        kept: whether there was room for all answers on the disk.
    """
    assert [line["image"] for line in lines] == [picture(number).name for number in range(run.pictures)]
    assert set(outcomes(lines)) <= ({*OUTCOMES} if outcome is None else {outcome})
    assert {link["outcome"] for line in lines for link in line["links"].values()} <= {*OUTCOMES}
    assert invented(run.store, endpoint) <= also
    assert asked_twice(endpoint) <= twice
    asked = len(endpoint.requests)
    if kept:
        again = await replace(run, mode="replay").lines()
        assert [found(line) for line in again] == [found(line) for line in lines]
    assert len(endpoint.requests) == asked


def found(line: JsonObject) -> JsonObject:
    """What a line holds of answers: all that a replay must find again."""
    if line["outcome"] == "answered":
        return {**line, "meta": None}
    answered = {name: link for name, link in line["links"].items() if link["calls"]}
    return {
        "links": answered,
        **{name: line[name] for name in ("image", "sha256", "verbalization", "statement", "answers")},
    }


@contextmanager
def room(size: int) -> Generator[None]:
    """No file may grow beyond so many bytes, as on a disk that is full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def alone(run: Run, out: Path) -> multiprocessing.Process:
    """The run as a process that leaves its lines in the file `out`."""
    return begin(_main, run, out)


def _main(run: Run, out: Path) -> None:
    out.write_text("".join(json.dumps(line) + "\n" for line in asyncio.run(run.lines())), encoding="utf-8")
