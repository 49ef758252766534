"""What the page's script reads: rows of all samples at once, everything else in blocks for when somebody looks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from askance.amounts import many
from askance.evals.report.blame import detail_of_blame
from askance.evals.report.details import Texts, calls_of, detail_of
from askance.evals.report.document import Block, block

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.report.pictures import Pictures
    from askance.evals.report.report import RunPart
    from askance.evals.run import Answer

BLOCK = 50
"""Samples whose details are read together."""
PICTURE_BLOCK = 50
CALLS_MB = 96.0
"""Megabytes of prompts and replies in a page; the calls of samples beyond it stay in the run's folder."""

WITHOUT = "Left out of this page, which holds the calls of the first samples only; the run's folder has it."


@dataclass(kw_only=True)
class Room:
    """How much of the calls a page still takes."""

    left: float = CALLS_MB * 1e6
    refused: int = 0
    """Samples whose calls had no room."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of it."""
        if not self.refused:
            return ()
        return (f"the calls of {many(self.refused, 'sample')} had no room in this page; they are in the run's folder",)

    def takes(self, form: Mapping[str, Any]) -> bool:
        """Whether there is room for `form`, which is then taken."""
        size = len(json.dumps(form, ensure_ascii=False))
        if size > self.left:
            self.refused += 1
            return False
        self.left -= size
        return True


@dataclass(kw_only=True)
class Shown:
    """Pictures by number, as rows refer to them."""

    pictures: Pictures
    files: Sequence[str] | None = None
    """Addresses of pictures that lie beside the page; None is within it."""
    numbers: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        self.numbers = {digest: number for number, digest in enumerate(self.pictures.jpegs)}

    def blocks(self) -> Iterator[Block]:
        """The pictures that are within the page."""
        if self.files is None:
            uris = [self.pictures.uri(digest) for digest in self.numbers]
            for start in range(0, len(uris), PICTURE_BLOCK):
                yield block(f"pictures-{start // PICTURE_BLOCK}", uris[start : start + PICTURE_BLOCK])

    def settings(self) -> JsonObject:
        """What the script has to know of them."""
        form: JsonObject = {"anyPicture": bool(self.numbers), "pictureBlock": PICTURE_BLOCK}
        return {**form, "files": list(self.files)} if self.files is not None else form


def details_blocks(number: int, part: RunPart, *, texts: Texts, room: Room) -> Iterator[Block]:
    """The details of one run's samples, block by block, each with the calls that they rest on."""
    for start in range(0, len(part.answers), BLOCK):
        some = part.answers[start : start + BLOCK]
        calls: dict[str, Any] = {}
        for answer in some:
            found = calls_of(part, answer, texts)
            new = {key: form for key, form in found.items() if key not in calls}
            if room.takes(new):
                calls.update(new)
        details = [{**detail_of(each), **_blame_of(part, each)} for each in some]
        yield block(f"d-{number}-{start // BLOCK}", {"details": details, "calls": calls})


def _blame_of(part: RunPart, answer: Answer) -> JsonObject:
    several = [] if part.blames is None else [detail_of_blame(each, answer) for each in part.blames.parts]
    found = [each for each in several if each is not None]
    return {"blame": found} if found else {}


def texts_block(texts: Texts) -> Block:
    """The texts that calls have in common."""
    return block("texts", list(texts.numbers))
