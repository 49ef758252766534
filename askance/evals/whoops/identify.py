"""Whether an image is weird or normal, over pairs of both (section 4.1 of the WHOOPS! paper)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from askance.agents import IDENTIFICATION_LABELS
from askance.agents.explain import Identifier
from askance.amounts import many
from askance.errors import BadData, UsageError
from askance.evals.metric import Metric, mean
from askance.evals.sample import Sample, Score
from askance.evals.scorer import Scorer
from askance.evals.solver import ChainSolver
from askance.evals.suite.context import GOLD
from askance.evals.suite.option_orders import paired
from askance.evals.suite.selection import FOLDS, fold_of, read_names
from askance.evals.suite.shuffle import small_lot
from askance.evals.whoops.data_check import PAIRS
from askance.evals.whoops.dataset import Whoops
from askance.evals.whoops.layout import has_rows
from askance.evals.whoops.pairs import PAPER, Pair, read_pairs
from askance.evals.whoops.task import WeirdTask, by_category

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.metric import Matrix
    from askance.images import Image

NOTES = ("Accuracy is over the images of all pairs, where chance is 50; 'both of a pair' is right for both images",)
_PAIR, _KIND, _RIGHT = "pair", "kind", "accuracy"


class Identify(WeirdTask):
    """Whether an image is weird or normal."""

    name = "whoops/identify"

    data: Path
    """Folder of the data set, with the pairs in `pairs/` of it; or the folder of pairs itself."""
    pairs: Path | None = None
    """Folder of pairs, where it is another."""
    ids: Path | Sequence[str] | None = None
    """File that lists the pairs."""

    @cached_property
    def subset(self) -> tuple[Pair, ...]:
        """The pairs that are asked about.

        Raises:
            BadData: they cannot be read, or a listed one is not there.
            UsageError: there are too few for folds.
        """
        entries = {entry.id: entry for entry in Whoops.open(self.data).entries} if has_rows(self.data) else {}
        inner = self.data / PAIRS
        found = read_pairs(self.pairs or (inner if inner.is_dir() else self.data), entries)
        if self.ids is not None:
            wanted = read_names(self.ids) if isinstance(self.ids, Path) else self.ids
            unknown = [name for name in wanted if name not in {pair.id for pair in found}]
            if unknown:
                raise BadData(
                    f"{len(unknown):,} listed pairs are not there, such as {unknown[0]!r}.", hint="Mend the list."
                )
            found = tuple(pair for pair in found if pair.id in {*wanted})
        if self.fold is not None:
            places = fold_of([pair.id for pair in found], seed=self.seed)
            found = tuple(pair for pair in found if places[pair.id] == self.fold)
        return found[: self.limit]

    @override
    def _categories(self) -> Sequence[str]:
        return sorted({pair.category for pair in self.subset} - {""})

    @override
    def kept(self) -> JsonObject:
        kept = super().kept()
        return kept if self.fold is not None else {name: value for name, value in kept.items() if name != "seed"}

    @override
    def notes(self) -> tuple[str, ...]:
        return (
            f"{many(len(self.subset), 'pair')}; the paper has {PAPER}, which are not published with the data set",
            *(() if self.fold is None else (f"the test pairs of fold {self.fold} of {FOLDS}, seed {self.seed}",)),
        )

    @override
    def samples(self) -> Sequence[Sample]:
        return [sample for pair in self.subset for sample in self._samples_of(pair)]

    def _samples_of(self, pair: Pair) -> Iterator[Sample]:
        """The two samples of a pair.

        Raises:
            BadData: one of its images has no caption in the context that gives it.
        """
        halves: Mapping[str, tuple[Image, str]] = {
            "weird": (pair.weird, pair.weird_caption),
            "normal": (pair.normal, pair.normal_caption),
        }
        for kind, (image, caption) in halves.items():
            if self.context == GOLD and not caption:
                raise BadData(
                    f"The {kind} image of the pair {pair.id!r} has no caption.",
                    hint="Put `weird_caption` and `normal_caption` into pairs.csv.",
                )
            tags: dict[str, Any] = {"kind": kind, **({"category": pair.category} if pair.category else {})}
            yield Sample(
                id=f"{pair.id}#{kind}",
                image=image if self.view.looks else None,
                inputs=self.links_of(caption),
                target=kind,
                group=pair.id,
                tags=tags,
            )

    @override
    def solver(self) -> ChainSolver:
        return ChainSolver(self.chain("identify", agent=Identifier, subject=self.view.visual_question))

    @override
    def scorer(self) -> Scorer:
        plain = Scorer(
            score=lambda sample, value: _scored(sample, str(value)),
            metrics=(
                mean(_RIGHT, summary="share of images that are told rightly"),
                Metric(
                    name="both of a pair",
                    columns=(_PAIR, _KIND, _RIGHT),
                    statistic=_both,
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
        return by_category(plain, self.categories, _RIGHT)


def _scored(sample: Sample, said: str) -> Score:
    if said not in IDENTIFICATION_LABELS:
        raise UsageError(f"The answer {said!r} is neither weird nor normal.", hint="It is one of the two words.")
    right = float(said == sample.target)
    return Score(
        values={
            _RIGHT: right,
            f"accuracy of {sample.target}": right,
            "said weird": float(said == "weird"),
            _PAIR: small_lot("pair", sample.cluster),
            _KIND: float(IDENTIFICATION_LABELS.index(sample.target) + 1),
        }
    )


def _other(sample: Sample) -> str:
    return next(kind for kind in IDENTIFICATION_LABELS if kind != sample.target)


def _both(matrix: Matrix) -> float:
    """Share of pairs that are right twice, of a matrix with pair, kind and right; NaN without pairs."""
    weird, normal = paired(matrix)
    return float((weird * normal).mean()) if len(weird) else float("nan")
