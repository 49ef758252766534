"""Nodes and chains wired with LangChain: two readings of one picture side by side, and a step of your own behind them.

    python examples/ask_for_more.py MODEL IMAGE

MODEL is `demo`, whose answers are hand-written, for a picture of `askance demo --copy ads`; for any other it is a spec
such as openai:Qwen/Qwen2.5-VL-7B-Instruct@http://localhost:8000/v1 or openai:gpt-4o.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from langchain_core.runnables import RunnableLambda, RunnableParallel

from askance.chains import Reading, atypicality
from askance.models import get_model
from askance.tools import Caption, caption


def headline(found: Mapping[str, object]) -> str:
    """One line from a caption and a reading."""
    said, reading = found["caption"], found["reading"]
    if not isinstance(said, Caption) or not isinstance(reading, Reading):
        raise TypeError(found)
    odd = reading.statement.value if reading.statement else None
    return f"{said} {odd or 'Nothing odd was found.'}"


def main(model: str, image: str) -> None:
    """Ask and print."""
    vlm = get_model(model)
    chain = RunnableParallel(caption=caption(vlm), reading=atypicality(vlm)) | RunnableLambda(headline)
    print(chain.invoke(image))


if __name__ == "__main__":
    main(*sys.argv[1:])
