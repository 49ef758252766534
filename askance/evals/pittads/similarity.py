"""Scoring of filled-in statements: how similar they are to the true ones (section 4, Tables 2 and 8).

It needs a run's folder and nothing else: the vectors are among its records.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from askance.atypicality import Statement
from askance.errors import UsageError
from askance.evals.figures import Metric, mean
from askance.evals.tasks import Scoring
from askance.evals.values import Sample, Score
from askance.models import cosine, get_embedder

if TYPE_CHECKING:
    from askance.models import EmbedderLike, Engine, RecordedEmbedder

EMBEDDER = "st:sentence-transformers/all-mpnet-base-v2"
"""The sentence encoder of the paper."""

ABOVE = (0.7, 0.6, 0.5)
"""Similarities from which on a statement counts as more or less right (Table 2)."""

BEST, MEAN = "", "mean "
"""Beginnings of the names of figures: by the most similar true statement, or by the mean over all of them."""

NOTES = (
    "The relation is given; a sample is an image unless `per` is `relation`",
    "Figures go by the most similar true statement of the relation, those that begin with 'mean' by the mean over all",
    "A non-answer counts as a similarity of 0; the paper leaves non-answers out, as the convention 'answered' does",
)


def scoring(*, engine: Engine, embedder: EmbedderLike = EMBEDDER) -> Scoring:
    """How filled-in statements are scored.

    Args:
        engine: whose records and mode the similarities are worked out by.
        embedder: a spec, an embedder, or the form of one as a run keeps it.
    """
    recorded = get_embedder(embedder, engine=engine)
    return Scoring(
        closing=(recorded,),
        score=partial(_score, recorded),
        metrics=tuple(metric for kind in (BEST, MEAN) for metric in _metrics(kind)),
        if_wrong=lambda _: Score(values=_values([0.0])),
        if_right=lambda _: Score(values=_values([1.0])),
        notes=(*NOTES, f"Embeddings by {recorded.id}"),
    )


def _metrics(kind: str) -> list[Metric]:
    which = "the most similar true statement" if kind == BEST else "all true statements, on average"
    shares = [mean(f"{kind}> {bound}", summary=f"share above {bound}, by {which}") for bound in ABOVE]
    return [mean(f"{kind}similarity", percent=False, summary=f"cosine similarity to {which}"), *shares]


async def _score(embedder: RecordedEmbedder, sample: Sample, value: Any) -> Score:
    """What a statement is worth: how similar it is to the true ones."""
    filled, true = _statement(value).text, [_statement(form).text for form in _true_of(sample)]
    texts = [filled, *true]
    said, *meant = await embedder.embed(texts)
    similarities = [cosine(said, vector) for vector in meant]
    nearest = true[similarities.index(max(similarities))]
    return Score(values=_values(similarities), notes={"nearest": nearest}, calls=embedder.keys(texts))


def _values(similarities: Sequence[float]) -> dict[str, float]:
    by = {BEST: max(similarities), MEAN: math.fsum(similarities) / len(similarities)}
    return {
        name: value
        for kind, similarity in by.items()
        for name, value in (
            (f"{kind}similarity", similarity),
            *((f"{kind}> {bound}", float(similarity > bound)) for bound in ABOVE),
        )
    }


def _true_of(sample: Sample) -> list[Mapping[str, str]]:
    target: object = sample.target
    if not isinstance(target, list) or not target:
        raise UsageError(f"The sample {sample.id!r} has no true statement.", hint="Its target is a list of them.")
    return cast("list[Mapping[str, str]]", target)


def _statement(form: Mapping[str, Any]) -> Statement:
    try:
        return Statement(form["relation"], form["primary"], form["secondary"])
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{str(form)[:80]!r} is no statement.", hint="Give its `relation`, `primary` and `secondary`."
        ) from error
