"""A job: what is finished is not asked again, answers are kept in order, and what it counts is told however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from askance.chains import Planner
from askance.errors import AuthError
from askance.evals.job import CountItem, FirstFailure, Job, plan_of
from askance.images import Image
from askance.nodes import Result
from askance.tools.vision import Narrator
from tests.scripted import PICTURE, model_of, scripted

FINISHED = {"2": "two"}


async def double(number: int) -> int | None:
    await asyncio.sleep(0.01 / number)  # later ones are ready first
    return None if number == 3 else 2 * number


def job_of(kept: list[int]) -> Job[int, int, str]:
    def keep(_: int, answer: int) -> str:
        kept.append(answer)
        return str(answer)

    return Job(items=[1, 2, 3, 4], answer=double, finished=FINISHED, keep=keep)


async def test_answers_are_kept_in_order_and_what_is_finished_is_not_asked() -> None:
    kept, seen = list[int](), list[tuple[int, int]]()
    job = job_of(kept)
    job.on_progress = lambda done, total: seen.append((done, total))
    assert (job.todo, job.done) == ([1, 3, 4], 1)
    assert await job.run() == ["2", "8"]
    assert (kept, seen, job.left) == ([2, 8], [(2, 4), (3, 4)], [3])


async def test_what_is_finished_stands_in_its_place() -> None:
    async with job_of([]).answered(again=True) as lines:
        assert [line async for line in lines] == [(1, "2"), (2, "two"), (4, "8")]


async def test_a_stream_that_ends_early_leaves_the_others_and_does_what_it_does_at_its_end() -> None:
    ended = list[bool]()

    async def stream(items: Sequence[int]) -> AsyncGenerator[int, None]:
        for item in items[:2]:
            yield item
        ended.append(True)

    job: Job[int, int, int] = Job(items=[1, 2, 3], stream=stream)
    assert (await job.run(), job.left, ended) == ([1, 2], [3], [True])
    whole: Job[int, int, int] = Job(items=[1, 2], stream=stream)
    assert (await whole.run(), whole.left, ended) == ([1, 2], [], [True, True])


async def test_what_was_counted_is_told_after_an_error_too() -> None:
    told = list[object]()

    async def fail(number: int) -> int:
        raise ValueError(number)

    job: Job[int, int, int] = Job(items=[1], answer=fail, counted=told.append)
    with pytest.raises(ValueError, match="1"):
        await job.run()
    assert told == [{}]


async def test_the_plan_of_jobs_counts_what_is_left_of_each_when_it_is_taken() -> None:
    counted = list[int]()

    @contextmanager
    def counting(_: Planner) -> Generator[CountItem[int]]:
        async def count(item: int) -> None:
            counted.append(item)

        yield count

    def jobs() -> Iterator[Job[int, int, str]]:
        first = job_of([])
        first.counts, first.unit = counting, "pair"
        yield first
        yield replace(first, items=[*counted, 7], finished={}, units=9)

    plan = await plan_of(jobs())

    assert (counted, plan.unit, plan.images, plan.calls) == ([1, 3, 4, 1, 3, 4, 7], "pair", 9, 0)


async def test_the_nodes_of_a_planned_job_count_and_ask_nobody() -> None:
    script = scripted()
    node = Narrator(model_of(script))

    async def narrate(number: int) -> Result[Any]:
        return await node.ask(Image.from_path(PICTURE))

    job: Job[int, Result[Any], Result[Any]] = Job(items=[1, 2], answer=narrate, roles=[("seen", node)], unit="look")
    plan = await job.plan()
    answers = await job.run()

    assert [(line.link, line.known, line.hits) for line in plan.links] == [("seen", 1, 0)]
    assert (plan.images, plan.unit, len(script.requests)) == (2, "look", 1)
    assert [each.outcome for each in answers] == ["answered"] * 2


def test_only_a_failure_before_any_answer_ends_a_job() -> None:
    refused = {"objects": {"error": "AuthError", "reason": "No."}}
    assert not FirstFailure().accepts({"objects": {"error": "OverBudget"}}, answered=False)
    with pytest.raises(AuthError, match=r"^No\."):
        FirstFailure().accepts(refused, answered=False, calls=0)
    later = FirstFailure()
    assert later.accepts({}, answered=True, calls=1)
    assert later.accepts(refused, answered=False, calls=0)
