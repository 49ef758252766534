"""One run of the command line: its models, its chain, its pictures, and what ends it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.chains import Chain, action_reason, atypicality, end_to_end, verbalize
from askance.chains.line import line_of
from askance.cli.exits import CANNOT_START, INTERRUPTED, OK, SOME
from askance.cli.inputs import Options, find_pictures, read_options
from askance.cli.showing import Show, Tally
from askance.errors import AskanceError, CallError, ConfigError, UsageError
from askance.evals import RunFolder
from askance.images import policy
from askance.models import Config, Engine, Model, get_model
from askance.prompts import PromptLibrary
from askance.replay import Store

if TYPE_CHECKING:
    from askance.chat import JsonObject

_HOPELESS = {"AuthError", "ModelNotFound", "Unreachable"}
"""Failures that the next picture would meet as well."""

_NO_MODEL = ConfigError(
    "No model is named for --vlm.",
    hint="An API: --vlm openai:gpt-4o (with OPENAI_API_KEY set). A local server: "
    "--vlm openai:Qwen/Qwen2.5-VL-7B-Instruct@http://localhost:8000/v1. Or set `vlm` in askance.toml.",
)


@dataclass(frozen=True, kw_only=True)
class Job:
    """The options of one `askance run`."""

    chain: str
    images: Sequence[str]
    vlm: str | None
    llm: str | None
    options: Path | None
    context: str | None
    statement: bool | None
    choose: str
    count: int
    step_by_step: bool
    as_json: bool
    out: Path | None
    mode: Any
    retry: frozenset[Any]
    concurrency: int | None
    prompts: Path | None
    paper: bool
    image_policy: str | None
    store: Path | None


def run_job(job: Job) -> int:
    """Runs it; returns the exit code."""
    pictures = find_pictures(job.images)
    options = _options(job, pictures)
    tally = Tally()
    engine = Engine(
        mode=job.mode,
        records=Store.open(job.store, read_only=job.mode == "replay") if job.store else None,
        retry=job.retry,
        concurrency=job.concurrency,
        image_policy=policy(job.image_policy) if job.image_policy else None,
        protocol="paper" if job.paper else None,
        observers=[tally],
    )
    chain, models = build(job, engine)
    folder = RunFolder(job.out, _configuration(job, chain, models, options, pictures)) if job.out else None
    show = Show(len(pictures), as_json=job.as_json, tally=tally)
    running = Running(chain, models, folder=folder, show=show)
    try:
        return asyncio.run(running.run(pictures, options, concurrency=max(job.concurrency or 0, 16)))
    except KeyboardInterrupt:
        running.interrupted()
        return INTERRUPTED
    finally:
        show.close()
        if folder is not None:
            folder.close()


def build(job: Job, engine: Engine) -> tuple[Chain, list[Model]]:
    """The chain that the job names, and its models, each once."""
    config = Config.find()
    vlm_name = job.vlm or config.vlm
    if vlm_name is None:
        raise _NO_MODEL
    vlm = get_model(vlm_name, engine=engine, config=config)
    llm_name = job.llm or config.llm
    llm = vlm if llm_name is None or llm_name == vlm_name else get_model(llm_name, engine=engine, config=config)
    overlay = job.prompts or config.prompts
    if overlay is not None and not overlay.is_dir():
        raise UsageError(
            f"There is no prompts folder {str(overlay)!r}.", hint="`askance prompts eject NAME` begins one."
        )
    chain = _chain(job, vlm, llm, PromptLibrary([overlay]) if overlay else PromptLibrary())
    return chain, list(dict.fromkeys(node.model for node in chain.nodes))


def _chain(job: Job, vlm: Model, llm: Model, prompts: PromptLibrary) -> Chain:
    context: Any = job.context
    mode: Any = job.choose
    match job.chain:
        case "verbalize":
            return verbalize(vlm, llm, context=context or "T_V", prompts=prompts)
        case "atypicality":
            return atypicality(vlm, llm, prompts=prompts)
        case "action-reason":
            return action_reason(
                vlm,
                llm,
                context=context or "T_V",
                statement=job.statement is not False,
                mode=mode,
                count=job.count,
                prompts=prompts,
            )
        case _:
            return end_to_end(
                vlm,
                llm,
                context=context,
                statement=bool(job.statement),
                mode=mode,
                count=job.count,
                step_by_step=job.step_by_step,
                prompts=prompts,
            )


def _options(job: Job, pictures: Sequence[Path]) -> list[Options | None]:
    if job.chain not in {"action-reason", "end-to-end"}:
        if job.options is not None:
            raise UsageError(f"`{job.chain}` chooses nothing, so it takes no --options.", hint="Leave --options out.")
        return [None] * len(pictures)
    if job.options is None:
        raise UsageError(
            f"`{job.chain}` chooses among options, and none are given.",
            hint="Give --options FILE: one option a line, a JSON list, or a JSON map by image name.",
        )
    return [*read_options(job.options, pictures)]


def _configuration(
    job: Job, chain: Chain, models: Sequence[Model], options: Sequence[Options | None], pictures: Sequence[Path]
) -> JsonObject:
    """Everything that decides the lines of a run folder."""
    return {
        "chain": job.chain,
        "context": job.context,
        "statement": job.statement,
        "choose": job.choose,
        "count": job.count,
        "step_by_step": job.step_by_step,
        "protocol": "paper" if job.paper else "auto",
        "models": [
            {
                "id": model.id.canonical(),
                "sampling": model.settings.sampling.canonical(),
                "extra": dict(model.settings.extra),
                "images": model.settings.image_policy.canonical(),
                "detail": model.settings.detail,
            }
            for model in models
        ],
        "prompts": {prompt.path.name: prompt.digest for node in chain.nodes for prompt in node.prompts_in_use},
        "samples": {
            picture.as_posix(): list(chosen) if chosen else None
            for picture, chosen in zip(pictures, options, strict=True)
        },
    }


class Running:
    """The pictures under way: lines out in order, to the screen and to the folder."""

    def __init__(self, chain: Chain, models: Sequence[Model], *, folder: RunFolder | None, show: Show) -> None:
        self._chain = chain
        self._models = models
        self._folder = folder
        self._show = show

    async def run(self, pictures: Sequence[Path], options: Sequence[Options | None], *, concurrency: int) -> int:
        """Reads every picture; returns the exit code."""
        try:
            for model in self._models:
                await model.rung()
            async with aclosing(self._lines(pictures, options, concurrency=concurrency)) as lines:
                place = 0
                async for line in lines:
                    if self._folder is not None:
                        self._folder.add(line)
                    self._show.reading(line, options[place])
                    place += 1
                    if self._hopeless(line):
                        return self._cannot_go_on(line)
            return self._end()
        except CallError as error:
            raise CannotStart(error) from error
        finally:
            for model in self._models:
                await model.aclose()

    def interrupted(self) -> None:
        """Says what is done and how to go on."""
        self._show.summary()
        print(
            "Interrupted. The same command goes on where this one stopped; what is on record costs nothing.",
            file=sys.stderr,
        )

    async def _lines(
        self, pictures: Sequence[Path], options: Sequence[Options | None], *, concurrency: int
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        """The line of every picture in order: those that the folder has, and those read now."""
        finished = self._folder.finished if self._folder is not None else {}
        left = (
            {"image": picture, "name": picture.as_posix(), "options": chosen}
            for picture, chosen in zip(pictures, options, strict=True)
            if picture.as_posix() not in finished
        )
        async with aclosing(self._chain.read_all(left, concurrency=concurrency)) as readings:
            for picture in pictures:
                done = finished.get(picture.as_posix())
                yield done if done is not None else line_of(await anext(readings))

    def _hopeless(self, line: Mapping[str, Any]) -> bool:
        """Whether the first picture failed in a way that all others would, with no answer so far."""
        nothing_yet = not self._show.outcomes["answered"] and self._show.nothing_asked
        return nothing_yet and any(link.get("error") in _HOPELESS for link in line["links"].values())

    def _cannot_go_on(self, line: Mapping[str, Any]) -> int:
        self._show.close()
        reason = next(link["reason"] for link in line["links"].values() if link.get("error") in _HOPELESS)
        print(f"askance: stopped at the first image, since the others would fail alike. {reason}", file=sys.stderr)
        return CANNOT_START

    def _end(self) -> int:
        if self._folder is not None:
            self._folder.finish(self._models[0].engine.shelf.records if self._models else None)
        self._show.summary()
        return OK if not self._show.unanswered else SOME


class CannotStart(AskanceError):
    """A model cannot be asked at all; its message is the call's."""

    def __init__(self, error: CallError) -> None:
        super().__init__(error.message, hint=error.hint)
