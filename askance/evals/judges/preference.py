"""Which of two answers judges prefer: a run held against another run, or against its references.

Every pair is judged by every judge, in both orders. Hessel et al. (2023), section 3.2, ask three people about each pair
and take their majority; their Table 3 gives how often A wins, and Gwet's γ as the agreement. Here models judge, and
votes of people on the same pairs say how far these can be trusted (`PreferenceCard`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance import statistics
from askance.agents import Preference
from askance.amounts import first_few, many
from askance.chat import JsonObject, key_of
from askance.documents import schema_violation
from askance.errors import BadData, UsageError
from askance.evals.job import Job
from askance.evals.judges.answer_pairs import PAIR_OUTCOMES, SIDES, AnswerDigest, PreferredPair, majority_of
from askance.evals.judges.card import cut_reason, digest_of_judge, judge_roles, keep_counts
from askance.evals.judges.rates import PreferenceAgreement, PreferenceFigures, preference_figures
from askance.evals.judges.verdicts import CardFigure, coefficient_figure, share_figure
from askance.evals.suite.files import read_json
from askance.statistics import Resampling

if TYPE_CHECKING:
    from askance.agents import PositionVerdict, PreferenceValue
    from askance.agents.judge import PreferenceJudge
    from askance.evals.judges.answer_pairs import AnswerPair, AnswerPairs, PairOutcome
    from askance.evals.judges.labels import Votes

FORMAT = 1
"""Version of the JSON form."""
_SCHEMA = Path(__file__).with_name("preference.schema.json")

NAMED = 5
"""Pairs that a message names at most."""

# --- all of it ---


@dataclass(frozen=True, kw_only=True)
class RunPreferences:
    """How often judges prefer the answers of A, a run, to those of B."""

    task: str
    names: tuple[str, str]
    """Of A and B."""
    judges: tuple[str, ...]
    """Their names, for a person."""
    canonical: tuple[Mapping[str, Any], ...]
    """By judge, everything that decides its preferences, as JSON."""
    pairs: tuple[PreferredPair, ...]
    notes: tuple[str, ...] = ()
    seed: int = 0
    """Of the bootstraps."""
    votes: Mapping[str, str] | None = None
    """`name` and `sha256` of the file of people's votes; None without one."""
    counters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """By model, what its backend computed; see `askance.models.counters`."""

    @cached_property
    def judged(self) -> tuple[PreferredPair, ...]:
        """The pairs with two answers."""
        return tuple(pair for pair in self.pairs if pair.missing is None)

    @property
    def outcomes(self) -> Mapping[PairOutcome, int]:
        """How many pairs have each outcome."""
        counts = Counter(pair.outcome for pair in self.pairs)
        return {outcome: counts[outcome] for outcome in PAIR_OUTCOMES}

    @property
    def groups(self) -> int:
        """How many groups the pairs with two answers are of."""
        return len({pair.group for pair in self.judged})

    @cached_property
    def by_judge(self) -> tuple[PreferenceFigures, ...]:
        """The figures of each judge."""
        return tuple(
            self._figures([pair.preferences[place] for pair in self.judged]) for place in range(len(self.judges))
        )

    @cached_property
    def majority(self) -> PreferenceFigures:
        """The figures of the majority of the judges; with one judge, those of that judge."""
        if len(self.judges) == 1:
            return self.by_judge[0]
        return self._figures([pair.majority for pair in self.judged])

    def _figures(self, preferences: Sequence[Preference | PreferenceValue | None]) -> PreferenceFigures:
        """The figures of what somebody says of each judged pair."""
        pairs = self.judged
        return preference_figures(
            preferences,
            [pair.group for pair in pairs],
            words=[pair.words for pair in pairs],
            unanswered=len(self.pairs) - len(pairs),
            seed=self.seed,
        )

    @cached_property
    def agreement(self) -> PreferenceAgreement | None:
        """How far the judges agree on the pairs that they were asked about; None with one judge."""
        if len(self.judges) == 1:
            return None
        distinct = [pair for pair in self.judged if pair.a != pair.b]
        return PreferenceAgreement.of(
            [pair.values for pair in distinct], [pair.group for pair in distinct], seed=self.seed
        )

    @property
    def unanimous(self) -> Mapping[str, tuple[str, ...]]:
        """By side, the ids of the pairs that every judge prefers it in."""
        return {side: tuple(pair.id for pair in self.judged if {*pair.values} == {side}) for side in SIDES}

    @cached_property
    def card(self) -> PreferenceCard | None:
        """How far the judges agree with people; None without votes."""
        return None if self.votes is None else PreferenceCard(preferences=self)

    @property
    def sentence(self) -> str:
        """The verdict in plain words."""
        figures, (a, b) = self.majority, self.names
        wins = figures.wins
        if wins.value is None or figures.p is None:
            return f"{a} and {b} cannot be told apart: no pair is decided."
        low_high = wins.interval and f"95 % interval {100 * wins.interval.low:.2f} to {100 * wins.interval.high:.2f}; "
        p = "p < 0.001" if figures.p < 0.001 else f"p = {figures.p:.3f}"
        share = f"A wins {100 * wins.value:.2f} % of {many(wins.n, 'decided pair')}"
        evidence = f"{share} ({low_high or ''}sign-flip test over {many(wins.n_clusters, 'group')}, {p})"
        if figures.p >= 0.05 or wins.interval is None or 0.5 in wins.interval:
            return f"{a} and {b} are tied at this size: {evidence}."
        return f"{a if wins.value > 0.5 else b} is preferred to {b if wins.value > 0.5 else a}: {evidence}."

    def form(self) -> JsonObject:
        """All of it as JSON; `from_form` reads it."""
        return {
            "format": FORMAT,
            "task": self.task,
            "a": self.names[0],
            "b": self.names[1],
            "judges": [
                {"name": name, "digest": digest_of_judge(canonical), "canonical": dict(canonical), **figures.form()}
                for name, canonical, figures in zip(self.judges, self.canonical, self.by_judge, strict=True)
            ],
            "outcomes": dict(self.outcomes),
            "majority": self.majority.form(),
            "agreement": None if self.agreement is None else self.agreement.form(),
            "unanimous": {side: list(ids) for side, ids in self.unanimous.items()},
            "sentence": self.sentence,
            **({} if self.card is None else {"votes": dict(self.votes or {}), "card": self.card.form()}),
            "notes": list(self.notes),
            "seed": self.seed,
            "pairs": [pair.form() for pair in self.pairs],
            **({"counters": dict(self.counters)} if self.counters else {}),
        }

    @classmethod
    def from_form(cls, form: Mapping[str, Any]) -> RunPreferences:
        """What a JSON form stands for; its figures are computed again.

        Raises:
            BadData: it is none, one of another version, or one that contradicts itself.
        """
        wrong = schema_violation(form, _SCHEMA, whole="the file") or _contradiction(form)
        if wrong is not None:
            raise BadData(
                f"These are no preferences of judges: {wrong}.", hint="Make them: askance judge prefer … --out FILE"
            )
        return cls(
            task=form["task"],
            names=(form["a"], form["b"]),
            judges=tuple(each["name"] for each in form["judges"]),
            canonical=tuple(each["canonical"] for each in form["judges"]),
            pairs=tuple(PreferredPair.from_form(each) for each in form["pairs"]),
            notes=tuple(form["notes"]),
            seed=form["seed"],
            votes=form.get("votes"),
            counters=form.get("counters", {}),
        )


