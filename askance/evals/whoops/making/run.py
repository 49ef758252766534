"""Making questions for many images: resumable, every pair kept with what became of it, counts at each gate."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from askance.agents.negatives import normal
from askance.chains import Planner
from askance.chains.stream import in_order
from askance.chat import key_of
from askance.errors import UsageError
from askance.evals.storage import RunFolder
from askance.evals.whoops.making.files import write_questions
from askance.evals.whoops.making.gates import GATES, Gate, Pair
from askance.models import run_sync
from askance.models.capabilities import endpoint_key
from askance.models.scope import Pending

_QUOTE = re.compile(r"(:| ['\"]).*", re.DOTALL)
"""Where a reason begins to quote."""

if TYPE_CHECKING:
    from askance.chains import Plan
    from askance.chat import JsonObject
    from askance.evals.whoops.entries import Entry
    from askance.evals.whoops.making.gates import QuestionMaker


@dataclass(kw_only=True)
class Made:
    """What came of the making."""

    folder: Path
    captions: int
    done: int = 0
    """Captions that all was made of that can be."""
    left: int = 0
    """Captions that the budget had nothing left for."""
    candidates: int = 0
    """Answers that were found in all captions."""
    passed: Mapping[Gate, int] = field(default_factory=dict[Gate, int])
    """Pairs left after each gate, in their order."""
    reasons: Mapping[str, int] = field(default_factory=dict[str, int])
    """Captions without answers, by outcome."""
    pairs: Mapping[str, Sequence[Pair]] = field(default_factory=dict[str, Sequence[Pair]])
    """By image all pairs, dropped ones too."""

    @property
    def complete(self) -> bool:
        """Whether every caption was gone through."""
        return self.done == self.captions

    @property
    def dropped(self) -> Mapping[tuple[Gate, str], int]:
        """How many pairs were dropped at each gate, by reason; reasons that quote a model count as one."""
        stopped = [pair for pairs in self.pairs.values() for pair in pairs if pair.stopped is not None]
        counts = Counter((pair.stopped, _QUOTE.sub(" …", pair.reason)) for pair in stopped)
        return {(gate, reason): counts[gate, reason] for gate in GATES for each, reason in counts if each == gate}

    @property
    def kept(self) -> Mapping[str, Sequence[Pair]]:
        """By image the pairs that passed every gate."""
        return {key: [pair for pair in pairs if pair.stopped is None] for key, pairs in self.pairs.items()}


Told: TypeAlias = Callable[[int, int], None]
"""Hears after each caption how many are done, and of how many."""


def captions_of(entries: Sequence[Entry]) -> Mapping[str, str]:
    """The captions of `entries`, by a name that begins with the image.

    Raises:
        UsageError: no entry has a caption.
    """
    captions = {f"{entry.id}\n{place}": text for entry in entries for place, text in enumerate(entry.captions)}
    if not captions:
        raise UsageError("There are no captions to make questions from.", hint="They are in `crowd_captions`.")
    return captions


async def amake(entries: Sequence[Entry], maker: QuestionMaker, *, out: Path, told: Told | None = None) -> Made:
    """Makes questions from the captions of `entries` into the folder `out`; one that was begun is finished.

    A caption of which a call failed is gone through again by the next call; what is on record is not asked again.

    Args:
        entries: images with captions.
        maker: what is asked of whom.
        out: folder of the run and of the files.
        told: of every caption that is done.

    Raises:
        UsageError: no entry has a caption, or the folder holds something else.
        CallError: a model cannot be asked at all.
        StoreError: the records or the folder cannot be read or written.
    """
    captions = captions_of(entries)
    configuration: JsonObject = {
        "task": "questions",
        **maker.form(),
        "captions": {"count": len(captions), "digest": key_of("captions", {"captions": captions})},
    }
    folder = RunFolder(out, configuration, name=lambda line: str(line["id"]))
    engine = maker.models[0].engine
    try:
        todo = [name for name in captions if name not in folder.finished]
        for model in maker.models if todo else ():
            await model.output_mode()
        affordable = takewhile(lambda _: engine.budget is None or not engine.budget.used_up, todo)

        async def line(name: str) -> JsonObject | None:
            """The line of a caption; None where the budget had nothing left for it."""
            found = await _line(name, captions[name], maker)
            unaffordable = found["outcome"] == "failed" and engine.budget is not None and engine.budget.used_up
            return None if unaffordable else found

        done = len(captions) - len(todo)
        async with aclosing(in_order(line, affordable, room=lambda: engine.places)) as lines:
            async for each in lines:
                if each is None:
                    continue
                folder.add(each)
                done += 1
                if told is not None:
                    told(done, len(captions))
        made = _made(out, captions, [*folder.lines()])
        write_questions(out, made.pairs)
        made.left = len(captions) - done
        more = {"passed": dict(made.passed), "candidates": made.candidates, "left": made.left}
        folder.finish(engine.recorder.records, also=[endpoint_key(model.id) for model in maker.models], more=more)
    finally:
        folder.close()
        for model in maker.models:
            await model.aclose()
    return made


def make(entries: Sequence[Entry], maker: QuestionMaker, *, out: Path, told: Told | None = None) -> Made:
    """As `amake`, from anywhere: scripts, threads, notebooks."""
    return run_sync(amake(entries, maker, out=out, told=told))


async def _line(name: str, caption: str, maker: QuestionMaker) -> JsonObject:
    found = await maker.find(caption)
    pairs = [await maker.pair(caption, answer) for answer in (() if found.value is None else found.value.texts)]
    calls = [call.key for call in found.calls] + [key for pair in pairs for key in pair.calls]
    outcome = "failed" if any(pair.failed for pair in pairs) else found.outcome
    return {
        "id": name,
        "caption": caption,
        "outcome": outcome,
        "reason": found.reason,
        "value": [pair.form() for pair in pairs],
        "links": {"questions": {"outcome": outcome, "calls": calls}},
        "meta": {},
    }


def _made(out: Path, captions: Mapping[str, str], lines: Sequence[Mapping[str, Any]]) -> Made:
    """What the lines come to; of pairs of an image with the same question, the first in order is kept."""
    by_name = {str(line["id"]): line for line in lines}
    pairs: dict[str, list[Pair]] = {}
    asked: dict[str, set[str]] = {}
    for name in captions:
        key = name.partition("\n")[0]
        for pair in _pairs(by_name.get(name)):
            pairs.setdefault(key, []).append(_once(pair, asked.setdefault(key, set())))
    every = [pair for found in pairs.values() for pair in found]
    return Made(
        folder=out,
        captions=len(captions),
        done=sum(line["outcome"] == "answered" for line in lines),
        candidates=len(every),
        passed={gate: sum(_passed(pair, gate) for pair in every) for gate in GATES},
        reasons=dict(Counter(str(line["outcome"]) for line in lines if not line["value"])),
        pairs=pairs,
    )


def _pairs(line: Mapping[str, Any] | None) -> Iterator[Pair]:
    for form in () if line is None else line["value"]:
        yield Pair.from_form(form)


def _once(pair: Pair, asked: set[str]) -> Pair:
    question = normal(pair.question)
    if pair.stopped is not None:
        return pair
    if question in asked:
        return replace(pair, stopped="new", reason="another pair of the image asks the same")
    asked.add(question)
    return pair


def _passed(pair: Pair, gate: Gate) -> bool:
    return pair.stopped is None or GATES.index(pair.stopped) > GATES.index(gate)


async def planned(entries: Sequence[Entry], maker: QuestionMaker) -> Plan:
    """What making questions from the captions of `entries` would ask; nothing is asked.

    Of a caption whose answers are not known yet, as many are counted as it may have, and each goes through all gates:
    what comes is no more than that.

    Raises:
        UsageError: no entry has a caption, or the mode is `replay`, which asks nothing.
    """
    captions, planner = captions_of(entries), Planner(unit="caption")
    roles = {name: planner.role(name, node) for name, node in maker.nodes.items()}
    twin = maker.standing_in(roles)

    def behind(first: str, *, count: int) -> None:
        """Counts the calls of `count` pairs from that of `first` on."""
        for role in _ASKED[_ASKED.index(first) :] if first else ():
            roles[role.split()[0]].behind(count)

    with planner.walking():
        for caption in captions.values():
            found = await twin.find(caption)
            if found.error == Pending.__name__:
                behind("writer", count=maker.finder.count)
            for answer in () if found.value is None else found.value.texts:
                pair = await twin.pair(caption, answer)
                behind(_waiting(pair) if pair.failed else "", count=1)
    return planner.plan(len(captions))


_ASKED: tuple[str, ...] = ("writer", "reader", "judge", "blind", "judge again")
"""Who is asked about a pair, in their order."""


def _waiting(pair: Pair) -> str:
    """Who is asked about a pair behind the answer that it waits for; empty for nobody."""
    match pair.stopped:
        case "question":
            return "reader"
        case "answered from the caption":
            return "blind" if pair.from_caption else "judge"
        case _:
            return "" if pair.blindly else "judge again"
