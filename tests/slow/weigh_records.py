"""How well a model foretells the held-out answers of a training set: `python weigh_records.py SET FOLDER [ADAPTER]`.

It prints the mean loss of a token, in nats, as `hf:` weighs the answers of the split `test`.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from askance.chat import ModelId
from askance.models.likelihood import likelihood_of
from askance.models.local import HFModel
from askance.models.settings import Local
from askance.training import ChatExample, TrainingSet
from askance.training.chat_objective import request_of


async def main(data: str, folder: str, adapter: str | None = None) -> None:
    model = HFModel(folder, local=Local(dtype="float32", adapter=adapter))
    examples = [each for each in TrainingSet.open(Path(data)).examples("test") if isinstance(each, ChatExample)]
    requests = [request_of(each, ModelId("hf", "weighed", name="weighed")) for each in examples]
    weighed = [likelihood_of(each) for each in await asyncio.gather(*map(model.likelihood, requests))]
    known = [each for each in weighed if each is not None]
    sys.stdout.write(f"{sum(each.nll for each in known) / sum(each.tokens for each in known)}\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