def _contradiction(form: Mapping[str, Any]) -> str | None:
    """What in a form of the right shape cannot be so."""
    seen: set[str] = set()
    for place, pair in enumerate(form["pairs"]):
        wanted = 0 if pair["a"] is None or pair["b"] is None else len(form["judges"])
        if len(pair["judges"]) != wanted:
            return f"pairs[{place}].judges: {len(pair['judges'])} entries, and not {wanted}"
        if pair["id"] in seen:
            return f"pairs[{place}].id: {pair['id']!r} stands twice"
        seen.add(pair["id"])
        for verdict in (order for each in pair["judges"] for order in (each["a_first"], each["b_first"])):
            if (verdict["value"] is None) == (verdict["outcome"] == "answered"):
                return f"pairs[{place}].judges: {verdict['value']!r} with the outcome {verdict['outcome']!r}"
    return None


def read_preferences(path: str | Path) -> RunPreferences:
    """What `askance judge prefer --out` has written.

    Raises:
        BadData: the file cannot be read, or holds something else.
    """
    form: Any = read_json(Path(path))
    return RunPreferences.from_form(form)


# --- beside people's votes ---


@dataclass(frozen=True, kw_only=True)
class PreferenceCard:
    """How far judges agree with people's votes on the same pairs; people's votes count by their majority."""

    preferences: RunPreferences

    @cached_property
    def pairs(self) -> tuple[PreferredPair, ...]:
        """The judged pairs that people voted on."""
        return tuple(pair for pair in self.preferences.judged if pair.people is not None)

    @cached_property
    def labelled(self) -> tuple[PreferredPair, ...]:
        """Those of which most people prefer one side."""
        return tuple(pair for pair in self.pairs if pair.people != "tie")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the judges and, where there are several, `majority`."""
        judges = self.preferences.judges
        return judges if len(judges) == 1 else (*judges, "majority")

    def said(self, place: int) -> Sequence[PreferenceValue | None]:
        """What a judge prefers in each of the labelled pairs; the place behind the last judge is the majority's."""
        majority = place == len(self.preferences.judges)
        return [pair.majority if majority else pair.values[place] for pair in self.labelled]

    @cached_property
    def figures(self) -> tuple[tuple[CardFigure, ...], ...]:
        """By judge, and for their majority: `agrees` is the share of pairs in which it prefers the side that people do.

        A tie of the judge does not agree; `agrees, decided` leaves ties out. `base rate` is what always preferring the
        side that people prefer more often would come to.
        """
        return tuple(tuple(self._figures(self.said(place))) for place in range(len(self.names)))

    def _figures(self, preferences: Sequence[PreferenceValue | None]) -> Iterator[CardFigure]:
        rows = [(value, pair.people, pair.group) for value, pair in zip(preferences, self.labelled, strict=True)]
        scored = [row for row in rows if row[0] is not None]
        decided = [row for row in scored if row[0] != "tie"]
        side = "a" if 2 * sum(people == "a" for _, people, _ in scored) >= len(scored) else "b"
        seed = self.preferences.seed
        yield share_figure("agrees", [(value == people, group) for value, people, group in scored], seed)
        yield share_figure("agrees, decided", [(value == people, group) for value, people, group in decided], seed)
        yield share_figure("base rate", [(people == side, group) for _, people, group in scored], seed)
        resampling = Resampling(seed=seed, clusters=[group for *_, group in decided])
        both = [(value, people) for value, people, _ in decided]
        yield coefficient_figure("gwet ac1", statistics.gwet_ac1(both, resampling=resampling))
        yield share_figure("unscored", [(value is None, group) for value, _, group in rows], seed)

    def table(self, place: int) -> Mapping[str, Mapping[str, int]]:
        """How many labelled pairs there are by the side that people prefer, and by what a judge says."""
        counts = Counter(
            (pair.people, value or "unscored") for pair, value in zip(self.labelled, self.said(place), strict=True)
        )
        return {side: {verdict: counts[side, verdict] for verdict in ("a", "b", "tie", "unscored")} for side in SIDES}

    @cached_property
    def people(self) -> PreferenceFigures:
        """What people prefer, by their majority; a pair without votes is left out."""
        return preference_figures(
            [pair.people for pair in self.pairs],
            [pair.group for pair in self.pairs],
            words=[pair.words for pair in self.pairs],
            seed=self.preferences.seed,
        )

    @cached_property
    def people_agree(self) -> PreferenceAgreement | None:
        """How far people agree among themselves; None where each pair has one vote."""
        voted = [pair for pair in self.pairs if sum(vote is not None for vote in pair.votes) > 1]
        if not voted:
            return None
        groups = [pair.group for pair in voted]
        return PreferenceAgreement.of([pair.votes for pair in voted], groups, seed=self.preferences.seed)

    @property
    def unanimous(self) -> Mapping[str, tuple[str, ...]]:
        """By side, the ids of the pairs in which every vote of several is for it."""
        several = [pair for pair in self.pairs if len(pair.votes) > 1]
        return {side: tuple(pair.id for pair in several if {*pair.votes} == {side}) for side in SIDES}

    def form(self) -> JsonObject:
        """The card as JSON."""
        return {
            "pairs": len(self.pairs),
            "labelled": len(self.labelled),
            "judges": [
                {
                    "name": name,
                    "figures": {figure.name: asdict(figure) for figure in self.figures[place]},
                    "table": self.table(place),
                }
                for place, name in enumerate(self.names)
            ],
            "people": self.people.form(),
            "people_agree": None if self.people_agree is None else self.people_agree.form(),
            "unanimous": {side: list(ids) for side, ids in self.unanimous.items()},
        }


