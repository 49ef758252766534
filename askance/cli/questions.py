"""The work of `askance data make-questions`: its models, the making, and what is said of it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from askance.amounts import many
from askance.cli.exits import INTERRUPTED, OK, SOME
from askance.cli.output import print_plan
from askance.cli.progress import Progress, calls_state
from askance.errors import UsageError
from askance.evals.evaluation import LEDGER
from askance.evals.negatives.validation import KEY, PAGE, TABLE
from askance.evals.tables import Table, markdown
from askance.evals.whoops import Whoops
from askance.evals.whoops.questions import DROPPED, GATES, KEPT, QuestionMaker, amake, planned, write_validation
from askance.terminal import json_text, printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from askance.chat import JsonObject
    from askance.cli.data import QuestionOptions
    from askance.cli.options import Calls
    from askance.evals.whoops import WeirdImage
    from askance.evals.whoops.questions import QuestionSet
    from askance.models import Model
    from askance.workspace import Workspace


def make_by(asked: QuestionOptions, calls: Calls) -> int:
    """Makes the questions, or plans that; returns the exit code.

    Raises:
        UsageError: no model is named, the data have no captions, or the folder holds something else.
        CallError: a model cannot be asked at all.
    """
    entries = Whoops.open(asked.folder, ids=asked.ids).with_all("captions")[: asked.limit]
    with calls.open(ledger=asked.out / LEDGER) as work:
        maker = _maker(asked, work)
        if calls.plan:
            plan = asyncio.run(planned(entries, maker))
            print_plan(plan, work.engine, as_json=asked.as_json)
            return OK
        try:
            with Progress("captions", state=calls_state(work.tally, work.engine)) as progress:
                made = asyncio.run(amake(entries, maker, out=asked.out, on_progress=progress.update))
        except KeyboardInterrupt:
            print("Interrupted. The same command goes on where this one stopped.", file=sys.stderr)
            return INTERRUPTED
    print(json_text(made_form(made)) if asked.as_json else "\n".join(_told(made)))
    print(f"{_end(made)}\n{work.tally}", file=sys.stderr)
    if asked.sheet is not None:
        print(_sheet(asked.sheet, asked, made, entries), file=sys.stderr)
    return OK if made.complete else SOME


def _maker(asked: QuestionOptions, work: Workspace) -> QuestionMaker:
    """What asks; a model that is named twice is one."""
    llm = asked.llm or work.named("llm")
    if llm is None:
        raise UsageError(
            "No model is named that writes the questions.",
            hint="On this machine: --local. An API: --llm openai:gpt-4o. Or set `llm` in askance.toml.",
        )

    def model(name: str | None) -> Model:
        return work.model(name or work.local_model or llm)

    return QuestionMaker(
        model(llm),
        reader=model(asked.reader),
        blind=model(asked.blind),
        judge=model(asked.judge),
        judge_form=asked.judge_form.value,
        count=asked.count,
        prompts=work.library,
    )


def _sheet(out: Path, asked: QuestionOptions, made: QuestionSet, entries: Sequence[WeirdImage]) -> str:
    """Writes the sheet for people; what there is to say of it.

    Raises:
        UsageError: no question is left to check.
    """
    by_id: Mapping[str, WeirdImage] = {entry.id: entry for entry in entries}
    sheet = write_validation(
        out, made.kept, images=lambda key: by_id[key].load(), count=asked.sheet_images, seed=asked.seed
    )
    return printable(
        f"{out / PAGE} and {out / TABLE}: {many(len(sheet.items), 'line')}. Raters get one of the "
        f"two, never {out / KEY}, "
        f"which says what is true; `askance negatives sample --key … --answers …` reads back what they say."
    )


def made_form(made: QuestionSet) -> JsonObject:
    """What came of the making, as JSON."""
    return {
        "folder": str(made.folder),
        "captions": made.captions,
        "done": made.done,
        "left": made.left,
        "candidates": made.candidates,
        "passed": dict(made.passed),
        "dropped": [{"gate": gate, "reason": reason, "pairs": n} for (gate, reason), n in made.dropped.items()],
        "without_answers": dict(made.reasons),
        "questions": sum(len(pairs) for pairs in made.kept.values()),
    }


def _told(made: QuestionSet) -> Iterator[str]:
    """The counts at each gate, and why pairs were dropped there."""
    before, rows = made.candidates, list[tuple[str, int, int, str]]()
    for gate in GATES:
        left = made.passed[gate]
        why = "; ".join(f"{n:,} {reason}" for (each, reason), n in made.dropped.items() if each == gate)
        rows.append((gate, left, before - left, why))
        before = left
    yield markdown(Table(columns=("gate", "pass", "dropped", "why"), rows=tuple(rows))).rstrip("\n")
    yield ""
    yield printable(f"{made.folder / KEPT}  {many(before, 'question')} of {many(_with_any(made), 'image')}")
    yield printable(
        f"{made.folder / DROPPED}  {many(made.candidates - before, 'pair')} with the gate that stopped them, and why"
    )


def _with_any(made: QuestionSet) -> int:
    return sum(bool(pairs) for pairs in made.kept.values())


def _end(made: QuestionSet) -> str:
    found = f"{made.done:,} of {made.captions:,} captions: {many(made.candidates, 'answer')} found."
    without = ", ".join(f"{n:,} {outcome}" for outcome, n in made.reasons.items() if outcome != "answered")
    if without:
        found += f" Captions without any: {without}."
    if made.left:
        found += (
            f" The budget had nothing left for {many(made.left, 'caption')}: the same command with a "
            "larger one goes on."
        )
    elif not made.complete:
        found += " The same command asks again for what failed, with --retry for what could not be read."
    return found
