"""The live loop: one event loop in a thread of its own, on which all clients live and equal calls are made once.

A client's connections belong to the loop that opened them, while callers come from scripts, threads, notebooks and
loops that last one call. So live calls run on one loop that lasts as long as the process; `live` runs a call there and
returns its result. Recorded answers do not use it.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Future
from contextvars import copy_context
from copy import copy
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakSet

from askance.errors import CallError, UsageError

T = TypeVar("T")

_GOODBYE = 2.0
"""Seconds in which open clients close at the end of the process."""


class Closable(Protocol):
    """What has to be closed, such as a client with connections on the live loop."""

    async def aclose(self) -> None: ...


class _LiveLoop:
    """A loop that runs in a daemon thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.open: WeakSet[Closable] = WeakSet()
        self.thread = threading.Thread(target=self.loop.run_forever, name="askance-live", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        goodbye = asyncio.run_coroutine_threadsafe(self._goodbye(), self.loop)
        with contextlib.suppress(Exception):
            goodbye.result(_GOODBYE)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(_GOODBYE)
        if not self.thread.is_alive():
            self.loop.close()

    async def _goodbye(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, *(each.aclose() for each in list(self.open)), return_exceptions=True)


_live: _LiveLoop | None = None
_starting = threading.Lock()


def _current() -> _LiveLoop:
    global _live  # noqa: PLW0603  # one loop a process is the point
    if _live is None:
        with _starting:
            if _live is None:
                _live = _LiveLoop()
    return _live


def _stop() -> None:
    global _live  # noqa: PLW0603
    if _live is not None:
        _live.stop()
        _live = None


def _forget() -> None:
    """In a forked child the thread is gone: the next call starts a new loop."""
    global _live, _starting
    _live, _starting = None, threading.Lock()


atexit.register(_stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def close_at_exit(client: Closable) -> None:
    """Closes `client` at the end of the process, if it still exists."""
    _current().open.add(client)


async def live(make: Callable[[], Awaitable[T]]) -> T:
    """The result of `await make()` on the live loop; errors keep their type, and cancelling reaches it."""
    loop = _current().loop
    if asyncio.get_running_loop() is loop:
        return await make()

    async def call() -> T:
        return await make()

    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), loop))


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of `coroutine`, from a script, any thread, or a notebook whose loop already runs.

    Ctrl-C cancels it, and is raised when it has ended.

    Raises:
        UsageError: called on the live loop, which would wait for itself.
    """
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        with asyncio.Runner() as runner, _woken_by_signals(runner.get_loop()):
            return runner.run(coroutine)
    if _live is not None and running is _live.loop:
        coroutine.close()
        raise UsageError(
            "A synchronous call was made on the loop that runs live calls.",
            hint="Await the asynchronous form (`ask`, `ainvoke`) there.",
        )
    return _run_beside(coroutine)


@contextlib.contextmanager
def _woken_by_signals(loop: asyncio.AbstractEventLoop) -> Generator[None]:
    """Has a signal wake `loop`, if this is the thread that handles signals.

    By itself a loop sleeps on where the signal reached another thread, or came just before the loop fell asleep.
    """
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield  # Windows' own loop does so by itself
        return
    wakes, rings = socket.socketpair()
    with wakes, rings:
        wakes.settimeout(0)
        rings.settimeout(0)
        loop.add_reader(wakes, wakes.recv, 4096)
        before = signal.set_wakeup_fd(rings.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(wakes)


def _run_beside(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs `coroutine` in a thread with a loop of its own: the loop of this thread is busy with the caller."""
    done: Future[T] = Future()
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = Future()

    async def main() -> T:
        started.set_result((asyncio.get_running_loop(), asyncio.current_task()))
        return await coroutine

    def work() -> None:
        try:
            done.set_result(asyncio.run(main()))
        except BaseException as error:  # noqa: BLE001  # whatever ends the coroutine ends the caller
            done.set_exception(error)

    thread = threading.Thread(target=copy_context().run, args=(work,), name="askance-sync", daemon=True)
    thread.start()
    try:
        return done.result()
    except KeyboardInterrupt:
        loop, task = started.result()
        if task is not None and not done.done():
            loop.call_soon_threadsafe(task.cancel)
        raise
    finally:
        thread.join()


class PerLoop(Generic[T]):
    """A value that belongs to the running loop; it is made anew on another loop, as after a fork."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: tuple[asyncio.AbstractEventLoop, T] | None = None

    def __call__(self) -> T:
        loop = asyncio.get_running_loop()
        if self._made is None or self._made[0] is not loop:
            self._made = (loop, self._make())
        return self._made[1]


@dataclass
class _Flight:
    task: asyncio.Task[Any]
    waiting: int = 0


class SingleFlight:
    """Makes equal calls that are under way at the same time once, on the live loop.

    A call goes on while any caller waits for it, and is cancelled with the last one.
    """

    def __init__(self) -> None:
        self._flights: PerLoop[dict[str, _Flight]] = PerLoop(dict)

    async def share(self, key: str, make: Callable[[], Coroutine[Any, Any, T]]) -> tuple[T, bool]:
        """The result of `make()`, or of the call with this key that is under way; and whether it was that one's.

        Raises:
            CallError: the call failed. Only the caller that began it is given its tries, so that each counts once.
        """
        flights = self._flights()
        flight = flights.get(key)
        joined = flight is not None
        if flight is None:
            flight = flights[key] = _Flight(asyncio.ensure_future(make()))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task), joined
        except CallError as error:
            if not joined:
                raise
            own = copy(error)
            own.tries = ()
            raise own from error
        finally:
            flight.waiting -= 1
            if flights.get(key) is flight and (flight.task.done() or not flight.waiting):
                del flights[key]
            if not flight.waiting:
                flight.task.cancel()
