"""The work of `askance negatives generate`, and what asks models in all of its commands."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.amounts import many
from askance.cli.display import json_text
from askance.cli.exits import INTERRUPTED, OK, SOME, hear_warnings
from askance.cli.places import library, open_store
from askance.cli.progress import Progress, calls_state
from askance.cli.tally import Tally
from askance.errors import UsageError
from askance.evals.evaluation import LEDGER
from askance.evals.negatives import agenerate, read_sources
from askance.evals.pittads import statements_in
from askance.evals.whoops import Whoops, has_rows
from askance.evals.whoops.explain_choice import statements
from askance.models import Config, Engine, get_model
from askance.models.spending.budget import Budget
from askance.models.spending.budgeted import Purse
from askance.replay import visible

if TYPE_CHECKING:
    from askance.agents.negatives import Domain
    from askance.evals.negatives import Recipe, Source, Written
    from askance.prompts import PromptLibrary


@dataclass(frozen=True, kw_only=True)
class Calls:
    """How models are asked; None is not given."""

    mode: Any
    retry: frozenset[Any]
    budget: str | None
    concurrency: int | None
    rpm: float | None
    tpm: float | None
    prompts: Path | None
    paper: bool
    store: Path | None
    local: bool
    yes: bool


@dataclass(frozen=True, kw_only=True)
class Asking:
    """What is shared by the models of one command."""

    engine: Engine
    config: Config
    prompts: PromptLibrary
    tally: Tally
    local: Callable[[], str | None]
    """The spec of the model of `--local`, None without it; for roles that are given no other, since it may download."""


@contextmanager
def asking(
    calls: Calls, ledger: Path | None = None, *, plan: bool = False, name: str = "negatives"
) -> Generator[Asking]:
    """The records and the engine of a command, and its budget in the file `ledger`.

    Args:
        calls: how models are asked.
        ledger: by default one with the records, called `name`.
        name: what the calls are for.
        plan: that nothing will be asked or written.
    """
    hear_warnings()
    read_only = plan or calls.mode == "replay"
    config, tally = Config.find(asks=not read_only), Tally()
    with closing(open_store(calls.store, config, read_only=read_only)) as records, ExitStack() as closed:
        purse = None
        if calls.budget is not None and not plan:
            from askance.models.spending.ledger import Ledger

            place = ledger or records.folder / "budgets" / f"{name}.db"
            purse = Purse(Ledger(place, Budget.parse(calls.budget)))
            closed.callback(purse.close)
        engine = Engine(
            mode=calls.mode,
            records=records,
            retry=calls.retry,
            concurrency=calls.concurrency,
            rpm=calls.rpm,
            tpm=calls.tpm,
            purse=purse,
            protocol="paper" if calls.paper else None,
            observers=[tally],
        )
        prompts, local = library(calls.prompts, config), cache(lambda: _local(calls, config))
        yield Asking(engine=engine, config=config, prompts=prompts, tally=tally, local=local)


def _local(calls: Calls, config: Config) -> str | None:
    if not calls.local:
        return None
    from askance.cli.default_local import local_model

    return local_model(config, yes=calls.yes)


def read_statements(
    data: Path, domain: Domain | None, *, ids: Path | None, limit: int | None
) -> tuple[Domain, Sequence[Source]]:
    """What is true of the images of a file or folder, and what these statements are.

    Raises:
        BadData: no such file, or nothing in it that is true of an image.
        UsageError: the folder is one of WHOOPS!, and its statements are said to be those of ads.
    """
    if not has_rows(data):
        file = statements_in(data) if data.is_dir() else data
        return domain or "ads", read_sources(file, ids=ids, limit=limit)
    if domain == "ads":
        raise UsageError(
            f"The folder {str(data)!r} holds explanations of WHOOPS!, and no ads.",
            hint="Leave --domain out, or write --domain explanations.",
        )
    return "explanations", statements(Whoops.open(data, ids=ids))[:limit]


def generate_by(
    sources: Sequence[Source], llm: str | None, *, out: Path, recipe: Recipe, calls: Calls, as_json: bool
) -> int:
    """Writes the negatives; returns the exit code."""
    with asking(calls, out / LEDGER) as shared:
        name = _writer(llm, shared, recipe)
        model = None if name is None else get_model(name, engine=shared.engine, config=shared.config)
        try:
            with Progress("calls", state=calls_state(shared.tally, shared.engine)) as told:
                making = agenerate(
                    sources,
                    model,
                    out=out,
                    recipe=recipe,
                    prompts=shared.prompts,
                    told=lambda written: told.update(written.done, written.total),
                )
                written = asyncio.run(making)
        except KeyboardInterrupt:
            print("Interrupted. The same command goes on where this one stopped.", file=sys.stderr)
            return INTERRUPTED
    _say_written(written, shared.tally, as_json=as_json)
    return OK if written.complete else SOME


def _writer(llm: str | None, shared: Asking, recipe: Recipe) -> str | None:
    """The name of the model that writes; None where none is named and none is asked.

    Raises:
        UsageError: one is needed, and none is named.
    """
    drawn = recipe.kinds == ("random",)
    name = llm or (None if drawn else shared.local()) or shared.config.llm
    if name is None and not drawn:
        raise UsageError(
            "No model is named that writes the negatives.",
            hint="On this machine: --local. An API: --llm openai:gpt-4o. Or set `llm` in askance.toml; --kinds random "
            "asks none.",
        )
    return name


def _say_written(written: Written, tally: Tally, *, as_json: bool) -> None:
    if as_json:
        print(json_text({**asdict(written), "folder": str(written.folder), "outcomes": dict(written.outcomes)}))
    else:
        for name, images in written.files.items():
            print(visible(f"{written.folder / name}  {many(images, 'image')}"))
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(written.outcomes.items()))
    print(
        f"{written.done:,} of {written.total:,} calls: {counts or 'none'}; "
        f"{many(written.negatives, 'different negative')}.\n"
        f"{tally}",
        file=sys.stderr,
    )
    if written.left:
        print(
            f"The budget had nothing left for {many(written.left, 'call')}. The same command with a "
            "larger --budget goes on.",
            file=sys.stderr,
        )
    elif not written.complete:
        print("What has no answer is asked again by the same command with --retry.", file=sys.stderr)
