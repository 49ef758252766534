"""Templates and data: text stays text, in elements and in attributes, whatever it says."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

import pytest
from jinja2 import UndefinedError

from askance.evals.report.elements import PageLink, Sortable
from askance.evals.report.html import address, block, packed_block, render, safe_json
from askance.terminal import printable
from tests.evals.report.runs import HOSTILE, Parsed

TEMPLATES = {
    each.name: each.read_text(encoding="utf-8") for each in (files("askance.evals.report") / "templates").iterdir()
}

SHOWN = {
    "markup": ("<b>&</b>", "&lt;b&gt;&amp;&lt;/b&gt;"),
    "quotes": ("\"'", "&#34;&#39;"),
    "direction": ("a\u202eb", "a<span class=unseen>U+202E</span>b"),
    "control": ("\x1b[1m", "<span class=unseen>U+001B</span>[1m"),
    "half a pair": ("\ud800", "<span class=unseen>U+D800</span>"),
    "a joiner that emoji need": ("👩\u200d👧", "👩\u200d👧"),
    "line feed": ("a\nb", "a\nb"),
    "what a template would run": ("{{ 7 * 7 }}{% raise %}", "{{ 7 * 7 }}{% raise %}"),
}


PAGE: dict[str, Any] = {"title": "", "count": 1, "policy": "", "style": "", "script": ""}


def page_with(value: str) -> str:
    """A page of single pictures that shows `value` as a note, and in an attribute."""
    empty = ("blocks", "tasks", "published", "plots", "blames", "blame_tables", "judges", "letters", "differences")
    values: dict[str, Any] = {
        "summaries": [],
        "notes": [value],
        "noun": "picture",
        **{name: [] for name in empty},
    }
    pictures = [("", Sortable(heads=(), rows=(), caption=value))]
    more: dict[str, Any] = dict.fromkeys(("judges_table", "following"))
    return render("report.html", **PAGE, **values, **more, pictures=pictures, runs_table=Sortable(heads=(), rows=()))


@pytest.mark.parametrize(("given", "shown"), SHOWN.values(), ids=SHOWN)
def test_text_is_escaped_and_the_unseen_is_seen(given: str, shown: str) -> None:
    assert f'<ul class="notes"><li>{shown}</li></ul>' in page_with(given)


@pytest.mark.parametrize("given", HOSTILE, ids=range(len(HOSTILE)))
def test_an_attribute_holds_all_that_it_is_given_and_nothing_more(given: str) -> None:
    parsed = Parsed(page_with(given))

    _, table = [each for tag, each in parsed.elements if tag == "div" and each.get("class") == "wide"]
    assert table.keys() == {"class", "tabindex", "role", "aria-label"}
    assert table["aria-label"] == printable(given)


def test_a_template_says_what_it_misses() -> None:
    with pytest.raises(UndefinedError, match="'labels' is undefined"):
        render("card.html", **PAGE, blocks=[])


def test_what_no_escape_touches_is_what_the_package_wrote() -> None:
    unescaped = {found for text in TEMPLATES.values() for found in re.findall(r"\{\{[^}]*\|\s*safe[^}]*\}\}", text)}

    assert sorted(unescaped) == ["{{ block.text|safe }}", "{{ script|safe }}", "{{ style|safe }}"]
    assert not [name for name, text in TEMPLATES.items() if "autoescape" in text]


def test_what_is_told_in_an_attribute_is_plain() -> None:
    told = [
        found for text in TEMPLATES.values() for found in re.findall(r"(?:aria-label|title)=[^>]*\{\{[^}]*\}\}", text)
    ]

    assert len(told) > 5
    assert [each for each in told if not re.search(r'="\{\{[^}]*\|plain \}\}', each)] == []


def test_every_value_of_an_attribute_stands_in_quotes() -> None:
    assert [found for text in TEMPLATES.values() for found in re.findall(r"<[^>]*[\w-]=\{.*", text)] == []


def test_an_address_is_escaped_as_the_script_reads_it() -> None:
    link = PageLink(text="<i>", to={"sample": '"&\ud800', "epoch": 0, "run": 2})

    assert address(link.to) == "#sample=%22%26%3F&run=2"


@pytest.mark.parametrize("given", HOSTILE, ids=[f"{each[:12]!r}" for each in HOSTILE])
def test_a_block_of_data_comes_back_as_it_was(given: str) -> None:
    made = block("x", {given: [given]})
    packed = packed_block("y", {given: [given]})
    written = render("page.html", **PAGE, blocks=[made, packed])

    parsed = Parsed(written.encode("utf-8").decode())
    assert parsed.data("x") == parsed.data("y") == {given: [given]}


def test_nothing_in_json_means_anything_to_html() -> None:
    written = safe_json("<!-- </script> & \u2028\u202e\ud800")

    assert written == '"\\u003c!-- \\u003c/script\\u003e \\u0026 \\u2028\\u202e\\ud800"'
    assert json.loads(written) == "<!-- </script> & \u2028\u202e\ud800"
