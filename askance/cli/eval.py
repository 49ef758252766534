"""`askance eval`: tasks over data, their runs, and tables of runs."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from askance.amounts import many, money
from askance.cli.columns import Columns, Line, Part, Report, table_text
from askance.cli.completion import figure_names, task_names, task_options
from askance.cli.grid import grid
from askance.cli.group import command_group
from askance.cli.options import (
    AllowFolder,
    AsJson,
    Batch,
    CaptionOption,
    ConventionOption,
    DigitsOption,
    Extract,
    LabelOption,
    Llm,
    ModelCalls,
    TaskPlace,
    Vlm,
    layout_of,
    named_values,
    spelled_out,
)
from askance.cli.process import HELP, INTERRUPTED, OK, SOME, Process
from askance.cli.risk import risk
from askance.errors import UsageError
from askance.terminal import echo, printable

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pydantic.fields import FieldInfo

    from askance.chains import Plan
    from askance.cli.progress import EvaluationProgress
    from askance.cli.workspace import CommandWorkspace
    from askance.evals import Evaluation, Figure, Run
    from askance.evals.analysis.rescore import RescoreResult
    from askance.evals.runner import SampleEpoch
    from askance.evals.task import Task
    from askance.workspace import Workspace

app = command_group("Evaluations: tasks over data, their runs, and tables of runs.")


def _leave_langchain_out(context: typer.Context, task: str | None) -> None:
    """Loads no LangChain, unless the task is somebody's own code, which may compose with it."""
    from askance.evals.suite_registry import is_own_code

    if not is_own_code(task):
        Process.of(context).without_langchain()


