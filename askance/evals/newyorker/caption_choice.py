"""Which captions of a contest are good, and which "okay" ones stand against them (Hessel et al. 2023, appendix C).

*Good* are the official finalists; where the crowd has rated, three of its five best as well, one of each cluster of
like meaning. *Okay* are, where the crowd has rated, captions of the middle third by mean rating. The authors take okay
captions of earlier contests from those that two T5-Large models do not find bad. These models were not published. Such
captions are therefore left out, unless `unrated` takes them by what a rule says of their form alone (`fault_of`).

Of captions that mean much the same one is kept: 0.7·N clusters of N. A good caption then gets the okay caption that is
nearest in words, characters and punctuation, among the half that is least like it in meaning. Beyond the paper, the
pair is matched on its last mark and on its first letter's case as well, which would give the winner away.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_high, pstdev
from typing import TYPE_CHECKING

from askance import statistics
from askance.agents.negative_writer import normal
from askance.evals.newyorker.crowd_ratings import ContestCaptions, SubmittedCaption, clean_caption
from askance.evals.suite.shuffle import stable_hash
from askance.models.encoders.vectors import cosine_of

if TYPE_CHECKING:
    from askance.evals.newyorker.dataset import WinnerSource
    from askance.evals.newyorker.raw_contests import CartoonRecord
    from askance.models.encoders.search import TextVectors
    from askance.models.encoders.vectors import Half

BEST, OF_THE_BEST = 5, 3
"""The crowd's best, and how many of them are good captions."""
KEPT = 0.7
"""Clusters of like meaning, as a share of the captions."""
MOST = 4_000
"""Captions that are compared in meaning at most; of more, so many are drawn. Half a gigabyte of distances."""
MOST_WORDS = 40
"""Of an okay caption; the longest of 1,934 official finalists has 27."""

_CONTACT = re.compile(r"@|https?:|www\.|\.com\b|\d{3}[-. ]\d{4}", re.IGNORECASE)
_ODD = re.compile(r"[\[\]{}<>|\\^_~*=#]|\s[.,!?;:](?![.\w])")


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodCaption:
    """A caption that is the right answer of items."""

    contest: int
    text: str
    source: WinnerSource


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionChoice:
    """The good captions of a contest and the okay one beside each."""

    contest: int
    good: tuple[GoodCaption, ...]
    okay: Mapping[str, str]
    """By text of a good caption; empty where the contest has no okay captions."""
    why_no_okay: str | None
    """Why some good caption has no okay one beside it."""
    counts: Mapping[str, int]
    """What became of the captions that people sent in."""


def fault_of(text: str) -> str | None:
    """What in the form of a caption gives it away as no finalist; None where nothing does.

    Such captions are left out of the okay ones: with them a model would rank by form alone, and some name people who
    sent them in.
    """
    letters = [letter for letter in text if letter.isalpha()]
    if _CONTACT.search(text):
        return "an address or a number of a telephone"
    if len(text.split()) > MOST_WORDS:
        return f"more than {MOST_WORDS} words"
    if not letters or sum(letter.isupper() for letter in letters) > len(letters) / 2:
        return "capitals or no letters"
    if text.count('"') % 2 or _ODD.search(text):
        return "marks without sense"
    return None


def official_finalists(cartoon: CartoonRecord) -> tuple[GoodCaption, ...]:
    """The official finalists of a contest, cleaned, each once: as a rule three, none where they are not known."""
    texts: dict[str, str] = {}
    for listed in cartoon.finalists:
        if text := clean_caption(listed):
            texts.setdefault(normal(text), text)
    return tuple(GoodCaption(contest=cartoon.contest, text=text, source="official_winner") for text in texts.values())


