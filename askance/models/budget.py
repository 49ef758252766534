"""The guard that holds the calls of a run to its budget.

Each try is reserved at its worst case before it starts, and settled when it has ended.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from math import ceil
from typing import TYPE_CHECKING, Any

from askance.errors import (
    AskanceError,
    AuthError,
    BadRequest,
    CallError,
    ModelNotFound,
    OverBudget,
    RateLimited,
    StoreError,
    Unreachable,
    UsageError,
)
from askance.models.loop import PerLoop
from askance.models.prices import price_of
from askance.models.token_estimate import worst_case
from askance.replay import NOTHING, Cost
from askance.replay.ledger import NANO

if TYPE_CHECKING:
    from askance.chat import ChatRequest, Usage
    from askance.models.settings import ModelSettings, Price
    from askance.replay import Balance, Ledger

_log = logging.getLogger("askance")

_REJECTED = (AuthError, BadRequest, ModelNotFound, RateLimited)
"""Errors of calls that the endpoint rejected, so that they cost nothing."""
_UNCONNECTED = {"ConnectError", "ConnectTimeout", "ConnectionRefusedError", "PoolTimeout", "gaierror"}
"""Names of errors that come before the first byte is sent."""
_WAIT = 0.5
"""Seconds after which a call that waits for budget asks the ledger again, since another process may have settled."""


class BudgetGuard:
    """Holds the calls of a run to its budget.

    It is used on the live loop. Reservations wait in line; a thread asks the ledger, so that the disk never blocks the
    loop.

    Args:
        ledger: what is spent and reserved; it knows the budget.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.used_up = False
        """Whether a call did not fit any more; a smaller one still might."""
        self._line = PerLoop(asyncio.Lock)
        self._settled = PerLoop(asyncio.Event)
        self._writer: tuple[int, ThreadPoolExecutor] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # All processes spend of one budget: a pickle holds where the ledger lies.
        return BudgetGuard, (self.ledger,)

    async def reserve(self, worst: Callable[[], Cost], *, what: str) -> tuple[int, Cost]:
        """Reserves the worst case of a call; where it may fit once calls under way have ended, waits for them.

        Args:
            worst: gives the worst case; it runs in a thread, since it may read a picture.
            what: the call, in words.

        Returns:
            The reservation and the worst case.

        Raises:
            OverBudget: it does not fit.
            StoreError: the ledger cannot be written.
        """
        settled = self._settled()
        async with self._line():
            while True:
                settled.clear()
                reserved = await self._reserved(worst, what)
                if reserved[0] is not None:
                    return reserved[0], reserved[1]
                with suppress(TimeoutError):
                    await asyncio.wait_for(settled.wait(), _WAIT)

    def settle_soon(self, reservation: int, actual: Cost) -> None:
        """Settles in a thread, in the order of the calls, without a wait; also from a task that is being cancelled."""
        loop, settled = asyncio.get_running_loop(), self._settled()
        self._thread().submit(self._settle, reservation, actual).add_done_callback(lambda _: _wake(loop, settled))

    async def balance(self) -> Balance:
        """Where the ledger stands when every call that has ended is settled; `ledger.balance` may be a moment behind.

        Raises:
            StoreError: the ledger cannot be read.
        """
        return await asyncio.wrap_future(self._thread().submit(self.ledger.balance))

    def close(self) -> None:
        """Waits until everything is settled, and closes the ledger."""
        writer, self._writer = self._writer, None
        if writer is not None and writer[0] == os.getpid():
            writer[1].shutdown()
        self.ledger.close()

    async def _reserved(self, worst: Callable[[], Cost], what: str) -> tuple[int | None, Cost]:
        def reserve() -> tuple[int | None, Cost]:
            cost = worst()
            try:
                return self.ledger.reserve(cost, what=what), cost
            except OverBudget:
                self.used_up = True
                raise

        future = self._thread().submit(reserve)
        try:
            return await asyncio.shield(asyncio.wrap_future(future))
        except asyncio.CancelledError:
            future.add_done_callback(self._give_back)
            raise

    def _give_back(self, future: Future[tuple[int | None, Cost]]) -> None:
        """Gives back a reservation whose caller was cancelled."""
        if not future.cancelled() and future.exception() is None:
            reservation, _ = future.result()
            if reservation is not None:
                self._settle(reservation, NOTHING)

    def _settle(self, reservation: int, actual: Cost) -> None:
        try:
            self.ledger.settle(reservation, actual)
        except StoreError as error:
            _log.warning("%s The call counts at its worst case.", error.message)

    def _thread(self) -> ThreadPoolExecutor:
        if self._writer is None or self._writer[0] != os.getpid():
            self._writer = (os.getpid(), ThreadPoolExecutor(1, thread_name_prefix="askance-budget"))
        return self._writer[1]


def cost_of(usage: Usage, price: Price | None, *, share: float = 1.0) -> Cost | None:
    """The most that one call with `usage` can cost; without a price it counts no dollars.

    `share` is the part of the price that is charged, as in a batch. None where the endpoint did not count, or the
    price does not hold for so much.
    """
    if usage.input is None or usage.output is None:
        return None
    dollars = 0.0 if price is None else price.most(usage)
    if dollars is None:
        return None
    return Cost(nanodollars=ceil(round(dollars * share * NANO, 3)), tokens=usage.input + usage.output, calls=1)


def worst_of(request: ChatRequest, price: Price | None, *, share: float = 1.0) -> Cost:
    """The most that `request` can cost; `share` is the part of the price that is charged.

    Raises:
        OverBudget: that is not known.
        BadImage: a picture that cannot be used.
    """
    usage = worst_case(request)
    worst = cost_of(usage, price, share=share)
    if worst is None:
        raise OverBudget(
            f"What a call of {request.model} with up to {usage.input:,} tokens of input costs is not known, so the "
            "budget cannot hold it.",
            hint="Set a `price` for the model in askance.toml, or give a budget in tokens or calls.",
        )
    return worst


def check_price(settings: ModelSettings, dollars: float | None) -> None:
    """Refuses a budget of `dollars` for a model whose price is not known.

    Raises:
        UsageError: it is not.
    """
    if dollars is not None and price_of(settings) is None:
        raise UsageError(
            f"What {str(settings.id)!r} costs is not known, so a budget in dollars cannot hold it.",
            hint="Set its `price` in askance.toml (US dollars for a million tokens, 0 where it is free), or give a "
            "budget in tokens or calls.",
        )


def may_be_billed(error: BaseException, *, under_way: bool = True) -> bool:
    """Whether a try that `error` ended may cost something: yes, unless it was never sent or was rejected.

    Args:
        error: what ended the try.
        under_way: whether a cancelled try had been sent.
    """
    if isinstance(error, asyncio.CancelledError):
        return under_way
    if isinstance(error, Unreachable):
        return not _never_connected(error)
    if isinstance(error, AskanceError):
        return isinstance(error, CallError) and not isinstance(error, _REJECTED)
    return True


def _never_connected(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        if type(cause).__name__ in _UNCONNECTED:
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _wake(loop: asyncio.AbstractEventLoop, settled: asyncio.Event) -> None:
    with suppress(RuntimeError):  # the loop has ended, and nobody waits
        loop.call_soon_threadsafe(settled.set)
