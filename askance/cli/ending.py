"""The table of pictures without an answer, and what to do about them."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from askance.replay import visible

SHOWN = 20
"""Pictures listed at most; `--json` has them all."""
WIDTH = 100
"""Columns where no terminal says otherwise."""

_NAMES = 36
"""Columns for a name at most."""

WAYS_OUT = {
    "invalid": "`--retry invalid` asks again for replies that could not be read; `--json` shows them as `raw`.",
    "refused": "`--retry refused` asks again for what the model declined; another wording (`askance prompts eject`) "
    "asks anew.",
    "filtered": "`--retry filtered` asks again for what a content filter stopped.",
    "truncated": "Give the model a larger `max_tokens` in askance.toml: what was cut off is then asked anew.",
    "failed": "The same command asks again for what failed and for nothing else.",
    "skipped": "Nothing could be asked: the reason says why.",
    "BadRecord": "`askance cache verify` finds the damaged records, `askance cache prune --damaged` takes them out; "
    "the same command then asks anew.",
    "BadImage": "Mend the files that cannot be used, or leave them out.",
    "ReplayMiss": "Without `--replay` the same command asks for what is not on record.",
}
"""By the outcome of what went wrong, or the error's name where that says more."""


def table_of(lines: Sequence[Mapping[str, Any]]) -> str:
    """Image, outcome and reason of each line, then the ways out."""
    width = shutil.get_terminal_size((WIDTH, 24)).columns if sys.stderr.isatty() else WIDTH
    names = min(_NAMES, max(len(visible(line["image"])) for line in lines[:SHOWN]))
    text = ["Without an answer:", *_rows(lines[:SHOWN], names=names, width=width)]
    if len(lines) > SHOWN:
        text.append(f"  … and {len(lines) - SHOWN:,} more")
    text += _first_difference(lines)
    ways = dict.fromkeys(_way_out(line) for line in lines)
    text += ["What to do:", *(_filled(f"  → {way}", width=width, indent=4) for way in ways)]
    return "\n".join(text)


def _rows(lines: Sequence[Mapping[str, Any]], *, names: int, width: int) -> Iterator[str]:
    indent = names + 4
    for line in lines:
        name, reason = visible(line["image"]), _reason(line).partition("\n")[0]
        if len(name) > names or width - indent < 40:
            yield f"  {name}"
            yield _filled(" " * 6 + reason, width=width, indent=6)
        else:
            yield _filled(f"  {name:<{names}}  {reason}", width=width, indent=indent)


def culprit(line: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The first link that went wrong, with its name; what depends on it was skipped."""
    links: Mapping[str, Mapping[str, Any]] = line["links"]
    wrong = [(link, form) for link, form in links.items() if form["outcome"] not in {"answered", "skipped"}]
    return next(iter(wrong), ("", {"outcome": line["outcome"], "reason": line["reason"]}))


def _reason(line: Mapping[str, Any]) -> str:
    link, form = culprit(line)
    reason = visible(form.get("reason") or "")
    if form.get("error") == "BadImage":
        return reason
    return f"{link} {form['outcome']}: {reason}".lstrip()


def _way_out(line: Mapping[str, Any]) -> str:
    _, form = culprit(line)
    return WAYS_OUT.get(str(form.get("error"))) or WAYS_OUT[form["outcome"]]


def _first_difference(lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What a replay missed, shown for one picture: the others mostly missed the same."""
    for line in lines:
        _, newline, difference = _reason(line).partition("\n")
        if newline:
            yield f"What differs, for {visible(line['image'])}:"
            yield textwrap.indent(difference, "  ")
            return


def _filled(text: str, *, width: int, indent: int) -> str:
    return textwrap.fill(text, width=width, subsequent_indent=" " * indent, break_on_hyphens=False)
