"""In a process that replays no tracer opens a connection, whatever the environment asks for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import socket
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
Engine(mode="replay", records=records)
# The records are made by an engine that asks a script, which opens no connection either once tracing is off.
for mode in "auto", "replay":
    vlm = model_of(scripted(), records, mode=mode)
    verbalize(vlm).invoke(PICTURE)
    (RunnableParallel(objects=objects(vlm), narration=narration(vlm)) | combine(vlm)).invoke(PICTURE)
    caption(vlm).as_tool(Image.load(PICTURE)).invoke({})
from langchain_core.tracers.langchain import wait_for_all_tracers
wait_for_all_tracers()
print(len(asked))
"""


def test_a_replay_opens_no_connection() -> None:
    here = Path(__file__).resolve().parents[2]
    tracing = {"LANGSMITH_TRACING": "true", "LANGSMITH_API_KEY": "k", "LANGSMITH_ENDPOINT": "http://127.0.0.1:9"}
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={"PYTHONPATH": str(here), "PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **tracing},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    assert found.stdout == "0\n"
    assert "the tracing that LANGSMITH_TRACING asks for is off in this process" in found.stderr
