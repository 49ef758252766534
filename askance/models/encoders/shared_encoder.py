"""A dual encoder in this process: one for all that run it alike; what is asked at once goes in one batch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast
from weakref import WeakValueDictionary

from askance.chat import ModelId, key_of
from askance.errors import AskanceError
from askance.images.pixels import to_rgb
from askance.images.square_frames import Frame, Scaling, frame_form, framed
from askance.models.encoders.towers import Towers, no_towers, parts_of
from askance.models.encoders.vectors import MemoryVectors, VectorFile, mean_of
from askance.models.local.collector import BatchCollector
from askance.models.local.folder import ModelFolder, find_folder, identity_of, is_identity, no_weights
from askance.models.loop import PerLoop

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

    from askance.images import Shown
    from askance.models.encoders.vectors import Half
    from askance.models.settings import Local

KeptVectors: TypeAlias = "VectorFile | MemoryVectors"
Item = TypeVar("Item")
Encoded: TypeAlias = "Half | AskanceError"
Squares: TypeAlias = "list[tuple[Picture, ...]]"
"""For each picture that a view shows what is encoded of it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EncodeJob:
    """What is to be encoded, and where its vector is kept."""

    key: str
    store: KeptVectors


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TextJob(EncodeJob):
    """A text that fits."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PictureJob(EncodeJob):
    """What is shown of a picture, and how it is made into squares."""

    shown: Shown
    frame: Frame


@dataclass(frozen=True, slots=True)
class _Queue:
    """The jobs without an outcome on one event loop; equal ones have one future."""

    collector: BatchCollector[EncodeJob, Half]
    futures: dict[tuple[int, str], asyncio.Future[Half]] = field(
        default_factory=dict[tuple[int, str], "asyncio.Future[Half]"]
    )

    def put(self, job: EncodeJob) -> asyncio.Future[Half]:
        place = (id(job.store), job.key)
        if place not in self.futures:
            future = self.futures[place] = self.collector.put(job)
            future.add_done_callback(lambda _: self.futures.pop(place))
        return self.futures[place]


class SharedEncoder:
    """A dual encoder in this process; scorers and embedders of one folder share it.

    Args:
        source: a folder, a name on the hub that was downloaded before, or an identity.
        local: how it is run.

    Raises:
        ConfigError: it is not on this machine, not whole, or of another kind.
    """

    def __init__(self, source: str, local: Local) -> None:
        self.spec = f"clip:{source}"
        self.local = local
        self._folder: ModelFolder | None = None
        if is_identity(source):
            self.kind, self._name = source.partition(":")[0], source
        else:
            self._folder = _folder_with_towers(source, local, self.spec)
            self.kind, self._name = self._folder.kind, identity_of(self._folder, local).removeprefix("hf:")
        self.id = ModelId("clip", self._name)
        self._towers: Towers | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="askance-encode")
        self._queue: PerLoop[_Queue] = PerLoop(lambda: _Queue(BatchCollector(self._outcomes, self._thread)))

    def text_job(self, text: str, store: KeptVectors) -> TextJob:
        """The job of a text that fits."""
        key = key_of("embed", {"model": self.id.canonical(), "tower": "text", "text": text})
        return TextJob(key=key, store=store, text=text)

    def picture_job(self, shown: Shown, store: KeptVectors, *, frame: Frame) -> PictureJob:
        """The job of a picture, or of a view of it, which is drawn from the file as it is.

        Raises:
            BadImage: the picture's file cannot be read.
        """
        form = {"sha256": shown.image.sha256, "view": shown.view.canonical(), **frame_form(frame)}
        key = key_of("embed", {"model": self.id.canonical(), "tower": "picture", "image": form})
        return PictureJob(key=key, store=store, shown=shown, frame=frame)

    async def split(self, texts: Sequence[str], *, prefix: str = "") -> list[tuple[str, ...]]:
        """Each text in parts that fit behind the prefix, with the prefix in front of each.

        Raises:
            MissingExtra: torch or transformers is not installed.
            ConfigError: the tokenizer cannot be loaded.
            UsageError: only the identity of the weights is known.
        """

        def split() -> list[tuple[str, ...]]:
            fits = self._ready().fits
            parts = (parts_of(text, lambda part: fits(prefix + part)) for text in texts)
            return [tuple(prefix + part for part in some) for some in parts]

        return await self._in_thread(split)

    async def scale(self) -> tuple[float, float | None]:
        """The factor and the bias by which the model makes a logit of a cosine; None is no bias.

        Raises:
            ConfigError: the weights cannot be loaded, or have no scale.
        """
        return await self._in_thread(lambda: self._ready().scale)

    async def vectors(self, jobs: Sequence[EncodeJob]) -> list[Half]:
        """The vector of each job, in their order; equal jobs are done once, and those of several callers together.

        Raises:
            AskanceError: of the first job that ended in one.
        """
        queue = self._queue()
        futures = [queue.put(job) for job in jobs]
        await asyncio.wait(futures)  # a caller that is cancelled leaves the vectors to the others
        return [future.result() for future in futures]

    def release(self) -> None:
        """Releases the weights; the next call loads them again."""
        self._towers = None

    async def _in_thread(self, make: Callable[[], Item]) -> Item:
        return await asyncio.get_running_loop().run_in_executor(self._thread, make)

    def _outcomes(self, jobs: Sequence[EncodeJob]) -> list[Encoded]:
        """The vector of each job, or the error that it ended with."""
        outcomes: dict[EncodeJob, Encoded] = {}
        for store in {id(job.store): job.store for job in jobs}.values():
            mine = {job.key: job for job in jobs if job.store is store}
            try:
                encoded: dict[str, Encoded] = dict(store.find(list(mine)))
                encoded |= self._encode([job for key, job in mine.items() if key not in encoded], store)
            except AskanceError as error:
                encoded = dict.fromkeys(mine, error)
            outcomes |= {mine[key]: each for key, each in encoded.items()}
        return [outcomes[job] for job in jobs]

    def _encode(self, jobs: Sequence[EncodeJob], store: KeptVectors) -> dict[str, Encoded]:
        if not jobs:
            return {}
        texts = [job for job in jobs if isinstance(job, TextJob)]
        made = dict(zip([job.key for job in texts], self._ready().texts([job.text for job in texts]), strict=True))
        made |= self._encode_pictures([job for job in jobs if isinstance(job, PictureJob)])
        vectors = {key: each for key, each in made.items() if not isinstance(each, AskanceError)}
        store.keep(vectors)
        # Where another process kept a vector first, that one is used.
        return made | store.find(list(vectors))

    def _encode_pictures(self, jobs: Sequence[PictureJob]) -> dict[str, Encoded]:
        """The vector of each picture, or its error; no more pictures are held decoded than are encoded at a time."""
        outcomes: dict[str, Encoded] = {}
        scaling = self._ready().scaling if any(job.frame in {"crop", "resize"} for job in jobs) else None
        drawn = _drawn(jobs, scaling)
        while some := list(islice(drawn, self.local.batch)):
            squares = [each for _, pictures in some if not isinstance(pictures, AskanceError) for each in pictures]
            vectors = iter(self._ready().pictures(squares))
            for job, pictures in some:
                outcomes[job.key] = (
                    pictures if isinstance(pictures, AskanceError) else _mean(islice(vectors, len(pictures)))
                )
        return outcomes

    def _ready(self) -> Towers:
        if self._folder is None:
            raise no_weights(self.spec)
        if self._towers is None:
            self._towers = Towers(self._folder, self.local, spec=self.spec)
        return self._towers


def _drawn(jobs: Iterable[PictureJob], scaling: Scaling | None) -> Iterator[tuple[PictureJob, Squares | AskanceError]]:
    """What each job shows, or why it shows nothing; jobs of one picture follow each other, and it is decoded once."""
    of_one_picture: dict[str, list[PictureJob]] = {}
    for job in jobs:
        of_one_picture.setdefault(job.shown.image.sha256, []).append(job)
    for some in of_one_picture.values():
        try:
            picture = to_rgb(some[0].shown.image.open())
        except AskanceError as error:
            yield from ((job, error) for job in some)
            continue
        for job in some:
            yield job, _squares(job, picture, scaling)


def _squares(job: PictureJob, picture: Picture, scaling: Scaling | None) -> Squares | AskanceError:
    try:
        shown = job.shown.view.draw(picture, job.shown.image)
    except AskanceError as error:
        return error
    return [framed(each, job.frame, scaling=scaling) for each in shown]


def _mean(vectors: Iterable[Encoded]) -> Encoded:
    """The mean of the vectors of what one view shows, or the first error among them."""
    found = list(vectors)
    error = next((each for each in found if isinstance(each, AskanceError)), None)
    return error or mean_of(cast("list[Half]", found))


_SHARED: WeakValueDictionary[tuple[str, Local], SharedEncoder] = WeakValueDictionary()


def shared_encoder(source: str, local: Local) -> SharedEncoder:
    """The encoder of `source`: one in this process for all that run it the same way.

    Raises:
        ConfigError: as for `SharedEncoder`.
    """
    where = str(Path(source).expanduser().absolute()) if Path(source).expanduser().is_dir() else source
    running = _SHARED.get((where, local))
    fresh = SharedEncoder(source, local)
    # Weights that were changed meanwhile are another encoder's.
    if running is not None and running.id == fresh.id:
        return running
    _SHARED[where, local] = fresh
    return fresh


def _folder_with_towers(source: str, local: Local, spec: str) -> ModelFolder:
    folder = find_folder(source, local, provider="clip")
    if not {"text_config", "vision_config"} <= folder.config.keys():
        raise no_towers(spec, folder.kind)
    return folder
