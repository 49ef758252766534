"""`askance trust`: what the settings of a project, or a Python file, would do that needs the user's consent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askance.cli.process import OK, SOME
from askance.errors import UsageError
from askance.terminal import confirm, echo, has_terminal

if TYPE_CHECKING:
    from askance.models import Config
    from askance.trust import Consent


def trust(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Python files that runs may name as their task, in place of the settings."),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Show all that you have agreed to, in any project.")] = False,
    forget: Annotated[
        str | None,
        typer.Option(metavar="WHAT", help="Take your consent back: a digest, a file or its folder."),
    ] = None,
) -> None:
    """Show what this project's settings would run, or send a key to, and agree to it; a terminal asks first."""
    from askance import trust as known
    from askance.models import Config
    from askance.python_file import read_source
    from askance.trust import Consent

    if forget is not None:
        count = known.forget(forget)
        if not count:
            raise UsageError(
                f"You have agreed to nothing called {forget!r}.",
                hint="`askance trust --list` shows all; of a digest give eight digits or more.",
            )
        echo(f"Forgotten: {count}.")
        raise typer.Exit(OK)
    if listed:
        for digest, entry in known.agreed().items():
            echo(f"{digest}  {entry.get('at')}  {entry.get('file')}")
            for words in entry.get("would", ()):
                echo(f"  {words}")
        raise typer.Exit(OK)
    if files:
        wanted = [Consent.to_python(file, read_source(file)) for file in files]
    else:
        config = Config.find()
        wanted = list(dict.fromkeys(filter(None, (config.consent(name, {}) for name in _names(config)))))
    if not wanted:
        echo("The settings here run nothing and send no key to a stranger: they need no consent.")
        raise typer.Exit(OK)
    raise typer.Exit(OK if all(list(map(_shown, wanted))) else SOME)


def _names(config: Config) -> list[str]:
    return [*config.models, *(name for name in (config.vlm, config.llm) if name is not None)]


def _shown(consent: Consent) -> bool:
    """Prints what needs consent and asks for it; returns whether the user agrees."""
    from askance.trust import agree

    echo(f"{consent}\n  digest {consent.digest}")
    if consent.given:
        echo("You have agreed to this.")
        return True
    if has_terminal() and not confirm("Agree, now and from now on?"):
        echo("You have not agreed to this.")
        return False
    agree(consent)
    echo("You agree to this from now on; `askance trust --forget` takes it back.")
    return True
