"""The chain over the pictures of a folder against an endpoint, as a process; prints how it ended as a line of JSON.

python client.py FOLDER URL [--concurrency N] [--timeout SECONDS] [--images N] [--records NAME] [--replay]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import time
from collections import Counter
from pathlib import Path

from askance.chains import action_reason
from askance.models import Engine, get_model
from askance.replay import open_records


async def main(given: argparse.Namespace) -> None:
    """Reads pictures of FOLDER/images once."""
    options = (given.folder / "options.txt").read_text(encoding="utf-8").splitlines()
    paths = sorted((given.folder / "images").iterdir())[: given.images]
    with open_records(given.folder / given.records, read_only=given.replay) as records:
        engine = Engine(
            records=records,
            mode="replay" if given.replay else "auto",
            concurrency=given.concurrency,
            timeout=given.timeout,
        )
        model = get_model(f"openai:bench@{given.url}", identity="bench", engine=engine)
        await model.output_mode()
        chain = action_reason(model)
        start, cpu, outcomes = time.monotonic(), time.process_time(), Counter[str]()
        async for reading in chain.read_all({"image": path, "options": options} for path in paths):
            outcomes[reading.outcome] += 1
        seconds, cpu = time.monotonic() - start, time.process_time() - cpu
        await model.aclose()
        await engine.aclose()
    print(json.dumps({"seconds": seconds, "cpu": cpu, "megabytes": peak(), **outcomes}))


def peak() -> float:
    """Largest resident memory of this process, in 10⁶ bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("url")
    parser.add_argument("--concurrency", type=int)
    parser.add_argument("--timeout", type=float, default=120.0)
    parser.add_argument("--images", type=int, help="how many pictures; by default all")
    parser.add_argument("--records", default="cold", help="folder in FOLDER for the records")
    parser.add_argument("--replay", action="store_true", help="ask nothing")
    asyncio.run(main(parser.parse_args()))
