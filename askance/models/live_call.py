"""One call under way: what its tries, its deadline and its place at the endpoint have in common."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from askance.chat import ChatRequest, Try


class LiveCall:
    """One call under way: its deadline, its tries so far, its place at the endpoint.

    Args:
        request: what is asked.
        deadline: seconds from the first try within which the call must have ended; None is no deadline.
    """

    def __init__(self, request: ChatRequest, deadline: float | None = None) -> None:
        self.request = request
        self.deadline = deadline
        self.tries: list[Try] = []
        """Tries that have ended."""
        self.uncounted = 0
        """How many of `tries` failed because the endpoint answers nobody; they do not count against the call."""
        self.under_way = False
        """Whether a try is on its way to the endpoint."""
        self._leave: Callable[[], None] | None = None
        self._began: float | None = None

    def begin(self) -> None:
        """Notes that a try begins. The deadline runs from the first try, not from the wait before it."""
        self.under_way = True
        if self._began is None:
            self._began = time.monotonic()

    def end(self, note: Try) -> None:
        """Notes how a try ended."""
        self.under_way = False
        self.tries.append(note)

    def time_left(self) -> float | None:
        """Seconds up to the deadline; None where there is none."""
        if self.deadline is None or self._began is None:
            return self.deadline
        return self.deadline - (time.monotonic() - self._began)

    def is_late(self, wait: float = 0.0) -> bool:
        """Whether the deadline will have passed in `wait` seconds."""
        left = self.time_left()
        return left is not None and left <= wait

    def keep_place(self, leave: Callable[[], None]) -> None:
        """Keeps the call's place at its endpoint until `free_place`, which calls `leave`."""
        self._leave = leave

    def free_place(self) -> None:
        """Frees the place of an answered call, if it has one."""
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()
