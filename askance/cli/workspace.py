"""The workspace of a command, made from the options that say how models are asked; the model of `--local`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from askance.cli.options import ModelCalls, PromptCalls
from askance.cli.progress import Progress, calls_state
from askance.cli.tally import Tally
from askance.errors import ConfigError, UsageError
from askance.terminal import confirm, echo, has_terminal
from askance.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from askance.cli.options import Calls
    from askance.models import Config
    from askance.models.local.hub import Machine, OpenModel


@dataclass(kw_only=True)
class CommandWorkspace(Workspace):
    """A workspace that counts its calls."""

    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        self.observers.append(self.tally)

    def progress(self, what: str) -> Progress:
        """Begins to say on stderr how far the work is, beside the counts of calls.

        Args:
            what: what is counted: `trials`.
        """
        return Progress(what, state=calls_state(self.tally, self.engine))


def open_workspace(
    calls: Calls,
    *,
    name: str = "work",
    ledger: Path | None = None,
    image_policy: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> CommandWorkspace:
    """The workspace that the options of a command ask for.

    Args:
        calls: how models are asked.
        name: what the work is called beside the records.
        ledger: file that notes what is spent of the budget.
        image_policy: how pictures are prepared, `clean` or `original`.
        settings: of every model; they go before those of the settings file.

    Raises:
        UsageError: the options contradict each other.
    """
    return CommandWorkspace(
        mode=calls.record_mode,
        plan=calls.plan,
        retry=calls.outcomes_retried,
        budget=calls.budget,
        name=name,
        ledger=ledger,
        concurrency=calls.concurrency,
        rpm=calls.rpm,
        tpm=calls.tpm,
        protocol="paper" if isinstance(calls, PromptCalls) and calls.protocol == "paper" else None,
        image_policy=image_policy,
        settings=settings or {},
        store=calls.store,
        prompts=calls.prompts,
        local=partial(_local_model, yes=calls.yes) if isinstance(calls, ModelCalls) and calls.local else None,
    )


def _local_model(config: Config, *, yes: bool) -> str:
    """The spec of the model that `--local` stands for; it is downloaded if the user agrees.

    Args:
        config: may name a folder, or a name on the hub, by `local`. If it `asks` nothing, as for a replay or a plan,
            nothing is downloaded.
        yes: whether the user agrees beforehand.

    Raises:
        UsageError: it is not here and nobody agreed to a download.
        ConfigError: it cannot be downloaded.
        MissingExtra: what runs it is not installed.
    """
    from askance.models.local.hub import Machine, download_model, is_downloaded, open_model_for
    from askance.models.local.runtime import packages

    if config.local is not None:
        return f"hf:{config.local}"
    machine = Machine.here()
    model = open_model_for(machine)
    if is_downloaded(model.name):
        echo(f"askance: {model}, on this machine.", err=True)
        return f"hf:{model.name}"
    if not config.asks:
        raise ConfigError(
            f"The model {model.name!r}, which `--local` stands for on a machine with {machine}, is not here.",
            hint="A run without `--replay` and `--plan` downloads it.",
        )
    packages(f"hf:{model.name}")  # nobody downloads what could not be run
    _ask_before_download(model, machine, yes=yes)
    echo(f"askance: The model is in {download_model(model.name)!s}.", err=True)
    return f"hf:{model.name}"


def _ask_before_download(model: OpenModel, machine: Machine, *, yes: bool) -> None:
    """Says what would be downloaded, and asks the user.

    Raises:
        UsageError: nobody said yes.
    """
    from askance.models.local.folder import hub_cache
    from askance.models.local.hub import how_to_bring

    echo(
        f"askance: For a machine with {machine}: {model}. It is not here yet; {model.size} will be downloaded into "
        f"{hub_cache()!s}, once.",
        err=True,
    )
    if yes:
        return
    if not has_terminal():
        raise UsageError(
            f"Nobody agreed to the download of {model.name!r}.", hint=f"Add `--yes`. {how_to_bring(model.name)}"
        )
    if not confirm("Download it?"):
        raise UsageError(f"{model.name!r} is not downloaded.", hint=how_to_bring(model.name))
