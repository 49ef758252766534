"""Every table of `docs/performance.md` in one run of some twenty minutes, under the machine that it was made on.

python benchmarks/tables.py

Leave the machine alone meanwhile: what else runs on it shows in the seconds.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCRIPTS = ("startup.py", "replay.py", "cold.py", "faults.py", "growth.py", "layers.py", "grid_plan.py")


def main() -> None:
    """Run one after the other, and stop where one fails."""
    print(f"{datetime.now(UTC):%Y-%m-%d}: {machine()}.")
    for script in SCRIPTS:
        print(f"\n## {script}\n", flush=True)
        # What a command says on the way stands on standard error, and is no table.
        if subprocess.run([sys.executable, str(HERE / script)], stderr=subprocess.DEVNULL, check=False).returncode:
            sys.exit(f"{script} failed; run it alone to see why.")


def machine() -> str:
    """The machine in words."""
    cores = os.cpu_count() or 1
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{cores} cores of {_processor()}, {_memory():.0f} GB, {platform.system()}, {python}"


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    lines = known.read_text(encoding="utf-8").splitlines() if known.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _memory() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


if __name__ == "__main__":
    main()
