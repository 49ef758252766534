"""Pairs of answers that judges compare: of two runs, or of a run and its references; and what was said of each pair."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from askance.agents import PositionVerdict, Preference
from askance.amounts import many
from askance.errors import UsageError
from askance.evals.analysis.compare import common_samples
from askance.evals.judges.scores import references_of
from askance.evals.judges.verdicts import digest_of
from askance.evals.run_tables import names_of
from askance.evals.sample import SampleQuestion, SampleResult
from askance.evals.task_catalog import task_of

if TYPE_CHECKING:
    from askance.agents import PreferenceValue
    from askance.chat import JsonObject
    from askance.evals.run import Run

REFERENCES = "references"
"""Name of what a run is held against where that is no run."""

PairOutcome: TypeAlias = Literal["a", "b", "tie", "unscored", "no answer of a", "no answer of b", "no answers"]
PAIR_OUTCOMES: tuple[PairOutcome, ...] = get_args(PairOutcome)
"""What becomes of a pair: a side wins, neither does, the judges give no preference, or there are not two answers."""
SIDES: tuple[Literal["a"], Literal["b"]] = ("a", "b")


def majority_of(values: Sequence[PreferenceValue | None]) -> PreferenceValue | None:
    """What the majority of judges or people prefers.

    More than half of them must give a preference, or there is none. The side that more than half of these prefer wins;
    otherwise it is a tie.
    """
    cast = [value for value in values if value is not None]
    if 2 * len(cast) <= len(values):
        return None
    won: PreferenceValue | None = next((side for side in SIDES if 2 * cast.count(side) > len(cast)), None)
    return won or "tie"


def _missing(a: object, b: object) -> PairOutcome | None:
    """Which of two answers there are not; None where both are there."""
    if a is not None and b is not None:
        return None
    return "no answers" if a is b else "no answer of a" if a is None else "no answer of b"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPair:
    """Two answers to one sample."""

    id: str
    """The id of the sample; `#2` behind it is its second reference, `~2` its second epoch."""
    group: str
    """Pairs of one group are resampled together."""
    a: str | None
    """None where there is no answer."""
    b: str | None
    question: SampleQuestion

    @property
    def missing(self) -> PairOutcome | None:
        """Which answers there are not; None where both are there."""
        return _missing(self.a, self.b)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPairs:
    """What is judged: the pairs of A, a run, and B, another run or the references."""

    task: str
    names: tuple[str, str]
    """Of A and B."""
    pairs: tuple[AnswerPair, ...]
    left_out: tuple[str, ...] = ()
    """Ids of the pairs beyond a limit."""
    notes: tuple[str, ...] = ()


def answer_pairs(
    run: Run,
    against: Run | None = None,
    *,
    question: str | None = None,
    limit: int | None = None,
    task: str | None = None,
) -> AnswerPairs:
    """The pairs of a run's answers and those of another run, or the run's references.

    Args:
        run: A.
        against: B; None is the references, each of which makes a pair.
        question: what the answers answer; by default what the task says (`Task.question_of`).
        limit: only so many pairs, the first ones.
        task: where the task is defined, if not where the run says.

    Raises:
        UsageError: the runs are of different tasks, have no sample in common, or their answers are no texts; or the run
            has no references.
    """
    runs, notes = (run,) if against is None else (run, against), list[str]()
    try:
        own_task = task_of(run, task).of_run(run.options)
    except UsageError:
        if question is None:
            raise
        own_task, notes = None, ["The task is not found: judges are told the question, and not what it is about."]

    def question_of(*results: SampleResult) -> SampleQuestion:
        questions = [SampleQuestion() if own_task is None else own_task.question_of(each.sample) for each in results]
        about = max((each.about for each in questions), key=len)  # one of two contexts may hold a description
        return SampleQuestion(question or questions[0].text, about)

    if against is None:
        pairs, more = _beside_references(run, question_of)
    else:
        pairs, more = _beside_run(run, against, question_of)
    shown = pairs[:limit]
    notes += more
    notes += [f"The first {len(shown):,} of {many(len(pairs), 'pair')} are judged."] if len(shown) < len(pairs) else []
    names = names_of(runs)
    return AnswerPairs(
        task=run.task,
        names=(names[0], REFERENCES if against is None else names[1]),
        pairs=tuple(shown),
        left_out=tuple(pair.id for pair in pairs[len(shown) :]),
        notes=tuple(notes),
    )


def _beside_run(
    run: Run, against: Run, question_of: Callable[..., SampleQuestion]
) -> tuple[list[AnswerPair], list[str]]:
    common = common_samples((run, against))
    alone = [
        f"{many(number, 'answer')} of {which} {'is' if number == 1 else 'are'} to samples that the other has not."
        for which, number in zip("AB", common.alone, strict=True)
        if number
    ]
    several = len({row[0].epoch for row in common.rows}) > 1
    pairs = [
        AnswerPair(
            id=_name(row[0], several=several),
            group=row[0].sample.cluster,
            a=_answer_text(run, row[0]),
            b=_answer_text(against, row[1]),
            question=question_of(*row),
        )
        for row in common.rows
    ]
    return pairs, alone


def _beside_references(run: Run, question_of: Callable[..., SampleQuestion]) -> tuple[list[AnswerPair], list[str]]:
    if not run.answers:
        raise UsageError(
            f"The run {str(run.path)!r} has no samples yet.", hint="Finish it by the command that began it."
        )
    several = len({result.epoch for result in run.answers}) > 1
    pairs: list[AnswerPair] = []
    without = 0
    for result in run.answers:
        texts = [text for text in references_of(result.sample) if text.strip()]
        without += not texts
        name = _name(result, several=several)
        pairs += [
            AnswerPair(
                id=name if len(texts) == 1 else f"{name}#{place}",
                group=result.sample.cluster,
                a=_answer_text(run, result),
                b=text,
                question=question_of(result),
            )
            for place, text in enumerate(texts, start=1)
        ]
    if not pairs:
        raise UsageError(
            f"No sample of the run {str(run.path)!r} has references to hold its answers against.",
            hint="Hold it against another run of the task: `--against RUN2`.",
        )
    return pairs, [f"{many(without, 'sample')} without references: not judged."] if without else []


def _name(result: SampleResult, *, several: bool) -> str:
    return f"{result.sample.id}~{result.epoch + 1}" if several else result.sample.id


def _answer_text(run: Run, result: SampleResult) -> str | None:
    """The text of an answer; None where there is none.

    Raises:
        UsageError: it is no text.
    """
    value = result.prediction.value
    if not result.prediction.answered or value is None:
        return None
    if not isinstance(value, str):
        raise UsageError(
            f"The answers of the run {str(run.path)!r} are no texts: on {result.sample.id!r} it is {str(value)[:60]!r}",
            hint="Judges compare texts, such as explanations; `askance compare` compares runs by their scores.",
        )
    return value if value.strip() else None


# --- what was said of them ---


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDigest:
    """An answer without its text."""

    sha256: str
    """Of the text, hex."""
    words: int

    @classmethod
    def of(cls, text: str | None) -> AnswerDigest | None:
        """That of a text; None where there is no answer."""
        return None if text is None else cls(sha256=digest_of(text), words=len(text.split()))


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferredPair:
    """A pair without its texts, and what judges and people prefer."""

    id: str
    group: str
    a: AnswerDigest | None
    """None where there is no answer."""
    b: AnswerDigest | None
    preferences: tuple[Preference, ...] = ()
    """By judge; empty where there are not two answers."""
    votes: tuple[PreferenceValue | None, ...] = ()
    """Of people; None where one said nothing."""

    @property
    def missing(self) -> PairOutcome | None:
        """Which answers there are not; None where both are there."""
        return _missing(self.a, self.b)

    @property
    def words(self) -> tuple[int, int]:
        """How many words the two answers have."""
        return (0 if self.a is None else self.a.words, 0 if self.b is None else self.b.words)

    @property
    def values(self) -> tuple[PreferenceValue | None, ...]:
        """What each judge prefers; None is unscored."""
        return tuple(each.value for each in self.preferences)

    @property
    def majority(self) -> PreferenceValue | None:
        """What the majority of the judges prefers."""
        return majority_of(self.values)

    @property
    def outcome(self) -> PairOutcome:
        """What becomes of the pair, by the majority of the judges."""
        return self.missing or self.majority or "unscored"

    @property
    def people(self) -> PreferenceValue | None:
        """What the majority of the people who voted prefers; None where nobody did."""
        return majority_of([vote for vote in self.votes if vote is not None])

    def form(self) -> JsonObject:
        """The pair as JSON."""
        return {
            "id": self.id,
            "group": self.group,
            "a": None if self.a is None else asdict(self.a),
            "b": None if self.b is None else asdict(self.b),
            "outcome": self.outcome,
            "judges": [
                {"value": each.value, "a_first": _order_form(each.a_first), "b_first": _order_form(each.b_first)}
                for each in self.preferences
            ],
            **({"votes": list(self.votes)} if self.votes else {}),
        }

    @classmethod
    def from_form(cls, form: Mapping[str, Any]) -> PreferredPair:
        """The pair that `form` stands for."""
        return cls(
            id=form["id"],
            group=form["group"],
            a=None if form["a"] is None else AnswerDigest(**form["a"]),
            b=None if form["b"] is None else AnswerDigest(**form["b"]),
            preferences=tuple(
                Preference(a_first=PositionVerdict(**each["a_first"]), b_first=PositionVerdict(**each["b_first"]))
                for each in form["judges"]
            ),
            votes=tuple(form.get("votes", ())),
        )


def _order_form(verdict: PositionVerdict) -> JsonObject:
    return {"value": verdict.value, "outcome": verdict.outcome, "reason": verdict.reason}
