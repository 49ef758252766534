"""The workspace of a command, made from the options that say how models are asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from askance.cli.exits import hear_warnings
from askance.cli.options import ModelCalls, PromptCalls, Protocol
from askance.cli.tally import Tally
from askance.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

    from askance.cli.options import Calls
    from askance.models import Config


@dataclass(kw_only=True)
class CommandWorkspace(Workspace):
    """A workspace that counts its calls."""

    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        self.observers.append(self.tally)


def open_workspace(calls: Calls, *, name: str, ledger: Path | None, image_policy: str | None) -> CommandWorkspace:
    """The workspace that the options ask for; see `Calls.open`."""
    hear_warnings()
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
        protocol="paper" if isinstance(calls, PromptCalls) and calls.protocol is Protocol.paper else None,
        image_policy=image_policy,
        store=calls.store,
        prompts=calls.prompts,
        local=partial(_local, yes=calls.yes) if isinstance(calls, ModelCalls) and calls.local else None,
    )


def _local(config: Config, *, yes: bool) -> str:
    from askance.cli.default_local import local_model

    return local_model(config, yes=yes)
