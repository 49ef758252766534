"""The stream of pictures holds a bounded number of them: memory does not grow with how many there are."""

from __future__ import annotations

import asyncio
import io
import json
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image as Pillow

from askance.chains import Given, action_reason
from askance.models import Engine, get_model
from askance.replay import open_records
from tests.faults.run import answer
from tests.scripted import OPTIONS
from tests.servers import FakeEndpoint, Seen

ROOT = Path(__file__).resolve().parents[2]
FEW, MANY = 600, 1600
BYTES = 40_000
MOST = 300
"""Megabytes."""


def sources(folder: Path, count: int) -> Iterator[Given]:
    """Pictures of 40 kB, all different, in files."""
    small = io.BytesIO()
    Pillow.new("RGB", (64, 64)).save(small, "JPEG")
    for number in range(count):
        path = folder / f"{number:05}.jpg"
        path.write_bytes(small.getvalue() + random.Random(number).randbytes(BYTES))
        yield {"image": path, "options": OPTIONS}


async def read(folder: Path, url: str) -> dict[str, float]:
    """Megabytes resident after a few pictures and after many."""
    with open_records(folder / "store") as records:
        engine = Engine(records=records)
        model = get_model(f"openai:fake-model@{url}", identity="fake", engine=engine)
        place, after_few = 0, 0.0
        async for reading in action_reason(model).read_all(sources(folder, MANY)):
            assert reading.outcome == "answered"
            place += 1
            if place == FEW:
                after_few = resident()
        await model.aclose()
        await engine.aclose()
    return {"few": after_few, "many": resident(), "peak": peak()}


def resident() -> float:
    """Megabytes that the process holds now."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * resource.getpagesize() / 2**20


def peak() -> float:
    """The most megabytes that the process held.

    Not what `getrusage` says, which counts the process that began this one, up to the moment when it became itself.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


@pytest.mark.slow(group="servers")
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc to see what is resident")
def test_memory_does_not_grow_with_the_number_of_pictures(tmp_path: Path) -> None:
    def reply(seen: Seen) -> str:
        endpoint.requests.clear()  # the endpoint's own memory is not measured, and no reason to fill the machine's
        return answer(seen.json)

    with FakeEndpoint(reply) as endpoint:
        command = [sys.executable, "-m", "tests.faults.test_memory", str(tmp_path), endpoint.url]
        found = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    assert found["peak"] < MOST
    # Pictures that are kept though nobody holds them have reached their bound with the first two hundred.
    assert found["many"] - found["few"] < 0.02 * (MANY - FEW), "10,000 pictures add less than 200 MB"


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(read(Path(sys.argv[1]), sys.argv[2]))))
