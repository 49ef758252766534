from __future__ import annotations

from typing import Any

import pytest

from askance.chat import ChatResponse
from askance.errors import UsageError
from askance.replay import MemoryStore, Record, Stats, select, stats
from tests.replay.samples import record, request

OLD = record("old", model="llava-1.5", at="2025-12-31T23:59:59Z")
NEW = record("new", at="2026-01-01T00:00:00Z")
UNDATED = Record.make("score", {"model": "clip"}, {"value": 1}, at="")
ALL = [OLD, NEW, UNDATED]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, ALL),
        ({"kind": "score"}, [UNDATED]),
        ({"model": "LLaVA"}, [OLD]),
        ({"model": "openai:*"}, [OLD, NEW]),
        ({"model": "gpt-4?"}, []),
        ({"model": "*gpt-4?"}, [NEW]),
        ({"model": "[ln]"}, []),
        ({"since": "2026-01-01"}, [NEW]),
        ({"since": "2026-01-01T02:00:00+02:00"}, [NEW]),
        ({"since": "2025-12-31T23:59:59"}, [OLD, NEW]),
        ({"keys": {OLD.key, "0" * 64}}, [OLD]),
        ({"keys": {OLD.key}, "kind": "score"}, []),
    ],
    ids=["all", "kind", "part", "glob", "whole", "mark", "bracket", "day", "zone", "second", "keys", "both"],
)
def test_filters_pick_records(filters: dict[str, Any], expected: list[Record]) -> None:
    assert list(select(ALL, **filters)) == expected
    assert sorted(one.key for one in select(MemoryStore(ALL), **filters)) == sorted(one.key for one in expected)


def test_a_date_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        select(ALL, since="last week")
    assert str(caught.value) == "'last week' is no date. Write it as 2026-01-31 or 2026-01-31T12:00."


def test_stats_count_each_way() -> None:
    cut = Record.make("chat", request("cut"), ChatResponse(finish="length").canonical(), at=NEW.at)
    assert stats([*ALL, cut]) == Stats(
        records=4,
        size=sum(len(one.to_json()) for one in [*ALL, cut]),
        kinds={"chat": 3, "score": 1},
        models={"openai:gpt-4o": 2, "openai:llava-1.5": 1, "clip": 1},
        outcomes={"answered": 2, "truncated": 1},
        days={"": 1, "2025-12-31": 1, "2026-01-01": 2},
    )
