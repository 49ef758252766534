"""A judge's card: how often it agrees with people's labels, and how consistent it is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from askance.agents import Panel, canonical_judge
from askance.agents.judge import QUESTION, EquivalenceJudge
from askance.chat import JsonObject, key_of
from askance.documents import parse_json, schema_violation
from askance.errors import BadData, UsageError
from askance.evals.job import CountItem, Job
from askance.evals.judges.labels import Label, Labels, read_labels
from askance.evals.judges.verdicts import CardFigure, JudgedPair, digest_of, figures_of_pairs, reliability_summary
from askance.evals.run_folder import write_whole
from askance.evals.suite.files import read_json
from askance.models import use_draw
from askance.models.counters import counts_form
from askance.nodes import Node

if TYPE_CHECKING:
    from askance.agents import Judge, Verdict, VerdictValue
    from askance.chains.planner import Planner, Role
    from askance.models import Counters

FORMAT = 1
"""Version of a card's JSON form."""
_SCHEMA = Path(__file__).with_name("card.schema.json")

VERDICTS = ("true", "false", "unclear", "unscored")

DRAWS = 3
"""How often a judge is asked about each pair, for its self-consistency."""
REASON = 200
"""Characters of a reason that are kept."""


@dataclass(frozen=True, kw_only=True)
class JudgeCard:
    """The figures of a judge over labelled pairs."""

    judge: str
    """Its name, for a person."""
    canonical: Mapping[str, Any]
    """Everything that decides its verdicts, as JSON."""
    labels: Mapping[str, str]
    """`name` and `sha256` of the label file."""
    pairs: tuple[JudgedPair, ...]
    notes: tuple[str, ...] = ()
    seed: int = 0
    """Of the bootstraps."""
    counters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """By model, what its backend computed for the card; see `askance.models.counters`. Empty where none counts."""

    @classmethod
    def of(
        cls,
        judge: Judge,
        labels: Labels,
        pairs: Sequence[JudgedPair],
        *,
        seed: int = 0,
        counters: Mapping[str, Any] | None = None,
    ) -> JudgeCard:
        """The card of `judge` from its verdicts on `labels`.

        Args:
            judge: whose card it is.
            labels: that it was asked about.
            pairs: each label with the verdicts on it, from a `verdict_job`.
            seed: of the bootstraps.
            counters: what backends computed, by model.
        """
        return cls(
            judge=str(judge),
            canonical=canonical_judge(judge),
            labels={"name": labels.name, "sha256": labels.digest},
            pairs=tuple(pairs),
            notes=(*labels.notes, *_notes(pairs)),
            seed=seed,
            counters=counters or {},
        )

    @property
    def digest(self) -> str:
        """Identifies the judge, 16 hex digits."""
        return digest_of_judge(self.canonical)

    @cached_property
    def figures(self) -> tuple[CardFigure, ...]:
        """All figures of the card."""
        return figures_of_pairs(self.pairs, seed=self.seed)

    @property
    def labelled(self) -> tuple[JudgedPair, ...]:
        """The pairs with a label."""
        return tuple(pair for pair in self.pairs if pair.truth is not None)

    @property
    def table(self) -> Mapping[str, Mapping[str, int]]:
        """How many pairs there are by label, and by verdict."""
        counts = Counter((pair.truth, pair.verdict or "unscored") for pair in self.labelled)
        return {
            str(truth).lower(): {verdict: counts[truth, verdict] for verdict in VERDICTS} for truth in (True, False)
        }

    @property
    def bounds(self) -> tuple[float, float]:
        """The accuracy if every unscored pair were judged wrongly, and if every one were judged rightly."""
        return _bounds(self.labelled)

    def figure(self, name: str) -> CardFigure:
        """The figure of that name.

        Raises:
            KeyError: there is none.
        """
        return {figure.name: figure for figure in self.figures}[name]

    def summary(self) -> JsonObject:
        """The part of the card that is kept with each score of the judge."""
        shown = [self.figure(name) for name in ("accuracy", "base rate", "sensitivity", "specificity", "cohen kappa")]
        intervals = {each.name: each.interval for each in shown if each.interval is not None}
        return {
            "labels": self.labels["name"],
            "pairs": len(self.labelled),
            **{each.name: each.value for each in shown},
            "intervals": {name: [each.low, each.high] for name, each in intervals.items()},
            "table": {truth: dict(row) for truth, row in self.table.items()},
            **reliability_summary(self.labelled, seed=self.seed),
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
            "cases": [pair.form() for pair in self.pairs],
            **({"counters": dict(self.counters)} if self.counters else {}),
        }

    @classmethod
    def from_form(cls, form: Mapping[str, Any]) -> JudgeCard:
        """The card of a JSON form; its figures are computed again.

        Raises:
            BadData: it is none, or one of another version.
        """
        if (wrong := schema_violation(form, _SCHEMA, whole="the file")) is not None:
            raise BadData(
                f"This is no card of a judge: {wrong}.", hint="Make one: askance judge card --labels … --json > FILE"
            )
        return cls(
            judge=form["judge"],
            canonical=form["canonical"],
            labels=form["labels"],
            pairs=tuple(JudgedPair.from_form(each) for each in form["cases"]),
            notes=tuple(form["notes"]),
            seed=form["seed"],
            counters=form.get("counters", {}),
        )


