"""What is said of all requests that are made within a stretch of code: which draw they are, and who notes them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

current_draw: ContextVar[int] = ContextVar("draw", default=0)
"""Index of the draw that requests are made for, where they are not given one."""

current_notes: ContextVar[list[str] | None] = ContextVar("notes", default=None)
"""Takes the keys of requests."""


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


@contextmanager
def noting() -> Generator[list[str]]:
    """Gives the keys of all requests that are made within it, in the order in which they are made."""
    keys: list[str] = []
    token = current_notes.set(keys)
    try:
        yield keys
    finally:
        current_notes.reset(token)