def votes_by_pair(
    pairs: AnswerPairs, votes: Votes | None
) -> tuple[Mapping[str, tuple[PreferenceValue | None, ...]], list[str]]:
    """People's votes by the id of the pair, and what there is to note.

    Raises:
        BadData: a vote is on a pair that there is not, or on other texts; or none is on a pair with two answers.
    """
    if votes is None:
        return {}, []
    known = {pair.id: pair for pair in pairs.pairs}
    unknown = [name for name in votes.rows if name not in known and name not in {*pairs.left_out}]
    if unknown:
        are, named = "is" if len(unknown) == 1 else "are", first_few([*map(repr, unknown)], NAMED)
        raise BadData(
            f"{many(len(unknown), 'id')} of the votes in {votes.name!r} {are} of no pair: {named}",
            hint=f"Ids are such as {', '.join(repr(pair.id) for pair in pairs.pairs[:3])}; `--json` lists all pairs.",
        )
    for name, row in votes.rows.items():
        for side in SIDES:
            text, shown = row.texts.get(side), getattr(known.get(name), side, None)
            if name in known and text is not None and text != shown:
                raise BadData(
                    f"The votes in {votes.name!r} on {name!r} are on another text {side.upper()} than the pair has.",
                    hint="Collect votes on these very answers; A is the run, B what it is held against.",
                )
    by_pair = {name: row.votes for name, row in votes.rows.items() if name in known}
    usable = {name: pair_votes for name, pair_votes in by_pair.items() if known[name].missing is None}
    if not usable:
        raise BadData(
            f"No vote in {votes.name!r} is on a pair that is judged.", hint="Judge more pairs: a larger `--limit`."
        )
    beyond, single = len(votes.rows) - len(by_pair), len(by_pair) - len(usable)
    tied = sum(
        majority_of([vote for vote in pair_votes if vote is not None]) == "tie" for pair_votes in usable.values()
    )
    notes = [
        *([f"Votes on {many(beyond, 'pair')} beyond the limit are not used."] if beyond else []),
        *([f"Votes on {many(single, 'pair')} without two answers are not used."] if single else []),
        *([f"Pairs on which people's votes tie: {tied:,}; they count among people alone."] if tied else []),
        *votes.notes,
    ]
    return usable, notes


