"""Figures of retrieval: what a ranking is worth, what chance is, and hits that a judge takes for right as well.

A sample is a query, such as a picture. Its target has the ids of the entries that are true of it, `{"true": [ids]}`,
and the prediction of a solver has a ranking of entries (`Prediction.ranking`). Every figure is a mean over samples.
What lies behind the end of a ranking counts as not found.

- recall@k is the share of a sample's true entries among the first k, hit@k whether any of them is. A sample with more
  than k true entries cannot have a recall@k of 100; the ceiling stands beside it.
- MRR is the mean of 1 / rank of the first true entry (Voorhees, *The TREC-8 Question Answering Track Report*, 1999).
- MAP is the mean of average precision: the mean, over the true entries of a sample, of the precision at the rank of
  each, 0 for one that is not found (Manning, Raghavan and Schütze, *Introduction to Information Retrieval*, 2008,
  section 8.4).
- nDCG@k is the discounted cumulative gain of the first k, normalized by that of the sample's true entries ranked first
  (Järvelin and Kekäläinen, *Cumulated Gain-Based Evaluation of IR Techniques*, 2002). A true entry gains 1. The
  discount of a rank is log2(rank + 1), as of Burges et al., *Learning to Rank using Gradient Descent*, 2005.

Chance is the exact expectation of each figure for a random order of all entries, in which the number of true ones among
the first k is hypergeometric; nothing is simulated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from math import fsum, log2
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from askance.agents import judge_references
from askance.agents.judge import ReferencesVerdict
from askance.errors import UsageError
from askance.evals.metric import mean
from askance.evals.ranking import texts_of_hits
from askance.evals.sample import Prediction, Sample, Score
from askance.evals.scorer import Scorer
from askance.evals.suite.breakdown import by_tag
from askance.nodes import Result

if TYPE_CHECKING:
    from askance.evals.suite.answer_judge import NotedJudge

RECALLS: Final = (1, 5, 10, 100, 1000)
HITS: Final = (1, 5, 10, 100)
GAINS: Final = 10
"""The k of nDCG@k."""
DEPTH: Final = 1000
"""Ids of a ranking that count."""
HEADLINE: Final = "recall@10"
JUDGED: Final = 10
"""Hits that a judge holds against the true texts."""
JUDGED_HIT: Final = f"judged hit@{JUDGED}"
RESCUED: Final = "rescued by the judge"
PARTED: Final = (HEADLINE, "hit@10", "MRR", "nDCG@10", JUDGED_HIT)
"""Figures that are also given by tag."""

QUESTION: Final = "What does this picture argue for?"
"""What hits and true texts answer, as a judge is told by default."""

Held: TypeAlias = Callable[[Sequence[str], str], Awaitable[ReferencesVerdict]]
Entries: TypeAlias = "int | Callable[[Sample], int]"
"""How many entries could be ranked: for every sample, or for each."""


def true_ids(sample: Sample) -> tuple[str, ...]:
    """The ids of the entries that are true of a sample.

    Raises:
        UsageError: its target has none.
    """
    ids = _listed(sample, "true")
    if not ids or len({*ids}) != len(ids):
        raise UsageError(
            f"The target of the sample {sample.id!r} does not say which entries are true.",
            hint='It is a mapping with their ids, each once: `{"true": ["3f2a…"]}`.',
        )
    return ids


def true_texts(sample: Sample) -> tuple[str, ...]:
    """The texts of the entries that are true of a sample, `{"true": [ids], "texts": [texts]}`; a judge needs them.

    Raises:
        UsageError: its target has none.
    """
    texts = _listed(sample, "texts")
    if not texts:
        raise UsageError(
            f"The target of the sample {sample.id!r} has no texts for a judge to compare with.",
            hint='Give them beside the ids: `{"true": ["3f2a…"], "texts": ["I should …"]}`; or leave the judge out.',
        )
    return texts


def _listed(sample: Sample, name: str) -> tuple[str, ...]:
    """The texts that a target lists under a name; none where it has something else there."""
    target: Any = sample.target
    value: Any = cast("Mapping[str, Any]", target).get(name) if isinstance(target, Mapping) else None
    listed = cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else ()
    return tuple(listed) if all(isinstance(each, str) for each in listed) else ()


# --- what a ranking is worth ---


def ranking_values(ranks: Sequence[int], true: int, *, depth: int = DEPTH) -> dict[str, float]:
    """The values of one ranking.

    Args:
        ranks: of the true entries that it has, from 1, rising.
        true: how many entries are true, at least 1.
        depth: how many ids of a ranking count; figures beyond it are left out.
    """
    within = [rank for rank in ranks if rank <= depth]
    return {
        **{f"recall@{k}": sum(rank <= k for rank in within) / true for k in _within(RECALLS, depth)},
        **{f"hit@{k}": float(any(rank <= k for rank in within)) for k in _within(HITS, depth)},
        "MRR": 1 / within[0] if within else 0.0,
        f"nDCG@{GAINS}": _gained(rank for rank in within if rank <= GAINS) / _ideal(true),
        "MAP": fsum(hits / rank for hits, rank in enumerate(within, start=1)) / true,
    }


def ceilings(true: int, *, depth: int = DEPTH) -> dict[str, float]:
    """The highest recall@k that any ranking could have, as columns of their own."""
    return {f"ceiling recall@{k}": min(k, true) / true for k in _within(RECALLS, depth)}


def _within(numbers: Sequence[int], depth: int) -> Iterator[int]:
    return (k for k in numbers if k <= depth)


def _gained(ranks: Iterator[int]) -> float:
    return fsum(1 / log2(rank + 1) for rank in ranks)


@cache
def _ideal(true: int) -> float:
    """The discounted cumulated gain of the best order."""
    return _gained(iter(range(1, min(true, GAINS) + 1)))


# --- chance ---


@cache
def random_order(entries: int, true: int, *, depth: int = DEPTH) -> Mapping[str, float]:
    """The exact expectation of every figure for a random order of all entries, of which the first `depth` are kept.

    Args:
        entries: how many could be ranked.
        true: how many of them are true.
        depth: ids of a ranking that count.

    Raises:
        UsageError: no true entry, or more than there are entries.
    """
    if not 1 <= true <= entries or depth < 1:
        raise UsageError(
            f"There cannot be {true:,} true ones among {entries:,} entries, of which {depth:,} are kept.",
            hint="Give at least one true entry, no more than there are entries, and keep at least one.",
        )
    length = min(depth, entries)
    first = [*islice(_first_true(entries, true), length)]
    others = (true - 1) / (entries - 1) if entries > 1 else 0.0
    gained = _gained(iter(range(1, min(GAINS, length) + 1)))
    return {
        **{f"recall@{k}": min(k, entries) / entries for k in _within(RECALLS, depth)},
        **{f"hit@{k}": fsum(first[:k]) for k in _within(HITS, depth)},
        "MRR": fsum(share / rank for rank, share in enumerate(first, start=1)),
        f"nDCG@{GAINS}": true / entries * gained / _ideal(true),
        # At each rank: an entry is true, and with it so many of those before it, as a share of the rank.
        "MAP": fsum((1 + (rank - 1) * others) / rank for rank in range(1, length + 1)) / entries,
    }


def _first_true(entries: int, true: int) -> Iterator[float]:
    """By rank, from 1, the probability that the first true entry stands there."""
    share = true / entries
    for rank in range(1, entries - true + 2):
        yield share
        share *= (entries - true - rank + 1) / (entries - rank) if rank < entries else 0.0


def chance(samples: Sequence[Sample], entries: Entries, *, depth: int = DEPTH) -> dict[str, float]:
    """The mean over `samples` of what a random order would be worth, by figure."""
    counts = [(entries if isinstance(entries, int) else entries(sample), len(true_ids(sample))) for sample in samples]
    of_each = [random_order(among, true, depth=depth) for among, true in counts]
    return {name: fsum(each[name] for each in of_each) / len(of_each) for name in (of_each[0] if of_each else ())}


def chance_note(samples: Sequence[Sample], entries: Entries, *, depth: int = DEPTH) -> str:
    """The exact chance of every figure as a note, in percent, to be read beside the figures."""
    values = chance(samples, entries, depth=depth)
    return (
        f"Chance of a random order, exactly: {', '.join(f'{name} {100 * each:.3g}' for name, each in values.items())}"
    )


# --- scoring ---


def retrieval_scorer(
    *,
    depth: int = DEPTH,
    judge: NotedJudge | None = None,
    question: str = QUESTION,
    tags: Mapping[str, Sequence[Any]] | None = None,
    notes: Sequence[str] = (),
) -> Scorer:
    """The scorer of rankings.

    Args:
        depth: how many ids of a ranking count; figures beyond it are left out.
        judge: adds the figures of `with_judged_hits`.
        question: what hits and true texts answer; the judge is told.
        tags: by name of a tag all of its values, by which the main figures are given apart.
        notes: what else a reader has to know.
    """

    def score(sample: Sample, prediction: Prediction) -> Score:
        true = true_ids(sample)
        ranks = ranks_of(prediction, true)
        values = ranking_values(sorted(ranks.values()), len(true), depth=depth)
        return Score(
            values={**values, **ceilings(len(true), depth=depth)},
            notes={"ranks": {name: ranks.get(name) for name in true}},
        )

    def bound(sample: Sample, *, right: bool) -> Score:
        true = len(true_ids(sample))
        values = ranking_values(range(1, true + 1) if right else (), true, depth=depth)
        return Score(values={**values, **ceilings(true, depth=depth)})

    names = sorted(ranking_values((), 1, depth=depth), key=lambda name: name != HEADLINE)
    scorer = Scorer(
        score=score,
        takes="prediction",
        metrics=(
            *(mean(name, summary=_summary(name)) for name in names),
            *(
                mean(name, better="neither", summary=f"highest {name.removeprefix('ceiling ')} that there could be")
                for name in ceilings(1, depth=depth)
            ),
        ),
        if_wrong=lambda sample: bound(sample, right=False),
        if_right=lambda sample: bound(sample, right=True),
        notes=(
            f"The first {depth:,} of a ranking count; a true one behind them is not found",
            "Figures are means over samples; a ceiling is what the best ranking would have",
            *notes,
        ),
    )
    if judge is not None:
        scorer = with_judged_hits(scorer, judge, question=question)
    known = {metric.name for metric in scorer.metrics}
    for tag, values in (tags or {}).items():
        parted = (name for name in PARTED if name in known)
        scorer = by_tag(scorer, tag, values, *parted, label=lambda value, tag=tag: f"{tag} {value}")
    return scorer


def ranks_of(prediction: Prediction, true: Sequence[str]) -> dict[str, int]:
    """The ranks, from 1, of those of the true ids that a prediction has ranked.

    Raises:
        UsageError: it has no ranking, or the file of its ranking cannot be used.
    """
    if prediction.ranking is None:
        raise UsageError(
            "The solver ranked nothing.", hint="Give `Prediction(ranking=Ranking(ids, scores))`, or another scorer."
        )
    wanted = {*true}
    return {name: rank for rank, name in enumerate(prediction.ranking.ids, start=1) if name in wanted}


_SUMMARIES: Final[Mapping[str, str]] = {
    "MRR": "one by the rank of the first true entry",
    "MAP": "mean over the true entries of the precision at the rank of each",
    f"nDCG@{GAINS}": f"gain of the first {GAINS}, discounted by rank, by that of the best order",
}


def _summary(name: str) -> str:
    what, _, k = name.partition("@")
    if what == "recall":
        return f"share of the true entries among the first {int(k):,}"
    return _SUMMARIES.get(name) or f"share of samples with a true entry among the first {int(k):,}"


# --- hits that a judge takes for right as well ---


def with_judged_hits(scorer: Scorer, noted: NotedJudge, *, question: str = QUESTION) -> Scorer:
    """`scorer` with hits that say the same as a true text beside those that are true.

    A statement of another picture often says what a true one says: it is a right answer that counts as wrong. The judge
    is asked about each of the first ten hits that is not true, beside each of the true texts. It reads the text of a
    hit in the prediction's value, a list of objects with `id` and `text`, and the true texts in the sample's target,
    `{"true": [ids], "texts": [texts]}`. A sample of which nothing is right, with a hit that has no verdict, has no
    score.

    Args:
        scorer: of rankings.
        noted: the judge, with the note on it.
        question: what hits and true texts answer; the judge is told.
    """
    held = partial(judge_references, noted.judge, question=question)

    async def score(sample: Sample, prediction: Prediction) -> Score:
        ranked = scorer.score(sample, prediction)
        plain = ranked if isinstance(ranked, Score) else await ranked
        judged = await _judged_hits(sample, prediction, held)
        return Score(
            values={**plain.values, **judged.values},
            notes={**plain.notes, **judged.notes, "judge": noted.note.form()},
            calls=(*plain.calls, *judged.calls),
        )

    def questions(sample: Sample) -> int:
        return JUDGED * len(true_texts(sample))

    def bound(of: Callable[[Sample], Score], *, right: bool) -> Callable[[Sample], Score]:
        more = {JUDGED_HIT: float(right), RESCUED: 0.0}
        return lambda sample: Score(values={**of(sample).values, **more})

    return replace(
        scorer,
        score=score,
        metrics=(
            *scorer.metrics,
            mean(JUDGED_HIT, summary=f"a true entry among the first {JUDGED}, or one that says the same by the judge"),
            mean(RESCUED, better="neither", summary="share of samples whose only right hits are those of the judge"),
        ),
        if_wrong=bound(scorer.if_wrong, right=False),
        if_right=bound(scorer.if_right, right=True),
        judges=(*scorer.judges, noted.judge),
        questions=questions,
        notes=(noted.note.sentence, *scorer.notes),
    )


async def _judged_hits(sample: Sample, prediction: Prediction, held: Held) -> Score:
    """What a judge says of the first hits of a ranking.

    Args:
        sample: with true texts.
        prediction: with a ranking.
        held: holds a text against others.

    Raises:
        CallError: nothing is right, and a hit has no verdict; of the class that stands for the outcome.
        UsageError: the texts of the hits, or of the true entries, are missing.
    """
    true, references = true_ids(sample), true_texts(sample)
    first: Sequence[str] = () if prediction.ranking is None else prediction.ranking.ids[:JUDGED]
    texts = texts_of_hits(prediction.value) or {}
    lacking = next((name for name in first if name not in texts), None)
    if lacking is not None:
        raise UsageError(
            f"The answer to {sample.id!r} has no text of the hit {lacking!r}, which a judge would need.",
            hint="A value is a list of the first hits, each with `id`, `text` and `score`; or leave the judge out.",
        )
    others = [name for name in first if name not in true]
    verdicts_of_hits = await asyncio.gather(*(held(references, texts[name]) for name in others))
    verdicts = tuple(each.any_of for each in verdicts_of_hits)
    combined, hit = ReferencesVerdict(each=verdicts).any_of, len(others) < len(first)
    if others and combined.value is None and not hit:
        lost: Result[Score] = Result(outcome=combined.outcome, reason=combined.reason)
        return lost.unwrap()
    same = combined.value == "true"
    return Score(
        values={JUDGED_HIT: float(hit or same), RESCUED: float(same and not hit)},
        notes={"verdicts": {name: str(verdict) for name, verdict in zip(others, verdicts, strict=True)}},
        calls=tuple(dict.fromkeys(combined.calls)),
    )
