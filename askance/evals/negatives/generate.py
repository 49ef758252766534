"""Writing hard negatives for a data set: every true statement, every kind, resumable; files in the authors' shape.

The folder is a run's (`run.json`, `samples.jsonl`, `calls.jsonl`): the same call finds it again and finishes it. What
has no answer is asked again then, and is in no file of negatives until it has one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from askance.agents.negatives import NegativeKind, NegativeWriter
from askance.chains.stream import in_order
from askance.chat import key_of
from askance.errors import OverBudget, UsageError
from askance.evals.negatives.lines import line_of, line_of_result, write_files
from askance.evals.negatives.recipe import Recipe, Wanted, random_negatives, wanted
from askance.evals.run_folder import RunFolder
from askance.models import get_model, run_sync, use_draw
from askance.models.capabilities import endpoint_key

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.negatives.files import Source
    from askance.models import Engine, Model, ModelLike
    from askance.prompts import PromptLibrary


@dataclass(kw_only=True)
class Written:
    """How far the writing is, or what came of it."""

    folder: Path
    total: int = 0
    done: int = 0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    left: int = 0
    """Calls that the budget had nothing left for."""
    negatives: int = 0
    """Negatives in the files, equal texts of an image once."""
    files: Mapping[str, int] = field(default_factory=dict[str, int])
    """Images by file."""

    @property
    def complete(self) -> bool:
        """Whether every negative was written."""
        return self.outcomes["answered"] == self.total


Told = Callable[[Written], None]


async def agenerate(
    sources: Sequence[Source],
    llm: ModelLike | None,
    *,
    out: Path,
    recipe: Recipe | None = None,
    prompts: PromptLibrary | None = None,
    engine: Engine | None = None,
    told: Told | None = None,
) -> Written:
    """Writes the negatives of `sources` into the folder `out`; one that was begun is finished.

    Args:
        sources: what is true of which image.
        llm: the model that writes; None is enough for the kind `random`.
        out: folder of the run and of the files.
        recipe: what is written; by default one negative of every kind for ads.
        prompts: where prompts are looked up.
        engine: whose records and budget are used, where `llm` is no model yet.
        told: of every step.

    Raises:
        UsageError: a model is needed and none is given, no sources, or a folder that holds something else.
        CallError: the model cannot be asked at all.
    """
    recipe = recipe or Recipe()
    if not sources:
        raise UsageError("There are no true statements to write negatives for.", hint="Check the file and its ids.")
    asked: list[NegativeKind] = [kind for kind in recipe.kinds if kind != "random"]
    if asked and llm is None:
        raise UsageError("No model is named that writes the negatives.", hint="Give `llm`, or the kind `random` alone.")
    model = get_model(cast("ModelLike", llm), engine=engine) if asked else None
    writers: dict[NegativeKind, NegativeWriter] = {
        kind: NegativeWriter(cast("Model", model), kind=kind, domain=recipe.domain, count=recipe.count, prompts=prompts)
        for kind in asked
    }
    folder = RunFolder(out, _configuration(sources, recipe, writers, model=model), name=lambda line: str(line["id"]))
    try:
        running = _Running(sources, recipe, writers, model=model, folder=folder, told=told)
        await running.run()
        lines = [*folder.lines()]
        running.written.negatives, running.written.files = write_files(out, sources, recipe, lines=lines)
        records = None if model is None else model.engine.recorder.records
        also = [] if model is None else [endpoint_key(model.id)]
        folder.finish(records, also=also, more={"files": dict(running.written.files), "left": running.written.left})
    finally:
        folder.close()
        if model is not None:
            await model.aclose()
    return running.written


def generate(sources: Sequence[Source], llm: ModelLike | None, *, out: Path, **options: Any) -> Written:
    """As `agenerate`, from anywhere: scripts, threads, notebooks."""
    return run_sync(agenerate(sources, llm, out=out, **options))


def _configuration(
    sources: Sequence[Source], recipe: Recipe, writers: Mapping[NegativeKind, NegativeWriter], *, model: Model | None
) -> JsonObject:
    """Everything that decides the lines of the folder."""
    content: JsonObject = {source.key: list(source.true) for source in sources}
    return {
        "task": "negatives",
        "domain": recipe.domain,
        "kinds": list(recipe.kinds),
        "most": recipe.most,
        "count": recipe.count,
        "seed": recipe.seed,
        "draw": recipe.draw,
        "model": None if model is None else model.form(),
        "prompts": {prompt.path.name: prompt.digest for node in writers.values() for prompt in node.prompts_in_use},
        "sources": {"count": len(sources), "digest": key_of("sources", content)},
    }


class _Running:
    """One run under way."""

    def __init__(
        self,
        sources: Sequence[Source],
        recipe: Recipe,
        writers: Mapping[NegativeKind, NegativeWriter],
        *,
        model: Model | None,
        folder: RunFolder,
        told: Told | None,
    ) -> None:
        self._all = [*wanted(sources, recipe)]
        self._recipe = recipe
        self._writers = writers
        self._model = model
        self._folder = folder
        self._told = told
        self._random = random_negatives(sources, recipe)
        self.written = Written(folder=folder.path, total=len(self._all))

    async def run(self) -> None:
        """Asks for what the folder has no answer for."""
        finished = self._folder.finished
        self.written.done = sum(each.name in finished for each in self._all)
        self.written.outcomes.update({"answered": self.written.done} if self.written.done else {})
        todo = [each for each in self._all if each.name not in finished]
        if self._model is not None and any(each.kind in self._writers for each in todo):
            await self._model.output_mode()
        guard = None if self._model is None else self._model.engine.budget
        affordable = takewhile(lambda _: guard is None or not guard.used_up, todo)
        async with aclosing(in_order(self._line, affordable, room=self._room)) as lines:
            async for line in lines:
                if line is not None:
                    self._take(line)
        self.written.left = len(self._all) - self.written.done

    def _room(self) -> int:
        return 1 if self._model is None else self._model.engine.places

    def _take(self, line: JsonObject) -> None:
        self._folder.add(line)
        self.written.done += 1
        self.written.outcomes[str(line["outcome"])] += 1
        if self._told is not None:
            self._told(self.written)

    async def _line(self, one: Wanted) -> JsonObject | None:
        """The line of one call; None where the budget had nothing left for it."""
        writer = self._writers.get(one.kind)
        if writer is None:
            drawn = self._random[one.name]
            reason = None if drawn else "there are too few explanations of other images to draw from"
            return line_of(one, "answered" if drawn else "skipped", [{"text": text} for text in drawn], reason=reason)
        with use_draw(self._recipe.draw):
            result = await writer.ask(one.question)
        if result.error == OverBudget.__name__:
            return None
        return line_of_result(one, result)