# --- asking ---


def _without_calls(verdict: PositionVerdict) -> PositionVerdict:
    """The verdict with the beginning of its reason, and without its calls."""
    return verdict.model_copy(update={"reason": cut_reason(verdict.reason), "calls": ()})


async def judge_preferences(
    judges: Sequence[PreferenceJudge],
    pairs: AnswerPairs,
    *,
    votes: Votes | None = None,
    seed: int = 0,
    room: Callable[[], int] = lambda: 64,
    on_progress: Callable[[int, int], None] | None = None,
) -> RunPreferences:
    """Asks all `judges` about all `pairs`, in both orders.

    Args:
        judges: one or more, no two alike.
        pairs: from `answer_pairs`.
        votes: of people on the same pairs, for a card.
        seed: of the bootstraps.
        room: how many pairs may be under way at the moment.
        on_progress: called after each pair with the number of pairs that are done, and of all pairs.

    Raises:
        UsageError: there is no judge, or one twice.
        BadData: the votes are not on these pairs.
        StoreError: what was counted cannot be kept.
    """
    job = preference_job(judges, pairs)
    by_pair, about_votes = votes_by_pair(pairs, votes)
    job.keep = lambda pair, said: replace(said, votes=by_pair.get(pair.id, ()))
    job.room, job.on_progress = room, on_progress

    forms = [judge.canonical() for judge in judges]
    key = key_of("preferences", {"judges": forms, "pairs": [_form_of(pair) for pair in pairs.pairs]})
    counts = keep_counts(job, [judge.node for judge in judges], key)
    judged = await job.run()
    return RunPreferences(
        task=pairs.task,
        names=pairs.names,
        judges=tuple(map(str, judges)),
        canonical=tuple(forms),
        pairs=tuple(judged),
        notes=(*pairs.notes, *_notes(judged, judges), *about_votes),
        seed=seed,
        votes=None if votes is None else {"name": votes.name, "sha256": votes.digest},
        counters=counts,
    )


