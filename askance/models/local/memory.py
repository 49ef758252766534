"""Memory that did not suffice: whether an error says so, what was needed, and what there was."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from importlib import import_module
from typing import Any

_WANTED = re.compile(r"tried to allocate ([\d.]+)\s*(bytes|[kmgt]i?b)", re.IGNORECASE)
_UNITS = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_MARKS = ("defaultcpuallocator", "out of memory", "cannot allocate memory")


def is_no_room(error: BaseException) -> bool:
    """Whether `error` says that there was no memory left."""
    return isinstance(error, MemoryError) or any(mark in str(error).lower() for mark in _MARKS)


def shortage(error: BaseException, device: Any = "cpu") -> str:
    """What was needed and what there is, in words."""
    found = _WANTED.search(str(error))
    free = _free(device)
    there = "" if free is None else f", and {_shown(free)} are free on {str(device)!r}"
    if found is None:
        return f"there is no memory left{there}"
    return f"{_shown(int(float(found[1]) * _UNITS[found[2][0].lower()]))} more were needed{there}"


def _free(device: Any) -> int | None:
    """Bytes that are free; None where the system does not say."""
    with suppress(ImportError, OSError, ValueError, AttributeError, RuntimeError, AssertionError):
        if str(device).startswith("cuda"):
            torch: Any = import_module("torch")
            return int(torch.cuda.mem_get_info(device)[0])
        if str(device) == "cpu":
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    return None


def _shown(count: int) -> str:
    for unit, size in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count:,} bytes"
