"""Options that several commands share, and groups of options that a command takes as one value.

A command may take a dataclass whose fields are options:

```python
@app.command()
@spelled_out
def card(options: CardOptions, calls: ModelCalls) -> None: ...
```
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, ParamSpec, TypeVar, get_type_hints

import typer

from askance.cli.completion import model_names
from askance.errors import UsageError

if TYPE_CHECKING:
    from askance.chat import Outcome
    from askance.evals.tables import TableLayout
    from askance.replay import Mode as RecordMode

P = ParamSpec("P")
Given = TypeVar("Given")


def spelled_out(command: Callable[..., None]) -> Callable[..., None]:
    """`command` for typer: each parameter that is a dataclass becomes one option for each of its fields."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint) and isinstance(hint, type)}

    @wraps(command)
    def called(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    parameters = [
        each
        for parameter in inspect.signature(command).parameters.values()
        for each in (
            _options_of(groups[parameter.name])
            if parameter.name in groups
            else [parameter.replace(annotation=hints[parameter.name])]
        )
    ]
    needed_first = sorted(parameters, key=lambda each: each.default is not each.empty)
    vars(called)["__signature__"] = inspect.Signature(needed_first)
    return called


def named_values(texts: Sequence[str], *, of: str, flag: str = "-T") -> dict[str, str]:
    """The values that `-T NAME=VALUE` gives, by name; of one name the last.

    Args:
        texts: what stands behind each `-T`.
        of: what takes them: `a task`.
        flag: in the place of `-T`.

    Raises:
        UsageError: a text has no name or no value.
    """
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise UsageError(f"{text!r} is no option of {of}.", hint=f"Write `{flag} name=value`.")
        values[name] = value
    return values


def _options_of(group: type[Any]) -> Iterator[inspect.Parameter]:
    """The fields of `group` as parameters of a command."""
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        yield inspect.Parameter(field.name, kind, default=default, annotation=hints[field.name])


# Which models.
Vlm = Annotated[
    str | None,
    typer.Option(
        help="The model that sees: a spec such as openai:gpt-4o, or a name from askance.toml.",
        autocompletion=model_names,
    ),
]
Llm = Annotated[
    str | None, typer.Option(help="The model that reads words; by default the VLM.", autocompletion=model_names)
]
Extract = Annotated[
    str | None,
    typer.Option(
        help="A model that reads which option a reply chooses where no rule can read it.", autocompletion=model_names
    ),
]
Local = Annotated[
    bool,
    typer.Option(
        "--local", help="A small open model on this machine for roles that are given no other; asks before a download."
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Agree to the download of --local beforehand.")]

# How they are asked.
Plan = Annotated[
    bool, typer.Option("--plan", help="Only say what would be asked and what that would cost; ask nothing.")
]
Budget = Annotated[
    str | None,
    typer.Option(
        help="The most that may be spent, all starts together: 5.00 (dollars), 20000tokens, 100calls; 5.00@NAME is for "
        "all who share the records."
    ),
]
Batch = Annotated[
    bool, typer.Option("--batch", help="Ask by the provider's batch interface: half the price, an answer within a day.")
]
Replay = Annotated[bool, typer.Option("--replay", help="Short for --mode replay: nothing is asked.")]
Mode = Annotated[
    Literal["live", "auto", "replay", "refresh"] | None,
    typer.Option(help="auto: answers on record, else ask. live and refresh ask always."),
]
Retry = Annotated[
    str | None, typer.Option(help="Ask again for answers on record that are: invalid,refused,filtered,truncated.")
]
Concurrency = Annotated[
    int | None, typer.Option(min=1, help="Calls to one endpoint at a time; by default as many as it takes well.")
]
Rpm = Annotated[
    float | None, typer.Option(help="Calls to one endpoint per minute; by default as many as it lets through.")
]
Tpm = Annotated[float | None, typer.Option(help="Tokens per minute, in and out, likewise.")]
Prompts = Annotated[Path | None, typer.Option(help="Folder with prompts of your own; by default ./prompts.")]
InProtocol = Annotated[
    Literal["auto", "paper"], typer.Option("--protocol", help="paper asks in the text form of the paper.")
]
Records = Annotated[
    str | None,
    typer.Option("--store", metavar="<path>", help="Folder of the records; by default .askance of the project."),
]

AllowFolder = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FOLDER",
        help="A folder that a table may name images of, beside its own; may be repeated.",
        exists=True,
        file_okay=False,
    ),
]

# Of evaluations.
TaskPlace = Annotated[
    str | None, typer.Option("--task", help="Where the task is, if not where the run says: a name or a file.")
]
DigitsOption = Annotated[
    int | None, typer.Option("--digits", min=0, max=9, help="Places behind the point; by default 2 of a percentage.")
]
CaptionOption = Annotated[str, typer.Option("--caption", help="Of the table; by default its task.")]
LabelOption = Annotated[str, typer.Option("--label", help="By which LaTeX refers to the table; the id of HTML.")]
ConventionOption = Annotated[
    Literal["wrong", "answered"] | None,
    typer.Option(help="Samples without an answer count as wrong (the default), or are left out: answered."),
]

# Of judges.
JudgeForm = Annotated[
    Literal["rubric", "short"], typer.Option(help="How it is asked: by a rubric, or short: true or false.")
]

# What is printed.
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]


