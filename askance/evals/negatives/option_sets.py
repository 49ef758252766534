"""Files of hard negatives: statements to write them for, options to choose from, and what is known of each negative.

Options are kept in the authors' shape, `{"9/142269.jpg": [[true statements], [options]]}`, with the true statements
among the options. Beside such a file lies a *sidecar*, `negatives.jsonl`, with a line for each negative: its kind, the
true statement that it was made from, what was changed, and the keys of the records that it rests on.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import cast, get_args

from askance.agents.negative_writer import NegativeKind, normal
from askance.chat import JsonObject
from askance.documents import UnreadableDocument, parse_json, schema_violation
from askance.errors import BadData
from askance.evals.negatives.edits import nearest
from askance.evals.run_folder import write_whole
from askance.evals.suite.files import read_text
from askance.evals.suite.selection import read_ids
from askance.evals.suite.statements import read_qa

SIDECAR = "negatives.jsonl"
_SCHEMA = Path(__file__).with_name("sidecar.schema.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrueStatements:
    """What is true of one image."""

    key: str
    """The image."""
    true: tuple[str, ...]

    @classmethod
    def of(cls, key: str, texts: Iterable[str]) -> TrueStatements:
        """An image and what is true of it.

        Empty texts are left out, and so are those that differ from an earlier one only in case and punctuation.
        """
        by_text: dict[str, str] = {}
        for text in texts:
            if text.strip():
                by_text.setdefault(normal(text), text)
        return cls(key=key, true=tuple(by_text.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class HardNegative:
    """One negative of one image, and what is known of where it comes from."""

    key: str
    """The image."""
    kind: NegativeKind | None = None
    """None where it is not known."""
    source: str
    """The true statement that it was made from; if that is not known, the true statement nearest in wording."""
    place: int = 0
    """Of the source among the true statements of its image, from 0."""
    text: str
    replaced: str | None = None
    """Words of the source that its writer says were replaced."""
    replacement: str | None = None
    """Words that its writer says stand in their place."""
    calls: tuple[str, ...] = ()
    """Keys of the records that it rests on."""

    def form(self) -> JsonObject:
        """The line of the sidecar."""
        form: JsonObject = {"image": self.key, **asdict(self), "calls": list(self.calls)}
        del form["key"]
        return form


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionSet:
    """The options of one image."""

    key: str
    """The image."""
    true: tuple[str, ...]
    options: tuple[str, ...]
    """In the order of the file."""
    negatives: tuple[HardNegative, ...]
    """Those of the options that are not true, in their order."""


def read_statements(path: Path, *, ids: Path | None = None, limit: int | None = None) -> tuple[TrueStatements, ...]:
    """The true statements in a file of either release of PittAds, or of the same shape.

    Args:
        path: the file; `askance.evals.pittads.statements_in` finds that of a folder.
        ids: a file that lists the images to take.
        limit: images at most, the first in order.

    Raises:
        BadData: there is no such file, it hides its answers, or no image is left.
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
    statements = [TrueStatements.of(each.key, each.true) for each in records if each.true]
    if not statements:
        raise BadData(
            f"The file {str(file.path)!r} has no true statements: {file.release}.",
            hint="Name one whose answers are there.",
        )
    return tuple(statements[:limit])


def read_negatives(path: Path, *, sidecar: Path | None = None) -> tuple[OptionSet, ...]:
    """The options in a file of the authors' shape, with what is known of each negative.

    Args:
        path: the file.
        sidecar: what is known of the negatives; by default the file's own sidecar (`FILE.negatives.jsonl`, without the
            ending of FILE), else `negatives.jsonl` beside it, where there is one.

    Raises:
        BadData: there is no such file, it has another shape, or the sidecar cannot be read.
    """
    file = read_qa(path)
    if file.shape not in {"train", "question"}:
        raise BadData(
            f"The file {str(path)!r} has no options to choose from: {file.release}.",
            hint='A value reads like [["a true statement"], ["an option", "a true statement"]].',
        )
    sidecar_file = sidecar or sidecar_of(path)
    known = {} if sidecar_file is None else read_sidecar(sidecar_file)
    kind = cast("NegativeKind", file.hard) if file.hard in get_args(NegativeKind) else None
    return tuple(
        OptionSet(
            key=record.key,
            true=tuple(dict.fromkeys(record.true)),
            options=record.options,
            negatives=tuple(
                known.get((record.key, text)) or _guessed(record.key, text, record.true, kind=kind)
                for text in record.negatives
            ),
        )
        for record in file.records.values()
    )


def _guessed(key: str, text: str, true: Sequence[str], *, kind: NegativeKind | None) -> HardNegative:
    place, _ = nearest(text, true)
    return HardNegative(key=key, text=text, kind=kind, source=true[place], place=place)


def write_options(path: Path, options: Iterable[tuple[str, Sequence[str], Sequence[str]]]) -> int:
    """Writes (key, true statements, options) in the authors' shape; returns the number of images.

    Raises:
        StoreError: the file cannot be written.
    """
    content = {key: [list(true), list(chosen)] for key, true, chosen in options}
    write_whole(path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    return len(content)


# --- sidecars ---


def sidecar_of(path: Path) -> Path | None:
    """The sidecar of a file: its own, else the one beside it; None where there is neither."""
    return next((each for each in (own_sidecar(path), path.parent / SIDECAR) if each.is_file()), None)


def own_sidecar(path: Path) -> Path:
    """The sidecar that belongs to one file alone."""
    return path.with_name(f"{path.stem}.{SIDECAR}")


def read_sidecar(path: Path) -> dict[tuple[str, str], HardNegative]:
    """What is known of negatives, by image and text; where two lines are about the same negative, the first holds.

    Raises:
        BadData: there is no such file, or a line is not one of a sidecar.
    """
    known: dict[tuple[str, str], HardNegative] = {}
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            negative = _of_line(line)
        except UnreadableDocument as error:
            raise BadData(
                f"The file {str(path)!r}, line {number}, {error}.",
                hint=f"A sidecar is what `askance negatives generate` writes as {SIDECAR!r}.",
            ) from error
        known.setdefault((negative.key, negative.text), negative)
    return known


def _of_line(line: str) -> HardNegative:
    form = parse_json(line)
    if (wrong := schema_violation(form, _SCHEMA, whole="the line")) is not None:
        raise UnreadableDocument(f"is no line of a sidecar: {wrong}")
    names = (each.name for each in fields(HardNegative))
    known = {name: form[name] for name in names if name in form}
    known |= {"key": form["image"], "calls": tuple(form["calls"])}
    return HardNegative(**known)
