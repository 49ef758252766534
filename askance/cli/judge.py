"""`askance judge`: how far a judge of free text can be trusted, and which of two answers judges prefer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from askance.amounts import many
from askance.cli.columns import Part, Report
from askance.cli.group import command_group
from askance.cli.options import AsJson, PromptCalls, TaskPlace, spelled_out
from askance.cli.process import HELP, OK, SOME
from askance.errors import UsageError
from askance.terminal import echo

if TYPE_CHECKING:
    from askance.agents.judge import EquivalenceJudge, PreferenceJudge
    from askance.cli.workspace import CommandWorkspace
    from askance.evals import Run
    from askance.evals.judges import (
        AnswerPairs,
        CorrectedRate,
        JudgeCard,
        Labels,
        RunPreferences,
    )
    from askance.evals.tables import Table


SHOWN = 20
"""Ids that are listed at most."""

app = command_group("Judges of free text: what they prefer, and how far to trust them.")


@dataclass(frozen=True, kw_only=True)
class CardOptions:
    """The options of one `askance judge card` beside those of its calls; None is not given."""

    labels: Annotated[
        Path,
        typer.Option(
            help="What people say: CSV or JSONL with reference, candidate, and verdict or votes; question, group, id. "
            "Or an export of Label Studio."
        ),
    ]
    judge: Annotated[
        list[str] | None,
        typer.Option(help="The judge: a spec such as openai:gpt-4o, or a name from askance.toml; several are a panel."),
    ] = None
    form: Annotated[
        Literal["rubric", "short"],
        typer.Option(help="rubric compares first and may be unclear; short asks True or False."),
    ] = "rubric"
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
def card(options: CardOptions, calls: PromptCalls) -> None:
    """Hold a judge against people's labels: how often it is right, beyond chance, and how steady it is."""
    from askance.agents import judge_panel
    from askance.agents.judge import QUESTION
    from askance.cli.execute import execute
    from askance.cli.workspace import open_workspace
    from askance.evals import Run
    from askance.evals.judges import judge_card, read_labels, verdict_job

    _check_judge(options.judge or (), local=calls.local)
    _check_file(options.html, "--html", "card.html", plan=calls.plan)
    labels, run = read_labels(options.labels), None if options.run is None else Run.open(options.run)
    with open_workspace(calls, name="judge") as work:
        judges = _judges(options, work)
        judge = judges[0] if len(judges) == 1 else judge_panel(*judges)
        how: Any = {"draws": options.draws, "swaps": options.swaps, "question": options.question or QUESTION}
        ask = partial(judge_card, judge, labels, **how, seed=options.seed, room=lambda: work.engine.places)
        code = execute(
            work,
            lambda progress: ask(on_progress=progress.update),
            lambda made: _card_report(options, made, labels, run, work),
            plan=lambda: verdict_job(judge, labels.rows, **how).plan(),
            as_json=options.as_json,
            progress=lambda: work.progress("pairs"),
            interrupted=lambda _: _INTERRUPTED,
        )
    raise typer.Exit(code)


_INTERRUPTED = "Interrupted. The same command goes on: what is on record is not asked again."


def _card_report(
    options: CardOptions, made: JudgeCard, labels: Labels, run: Run | None, work: CommandWorkspace
) -> Report:
    """A card, whose page is written after it."""
    from askance.evals.judges import corrected_rate

    rate = None if run is None else corrected_rate(made, run, seed=options.seed)
    form = {**made.form(), **({} if rate is None else {"corrected": rate.form()})}

    def end() -> int:
        if options.html is not None:
            from askance.evals.report.card_page import card_page

            _write_page(options.html, lambda: card_page(made, rate=rate, labels=labels))
        return _end(work, made.counters, unscored=any(pair.says is None for pair in made.labelled))

    return Report(lambda: form, lambda: card_parts(made, rate), ends=end)


def _end(work: CommandWorkspace, counters: Mapping[str, Any], *, unscored: bool) -> int:
    """Says what was asked; returns the exit code."""
    echo("\n".join([str(work.tally), *_counters(counters)]), err=True)
    budget = work.engine.budget
    if unscored and budget is not None and budget.used_up:
        echo("The budget is used up. The same command with a larger --budget asks for the rest.", err=True)
    return SOME if unscored else OK


