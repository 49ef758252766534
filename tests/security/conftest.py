from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def memory() -> Callable[[], int]:
    """Gives the most bytes that this process has held since the test began, above what it held then."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the system does not say how much memory was used")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = _kilobytes("VmRSS")
    return lambda: (_kilobytes("VmHWM") - before) * 1024


def _kilobytes(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
