"""One run of the command line: its options, its chain, the pictures under way, and what ends it early."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance import chains
from askance.chains import Chain, action_reason, atypicality, end_to_end, verbalize
from askance.chains.line import line_of
from askance.chat import key_of
from askance.cli.display import Show
from askance.cli.exits import INTERRUPTED, OK, SOME, CannotStart
from askance.cli.inputs import Options, find_pictures, read_options
from askance.errors import FATAL, BadImage, CallError, ConfigError, OverBudget, UsageError
from askance.images import Image
from askance.models.capabilities import endpoint_key
from askance.models.counters import RunCounters

if TYPE_CHECKING:
    from askance.chains import Given, Reading
    from askance.chat import JsonObject
    from askance.cli.options import Calls
    from askance.cli.run import RunOptions
    from askance.cli.tally import Tally
    from askance.evals import RunFolder
    from askance.models import Engine, Model
    from askance.models.budget import BudgetGuard
    from askance.prompts import PromptLibrary
    from askance.replay import Records, Store
    from askance.workspace import Workspace


class Running:
    """One run: every picture through the chain, each line shown and kept as it comes."""

    def __init__(
        self,
        chain: Chain,
        models: Sequence[Model],
        *,
        folder: RunFolder | None,
        show: Show,
        batches: Path | None = None,
    ) -> None:
        self._batches = batches
        """Folder for what is under way in batches; None asks online."""
        self._chain = chain
        self._models = models
        self._folder = folder
        self._finished: Mapping[str, Mapping[str, Any]] = folder.finished if folder is not None else {}
        self._show = show
        self._guard = models[0].engine.budget if models else None
        self._left: list[tuple[Path, Options | None]] = []
        """Pictures that the budget had nothing left for."""

    async def run(self, pictures: Sequence[Path], options: Sequence[Options | None]) -> int:
        """Reads every picture; returns the exit code.

        Raises:
            CannotStart: a model cannot be asked at all.
        """
        counting = await RunCounters.begun(self._models)
        try:
            try:
                await self._read(pictures, options)
            finally:
                self._show.counts = await counting.so_far()
                if self._folder is not None:
                    self._folder.counted(self._show.counts)
            return await self._end()
        finally:
            for model in self._models:
                await model.aclose()

    async def _read(self, pictures: Sequence[Path], options: Sequence[Options | None]) -> None:
        """Shows and keeps a line for each picture."""
        if any(picture.as_posix() not in self._finished for picture in pictures):
            await self._first_contact()
        async with aclosing(self._lines(pictures, options)) as lines:
            async for place, line in lines:
                self._stop_if_hopeless(line)
                if self._folder is not None:
                    self._folder.add(line)
                self._show.reading(line, options[place])

    def interrupted(self) -> None:
        """Says what is done and how to go on."""
        self._show.summary()
        print(
            "Interrupted. The same command goes on where this one stopped; what is on record is not asked again.",
            file=sys.stderr,
        )

    async def _first_contact(self) -> None:
        """Learns the form of asking of every model, before pictures are read."""
        try:
            for model in self._models:
                await model.output_mode()
        except CallError as error:
            raise CannotStart(error.message, hint=error.hint) from error

    async def _lines(
        self, pictures: Sequence[Path], options: Sequence[Options | None]
    ) -> AsyncGenerator[tuple[int, Mapping[str, Any]], None]:
        """Place and line of every picture in order: those that the folder has, and those read now.

        When the budget is used up no more pictures are begun; those that could not be ended are left.
        """
        unread = [
            sample for sample in zip(pictures, options, strict=True) if sample[0].as_posix() not in self._finished
        ]
        begun = takewhile(lambda _: self._guard is None or not self._guard.used_up, inputs_of(unread))
        if self._batches is None:
            stream = self._chain.read_all(begun)
        else:
            from askance.chains.batch import read_in_batches
            from askance.cli.output import Status

            stream = read_in_batches(self._chain, [*inputs_of(unread)], folder=self._batches, on_progress=Status())
        async with aclosing(stream) as readings:
            for place, picture in enumerate(pictures):
                done = self._finished.get(picture.as_posix())
                if done is not None:
                    yield place, done
                    continue
                reading = await anext(readings, None)
                if reading is None or self._beyond_budget(reading):
                    self._left.append((picture, options[place]))
                else:
                    yield place, line_of(reading)

    def _beyond_budget(self, reading: Reading) -> bool:
        """Whether the budget had nothing left for a call of it."""
        results = () if self._guard is None else reading.links.values()
        return any(result.error == OverBudget.__name__ for result in results)

    def _stop_if_hopeless(self, line: Mapping[str, Any]) -> None:
        """Ends the run where the first picture failed in a way that all others would.

        Raises:
            CannotStart: it did, and nothing has been answered.
        """
        if self._show.outcomes["answered"] or not self._show.nothing_asked:
            return
        for link in line["links"].values():
            if link.get("error") in FATAL:
                raise CannotStart(link["reason"], hint="Stopped at the first image, since the others would fail alike.")

    async def _end(self) -> int:
        if self._folder is not None:
            endpoints = [endpoint_key(model.id) for model in self._models]
            self._folder.finish(self._models[0].engine.recorder.records if self._models else None, also=endpoints)
        self._show.summary()
        if self._folder is not None:
            print(f"The run is in {self._folder.path}.", file=sys.stderr)
        if self._guard is not None:
            await self._say_budget(self._guard)
        return SOME if self._show.unanswered or self._left else OK

    async def _say_budget(self, guard: BudgetGuard) -> None:
        """Says what was spent and, where that stopped the run, what is left to do and what it would cost."""
        await asyncio.to_thread(guard.close)
        balance, budget = await asyncio.to_thread(guard.ledger.balance), guard.ledger.budget
        lost = f", {budget.words(balance.lost)} of it by processes that were killed" if balance.lost.calls else ""
        print(f"Of the budget of {budget}, {budget.words(balance.spent)} spent{lost}.", file=sys.stderr)
        if self._left:
            from askance.chains import plan
            from askance.cli.output import left_text

            left = await plan(self._chain, inputs_of(self._left))
            print(
                f"The next call might have passed the budget. {left_text(left)}\n"
                "The same command with a larger --budget goes on; what is on record is not asked again.",
                file=sys.stderr,
            )


def inputs_of(samples: Iterable[tuple[Path, Options | None]]) -> Iterator[Given]:
    """Pictures and their options as a chain takes them."""
    return ({"image": picture, "name": picture.as_posix(), "options": chosen} for picture, chosen in samples)


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
        CannotStart: no call can succeed.
    """
    _check(job, calls)
    _check_page(job, calls)
    with calls.open(image_policy=job.image_policy) as work:
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


