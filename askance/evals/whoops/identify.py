"""The task of identifying weird images, and its pairs of a weird and a normal image (section 4.1 of the WHOOPS! paper).

The data set does not have the pairs. They are read from a folder that users make:

| in the folder | what it is |
|---|---|
| `normal/NAME.png`, `weird/NAME.png` | pairs by name; without `weird/`, NAME is the id of an image of the data set |
| `NAME_normal.png`, `NAME_weird.png` | the same in one folder; also `NAME-normal.png` and `NAME.normal.png` |
| `pairs.csv` | columns `weird`, `normal` (files of the folder), and if known `id`, `category`, `weird_caption`, |
| | `normal_caption` |
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from askance.agents import IDENTIFICATION_LABELS
from askance.agents.explain import Identifier
from askance.amounts import many, shortened
from askance.data_table import is_below, open_data_table
from askance.errors import BadData, UsageError
from askance.evals.metric import Metric, mean
from askance.evals.sample import Sample, Score
from askance.evals.scorer import Scorer
from askance.evals.suite.context import GOLD
from askance.evals.suite.option_orders import PairMetric, both_right
from askance.evals.suite.selection import FOLDS, fold_of, read_names
from askance.evals.suite.shuffle import stable_number
from askance.evals.whoops.dataset import Whoops
from askance.evals.whoops.layout import has_rows
from askance.evals.whoops.task import WeirdTask
from askance.images import SUFFIXES, Image

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.whoops.images import WeirdImage

NOTES = ("Accuracy is over the images of all pairs, where chance is 50; 'both of a pair' is right for both images",)
PAIRS = "pairs"
"""Folder of the pairs within that of the data, unless another is named."""

_PAIR, _KIND, _RIGHT = "pair", "kind", "accuracy"


class Identify(WeirdTask):
    """Whether an image is weird or normal."""

    name = "whoops/identify"
    agent = Identifier

    data: Path
    """Folder of the data set, with the pairs in `pairs/` of it; or the folder of pairs itself."""
    pairs: Path | None = None
    """Folder of pairs, if it is another one."""
    ids: Path | Sequence[str] | None = None
    """File that lists the pairs."""

    @cached_property
    def subset(self) -> tuple[Pair, ...]:
        """The pairs that are asked about.

        Raises:
            BadData: as `askable`.
            UsageError: there are too few for folds.
        """
        pairs = self.askable
        if self.fold is not None:
            places = fold_of([pair.id for pair in self.known], seed=self.seed)
            pairs = tuple(pair for pair in pairs if places[pair.id] == self.fold)
        return pairs[: self.limit]

    @cached_property
    def known(self) -> tuple[Pair, ...]:
        """The pairs of the folder, listed or not.

        Raises:
            BadData: they cannot be read.
        """
        entries = {entry.id: entry for entry in Whoops.open(self.data).entries} if has_rows(self.data) else {}
        inner = self.data / PAIRS
        return read_pairs(self.pairs or (inner if inner.is_dir() else self.data), entries)

    @cached_property
    def askable(self) -> tuple[Pair, ...]:
        """The pairs of all folds.

        Raises:
            BadData: as `known`, or a listed one is missing.
        """
        pairs = self.known
        if self.ids is not None:
            wanted = read_names(self.ids) if isinstance(self.ids, Path) else self.ids
            unknown = [name for name in wanted if name not in {pair.id for pair in pairs}]
            if unknown:
                raise BadData(
                    f"{len(unknown):,} listed pairs are not there, such as {unknown[0]!r}.", hint="Mend the list."
                )
            pairs = tuple(pair for pair in pairs if pair.id in {*wanted})
        return pairs

    @override
    def _categories(self) -> Sequence[str]:
        return sorted({pair.category for pair in self.subset} - {""})

    @override
    def kept(self) -> JsonObject:
        options = super().kept()
        drawn = self.fold is not None or self.examples.shots > 0
        return {name: value for name, value in options.items() if drawn or name != "seed"}

    @override
    def notes(self) -> tuple[str, ...]:
        return (
            f"{many(len(self.subset), 'pair')}; the paper has {PAPER_PAIRS}, which are not published with the data set",
            *(() if self.fold is None else (f"the test pairs of fold {self.fold} of {FOLDS}, seed {self.seed}",)),
        )

    @override
    def samples(self) -> Sequence[Sample]:
        of_pairs = [sample for pair in self.subset for sample in self._samples_of(pair)]
        every = (
            [sample for pair in self.askable for sample in self._samples_of(pair)] if self.examples.shots else of_pairs
        )
        halves = {pair.id: {"weird": pair.weird, "normal": pair.normal} for pair in self.askable}
        pictures = {each.id: partial(_same, halves[each.group][each.target]) for each in every}
        folds = fold_of([pair.id for pair in self.askable], seed=self.seed) if self.examples.shots else {}
        return self.with_examples(of_pairs, every, folds=folds, pictures=pictures)

    @override
    def answer_of(self, sample: Sample) -> str:
        return str(sample.target)

    @override
    def label_of(self, sample: Sample) -> str:
        return str(sample.target)

    def _samples_of(self, pair: Pair) -> Iterator[Sample]:
        """The two samples of a pair, without their pictures.

        Raises:
            BadData: the context is `gold-caption`, and one of the images has no caption.
        """
        for kind, caption in {"weird": pair.weird_caption, "normal": pair.normal_caption}.items():
            if self.model.context == GOLD and not caption:
                raise BadData(
                    f"The {kind} image of the pair {pair.id!r} has no caption.",
                    hint="Put `weird_caption` and `normal_caption` into pairs.csv.",
                )
            tags: dict[str, Any] = {"kind": kind, **({"category": pair.category} if pair.category else {})}
            yield Sample(
                id=f"{pair.id}#{kind}",
                inputs=self.links_of(caption),
                target=kind,
                group=pair.id,
                tags=tags,
            )

    @override
    def scorer(self) -> Scorer:
        plain = Scorer(
            score=lambda sample, value: _scored(sample, str(value)),
            metrics=(
                mean(_RIGHT, summary="share of images that are told rightly"),
                PairMetric(
                    name="both of a pair",
                    columns=(_PAIR, _KIND, _RIGHT),
                    of_pair=both_right,
                    summary="share of pairs of which both images are told rightly",
                ),
                *(
                    mean(f"accuracy of {kind}", summary=f"share of {kind} images that are told rightly")
                    for kind in IDENTIFICATION_LABELS
                ),
                Metric(
                    name="said weird",
                    columns=("said weird",),
                    better="neither",
                    summary="share of images that are called weird",
                ),
            ),
            if_wrong=lambda sample: _scored(sample, _other(sample)),
            if_right=lambda sample: _scored(sample, str(sample.target)),
            notes=NOTES,
        )
        return self.by_category(plain, _RIGHT)


def _scored(sample: Sample, answer: str) -> Score:
    if answer not in IDENTIFICATION_LABELS:
        raise UsageError(f"The answer {answer!r} is neither weird nor normal.", hint="It is one of the two words.")
    right = float(answer == sample.target)
    return Score(
        values={
            _RIGHT: right,
            f"accuracy of {sample.target}": right,
            "said weird": float(answer == "weird"),
            _PAIR: stable_number("pair", sample.cluster),
            _KIND: float(IDENTIFICATION_LABELS.index(sample.target) + 1),
        }
    )


def _same(image: Image) -> Image:
    return image


def _other(sample: Sample) -> str:
    return next(kind for kind in IDENTIFICATION_LABELS if kind != sample.target)


# --- pairs of a weird image and a normal one, read from a folder ---

PAIRS_FILE = "pairs.csv"
PAPER_PAIRS = 100
"""Pairs of the paper (section 4.1)."""

_NAMED = re.compile(r"(?P<name>.+)[-_.](?P<kind>normal|weird)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A weird image and the normal one that goes with it."""

    id: str
    weird: Image
    normal: Image
    weird_caption: str = ""
    normal_caption: str = ""
    category: str = ""


