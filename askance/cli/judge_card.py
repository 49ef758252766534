"""The work of `askance judge card`: who judges, what that would cost, and the card for a person."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from askance.agents import judge_equivalence, judge_panel
from askance.agents.judge import QUESTION
from askance.amounts import many
from askance.cli.display import json_text
from askance.cli.exits import INTERRUPTED, OK, SOME, CannotStart
from askance.cli.output import plan_form, plan_text
from askance.cli.progress import Progress, calls_state
from askance.errors import CallError, UsageError
from askance.evals import Run
from askance.evals.judging import corrected_rate, judge_card, planned_card, read_labels
from askance.evals.judging.card import VERDICTS
from askance.evals.tables import Table, markdown, shown_value
from askance.terminal import printable

if TYPE_CHECKING:
    from askance.agents import Judge, JudgeForm
    from askance.agents.judge import EquivalenceJudge
    from askance.cli.options import ModelCalls
    from askance.evals.judging import CardFigure, CorrectedRate, JudgeCard, Labels
    from askance.statistics import Interval
    from askance.workspace import Workspace


@dataclass(frozen=True, kw_only=True)
class Carding:
    """The options of one `askance judge card`; None is not given."""

    labels: Path
    judge: Sequence[str]
    form: JudgeForm
    draws: int
    swaps: bool
    question: str | None
    run: Path | None
    seed: int
    as_json: bool
    html: Path | None = None


def card_by(asked: Carding, calls: ModelCalls) -> int:
    """Makes the card, or plans that; returns the exit code.

    Raises:
        BadData: the label file cannot be used.
        UsageError: no judge is named, the run was judged by somebody else, or the page could not be written.
        CannotStart: a model cannot be asked at all.
    """
    _check_judge(asked.judge, local=calls.local)
    _check_file(asked.html, plan=calls.plan)
    labels, run = read_labels(asked.labels), None if asked.run is None else Run.open(asked.run)
    with calls.open(name="judge") as work:
        judges = _judges(asked, work)
        judge = judges[0] if len(judges) == 1 else judge_panel(*judges)
        if calls.plan:
            question = asked.question or QUESTION
            plan = asyncio.run(planned_card(judge, labels, draws=asked.draws, swaps=asked.swaps, question=question))
            print(json.dumps(plan_form(plan, work.engine)) if asked.as_json else plan_text(plan, work.engine))
            return OK
        try:
            with Progress("pairs", state=calls_state(work.tally, work.engine)) as seen:
                made = asyncio.run(_card(asked, labels, judge, judges, work, told=seen.update))
        except KeyboardInterrupt:
            print("Interrupted. The same command goes on: what is on record is not asked again.", file=sys.stderr)
            return INTERRUPTED
        used_up = work.engine.budget is not None and work.engine.budget.used_up
    rate = None if run is None else corrected_rate(made, run, seed=asked.seed)
    if asked.as_json:
        print(json_text({**made.form(), **({} if rate is None else {"corrected": rate.form()})}))
    else:
        print("\n".join(told_card(made, rate)))
    if asked.html is not None:
        _write(asked.html, made, rate)
    unscored = any(case.says is None for case in made.labelled)
    print(work.tally, file=sys.stderr)
    if used_up and unscored:
        print("The budget is used up. The same command with a larger --budget asks for the rest.", file=sys.stderr)
    return SOME if unscored else OK


def _check_judge(judge: Sequence[str], *, local: bool) -> None:
    """Sees to it that somebody judges, and that nobody takes `--local` for one more judge of a panel.

    Raises:
        UsageError: nobody judges, or both kinds of judges are named.
    """
    if not judge and not local:
        raise UsageError(
            "No judge is named.", hint="On this machine: --local. An API: --judge openai:gpt-4o; several are a panel."
        )
    if judge and local:
        raise UsageError(
            "`--local` stands for the judge where none is named, and --judge names one.",
            hint="Leave one out. An open model beside others on a panel: --judge hf:FOLDER.",
        )


def _check_file(html: Path | None, *, plan: bool) -> None:
    """Refuses a page that could not be written, before anything is asked.

    Raises:
        UsageError: it could not.
    """
    if html is not None and plan:
        raise UsageError("`--plan` asks nothing, so there is nothing for `--html` to show.", hint="Leave one out.")
    if html is not None and html.is_dir():
        raise UsageError(f"{str(html)!r} is a folder, and the page is one file.", hint="Name a file: --html card.html")


def _write(out: Path, card: JudgeCard, rate: CorrectedRate | None) -> None:
    from askance.evals.report.document import write_page
    from askance.evals.report.judges import card_page

    size = write_page(out, lambda _: card_page(card, rate=rate))
    print(printable(f"The page is in {out} ({size / 1e6:.1f} MB)."), file=sys.stderr)


def _judges(asked: Carding, work: Workspace) -> list[EquivalenceJudge]:
    """The judges that the command line names, or the one of `--local`."""
    named = [*asked.judge] or [name for name in (work.local_model,) if name is not None]
    models = [work.model(spec) for spec in named]
    return [judge_equivalence(model, form=asked.form, prompts=work.library) for model in models]


async def _card(
    asked: Carding,
    labels: Labels,
    judge: Judge,
    judges: Sequence[EquivalenceJudge],
    work: Workspace,
    *,
    told: Callable[[int, int], None] | None,
) -> JudgeCard:
    """The card of `judge`.

    Raises:
        CannotStart: a model cannot be asked at all.
    """
    try:
        for each in judges:
            await each.model.output_mode()
        return await judge_card(
            judge,
            labels,
            draws=asked.draws,
            swaps=asked.swaps,
            question=asked.question or QUESTION,
            seed=asked.seed,
            room=lambda: work.engine.places,
            told=told,
        )
    except CallError as error:
        raise CannotStart(error.message, hint=error.hint) from error
    finally:
        for each in judges:
            await each.model.aclose()


def told_card(card: JudgeCard, rate: CorrectedRate | None) -> Iterator[str]:
    """The card for a person: figures, the table of verdicts, and what there is to know."""
    yield printable(f"{card.judge}\non {card.labels['name']}: {_counts(card)}\n")
    yield markdown(_figures(card))
    yield markdown(_verdicts(card))
    if rate is not None:
        yield markdown(_rates(rate))
    notes = [*card.notes, *(() if rate is None else rate.notes)]
    if any(figure.name == "flip rate" for figure in card.figures):
        notes.append("Flip rate: pairs whose verdict changes when reference and candidate change places.")
    yield from (printable(f"· {note}") for note in notes)


def _counts(card: JudgeCard) -> str:
    pairs, true = len(card.labelled), sum(bool(case.truth) for case in card.labelled)
    groups = len({case.group for case in card.labelled})
    return f"{many(pairs, 'labelled pair')} in {many(groups, 'group')}, {true:,} of them true"


def _figures(card: JudgeCard) -> Table:
    level = next((100 * figure.interval.level for figure in card.figures if figure.interval), 95)
    rows = tuple((figure.name, *_cells(figure), figure.pairs) for figure in card.figures)
    return Table(columns=("figure", "value", f"{level:.0f} % interval", "pairs"), rows=rows)


def _verdicts(card: JudgeCard) -> Table:
    rows = tuple((f"people: {truth}", *(counts[each] for each in VERDICTS)) for truth, counts in card.table.items())
    return Table(columns=("", *(f"judge: {each}" if each != "unscored" else each for each in VERDICTS)), rows=rows)


def _rates(rate: CorrectedRate) -> Table:
    ways = {
        "as judged": rate.measured,
        "Rogan–Gladen": rate.rogan_gladen,
        f"prediction-powered, {rate.labelled:,} labelled": rate.powered,
    }
    rows = tuple(
        (name, _number(each.value, share=True), _between(each.interval, share=True), each.n)
        for name, each in ways.items()
    )
    return Table(columns=("rate of the run", "value", "95 % interval", "answers"), rows=rows)


def _cells(figure: CardFigure) -> tuple[str, str]:
    return _number(figure.value, share=figure.share), _between(figure.interval, share=figure.share)


def _number(value: float | None, *, share: bool) -> str:
    return shown_value(value, percent=share)


def _between(interval: Interval | None, *, share: bool) -> str:
    return "" if interval is None else f"{_number(interval.low, share=share)} to {_number(interval.high, share=share)}"
