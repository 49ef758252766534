"""Rates by judges: the rate of a run, corrected for the errors of its judge, and shares of preferences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from askance import statistics
from askance.errors import UsageError
from askance.evals.judges.scores import JUDGED
from askance.evals.judges.verdicts import digest_of
from askance.statistics import Agreement, ClusteredScores, Estimate, Resampling

if TYPE_CHECKING:
    from askance.agents import Preference, PreferenceValue
    from askance.agents.judge import Position
    from askance.chat import JsonObject
    from askance.evals.judges.card import JudgeCard
    from askance.evals.run import Run
    from askance.evals.sample import SampleResult
    from askance.statistics.clusters import ClusterKey

NEAR = 0.1
"""Two answers are nearly equally long where the shorter has at most this share of words less than the longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedRate:
    """The rate of a run by its judge, as measured and corrected in two ways."""

    measured: Estimate
    rogan_gladen: Estimate
    """Corrected by the errors on the judge's card."""
    powered: Estimate
    """Corrected by labels of answers of this very run; without any it is `no data`."""
    labelled: int
    """Answers of the run with a label."""
    unscored: int
    """Answers and samples without a verdict, which are left out."""
    notes: tuple[str, ...] = ()

    @property
    def ways(self) -> Mapping[str, Estimate]:
        """The rates, by the name of the method."""
        return {
            "as judged": self.measured,
            "Rogan–Gladen": self.rogan_gladen,
            f"prediction-powered, {self.labelled:,} labelled": self.powered,
        }

    def form(self) -> JsonObject:
        """The rates as JSON."""
        return {**asdict(self), "notes": list(self.notes)}


def corrected_rate(card: JudgeCard, run: Run, *, value: str = JUDGED, seed: int = 0) -> CorrectedRate:
    """The rate of `run`, whose answers the judge of `card` has scored.

    Args:
        card: the judge's.
        run: finished or not.
        value: name of the score that is 1 where the judge says yes.
        seed: of the bootstraps.

    Raises:
        UsageError: the run has no such scores, or another judge's.
    """
    scored = [answer for answer in run.answers if answer.score is not None and value in answer.score.values]
    if not scored:
        raise UsageError(
            f"The run {str(run.path)!r} has no score {value!r}.", hint="Name a run whose answers a judge has scored."
        )
    _check_judge(card, run, scored)
    rows = [(answer, float(answer.score.values[value])) for answer in scored if answer.score is not None]
    judged = _scores_of(rows)
    truths = _truths(card)
    labelled = [(answer, score) for answer, score in rows if _key_of(answer) in truths]
    others = [(answer, score) for answer, score in rows if _key_of(answer) not in truths]
    pairs = [pair for pair in card.labelled if pair.says is not None]
    corrected = statistics.clustered_rogan_gladen(
        judged,
        ClusteredScores(scores=[float(bool(pair.says)) for pair in pairs], clusters=[pair.group for pair in pairs]),
        [bool(pair.truth) for pair in pairs],
        seed=seed,
    )
    powered = statistics.prediction_powered_mean(
        [float(truths[_key_of(answer)]) for answer, _ in labelled], _scores_of(labelled), _scores_of(others)
    )
    return CorrectedRate(
        measured=statistics.mean_estimate(judged.scores, judged.clusters, seed=seed, binary=True),
        rogan_gladen=corrected,
        powered=powered,
        labelled=len(labelled),
        unscored=len(run.answers) - len(scored),
        notes=tuple(_notes_on(scored, corrected)),
    )


def _scores_of(rows: Sequence[tuple[SampleResult, float]]) -> ClusteredScores:
    return ClusteredScores(scores=[score for _, score in rows], clusters=[answer.sample.cluster for answer, _ in rows])


def _key_of(answer: SampleResult) -> tuple[str, str]:
    return answer.sample.id, digest_of(str(answer.prediction.value))


