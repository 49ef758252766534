"""A chain run over pictures that nobody scores: `askance run`. `reading_folder` keeps the lines in a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from askance import chains
from askance.evals.job import CountItem, FirstFailure, Job, affordable
from askance.evals.prompt_check import warn_of_prompts
from askance.models.capabilities import endpoint_key

if TYPE_CHECKING:
    from askance.chains import Chain, Given, Planner
    from askance.chat import JsonObject
    from askance.errors import BadImage
    from askance.evals.run_folder import RunFolder
    from askance.evals.runner import BatchOptions
    from askance.models import Counters, Model


@dataclass(frozen=True, slots=True)
class NamedPicture:
    """A picture that is called otherwise than its file: by the address that it is from, or its row of a table."""

    name: str
    file: Path | None
    trouble: BadImage | None = field(default=None, compare=False)
    """Why there is no file."""
    question: str = ""
    """What is asked about it alone; empty where the same is asked about all pictures."""


PictureKey: TypeAlias = Path | NamedPicture
"""A picture of a run, which its lines name by the path or the name."""

OptionsByKey: TypeAlias = Mapping[PictureKey, Sequence[str] | None]
PictureOptions: TypeAlias = Mapping[Path, Sequence[str] | None] | OptionsByKey
"""By picture, the options to choose from; None if the chain takes none."""

OnLine: TypeAlias = Callable[[PictureKey, Mapping[str, Any]], None]
"""Called with each picture and its line, in the order of the pictures."""


class PictureRun:
    """A run of a chain over pictures, under way or ended.

    Args:
        chain: reads the pictures.
        folder: of the run, made by `open_folder`; None keeps only the records.
        batches: asks through the batch interface; it names the folder for batches under way.
        on_line: called with every line, also with those that were in the folder before.
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
        self.models: list[Model] = [*chain.models]
        self.folder = folder
        self.outcomes: Counter[str] = Counter()
        """How many pictures ended in which outcome."""
        self.left: dict[PictureKey, Sequence[str] | None] = {}
        """Pictures without an answer because the budget was used up, with their options."""
        self.counters: Mapping[str, Counters] = {}
        """What models on this machine computed, by name of the model."""
        self._batches = batches
        self._on_line = on_line

    async def read(self, pictures: PictureOptions) -> None:
        """Reads every picture; closes the models and the folder at the end, also after an error.

        Raises:
            CallError: a model cannot be reached at all, or the first picture failed in a way that all others would.
            StoreError: the records or the folder cannot be read or written.
        """
        first, by_key = FirstFailure(what="image"), cast("OptionsByKey", pictures)

        def accepts(line: JsonObject) -> bool:
            """As `FirstFailure`; answers on record and in the folder show as well that others need not fail alike."""
            calls = line["meta"]["calls"] + line["meta"]["replayed"] + self.outcomes["answered"]
            return first.accepts(line["links"], answered=True, calls=calls)

        folder = self.folder
        job = picture_job(self.chain, pictures, batches=self._batches)
        if folder is not None:
            job = job.kept_in(folder.finished, lambda _, line: folder.add(line))
        job.accepts, job.counting, job.counted = accepts, self.models, self._counted
        finished = () if folder is None else folder.finished
        if job.engine is not None and job.engine.mode != "replay" and any(each not in finished for each in pictures):
            warn_of_prompts(self.chain.nodes)
        try:
            async with job.answered(again=True) as lines:
                async for picture, line in lines:
                    self.outcomes[line["outcome"]] += 1
                    if self._on_line is not None:
                        self._on_line(picture, line)
            self.left = {picture: by_key[picture] for picture in job.left}
            if self.folder is not None:
                left = {"left": len(self.left)} if self.left else {}
                endpoints = [endpoint_key(model.id) for model in self.models]
                records = None if job.engine is None else job.engine.recorder.records
                self.folder.finish(records, also=endpoints, more=left)
        finally:
            if self.folder is not None:
                self.folder.close()

    def _counted(self, counters: Mapping[str, Counters]) -> None:
        self.counters = counters
        if self.folder is not None:
            self.folder.counted(counters)


def picture_job(
    chain: Chain, pictures: PictureOptions, *, batches: BatchOptions | None = None
) -> Job[PictureKey, JsonObject, JsonObject]:
    """The lines of pictures, as a job.

    Args:
        chain: reads the pictures.
        pictures: the pictures with their options.
        batches: asks through the batch interface.
    """
    models, by_key = [*chain.models], cast("OptionsByKey", pictures)
    engine = models[0].engine if models else None

    async def read(some: Sequence[PictureKey]) -> AsyncGenerator[JsonObject, None]:
        inputs = [_input_of(picture, by_key[picture]) for picture in some]
        if batches is None:
            batch = chain.read_all(affordable(inputs, engine))
        else:
            batch = chains.read_in_batches(chain, inputs, folder=batches.folder, on_progress=batches.on_progress)
        async with aclosing(batch) as readings:
            async for reading in readings:
                yield reading.to_dict()

    @contextmanager
    def counting(planner: Planner) -> Generator[CountItem[PictureKey]]:
        walk = planner.walk(chain)
        with planner.counting():
            yield lambda picture: walk.read(_input_of(picture, by_key[picture]))

    return Job(
        items=[*pictures],
        name=name_of,
        title=chain.get_name(),
        stream=read,
        counts=counting,
        models=models,
        engine=engine,
    )


def _input_of(picture: PictureKey, options: Sequence[str] | None) -> Given:
    """A picture and its options, as a chain takes them."""
    image = picture if isinstance(picture, Path) else picture.file or picture.trouble
    asked = {} if isinstance(picture, Path) or not picture.question else {"question": picture.question}
    return {"image": image, "name": name_of(picture), "options": options, **asked}


def samples_form(pictures: PictureOptions) -> JsonObject:
    """Pictures and their options, as the configuration of a run has them."""
    return {name_of(picture): list(options) if options else None for picture, options in pictures.items()}


def questions_form(pictures: Iterable[PictureKey]) -> JsonObject:
    """What is asked about single pictures, as part of the configuration of a run; empty where nothing is."""
    questions = {each.name: each.question for each in pictures if isinstance(each, NamedPicture) and each.question}
    return {"questions": questions} if questions else {}


def name_of(picture: PictureKey) -> str:
    """What lines call a picture."""
    return picture.as_posix() if isinstance(picture, Path) else picture.name
