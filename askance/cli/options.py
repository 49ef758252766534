"""Options that several commands have, each said once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class ModeName(StrEnum):
    """How answers on record are used."""

    live = "live"
    auto = "auto"
    replay = "replay"
    refresh = "refresh"


class Protocol(StrEnum):
    """The form in which answers are asked for."""

    auto = "auto"
    paper = "paper"


# Which models.
Vlm = Annotated[
    str | None, typer.Option(help="The model that sees: a spec such as openai:gpt-4o, or a name from askance.toml.")
]
Llm = Annotated[str | None, typer.Option(help="The model that reads words; by default the VLM.")]
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
    typer.Option(help="The most that may be spent, all starts together: 5.00 (dollars), 20000tokens, 100calls."),
]
Batch = Annotated[
    bool, typer.Option("--batch", help="Ask by the provider's batch interface: half the price, an answer within a day.")
]
Replay = Annotated[bool, typer.Option("--replay", help="Short for --mode replay: nothing is asked.")]
Mode = Annotated[ModeName | None, typer.Option(help="auto: answers on record, else ask. live and refresh ask always.")]
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
InProtocol = Annotated[Protocol, typer.Option("--protocol", help="paper asks in the text form of the paper.")]
Records = Annotated[
    Path | None, typer.Option("--store", help="Folder of the records; by default .askance of the project.")
]

# What is printed.
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]


def mode_of(replay: bool, mode: ModeName | None) -> str:
    """The mode that two options name.

    Raises:
        UsageError: they contradict each other.
    """
    from askance.errors import UsageError

    if replay and mode not in {None, ModeName.replay}:
        raise UsageError(
            f"--replay and --mode {mode.value if mode else ''} contradict each other.", hint="Leave one out."
        )
    return "replay" if replay else (mode or ModeName.auto).value


def outcomes_of(names: str | None) -> frozenset[str]:
    """Outcomes in a text with commas between them."""
    return frozenset(name.strip() for name in names.split(",") if name.strip()) if names else frozenset()
