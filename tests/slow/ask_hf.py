"""Asks a model on this machine as a user would: `python ask_hf.py FOLDER LOCAL`, requests as JSON lines on stdin."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from askance.chat import ChatRequest, Message, ModelId, ResponseFormat, Sampling, TextPart
from askance.models.backend import ask
from askance.models.local import HFModel
from askance.models.settings import Local


def request(fields: dict[str, Any]) -> ChatRequest:
    schema = fields.get("schema")
    return ChatRequest(
        model=ModelId("hf", "asked", name="asked"),
        messages=(Message("user", (TextPart(fields["text"]),)),),
        response=None if schema is None else ResponseFormat("json_schema", "answer", schema),
        sampling=Sampling(temperature=fields.get("temperature"), seed=fields.get("seed"), max_tokens=200),
        given=fields.get("given"),
    )


async def main(folder: str, local: dict[str, Any]) -> None:
    model = HFModel(folder, local=Local(**local))
    for answer in await asyncio.gather(*(ask(model, request(json.loads(line))) for line in sys.stdin)):
        sys.stdout.write(json.dumps(answer.canonical()) + "\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