def check_judges(judges: Sequence[PreferenceJudge]) -> None:
    """Refuses judges that are none, or twice the same.

    Raises:
        UsageError: they are.
    """
    if not judges:
        raise UsageError("No judge is named.", hint="Name one or more: --judge openai:gpt-4o.")
    digests = [digest_of_judge(judge.canonical()) for judge in judges]
    twice = next((place for place, digest in enumerate(digests) if digest in digests[:place]), None)
    if twice is not None:
        raise UsageError(
            f"The judge {judges[twice]} is named twice, and would have two votes.",
            hint="Name each judge once; another temperature or prompt makes another judge.",
        )


def preference_job(
    judges: Sequence[PreferenceJudge], pairs: AnswerPairs
) -> Job[AnswerPair, PreferredPair, PreferredPair]:
    """The preferences of all `judges` on all `pairs`, as a job.

    Args:
        judges: one or more, no two alike.
        pairs: from `answer_pairs`.

    Raises:
        UsageError: there is no judge, or one twice.
    """
    check_judges(judges)
    return Job(
        items=pairs.pairs,
        answer=partial(_ask, judges),
        models=[*dict.fromkeys(judge.node.model for judge in judges)],
        roles=[*judge_roles([judge.node for judge in judges])],
        unit="pair",
        units=sum(pair.missing is None for pair in pairs.pairs),
    )


async def _ask(judges: Sequence[PreferenceJudge], pair: AnswerPair) -> PreferredPair:
    about = PreferredPair(id=pair.id, group=pair.group, a=AnswerDigest.of(pair.a), b=AnswerDigest.of(pair.b))
    if pair.a is None or pair.b is None:
        return about
    sample_question, (a, b) = pair.question, (pair.a, pair.b)
    verdicts = await asyncio.gather(
        *(judge.judge(a, b, question=sample_question.text, about=sample_question.about) for judge in judges)
    )
    shortened = (
        Preference(a_first=_without_calls(each.a_first), b_first=_without_calls(each.b_first)) for each in verdicts
    )
    return replace(about, preferences=tuple(shortened))


def _form_of(pair: AnswerPair) -> JsonObject:
    return {"id": pair.id, "a": pair.a, "b": pair.b, "question": pair.question.text, "about": pair.question.about}


def _notes(pairs: Sequence[PreferredPair], judges: Sequence[PreferenceJudge]) -> Iterator[str]:
    """What a reader of the figures has to know."""
    lacking = Counter(pair.missing for pair in pairs if pair.missing is not None)
    for outcome, number in lacking.items():
        yield f"{many(number, 'pair')} with {outcome}: not judged, and in no share; the bounds count them."
    same = sum(pair.a is not None and pair.a == pair.b for pair in pairs)
    if same:
        yield f"{many(same, 'pair')} of the same text twice: a tie that nobody is asked about."
    for place, judge in enumerate(judges):
        lost = [pair.preferences[place] for pair in pairs if pair.preferences and pair.values[place] is None]
        if lost:
            first = lost[0].a_first if lost[0].a_first.value is None else lost[0].b_first
            why = f"one was {first.outcome}: {first.reason.rstrip('.')}"
            yield f"{judge} gave no preference in {many(len(lost), 'pair')}; {why}."
    yield "Judges read words alone: they see no picture."
