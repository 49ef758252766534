"""Thinking that a server leaves in the answer's text."""

from __future__ import annotations

import re

_OPEN = re.compile(r"\s*<(think|thinking)>")
_ORPHAN = re.compile(r"^[ \t]*</(?:think|thinking)>[ \t]*$", re.MULTILINE)


def split_thinking(text: str) -> tuple[str, str]:
    """The thinking at the start of `text`, and the answer after it.

    A block that is never closed is all thinking: the limit came before the answer. A closing tag alone on its line,
    without an opening one, ends a block too: some chat templates write the opening tag into the prompt.
    """
    opened = _OPEN.match(text)
    if opened:
        thinking, _, answer = text[opened.end() :].partition(f"</{opened[1]}>")
        return thinking.strip(), answer.lstrip()
    closed = _ORPHAN.search(text)
    if closed and f"<{closed[0].strip()[2:]}" not in text[: closed.start()]:
        return text[: closed.start()].strip(), text[closed.end() :].lstrip()
    return "", text
