"""In a process that replays no tracer opens a connection, whatever the environment asks for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import os, socket, sys, time
asked = []
real = socket.socket.connect
socket.socket.connect = lambda self, address: (asked.append(address), real(self, address))[1]
from langchain_core.runnables import RunnableParallel
from askance.agents import combine
from askance.chains import verbalize
from askance.tools import caption, narration, objects
from tests.scripted import PICTURE, model_of, scripted
from askance.images import Image
from askance.models import Engine
from askance.replay import MemoryStore

records = MemoryStore()
Engine(mode=sys.argv[1], records=records)
for mode in sys.argv[2:]:
    vlm = model_of(scripted(), records, mode=mode)
    verbalize(vlm).invoke(PICTURE)
    (RunnableParallel(objects=objects(vlm), narration=narration(vlm)) | combine(vlm)).invoke(PICTURE)
    caption(vlm).as_tool(Image.load(PICTURE)).invoke({})
from langchain_core.tracers.langchain import wait_for_all_tracers
if "replay" in sys.argv:
    wait_for_all_tracers()
while not asked and "replay" not in sys.argv:
    time.sleep(0.01)
print(len(asked), flush=True)
os._exit(0)  # a tracer that finds nobody tries again for seconds
"""


def connections(first: str, *modes: str) -> tuple[int, str]:
    """How many connections a traced process opens whose first engine has the mode `first`, and its stderr."""
    here = Path(__file__).resolve().parents[2]
    tracing = {"LANGSMITH_TRACING": "true", "LANGSMITH_API_KEY": "k", "LANGSMITH_ENDPOINT": "http://127.0.0.1:9"}
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT, first, *modes],
        env={"PYTHONPATH": str(here), "PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **tracing},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return int(found.stdout), found.stderr


def test_a_replay_opens_no_connection() -> None:
    # The records are made by an engine that asks a script, which opens none either once tracing is off.
    opened, said = connections("replay", "auto", "replay")

    assert opened == 0
    assert "the tracing that LANGSMITH_TRACING asks for is off in this process" in said


def test_elsewhere_tracing_goes_on_and_is_announced() -> None:
    opened, said = connections("auto", "auto")

    assert opened > 0
    assert "prompts and answers leave this machine, pictures as digests only" in said
