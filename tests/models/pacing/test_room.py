from __future__ import annotations

import asyncio

from askance.models.pacing.room import DEFAULT_CONCURRENCY, MOST, Room


async def _rounds(room: Room, rounds: int, *, seconds: float) -> None:
    """So many rounds of answers while others wait for a place."""

    async def call() -> None:
        await room.enter()
        await asyncio.sleep(0)
        room.leave()

    for _ in range(rounds):
        crowd = [asyncio.ensure_future(call()) for _ in range(room.places + 1)]
        await asyncio.sleep(0)
        for _ in range(room.places):
            room.answered(seconds)
        await asyncio.gather(*crowd)


async def test_the_room_grows_while_latency_holds() -> None:
    room = Room()
    sizes = [room.places]
    for _ in range(9):
        await _rounds(room, 1, seconds=1.0)
        sizes.append(room.places)
    assert sizes == [16, 25, 38, 58, 88, 133, 200, MOST, MOST, MOST]


async def test_it_stays_where_answers_take_a_little_longer_and_gives_way_where_much() -> None:
    room = Room()
    await _rounds(room, 3, seconds=1.0)
    grown = room.places
    await _rounds(room, 1, seconds=2.0)
    assert room.places == grown
    await _rounds(room, 30, seconds=4.0)
    assert room.places < grown


async def test_it_does_not_grow_while_nobody_waits() -> None:
    room = Room()
    for _ in range(200):
        room.answered(1.0)
    assert room.places == DEFAULT_CONCURRENCY


def test_a_burst_of_faults_counts_once_and_a_single_one_not_at_all() -> None:
    room = Room()
    room.overloaded(1.0, 0.0)
    assert room.places == 16
    for _ in range(10):
        room.overloaded(1.0, 0.0)
    assert room.places == 8
    for now in range(2, 20):
        room.overloaded(now, now - 0.5)
    assert room.places == 1


def test_a_fixed_room_stays() -> None:
    room = Room(5)
    for now in range(20):
        room.answered(1.0)
        room.overloaded(now, now)
    assert room.places == 5


async def test_a_caller_that_gives_up_leaves_its_place_to_the_next() -> None:
    room = Room(1)
    await room.enter()

    async def enter() -> str:
        await room.enter()
        room.leave()
        return "in"

    first, second = asyncio.ensure_future(enter()), asyncio.ensure_future(enter())
    await asyncio.sleep(0)
    room.leave()
    first.cancel()  # it has just been given the place
    assert (await asyncio.wait_for(second, 1), room.taken) == ("in", 0)