def read_pairs(folder: str | Path, entries: Mapping[str, WeirdImage] | None = None) -> tuple[Pair, ...]:
    """The pairs in a folder, ordered by id.

    Args:
        folder: in one of the shapes above.
        entries: weird images of the data set by id, from which come captions, categories, and weird images that the
            folder lacks.

    Raises:
        BadData: no such folder, no pair in it, an image without its other half, or a file that is not there.
    """
    place = Path(folder)
    known = entries or {}
    if not place.is_dir():
        raise BadData(f"There is no folder of pairs {str(place)!r}.", hint=_PAIRS_WAY)
    pairs = list((_in_table if (place / PAIRS_FILE).is_file() else _in_folders)(place, known))
    if not pairs:
        raise BadData(f"The folder {str(place)!r} holds no pairs.", hint=_PAIRS_WAY)
    return tuple(sorted(pairs, key=lambda pair: pair.id))


_PAIRS_WAY = (
    "Expected are `normal/NAME.png` and `weird/NAME.png`, `NAME_normal.png` and `NAME_weird.png`, or `pairs.csv`."
)


def _in_folders(folder: Path, known: Mapping[str, WeirdImage]) -> Iterator[Pair]:
    normal, weird = (dict(_of_kind(folder, kind)) for kind in ("normal", "weird"))
    alone = sorted({*weird} - {*normal}) + sorted(
        name for name in {*normal} - {*weird} if not _known_image(known, name)
    )
    if alone:
        raise BadData(
            f"In {str(folder)!r} {many(len(alone), 'image has', 'images have')} no other half, such as {alone[0]!r}.",
            hint=_PAIRS_WAY,
        )
    for name, path in normal.items():
        own = Image.from_path(weird[name]) if name in weird else _known_image(known, name)
        if own is not None:
            yield _pair_of(name, own, Image.from_path(path), entry=known.get(name))


