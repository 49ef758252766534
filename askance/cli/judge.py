"""`askance judge`: how far a judge of free text can be trusted."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askance.cli.options import JudgePrompt, PromptCalls, spelled_out
from askance.cli.process import HELP, INTERRUPTED, OK, SOME, CannotStart, Process

if TYPE_CHECKING:
    from askance.agents import Judge
    from askance.agents.judge import EquivalenceJudge
    from askance.chains import Plan
    from askance.cli.workspace import CommandWorkspace
    from askance.evals.judges import CardFigure, CorrectedRate, JudgeCard, Labels
    from askance.evals.tables import Table
    from askance.statistics import Interval

app = typer.Typer(help="Judges of free text: how far they can be trusted.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def judges() -> None:
    """Commands about judges."""


@dataclass(frozen=True, kw_only=True)
class CardOptions:
    """The options of one `askance judge card` beside those of its calls; None is not given."""

    labels: Annotated[
        Path,
        typer.Option(
            help="What people say: CSV or JSONL with reference, candidate, and verdict or votes; question, group, id."
        ),
    ]
    judge: Annotated[
        list[str] | None,
        typer.Option(help="The judge: a spec such as openai:gpt-4o, or a name from askance.toml; several are a panel."),
    ] = None
    form: Annotated[
        JudgePrompt, typer.Option(help="rubric compares first and may be unclear; short asks True or False.")
    ] = JudgePrompt.rubric
    draws: Annotated[int, typer.Option(min=1, help="How often each pair is asked about, for self-consistency.")] = 3
    swaps: Annotated[
        bool, typer.Option("--swaps/--no-swaps", help="Ask once more with the texts in each other's place.")
    ] = True
    question: Annotated[str | None, typer.Option(help="What the texts answer, where a pair does not say so.")] = None
    run: Annotated[
        Path | None, typer.Option("--run", help="A run that this judge has scored: its rate, corrected.")
    ] = None
    seed: Annotated[int, typer.Option(help="Of the bootstraps.")] = 0
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object; tasks take it as the card.")] = False
    html: Annotated[Path | None, typer.Option("--html", help="Also write the card as a page, with plots.")] = None


@app.command("card", epilog=HELP)
@spelled_out
def card(context_: typer.Context, asked: CardOptions, calls: PromptCalls) -> None:
    """Hold a judge against people's labels: how often it is right, beyond chance, and how steady it is."""
    import asyncio

    Process.of(context_).without_langchain()
    from askance.cli.output import print_plan
    from askance.evals import Run
    from askance.evals.judges import corrected_rate, read_labels
    from askance.terminal import json_text

    _check_judge(asked.judge or (), local=calls.local)
    _check_page(asked.html, plan=calls.plan)
    labels, run = read_labels(asked.labels), None if asked.run is None else Run.open(asked.run)
    with calls.open(name="judge") as work:
        judges = _judges(asked, work)
        if calls.plan:
            print_plan(asyncio.run(_plan(asked, judges, labels)), work.engine, as_json=asked.as_json)
            return
        try:
            made = asyncio.run(_card(asked, judges, labels, work))
        except KeyboardInterrupt:
            print("Interrupted. The same command goes on: what is on record is not asked again.", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        used_up = work.engine.budget is not None and work.engine.budget.used_up
    rate = None if run is None else corrected_rate(made, run, seed=asked.seed)
    if asked.as_json:
        print(json_text({**made.form(), **({} if rate is None else {"corrected": rate.form()})}))
    else:
        print("\n".join(card_text(made, rate)))
    if asked.html is not None:
        _write_page(asked.html, made, rate, labels)
    unscored = any(pair.says is None for pair in made.labelled)
    print("\n".join([str(work.tally), *_counters(made)]), file=sys.stderr)
    if used_up and unscored:
        print("The budget is used up. The same command with a larger --budget asks for the rest.", file=sys.stderr)
    raise typer.Exit(SOME if unscored else OK)


def _check_judge(judge: Sequence[str], *, local: bool) -> None:
    """Refuses a command without a judge, and `--local` beside a judge that is named.

    Raises:
        UsageError: no judge is named, or both kinds are.
    """
    from askance.errors import UsageError

    if not judge and not local:
        raise UsageError(
            "No judge is named.", hint="On this machine: --local. An API: --judge openai:gpt-4o; several are a panel."
        )
    if judge and local:
        raise UsageError(
            "`--local` stands for the judge where none is named, and --judge names one.",
            hint="Leave one out. An open model beside others on a panel: --judge hf:FOLDER.",
        )


def _check_page(html: Path | None, *, plan: bool) -> None:
    """Refuses a page that could not be written, before anything is asked.

    Raises:
        UsageError: it could not.
    """
    from askance.errors import UsageError

    if html is not None and plan:
        raise UsageError("`--plan` asks nothing, so there is nothing for `--html` to show.", hint="Leave one out.")
    if html is not None and html.is_dir():
        raise UsageError(f"{str(html)!r} is a folder, and the page is one file.", hint="Name a file: --html card.html")


def _write_page(out: Path, card: JudgeCard, rate: CorrectedRate | None, labels: Labels) -> None:
    from askance.evals.report.card_page import card_page
    from askance.evals.report.html import write_page
    from askance.terminal import printable

    size = write_page(out, lambda _: card_page(card, rate=rate, labels=labels))
    print(printable(f"The page is in {out} ({size / 1e6:.1f} MB)."), file=sys.stderr)


def _judges(asked: CardOptions, work: CommandWorkspace) -> list[EquivalenceJudge]:
    """The judges that the command line names, or the one of `--local`."""
    from askance.agents import judge_equivalence

    named = asked.judge or [name for name in (work.local_model,) if name is not None]
    return [judge_equivalence(work.model(spec), form=asked.form.value, prompts=work.library) for spec in named]


async def _plan(asked: CardOptions, judges: Sequence[EquivalenceJudge], labels: Labels) -> Plan:
    from askance.agents.judge import QUESTION
    from askance.evals.judges import planned_card

    question = asked.question or QUESTION
    return await planned_card(_together(judges), labels, draws=asked.draws, swaps=asked.swaps, question=question)


def _together(judges: Sequence[EquivalenceJudge]) -> Judge:
    from askance.agents import judge_panel

    return judges[0] if len(judges) == 1 else judge_panel(*judges)


async def _card(
    asked: CardOptions, judges: Sequence[EquivalenceJudge], labels: Labels, work: CommandWorkspace
) -> JudgeCard:
    """The card; its judges are closed after it.

    Raises:
        CannotStart: a model cannot be asked at all.
    """
    from askance.agents.judge import QUESTION
    from askance.cli.progress import Progress, calls_state
    from askance.errors import CallError
    from askance.evals.judges import judge_card

    try:
        for each in judges:
            await each.model.output_mode()
        with Progress("pairs", state=calls_state(work.tally, work.engine)) as progress:
            return await judge_card(
                _together(judges),
                labels,
                draws=asked.draws,
                swaps=asked.swaps,
                question=asked.question or QUESTION,
                seed=asked.seed,
                room=lambda: work.engine.places,
                on_progress=progress.update,
            )
    except CallError as error:
        raise CannotStart(error.message, hint=error.hint) from error
    finally:
        for each in judges:
            await each.model.aclose()


def card_text(card: JudgeCard, rate: CorrectedRate | None) -> Iterator[str]:
    """The card for a person: figures, the table of verdicts, and what there is to know."""
    from askance.cli.columns import filled, table_text, terminal_width
    from askance.terminal import printable

    yield printable(f"{card.judge}\non {card.labels['name']}: {_counts(card)}\n")
    yield table_text(_figures(card))
    yield table_text(_verdicts(card))
    if rate is not None:
        yield table_text(_rates(rate))
    notes = [*card.notes, *(() if rate is None else rate.notes)]
    if any(figure.name == "flip rate" for figure in card.figures):
        notes.append("Flip rate: pairs whose verdict changes when reference and candidate change places.")
    yield from (filled(printable(f"· {note}"), width=terminal_width()) for note in notes)


def _counters(card: JudgeCard) -> Iterator[str]:
    """A line for each model whose backend counts what it computes."""
    from askance.models import Counters
    from askance.terminal import printable

    return (printable(f"{name}: {Counters.from_canonical(form)}.") for name, form in card.counters.items())


def _counts(card: JudgeCard) -> str:
    from askance.amounts import many

    pairs, true = len(card.labelled), sum(bool(pair.truth) for pair in card.labelled)
    groups = len({pair.group for pair in card.labelled})
    return f"{many(pairs, 'labelled pair')} in {many(groups, 'group')}, {true:,} of them true"


def _figures(card: JudgeCard) -> Table:
    from askance.evals.tables import Table

    level = next((100 * figure.interval.level for figure in card.figures if figure.interval), 95)
    rows = tuple((figure.name, *_cells(figure), figure.pairs) for figure in card.figures)
    return Table(columns=("figure", "value", f"{level:.0f} % interval", "pairs"), rows=rows)


def _verdicts(card: JudgeCard) -> Table:
    from askance.evals.judges.card import VERDICTS
    from askance.evals.tables import Table

    rows = tuple((f"people: {truth}", *(counts[each] for each in VERDICTS)) for truth, counts in card.table.items())
    return Table(columns=("", *(f"judge: {each}" if each != "unscored" else each for each in VERDICTS)), rows=rows)


def _rates(rate: CorrectedRate) -> Table:
    from askance.evals.tables import Table

    rows = tuple(
        (name, _number(each.value, share=True), _between(each.interval, share=True), each.n)
        for name, each in rate.ways.items()
    )
    return Table(columns=("rate of the run", "value", "95 % interval", "answers"), rows=rows)


def _cells(figure: CardFigure) -> tuple[str, str]:
    return _number(figure.value, share=figure.share), _between(figure.interval, share=figure.share)


def _number(value: float | None, *, share: bool) -> str:
    from askance.evals.tables import shown_value

    return shown_value(value, percent=share)


def _between(interval: Interval | None, *, share: bool) -> str:
    return "" if interval is None else f"{_number(interval.low, share=share)} to {_number(interval.high, share=share)}"
