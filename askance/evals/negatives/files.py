"""Files of hard negatives: statements to write them for, the authors' shape to keep them in, and what is known of each.

The authors' shape is `{"9/142269.jpg": [[true statements], [options]]}`, the options with the true statements among
them. Beside such a file lies `negatives.jsonl`, a line for each negative: kind, true statement that it was made from,
what was changed, keys of the records that it rests on.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from askance.agents.negatives import NegativeKind, normal
from askance.errors import BadData
from askance.evals.negatives.sidecar import KIND_NAMES, HardNegative, read_sidecar, sidecar_of
from askance.evals.negatives.wording import nearest
from askance.evals.suite.ids import read_ids
from askance.evals.suite.statements import read_qa


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is true of one image."""

    key: str
    true: tuple[str, ...]

    @classmethod
    def of(cls, key: str, texts: Iterable[str]) -> Source:
        """An image and what is true of it, each text once but for case and punctuation; those without a word not."""
        found: dict[str, str] = {}
        for text in texts:
            if text.strip():
                found.setdefault(normal(text), text)
        return cls(key=key, true=tuple(found.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionSet:
    """The options of one image."""

    key: str
    true: tuple[str, ...]
    options: tuple[str, ...]
    """In the order of the file."""
    negatives: tuple[HardNegative, ...]
    """Those of the options that are not true, in their order."""


def read_sources(path: Path, *, ids: Path | None = None, limit: int | None = None) -> tuple[Source, ...]:
    """The true statements in a file of either release or of the same shape.

    Args:
        path: the file; `askance.evals.pittads.statements_in` finds that of a folder.
        ids: a file that lists the images to take.
        limit: images at most, the first in order.

    Raises:
        BadData: no such file, one that hides its answers, or no image that is left.
    """
    file = read_qa(path)
    wanted: Collection[str] = file.records if ids is None else read_ids(ids)
    unknown = [key for key in wanted if key not in file.records]
    if unknown:
        raise BadData(
            f"{len(unknown):,} of the listed images are not in {str(file.path)!r}, such as {unknown[0]!r}.",
            hint="Mend the list, or name the file that they are in.",
        )
    records = [file.records[key] for key in wanted]
    found = [Source.of(each.key, each.true) for each in records if each.true]
    if not found:
        raise BadData(
            f"The file {str(file.path)!r} has no true statements: {file.release}.",
            hint="Name one whose answers are there.",
        )
    return tuple(found[:limit])


def read_negatives(path: Path, *, sidecar: Path | None = None) -> tuple[OptionSet, ...]:
    """The options in a file of the authors' shape, with what is known of each negative.

    Args:
        path: the file.
        sidecar: what is known of the negatives; by default the file's own (`FILE.negatives.jsonl`, without its ending),
            else `negatives.jsonl` beside it, where there is one.

    Raises:
        BadData: no such file, one of another shape, or a sidecar that is none.
    """
    file = read_qa(path)
    if file.shape not in {"train", "question"}:
        raise BadData(
            f"The file {str(path)!r} has no options to choose from: {file.release}.",
            hint='A value reads like [["a true statement"], ["an option", "a true statement"]].',
        )
    found = sidecar or sidecar_of(path)
    known = {} if found is None else read_sidecar(found)
    named = cast("NegativeKind | None", file.hard) if file.hard in KIND_NAMES else None
    return tuple(
        OptionSet(
            key=record.key,
            true=tuple(dict.fromkeys(record.true)),
            options=record.options,
            negatives=tuple(
                known.get((record.key, text)) or _guessed(record.key, text, record.true, kind=named)
                for text in record.negatives
            ),
        )
        for record in file.records.values()
    )


def _guessed(key: str, text: str, true: Sequence[str], *, kind: NegativeKind | None) -> HardNegative:
    place, _ = nearest(text, true)
    return HardNegative(key=key, text=text, kind=kind, source=true[place], place=place)


def write_options(path: Path, options: Iterable[tuple[str, Sequence[str], Sequence[str]]]) -> int:
    """Writes (key, true statements, options) in the authors' shape; returns the number of images."""
    content = {key: [list(true), list(chosen)] for key, true, chosen in options}
    replaced(path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    return len(content)


def write_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Writes a JSONL file."""
    replaced(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def replaced(path: Path, text: str) -> None:
    """Writes `text` to a file that is at no time half written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    part.replace(path)