async def choose_captions(
    contest: int,
    official: Sequence[GoodCaption],
    submitted: ContestCaptions | None,
    *,
    vectors: TextVectors | None,
    seed: int,
    unrated: bool = False,
) -> CaptionChoice:
    """The good captions of a contest, and the okay one beside each.

    Args:
        contest: its number.
        official: its official finalists.
        submitted: what people sent in; None where no file has it.
        vectors: of texts, for what is like in meaning; without it only equal captions are one, and the crowd's three
            best are good.
        seed: of what is drawn.
        unrated: whether okay captions are also taken where nobody rated them.

    Raises:
        CallError: the embedder failed.
    """
    if submitted is None:
        return CaptionChoice(contest=contest, good=tuple(official), okay={}, why_no_okay="no captions", counts={})
    counts = Counter({"sent in": len(submitted.captions)})
    taken = {normal(each.text) for each in official}
    rated, why = _rated(submitted)
    best = [each.text for each in rated if normal(each.text) not in taken][:BEST]
    if rated:
        pool, why = _middle_third([each for each in rated if not each.best_alone])
        counts["in the middle third by rating"] = len(pool)
    else:
        pool, why = ([*submitted.captions], None) if unrated else ([], why)
        counts["without ratings"] = len(pool)
    texts = _usable(pool, taken | {*map(normal, best)}, counts)
    if len(texts) > MOST:
        counts["not compared, as there are too many"] = len(texts) - MOST
        texts = sorted(texts, key=lambda text: stable_hash(seed, contest, "pool", text))[:MOST]

    known: dict[str, Half] = {}
    if vectors is not None and (best or texts):
        compared = [*(each.text for each in official), *best, *texts]
        known = dict(zip(compared, await vectors.of(compared), strict=True))
    crowd = _one_a_cluster(best, OF_THE_BEST, known, seed=seed) if known else best[:OF_THE_BEST]
    good = (*official, *(GoodCaption(contest=contest, text=text, source="crowd_winner") for text in crowd))
    distinct = _one_a_cluster(texts, round(KEPT * len(texts)) or 1, known, seed=seed) if known else texts
    counts["left out as like another in meaning"] = len(texts) - len(distinct)
    okay = _matched(good, distinct, known, seed=seed)
    if why is None and len(okay) < len(good):
        why = "too few okay captions"
    return CaptionChoice(contest=contest, good=good, okay=okay, why_no_okay=why, counts=dict(+counts))


def _rated(submitted: ContestCaptions) -> tuple[list[SubmittedCaption], str | None]:
    """The captions that have votes, the best first, if the votes tell them apart; else none, and why."""
    rated = sorted((each for each in submitted.captions if each.votes is not None), key=_by_rating)
    if not rated:
        return [], "no ratings"
    third = len(rated) // 3
    if _by_rating(rated[third])[0] == _by_rating(rated[-1 - third])[0]:
        return [], "ratings that do not tell its captions apart"
    return rated, None


def _middle_third(rated: Sequence[SubmittedCaption]) -> tuple[list[SubmittedCaption], str | None]:
    """The middle third of captions that stand in the order of their ratings."""
    third = len(rated) // 3
    return [*rated[third : len(rated) - third]], None if rated else "ratings of the best captions alone"


def _by_rating(caption: SubmittedCaption) -> tuple[float, int, str]:
    """Sorts the best first; of captions with one mean, that with more votes."""
    votes = caption.votes
    return (-votes.mean, -votes.count, caption.text) if votes else (0.0, 0, caption.text)


def _usable(pool: Sequence[SubmittedCaption], taken: Collection[str], counts: Counter[str]) -> list[str]:
    """The texts of the pool that can be okay captions; the others are counted."""
    texts: list[str] = []
    for each in pool:
        if normal(each.text) in taken:
            counts["left out as a finalist, or among the crowd's best"] += 1
        elif (fault := fault_of(each.text)) is not None:
            counts[f"left out for {fault}"] += 1
        else:
            texts.append(each.text)
    return texts


def _one_a_cluster(texts: Sequence[str], count: int, known: Mapping[str, Half], *, seed: int) -> list[str]:
    """One text, drawn, of each of `count` clusters of like meaning."""
    numbers = statistics.linkage_clusters([known[text] for text in texts], count)
    drawn: dict[int, str] = {}
    for number, text in sorted(
        zip(numbers, texts, strict=True), key=lambda each: stable_hash(seed, "cluster", each[1])
    ):
        drawn.setdefault(number, text)
    chosen = {*drawn.values()}
    return [text for text in texts if text in chosen]


# --- pairs ---


def _matched(
    good: Sequence[GoodCaption], okay: Sequence[str], known: Mapping[str, Half], *, seed: int
) -> dict[str, str]:
    """For each good caption an okay one of its own that is like it in form, and unlike it in meaning."""
    free = {text: _form(text) for text in okay}
    spreads = [pstdev(column) or 1.0 for column in zip(*free.values(), strict=True)]
    matches: dict[str, str] = {}
    for each in sorted(good, key=lambda each: stable_hash(seed, "pair", each.text)):
        candidates = [*free]
        if known and candidates:
            alike = {text: cosine_of(known[each.text], known[text]) for text in candidates}
            most = median_high(alike.values())
            candidates = [text for text in candidates if alike[text] <= most]
        if not candidates:
            break
        form = _form(each.text)
        distance = {
            text: sum(abs(one - other) / spread for one, other, spread in zip(form, free[text], spreads, strict=True))
            for text in candidates
        }
        nearest = min(candidates, key=lambda text: (distance[text], stable_hash(seed, each.text, text)))
        matches[each.text] = nearest
        del free[nearest]
    return matches


def _form(text: str) -> tuple[float, ...]:
    """Words, characters, punctuation marks; then the last mark and the first letter's case, as numbers."""
    marks = sum(not letter.isalnum() and not letter.isspace() for letter in text)
    last = text[-1:]
    return len(text.split()), len(text), marks, *(float(last == mark) for mark in ".?!"), float(text[:1].islower())
