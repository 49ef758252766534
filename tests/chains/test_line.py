from __future__ import annotations

from askance.chains import verbalize
from askance.chains.line import line_of
from askance.chat import ChatResponse, Usage
from askance.models import Engine, get_model
from askance.replay import MemoryStore
from tests.scripted import PICTURE, scripted

COUNTS = ("calls", "replayed", "shared", "cost")
ANSWER = ChatResponse(text='{"description": "A cup."}', usage=Usage(input=1_000_000, output=0))


async def test_two_readings_that_share_a_call_pay_for_it_once() -> None:
    engine = Engine(records=MemoryStore())
    vlm = get_model(scripted(narration=ANSWER), engine=engine, price={"input": 2, "output": 0})
    chain = verbalize(vlm, context="IN")

    lines = [line_of(reading) for reading in await chain.abatch([PICTURE] * 3)]
    lines.append(line_of(await chain.ainvoke(PICTURE)))

    counts = sorted(tuple(line["meta"][name] for name in COUNTS) for line in lines)
    assert counts == [(0, 0, 1, 0), (0, 0, 1, 0), (0, 1, 0, 0), (1, 0, 0, 2.0)]
