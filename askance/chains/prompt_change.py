"""Prompt files that were edited since their calls were recorded, so that a plan can say why these are made anew."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.prompts.word_diff import Stretch, excerpt, word_diff
from askance.replay.miss import differences, nearest_key

if TYPE_CHECKING:
    from askance.chat import ChatRequest
    from askance.nodes import Node
    from askance.replay import Records

MOST_TRIED = 8
"""Calls of a role that are held against the records; some are of pictures that were never asked about."""

_WORD = re.compile(r"\w+")
_TEXT = re.compile(r"the text of message \d+ \((?:system|user)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptChange:
    """A prompt file whose words are others than when its calls were recorded."""

    links: tuple[str, ...]
    """The links, or roles, whose calls it makes anew."""
    file: Path
    overlay: bool
    """Whether it is a file of the user's, not of the package."""
    changes: tuple[tuple[Stretch, ...], ...]
    """By message that changed, the words with a few others around."""


def prompt_change(
    link: str, node: Node[Any, Any], requests: Iterable[ChatRequest], *, records: Records
) -> PromptChange | None:
    """The change of a node's prompt since like calls were recorded; None where none can be shown.

    The record nearest to a call shows it: it asks the same model about the same pictures in the same form, and its
    text has no other new words than the prompt file itself. Where a value in the prompt is another one, such as a
    description, nothing is said.

    Args:
        link: what the node is asked for.
        node: that asks.
        requests: calls of it that are not on record.
        records: where like calls may be.

    Raises:
        StoreError: the records cannot be read.
    """
    prompt = node.prompts_in_use[0]  # the one that it was made with
    own = {*_WORD.findall(prompt.path.read_text(encoding="utf-8"))}
    for request in requests:
        current = request.canonical()
        nearest = nearest_key(current, request.kind, records)
        record = None if nearest is None else records.get(nearest)
        changes = None if record is None else _changes(record.request, current, own)
        if changes:
            return PromptChange(links=(link,), file=prompt.path, overlay=prompt.overlay, changes=changes)
    return None


def _changes(
    recorded: Mapping[str, Any], current: Mapping[str, Any], own: set[str]
) -> tuple[tuple[Stretch, ...], ...] | None:
    """The words that changed, message by message; None where anything else did."""
    try:
        parts = list(differences(recorded, current))
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):  # on record is the form of no request
        return None
    if any(_TEXT.fullmatch(part.what) is None for part in parts):
        return None
    diffs = [word_diff(part.recorded, part.requested) for part in parts]
    new = {word for each in diffs for stretch in each if stretch.sign == "new" for word in _WORD.findall(stretch.text)}
    return tuple(tuple(excerpt(each)) for each in diffs) if new <= own else None