async def _plan(job: RunOptions, chain: Chain, engine: Engine, samples: Mapping[Path, Options | None]) -> int:
    """Prints what the run would ask and cost; returns the exit code."""
    from askance.chains import plan
    from askance.cli.output import print_plan

    planned = await plan(chain, inputs_of(samples.items()))
    print_plan(planned, engine, as_json=job.as_json)
    return OK


def _check_page(job: RunOptions, calls: Calls) -> None:
    if job.html is not None:
        from askance.cli.page import check_page

        check_page(job.html, mode=calls.record_mode, plan=calls.plan)


def _show(job: RunOptions, *, total: int, tally: Tally, engine: Engine) -> Show:
    if job.html is None:
        return Show(total, as_json=job.as_json, tally=tally, engine=engine)
    from askance.cli.page import KeepingShow

    return KeepingShow(total, as_json=job.as_json, tally=tally, engine=engine)


def _write_page(
    job: RunOptions, chain: Chain, records: Records, *, show: Show, folder: RunFolder | None, interrupted: bool = False
) -> None:
    if job.html is None:
        return
    from askance.cli.page import KeepingShow, write_interrupted, write_readings

    if isinstance(show, KeepingShow):
        place = None if folder is None else folder.path
        write = write_interrupted if interrupted else write_readings
        write(job.html, show, name=job.chain.value, chain=chain, records=records, folder=place)


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


def build(job: RunOptions, work: Workspace) -> tuple[Chain, list[Model]]:
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


def _configuration(
    job: RunOptions, chain: Chain, models: Sequence[Model], samples: Mapping[Path, Options | None]
) -> JsonObject:
    """Everything that decides the lines of a run folder."""
    return {
        "chain": job.chain.value,
        "context": job.context,
        "statement": job.statement,
        "choose": None if job.choose is None else job.choose.value,
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
