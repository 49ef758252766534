"""Pictures, readings and chains in a notebook: a small table, in which nothing that is shown is markup."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

from askance.chains import Link, Reading, Step, picture, verbalize
from askance.chains.chain import Chain
from askance.images import Image
from askance.nodes import skipped
from tests.scripted import PICTURE, model_of, scripted

HOSTILE = '"></td><script>alert(1)</script><img src=x onerror=alert(1)>&amp;'


class Tags(HTMLParser):
    """Collects the tags with their attributes, and the text, of what a notebook shows."""

    def __init__(self, shown: Any) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.sources: list[str] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(shown._repr_html_())
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags |= {tag, *(name for name, _ in attrs)}
        self.sources += [value or "" for name, value in attrs if name == "src"]
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_picture_is_a_thumbnail_with_its_name() -> None:
    shown = Tags(Image.from_bytes(PICTURE.read_bytes(), name=HOSTILE))

    assert shown.tags == {"img", "alt", "title", "src"}
    (source,) = shown.sources
    assert source.startswith("data:image/jpeg;base64,/9j/")
    assert len(source) < 60_000


@pytest.mark.parametrize("image", [Image.from_path(f"{HOSTILE}.jpg"), Image.from_bytes(b"none", name=HOSTILE)])
def test_a_picture_that_cannot_be_shown_says_why(image: Image) -> None:
    shown = Tags(image)

    assert shown.tags == {"p", "bdi"}
    assert "onerror=alert(1)" in "".join(shown.texts)


async def test_a_reading_shows_its_picture_and_each_link() -> None:
    chain = verbalize(model_of(scripted(narration={"description": HOSTILE})))

    shown = Tags(await chain.ainvoke({"image": PICTURE, "name": HOSTILE, "unusual": "Bricks."}))

    assert shown.tags == {"div", "img", "alt", "title", "src", "table", "caption", "tr", "th", "td", "bdi"}
    assert shown.texts[:4] == [HOSTILE, "link", "outcome", "says"]
    assert shown.texts[4:7] == ["V · objects", "answered", "cup, bricks"]
    assert shown.texts[10:16] == ["IN · narration", "answered", HOSTILE, "UH · what is unusual", "given", "Bricks."]


def test_a_reading_without_a_picture_or_an_answer_says_why() -> None:
    reading = Reading(name="x", problem=f"Gone: {HOSTILE}", links={"objects": skipped("a" * 1000)})

    shown = Tags(reading)

    assert shown.tags == {"div", "table", "caption", "tr", "th", "td", "bdi"}
    assert shown.texts[0] == f"Gone: {HOSTILE}"
    assert shown.texts[-1] == "a" * 599 + "…"


def test_a_chain_shows_its_steps() -> None:
    own = Link("own", str, label=HOSTILE)

    def node(subject: object) -> str:
        return ""

    node.__name__ = HOSTILE
    steps = [*verbalize("openai:gpt-4o", context="IN").steps, Step(link=own, node=node, subject=picture)]

    shown = Tags(Chain("mine", target=own, steps=steps))

    assert shown.tags == {"table", "caption", "tr", "th", "td", "bdi"}
    assert shown.texts[:8] == [
        *("mine → own", "link", "node", "model", "needs"),
        *("IN · narration", "narration", "openai:gpt-4o"),
    ]
    assert shown.texts[-2:] == [HOSTILE, HOSTILE]


def test_a_chain_is_printed_as_its_links() -> None:
    assert repr(verbalize(scripted())) == (
        "Chain('verbalize', objects → scene_text → narration → unusual → description)"
    )


def test_a_reading_is_printed_in_a_line() -> None:
    script = scripted(narration={"description": "A cup  of\ntea. " * 30}, objects={"objects": 3})

    shown = repr(verbalize(model_of(script)).invoke(PICTURE))

    assert "objects=invalid" in shown
    assert "narration='A cup of tea. A cup of tea. A cup of tea. A cup o…'" in shown
    assert "calls" not in shown
