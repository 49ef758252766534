"""Processes that begin as copies of one that has everything loaded, and can be killed at any instant."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing import connection
from typing import Any

# They are copies of a process that runs no threads. Python keeps one such process, with one list of what it has loaded:
# what another file's processes need stands here too.
_fast = multiprocessing.get_context("forkserver")
_fast.set_forkserver_preload(
    [
        *("tests.batch_client", "tests.faults.run", "tests.models.spender"),
        *("askance.models.openai.openai_model", "askance.models.openai.batch_api", "diskcache"),
        *("openai.resources.batches", "openai.resources.chat", "openai.resources.files"),
        *("httpcore2", "truststore", "anyio._backends._asyncio"),
        *("jinja2.sandbox", "yaml", "PIL.PngImagePlugin", "PIL.JpegImagePlugin"),
    ]
)


def begin(target: Callable[..., None], *arguments: Any) -> multiprocessing.Process:
    """`target(*arguments)` as a process; both have to be importable, or data."""
    process = _fast.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process  # pyright: ignore[reportReturnType]  # of another context


def kill(process: multiprocessing.Process) -> None:
    """Kills a process; when this returns it is gone, and hears nothing any more."""
    process.kill()
    assert connection.wait([process.sentinel], 60)
