"""What is known of hard negatives: lines of `negatives.jsonl` beside the file that they stand in."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.agents.negatives import KINDS, NegativeKind
from askance.errors import BadData
from askance.evals.suite.files import read_text

if TYPE_CHECKING:
    from askance.chat import JsonObject

SIDECAR = "negatives.jsonl"

KIND_NAMES = frozenset[str](kind for kinds in KINDS.values() for kind in kinds)
"""Kinds of negatives, of any domain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HardNegative:
    """One negative of one image, and what is known of where it comes from."""

    key: str
    """The image."""
    text: str
    kind: NegativeKind | None = None
    """None where nothing says so."""
    source: str
    """The true statement that it was made from; where nothing says so, the one that is nearest in wording."""
    place: int = 0
    """Of the statement among the true ones of its image, from 0."""
    replaced: str | None = None
    """What its writer says was replaced, and by what."""
    replacement: str | None = None
    calls: tuple[str, ...] = ()
    """Keys of the records that it rests on."""

    def form(self) -> JsonObject:
        """The line of the sidecar."""
        return {
            "image": self.key,
            "kind": self.kind,
            "source": self.source,
            "place": self.place,
            "text": self.text,
            "replaced": self.replaced,
            "replacement": self.replacement,
            "calls": list(self.calls),
        }


def sidecar_of(path: Path) -> Path | None:
    """The sidecar of a file: its own, else the one beside it; None where there is neither."""
    return next((each for each in (own_sidecar(path), path.parent / SIDECAR) if each.is_file()), None)


def own_sidecar(path: Path) -> Path:
    """The sidecar that is of one file alone."""
    return path.with_name(f"{path.stem}.{SIDECAR}")


def read_sidecar(path: Path) -> dict[tuple[str, str], HardNegative]:
    """What is known of negatives, by image and text; of two lines for one the first holds.

    Raises:
        BadData: no such file, or a line that is none of a sidecar.
    """
    known: dict[tuple[str, str], HardNegative] = {}
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            negative = _of_line(line, where=f"The file {str(path)!r}, line {number}")
            known.setdefault((negative.key, negative.text), negative)
    return known


def _of_line(line: str, *, where: str) -> HardNegative:
    hint = f"A sidecar is what `askance negatives generate` writes as {SIDECAR!r}."
    try:
        form: Any = json.loads(line)
        kind = form["kind"]
        texts = {name: form[name] for name in ("text", "source")}
        optional = {name: form.get(name) for name in ("replaced", "replacement")}
        place, calls = form["place"], tuple(map(str, form["calls"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadData(f"{where}: no line of a sidecar ({type(error).__name__}: {error}).", hint=hint) from error
    known = kind is None or kind in KIND_NAMES
    said = all(isinstance(text, str) for text in texts.values()) and isinstance(form["image"], str)
    told = all(text is None or isinstance(text, str) for text in optional.values())
    if not (known and said and told and isinstance(place, int)):
        raise BadData(f"{where}: a field of a wrong kind, or {kind!r} is no kind of negative.", hint=hint)
    return HardNegative(key=form["image"], kind=kind, place=place, calls=calls, **texts, **optional)
