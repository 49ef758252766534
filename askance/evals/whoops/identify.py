"""Whether an image is weird or normal, over pairs of both (section 4.1 of the WHOOPS! paper)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.agents import IDENTIFICATION_LABELS, identify_from_description, identify_from_picture
from askance.amounts import many
from askance.chains.catalog import about_described, about_seen
from askance.errors import BadData, UsageError
from askance.evals.choosing import read_ids
from askance.evals.figures import Metric, mean
from askance.evals.solving import ChainSolver
from askance.evals.suite.folds import FOLDS, fold_of
from askance.evals.suite.options import small_lot
from askance.evals.suite.orders import paired
from askance.evals.suite.roles import Roles
from askance.evals.tasks import Scoring, Task, task
from askance.evals.values import Sample, Score
from askance.evals.whoops.categories import by_category
from askance.evals.whoops.check import PAIRS
from askance.evals.whoops.contexts import GOLD, chain_of, view_of
from askance.evals.whoops.dataset import Whoops
from askance.evals.whoops.layouts import has_rows
from askance.evals.whoops.pairs import PAPER, Pair, read_pairs

if TYPE_CHECKING:
    from askance.evals.figures import Matrix
    from askance.evals.whoops.contexts import View
    from askance.images import Image
    from askance.models import ModelLike

NAME = "whoops/identify"

NOTES = ("Accuracy is over the images of all pairs, where chance is 50; 'both of a pair' is right for both images",)
_PAIR, _KIND, _RIGHT = "pair", "kind", "accuracy"


def solver(
    *,
    context: str = "I",
    vlm: ModelLike | None = None,
    llm: ModelLike | None = None,
    combiner: ModelLike | None = None,
) -> ChainSolver:
    """What answers, made without data.

    Args:
        context: what the answering model gets, see `askance.evals.whoops.contexts`.
        vlm: sees the picture.
        llm: reasons over words; by default the VLM does.
        combiner: makes T_V; by default the LLM does.

    Raises:
        UsageError: no such context, or a model is missing.
    """
    return ChainSolver(
        chain_of(
            "identify",
            view_of(context, NAME),
            Roles(vlm=vlm, llm=llm, combiner=combiner),
            seen=(identify_from_picture, about_seen),
            described=(identify_from_description, about_described),
        )
    )


def scoring(categories: Sequence[str] = ()) -> Scoring:
    """How answers are scored."""
    plain = Scoring(
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
        if_wrong=lambda sample: _scored(sample, next(kind for kind in IDENTIFICATION_LABELS if kind != sample.target)),
        if_right=lambda sample: _scored(sample, str(sample.target)),
        notes=NOTES,
    )
    return by_category(plain, categories, _RIGHT)


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


def _both(matrix: Matrix) -> float:
    """Share of pairs that are right twice, of a matrix with pair, kind and right; NaN without pairs."""
    weird, normal = paired(matrix)
    return float((weird * normal).mean()) if len(weird) else float("nan")


@task(NAME, scoring=scoring, solver=solver)
def identify(  # noqa: PLR0913  # the options of a task
    data: Path,
    *,
    pairs: Path | None = None,
    vlm: ModelLike | None = None,
    llm: ModelLike | None = None,
    combiner: ModelLike | None = None,
    context: str = "I",
    ids: Path | None = None,
    limit: int | None = None,
    fold: int | None = None,
    seed: int = 0,
) -> Task:
    """Whether an image is weird or normal.

    Args:
        data: folder of the data set, with the pairs in `pairs/` of it; or the folder of pairs itself.
        pairs: folder of pairs, where it is another (see `askance.evals.whoops.pairs`).
        vlm: sees the picture.
        llm: reasons over words; by default the VLM does.
        combiner: makes T_V; by default the LLM does.
        context: what the answering model gets, see `askance.evals.whoops.contexts`.
        ids: file that lists the pairs.
        limit: pairs at most.
        fold: only the test pairs of this fold, from 0.
        seed: of the folds.

    Raises:
        BadData: the pairs cannot be read, or have no captions for the context `gold-caption`.
        UsageError: an option that cannot be.
    """
    view = view_of(context, NAME)
    roles = Roles(vlm=vlm, llm=llm, combiner=combiner)
    every = _pairs(Path(data), pairs, ids=ids)
    found = every if fold is None else _in_fold(every, fold, seed=seed)
    if limit is not None and limit < 1:
        raise UsageError(f"A limit of {limit} leaves no pair.", hint="Give 1 or more.")
    found = found[:limit]
    split = {} if fold is None else {"fold": fold, "seed": seed}
    samples = [sample for pair in found for sample in samples_of(pair, view)]
    categories = sorted({pair.category for pair in found} - {""})
    return Task(
        samples=samples,
        solver=solver(context=context, vlm=vlm, llm=llm, combiner=combiner),
        label=f"{roles.answering(picture=view.picture).id} ({view.name})",
        options={"context": context, "categories": categories, **split},
        notes=(
            f"{many(len(found), 'pair')}; the paper has {PAPER}, which are not published with the data set",
            *(() if fold is None else (f"the test pairs of fold {fold} of {FOLDS}, seed {seed}",)),
        ),
    )


def _in_fold(pairs: Sequence[Pair], fold: int, *, seed: int) -> tuple[Pair, ...]:
    """The pairs in the test of a fold.

    Raises:
        UsageError: there is no such fold, or there are too few pairs for folds.
    """
    places = fold_of([pair.id for pair in pairs], seed=seed)
    if fold not in range(FOLDS):
        raise UsageError(f"There is no fold {fold}.", hint=f"Folds are 0 to {FOLDS - 1}.")
    return tuple(pair for pair in pairs if places[pair.id] == fold)


def _pairs(data: Path, pairs: Path | None, *, ids: Path | None) -> tuple[Pair, ...]:
    entries = {entry.id: entry for entry in Whoops.open(data).entries} if has_rows(data) else {}
    inner = data / PAIRS
    found = read_pairs(pairs or (inner if inner.is_dir() else data), entries)
    if ids is not None:
        wanted = read_ids(ids)
        unknown = [name for name in wanted if name not in {pair.id for pair in found}]
        if unknown:
            raise BadData(
                f"{len(unknown):,} listed pairs are not there, such as {unknown[0]!r}.", hint="Mend the list."
            )
        found = tuple(pair for pair in found if pair.id in {*wanted})
    return found


def samples_of(pair: Pair, view: View) -> Iterator[Sample]:
    """The two samples of a pair.

    Raises:
        BadData: one of its images has no caption in the context that gives it.
    """
    halves: Mapping[str, tuple[Image, str]] = {
        "weird": (pair.weird, pair.weird_caption),
        "normal": (pair.normal, pair.normal_caption),
    }
    for kind, (image, caption) in halves.items():
        if view.name == GOLD and not caption:
            raise BadData(
                f"The {kind} image of the pair {pair.id!r} has no caption.",
                hint="Put `weird_caption` and `normal_caption` into pairs.csv.",
            )
        tags: dict[str, Any] = {"kind": kind, **({"category": pair.category} if pair.category else {})}
        yield Sample(
            id=f"{pair.id}#{kind}",
            image=image if view.looks else None,
            inputs=view.links_of(caption),
            target=kind,
            group=pair.id,
            tags=tags,
        )
