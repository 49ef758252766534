"""One run of the command line: its options, its chain, and what is seen of the pictures under way."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance import chains
from askance.chains import Chain, action_reason, atypicality, end_to_end, plan, verbalize
from askance.chat import key_of
from askance.cli.display import ReadingDisplay
from askance.cli.exits import INTERRUPTED, OK, SOME
from askance.cli.inputs import find_pictures, read_options
from askance.cli.output import Status, print_plan, say_budget
from askance.errors import ConfigError, UsageError
from askance.evals.layout import BATCHES, LEDGER
from askance.evals.picture_run import PictureOptions, PictureRun, inputs_of, open_folder, samples_form
from askance.evals.predictions import BatchOptions

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.cli.options import Calls
    from askance.cli.run import RunOptions
    from askance.evals import RunFolder
    from askance.models import Engine, Model
    from askance.prompts import PromptLibrary
    from askance.replay import Records, Store
    from askance.workspace import Workspace

DEFAULT_COUNT = 3
"""Options that `multi` asks for."""

_NO_MODEL = ConfigError(
    "No model is named for --vlm.",
    hint="On this machine: --local. A local server: --vlm openai:Qwen/Qwen2.5-VL-7B-Instruct@http://localhost:8000/v1. "
    "An API: --vlm openai:gpt-4o (with OPENAI_API_KEY set). Or set `vlm` in askance.toml.",
)

_TAKES: Mapping[str, frozenset[str]] = {
    "verbalize": frozenset({"context"}),
    "atypicality": frozenset(),
    "action-reason": frozenset({"context", "statement", "choose", "count", "options"}),
    "end-to-end": frozenset({"context", "statement", "choose", "count", "options", "step_by_step"}),
    "explain": frozenset({"context"}),
    "identify": frozenset({"context"}),
}
"""Options by chain, of those that do not go for all."""
_FLAGS = {"statement": "--statement or --no-statement", "step_by_step": "--step-by-step"}


def run_job(job: RunOptions, calls: Calls, *, ready: Callable[[], None]) -> int:
    """Runs it; returns the exit code.

    Args:
        job: what to do.
        calls: how models are asked.
        ready: called when all is made and loaded that reading the pictures takes.

    Raises:
        UsageError: the options contradict each other, or name what is not there.
        StoreError: the records or the run folder cannot be opened.
        CallError: no call can succeed.
    """
    _check(job, calls)
    _check_page(job, calls)
    with calls.open(image_policy=job.image_policy) as work:
        _ = work.config  # settings that cannot be used are told of before pictures are
        pictures = find_pictures(job.images)
        options = [*read_options(job.options, pictures)] if job.options is not None else [None] * len(pictures)
        chain = build(job, work)
        samples: PictureOptions = dict(zip(pictures, options, strict=True))
        if calls.plan:
            return asyncio.run(_plan(job, chain, work.engine, samples))
        configuration = _configuration(job, chain, samples)
        folder = open_folder(job.out, configuration) if job.out else None
        work.keep_budget(_ledger(folder, work.records, configuration))
        show = ReadingDisplay(
            len(pictures), as_json=job.as_json, tally=work.tally, engine=work.engine, keep=job.html is not None
        )
        batches = (
            BatchOptions(folder=_batches(folder, work.records, configuration), on_progress=Status())
            if job.batch
            else None
        )
        run = PictureRun(
            chain, folder=folder, batches=batches, on_line=lambda path, line: show.reading(line, samples[path])
        )
        write_page = partial(_write_page, job, chain, work.records, show=show, folder=folder)
        ready()
        try:
            asyncio.run(run.read(samples))
        except KeyboardInterrupt:
            show.summary(run.counters)
            print(
                "Interrupted. The same command goes on where this one stopped; what is on record is not asked again.",
                file=sys.stderr,
            )
            write_page(interrupted=True)
            return INTERRUPTED
        finally:
            show.close()
            if folder is not None:
                folder.close()
        show.summary(run.counters)
        if folder is not None:
            print(f"The run is in {folder.path}.", file=sys.stderr)
        if work.engine.budget is not None:
            left = plan(chain, inputs_of(run.left)) if run.left else None
            asyncio.run(say_budget(work.engine.budget, left))
        write_page()
        return SOME if show.unanswered or run.left else OK


async def _plan(job: RunOptions, chain: Chain, engine: Engine, samples: PictureOptions) -> int:
    """Prints what the run would ask and cost; returns the exit code."""
    planned = await plan(chain, inputs_of(samples))
    print_plan(planned, engine, as_json=job.as_json)
    return OK


def _check_page(job: RunOptions, calls: Calls) -> None:
    if job.html is not None:
        from askance.cli.page import check_page

        check_page(job.html, mode=calls.record_mode, plan=calls.plan)


def _write_page(
    job: RunOptions,
    chain: Chain,
    records: Records,
    *,
    show: ReadingDisplay,
    folder: RunFolder | None,
    interrupted: bool = False,
) -> None:
    if job.html is None:
        return
    from askance.cli.page import write_interrupted, write_page

    place = None if folder is None else folder.path
    write = write_interrupted if interrupted else write_page
    write(job.html, show, name=job.chain.value, chain=chain, records=records, folder=place)


def _ledger(folder: RunFolder | None, records: Store, configuration: JsonObject) -> Path:
    """Where the run's budget is kept: in its folder, else with the records."""
    if folder is not None:
        return folder.path / LEDGER
    return records.folder / "budgets" / f"{key_of('run', configuration)[:16]}.db"