def read_card(path: str | Path) -> JudgeCard:
    """The card in a file, as `askance judge card --json` prints it.

    Raises:
        BadData: it cannot be read, or holds no card.
    """
    form: Any = read_json(Path(path))
    return JudgeCard.from_form(form)


def cut_reason(reason: str) -> str:
    """The beginning of a judge's reason, which is what is kept of it."""
    return reason.partition("\n")[0][:REASON]


def digest_of_judge(canonical: Mapping[str, Any]) -> str:
    """Identifies a judge, 16 hex digits."""
    return key_of("judge", dict(canonical))[:16]


def calls_of(judge: Judge) -> Mapping[Node[Any, Any], int]:
    """The nodes that a judge asks for one verdict, each with its number of draws; for a panel, those of its members.

    A judge that is neither a node nor a panel has none.
    """
    return Counter(node for node, _ in dict.fromkeys(_nodes_and_draws(judge)))


def _nodes_and_draws(judge: Judge, draw: int = 0) -> Iterator[tuple[Node[Any, Any], int]]:
    """Each node with each draw in which it is asked."""
    if isinstance(judge, Panel):
        for each in range(draw * judge.draws, (draw + 1) * judge.draws):
            for member in judge.judges:
                yield from _nodes_and_draws(member, each)
    elif isinstance(judge, Node):
        yield cast("Node[Any, Any]", judge), draw


def _bounds(labelled: Sequence[JudgedPair]) -> tuple[float, float]:
    right = sum(pair.says == pair.truth for pair in labelled)
    unscored = sum(pair.says is None for pair in labelled)
    return right / len(labelled), (right + unscored) / len(labelled)


def _notes(pairs: Sequence[JudgedPair]) -> list[str]:
    labelled = [pair for pair in pairs if pair.truth is not None]
    scored = [pair for pair in labelled if pair.verdict is not None]
    notes: list[str] = []
    if len(scored) < len(labelled):
        first, lost = next(pair for pair in labelled if pair.verdict is None), len(labelled) - len(scored)
        named = f"one was {first.outcome}: {first.reason.rstrip('.')}"
        low, high = (100 * bound for bound in _bounds(labelled))
        notes += [
            f"Unscored: {lost:,} of {len(labelled):,} pairs, in no figure but the rate of them; {named}.",
            f"Were they all judged wrongly, the accuracy would be {low:.2f}; were they rightly, {high:.2f}.",
        ]
    if not scored:
        notes.append("The judge gave no verdict that could be read, so nothing is known of it.")
    elif len({pair.verdict for pair in scored}) == 1:
        notes.append(f"The judge says {scored[0].verdict} of everything: it tells no pair from another.")
    if any(pair.verdict == "unclear" for pair in scored):
        notes.append("Where the judge is unclear, it does not say that both mean the same: it counts as false.")
    return notes


# --- making a card ---


async def judge_card(
    judge: Judge,
    labels: Labels | str | Path,
    *,
    draws: int = DRAWS,
    swaps: bool = True,
    question: str = QUESTION,
    seed: int = 0,
    room: Callable[[], int] = lambda: 64,
    on_progress: Callable[[int, int], None] | None = None,
) -> JudgeCard:
    """Asks `judge` about labelled pairs, and makes its card.

    What backends computed for it is kept beside the records, in `cards`: a card that is made again, or goes on after an
    interrupt, has the counts of all its starts.

    Args:
        judge: a judge of equivalence, a panel, or any `Judge`.
        labels: or the file that they are in.
        draws: how often each pair is asked about.
        swaps: whether each is asked once more with its texts in each other's place.
        question: where a pair has none of its own.
        seed: of the bootstraps.
        room: how many pairs may be under way at the moment.
        on_progress: called after each pair with the number of pairs that are done, and of all pairs.

    Raises:
        BadData: the label file cannot be used.
        StoreError: what was counted cannot be kept.
    """
    known, nodes = labels if isinstance(labels, Labels) else read_labels(labels), [*calls_of(judge)]
    form = {"judge": canonical_judge(judge), "labels": known.digest, "draws": draws, "swaps": swaps, "as": question}
    job = verdict_job(judge, known.rows, draws=draws, swaps=swaps, question=question)
    job.room, job.on_progress = room, on_progress
    counts = keep_counts(job, nodes, key_of("card", form))
    return JudgeCard.of(judge, known, await job.run(), seed=seed, counters=counts)


