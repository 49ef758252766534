"""What a call costs, whatever else its process does."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def cpu_seconds(call: Callable[[], object]) -> float:
    """The CPU time of `call`: neither other threads nor the garbage of other tests count."""
    gc.disable()
    try:
        began = time.thread_time()
        call()
        return time.thread_time() - began
    finally:
        gc.enable()
