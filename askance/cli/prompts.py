"""`askance prompts`: look at prompts, render, check and edit them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from askance.amounts import many
from askance.cli.columns import filled, terminal_width
from askance.cli.completion import prompt_names
from askance.cli.group import command_group
from askance.cli.process import SOME
from askance.errors import UsageError
from askance.terminal import echo

if TYPE_CHECKING:
    from askance.prompts import Prompt

app = command_group("Prompts: list, show, render, check, and copy out for editing.")

Folder = Annotated[
    Path | None,
    typer.Option("--prompts", help="Folder with prompts of your own; by default the configured one or ./prompts."),
]
Name = Annotated[str, typer.Argument(autocompletion=prompt_names)]
Family = Annotated[str | None, typer.Option(help="Wording for a model family, such as vicuna.")]


Form = Annotated[
    Literal["json", "text"], typer.Option(help="json: structured answers; text: the protocol of the paper.")
]


def _library(folder: Path | None) -> Any:
    from askance.workspace import Workspace

    return Workspace(prompts=folder, mode="replay").library


@app.command("list")
def list_prompts(prompts: Folder = None) -> None:
    """List every prompt: name, form, family, where it comes from."""
    rows = [
        (prompt.name, f"{prompt.form}{'.' + prompt.family if prompt.family else ''}", _about(prompt))
        for prompt in _library(prompts)
    ]
    names, forms = (max((len(row[place]) for row in rows), default=0) for place in (0, 1))
    width = terminal_width()
    for name, form, about in rows:
        line = f"{name:<{names}}  {form:<{forms}}  {about}"
        if width is not None and len(line) > width:
            line = f"{name:<{names}}  {form}\n{filled(f'    {about}', width=width)}"
        echo(line)


def _about(prompt: Prompt) -> str:
    origin = f"[{_from_here(prompt.path)}] " if prompt.overlay else ""
    return f"{origin}{prompt.summary}"


def _from_here(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


@app.command()
def show(name: Name, form: Form = "json", family: Family = None, prompts: Folder = None) -> None:
    """Print a prompt's file as it is."""
    prompt = _library(prompts).find(name, form=form, family=family)
    echo(prompt.path.read_text(encoding="utf-8"), end="")


@app.command()
def render(
    name: Name,
    values: Annotated[list[str] | None, typer.Option("--set", help="A variable: name=value; a list as JSON.")] = None,
    examples: Annotated[int, typer.Option(help="Example turns in front of the question.", min=0)] = 0,
    form: Form = "json",
    family: Family = None,
    prompts: Folder = None,
) -> None:
    """Print what a model would be sent, role by role; variables that are not set take the file's examples.

    Example turns have the same values as the question, and an answer.
    """
    prompt = _library(prompts).find(name, form=form, family=family)
    values_set = dict(_pair(text) for text in values or ())
    chosen = {**(prompt.worked_example if examples else prompt.examples), **prompt.read_values(values_set)}
    inputs = {name: value for name, value in chosen.items() if not examples or name not in prompt.example_inputs}
    for turn in prompt.render(examples=[chosen] * examples, **inputs):
        echo(f"{turn.role}:")
        echo(turn.text + "\n")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"{text!r} sets nothing.", hint="Write --set name=value.")
    return name.strip(), value


@app.command()
def check(prompts: Folder = None) -> None:
    """Check every prompt file; exit code 1 where one is broken."""
    library = _library(prompts)
    problems = library.check()
    for problem in problems:
        echo(f"{problem.level}: {problem}")
    broken = [problem for problem in problems if problem.level == "error"]
    echo(f"{many(len(library.names()), 'prompt')}, {many(len(broken), 'problem')}.")
    if broken:
        raise typer.Exit(SOME)


@app.command()
def eject(
    name: Name,
    form: Form = "json",
    family: Family = None,
    to: Annotated[
        Path | None, typer.Option(help="Folder to copy into; by default the configured one or ./prompts.")
    ] = None,
) -> None:
    """Copy a prompt into your own folder, where it goes before the package's."""
    from askance.models import Config
    from askance.prompts import PromptLibrary

    own = Config.find().prompts
    path = PromptLibrary([]).eject(name, form=form, family=family, to=to or own)
    look = f"askance prompts render {name}" + ("" if to is None or to == own else f" --prompts {to}")
    echo(f"{path}: edit it, then look with `{look}`.")
