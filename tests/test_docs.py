"""What the README and the pages of `docs/` tell a reader to type works, and shows what they show.

Specs such as `openai:gpt-4o` lead to an endpoint on this machine that gives the demo's answers wherever the demo asks
the same, judges texts by the words that they share, makes questions of captions, and gives a small valid answer
elsewhere.
"""

from __future__ import annotations

import base64
import gc
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from askance.cli import main
from tests.cli.command import log_kept
from tests.judges import verdict_by_words
from tests.pages import Fence, Reader, compare, fences
from tests.questions import question_by_words
from tests.servers import FakeEndpoint, Seen

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "askance" / "demo"
COMMAND = """\
#!{python}
import sys
from askance.cli import main
from askance.models.openai import client as openai_client
openai_client.OPENAI = "{url}"
sys.exit(main())
"""
"""The command as it is installed, but for the address of OpenAI."""

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


# As in a short script, what a page opens is closed when its names go.
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_does_what_it_says(page: Path, reader: Reader) -> None:
    for fence in fences(page):
        reader.follow(fence)


@pytest.fixture
def reader(own_place: Path, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """Someone in an empty folder who has `askance` installed, a key, and a terminal of 100 columns."""
    (own_place / "examples").symlink_to(ROOT / "examples")  # as in a clone
    bin_ = own_place.parent / "bin"
    bin_.mkdir()
    command = bin_ / "askance"
    command.write_text(COMMAND.format(python=sys.executable, url=endpoint.url), encoding="utf-8")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("OPENAI_API_KEY", "nobody-asks")
    monkeypatch.setattr("askance.models.openai.client.OPENAI", endpoint.url)
    monkeypatch.delenv("ASKANCE_STORE")
    someone = Reader(own_place, dict(os.environ), main)
    gc.freeze()  # so that only what the page leaves is looked through
    with log_kept():
        yield someone
    if len(someone.names) > 1:  # Python of the page has run
        someone.names.clear()
        gc.collect()
    gc.unfreeze()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[FakeEndpoint]:
    answers = demo_answers()

    def answer(seen: Seen) -> str | None:
        if "messages" not in seen.json:
            return None
        return answers.get(asked(seen.json["messages"])) or verdict_by_words(seen) or question_by_words(seen)

    with FakeEndpoint(answer, models=("gpt-4o",)) as running:
        yield running


def demo_answers() -> dict[str, str]:
    """The demo's recorded texts, by what was asked."""
    answers: dict[str, str] = {}
    for path in DEMO.glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record.get("kind") == "chat":
                answers[asked(record["request"]["messages"])] = record["response"]["text"]
    return answers


def asked(messages: list[dict[str, Any]]) -> str:
    """What is asked, be the messages askance's own or OpenAI's: the roles, the texts, and the pictures by source."""
    sources = sent_pictures()
    turns: list[list[str]] = []
    for message in messages:
        parts = message.get("parts", message.get("content", ""))
        parts = [{"text": parts}] if isinstance(parts, str) else parts
        turns.append([message["role"], *(_said(part, sources) for part in parts)])
    return json.dumps(turns)


def _said(part: dict[str, Any], sources: dict[str, str]) -> str:
    if "text" in part:
        return part["text"]
    if "sha256" in part:
        return part["sha256"]
    sent = base64.b64decode(part["image_url"]["url"].partition(",")[2])
    return sources.get(hashlib.sha256(sent).hexdigest(), "another picture")


@cache
def sent_pictures() -> dict[str, str]:
    """The demo's pictures: digest of the bytes that an endpoint gets, to digest of the source."""
    from askance.images import Image

    images = [Image.from_path(path) for path in sorted((DEMO / "pictures").glob("*.jpg"))]
    return {image.prepare().sha256: image.sha256 for image in images}


# --- the reader notices what is wrong ---


@pytest.mark.parametrize(
    "page",
    [
        "```python\nraise KeyError\n```\n",
        "```python\nprint(1 + 1)\n```\n<!-- prints -->\n```text\n3\n```\n",
        "```console\n$ askance\nsomething else\n```\n",
        "```console\n$ askance && exit 3\n```\n",
        "```console\n$ make it\n```\n",
        "```console\naskance\n```\n",
        "<!-- not run: -->\n```python\n```\n",
    ],
    ids=["exception", "other print", "other output", "exit code", "other command", "no prompt", "no reason"],
)
def test_a_page_that_does_not_do_what_it_says_is_seen(page: str, scratch: Reader) -> None:
    with pytest.raises((AssertionError, KeyError)):
        follow(page, scratch)


SOUND = {
    "one namespace": """
```python
import asyncio
said = await asyncio.sleep(0, "late")
```

```python
print(said)
```
<!-- prints -->
```text
late
```
""",
    "commands": """
```console
$ askance one \\
    two
said one two
$ askance three | tr a-z A-Z
SAID ...
```
""",
    "file": """
<!-- file: notes/a.txt -->

```text
hello
```
```console
$ askance $(cat notes/a.txt)
said hello
```
""",
    "exit code": """
<!-- exit: 3 -->
```console
$ askance; exit 3
...
```
""",
    "left alone": """
<!-- not run: needs a server -->
```python
import nothing_of_the_kind
```
```toml
for = the eye
```
""",
}


@pytest.mark.parametrize("page", SOUND.values(), ids=SOUND)
def test_a_page_that_does_what_it_says_passes(page: str, scratch: Reader) -> None:
    follow(page, scratch)


def test_dots_stand_for_anything() -> None:
    compare("page:1", "a ... c\n...\nz", "a b c\nany\nlines\nz  \n")


def follow(page: str, reader: Reader) -> None:
    path = reader.folder / "page.md"
    path.write_text(page, encoding="utf-8")
    for fence in fences(path):
        reader.follow(fence)


@pytest.fixture
def scratch(own_place: Path) -> Reader:
    """A reader for whom `askance` says what it was given, in a shell and without."""
    command = own_place / "askance"
    command.write_text('#!/bin/sh\necho "said $*"\n', encoding="utf-8")
    command.chmod(0o755)
    path = f"{own_place}{os.pathsep}{os.environ['PATH']}"
    return Reader(own_place, {"PATH": path}, lambda words: sys.stdout.write(f"said {' '.join(words)}\n"))


def test_a_fence_knows_its_line(own_place: Path) -> None:
    page = own_place / "page.md"
    page.write_text("# Title\n\n<!-- exit: 2 -->\n```console\n$ askance\n```\n", encoding="utf-8")

    assert list(fences(page)) == [Fence("page.md:5", "console", "$ askance\n", "exit", "2")]