def _of_kind(folder: Path, kind: str) -> Iterator[tuple[str, Path]]:
    """The images of a kind, by the name that pairs share."""
    apart = folder / kind
    paths = sorted(path for path in (apart if apart.is_dir() else folder).iterdir() if path.suffix.lower() in SUFFIXES)
    for path in paths:
        named = _NAMED.fullmatch(path.stem)
        if apart.is_dir():
            yield path.stem, path
        elif named is not None and named["kind"].lower() == kind:
            yield named["name"], path


def _known_image(known: Mapping[str, WeirdImage], name: str) -> Image | None:
    return known[name].load() if name in known else None


def _pair_of(name: str, weird: Image, normal: Image, *, entry: WeirdImage | None, **stated: str) -> Pair:
    """A pair, with what the data set knows of its weird image where the folder does not say."""
    known = {} if entry is None else {"weird_caption": entry.selected_caption, "category": entry.category}
    return Pair(id=name, weird=weird, normal=normal, **{**known, **{key: text for key, text in stated.items() if text}})


def _in_table(folder: Path, known: Mapping[str, WeirdImage]) -> Iterator[Pair]:
    path = folder / PAIRS_FILE
    seen = set[str]()
    for row in open_data_table(path).rows():
        cells = {name: str(cell).strip() for name, cell in row.items()}
        weird, normal = (_file_of(folder, cells.get(kind, ""), row.where) for kind in ("weird", "normal"))
        name = cells.get("id") or weird.stem
        if name in seen:
            raise BadData(f"{row.where}: the pair {name!r} stands there twice.", hint="Give each its own `id`.")
        seen.add(name)
        stated = {key: cells.get(key, "") for key in ("weird_caption", "normal_caption", "category")}
        yield _pair_of(name, Image.from_path(weird), Image.from_path(normal), entry=known.get(name), **stated)


def _file_of(folder: Path, name: str, where: str) -> Path:
    path = folder / name
    if not name or not is_below(path, folder) or not os.path.isfile(path):  # noqa: PTH113  # false for a name too long
        raise BadData(
            f"{where}: {shortened(name, 80)!r} is no file of the folder.",
            hint="Columns: weird, normal; and what is known.",
        )
    return path
