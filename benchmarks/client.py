"""The chain over all pictures of a folder against an endpoint, as a process; prints how it ended as a line of JSON.

python client.py FOLDER URL [--concurrency N] [--timeout SECONDS]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from pathlib import Path

from askance.chains import action_reason
from askance.models import Engine, get_model
from askance.replay import Store


async def main(folder: Path, url: str, *, concurrency: int | None, timeout: float) -> None:
    """Reads every picture of FOLDER/images once."""
    options = (folder / "options.txt").read_text(encoding="utf-8").splitlines()
    paths = sorted((folder / "images").iterdir())
    with Store.open(folder / "cold") as records:
        engine = Engine(records=records, concurrency=concurrency, timeout=timeout)
        model = get_model(f"openai:bench@{url}", identity="bench", engine=engine)
        await model.rung()
        chain = action_reason(model)
        start, outcomes = time.monotonic(), Counter[str]()
        async for reading in chain.read_all({"image": path, "options": options} for path in paths):
            outcomes[reading.outcome] += 1
        seconds = time.monotonic() - start
        await model.aclose()
        await engine.aclose()
    print(json.dumps({"seconds": seconds, **outcomes}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("url")
    parser.add_argument("--concurrency", type=int)
    parser.add_argument("--timeout", type=float, default=120.0)
    given = parser.parse_args()
    asyncio.run(main(given.folder, given.url, concurrency=given.concurrency, timeout=given.timeout))