def _check_judge(judge: Sequence[str], *, local: bool) -> None:
    """Refuses a command without a judge, and `--local` beside a judge that is named.

    Raises:
        UsageError: no judge is named, or both kinds are.
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


def _check_file(out: Path | None, option: str, such_as: str, *, plan: bool) -> None:
    """Refuses a file that could not be written, before anything is asked.

    Raises:
        UsageError: it could not.
    """
    if out is not None and plan:
        raise UsageError(f"`--plan` asks nothing, so there is nothing for `{option}` to show.", hint="Leave one out.")
    if out is not None and out.is_dir():
        what = "the page is one file" if option == "--html" else "the preferences are one file"
        raise UsageError(f"{str(out)!r} is a folder, and {what}.", hint=f"Name a file: {option} {such_as}")


def _write_page(out: Path, make: Callable[[], str]) -> None:
    from askance.evals.report.html import write_page

    size = write_page(out, lambda _: make())
    echo(f"The page is in {out} ({size / 1e6:.1f} MB).", err=True)


def _judges(options: CardOptions, work: CommandWorkspace) -> list[EquivalenceJudge]:
    from askance.agents import judge_equivalence

    named = _named(options.judge, work)
    return [judge_equivalence(work.model(spec), form=options.form, prompts=work.library) for spec in named]


def _named(judge: Sequence[str] | None, work: CommandWorkspace) -> Sequence[str]:
    """The judges that the command line names, or the one of `--local`."""
    return judge or [name for name in (work.local_model,) if name is not None]


def card_parts(card: JudgeCard, rate: CorrectedRate | None) -> Iterator[Part]:
    """The card for a person: figures, the table of verdicts, and what there is to know."""
    from askance.evals.report.card_page import figures_table, rates_table

    yield f"{card.judge}\non {card.labels['name']}: {_counts(card)}\n"
    yield figures_table(card)
    yield _verdicts(card)
    if rate is not None:
        yield rates_table(rate)
    notes = [*card.notes, *(() if rate is None else rate.notes)]
    if any(figure.name == "flip rate" for figure in card.figures):
        notes.append("Flip rate: pairs whose verdict changes when reference and candidate change places.")
    yield from (f"· {note}" for note in notes)


def _counters(counters: Mapping[str, Any]) -> Iterator[str]:
    """A line for each model whose backend counts what it computes."""
    from askance.models import Counters

    return (f"{name}: {Counters.from_canonical(form)}." for name, form in counters.items())


def _counts(card: JudgeCard) -> str:
    pairs, true = len(card.labelled), sum(bool(pair.truth) for pair in card.labelled)
    groups = len({pair.group for pair in card.labelled})
    return f"{many(pairs, 'labelled pair')} in {many(groups, 'group')}, {true:,} of them true"


def _verdicts(card: JudgeCard) -> Table:
    from askance.evals.judges.card import VERDICTS
    from askance.evals.tables import Table

    rows = tuple((f"people: {truth}", *(counts[each] for each in VERDICTS)) for truth, counts in card.table.items())
    return Table(columns=("", *(f"judge: {each}" if each != "unscored" else each for each in VERDICTS)), rows=rows)


# --- preferences ---


@dataclass(frozen=True, kw_only=True)
class PreferOptions:
    """The options of one `askance judge prefer` beside those of its calls; None is not given."""

    against: Annotated[
        str,
        typer.Option(
            metavar="references|RUN2", help="What the run (A) is held against (B): its references, or another run."
        ),
    ]
    judge: Annotated[
        list[str] | None,
        typer.Option(help="A judge: a spec such as openai:gpt-4o, or a name from askance.toml; repeat it for several."),
    ] = None
    question: Annotated[str | None, typer.Option(help="What the answers answer; by default what their task says.")] = (
        None
    )
    human: Annotated[
        Path | None,
        typer.Option(
            help="People's votes, CSV, JSON or JSONL: id, and votes (A;B;A) or one vote a row; or an export of Label "
            "Studio. Makes a card."
        ),
    ] = None
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many pairs, the first ones.")] = None
    seed: Annotated[int, typer.Option(help="Of the bootstraps.")] = 0
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="File that keeps every pair and all figures, as JSON.")
    ] = None
    html: Annotated[Path | None, typer.Option("--html", help="Also write a page, with plots and every pair.")] = None
    task: TaskPlace = None
    as_json: AsJson = False


@app.command(epilog=HELP)
@spelled_out
def prefer(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run whose answers are texts.")],
    options: PreferOptions,
    calls: PromptCalls,
) -> None:
    """Ask judges which of two answers is better: a run's, and its references' or another run's.

    Every judge is asked about every pair in both orders, and sees no picture. A side wins a pair where it wins in both
    orders; several judges decide by majority. Ties, flips and pairs without a preference are counted apart.
    """
    from askance.cli.execute import execute
    from askance.cli.workspace import open_workspace
    from askance.evals import Run
    from askance.evals.judges import answer_pairs, judge_preferences, preference_job, read_votes
    from askance.evals.judges.answer_pairs import REFERENCES
    from askance.evals.judges.preference import check_judges, votes_by_pair

    _check_judge(options.judge or (), local=calls.local)
    _check_file(options.out, "--out", "preferences.json", plan=calls.plan)
    _check_file(options.html, "--html", "preferences.html", plan=calls.plan)
    against = None if options.against == REFERENCES else Run.open(options.against)
    pairs = answer_pairs(Run.open(run), against, question=options.question, limit=options.limit, task=options.task)
    votes = None if options.human is None else read_votes(options.human)
    with open_workspace(calls, name="judge") as work:
        judges = _preference_judges(options, work)
        check_judges(judges)
        votes_by_pair(pairs, votes)  # whatever is wrong is said before anybody is asked
        ask = partial(judge_preferences, judges, pairs, votes=votes, seed=options.seed, room=lambda: work.engine.places)
        code = execute(
            work,
            lambda progress: ask(on_progress=progress.update),
            lambda made: _preference_report(options, made, pairs, work),
            plan=lambda: preference_job(judges, pairs).plan(),
            as_json=options.as_json,
            progress=lambda: work.progress("pairs"),
            interrupted=lambda _: _INTERRUPTED,
        )
    raise typer.Exit(code)


def _preference_report(
    options: PreferOptions, made: RunPreferences, pairs: AnswerPairs, work: CommandWorkspace
) -> Report:
    """Preferences, which are written to a file first; their page is written after them."""
    import json

    from askance.evals.run_folder import write_whole

    if options.out is not None:
        write_whole(options.out, json.dumps(made.form(), ensure_ascii=False) + "\n")

    def end() -> int:
        if options.out is not None:
            echo(f"All pairs are in {options.out}.", err=True)
        if options.html is not None:
            from askance.evals.report.preference_page import preference_page

            _write_page(options.html, lambda: preference_page(made, pairs))
        return _end(work, made.counters, unscored=any(value is None for pair in made.judged for value in pair.values))

    return Report(made.form, lambda: preference_parts(made), ends=end)


def _preference_judges(options: PreferOptions, work: CommandWorkspace) -> list[PreferenceJudge]:
    from askance.agents import judge_preference

    return [judge_preference(work.model(spec), prompts=work.library) for spec in _named(options.judge, work)]


def preference_parts(made: RunPreferences) -> Iterator[Part]:
    """Preferences for a person: the verdict, tables by judge, agreement, unanimous pairs, and what there is to know."""
    from askance.evals.report import preference_page as page

    a, b = made.names
    yield f"A  {a}\nB  {b}\n\n{made.sentence}"
    yield f"{page.counts_of(made)}\n"
    yield "\n".join(f"{place}  {name}" for place, name in enumerate(made.judges, start=1)) + "\n"
    yield page.wins_table(made)
    yield page.lengths_table(made)
    if made.agreement is not None:
        yield page.agreement_table("judges agree", made.agreement)
        yield from _unanimous("All judges prefer", made.unanimous)
    if made.card is not None:
        yield f"{page.people_of(made.card)}\n"
        yield page.people_table(made.card)
        yield page.sides_table(made.card)
        if made.card.people_agree is not None:
            yield page.agreement_table("people agree", made.card.people_agree)
            yield from _unanimous("All people prefer", made.card.unanimous)
    yield from (f"· {note}" for note in page.notes_of(made))


def _unanimous(who: str, sides: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for side, ids in sides.items():
        named = ", ".join(ids[:SHOWN])
        more = f" … and {len(ids) - SHOWN:,} more; `--json` has them all" if len(ids) > SHOWN else ""
        yield f"{who} {side.upper()} in {many(len(ids), 'pair')}{': ' if ids else ''}{named}{more}."
    yield ""


# --- sheets for people ---


@dataclass(frozen=True, kw_only=True)
class JudgeSheetOptions:
    """The options of one `askance judge sample`; None is not given."""

    against: Annotated[
        str,
        typer.Option(
            metavar="references|RUN2",
            help="What the run's answers (A) stand beside (B): its references, or another run.",
        ),
    ]
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for label-studio.json and label-studio.xml.")]
    purpose: Annotated[
        Literal["card", "prefer"],
        typer.Option(
            "--for",
            help="card: does an answer say the same as its reference? prefer: which of two answers is better?",
        ),
    ] = "prefer"
    question: Annotated[str | None, typer.Option(help="What the answers answer; by default what their task says.")] = (
        None
    )
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many pairs, the first ones.")] = None
    task: TaskPlace = None
    as_json: AsJson = False


@app.command()
@spelled_out
def sample(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run whose answers are texts.")],
    options: JudgeSheetOptions,
) -> None:
    """Write a run's answers as tasks of Label Studio; `card --labels` and `prefer --human` take its export back.

    Pairs without an answer are left out.
    """
    from askance.evals import Run
    from askance.evals.judges import answer_pairs, write_label_sheet
    from askance.evals.judges.answer_pairs import REFERENCES
    from askance.evals.label_studio import CONFIG, TASKS

    against = None if options.against == REFERENCES else Run.open(options.against)
    if options.purpose == "card" and against is not None:
        raise UsageError(
            "A card needs answers beside their references, and --against names a run.",
            hint="Write --against references, or --for prefer.",
        )
    pairs = answer_pairs(Run.open(run), against, question=options.question, limit=options.limit, task=options.task)
    sheet = write_label_sheet(pairs, options.out, purpose=options.purpose)
    form = {"pairs": sheet.pairs, "left_out": [*sheet.left_out]}
    parts = [str(options.out / name) for name in (TASKS, CONFIG)]
    Report(lambda: form, lambda: parts, breaks=False).print(as_json=options.as_json)
    takes_back = "judge card --labels" if options.purpose == "card" else "judge prefer --human"
    echo(
        f"{many(sheet.pairs, 'pair')}; {len(sheet.left_out):,} left out for lack of an answer.\n"
        f"The project, exported as JSON or JSON-MIN, goes to `askance {takes_back} FILE.json`.",
        err=True,
    )
