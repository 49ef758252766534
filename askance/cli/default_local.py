"""`--local`: a small open model on this machine for every role that is given no other."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from askance.errors import ConfigError, UsageError
from askance.models.local.folder import hub_cache
from askance.models.local.hub import Machine, OpenModel, download_model, how_to_bring, is_downloaded, open_model_for
from askance.models.local.runtime import packages
from askance.terminal import confirm, has_terminal, printable

if TYPE_CHECKING:
    from askance.models import Config


def local_model(config: Config, *, yes: bool) -> str:
    """The spec of the model that `--local` stands for; downloads it where someone agrees.

    Args:
        config: may name a folder, or a name on the hub, by `local`; where it `asks` nothing, as for a replay or a plan,
            nothing is downloaded.
        yes: agree beforehand.

    Raises:
        UsageError: it is not here and nobody agreed to a download.
        ConfigError: it cannot be downloaded.
        MissingExtra: what runs it is not installed.
    """
    if config.local is not None:
        return f"hf:{config.local}"
    machine = Machine.here()
    found = open_model_for(machine)
    if is_downloaded(found.name):
        print(f"askance: {found}, on this machine.", file=sys.stderr)
        return f"hf:{found.name}"
    if not config.asks:
        raise ConfigError(
            f"The model {found.name!r}, which `--local` stands for on a machine with {machine}, is not here.",
            hint="A run without `--replay` and `--plan` downloads it.",
        )
    packages(f"hf:{found.name}")  # nobody downloads what could not be run
    _agreed(found, machine, yes=yes)
    print(f"askance: The model is in {printable(str(download_model(found.name)))}.", file=sys.stderr)
    return f"hf:{found.name}"


def _agreed(found: OpenModel, machine: Machine, *, yes: bool) -> None:
    """Says what would be downloaded, and lets nobody be surprised by it.

    Raises:
        UsageError: nobody said yes.
    """
    print(
        f"askance: For a machine with {machine}: {found}. It is not here yet; {found.size} will be downloaded into "
        f"{printable(str(hub_cache()))}, once.",
        file=sys.stderr,
    )
    if yes:
        return
    if not has_terminal():
        raise UsageError(
            f"Nobody agreed to the download of {found.name!r}.", hint=f"Add `--yes`. {how_to_bring(found.name)}"
        )
    if not confirm("Download it?"):
        raise UsageError(f"{found.name!r} is not downloaded.", hint=how_to_bring(found.name))
