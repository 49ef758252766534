"""The task of captioning a weird picture, a normal and a natural one, and which captions people call right.

It tells whether pictures are hard because they are weird, or because they are synthetic (section 6.1 of the WHOOPS!
paper, Table 3). A *triplet* is a weird image, a synthetic one of such a scene without what is weird, and a photograph.
None are published; they are read from a folder that users make:

| in the folder | what it is |
|---|---|
| `weird/NAME.png`, `normal/NAME.png`, `natural/NAME.png` | a triplet |
| `labels.csv` | columns `id` (such as `NAME#weird`), `caption`, and `right`, which is true or false |

A first run gives the captions. Once people have judged them, the same command makes the figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field
from typing_extensions import override

from askance.amounts import first_few, many
from askance.chains import picture
from askance.data_table import open_data_table
from askance.errors import BadData
from askance.evals.metric import Metric, mean
from askance.evals.part import Question
from askance.evals.sample import Sample, Score
from askance.evals.scorer import Scorer
from askance.evals.suite.any_solver import AnySolver
from askance.evals.suite.context import PICTURE
from askance.evals.suite.shuffle import stable_number
from askance.evals.task import Task
from askance.evals.whoops.captioning import captioner
from askance.evals.whoops.task import WeirdModel
from askance.images import SUFFIXES, Image

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.metric import Matrix

KINDS = ("weird", "normal", "natural")
TRIPLETS, LABELS = "triplets", "labels.csv"
RIGHT = "right captions"
PATTERNS: Mapping[str, tuple[bool, bool, bool]] = {
    "all right": (True, True, True),
    "weird wrong": (False, True, True),
    "all wrong": (False, False, False),
    "normal alone right": (False, True, False),
    "normal wrong": (True, False, True),
    "natural wrong": (True, True, False),
    "natural alone right": (False, False, True),
    "weird alone right": (True, False, False),
}
"""The rows of Table 3 in its order: which captions of a triplet are right, by `KINDS`."""
NOTES = (
    "A share of triplets is of those whose three captions people judged",
    "Captions that nobody judged are in no figure; those of another model need labels of their own",
)

_TRIPLET, _KIND = "triplet", "kind"
_VERDICTS: Mapping[str, bool] = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


class CaptionErrors(Task):
    """Which captions of a weird, a normal and a natural picture are right, as people say."""

    name = "whoops/caption-errors"

    data: Path
    """Folder of triplets, or one that has them in `triplets/`."""
    labels: Path | None = None
    """File with what people say of captions; by default `labels.csv` of the folder, if it is there."""
    limit: int | None = Field(default=None, ge=1, exclude=True)
    """How many triplets at most."""

    model: WeirdModel = WeirdModel(contexts=(PICTURE,))
    """The model that writes the captions."""
    other: AnySolver = AnySolver()
    """A solver in its place."""

    @cached_property
    def folder(self) -> Path:
        """Where the triplets are."""
        inner = self.data / TRIPLETS
        return inner if inner.is_dir() else self.data

    @cached_property
    def people(self) -> Mapping[tuple[str, str], bool]:
        """By sample and caption, whether people call it right."""
        own = self.folder / LABELS
        path = self.labels or (own if own.is_file() else None)
        return {} if path is None else _read_labels(path)

    @override
    def samples(self) -> Sequence[Sample]:
        found = read_triplets(self.folder)
        return [
            Sample(
                id=(key := f"{name}#{kind}"),
                image=image,
                target={"captions": {text: right for (sample, text), right in self.people.items() if sample == key}},
                group=name,
                tags={"kind": kind},
            )
            for name in [*found][: self.limit]
            for kind, image in zip(KINDS, found[name], strict=True)
        ]

    @override
    def question(self) -> Question:
        return Question(name="captioning", agent=captioner, asks=picture)

    @property
    def labelled(self) -> bool:
        """Whether people have judged captions."""
        return bool(self.kept_or("labelled", lambda: bool(self.people)))

    @override
    def kept(self) -> JsonObject:
        return {**super().kept(), "labelled": self.labelled}

    @override
    def notes(self) -> tuple[str, ...]:
        known = {f"{name}#{kind}" for kind, files in _files_of(self.folder).items() for name in files}
        astray = [sample for sample, _ in self.people if known and sample not in known]
        judged = many(len(self.people) - len(astray), "caption") if self.labelled else "no caption"
        told = f"People have judged {judged}; the triplets of the paper are not published"
        if not astray:
            return (told,)
        labels = many(len(astray), "label is", "labels are")
        return told, f"{labels} of no picture that is there, and left out: {first_few([*dict.fromkeys(astray)])}"

    @override
    def scorer(self) -> Scorer:
        return Scorer(
            score=_score,
            metrics=(
                mean(RIGHT, summary="share of captions that people call right"),
                *(mean(f"{RIGHT}: {kind}", summary=f"of those of {kind} pictures") for kind in KINDS),
                *(
                    TripletMetric(
                        name=name,
                        columns=(_TRIPLET, _KIND, RIGHT),
                        pattern=pattern,
                        better="higher" if all(pattern) else "neither",
                        summary=f"share of triplets: {_told(pattern)}",
                    )
                    for name, pattern in PATTERNS.items()
                ),
            ),
            if_wrong=lambda sample: _scored(sample, right=False),
            if_right=lambda sample: _scored(sample, right=True),
            notes=NOTES,
        )


def _told(pattern: Sequence[bool]) -> str:
    return ", ".join(f"{kind} {'right' if right else 'wrong'}" for kind, right in zip(KINDS, pattern, strict=True))


def _score(sample: Sample, value: Any) -> Score:
    """The score of a caption; without values where nobody has judged it."""
    captions: Mapping[str, bool] = sample.target["captions"]
    right = captions.get(str(value).strip())
    return Score(values={}) if right is None else _scored(sample, right=right)


def _scored(sample: Sample, *, right: bool) -> Score:
    kind = str(sample.tags["kind"])
    return Score(
        values={
            RIGHT: float(right),
            f"{RIGHT}: {kind}": float(right),
            _TRIPLET: stable_number("triplet", sample.cluster),
            _KIND: float(KINDS.index(kind)),
        }
    )


def _share(sums: Sequence[float]) -> float:
    return sums[0] / sums[1] if sums[1] else math.nan


@dataclass(frozen=True, kw_only=True)
class TripletMetric(Metric):
    """The share of triplets with one pattern of right captions; a triplet that lacks a caption does not count.

    Its columns are the triplet, the kind of picture (its place in `KINDS`) and whether the caption is right.
    """

    pattern: tuple[bool, bool, bool]
    of_sums: Callable[[Sequence[float]], float] | None = _share

    @override
    def matrix(self, scores: Sequence[Score]) -> Matrix:
        """A row for each sample: whether its triplet has the pattern, and 1, for one of a whole triplet; else 0, 0."""
        rows = super().matrix(scores)
        by_triplet = dict[float, dict[int, int]]()
        for place, (triplet, kind, _) in enumerate(rows.tolist()):
            by_triplet.setdefault(triplet, {})[int(kind)] = place
        values = rows[:, :2] * 0
        for places in by_triplet.values():
            if len(places) == len(KINDS):
                right = tuple(bool(rows[places[kind], 2]) for kind in range(len(KINDS)))
                values[places[0]] = float(right == self.pattern), 1
        return values


def read_triplets(folder: Path) -> dict[str, tuple[Image, ...]]:
    """The pictures of each triplet in a folder, by name, in the order of `KINDS`.

    Raises:
        BadData: there is none, a picture lacks the others of its triplet, or two pictures of a kind have one name.
    """
    by_kind = _files_of(folder)
    names = sorted({name for files in by_kind.values() for name in files})
    lacking = next(((name, kind) for name in names for kind in KINDS if name not in by_kind[kind]), None)
    if lacking is not None or not names:
        what = f"{lacking[0]!r} has no picture in {lacking[1]}/" if lacking else "it holds no triplet"
        raise BadData(
            f"The folder of triplets {str(folder)!r} cannot be used: {what}.",
            hint="Expected are weird/NAME.png, normal/NAME.png and natural/NAME.png, each three of one name.",
        )
    return {name: tuple(Image.from_path(by_kind[kind][name]) for kind in KINDS) for name in names}


def _files_of(folder: Path) -> dict[str, dict[str, Path]]:
    """By kind and name: the files of pictures in a folder of triplets.

    Raises:
        BadData: two of a kind have one name.
    """
    by_kind: dict[str, dict[str, Path]] = {}
    for kind in KINDS:
        place = folder / kind
        by_kind[kind] = files = dict[str, Path]()
        for path in sorted(place.iterdir()) if place.is_dir() else []:
            if path.suffix.lower() in SUFFIXES and files.setdefault(path.stem, path) != path:
                raise BadData(
                    f"The folder of triplets {str(folder)!r} cannot be used: in {kind}/, {files[path.stem].name!r} and "
                    f"{path.name!r} have one name.",
                    hint="Keep one of them, or give one another name.",
                )
    return by_kind


def _read_labels(path: Path) -> dict[tuple[str, str], bool]:
    labels: dict[tuple[str, str], bool] = {}
    for row in open_data_table(path).rows({name: name for name in ("id", "caption", "right")}):
        word = str(row.get("right", "")).strip().lower()
        if word not in _VERDICTS or not {"id", "caption"} <= row.keys():
            raise BadData(f"{row.where}: a row has an id, a caption, and true or false.", hint="Mend the row.")
        key = str(row["id"]).strip(), str(row["caption"]).strip()
        if labels.setdefault(key, _VERDICTS[word]) != _VERDICTS[word]:
            raise BadData(
                f"{row.where}: the caption {key[1]!r} of {key[0]!r} is both right and wrong.",
                hint="Keep one of the rows that say so.",
            )
    return labels