@dataclass(frozen=True, kw_only=True)
class Calls:
    """How models are asked: the options of every command that asks one. None is not given."""

    plan: Plan = False
    budget: Budget = None
    replay: Replay = False
    mode: Mode = None
    retry: Retry = None
    concurrency: Concurrency = None
    rpm: Rpm = None
    tpm: Tpm = None
    prompts: Prompts = None
    store: Records = None

    @property
    def record_mode(self) -> RecordMode:
        """How answers on record are used.

        Raises:
            UsageError: `--replay` and `--mode` contradict each other.
        """
        if self.replay and self.mode not in {None, "replay"}:
            raise UsageError(
                f"--replay and --mode {self.mode} contradict each other.",
                hint="Leave one out.",
            )
        return "replay" if self.replay else (self.mode or "auto")

    @property
    def outcomes_retried(self) -> frozenset[Outcome]:
        """Outcomes on record that are asked again."""
        names: Any = frozenset(name.strip() for name in (self.retry or "").split(",") if name.strip())
        return names

    def check_batch(self, *, wanted: bool) -> None:
        """Refuses `--batch` in another mode than `auto`.

        Raises:
            UsageError: it is wanted in one.
        """
        if wanted and self.record_mode != "auto":
            raise UsageError(
                "`--batch` reads its answers from the records, so it goes with no other mode.",
                hint="Leave one of them out.",
            )

    def check_recorded(self, so: str) -> None:
        """Refuses the mode `live`, which does not record what is answered.

        Args:
            so: what follows from that.

        Raises:
            UsageError: this is the mode.
        """
        if self.record_mode == "live":
            raise UsageError(
                f"`--mode live` leaves answers on record as they are, so {so}.",
                hint="Use `--mode refresh`, which records the new answers.",
            )


@dataclass(frozen=True, kw_only=True)
class ModelCalls(Calls):
    """`Calls` of commands that can do with a small model on this machine."""

    local: Local = False
    yes: Yes = False


@dataclass(frozen=True, kw_only=True)
class PromptCalls(ModelCalls):
    """`ModelCalls` of commands that can ask in the text form of the papers."""

    protocol: InProtocol = "auto"


_LAID_OUT: Mapping[str, frozenset[str]] = {
    "latex": frozenset({"--digits", "--caption", "--label", "--bold", "--against"}),
    "html": frozenset({"--digits", "--caption", "--label", "--bold", "--against"}),
    "markdown": frozenset({"--digits", "--caption", "--bold", "--against"}),
    "json": frozenset({"--bold", "--against"}),
}
"""By form of a table the options that say how it looks."""


def layout_of(form: str, *, digits: int | None, caption: str, label: str, marks: Sequence[str] = ()) -> TableLayout:
    """How a table is written.

    Args:
        form: of the text; empty where there is no table.
        digits: places behind the point.
        caption: of the table.
        label: of the table.
        marks: other options that are given and say how it looks.

    Raises:
        UsageError: the form has no place for one of these, or the label is none.
    """
    from askance.evals.tables import TableLayout

    given = {"--digits": digits is not None, "--caption": bool(caption), "--label": bool(label)}
    names = [*marks, *(name for name, is_given in given.items() if is_given)]
    wrong = next((name for name in names if name not in _LAID_OUT.get(form, ())), None)
    if wrong is not None:
        forms = ", ".join(each for each, takes in _LAID_OUT.items() if wrong in takes)
        what = f"does not go with `--format {form}`" if form else "is for a table"
        raise UsageError(f"`{wrong}` {what}.", hint=f"Name a form that takes it by `--format`: {forms}.")
    return TableLayout(digits=digits, caption=caption, label=label)
