"""Open models for whoever names none: a dated list beside this module, and what the machine has room for."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

MODELS = Path(__file__).with_name("open_models.json")

_GROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where Linux says what a container may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An open model that sees, and what it takes."""

    name: str
    """On the hub."""
    parameters: str
    license: str
    bytes: int
    """What is downloaded."""
    memory: int | None
    """Bytes of main memory from which on it is taken without an accelerator; None is never."""
    accelerator: int
    """Bytes of an accelerator's memory from which on it is taken there."""

    @property
    def size(self) -> str:
        return f"{self.bytes / 1e9:.1f} GB"

    def fits(self, machine: Machine) -> bool:
        if machine.accelerator is not None:
            return machine.accelerator >= self.accelerator
        return self.memory is not None and machine.memory >= self.memory

    def __str__(self) -> str:
        return f"{self.name} ({self.parameters} parameters, {self.size}, {self.license})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a model has room in, in bytes."""

    memory: int
    accelerator: int | None = None
    """Memory of the largest accelerator; None without one."""

    @classmethod
    def here(cls) -> Machine:
        """This machine; without torch no accelerator is found."""
        memory = _memory()
        return cls(memory=memory, accelerator=_accelerator(memory))

    def __str__(self) -> str:
        if self.accelerator is not None:
            return f"an accelerator with {self.accelerator / 1e9:.0f} GB"
        return f"{self.memory / 1e9:.0f} GB of memory and no accelerator"


@cache
def candidates() -> tuple[Candidate, ...]:
    """Those in the list, smallest first."""
    listed: list[dict[str, Any]] = json.loads(MODELS.read_text(encoding="utf-8"))["models"]
    return tuple(Candidate(**entry) for entry in listed)


def candidate_for(machine: Machine) -> Candidate:
    """The largest that `machine` has room for; the smallest where it has room for none."""
    return next((each for each in reversed(candidates()) if each.fits(machine)), candidates()[0])


def _memory() -> int:
    """Bytes of main memory that this process may have; 0 where the system does not say."""
    whole = 0
    with suppress(OSError, ValueError, AttributeError):
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in _GROUPS:
        with suppress(OSError, ValueError):
            whole = min(whole or 1 << 62, int(file.read_text(encoding="ascii")))
    return whole


def _accelerator(memory: int) -> int | None:
    try:
        torch: Any = import_module("torch")
    except ImportError:
        return None
    if torch.cuda.is_available():
        return max(int(torch.cuda.mem_get_info(place)[1]) for place in range(torch.cuda.device_count()))
    # What main memory and graphics share is not all for one model.
    return memory // 2 if torch.backends.mps.is_available() else None