def keep_counts(job: Job[Any, Any, Any], nodes: Sequence[Node[Any, Any]], key: str) -> JsonObject:
    """Has a job count what the models of judges compute; gives the counts, which are there once the job has ended.

    Those of earlier starts of the same work are among them. They are kept beside the records, in `cards`.

    Args:
        job: that asks the judges. It raises `StoreError` if the counts cannot be kept.
        nodes: of the judges.
        key: of the work.
    """
    places = (node.model.engine.recorder.records.folder for node in nodes)
    folder = next((place for place in places if place is not None), None)
    file, counts = None if folder is None else folder / "cards" / f"{key[:16]}.json", dict[str, Any]()
    job.counting, job.counted = [node.model for node in nodes], lambda new: counts.update(_all_counts(new, file))
    return counts


def _all_counts(counts: Mapping[str, Counters], file: Path | None) -> JsonObject:
    """What models computed, with what `file` has of earlier starts; it is added there."""
    earlier: JsonObject = {}
    if file is not None:
        with suppress(OSError, ValueError, AttributeError):  # if it cannot be read, these counts alone are lost
            earlier = {name: form for name, form in parse_json(file.read_bytes()).items() if isinstance(form, dict)}
    total = counts_form(counts, earlier)
    if file is not None and counts:
        write_whole(file, json.dumps(total) + "\n")
    return total


def judge_roles(nodes: Sequence[Node[Any, Any]]) -> Iterator[Role]:
    """The nodes of judges, by the names of their lines in a plan; several are numbered."""
    for place, node in enumerate(nodes, start=1):
        yield ("judge" if len(nodes) == 1 else f"judge {place}"), node


def verdict_job(
    judge: Judge, labels: Sequence[Label], *, draws: int = DRAWS, swaps: bool = True, question: str = QUESTION
) -> Job[Label, JudgedPair, JudgedPair]:
    """The verdicts of `judge` on each of `labels`, as a job; only judges that are models can be planned.

    Args:
        judge: what is asked.
        labels: the pairs; nothing is asked about those whose votes tie.
        draws: how often each pair is asked about.
        swaps: whether each is asked once more with its texts in each other's place.
        question: where a pair has none of its own.
    """

    async def one(label: Label) -> JudgedPair:
        return await _ask(judge, label, draws=draws, swaps=swaps, question=label.question or question)

    @contextmanager
    def counting(planner: Planner) -> Generator[CountItem[Label]]:
        with planner.counting(judge_roles(_nodes_of(judge))):
            yield one

    return Job(
        items=labels,
        answer=one,
        models=[*dict.fromkeys(node.model for node in calls_of(judge))],
        counts=counting,
        unit="pair",
        units=sum(label.verdict is not None for label in labels),
    )


def _nodes_of(judge: Judge) -> Sequence[EquivalenceJudge]:
    """A judge, or the judges of a panel, as the nodes that ask.

    Raises:
        UsageError: one is of another kind, whose calls cannot be counted.
    """
    members = judge.judges if isinstance(judge, Panel) else (judge,)
    nodes = [member for member in members if isinstance(member, EquivalenceJudge)]
    for member in members:
        if member not in nodes:
            raise UsageError(
                f"The calls of the judge {member} cannot be counted: it is no model.",
                hint="Plan with judges that are models.",
            )
    return nodes


async def _ask(judge: Judge, label: Label, *, draws: int, swaps: bool, question: str) -> JudgedPair:
    about = JudgedPair(
        group=label.group,
        id=label.id,
        candidate=digest_of(label.candidate),
        truth=label.verdict,
        votes=label.votes,
    )
    if label.verdict is None:
        return about
    first, members = await _first(judge, label, question)
    verdicts = [first]
    for draw in range(1, draws):
        with use_draw(draw):
            verdicts.append(await judge.judge(label.reference, label.candidate, question=question))
    swapped = await judge.judge(label.candidate, label.reference, question=question) if swaps else None
    return replace(
        about,
        verdicts=tuple(verdict.value for verdict in verdicts),
        swapped=None if swapped is None else swapped.value,
        members=members,
        outcome=first.outcome,
        reason="" if first.scored else cut_reason(first.reason),
    )


async def _first(judge: Judge, label: Label, question: str) -> tuple[Verdict, tuple[VerdictValue | None, ...]]:
    """The verdict that counts, and the verdict of each member of a panel."""
    if not isinstance(judge, Panel):
        return await judge.judge(label.reference, label.candidate, question=question), ()
    first = await judge.vote(label.reference, label.candidate, question=question)
    return first.verdict, tuple(vote.value for vote in first.votes)
