"""Becomes vLLM's server: `python launch.py WORD…`, run by the interpreter that vLLM is installed for.

Its command `vllm` is not there in every build, and its modules have moved: what is there is found without loading it.
It is run as a file, so it imports nothing of askance.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

ABSENT = 77
"""Exit code where vLLM is not installed."""

WAYS = (
    ("entrypoints/openai/api_server.py", ("-m", "vllm.entrypoints.openai.api_server")),
    ("entrypoints/cli/main.py", ("-m", "vllm.entrypoints.cli.main", "serve")),
)
"""File of vLLM's package, and how it is run where it is there."""


def main(words: list[str]) -> int:
    """Does not come back where vLLM is there."""
    package = importlib.util.find_spec("vllm")
    folder = Path(package.origin).parent if package is not None and package.origin else None
    for file, way in WAYS:
        if folder is not None and (folder / file).is_file():
            os.execv(sys.executable, [sys.executable, *way, *words])
    return ABSENT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