def _batches(folder: RunFolder | None, records: Store, configuration: JsonObject) -> Path:
    """Where the run's batches are kept while they are under way: in its folder, else with the records."""
    if folder is not None:
        return folder.path / BATCHES
    return records.folder / "batches" / key_of("run", configuration)[:16]


def build(job: RunOptions, work: Workspace) -> Chain:
    """The chain that the job names.

    Raises:
        ConfigError: no model is named, or none has the name.
    """
    vlm_name = job.vlm or work.named("vlm")
    if vlm_name is None:
        raise _NO_MODEL
    vlm = work.model(vlm_name)
    llm_name = job.llm or work.named("llm")
    llm = vlm if llm_name is None else work.model(llm_name)
    return _chain(job, vlm, llm, work.library)


def _chain(job: RunOptions, vlm: Model, llm: Model, prompts: PromptLibrary) -> Chain:
    context: Any = job.context
    mode: Any = job.choose or "multi"
    count = DEFAULT_COUNT if job.count is None else job.count
    match job.chain:
        case "verbalize":
            return verbalize(vlm, llm, context=context or "T_V", prompts=prompts)
        case "atypicality":
            return atypicality(vlm, llm, prompts=prompts)
        case "explain" | "identify":
            make = chains.explain if job.chain == "explain" else chains.identify
            return make(vlm, llm, context=context or "I", prompts=prompts)
        case "action-reason":
            return action_reason(
                vlm,
                llm,
                context=context or "T_V",
                statement=job.statement is not False,
                mode=mode,
                count=count,
                prompts=prompts,
            )
        case _:
            return end_to_end(
                vlm,
                llm,
                context=context,
                statement=bool(job.statement),
                mode=mode,
                count=count,
                step_by_step=bool(job.step_by_step),
                prompts=prompts,
            )


def _check(job: RunOptions, calls: Calls) -> None:
    """Refuses options that would change nothing, rather than let someone believe that they did."""
    for name in ("context", "statement", "choose", "count", "options", "step_by_step"):
        if getattr(job, name) is not None and name not in _TAKES[job.chain]:
            flag = _FLAGS.get(name, f"--{name}")
            raise UsageError(f"`askance run {job.chain}` takes no {flag}.", hint=f"Leave it out, or {_instead(name)}.")
    if "options" in _TAKES[job.chain] and job.options is None:
        raise UsageError(
            f"`askance run {job.chain}` chooses among options, and none are given.",
            hint="Give --options FILE: one option a line, a JSON list, or a JSON map by image name.",
        )
    if job.choose == "single" and job.count is not None:
        raise UsageError("`--choose single` chooses one option, so it takes no --count.", hint="Leave one out.")
    if job.batch and calls.record_mode != "auto":
        raise UsageError(
            "`--batch` reads its answers from the records, so it goes with no other mode.",
            hint="Leave one of them out.",
        )
    if calls.record_mode == "live" and job.out is not None:
        raise UsageError(
            "`--mode live` leaves answers on record as they are, so `--out` could not keep what was answered.",
            hint="Use `--mode refresh`, which records the new answers.",
        )


def _instead(name: str) -> str:
    takers = [f"`{chain}`" for chain, names in _TAKES.items() if name in names]
    return f"run {' or '.join(takers)}"


def _configuration(job: RunOptions, chain: Chain, samples: PictureOptions) -> JsonObject:
    """Everything that decides the lines of a run folder."""
    models = dict.fromkeys(node.model for node in chain.nodes)
    return {
        "chain": job.chain.value,
        "context": job.context,
        "statement": job.statement,
        "choose": None if job.choose is None else job.choose.value,
        "count": job.count,
        "step_by_step": job.step_by_step,
        "models": [model.form() for model in models],
        "prompts": {prompt.path.name: prompt.digest for node in chain.nodes for prompt in node.prompts_in_use},
        "samples": samples_form(samples),
    }
