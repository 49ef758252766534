"""Choosing among options: the samples, and the scorer with precision@k, top-k accuracy and errors by kind.

After section 4 of *Benchmarking VLMs' Reasoning About Persuasive Atypical Images*: precision@k = min(k, relevant ones
among the top k predictions) / k, unranked, so that "top k" are the three predictions of an answer; "top-3 acc and
prec@1 are the same" holds for no other reading. Top-k accuracy goes by rank: whether any of the first k predictions is
true. The averages of Table 3 are means of five figures, p@1 to p@3 and top-1 and top-2 accuracy, and those of Table 9
of three, p@1 to p@3.

An image with fewer than three true statements has a ceiling below 100 for p@2 or p@3. It is not lifted, since the
paper's is not; the ceilings stand beside.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from askance.chat import Json
from askance.errors import UsageError
from askance.evals.metric import Metric, mean
from askance.evals.sample import Sample, Score
from askance.evals.scorer import Scorer
from askance.evals.suite.option_orders import ANY, PLACE, PLACES, Orders, order_metrics, order_values, sample_ids
from askance.evals.suite.shuffle import option_order, stable_hash

TRUE, OTHER, UNKNOWN = "true", "other image", "unknown hard negative"
"""Kinds of options beside those of hard negatives; an `other image` option is true of another image."""

COUNT = 3
"""Answers that count, the best first (section 3.2)."""

RANKS = (1, 2, 3)
FIVE = ("p@1", "p@2", "p@3", "acc@1", "acc@2")
"""The figures that Table 3 averages."""

MULTI_NOTES = (
    "Precision@k is min(k, true ones among the first three answers) / k; top-k accuracy goes by rank",
    "'mean of five' is over p@1 to p@3, acc@1 and acc@2 (Table 3), 'mean of precisions' over p@1 to p@3 (Table 9)",
    "Errors are shares of the answers of samples with options of the kind, non-answers left out",
)
SINGLE_NOTES = ("Errors are shares of the answers of samples with options of the kind, non-answers left out",)


def choice_samples(
    sample: Sample, kinds: Mapping[str, str], *, seed: int, orders: Orders = 1, one_true: bool = False
) -> Iterator[Sample]:
    """`sample` with its options, once for each order.

    Args:
        sample: all but options and target; its id is the key of the image.
        kinds: by text of an option its kind, `TRUE` for those that are true. Blank texts are left out.
        seed: of the order of the options.
        orders: 2 gives each sample again with its options the other way round.
        one_true: keeps one of the true options, which the seed decides, in place of all.
    """
    shown = {text: kind for text, kind in kinds.items() if text.strip()}
    true = [text for text, kind in shown.items() if kind == TRUE]
    if one_true and true:
        chosen = min(true, key=lambda text: stable_hash(seed, sample.id, "true", text))
        shown = {text: kind for text, kind in shown.items() if kind != TRUE or text == chosen}
    for order, name in sample_ids(sample.id, orders=orders).items():
        options = option_order([*shown], seed=seed, key=sample.id, order=order)
        of_each = [shown[text] for text in options]
        yield replace(
            sample,
            id=name,
            inputs={**sample.inputs, "options": list(options)},
            target={"true": [n for n, kind in enumerate(of_each, start=1) if kind == TRUE], "kinds": of_each},
            tags={**sample.tags, "order": order} if orders > 1 else sample.tags,
        )


def answers_in(value: Json, count: int) -> list[int]:
    """The chosen numbers in an answer, each once, best first.

    Raises:
        UsageError: the answer is not a number, or list of numbers, from 1 to `count`.
    """
    numbers: list[Any] = list(value) if isinstance(value, list) else [value]
    if not numbers or not all(type(number) is int and 1 <= number <= count for number in numbers):
        raise UsageError(
            f"The answer {value!r} names no options of {count}.", hint="An answer is a list of numbers from 1."
        )
    return list(dict.fromkeys(numbers))


def kinds_in(sample: Sample) -> list[str]:
    """The kind of each option of a sample, in the order in which they are shown."""
    target: Any = sample.target
    return list(target["kinds"])


def texts_of(sample: Sample, numbers: Sequence[int]) -> list[str]:
    """The options with these numbers."""
    return [sample.inputs["options"][number - 1] for number in numbers]


def ranked_values(right: Sequence[bool]) -> dict[str, float]:
    """Precision and accuracy of an answer, from whether each of its predictions is true."""
    hits = sum(right)
    values: dict[str, float] = {f"p@{k}": min(k, hits) / k for k in RANKS}
    values |= {f"acc@{k}": float(any(right[:k])) for k in RANKS}
    return {
        **values,
        "mean of five": math.fsum(values[name] for name in FIVE) / len(FIVE),
        "mean of precisions": math.fsum(values[f"p@{k}"] for k in RANKS) / len(RANKS),
    }


def ceilings(sample: Sample) -> dict[str, float]:
    """The figures of the best possible answer to a sample, as columns of their own."""
    best = ranked_values([True] * min(COUNT, kinds_in(sample).count(TRUE)))
    return {f"ceiling {name}": best[name] for name in ("p@2", "p@3", "mean of five", "mean of precisions")}


def error_values(kinds: Sequence[str], chosen: Sequence[str]) -> dict[str, float]:
    """For each kind of wrong option in `kinds`, its share of the chosen options."""
    counts = Counter(chosen)
    kinds_present = dict.fromkeys(kind for kind in kinds if kind != TRUE)
    return {f"error: {kind}": counts[kind] / len(chosen) for kind in kinds_present}


def place_value(number: int, count: int) -> dict[str, float]:
    """The place of the first answer in the list of options, from 0 to 1."""
    return {PLACE: (number - 1) / (count - 1)} if count > 1 else {}


def score_multi(sample: Sample, value: Json) -> Score:
    """The score of the first three options of an answer."""
    kinds = kinds_in(sample)
    numbers = answers_in(value, len(kinds))[:COUNT]
    chosen = [kinds[number - 1] for number in numbers]
    return Score(
        values={
            **ranked_values([kind == TRUE for kind in chosen]),
            **ceilings(sample),
            **error_values(kinds, chosen),
            **place_value(numbers[0], len(kinds)),
            **order_values(sample, texts_of(sample, numbers)),
        },
        notes=_notes(chosen),
    )


def score_single(sample: Sample, value: Json) -> Score:
    """The score of the first option of an answer."""
    kinds = kinds_in(sample)
    number = answers_in(value, len(kinds))[0]
    chosen = kinds[number - 1]
    return Score(
        values={
            "accuracy": float(chosen == TRUE),
            **error_values(kinds, [chosen]),
            **place_value(number, len(kinds)),
            **order_values(sample, texts_of(sample, [number])),
        },
        notes=_notes([chosen]),
    )


def _notes(chosen: Sequence[str]) -> dict[str, Any]:
    wrong = Counter(kind for kind in chosen if kind != TRUE)
    return {"chosen": list(chosen), **({"errors": dict(sorted(wrong.items()))} if wrong else {})}


def _multi(sample: Sample, *, right: bool) -> Score:
    hits = min(COUNT, kinds_in(sample).count(TRUE)) if right else 0
    values = {**ranked_values([True] * hits), **ceilings(sample)}
    return Score(values={**values, **order_values(sample, ANY if right else math.nan)})


def _single(sample: Sample, *, right: bool) -> Score:
    return Score(values={"accuracy": float(right), **order_values(sample, ANY if right else math.nan)})


def multi_scorer(kinds: Sequence[str], *, orders: int = 1) -> Scorer:
    """The scorer of answers with several options; its first metric is `mean of five`."""
    summaries: Mapping[str, str] = {
        "mean of five": "mean of p@1 to p@3, acc@1 and acc@2, as in Table 3",
        **{f"p@{k}": f"true ones among three answers, of {k}" for k in RANKS},
        **{f"acc@{k}": f"share with a true one among the first {k}" for k in RANKS},
        "mean of precisions": "mean of p@1 to p@3, as in Table 9",
    }
    limits = ("p@2", "p@3", "mean of five", "mean of precisions")
    return Scorer(
        score=score_multi,
        metrics=(
            *(mean(name, summary=summary) for name, summary in summaries.items()),
            *(
                mean(f"ceiling {name}", better="neither", summary=f"{name} of the best answers that there could be")
                for name in limits
            ),
            *error_metrics(kinds),
            PLACES,
            *(order_metrics("mean of five") if orders > 1 else ()),
        ),
        if_wrong=lambda sample: _multi(sample, right=False),
        if_right=lambda sample: _multi(sample, right=True),
        notes=MULTI_NOTES,
    )


def single_scorer(kinds: Sequence[str], *, orders: int = 1, notes: Sequence[str] = ()) -> Scorer:
    """The scorer of answers with one option: accuracy, and which kinds of options mislead."""
    return Scorer(
        score=score_single,
        metrics=(
            mean("accuracy", summary="share of samples whose one answer is true"),
            *error_metrics(kinds),
            PLACES,
            *(order_metrics("accuracy") if orders > 1 else ()),
        ),
        if_wrong=lambda sample: _single(sample, right=False),
        if_right=lambda sample: _single(sample, right=True),
        notes=(*SINGLE_NOTES, *notes),
    )


def error_metrics(kinds: Sequence[str]) -> tuple[Metric, ...]:
    """For each kind of wrong option, the metric of its share of the answers."""
    return tuple(
        Metric(
            name=f"error: {kind}",
            columns=(f"error: {kind}",),
            better="lower",
            summary=f"share of answers that choose a wrong option of the kind {kind!r}",
        )
        for kind in kinds
    )
