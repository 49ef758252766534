"""A chain run over single pictures: a line each, kept in a folder as it comes, with nothing to score.

```python
run = read_pictures(chain, {Path("ads/a.jpg"): None}, out=Path("readings"))
```

The same call goes on where an earlier one stopped: what the folder has an answer for is not asked again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from askance.chains import read_in_batches
from askance.chains.output_line import line_of
from askance.errors import BadImage, OverBudget
from askance.evals.evaluation import stop_if_hopeless
from askance.evals.solver import ChainSolver
from askance.evals.storage import RunFolder
from askance.images import Image
from askance.models import run_sync
from askance.models.capabilities import endpoint_key
from askance.models.counters import RunCounters

if TYPE_CHECKING:
    from askance.chains import Chain, Given, Reading
    from askance.chat import JsonObject
    from askance.evals.predictions import BatchOptions
    from askance.models import Counters, Model

PictureOptions: TypeAlias = Mapping[Path, Sequence[str] | None]
"""Options to choose from, by picture; None where the chain takes none."""

OnLine: TypeAlias = Callable[[Path, Mapping[str, Any]], None]
"""Is called with each picture and its line, in the order of the pictures."""


class PictureRun:
    """A run of a chain over pictures, under way or ended.

    Args:
        chain: that reads them.
        folder: of the run, by `open_folder`; None keeps nothing but the records.
        batches: that the chain is asked through the batch interface; it names the folder for what is under way.
        on_line: is called with every line, also with those of earlier starts.
    """

    def __init__(
        self,
        chain: Chain,
        *,
        folder: RunFolder | None = None,
        batches: BatchOptions | None = None,
        on_line: OnLine | None = None,
    ) -> None:
        self.chain = chain
        self.models: list[Model] = list(dict.fromkeys(node.model for node in chain.nodes))
        self.folder = folder
        self.outcomes: Counter[str] = Counter()
        """How many pictures ended in which outcome."""
        self.left: dict[Path, Sequence[str] | None] = {}
        """PictureOptions that the budget had nothing left for, with their options."""
        self.counters: Mapping[str, Counters] = {}
        """What models on this machine computed, by name."""
        self._batches = batches
        self._on_line = on_line

    async def read(self, pictures: PictureOptions) -> None:
        """Reads every picture; lets go of the models and the folder, however it ends.

        Raises:
            CallError: a model cannot be asked at all, or the first picture failed in a way that all others would.
            StoreError: records or folder cannot be read or written.
        """
        counting = await RunCounters.begun(self.models)
        try:
            try:
                async with aclosing(self._lines(pictures)) as lines:
                    async for path, line in lines:
                        self._add(path, line)
            finally:
                self.counters = await counting.so_far()
                if self.folder is not None:
                    self.folder.counted(self.counters)
            if self.folder is not None:
                endpoints = [endpoint_key(model.id) for model in self.models]
                records = self.models[0].engine.recorder.records if self.models else None
                self.folder.finish(records, also=endpoints)
        finally:
            for model in self.models:
                await model.aclose()
            if self.folder is not None:
                self.folder.close()

    def _add(self, path: Path, line: Mapping[str, Any]) -> None:
        if self.folder is not None:
            self.folder.add(line)
        self.outcomes[line["outcome"]] += 1
        if self._on_line is not None:
            self._on_line(path, line)

    async def _lines(self, pictures: PictureOptions) -> AsyncGenerator[tuple[Path, Mapping[str, Any]], None]:
        """Every picture with its line, in order: those that the folder has, and those read now.

        When the budget is used up no more pictures are begun; those that could not be ended are left.
        """
        finished: Mapping[str, Mapping[str, Any]] = {} if self.folder is None else self.folder.finished
        unread = {path: options for path, options in pictures.items() if path.as_posix() not in finished}
        for model in self.models if unread else ():
            await model.output_mode()
        reached = False
        async with aclosing(self._readings(unread)) as readings:
            for path, options in pictures.items():
                line: Mapping[str, Any] | None = finished.get(path.as_posix())
                if line is None:
                    reading = await anext(readings, None)
                    if reading is None or any(each.error == OverBudget.__name__ for each in reading.links.values()):
                        self.left[path] = options
                        continue
                    line = line_of(reading)
                    calls = line["meta"]["calls"] + line["meta"]["replayed"]
                    reached = reached or self.outcomes["answered"] > 0
                    if not reached:
                        stop_if_hopeless(line["links"], calls=calls, what="image")
                    reached = reached or calls > 0
                yield path, line

    def _readings(self, pictures: PictureOptions) -> AsyncGenerator[Reading, None]:
        inputs = inputs_of(pictures)
        if self._batches is not None:
            folder = self._batches.folder
            return read_in_batches(self.chain, [*inputs], folder=folder, on_progress=self._batches.on_progress)
        guard = self.models[0].engine.budget if self.models else None
        return self.chain.read_all(takewhile(lambda _: guard is None or not guard.used_up, inputs))


async def aread_pictures(
    chain: Chain, pictures: PictureOptions, *, out: Path | None = None, on_line: OnLine | None = None
) -> PictureRun:
    """Reads every picture by `chain`.

    Args:
        chain: that reads.
        pictures: with their options.
        out: folder of the run; None keeps nothing but the records.
        on_line: is called with every line, also with those of earlier starts.

    Raises:
        UsageError: the folder holds something else.
        CallError: a model cannot be asked at all, or the first picture failed in a way that all others would.
        StoreError: records or folder cannot be read or written.
    """
    folder = None if out is None else open_folder(out, configuration_of(chain, pictures))
    run = PictureRun(chain, folder=folder, on_line=on_line)
    await run.read(pictures)
    return run


def read_pictures(
    chain: Chain, pictures: PictureOptions, *, out: Path | None = None, on_line: OnLine | None = None
) -> PictureRun:
    """As `aread_pictures`, from anywhere: scripts, threads, notebooks."""
    return run_sync(aread_pictures(chain, pictures, out=out, on_line=on_line))


def open_folder(path: Path, configuration: JsonObject) -> RunFolder:
    """The folder of a run over pictures; a line counts as long as its picture is still the same.

    Raises:
        UsageError: it holds another run, or something else.
        StoreError: another process is writing it, or it cannot be written.
    """
    return RunFolder(path, configuration, keeps=_same_picture)


def configuration_of(chain: Chain, pictures: PictureOptions) -> JsonObject:
    """Everything that decides the lines of a run."""
    return {**ChainSolver(chain).form(), "samples": samples_form(pictures)}


def samples_form(pictures: PictureOptions) -> JsonObject:
    """PictureOptions and their options as the configuration of a run has them."""
    return {path.as_posix(): list(options) if options else None for path, options in pictures.items()}


def inputs_of(pictures: PictureOptions) -> Iterator[Given]:
    """PictureOptions and their options as a chain takes them."""
    items = pictures.items()
    return ({"image": path, "name": path.as_posix(), "options": options} for path, options in items)


def _same_picture(line: Mapping[str, Any]) -> bool:
    """Whether the picture of an earlier run's line is still the one that it tells of."""
    try:
        return Image.from_path(Path(line["image"])).sha256 == line["sha256"]
    except BadImage:
        return False