def _truths(card: JudgeCard) -> Mapping[tuple[str, str], bool]:
    """By sample and answer, whether people say that it means the same as any of its references."""
    truths: dict[tuple[str, str], bool] = defaultdict(bool)
    for pair in card.labelled:
        if pair.id:
            truths[pair.id, pair.candidate] |= bool(pair.truth)
    return dict(truths)


def _check_judge(card: JudgeCard, run: Run, scored: Sequence[SampleResult]) -> None:
    for answer in scored:
        notes: Mapping[str, Any] = answer.score.notes if answer.score is not None else {}
        judge: Mapping[str, Any] = notes.get("judge") or {}
        if judge.get("digest") != card.digest:
            who = judge.get("judge", "nobody that it names")
            raise UsageError(
                f"The run {str(run.path)!r} was judged by {who}, and the card is that of {card.judge}.",
                hint="Another model, form, temperature or prompt is another judge: make it a card of its own.",
            )


def _notes_on(scored: Sequence[SampleResult], corrected: Estimate) -> list[str]:
    notes: list[str] = []
    if corrected.value is None:
        notes.append(
            "By its card the judge is no better than chance, or one kind of label is missing: the rate cannot be "
            "corrected by Rogan and Gladen."
        )
    if any(len(answer.score.notes.get("references", ())) > 1 for answer in scored if answer.score is not None):
        notes.append(
            "The run's answers are held against several references each and the card's candidates against one. Over "
            "several references false alarms add up, which Rogan and Gladen's correction does not account for."
        )
    return notes


# --- preferences ---


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceFigures:
    """What a judge, a majority of judges, or people prefer over all pairs."""

    a: Estimate
    """How often A wins, of the pairs with a preference."""
    b: Estimate
    tie: Estimate
    flip: Estimate
    """How often the same place won in both orders; all of these are ties. A majority has none."""
    unscored: Estimate
    """Of all pairs with two answers, the share without a preference."""
    wins: Estimate
    """Of the pairs that one side wins, the share that A wins."""
    p: float | None
    """Two-sided, that A and B win equally often: a sign-flip test over whole clusters; None without any win."""
    bounds: tuple[float, float] | None
    """`wins` if B won every pair that is unscored or lacks an answer, and if A did; None without any of the three."""
    first: int
    """How many of the flips are for the answer that stands first."""
    longer: Estimate
    """Of the pairs that one side wins, and whose answers differ in length, how often the longer one wins."""
    level: Estimate
    """`wins` among the pairs whose answers are nearly equally long; see `NEAR`."""

    @property
    def counts(self) -> Mapping[str, int]:
        """How many pairs there are of each kind."""
        shares = {"a": self.a, "b": self.b, "tie": self.tie, "flip": self.flip, "unscored": self.unscored}
        return {name: round((each.value or 0.0) * each.n) for name, each in shares.items()}

    def form(self) -> JsonObject:
        """The figures as JSON."""
        return {"counts": dict(self.counts), **asdict(self), "bounds": self.bounds and list(self.bounds)}


