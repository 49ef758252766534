"""What the README and the pages of `docs/` tell a reader to type works, and shows what they show.

The reader has no key. What stands under `demo` comes from the model of that name. `SERVER`, the address that pages have
for a server of one's own, leads to an endpoint on this machine that judges texts by the words that they share, prefers
those that say `because` or are longer, makes questions of captions, and gives a small valid answer elsewhere.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from askance.cli import main
from tests.cli.command import log_kept
from tests.judges import preference_by_taste, verdict_by_words
from tests.pages import Fence, Reader, compare, fences
from tests.questions import question_by_words
from tests.servers import FakeEndpoint, Seen

ROOT = Path(__file__).resolve().parent.parent
SERVER = "http://localhost:8000/v1"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]


# As in a short script, what a page opens is closed when its names go.
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_does_what_it_says(page: Path, reader: Reader) -> None:
    for fence in fences(page):
        reader.follow(fence)


@pytest.fixture
def reader(own_place: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """Someone in an empty folder who has `askance` installed, a server, no key, and a terminal of 100 columns."""
    (own_place / "examples").symlink_to(ROOT / "examples")  # as in a clone
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("ASKANCE_STORE")
    someone = Reader(own_place, dict(os.environ), main, {SERVER: endpoint})
    gc.freeze()  # so that only what the page leaves is looked through
    with log_kept():
        yield someone
    if len(someone.names) > 1:  # Python of the page has run
        someone.names.clear()
        gc.collect()
    gc.unfreeze()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with FakeEndpoint(by_words, models=("my-model", "my-other-model")) as running:
        yield running.url


def by_words(seen: Seen) -> str | None:
    """A judge's verdict or preference, or a question's next step; None where anything else is asked."""
    if "messages" not in seen.json:
        return None
    taste = {"my-model": "because", "my-other-model": "long"}.get(seen.json["model"], "")
    return verdict_by_words(seen) or preference_by_taste(seen, taste) or question_by_words(seen)


def test_the_pages_of_the_api_have_every_public_name() -> None:
    spec = spec_from_file_location("make_api_pages", ROOT / "scripts" / "make_api_pages.py")
    assert spec is not None
    assert spec.loader is not None
    script = module_from_spec(spec)
    spec.loader.exec_module(script)

    pages = {f"{face.rpartition('.')[2]}.md": script.page_of(face) for face in script.FACES}
    assert {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "api").glob("*.md")} == pages


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
