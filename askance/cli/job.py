"""One run of the command line: its options, its models, its chain."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance import chains
from askance.chains import Chain, action_reason, atypicality, end_to_end, verbalize
from askance.chat import key_of
from askance.cli.exits import INTERRUPTED, OK
from askance.cli.inputs import Options, find_pictures, read_options
from askance.cli.running import Running, inputs_of
from askance.cli.showing import Show
from askance.errors import BadImage, ConfigError, UsageError
from askance.images import Image

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.cli.tally import Tally
    from askance.cli.workspace import Calls
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


@dataclass(frozen=True, kw_only=True)
class Job:
    """The options of one `askance run`; None is not given."""

    chain: str
    images: Sequence[str]
    vlm: str | None
    llm: str | None
    options: Path | None
    context: str | None
    statement: bool | None
    choose: str | None
    count: int | None
    step_by_step: bool | None
    as_json: bool
    out: Path | None
    html: Path | None
    batch: bool


def run_job(job: Job, calls: Calls, *, ready: Callable[[], None]) -> int:
    """Runs it; returns the exit code.

    Args:
        job: what to do.
        calls: how models are asked.
        ready: called when all is made and loaded that reading the pictures takes.

    Raises:
        UsageError: the options contradict each other, or name what is not there.
        StoreError: the records or the run folder cannot be opened.
        CannotStart: no call can succeed.
    """
    _check(job, calls)
    _check_page(job, calls)
    with calls.open() as work:
        _ = work.config  # settings that cannot be used are told of before pictures are
        pictures = find_pictures(job.images)
        options = [*read_options(job.options, pictures)] if job.options is not None else [None] * len(pictures)
        chain, models = build(job, work)
        samples = dict(zip(pictures, options, strict=True))
        if calls.plan:
            return asyncio.run(_plan(job, chain, work.engine, samples))
        configuration = _configuration(job, chain, models, samples)
        folder = _folder(job.out, configuration) if job.out else None
        work.keep_budget(_ledger(folder, work.records, configuration))
        show = _show(job, total=len(pictures), tally=work.tally, engine=models[0].engine)
        batches = _batches(folder, work.records, configuration) if job.batch else None
        ready()
        running = Running(chain, models, folder=folder, show=show, batches=batches)
        write_page = partial(_write_page, job, chain, work.records, show=show, folder=folder)
        try:
            code = asyncio.run(running.run(pictures, options))
        except KeyboardInterrupt:
            running.interrupted()
            write_page(interrupted=True)
            return INTERRUPTED
        else:
            write_page()
            return code
        finally:
            show.close()
            if folder is not None:
                folder.close()


async def _plan(job: Job, chain: Chain, engine: Engine, samples: Mapping[Path, Options | None]) -> int:
    """Prints what the run would ask and cost; returns the exit code."""
    from askance.chains import plan
    from askance.cli.planning import plan_form, plan_text

    planned = await plan(chain, inputs_of(samples.items()))
    print(json.dumps(plan_form(planned, engine)) if job.as_json else plan_text(planned, engine))
    return OK


def _check_page(job: Job, calls: Calls) -> None:
    if job.html is not None:
        from askance.cli.paged import check_page

        check_page(job.html, mode=calls.mode, plan=calls.plan)


def _show(job: Job, *, total: int, tally: Tally, engine: Engine) -> Show:
    if job.html is None:
        return Show(total, as_json=job.as_json, tally=tally, engine=engine)
    from askance.cli.paged import KeepingShow

    return KeepingShow(total, as_json=job.as_json, tally=tally, engine=engine)


def _write_page(
    job: Job, chain: Chain, records: Records, *, show: Show, folder: RunFolder | None, interrupted: bool = False
) -> None:
    if job.html is None:
        return
    from askance.cli.paged import KeepingShow, write_interrupted, write_readings

    if isinstance(show, KeepingShow):
        place = None if folder is None else folder.path
        write = write_interrupted if interrupted else write_readings
        write(job.html, show, name=job.chain, chain=chain, records=records, folder=place)


def _folder(path: Path, configuration: JsonObject) -> RunFolder:
    from askance.evals import RunFolder

    return RunFolder(path, configuration, keeps=_same_picture)


def _ledger(folder: RunFolder | None, records: Store, configuration: JsonObject) -> Path:
    """Where the run's budget is kept: in its folder, else with the records."""
    if folder is not None:
        return folder.path / "budget.db"
    return records.folder / "budgets" / f"{key_of('run', configuration)[:16]}.db"


def _batches(folder: RunFolder | None, records: Store, configuration: JsonObject) -> Path:
    """Where the run's batches are kept while they are under way: in its folder, else with the records."""
    if folder is not None:
        return folder.path / "batches"
    return records.folder / "batches" / key_of("run", configuration)[:16]


def build(job: Job, work: Workspace) -> tuple[Chain, list[Model]]:
    """The chain that the job names, and its models, each once.

    Raises:
        ConfigError: no model is named, or none has the name.
    """
    vlm_name = job.vlm or work.named("vlm")
    if vlm_name is None:
        raise _NO_MODEL
    vlm = work.model(vlm_name)
    llm_name = job.llm or work.named("llm")
    llm = vlm if llm_name is None else work.model(llm_name)
    chain = _chain(job, vlm, llm, work.library)
    return chain, list(dict.fromkeys(node.model for node in chain.nodes))


def _chain(job: Job, vlm: Model, llm: Model, prompts: PromptLibrary) -> Chain:
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


def _check(job: Job, calls: Calls) -> None:
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
    if job.batch and calls.mode != "auto":
        raise UsageError(
            "`--batch` reads its answers from the records, so it goes with no other mode.",
            hint="Leave one of them out.",
        )
    if calls.mode == "live" and job.out is not None:
        raise UsageError(
            "`--mode live` leaves answers on record as they are, so `--out` could not keep what was answered.",
            hint="Use `--mode refresh`, which records the new answers.",
        )


def _instead(name: str) -> str:
    takers = [f"`{chain}`" for chain, names in _TAKES.items() if name in names]
    return f"run {' or '.join(takers)}"


def _configuration(
    job: Job, chain: Chain, models: Sequence[Model], samples: Mapping[Path, Options | None]
) -> JsonObject:
    """Everything that decides the lines of a run folder."""
    return {
        "chain": job.chain,
        "context": job.context,
        "statement": job.statement,
        "choose": job.choose,
        "count": job.count,
        "step_by_step": job.step_by_step,
        "models": [model.form() for model in models],
        "prompts": {prompt.path.name: prompt.digest for node in chain.nodes for prompt in node.prompts_in_use},
        "samples": {picture.as_posix(): list(chosen) if chosen else None for picture, chosen in samples.items()},
    }


def _same_picture(line: Mapping[str, Any]) -> bool:
    """Whether the picture of an earlier run's line is still the one that it tells of."""
    try:
        return Image.from_path(Path(line["image"])).sha256 == line["sha256"]
    except BadImage:
        return False
