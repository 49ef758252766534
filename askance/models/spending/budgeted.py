"""The budget around calls: each try is reserved at its worst case before it starts and settled when it has ended.

It stands inside retry, because a try that hung or came back broken may be billed: it counts at its worst case. It
stands outside the limits, because a call that waits for its turn must not find the money gone when the turn comes.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

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
from askance.models.spending.budget import NOTHING, Amount
from askance.models.spending.prices import price_of
from askance.models.spending.tokens import worst_case

if TYPE_CHECKING:
    from askance.chat import ChatRequest
    from askance.models.settings import ModelSettings, Price
    from askance.models.spending.ledger import Ledger

_log = logging.getLogger("askance")

_REJECTED = (AuthError, BadRequest, ModelNotFound, RateLimited)
"""Errors by which an endpoint says that it has done nothing."""
_UNCONNECTED = {"ConnectError", "ConnectTimeout", "ConnectionRefusedError", "PoolTimeout", "gaierror"}
"""Names of errors before the first byte was sent."""
_WAIT = 0.5
"""Seconds until a call that waits for money looks again, whoever may have settled; one of its own process wakes it."""


class Purse:
    """One run's ledger, for the live loop: reservations wait in line, and no disk holds the loop up."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.used_up = False
        """Whether a call did not fit any more; a smaller one still might."""
        self._line = PerLoop(asyncio.Lock)
        self._settled = PerLoop(asyncio.Event)
        self._writer: tuple[int, ThreadPoolExecutor] | None = None

    async def reserve(self, worst: Callable[[], Amount], *, what: str) -> tuple[int, Amount]:
        """Sets the worst case of a call aside, after waiting for calls under way where only they stand in its way.

        Args:
            worst: works it out, in a thread, since a picture may have to be looked at.
            what: the call, in words.

        Returns:
            The reservation and the amount.

        Raises:
            OverBudget: it does not fit.
            StoreError: the ledger cannot be written.
        """
        settled = self._settled()
        async with self._line():
            while True:
                settled.clear()
                found = await self._reserved(worst, what)
                if found[0] is not None:
                    return found[0], found[1]
                with suppress(TimeoutError):
                    await asyncio.wait_for(settled.wait(), _WAIT)

    def settle_soon(self, reservation: int, actual: Amount) -> None:
        """Settles without being waited for, in the order of the calls; also from a task that is being cancelled."""
        loop, settled = asyncio.get_running_loop(), self._settled()
        self._thread().submit(self._settle, reservation, actual).add_done_callback(lambda _: _wake(loop, settled))

    def close(self) -> None:
        """Waits until everything is settled and lets go of the file."""
        writer, self._writer = self._writer, None
        if writer is not None and writer[0] == os.getpid():
            writer[1].shutdown()
        self.ledger.close()

    async def _reserved(self, worst: Callable[[], Amount], what: str) -> tuple[int | None, Amount]:
        def reserve() -> tuple[int | None, Amount]:
            amount = worst()
            try:
                return self.ledger.reserve(amount, what=what), amount
            except OverBudget:
                self.used_up = True
                raise

        future = self._thread().submit(reserve)
        try:
            return await asyncio.shield(asyncio.wrap_future(future))
        except asyncio.CancelledError:
            future.add_done_callback(self._give_back)
            raise

    def _give_back(self, future: Future[tuple[int | None, Amount]]) -> None:
        """Settles a reservation that nobody waits for any more."""
        if not future.cancelled() and future.exception() is None:
            reservation, _ = future.result()
            if reservation is not None:
                self._settle(reservation, NOTHING)

    def _settle(self, reservation: int, actual: Amount) -> None:
        try:
            self.ledger.settle(reservation, actual)
        except StoreError as error:
            _log.warning("%s The call counts at its worst case.", error.message)

    def _thread(self) -> ThreadPoolExecutor:
        if self._writer is None or self._writer[0] != os.getpid():
            self._writer = (os.getpid(), ThreadPoolExecutor(1, thread_name_prefix="askance-budget"))
        return self._writer[1]


def worst_of(request: ChatRequest, price: Price | None, *, share: float = 1.0) -> Amount:
    """The most that `request` can cost; `share` is the part of the price that is asked.

    Raises:
        OverBudget: that is not known.
        BadImage: a picture that cannot be used.
    """
    usage = worst_case(request)
    worst = Amount.of(usage, price, share=share)
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
    """Whether a try that ended so may cost something: yes, unless it was never sent or the endpoint rejected it.

    Args:
        error: what ended it.
        under_way: whether it had been sent, where it was cancelled.
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
