"""Scores answers as a user would: `python score_answers.py SPEC MODE REFERENCE`, triples as JSON lines on stdin.

Writes JSON. With a REFERENCE folder the scores are also worked out by transformers alone, one answer at a time: from
the three texts as they are joined for BEM, and so without a mask.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module
from typing import Any

from askance.errors import AskanceError
from askance.models import Engine, get_scorer
from askance.replay import open_records


async def score(spec: str, mode: Any, triples: list[dict[str, str]]) -> dict[str, Any]:
    """What came of it: scores, identity, what was loaded; or the error."""
    with open_records("records") as store:
        try:
            scorer = get_scorer(spec, engine=Engine(mode=mode, records=store))
            form, early = scorer.form(), "torch" in sys.modules
            scores: list[float] = []
            for about, texts in grouped(triples):
                scores += await scorer.score_texts(about, texts)
        except AskanceError as error:
            return {"error": type(error).__name__, "message": str(error)}
        return {"form": form, "scores": scores, "early": early, "loaded": "torch" in sys.modules}


def grouped(triples: list[dict[str, str]]) -> list[tuple[dict[str, str], list[str]]]:
    """The answers to each question together, as they are asked about."""
    found: list[tuple[dict[str, str], list[str]]] = []
    for triple in triples:
        about = {name: triple[name] for name in ("question", "reference")}
        if not found or found[-1][0] != about:
            found.append((about, []))
        found[-1][1].append(triple["candidate"])
    return found


def plain(text: str) -> str:
    """Half a surrogate pair has no form that a tokenizer takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def reference(folder: str, triple: dict[str, str], segments: int) -> float:
    """The score of one answer, by the published form."""
    torch: Any = import_module("torch")
    transformers: Any = import_module("transformers")
    tokenizer = transformers.BertTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    parts = [tokenizer.tokenize(plain(triple[name])) for name in ("candidate", "reference", "question")]
    tokens, places = ["[CLS]"], [0]
    for place, part in enumerate(parts):
        tokens += [*part, "[SEP]"]
        places += [min(place, segments - 1)] * (len(part) + 1)
    ids = torch.tensor([tokenizer.convert_tokens_to_ids(tokens)])
    with torch.inference_mode():
        logits = model(input_ids=ids, token_type_ids=torch.tensor([places])).logits
    return float(torch.nn.functional.softmax(logits, dim=1)[0, 1])


if __name__ == "__main__":
    asked = [json.loads(line) for line in sys.stdin]
    found = asyncio.run(score(sys.argv[1], sys.argv[2], asked))
    if len(sys.argv) > 3:
        found["reference"] = [reference(sys.argv[3], triple, int(sys.argv[4])) for triple in asked]
    sys.stdout.write(json.dumps(found))
