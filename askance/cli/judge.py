"""`askance judge`: how far a judge of free text can be trusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askance.cli.alone import Process
from askance.cli.exits import HELP

if TYPE_CHECKING:
    from askance.agents import Judge
    from askance.evals.judging import CardFigure, CorrectedRate, JudgeCard, Labels
    from askance.evals.tables import Table
    from askance.models import Engine
    from askance.statistics import Interval

app = typer.Typer(help="Judges of free text: how far they can be trusted.", no_args_is_help=True, rich_markup_mode=None)


class FormName(StrEnum):
    """Forms of the question to a judge."""

    rubric = "rubric"
    short = "short"


@app.callback()
def judged() -> None:
    """What there is to say of judges."""


@app.command("card", epilog=HELP)
def card(
    context_: typer.Context,
    labels: Annotated[
        Path,
        typer.Option(
            help="What people say: CSV or JSONL with reference, candidate, and verdict or votes; question, group, id."
        ),
    ],
    judge: Annotated[
        list[str],
        typer.Option(help="The judge: a spec such as openai:gpt-4o, or a name from askance.toml; several are a panel."),
    ],
    form: Annotated[
        FormName, typer.Option(help="rubric compares first and may be unclear; short asks True or False.")
    ] = FormName.rubric,
    draws: Annotated[int, typer.Option(min=1, help="How often each pair is asked about, for self-consistency.")] = 3,
    swaps: Annotated[
        bool, typer.Option("--swaps/--no-swaps", help="Ask once more with the texts in each other's place.")
    ] = True,
    question: Annotated[str | None, typer.Option(help="What the texts answer, where a pair does not say so.")] = None,
    run: Annotated[
        Path | None, typer.Option("--run", help="A run that this judge has scored: its rate, corrected.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the bootstraps.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object; tasks take it as the card.")] = False,
    replay: Annotated[bool, typer.Option("--replay", help="Only what is on record; nothing is asked.")] = False,
    prompts: Annotated[Path | None, typer.Option(help="Folder with prompts of your own; by default ./prompts.")] = None,
    store: Annotated[
        Path | None, typer.Option(help="Folder of the records; by default .askance of the project.")
    ] = None,
) -> None:
    """Hold a judge against people's labels: how often it is right, beyond chance, and how steady it is."""
    Process.of(context_).without_langchain()
    from contextlib import closing

    from askance.agents.judge import QUESTION
    from askance.cli.exits import OK, SOME, hear_warnings
    from askance.cli.places import library, open_store
    from askance.cli.showing import json_text
    from askance.evals import Run
    from askance.evals.judging import corrected_rate, read_labels
    from askance.models import Config, Engine, run_sync

    hear_warnings()
    read, opened, config = read_labels(labels), None if run is None else Run.open(run), Config.find()
    with closing(open_store(store, config, read_only=replay)) as records:
        engine = Engine(records=records, mode="replay" if replay else "auto")
        asked = _judge(judge, form=form.value, engine=engine, config=config, prompts=library(prompts, config))
        made = run_sync(_card(asked, read, engine, draws=draws, swaps=swaps, question=question or QUESTION, seed=seed))
    rate = None if opened is None else corrected_rate(made, opened, seed=seed)
    if as_json:
        print(json_text({**made.form(), **({} if rate is None else {"corrected": rate.form()})}))
    else:
        print("\n".join(told(made, rate)))
    raise typer.Exit(OK if all(case.says is not None for case in made.labelled) else SOME)


def _judge(specs: Sequence[str], *, form: Any, engine: Engine, config: Any, prompts: Any) -> Judge:
    """The judge that the command line names: one model, or a panel of several."""
    from askance.agents import judge_equivalence, judge_panel
    from askance.models import get_model

    judges = [
        judge_equivalence(get_model(spec, engine=engine, config=config), form=form, prompts=prompts) for spec in specs
    ]
    return judges[0] if len(judges) == 1 else judge_panel(*judges)


async def _card(
    judge: Judge, labels: Labels, engine: Engine, *, draws: int, swaps: bool, question: str, seed: int
) -> JudgeCard:
    """The card of `judge`.

    Raises:
        CannotStart: a model cannot be asked at all.
    """
    from askance.agents import Panel
    from askance.cli.exits import CannotStart
    from askance.errors import CallError
    from askance.evals.judging import judge_card

    nodes: list[Any] = [*judge.judges] if isinstance(judge, Panel) else [judge]
    try:
        for node in nodes:
            await node.model.rung()
        return await judge_card(
            judge, labels, draws=draws, swaps=swaps, question=question, seed=seed, room=lambda: engine.places
        )
    except CallError as error:
        raise CannotStart(error.message, hint=error.hint) from error
    finally:
        for node in nodes:
            await node.model.aclose()


def told(card: JudgeCard, rate: CorrectedRate | None) -> Iterator[str]:
    """The card for a person: figures, the table of verdicts, and what there is to know."""
    from askance.evals.tables import markdown
    from askance.replay import visible

    yield visible(f"{card.judge}\non {card.labels['name']}: {_counts(card)}\n")
    yield markdown(_figures(card))
    yield markdown(_verdicts(card))
    if rate is not None:
        yield markdown(_rates(rate))
    notes = [*card.notes, *(() if rate is None else rate.notes)]
    if any(figure.name == "flip rate" for figure in card.figures):
        notes.append("Flip rate: pairs whose verdict changes when reference and candidate change places.")
    yield from (visible(f"· {note}") for note in notes)


def _counts(card: JudgeCard) -> str:
    pairs, true = len(card.labelled), sum(bool(case.truth) for case in card.labelled)
    groups = len({case.group for case in card.labelled})
    return f"{pairs:,} labelled pairs in {groups:,} groups, {true:,} of them true"


def _figures(card: JudgeCard) -> Table:
    from askance.evals.tables import Table

    level = next((100 * figure.interval.level for figure in card.figures if figure.interval), 95)
    rows = tuple((figure.name, *_cells(figure), figure.pairs) for figure in card.figures)
    return Table(columns=("figure", "value", f"{level:.0f} % interval", "pairs"), rows=rows)


def _verdicts(card: JudgeCard) -> Table:
    from askance.evals.judging.card import VERDICTS
    from askance.evals.tables import Table

    rows = tuple((f"people: {truth}", *(counts[each] for each in VERDICTS)) for truth, counts in card.table.items())
    return Table(columns=("", *(f"judge: {each}" if each != "unscored" else each for each in VERDICTS)), rows=rows)


def _rates(rate: CorrectedRate) -> Table:
    from askance.evals.tables import Table

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
    from askance.evals.tables import shown_value

    return shown_value(value, percent=share)


def _between(interval: Interval | None, *, share: bool) -> str:
    return "" if interval is None else f"{_number(interval.low, share=share)} to {_number(interval.high, share=share)}"
