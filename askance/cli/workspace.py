"""The workspace of a command, made from the options that say how models are asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from askance.cli.exits import hear_warnings
from askance.cli.tally import Tally
from askance.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

    from askance.models import Config


@dataclass(frozen=True, kw_only=True)
class Calls:
    """The options that say how models are asked; None is not given."""

    mode: Any = "auto"
    retry: frozenset[Any] = frozenset()
    budget: str | None = None
    concurrency: int | None = None
    rpm: float | None = None
    tpm: float | None = None
    prompts: Path | None = None
    paper: bool = False
    image_policy: str | None = None
    store: Path | None = None
    local: bool = False
    yes: bool = False
    """Whether the download of `--local` is agreed to."""
    plan: bool = False

    def open(self, *, name: str = "work", ledger: Path | None = None) -> CommandWorkspace:
        """The workspace; warnings are said from now on.

        Args:
            name: what the work is called beside the records.
            ledger: file that notes what is spent of the budget.

        Raises:
            UsageError: `ASKANCE_LOG` holds what is no level.
        """
        hear_warnings()
        return CommandWorkspace(
            mode=self.mode,
            plan=self.plan,
            retry=self.retry,
            budget=self.budget,
            name=name,
            ledger=ledger,
            concurrency=self.concurrency,
            rpm=self.rpm,
            tpm=self.tpm,
            protocol="paper" if self.paper else None,
            image_policy=self.image_policy,
            store=self.store,
            prompts=self.prompts,
            local=partial(_local, yes=self.yes) if self.local else None,
        )


@dataclass(kw_only=True)
class CommandWorkspace(Workspace):
    """A workspace that counts its calls."""

    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        self.observers.append(self.tally)


def _local(config: Config, *, yes: bool) -> str:
    from askance.cli.default_local import local_model

    return local_model(config, yes=yes)
