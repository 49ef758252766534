"""The work of `askance negatives generate`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from askance.amounts import many
from askance.cli.display import json_text
from askance.cli.exits import INTERRUPTED, OK, SOME
from askance.cli.progress import Progress, calls_state
from askance.errors import UsageError
from askance.evals.evaluation import LEDGER
from askance.evals.negatives import agenerate
from askance.evals.negatives import read_statements as read_file
from askance.evals.pittads import statements_in
from askance.evals.whoops import Whoops, has_rows
from askance.evals.whoops.explain_choice import statements
from askance.terminal import printable

if TYPE_CHECKING:
    from askance.agents.negatives import Domain
    from askance.cli.options import Calls
    from askance.cli.tally import Tally
    from askance.evals.negatives import NegativesRun, Recipe, TrueStatements
    from askance.workspace import Workspace


def read_statements(
    data: Path, domain: Domain | None, *, ids: Path | None, limit: int | None
) -> tuple[Domain, Sequence[TrueStatements]]:
    """What is true of the images of a file or folder, and what these statements are.

    Raises:
        BadData: no such file, or nothing in it that is true of an image.
        UsageError: the folder is one of WHOOPS!, and its statements are said to be those of ads.
    """
    if not has_rows(data):
        file = statements_in(data) if data.is_dir() else data
        return domain or "ads", read_file(file, ids=ids, limit=limit)
    if domain == "ads":
        raise UsageError(
            f"The folder {str(data)!r} holds explanations of WHOOPS!, and no ads.",
            hint="Leave --domain out, or write --domain explanations.",
        )
    return "explanations", statements(Whoops.open(data, ids=ids))[:limit]


def generate_by(
    sources: Sequence[TrueStatements], llm: str | None, *, out: Path, recipe: Recipe, calls: Calls, as_json: bool
) -> int:
    """Writes the negatives; returns the exit code."""
    with calls.open(ledger=out / LEDGER) as work:
        name = _writer(llm, work, recipe)
        model = None if name is None else work.model(name)
        try:
            with Progress("calls", state=calls_state(work.tally, work.engine)) as told:
                making = agenerate(
                    sources,
                    model,
                    out=out,
                    recipe=recipe,
                    prompts=work.library,
                    told=lambda written: told.update(written.done, written.total),
                )
                written = asyncio.run(making)
        except KeyboardInterrupt:
            print("Interrupted. The same command goes on where this one stopped.", file=sys.stderr)
            return INTERRUPTED
    _say_written(written, work.tally, as_json=as_json)
    return OK if written.complete else SOME


def _writer(llm: str | None, work: Workspace, recipe: Recipe) -> str | None:
    """The name of the model that writes; None where none is named and none is asked.

    Raises:
        UsageError: one is needed, and none is named.
    """
    drawn = recipe.kinds == ("random",)
    name = llm or (work.config.llm if drawn else work.named("llm"))
    if name is None and not drawn:
        raise UsageError(
            "No model is named that writes the negatives.",
            hint="On this machine: --local. An API: --llm openai:gpt-4o. Or set `llm` in askance.toml; --kinds random "
            "asks none.",
        )
    return name


def _say_written(written: NegativesRun, tally: Tally, *, as_json: bool) -> None:
    if as_json:
        print(json_text({**asdict(written), "folder": str(written.folder), "outcomes": dict(written.outcomes)}))
    else:
        for name, images in written.files.items():
            print(printable(f"{written.folder / name}  {many(images, 'image')}"))
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
