"""Retrieval by the command, with real weights: indexes of ads are built, searched, asked about, killed and replayed."""

from __future__ import annotations

import urllib.request

import pytest

from tests.slow.conftest import Switch

pytestmark = pytest.mark.slow(group="retrieval")


def test_chroma_comes_back(chroma_switch: Switch) -> None:
    for _ in range(2):
        with urllib.request.urlopen(f"{chroma_switch.on().url}/api/v2/heartbeat", timeout=5) as reply:
            assert reply.status == 200
        chroma_switch.off()
