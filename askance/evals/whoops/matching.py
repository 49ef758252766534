"""Telling a detailed caption from one that leaves out what is weird (section 4.2 of the WHOOPS! paper).

Each pair of captions of an image is ranked: by a scorer, which gives both a number, or by a model that chooses one, and
with `orders=2` is asked again with the captions in each other's place. Performance is the share of right rankings. The
paper does not say which pairs those are, so the figures of all three readings stand beside each other:

- all detailed captions with all underspecified ones, 25 pairs an image;
- the selected caption with all underspecified ones, 5 pairs an image;
- captions at the same place of both lists, 5 pairs an image: one annotator wrote both (appendix A.5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from askance.agents import choose_caption, choose_caption_from_picture
from askance.chains import ANSWERS
from askance.chains.catalog import options_question
from askance.errors import BadData, UsageError
from askance.evals.figures import Metric, mean
from askance.evals.solving import ChainSolver
from askance.evals.suite.options import in_order, small_lot
from askance.evals.suite.orders import paired, sample_ids
from askance.evals.suite.roles import Roles
from askance.evals.tasks import Scoring, Task, task
from askance.evals.values import Sample, Score
from askance.evals.whoops.categories import by_category
from askance.evals.whoops.choosing import seen_question
from askance.evals.whoops.contexts import GOLD, View, chain_of, view_of
from askance.evals.whoops.ranking import PairRanker
from askance.evals.whoops.taking import Source, taken

if TYPE_CHECKING:
    from askance.evals.figures import Matrix
    from askance.evals.solving import Solver
    from askance.evals.whoops.entries import Entry
    from askance.models import Engine, Model, ModelLike, ScorerLike

NAME = "whoops/matching"

Pairs: TypeAlias = Literal["all", "selected", "same-place"]
"""Which captions are compared: all, the selected one with all, or those at the same place of both lists."""

RIGHT = "right rankings"
_PAIR, _ORDER = "pair", "order"
_SHARE, _WEIGHT = "right of image", "pairs of image"

NOTES = (
    "A tie is no right ranking; 'per image' gives every image the same weight",
    "Without the picture a trained model reaches 94 in the paper: it learns to prefer detail (Table 2)",
)


def solver(
    *,
    context: str = "I",
    vlm: ModelLike | None = None,
    llm: ModelLike | None = None,
    combiner: ModelLike | None = None,
    scorer: ScorerLike | None = None,
    engine: Engine | None = None,
) -> Solver:
    """What ranks, made without data.

    Args:
        context: what the choosing model gets, see `askance.evals.whoops.contexts`.
        vlm: sees the picture.
        llm: reasons over words; by default the VLM does.
        combiner: makes T_V; by default the LLM does.
        scorer: how well a caption fits the picture; in place of the models.
        engine: whose records and mode the scores go by.

    Raises:
        UsageError: no such context, a model is missing, or there is one beside the scorer.
    """
    if scorer is not None:
        if vlm is not None or llm is not None or context != "I":
            raise UsageError("A scorer ranks by the picture alone.", hint="Leave out the models and the context.")
        return PairRanker(scorer, engine=engine)

    def reader(model: Model) -> Any:
        return choose_caption(model, mode="single")

    def viewer(model: Model) -> Any:
        return choose_caption_from_picture(model, mode="single")

    chain = chain_of(
        "matching",
        view_of(context, NAME, but=(GOLD,)),
        Roles(vlm=vlm, llm=llm, combiner=combiner),
        target=ANSWERS,
        seen=(viewer, seen_question),
        described=(reader, options_question),
    )
    return ChainSolver(chain)


def scoring(categories: Sequence[str] = (), orders: int = 1) -> Scoring:
    """How rankings are scored."""
    both = Metric(
        name="right in both orders",
        columns=(_PAIR, _ORDER, RIGHT),
        statistic=_both,
        summary="share of pairs that are ranked rightly in both orders",
    )
    plain = Scoring(
        score=_score,
        metrics=(
            mean(RIGHT, summary="share of pairs whose detailed caption comes first"),
            Metric(
                name=f"{RIGHT} per image",
                columns=(_SHARE, _WEIGHT),
                of_sums=lambda sums: sums[0] / sums[1] if sums[1] else float("nan"),
                summary="mean over images of the share of right rankings",
            ),
            *(mean(f"{RIGHT}, {which}", summary=f"of the pairs: {words}") for which, words in _READINGS.items()),
            *((both,) if orders > 1 else ()),
            Metric(name="ties", columns=("ties",), better="lower", summary="share of pairs with equal scores"),
        ),
        if_wrong=lambda sample: Score(values=_values(sample, right=0.0)),
        if_right=lambda sample: Score(values=_values(sample, right=1.0)),
        notes=NOTES,
    )
    return by_category(plain, categories, RIGHT)


_READINGS: Mapping[str, str] = {
    "selected caption": "the selected caption with each underspecified one",
    "same place": "captions at the same place of both lists",
}


def _score(sample: Sample, value: Any) -> Score:
    """What a ranking is worth: a list with the number of the better caption, or an empty one for a tie."""
    numbers: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    if len(numbers) > 1 or any(number not in {1, 2} for number in numbers):
        raise UsageError(f"The answer {value!r} is no ranking of two captions.", hint="It is [1], [2] or [] for a tie.")
    right = float(numbers == sample.target["true"])
    return Score(values={**_values(sample, right=right), "ties": float(not numbers)})


def _values(sample: Sample, *, right: float) -> dict[str, float]:
    told: Mapping[str, Any] = sample.target
    order = sample.tags.get("order")
    pair = {} if order is None else {_PAIR: small_lot("pair", told["pair"]), _ORDER: float(order)}
    return {
        RIGHT: right,
        _SHARE: right / told["pairs"],
        _WEIGHT: 1 / told["pairs"],
        **{f"{RIGHT}, {which}": right for which in _READINGS if which in told["readings"]},
        **pair,
    }


def _both(matrix: Matrix) -> float:
    """Share of pairs that are right twice, of a matrix with pair, order and right; NaN without pairs."""
    first, second = paired(matrix)
    return float((first * second).mean()) if len(first) else float("nan")


@task(NAME, scoring=scoring, solver=solver)
def matching(  # noqa: PLR0913  # the options of a task
    data: Path,
    *,
    scorer: ScorerLike | None = None,
    vlm: ModelLike | None = None,
    llm: ModelLike | None = None,
    combiner: ModelLike | None = None,
    context: str = "I",
    pairs: Pairs = "all",
    orders: int | None = None,
    ids: Path | None = None,
    limit: int | None = None,
    fold: int | None = None,
    seed: int = 0,
    engine: Engine | None = None,
) -> Task:
    """Which of two captions tells what is weird about an image.

    Args:
        data: folder of the data set.
        scorer: how well a caption fits the picture; in place of the models.
        vlm: sees the picture.
        llm: reasons over words; by default the VLM does.
        combiner: makes T_V; by default the LLM does.
        context: what the choosing model gets, see `askance.evals.whoops.contexts`.
        pairs: `all` captions with all, the `selected` caption with all, or those at the `same-place`.
        orders: 2 asks again with the captions in each other's place, which is the default for models.
        ids: file that lists the images.
        limit: images at most.
        fold: only the test images of this fold, from 0.
        seed: of the order of captions and of the folds.
        engine: whose records and mode the scores go by.

    Raises:
        BadData: the data lack what the task needs.
        UsageError: an option that cannot be.
    """
    if pairs not in get_args(Pairs):
        raise UsageError(f"There are no pairs {pairs!r}.", hint=f"Choose one of {', '.join(get_args(Pairs))}.")
    view = view_of(context, NAME, but=(GOLD,))
    ranks = solver(context=context, vlm=vlm, llm=llm, combiner=combiner, scorer=scorer, engine=engine)
    times = orders if orders is not None else 1 if scorer is not None else 2
    source = Source(data=Path(data), ids=ids, limit=limit, fold=fold, seed=seed)
    found = taken(source, view, "captions", "underspecified")
    samples: list[Sample] = []
    for entry in found.entries:
        samples += samples_of(entry, view, pairs=pairs, orders=times, seed=seed, tags=found.tags(entry))
    if not samples:
        raise BadData(f"No image of {str(data)!r} has two captions that differ.", hint="Choose other `pairs`.")
    who = ranks.scorer.form() if isinstance(ranks, PairRanker) else None
    label = ranks.label if isinstance(ranks, PairRanker) else str(_answering(vlm, llm, view))
    return Task(
        samples=samples,
        solver=ranks,
        label=f"{label} ({view.name})",
        options={
            **source.form(),
            "context": context,
            "pairs": pairs,
            "orders": times,
            "categories": list(found.categories),
            **({} if who is None else {"scorer": who}),
        },
        notes=found.notes,
    )


def _answering(vlm: ModelLike | None, llm: ModelLike | None, view: View) -> object:
    return Roles(vlm=vlm, llm=llm).answering(picture=view.picture).id


def pairs_of(entry: Entry, pairs: Pairs) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    """The pairs of captions of an image: a name, the detailed one, the underspecified one, and the readings it is of.

    Those whose captions are the same are left out.
    """
    detailed = list(entry.captions)
    if pairs == "selected":
        detailed = [entry.selected_caption] if entry.selected_caption else []
    for place, caption in enumerate(detailed):
        for other, less in enumerate(entry.underspecified):
            same = place == other if pairs != "selected" else entry.captions[other : other + 1] == (caption,)
            readings = {"selected caption": caption == entry.selected_caption, "same place": same}
            if caption != less and caption.strip() and (same or pairs != "same-place"):
                yield f"{place}-{other}", caption, less, tuple(name for name, holds in readings.items() if holds)


def samples_of(  # each is part of what a sample says
    entry: Entry, view: View, *, pairs: Pairs, orders: int, seed: int, tags: Mapping[str, Any]
) -> Iterator[Sample]:
    """The samples of one image: one for each pair of captions and each order."""
    found = list(pairs_of(entry, pairs))
    image = view.image_of(entry)
    for pair, detailed, less, readings in found:
        key = f"{entry.id}#{pair}"
        for order, name in sample_ids(key, orders=orders).items():
            shown = in_order((detailed, less), seed=seed, key=key, order=order)
            yield Sample(
                id=name,
                image=image,
                inputs={**view.links_of(""), "options": list(shown)},
                target={
                    "true": [shown.index(detailed) + 1],
                    "pair": key,
                    "pairs": len(found) * orders,
                    "readings": list(readings),
                },
                group=entry.id,
                tags={**tags, **({"order": order} if orders > 1 else {})},
            )
