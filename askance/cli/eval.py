"""`askance eval`: tasks over data, their runs, and tables of runs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from askance.cli.exits import HELP
from askance.cli.options import AsJson, Batch, Llm, ModelCalls, Vlm, spelled_out
from askance.cli.process import Process

app = typer.Typer(
    help="Evaluations: tasks over data, their runs, and tables of runs.", no_args_is_help=True, rich_markup_mode=None
)


class ConventionName(StrEnum):
    """What becomes of samples without an answer."""

    wrong = "wrong"
    answered = "answered"


class ControlName(StrEnum):
    """Controls that go for any task with pictures."""

    swapped_image = "swapped-image"


class FormatName(StrEnum):
    """Forms of a table."""

    markdown = "markdown"
    csv = "csv"
    latex = "latex"
    json = "json"


TaskPlace = Annotated[
    str | None, typer.Option("--task", help="Where the task is, if not where the run says: a name or a file.")
]
ConventionOption = Annotated[
    ConventionName | None,
    typer.Option(help="Samples without an answer count as wrong (the default), or are left out: answered."),
]


def _leave_langchain_out(context: typer.Context, task: str | None) -> None:
    """Loads no LangChain, unless the task is somebody's own code, which may compose with it."""
    from askance.evals.plugins import is_own_code

    if not is_own_code(task):
        Process.of(context).without_langchain()


@app.command("list")
def list_tasks(
    context_: typer.Context,
    task: Annotated[
        str | None, typer.Argument(help="A task, by name or file: its options, their types, defaults and meanings.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the tasks that are installed, or the options of one."""
    _leave_langchain_out(context_, task)
    from askance.cli.figures import print_options, print_tasks

    if task is None:
        print_tasks(as_json=as_json)
    else:
        print_options(task, as_json=as_json)


@dataclass(frozen=True, kw_only=True)
class EvaluationOptions:
    """The options of one `askance eval run` beside those of its calls; None is not given."""

    task: Annotated[
        str,
        typer.Argument(help="A name from `eval list`, or a file of your own: my_task.py, my_task.py@NAME, my.yaml."),
    ]
    data: Annotated[Path | None, typer.Option(help="Folder or file of the data.")] = None
    vlm: Vlm = None
    llm: Llm = None
    context: Annotated[
        str | None, typer.Option(help="What the description is made of, for tasks that have one: T_V, V+T, IN, UH, …")
    ] = None
    limit: Annotated[int | None, typer.Option(min=1, help="Run so many samples, the first ones of the task.")] = None
    ids: Annotated[Path | None, typer.Option(help="Run the samples of these ids: a file, one a line or JSON.")] = None
    seed: Annotated[int | None, typer.Option(help="Of all that is drawn; by default 0.")] = None
    epochs: Annotated[int, typer.Option(min=1, help="How often each sample is answered.")] = 1
    option: Annotated[
        list[str] | None, typer.Option("-T", metavar="NAME=VALUE", help="An option of the task; may be repeated.")
    ] = None
    control: Annotated[
        ControlName | None, typer.Option(help="swapped-image: every sample is shown another sample's picture.")
    ] = None
    convention: ConventionOption = None
    label: Annotated[str | None, typer.Option(help="Name of the run in tables; by default its models.")] = None
    batch: Batch = False
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run; by default runs/TASK-…, named by what decides the answers.")
    ] = None
    as_json: AsJson = False

    @property
    def for_task(self) -> dict[str, Any]:
        """The options that only a task can take, of those that are given."""
        named = {"data": self.data, "vlm": self.vlm, "llm": self.llm, "context": self.context}
        return {name: value for name, value in named.items() if value is not None}


@app.command("run", epilog=HELP)
@spelled_out
def run(context_: typer.Context, asked: EvaluationOptions, calls: ModelCalls) -> None:
    """Run a task and score it; the same command goes on with a run that was interrupted."""
    _leave_langchain_out(context_, asked.task)
    from askance.cli.evaluation import evaluate_by

    raise typer.Exit(evaluate_by(asked, calls))


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
    from askance.evals.layout import described

    form = described(folder)
    _leave_langchain_out(context_, task or form.get("origin", {}).get("task") or form["configuration"]["task"])
    from askance.cli.figures import score_again

    raise typer.Exit(
        score_again(
            folder, reread=reread, task=task, convention=convention.value if convention else None, as_json=as_json
        )
    )


@app.command()
def table(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs.")],
    metric: Annotated[
        list[str] | None, typer.Option("--metric", help="A column; may be repeated. By default all.")
    ] = None,
    form: Annotated[FormatName, typer.Option("--format", help="How the table is written.")] = FormatName.markdown,
) -> None:
    """Print a table of runs: one row each, a column a metric, with intervals."""
    from askance.evals.run import Run
    from askance.evals.tables import rendered, table_of_runs

    print(rendered(table_of_runs([Run.open(folder) for folder in folders], metrics=metric), form.value), end="")
