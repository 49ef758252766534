"""What caches had, and a word where they never hit."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from askance.chat import ChatRequest, ChatResponse, Usage
from askance.models.counters import Counters
from askance.models.vllm.metrics import CacheHits, CacheMonitor, cache_hits, metric_samples
from tests.models.local.questions import PICTURES, asked

PAGE = """\
# HELP vllm:prefix_cache_queries_total Prefix cache queries.
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 290.0
vllm:prefix_cache_queries_total{engine="1",model_name="m"} 10.0
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 1.92e+02
vllm:mm_cache_queries_total{engine="0",model_name="m"} 9.0
vllm:mm_cache_hits_total{engine="0",model_name="m"} 8.0
vllm:cache_config_info{block_size="16",enable_prefix_caching="True",engine="0",path="a \\"b\\""} 1.0
vllm:kv_cache_usage_perc{engine="0"} NaN
python_info{version="3"} 1.0
"""
READ = CacheHits(tokens=300, tokens_hit=192, pictures=9, pictures_hit=8, block=16, shares=True)


def test_a_page_of_metrics_is_read() -> None:
    assert cache_hits(metric_samples(PAGE)) == READ
    assert cache_hits(metric_samples("not found")) is None


def test_what_came_since_and_both_together() -> None:
    later = replace(READ, tokens=500, pictures=12)
    assert later - READ == replace(READ, tokens=200, tokens_hit=0, pictures=3, pictures_hit=0)
    assert (later - READ) + READ == later


def asked_of(monitor: CacheMonitor, requests: list[ChatRequest], *, cached: int = 0, prompt: int = 200) -> None:
    for request in requests:
        monitor.count(request, ChatResponse(text="red", usage=Usage(input=prompt, output=2, cached=cached)))


SAME = [asked(f"Question {number}?", *PICTURES[:1]) for number in range(6)]
OTHERS = [asked(f"{number} is the question.") for number in range(6)]
NONE = CacheHits(tokens=1200, pictures=6, block=128, shares=True)
WARNED: dict[str, tuple[list[ChatRequest], CacheHits | None, bool, int, str]] = {
    "off at an address": (
        SAME, replace(NONE, shares=False, pictures_hit=5), False, 200,
        "its prefix cache is off: start the server with --enable-prefix-caching.",
    ),
    "off here": (SAME, replace(NONE, shares=False, pictures_hit=5), True, 200, "its prefix cache is off: set `share"),
    "blocks too large": (
        SAME, replace(NONE, pictures_hit=5), True, 100,
        "it keeps whole blocks of 128 tokens and no prompt had more than 100: set `vllm = { engine = { block_size",
    ),
    "something else": (SAME, replace(NONE, pictures_hit=5), True, 200, "began alike for less than a block of 128"),
    "not known": (SAME, None, False, 200, "began alike for less than a block, came before"),
    "no cache of pictures": (
        SAME, replace(NONE, tokens_hit=700, pictures=0), True, 200,
        "0 % of 6 pictures were found prepared although 5 had been asked about before: its cache of pictures is off",
    ),
    "cache of pictures too small": (
        SAME, replace(NONE, tokens_hit=700), True, 200, "is too small for them: raise `mm_processor_cache_gb`.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("requests", "hit", "own", "prompt", "said"), WARNED.values(), ids=WARNED)
def test_caches_that_never_hit_are_told_once_with_a_reason(
    requests: list[ChatRequest],
    hit: CacheHits | None,
    own: bool,
    prompt: int,
    said: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monitor = CacheMonitor("vllm:m", own=own, share=True)
    asked_of(monitor, requests, prompt=prompt)
    if hit is not None:
        monitor.add(hit)
    with caplog.at_level(logging.WARNING, logger="askance"):
        monitor.warn()
        monitor.warn()

    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("vllm:m: 0 % of ")
    assert said in caplog.messages[0]


SILENT: dict[str, tuple[list[ChatRequest], int, bool]] = {
    "hits": (SAME, 64, True),
    "nothing to hit": (OTHERS, 0, True),
    "too few": (SAME[:3], 0, True),
    "not wanted": (SAME, 0, False),
}


@pytest.mark.parametrize(("requests", "cached", "share"), SILENT.values(), ids=SILENT)
def test_nothing_is_said_where_nothing_is_missing(
    requests: list[ChatRequest], cached: int, share: bool, caplog: pytest.LogCaptureFixture
) -> None:
    monitor = CacheMonitor("vllm:m", own=True, share=share)
    asked_of(monitor, requests, cached=cached)
    monitor.add(replace(NONE, tokens_hit=cached, pictures_hit=5))
    monitor.warn()
    assert caplog.messages == []


def test_what_is_counted_for_a_run() -> None:
    monitor = CacheMonitor("vllm:m", own=True, share=True)
    asked_of(monitor, SAME, cached=64)
    unmeasured = monitor.counters
    monitor.add(replace(NONE, tokens_hit=300, pictures_hit=5))

    assert "found" not in unmeasured.canonical()
    assert monitor.counters.canonical() == {
        "answers": 6, "pictures": 6, "found": 5, "prefix_reused": 384, "prompt": 1200, "written": 12,
    }  # fmt: skip
    assert str(monitor.counters) == (
        "6 answers, 5 of 6 pictures found prepared, 384 of 1,200 prompt tokens reused, 12 tokens written"
    )
    assert monitor.counters - Counters() == monitor.counters
