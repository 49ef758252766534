"""An overlay folder of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[..., Path]


@pytest.fixture
def overlay(tmp_path: Path) -> Path:
    """An empty overlay folder."""
    folder = tmp_path / "prompts"
    folder.mkdir()
    return folder


@pytest.fixture
def write(overlay: Path) -> Write:
    """Writes a prompt file: `write("user:\\nHi", file="unusual.text.prompt", inputs="  a: …")`."""

    def write_file(body: str, *, file: str = "mine.text.prompt", inputs: str = "") -> Path:
        name = file.split(".", maxsplit=1)[0]
        head = f"---\nname: {name}\nsummary: A test.\noutput: text\ninputs:\n{inputs}---\n"
        path = overlay / file
        path.write_text(head + body, encoding="utf-8")
        return path

    return write_file
