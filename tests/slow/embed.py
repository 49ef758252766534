"""Embeds texts as a user would: `python embed.py SPEC MODE REFERENCE`, texts as JSON lines on stdin; writes JSON.

With a REFERENCE folder the vectors are also worked out from the tokens one text at a time, which needs no mask.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module
from typing import Any

from askance.errors import AskanceError
from askance.models import Engine, get_embedder
from askance.replay import open_records


async def embed(spec: str, mode: Any, texts: list[str]) -> dict[str, Any]:
    """What came of it: the vectors, the identity, what was loaded; or the error."""
    with open_records("records") as store:
        embedder = get_embedder(spec, engine=Engine(mode=mode, records=store))
        form = embedder.form()
        early = "torch" in sys.modules
        try:
            vectors = await embedder.embed(texts)
        except AskanceError as error:
            return {"error": type(error).__name__, "message": str(error)}
        return {"form": form, "vectors": vectors, "early": early, "loaded": "torch" in sys.modules}


def reference(folder: str, text: str) -> list[float]:
    """The vector of one text, by the definition."""
    torch: Any = import_module("torch")
    transformers: Any = import_module("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    tokens = tokenizer(text, truncation=True, max_length=256, return_tensors="pt")
    with torch.inference_mode():
        mean = model(**tokens).last_hidden_state[0].mean(dim=0)
    return (mean / mean.norm()).tolist()


if __name__ == "__main__":
    asked = [json.loads(line) for line in sys.stdin]
    found = asyncio.run(embed(sys.argv[1], sys.argv[2], asked))
    if len(sys.argv) > 3:
        found["reference"] = [reference(sys.argv[3], text) for text in asked]
    sys.stdout.write(json.dumps(found))
