"""Batches that fit: one that does not is halved, and so are those after it."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from askance.errors import OutOfMemory

Item = TypeVar("Item")
Made = TypeVar("Made")

_log = logging.getLogger("askance")


class Batches:
    """Runs items in batches; used by one thread.

    Args:
        torch: whose memory it is.
        spec: what to call the model in messages.
        most: items at a time; goes down where memory does not suffice.
    """

    def __init__(self, torch: Any, *, spec: str, most: int) -> None:
        self.most = most
        self._torch = torch
        self._spec = spec

    def run(self, items: Sequence[Item], make: Callable[[Sequence[Item]], Sequence[Made]], *, what: str) -> list[Made]:
        """What `make` gives for `items`, in their order.

        Raises:
            OutOfMemory: one item alone does not fit into memory.
        """
        made: list[Made] = []
        while len(made) < len(items):
            some = items[len(made) : len(made) + self.most]
            try:
                made += make(some)
            except (RuntimeError, MemoryError) as error:
                if not self._is_no_room(error):
                    raise
                self._smaller(len(some), error, what)
        return made

    def _is_no_room(self, error: Exception) -> bool:
        said = str(error)
        return (
            isinstance(error, (self._torch.OutOfMemoryError, MemoryError))
            or "DefaultCPUAllocator" in said
            or "out of memory" in said.lower()
        )

    def _smaller(self, size: int, error: Exception, what: str) -> None:
        gc.collect()
        if self._torch.cuda.is_available():
            self._torch.cuda.empty_cache()
        if size == 1:
            said = " ".join(next(iter(str(error).splitlines()), "").split())[:300]
            raise OutOfMemory(
                f"The model {self._spec!r} has not the memory for one of {what}: {said}",
                hint="See what else holds memory there, or give another `device` or `dtype`.",
            ) from error
        self.most = size // 2
        _log.warning(
            "%s: %d of %s did not fit into memory; at most %d are encoded at a time from now on.",
            self._spec,
            size,
            what,
            self.most,
        )
