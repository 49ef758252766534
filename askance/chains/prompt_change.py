"""Prompt files that were edited since their calls were recorded, so that a plan can say why these are made anew."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.prompts import PromptLibrary
from askance.prompts.word_diff import Stretch, excerpt, word_diff
from askance.replay.miss import differences, nearest_key

if TYPE_CHECKING:
    from askance.chat import ChatRequest
    from askance.nodes import Node
    from askance.prompts import Prompt
    from askance.replay import Records
    from askance.replay.miss import RequestDifference

MOST_TRIED = 8
"""Calls of a role that are held against the records; some are of pictures that were never asked about."""

_WORD = re.compile(r"\w+")
_TAG = re.compile(r"\{[{%#].*?[}%#]\}", re.DOTALL)
"""A tag of a template."""
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

    The record nearest to a call shows it: it asks the same model about the same pictures in the same form, and what is
    new in the call's text stands in the prompt file, between the same words. Where a value in the prompt is another
    one, such as a question or a description, nothing is said.

    Nor is it where the record is rather of another prompt, such as one that asks whether an inference is plausible
    where now it is to be rated: where another prompt of the package holds more of its words than this file does, or
    the package's of the same name. Words of values that both calls have do not count.

    Args:
        link: what the node is asked for.
        node: that asks.
        requests: calls of it that are not on record.
        records: where like calls may be.

    Raises:
        StoreError: the records cannot be read.
    """
    prompt = node.prompts_in_use[0]  # the one that it was made with
    own = f" {' '.join(_WORD.findall(_TAG.sub(' ', _text_of(prompt))))} "
    for request in requests:
        current = request.canonical()
        nearest = nearest_key(current, request.kind, records)
        record = None if nearest is None else records.get(nearest)
        parts = () if record is None else _changed_texts(record.request, current)
        if record is not None and parts and _is_earlier(record.request, current, prompt):
            diffs = [word_diff(part.recorded, part.requested) for part in parts]
            if all(_stands_in(own, each) for each in diffs):
                changes = tuple(tuple(excerpt(each)) for each in diffs)
                return PromptChange(links=(link,), file=prompt.path, overlay=prompt.overlay, changes=changes)
    return None


def _changed_texts(recorded: Mapping[str, Any], current: Mapping[str, Any]) -> Sequence[RequestDifference]:
    """The texts of messages that changed; none where anything else did."""
    try:
        parts = list(differences(recorded, current))
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):  # on record is the form of no request
        return ()
    return () if any(_TEXT.fullmatch(part.what) is None for part in parts) else parts


def _is_earlier(recorded: Mapping[str, Any], current: Mapping[str, Any], prompt: Prompt) -> bool:
    """Whether no other prompt holds more words of a recorded request than `prompt`, whose request is `current`."""
    own = _words_of(prompt)
    values = _words(*_texts(current)) - own
    fixed = _words(*_texts(recorded)) - values
    held = {True: len(fixed & own), False: 0}
    for name, words in _packaged_words():
        held[name == prompt.name] = max(held[name == prompt.name], len(fixed & words))
    return held[True] >= held[False]


@cache
def _packaged_words() -> Sequence[tuple[str, frozenset[str]]]:
    """The name of each prompt of the package, and its words."""
    return [(prompt.name, _words_of(prompt)) for prompt in PromptLibrary([])]


def _stands_in(own: str, diff: Sequence[Stretch]) -> bool:
    """Whether a prompt's words, with a blank around each, have those that came with the words before and behind them.

    A word before or behind that the prompt does not have is of a value, and does not count.
    """
    runs = [[*run] for _, run in groupby(diff, key=lambda each: each.sign == "same")]
    words = [[word for each in run if each.sign != "old" for word in _WORD.findall(each.text)] for run in runs]
    for run, before, came, behind in zip(runs, [[], *words], words, [*words[1:], []], strict=False):
        if run[0].sign != "same":
            first, last = ([word for word in end if f" {word} " in own] for end in (before[-1:], behind[:1]))
            if f" {' '.join([*first, *came, *last])} " not in own:
                return False
    return True


def _words_of(prompt: Prompt) -> frozenset[str]:
    """The words of a prompt file below its front matter."""
    return _words(_text_of(prompt))


def _text_of(prompt: Prompt) -> str:
    return prompt.path.read_text(encoding="utf-8").partition(prompt.front_matter)[2]


def _texts(request: Mapping[str, Any]) -> Iterator[str]:
    """The texts of the messages of a request in canonical form."""
    for message in request["messages"]:
        yield from (part["text"] for part in message["parts"] if part["type"] == "text")


def _words(*texts: str) -> frozenset[str]:
    return frozenset(word for text in texts for word in _WORD.findall(text))
