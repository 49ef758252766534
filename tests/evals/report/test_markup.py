"""HTML from values: text stays text, whatever it says."""

from __future__ import annotations

import json

import pytest

from askance.evals.report.markup import Markup, data_block, element, joined, safe_json, text
from tests.evals.report.runs import HOSTILE, Parsed

SHOWN = {
    "markup": ("<b>&</b>", "&lt;b&gt;&amp;&lt;/b&gt;"),
    "quotes": ("\"'", "&quot;&#x27;"),
    "direction": ("a\u202eb", 'a<span class="unseen">U+202E</span>b'),
    "control": ("\x1b[1m", '<span class="unseen">U+001B</span>[1m'),
    "half a pair": ("\ud800", '<span class="unseen">U+D800</span>'),
    "a joiner that emoji need": ("👩\u200d👧", "👩\u200d👧"),
    "line feed": ("a\nb", "a\nb"),
}


@pytest.mark.parametrize(("given", "shown"), SHOWN.values(), ids=SHOWN)
def test_text_is_escaped_and_the_unseen_is_seen(given: str, shown: str) -> None:
    assert text(given) == shown


def test_an_element_escapes_what_is_no_markup() -> None:
    made = element("td", "<i>", Markup("<b>x</b>"), None, class_="num", data_sort='"1"', hidden=True, title=None)

    assert made == '<td class="num" data-sort="&quot;1&quot;" hidden>&lt;i&gt;<b>x</b></td>'


def test_an_empty_element_is_not_closed() -> None:
    assert joined([element("br"), element("meta", charset="utf-8")]) == '<br><meta charset="utf-8">'


@pytest.mark.parametrize("given", HOSTILE, ids=[f"{each[:12]!r}" for each in HOSTILE])
def test_a_block_of_data_comes_back_as_it_was(given: str) -> None:
    block = data_block("x", {given: [given]})

    assert Parsed(block.encode("utf-8").decode()).data("x") == {given: [given]}
    assert [tag for tag, _ in Parsed(block).elements] == ["script"]


def test_nothing_in_json_means_anything_to_html() -> None:
    written = safe_json("<!-- </script> & \u2028\u202e\ud800")

    assert written == '"\\u003c!-- \\u003c/script\\u003e \\u0026 \\u2028\\u202e\\ud800"'
    assert json.loads(written) == "<!-- </script> & \u2028\u202e\ud800"
