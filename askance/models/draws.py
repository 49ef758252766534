"""Draws: asking the very same again, and keeping each answer."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

current_draw: ContextVar[int] = ContextVar("draw", default=0)
"""Index of the draw that requests are made for, where they are not given one."""


@contextmanager
def drawing(index: int) -> Generator[None]:
    """Within it every request is of the draw `index`: its answer is another one's record, even of equal requests.

    ```python
    with drawing(2):
        chain("ad.png")
    ```
    """
    token = current_draw.set(index)
    try:
        yield
    finally:
        current_draw.reset(token)