def preference_figures(
    preferences: Sequence[Preference | PreferenceValue | None],
    clusters: Sequence[ClusterKey] | None = None,
    *,
    words: Sequence[tuple[int, int]] | None = None,
    unanswered: int = 0,
    seed: int = 0,
) -> PreferenceFigures:
    """The shares of wins, ties, flips and of what is unscored, with their intervals.

    Args:
        preferences: of pairs of answers: those of `judge_preference`, or what a majority prefers.
        clusters: what each pair belongs to, such as its picture; without, each stands alone.
        words: of each pair, how many words its two answers have; without, nothing is said of length.
        unanswered: how many pairs there are beside these, of which an answer is missing.
        seed: of the bootstraps.

    Raises:
        UsageError: clusters, or counts of words, and preferences differ in number.
    """
    groups = range(len(preferences)) if clusters is None else clusters
    lengths = [(0, 0)] * len(preferences) if words is None else words
    for what, sizes in (("clusters", groups), ("counts of words", lengths)):
        if len(sizes) != len(preferences):
            raise UsageError(
                f"{len(sizes)} {what} are given for {len(preferences)} rows.", hint="Give one for each preference."
            )
    rows = [_Row.of(*row) for row in zip(preferences, groups, lengths, strict=True)]

    def share(says: Callable[[_Row], bool], among: Sequence[_Row]) -> Estimate:
        values, within = [float(says(row)) for row in among], [row.group for row in among]
        return statistics.mean_estimate(values, within, seed=seed, binary=True)

    scored = [row for row in rows if row.value is not None]
    decided = [row for row in scored if row.value != "tie"]
    unlike = [row for row in decided if row.words[0] != row.words[1]]
    level = [row for row in decided if max(row.words) - min(row.words) <= NEAR * max(row.words) and any(row.words)]
    won, lost = sum(row.value == "a" for row in decided), len(rows) - len(scored) + unanswered
    most = len(decided) + lost
    return PreferenceFigures(
        a=share(lambda row: row.value == "a", scored),
        b=share(lambda row: row.value == "b", scored),
        tie=share(lambda row: row.value == "tie", scored),
        flip=share(lambda row: row.flipped is not None, scored),
        unscored=share(lambda row: row.value is None, rows),
        wins=share(lambda row: row.value == "a", decided),
        p=statistics.sign_flip([row.lead for row in scored], [row.group for row in scored], seed=seed)
        if decided
        else None,
        bounds=(won / most, (won + lost) / most) if most else None,
        first=sum(row.flipped == "first" for row in rows),
        longer=share(lambda row: (row.value == "a") == (row.words[0] > row.words[1]), unlike),
        level=share(lambda row: row.value == "a", level),
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """One pair as the figures see it."""

    value: PreferenceValue | None
    group: ClusterKey
    words: tuple[int, int]
    flipped: Position | None = None
    """The place that won in both orders."""

    @classmethod
    def of(cls, preference: Preference | PreferenceValue | None, group: ClusterKey, words: tuple[int, int]) -> _Row:
        if preference is None or isinstance(preference, str):
            return cls(preference, group, words)
        return cls(preference.value, group, words, preference.a_first.value if preference.flipped else None)

    @property
    def lead(self) -> float:
        """1 where A wins, -1 where B does, else 0."""
        return float(self.value == "a") - float(self.value == "b")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceAgreement:
    """How far judges, or people, agree on pairs.

    Of the first two each preference for a side is a label, and ties are none; of the third a tie is a label, too.
    """

    ac1: Agreement
    """Gwet's AC₁ with two categories, the γ of Hessel et al. (2023), Table 3."""
    pairwise: Agreement
    """Share of pairs of raters who prefer the same side."""
    with_ties: Agreement
    """Gwet's AC₁ with three categories."""

    @classmethod
    def of(
        cls, preferences: Sequence[Sequence[PreferenceValue | None]], groups: Sequence[ClusterKey], *, seed: int
    ) -> PreferenceAgreement:
        """That of raters.

        Args:
            preferences: by pair, what each rater prefers.
            groups: by pair, its cluster.
            seed: of the bootstraps.
        """
        resampling = Resampling(seed=seed, clusters=groups)
        sides = [[None if value == "tie" else value for value in row] for row in preferences]
        return cls(
            ac1=statistics.gwet_ac1(sides, resampling=resampling),
            pairwise=statistics.pairwise_agreement(sides, resampling=resampling),
            with_ties=statistics.gwet_ac1(preferences, categories=3, resampling=resampling),
        )

    @property
    def rows(self) -> Mapping[str, Agreement]:
        """The measures, by the names that tables give them."""
        return {"gwet ac1 (γ)": self.ac1, "pairwise": self.pairwise, "ac1, ties too": self.with_ties}

    def form(self) -> JsonObject:
        """The measures as JSON."""
        return asdict(self)
