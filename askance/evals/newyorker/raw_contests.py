"""What tasks are made of: what people wrote of each cartoon, captions with ratings, and explanations of jokes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from askance.chat import JsonObject
from askance.documents import schema_violation
from askance.errors import BadData
from askance.evals.newyorker.crowd_ratings import CaptionFolder, clean_caption
from askance.evals.suite.files import DataFile
from askance.evals.suite.shuffle import stable_hash

FINALISTS = "official_newyorker_finalists"
HITS = ("description_hit", "link_hit", "links_hit")
"""Lists of what one person after the other wrote; the last two are names of the same."""

_ANNOTATIONS = Path(__file__).with_name("annotations.schema.json")
_EXPLANATIONS = Path(__file__).with_name("explanations.schema.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class CartoonRecord:
    """What the file of annotations says of one contest."""

    contest: int
    finalists: tuple[str, ...]
    """The official finalists that the file has; "UNKNOWN" is none, and NaN in the place of a text is left out."""
    form: JsonObject
    """The record as the file has it, with these finalists."""

    def fixed(self, seed: int) -> JsonObject:
        """The record with one description and one list of links, drawn: as it is for validation and test."""
        notes = dict(cast("Mapping[str, Any]", self.form["mturk_annotations"]))
        for name in notes.keys() & {*HITS}:
            notes[name] = [notes[name][stable_hash(seed, self.contest, "annotation") % len(notes[name])]]
        return {**self.form, "mturk_annotations": notes}


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenExplanation:
    """Why a caption is funny, in the words of a person."""

    contest: int
    caption: str
    """Cleaned."""
    text: str
    tokens: int | None
    """By the tokenizer that the published perplexity counts with; None where the file does not say."""

    def form(self) -> JsonObject:
        """The item in the repository's shape."""
        form: JsonObject = {"caption": self.caption, "contest_number": self.contest, "explanation": self.text}
        return form if self.tokens is None else {**form, "n_expl_toks": self.tokens}


@dataclass(frozen=True, slots=True, kw_only=True)
class RawContests:
    """All that tasks are made of; captions stay on the disk until a contest is read."""

    cartoons: Mapping[int, CartoonRecord] = field(repr=False)
    """By contest, in order."""
    captions: CaptionFolder = field(repr=False)
    explanations: tuple[WrittenExplanation, ...] = field(default=(), repr=False)
    digests: Mapping[str, str]
    """By name the sha256 of each file but those of captions."""

    @classmethod
    def open(cls, *, annotations: Path, captions: Path, explanations: Path | None = None) -> RawContests:
        """Reads the files.

        Args:
            annotations: `all_newyorker_contest_annotations.json`.
            captions: a folder of captions and ratings, see `crowd_ratings`.
            explanations: a file such as `joke_explanations_flat.json`.

        Raises:
            BadData: something is missing, cannot be read, or has another shape.
        """
        files = [path for path in (annotations, explanations) if path is not None]
        return cls(
            cartoons=_cartoons(annotations),
            captions=CaptionFolder.find(captions),
            explanations=() if explanations is None else _explanations(explanations),
            digests={path.name: sha256(DataFile(path).read()).hexdigest() for path in files},
        )


def _cartoons(path: Path) -> dict[int, CartoonRecord]:
    form: Mapping[str, JsonObject] = _read(path, _ANNOTATIONS, "all_newyorker_contest_annotations.json")
    cartoons: dict[int, CartoonRecord] = {}
    for key, record in sorted(form.items(), key=lambda each: int(each[0])):
        contest, listed = int(key), record.get(FINALISTS)
        if contest != record["contest_number"] or contest in cartoons:
            raise BadData(
                f"The file {str(path)!r} has contest {record['contest_number']} under the key {key!r}.",
                hint="Mend the key, or fetch the file again.",
            )
        texts = cast("list[Any]", listed) if isinstance(listed, list) else []
        finalists = tuple(text for text in texts if isinstance(text, str))
        cartoons[contest] = CartoonRecord(
            contest=contest, finalists=finalists, form={**record, FINALISTS: [*finalists]}
        )
    return cartoons


def _explanations(path: Path) -> tuple[WrittenExplanation, ...]:
    rows: Sequence[JsonObject] = _read(path, _EXPLANATIONS, "joke_explanations_flat.json")
    explanations = (
        WrittenExplanation(
            contest=row["contest_number"],
            caption=clean_caption(row["caption"]),
            text=row["explanation"],
            tokens=row.get("n_expl_toks"),
        )
        for row in rows
    )
    return tuple(sorted(explanations, key=lambda each: (each.contest, each.caption, each.text)))


def _read(path: Path, schema: Path, name: str) -> Any:
    form = DataFile(path).json(nan_is_null=True)  # a finalist of contest 592 is NaN
    if (wrong := schema_violation(form, schema, whole="the file")) is not None:
        raise BadData(f"The file {str(path)!r} has another shape: {wrong}.", hint=f"Name one such as {name!r}.")
    return form
