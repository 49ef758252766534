"""Asks a model of vLLM's as a user would: `python ask_vllm.py SPEC VLLM`, requests as JSON lines on stdin."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from askance.models.backend import ask, from_settings
from askance.models.config import Config
from askance.models.factory import named
from tests.slow.ask_hf import request


async def main(spec: str, vllm: dict[str, Any]) -> None:
    settings = named(spec, {"vllm": vllm}, config=Config())
    model: Any = from_settings(settings)
    try:
        asked = [request(json.loads(line)) for line in sys.stdin]
        for answer in await asyncio.gather(*(ask(model, each) for each in asked)):
            sys.stdout.write(json.dumps(answer.canonical()) + "\n")
    finally:
        await model.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