@app.command("list")
def list_tasks(
    context_: typer.Context,
    task: Annotated[
        str | None,
        typer.Argument(
            help="A task, by name or file: its options, their types, defaults and meanings.", autocompletion=task_names
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the tasks that are installed, or the options of one."""
    _leave_langchain_out(context_, task)
    if task is None:
        _print_tasks(as_json=as_json)
    else:
        _print_options(task, as_json=as_json)


def _print_tasks(*, as_json: bool) -> None:
    """Prints the packaged tasks, with what each takes."""
    from askance.evals.task_catalog import packaged

    tasks = packaged()

    def parts() -> Iterator[Part]:
        names = max((len(name) for name in tasks), default=0)
        for name, task in tasks.items():
            yield Line(f"{name:<{names}}  {task.summary()}", names + 2)
            yield Line(f"{'':<{names}}  takes {', '.join(task.takes())}", names + 2)
        yield "A task of your own is named by its file: my_task.py, my_task.py@NAME, my_task.yaml."

    forms = [{"name": each.name, "summary": each.summary(), "takes": [*each.takes()]} for each in tasks.values()]
    Report(lambda: forms, parts).print(as_json=as_json)


def _print_options(name: str, *, as_json: bool) -> None:
    """Prints what a task takes: each option with its type, its default and what it means.

    Raises:
        UsageError: there is no such task.
    """
    from askance.evals.task_catalog import find_task
    from askance.evals.task_options import type_in_words

    task = find_task(name)
    options = [
        {
            "name": option,
            "takes": type_in_words(each),
            "needed": each.is_required(),
            "default": None if each.is_required() else json.loads(json.dumps(each.default, default=str)),
            "meaning": _meaning(each),
        }
        for option, each in task.takes().items()
    ]
    form = {"name": task.name, "summary": task.summary(), "options": options}
    parts = [f"{task.name}  {task.summary()}\n"]
    for option, each in task.takes().items():
        default = "" if each.default is None else f", default {_default_text(each.default)}"
        kind = f"{type_in_words(each)}{', needed' if each.is_required() else default}"
        parts.append(f"  {option}  ({kind})\n      {_meaning(each)}")
    parts.append("\nAn option is given by `-T name=value`; `eval run --help` has those with a name of their own.")
    Report(lambda: form, lambda: parts).print(as_json=as_json)


def _meaning(option: FieldInfo) -> str:
    return " ".join((option.description or "").split())


def _default_text(default: Any) -> str:
    return default if isinstance(default, str) else json.dumps(default, default=str)


@dataclass(frozen=True, kw_only=True)
class EvaluationOptions:
    """The options of one `askance eval run` beside those of its calls; None is not given."""

    task: Annotated[
        str,
        typer.Argument(
            help="A name from `eval list`, or a file of your own: my_task.py, my_task.py@NAME, my.yaml.",
            autocompletion=task_names,
        ),
    ]
    data: Annotated[Path | None, typer.Option(help="Folder or file of the data.")] = None
    allow_folder: AllowFolder = None
    vlm: Vlm = None
    llm: Llm = None
    extract: Extract = None
    context: Annotated[
        str | None, typer.Option(help="What the description is made of, for tasks that have one: T_V, V+T, IN, UH, …")
    ] = None
    fold: Annotated[
        str | None, typer.Option(help="Which fold of the data is run, for tasks that have folds: 0, 1, …, all.")
    ] = None
    limit: Annotated[int | None, typer.Option(min=1, help="Run so many samples, the first ones of the task.")] = None
    ids: Annotated[Path | None, typer.Option(help="Run the samples of these ids: a file, one a line or JSON.")] = None
    seed: Annotated[int | None, typer.Option(help="Of all that is drawn; by default 0.")] = None
    epochs: Annotated[int, typer.Option(min=1, help="How often each sample is answered.")] = 1
    option: Annotated[
        list[str] | None,
        typer.Option(
            "-T", metavar="NAME=VALUE", help="An option of the task; may be repeated.", autocompletion=task_options
        ),
    ] = None
    control: Annotated[
        Literal["swapped-image", "swapped-region"] | None,
        typer.Option(help="Every sample is shown another sample's picture, or is asked about another's region."),
    ] = None
    convention: ConventionOption = None
    label: Annotated[str | None, typer.Option(help="Name of the run in tables; by default its models.")] = None
    batch: Batch = False
    workers: Annotated[
        str | None,
        typer.Option(
            metavar="N|ray|ray:N", help="Processes that have the samples answered: of this machine, or actors of Ray."
        ),
    ] = None
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Folder of the run; by default runs/TASK-…, named by what decides the answers."
        ),
    ] = None
    as_json: AsJson = False

    @property
    def for_task(self) -> dict[str, Any]:
        """The options that only a task can take, of those that are given."""
        named = {"data": self.data, "vlm": self.vlm, "llm": self.llm, "context": self.context}
        return {name: value for name, value in named.items() if value is not None}


@app.command("run", epilog=HELP)
@spelled_out
def run(context_: typer.Context, options: EvaluationOptions, calls: ModelCalls) -> None:
    """Run a task and score it; the same command goes on with a run that was interrupted."""
    _leave_langchain_out(context_, options.task)
    from askance.cli.workspace import open_workspace
    from askance.evals.run_plan import planning
    from askance.evals.task_catalog import find_task

    calls.check_batch(wanted=options.batch)
    calls.check_recorded("no run could keep what was answered")
    with open_workspace(calls) as work:
        _ = work.config  # an error in the settings is said before one in the task
        with planning() if calls.plan else nullcontext():
            task = _task(options, find_task(options.task), work)
        _remember(options.task)
        code = _EvaluationRun(options, task, work).run()
    raise typer.Exit(code)


def _remember(task: str) -> None:
    """Keeps that the user has run this Python file, so that the runs which it makes may name it."""
    from askance.evals.task_catalog import PYTHON
    from askance.python_file import read_source
    from askance.trust import Consent, agree

    file = Path(task.partition("@")[0])
    if file.suffix.lower() in PYTHON:
        with suppress(UsageError):  # where nothing can be kept, the next command asks
            consent = Consent.to_python(file, read_source(file))
            if not consent.given:
                agree(consent)


_GENERAL = ("limit", "ids", "control")
"""Options that every task can be given: those that it does not take itself are applied to its samples."""


def _task(options: EvaluationOptions, task: type[Task], work: Workspace) -> Evaluation:
    """The task with the samples that are asked for; a task that takes `ids` or `limit` itself selects them itself."""
    from askance.evals.controls import controlled
    from askance.evals.suite.selection import read_names
    from askance.prompts import overlay_prompts

    task_options, rest = _task_options(options, task, work)
    with overlay_prompts(*work.library.overlays):
        made = task(**task_options)
        first = "limit" in rest and "ids" not in rest
        evaluation = made.evaluation_of_first(rest["limit"]) if first else made.evaluation()
    if options.label is not None:
        evaluation = replace(evaluation, label=options.label)
    if options.extract is not None:
        evaluation = evaluation.with_extractor(work.model(options.extract))
    if "ids" in rest:
        evaluation = evaluation.with_ids(read_names(rest["ids"]))
        evaluation = evaluation.limited(rest["limit"]) if "limit" in rest else evaluation
    if "control" in rest:
        evaluation = controlled(evaluation, rest["control"], seed=options.seed or 0)
    return evaluation


def _task_options(
    command_options: EvaluationOptions, task: type[Task], work: Workspace
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options that the task takes, and those that are applied to its samples.

    Raises:
        UsageError: an option is given that the task does not take, or one that cannot be read.
    """
    from askance.evals.task import WORKSPACE
    from askance.evals.task_options import ROLES, of_own_fold
    from askance.workspace import Role

    takes = task.takes()
    options = command_options.for_task
    options |= _given_options(command_options, takes)
    general = {name: value for name in _GENERAL if (value := getattr(command_options, name)) is not None}
    options |= {name: value for name, value in general.items() if name in takes}
    if command_options.seed is not None and "seed" in takes:
        options["seed"] = command_options.seed
    for role in () if task.replaces_models(options) else get_args(Role):
        if (
            role not in options
            and role in takes
            and _uses_configured(takes[role], command_options)
            and (name := work.default_model(role))
        ):
            options[role] = name
    options = of_own_fold(options)
    options |= {role: work.model(options[role]) for role in ROLES if options.get(role) is not None}
    shared = dict(zip(WORKSPACE, (work.engine, work.library, tuple(command_options.allow_folder or ())), strict=True))
    if command_options.allow_folder and "allow_folders" not in task.model_fields:
        raise UsageError(
            f"The task {task.name!r} reads no table that names pictures.", hint="Leave `--allow-folder` out."
        )
    options |= {name: value for name, value in shared.items() if name in task.model_fields}
    return options, {name: value for name, value in general.items() if name not in takes}


def _uses_configured(option: FieldInfo, options: EvaluationOptions) -> bool:
    """Whether the settings file's model is used: if the task needs one, or if no model is named at all."""
    from askance.evals.task_options import ROLES

    named = any(role in options.for_task for role in ROLES)
    return option.is_required() or not named


def _given_options(options: EvaluationOptions, takes: Mapping[str, FieldInfo]) -> Mapping[str, Any]:
    """The options of the task that `-T` names, and `--fold`, which stands for `-T fold=…`."""
    from askance.evals.task_options import kinds_of

    values = named_values(options.option or (), of="a task")
    if options.fold is not None and (other := values.setdefault("fold", options.fold)) != options.fold:
        raise UsageError(f"`--fold {options.fold}` and `-T fold={other}` are different.", hint="Give one of them.")
    return {name: _option_value(text, kinds_of(takes[name]) if name in takes else ()) for name, text in values.items()}


def _option_value(text: str, kinds: Collection[Any]) -> Any:
    """The value of a text for an option that takes one of `kinds`: read as JSON, or else the text itself."""
    if Path in kinds or (str in kinds and not {int, float, bool} & {*kinds}):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


@dataclass
class _EvaluationRun:
    """A run of a task, and what is printed about it."""

    options: EvaluationOptions
    task: Evaluation
    work: CommandWorkspace

    def run(self) -> int:
        """Runs it, or plans that; returns the exit code."""
        from askance.cli.execute import GOES_ON, execute, plan_report
        from askance.evals.runner import run_job

        if self.options.workers is not None and not self.work.plan:
            try:
                self._ask_workers(self.options.workers)
            except KeyboardInterrupt:
                echo(f"{GOES_ON}.", err=True)
                return INTERRUPTED
        return execute(
            self.work,
            self._evaluated,
            lambda run: Report(lambda: _run_form(run), lambda: figures_of(run), ends=lambda: self._end(run)),
            plan=lambda: run_job(self.task, self._epochs, self.work.engine).plan(),
            planned=lambda plan: plan_report(plan, self.work.engine, notes=self.task.notes),
            as_json=self.options.as_json,
            progress=self._progress,
            interrupted=self._interrupted,
        )

    def _ask_workers(self, named: str) -> None:
        """Has workers make the calls; the evaluation then finds them on record."""
        from askance.cli.scale import workers_named
        from askance.evals.analysis.asked_cost import sum_of
        from askance.evals.solver import as_solver
        from askance.scale import ask_samples

        workers, work = workers_named(named), self.work
        if self.options.batch or work.mode != "auto":
            raise UsageError(
                "`--workers` put their answers on record, so they go with no `--batch` and no other mode.",
                hint="Leave one of them out.",
            )
        self._use_ledger()
        budget = None if work.records.remote else work.engine.budget
        ledger = None if budget is None else budget.ledger
        with work.progress("samples") as progress:
            progress.update(0, len(self._epochs))
            solver = as_solver(self.task.solver)
            receipts = ask_samples(solver, self._epochs, workers, ledger=ledger, on_progress=progress.update)
        calls, dollars = sum(each.calls for each in receipts), sum_of(each.dollars for each in receipts)
        price = "cost not known" if dollars is None else money(dollars)
        echo(f"Workers made {many(calls, 'call')} ({price}); what follows finds their answers on record.", err=True)

    def _use_ledger(self) -> None:
        """Keeps the ledger in the run's folder; with the records where workers spend before there is one."""
        from askance.evals.run_format import LEDGER

        if self.options.workers is None:
            self.work.use_ledger(file=self._place / LEDGER)  # nothing is written before the run has its folder
        else:
            self.work.use_ledger(name=self._place.name)

    @property
    def _epochs(self) -> list[SampleEpoch]:
        from askance.evals.runner import SampleEpoch

        return [
            SampleEpoch(sample=each, epoch=epoch) for epoch in range(self.options.epochs) for each in self.task.samples
        ]

    @cached_property
    def _place(self) -> Path:
        from askance.evals.runner import configuration_of, place_of

        return self.options.out or place_of(configuration_of(self.task, epochs=self.options.epochs))

    def _progress(self) -> AbstractContextManager[EvaluationProgress]:
        """Begins to show the progress; the run keeps its ledger from now on."""
        from askance.cli.progress import EvaluationProgress

        self._use_ledger()
        return closing(EvaluationProgress(self.work.tally, self.work.engine))

    async def _evaluated(self, progress: EvaluationProgress) -> Run:
        from askance.cli.execute import batch_options
        from askance.evals.runner import aevaluate

        options = self.options
        return await aevaluate(
            self.task,
            out=self._place,
            engine=self.work.engine,
            epochs=options.epochs,
            convention=options.convention or "wrong",
            seed=options.seed or 0,
            batches=batch_options() if options.batch else None,
            on_progress=progress,
        )

    def _end(self, run: Run) -> int:
        """Says what has no answer, what was asked, and what is left; returns the exit code."""
        from askance.cli.execute import say_budget
        from askance.cli.progress import say_unanswered

        say_unanswered(run)
        echo(f"{self.work.tally}\nThe run is in {self._place}.", err=True)
        say_budget(self.work.engine.budget, (lambda: self._left(run)) if run.left else None)
        return OK if run.totals["outcomes"].keys() <= {"answered"} and not run.left else SOME

    async def _left(self, run: Run) -> Plan:
        """The plan of the samples that the budget had nothing left for."""
        from askance.evals.runner import run_job

        answered = {(answer.sample.id, answer.epoch) for answer in run.answers}
        epochs = [each for each in self._epochs if (each.sample.id, each.epoch) not in answered]
        return await run_job(self.task, epochs, self.work.engine).plan()

    def _interrupted(self, progress: EvaluationProgress) -> str:
        from askance.cli.execute import GOES_ON, ON_RECORD

        return f"{progress}\n{self.work.tally}\n{GOES_ON}; {ON_RECORD} The run is in {self._place}."


@app.command()
def score(
    context_: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    reread: Annotated[
        bool, typer.Option("--reread", help="Read the run's own records again first: a mended parser takes effect.")
    ] = False,
    task: TaskPlace = None,
    convention: ConventionOption = None,
    as_json: AsJson = False,
) -> None:
    """Score a run again, without asking any model: after a change of the scoring, or of a parser."""
    from askance.evals.run_format import read_description

    form = read_description(folder)
    _leave_langchain_out(context_, task or form.get("origin", {}).get("task") or form["configuration"].get("task", ""))
    from askance.cli.progress import Progress
    from askance.evals.analysis.rescore import rescore
    from askance.evals.run import Run
    from askance.evals.task_catalog import task_of
    from askance.models import run_sync

    run = Run.open(folder)
    own = task_of(run, task)
    with Progress("samples") as progress:
        rescored = run_sync(rescore(run, own, reread=reread, convention=convention, on_progress=progress.count))
    for lack in rescored.lacks:
        echo(f"· {lack}.", err=True)
    form = {**_run_form(rescored.run), "reread": rescored.reread, "changed": rescored.changed, "kept": rescored.kept}
    Report(lambda: form, lambda: [*figures_of(rescored.run), *_reread(rescored)]).print(as_json=as_json)


_SHOWN = 3
"""Names of samples that are printed as examples, at most."""


def _reread(rescored: RescoreResult) -> Iterator[str]:
    if rescored.reread:
        changed = f"{len(rescored.changed):,} are answered otherwise now{_examples(rescored.changed)}"
        yield f"{many(rescored.reread, 'sample')} read again: {changed}."
    if rescored.kept:
        yield (
            f"{len(rescored.kept):,} keep what they had, since a call of theirs is not among the run's records"
            f"{_examples(rescored.kept)}."
        )


def _examples(names: tuple[str, ...]) -> str:

    shown = ", ".join(repr(printable(name)) for name in names[:_SHOWN])
    return f", such as {shown}" if shown else ""


@app.command()
def table(
    context: typer.Context,
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, or a folder of such.")],
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="A column; may be repeated. By default all.", autocompletion=figure_names),
    ] = None,
    form: Annotated[
        Literal["markdown", "csv", "latex", "html", "json"] | None,
        typer.Option("--format", help="How the table is written; by default markdown, and on a terminal in columns."),
    ] = None,
    bold: Annotated[bool, typer.Option("--bold", help="Put the best value of each column in bold.")] = False,
    against: Annotated[
        Path | None,
        typer.Option(help="Mark the runs that are better (*) or worse (†) than this one, by paired tests (Holm)."),
    ] = None,
    costs: Annotated[
        bool, typer.Option("--costs", help="Add what each run paid, and what its calls cost at list price as asked.")
    ] = False,
    digits: DigitsOption = None,
    caption: CaptionOption = "",
    label: LabelOption = "",
    task: TaskPlace = None,
) -> None:
    """Print a table of runs: one row each, a column a metric, with intervals.

    LaTeX needs the package booktabs; with a caption or a label it is a whole `table`, with the notes below it.
    """
    Process.of(context).without_langchain()
    from askance.evals.analysis.marked_table import marked_table
    from askance.evals.run import Run
    from askance.evals.tables import rendered

    marks = [name for name, given in (("--bold", bold), ("--against", against is not None)) if given]
    laid_out = bool(marks or caption or label) or digits is not None
    shape = form or "markdown"
    layout = layout_of(shape, digits=digits, caption=caption, label=label, marks=marks)
    made = marked_table(
        Run.open_all(folders),
        metrics=metric,
        bold=bold,
        against=None if against is None else Run.open(against),
        task=task,
        digits=digits,
        costs=costs,
    )
    echo(rendered(made, shape, layout) if form or laid_out else table_text(made), end="")


app.command()(grid)
app.command()(risk)


# --- figures of a run ---


def figures_of(run: Run) -> Iterator[Part]:
    """The figures of a run as a table, its outcomes, and what a reader has to know."""
    from askance.evals.sample import told_reads
    from askance.evals.tables import conventions_of
    from askance.models import Counters

    if run.figures:
        head = ("metric", "value", "95 % interval", "n", "answered", "if wrong", "if right")
        yield Columns([head, *(_figure_row(figure) for figure in run.figures if figure.samples)])
        yield ""
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in run.totals.get("outcomes", {}).items())
    left = f"; {run.left:,} left" if run.left else ""
    yield f"{many(run.totals.get('samples', 0), 'sample')}: {outcomes or 'none'}{left}."
    if reads := run.totals.get("read"):
        yield f"{told_reads(reads).capitalize()}."
    yield from (f"Convention: {words}." for words in conventions_of(run.figures))
    yield from (f"· {note}" for note in run.notes)
    yield from (f"{name}: {Counters.from_canonical(form)}." for name, form in run.counters.items())


def _figure_row(figure: Figure) -> tuple[str, ...]:
    from askance.evals.tables import NONE, shown_value

    def shown(value: float | None) -> str:
        return shown_value(value, percent=figure.percent)

    interval = figure.interval
    return (
        figure.metric,
        shown(figure.value),
        NONE if interval is None else f"{shown(interval.low)} – {shown(interval.high)}",
        f"{figure.samples:,}",
        f"{figure.answered:,}",
        shown(figure.if_wrong),
        shown(figure.if_right),
    )


def _run_form(run: Run) -> dict[str, Any]:
    """A run as one JSON object."""
    return {
        "run": run.path.as_posix(),
        "task": run.task,
        "name": run.name,
        "finished": run.finished,
        "samples": run.totals.get("samples", 0),
        "left": run.left,
        "outcomes": dict(run.totals.get("outcomes", {})),
        **({"read": dict(reads)} if (reads := run.totals.get("read")) else {}),
        "figures": [figure.form() for figure in run.figures],
        "notes": list(run.notes),
        **({"counters": dict(run.counters)} if run.counters else {}),
    }
