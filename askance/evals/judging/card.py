"""A judge's card: how often it is right beside people's labels, and how steady it is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.agents import Panel, canonical_judge
from askance.agents.judge import QUESTION, EquivalenceJudge
from askance.chains import Planner
from askance.chat import key_of
from askance.errors import BadData, UsageError
from askance.evals.judging.asking import DRAWS, Case, ask_about
from askance.evals.judging.figuring import CardFigure, figures_of_cases
from askance.evals.judging.labels import Labels, read_labels
from askance.evals.judging.reliability import summary_of
from askance.statistics import confusion

if TYPE_CHECKING:
    from askance.agents import Judge
    from askance.chains import Plan
    from askance.chat import JsonObject
    from askance.statistics import Confusion

FORMAT = 1
"""Version of a card's JSON form."""

VERDICTS = ("true", "false", "unclear", "unscored")


@dataclass(frozen=True, kw_only=True)
class JudgeCard:
    """What is known of a judge from labelled pairs."""

    judge: str
    """Its name, for a person."""
    canonical: Mapping[str, Any]
    """Everything that decides its verdicts, as JSON."""
    labels: Mapping[str, Any]
    """Name and digest of the label file."""
    cases: tuple[Case, ...]
    figures: tuple[CardFigure, ...]
    notes: tuple[str, ...] = ()
    seed: int = 0

    @classmethod
    def of(cls, judge: Judge, labels: Labels, cases: Sequence[Case], *, seed: int = 0) -> JudgeCard:
        """The card of what `judge` says of `labels`.

        Args:
            judge: whose card it is.
            labels: that it was asked about.
            cases: what was said, from `ask_about`.
            seed: of the bootstraps.
        """
        return cls(
            judge=str(judge),
            canonical=canonical_judge(judge),
            labels={"name": labels.name, "sha256": labels.digest},
            cases=tuple(cases),
            figures=figures_of_cases(cases, seed=seed),
            notes=(*labels.notes, *_notes(cases)),
            seed=seed,
        )

    @property
    def digest(self) -> str:
        """What tells the judge from others, 16 hex digits."""
        return digest_of_judge(self.canonical)

    @property
    def labelled(self) -> tuple[Case, ...]:
        """The cases with a label."""
        return tuple(case for case in self.cases if case.truth is not None)

    @property
    def confusion(self) -> Confusion:
        """Its verdicts against the labels; `unclear` is a no."""
        return confusion([bool(case.truth) for case in self.labelled], [case.says for case in self.labelled])

    @property
    def table(self) -> Mapping[str, Mapping[str, int]]:
        """How many pairs there are by label, and by verdict."""
        counts = Counter((case.truth, case.verdict or "unscored") for case in self.labelled)
        return {
            str(truth).lower(): {verdict: counts[truth, verdict] for verdict in VERDICTS} for truth in (True, False)
        }

    @property
    def bounds(self) -> tuple[float, float]:
        """What the accuracy would be if every unscored pair had been judged wrongly, and if rightly."""
        right = sum(case.says == case.truth for case in self.labelled)
        unscored = sum(case.says is None for case in self.labelled)
        return right / len(self.labelled), (right + unscored) / len(self.labelled)

    def figure(self, name: str) -> CardFigure:
        """The figure of that name.

        Raises:
            KeyError: there is none.
        """
        return {figure.name: figure for figure in self.figures}[name]

    def summary(self) -> JsonObject:
        """What a score that the judge gave carries of its card."""
        shown = [self.figure(name) for name in ("accuracy", "base rate", "sensitivity", "specificity", "cohen kappa")]
        intervals = {each.name: each.interval for each in shown if each.interval is not None}
        return {
            "labels": self.labels["name"],
            "pairs": len(self.labelled),
            **{each.name: each.value for each in shown},
            "intervals": {name: [each.low, each.high] for name, each in intervals.items()},
            "table": {truth: dict(row) for truth, row in self.table.items()},
            **summary_of(self.labelled, seed=self.seed),
        }

    def form(self) -> JsonObject:
        """The card as JSON; `from_form` reads it."""
        return {
            "format": FORMAT,
            "judge": self.judge,
            "digest": self.digest,
            "canonical": dict(self.canonical),
            "labels": dict(self.labels),
            "pairs": len(self.labelled),
            "figures": {figure.name: asdict(figure) for figure in self.figures},
            "accuracy_bounds": list(self.bounds),
            "table": {truth: dict(row) for truth, row in self.table.items()},
            "notes": list(self.notes),
            "seed": self.seed,
            "cases": [case.form() for case in self.cases],
        }

    @classmethod
    def from_form(cls, form: Mapping[str, Any]) -> JudgeCard:
        """The card that `form` stands for; its figures are worked out anew.

        Raises:
            BadData: it is none, or one of another version.
        """
        if form.get("format") != FORMAT:
            raise BadData("This is no card of a judge.", hint="Make one: askance judge card --labels … --json > FILE")
        try:
            cases = tuple(Case.from_form(each) for each in form["cases"])
            return cls(
                judge=form["judge"],
                canonical=form["canonical"],
                labels=form["labels"],
                cases=cases,
                figures=figures_of_cases(cases, seed=form["seed"]),
                notes=tuple(form["notes"]),
                seed=form["seed"],
            )
        except (KeyError, TypeError) as error:
            raise BadData("This card of a judge lacks something.", hint="Make it anew.") from error


