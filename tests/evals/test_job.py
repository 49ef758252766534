"""A job: what is finished is not asked again, answers are kept in order, and what it counts is told however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

import pytest

from askance.errors import AuthError
from askance.evals.job import FirstFailure, Job

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


def test_only_a_failure_before_any_answer_ends_a_job() -> None:
    refused = {"objects": {"error": "AuthError", "reason": "No."}}
    assert not FirstFailure().accepts({"objects": {"error": "OverBudget"}}, answered=False)
    with pytest.raises(AuthError, match=r"^No\."):
        FirstFailure().accepts(refused, answered=False, calls=0)
    later = FirstFailure()
    assert later.accepts({}, answered=True, calls=1)
    assert later.accepts(refused, answered=False, calls=0)
