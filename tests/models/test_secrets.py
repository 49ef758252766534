from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from askance.models.secrets import Secrets

KEY = "sk-marker/4711+qwertz"
LONGER = f"{KEY}-and-more"
KEYS = Secrets((LONGER, KEY, "short", ""))

TEXTS = {
    "as it is": (f"Bearer {KEY}.", "Bearer [key]."),
    "twice": (f"{KEY}{KEY}", "[key][key]"),
    "one that begins another": (f"{KEY}, {LONGER}", "[key], [key]"),
    "with slashes escaped": (KEY.replace("/", "\\/"), "[key]"),
    "too short to be blanked": ("short and none", "short and none"),
    "its beginning": (KEY[:-1], KEY[:-1]),
}


@pytest.mark.parametrize(("text", "left"), TEXTS.values(), ids=TEXTS)
def test_secrets_are_blanked_out(text: str, left: str) -> None:
    assert (KEYS.blanked(text.encode()), KEYS.cleared(text)) == (left.encode(), left)
    assert KEYS.are_in(text) is (text != left)


def test_a_secret_is_found_in_json_however_it_is_escaped() -> None:
    secret = 'schlüssel "7" \\ 1'
    texts = [json.dumps({"said": secret}, ensure_ascii=ascii_only) for ascii_only in (True, False)]

    assert [Secrets([secret]).blanked(text.encode()) for text in texts] == [b'{"said": "[key]"}'] * 2


def test_secrets_are_cleared_however_deep() -> None:
    value: Any = {"a": [KEY, 1, None, {KEY: (f"x{KEY}", True)}]}

    assert KEYS.cleared(value) == {"a": ["[key]", 1, None, {"[key]": ("x[key]", True)}]}
    assert Secrets().cleared(value) is value


async def in_pieces(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


@pytest.mark.parametrize("size", [1, 2, 7, 20, 21, 22, 1000])
@pytest.mark.parametrize("secrets", [KEYS, Secrets()], ids=["secrets", "none"])
async def test_a_stream_is_blanked_wherever_it_is_cut(secrets: Secrets, size: int) -> None:
    data = f"{KEY} x{LONGER}{KEY} {KEY[:-1]} {LONGER[:-1]} end {KEY}".encode()

    assert b"".join([piece async for piece in secrets.stream(in_pieces(data, size))]) == secrets.blanked(data)


def test_nothing_of_a_secret_shows() -> None:
    assert KEY not in f"{KEYS!r} {KEYS} {[KEYS]}"