async def judge_card(
    judge: Judge,
    labels: Labels | str | Path,
    *,
    draws: int = DRAWS,
    swaps: bool = True,
    question: str = QUESTION,
    seed: int = 0,
    room: Callable[[], int] = lambda: 64,
    told: Callable[[int, int], None] | None = None,
) -> JudgeCard:
    """Asks `judge` about labelled pairs, and makes its card.

    Args:
        judge: a judge of equivalence, a panel, or any `Judge`.
        labels: or the file that they are in.
        draws: how often each pair is asked about.
        swaps: whether each is asked once more with its texts in each other's place.
        question: where a pair has none of its own.
        seed: of the bootstraps.
        room: how many pairs may be under way by now.
        told: hears after each pair how many are done, and of how many.

    Raises:
        BadData: the label file cannot be used.
    """
    known = labels if isinstance(labels, Labels) else read_labels(labels)
    done = count(1)

    def one_more() -> None:
        if told is not None:
            told(next(done), len(known.rows))

    cases = await ask_about(judge, known.rows, draws=draws, swaps=swaps, question=question, room=room, told=one_more)
    return JudgeCard.of(judge, known, cases, seed=seed)


async def planned_card(
    judge: Judge, labels: Labels, *, draws: int = DRAWS, swaps: bool = True, question: str = QUESTION
) -> Plan:
    """What the card of `judge` would ask; nothing is asked.

    Args:
        judge: a judge of equivalence, or a panel of such.
        labels: that it would be asked about.
        draws: how often about each pair.
        swaps: whether once more with its texts in each other's place.
        question: where a pair has none of its own.

    Raises:
        UsageError: the judge is of another kind, so that nobody can tell what it asks; or the mode is `replay`.
    """
    members, planner = judge.judges if isinstance(judge, Panel) else (judge,), Planner(unit="pair")
    with ExitStack() as within:
        for place, member in enumerate(members, start=1):
            if not isinstance(member, EquivalenceJudge):
                raise UsageError(
                    "Nobody can tell what a judge asks that is no node.", hint="Plan a judge that is a model."
                )
            role = planner.role("judge" if len(members) == 1 else f"judge {place}", member)
            within.enter_context(role.hearing(member))
        within.enter_context(planner.walking())
        await ask_about(judge, labels.rows, draws=draws, swaps=swaps, question=question)
    return planner.plan(sum(label.verdict is not None for label in labels.rows))


def read_card(path: str | Path) -> JudgeCard:
    """The card in a file that `askance judge card --json` has written.

    Raises:
        BadData: there is none.
    """
    file = Path(path)
    try:
        form: Any = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadData(
            f"The card {str(file)!r} cannot be read: {error.strerror}.", hint="Make one with `askance judge card`."
        ) from error
    except ValueError as error:
        raise BadData(f"The card {str(file)!r} is no JSON.", hint="Make it anew.") from error
    if not isinstance(form, dict):
        raise BadData(f"{str(file)!r} holds no card of a judge.", hint="Make one with `askance judge card`.")
    return JudgeCard.from_form(form)  # pyright: ignore[reportUnknownArgumentType]


def digest_of_judge(canonical: Mapping[str, Any]) -> str:
    """What tells a judge from others, 16 hex digits."""
    return key_of("judge", dict(canonical))[:16]


def _notes(cases: Sequence[Case]) -> list[str]:
    asked = [case for case in cases if case.truth is not None]
    scored = [case for case in asked if case.verdict is not None]
    notes: list[str] = []
    if len(scored) < len(asked):
        first = next(case for case in asked if case.verdict is None)
        right, lost = sum(case.says == case.truth for case in scored), len(asked) - len(scored)
        low, high = (100 * each / len(asked) for each in (right, right + lost))
        named = f"one was {first.outcome}: {first.reason.rstrip('.')}"
        notes += [
            f"Unscored: {lost:,} of {len(asked):,} pairs, in no figure but the rate of them; {named}.",
            f"Were they all judged wrongly, the accuracy would be {low:.2f}; were they rightly, {high:.2f}.",
        ]
    if not scored:
        notes.append("The judge gave no verdict that could be read, so nothing is known of it.")
    elif len({case.verdict for case in scored}) == 1:
        notes.append(f"The judge says {scored[0].verdict} of everything: it tells no pair from another.")
    if any(case.verdict == "unclear" for case in scored):
        notes.append("Where the judge is unclear, it does not say that both mean the same: it counts as false.")
    return notes
