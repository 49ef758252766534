"""One dual encoder at work: what is asked at once is encoded in one batch, and what is kept is not encoded at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast
from weakref import WeakValueDictionary

from askance.chat import ModelId, key_of
from askance.errors import AskanceError, ModelError, UsageError
from askance.images import drawing
from askance.models.encoders.arrays import mean_of
from askance.models.encoders.parts import parts_of
from askance.models.encoders.towers import Towers, no_towers
from askance.models.local.folders import Folder, find_folder
from askance.models.local.identity import identity_of, is_identity
from askance.models.loop import PerLoop

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

    from askance.images import Image, View
    from askance.models.encoders.arrays import Half, MemoryVectors, VectorFile
    from askance.models.settings import Local

Item = TypeVar("Item")
Came: TypeAlias = "Half | AskanceError"

PICTURES = 256
"""Pictures that are held decoded at a time, at most."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Job:
    """A text that fits, or a picture; and where its vector is kept."""

    key: str
    shelf: VectorFile | MemoryVectors
    text: str = ""
    draw: Callable[[], tuple[Picture, ...]] | None = None


@dataclass(slots=True)
class _Queue:
    """What one loop waits for."""

    jobs: dict[tuple[int, str], tuple[Job, asyncio.Future[Came]]] = field(default_factory=dict[Any, Any])
    fresh: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    worker: asyncio.Task[None] | None = None


class Encoding:
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
        self._folder: Folder | None = None
        if is_identity(source):
            self.kind, self._name = source.partition(":")[0], source
        else:
            self._folder = _folder_with_towers(source, local, self.spec)
            self.kind, self._name = self._folder.kind, identity_of(self._folder, local).removeprefix("hf:")
        self.id = ModelId("clip", self._name)
        self._towers: Towers | None = None
        self._encoded = {"pictures": 0, "texts": 0}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="askance-encode")
        self._queue = PerLoop(_Queue)

    @property
    def encoded(self) -> Mapping[str, int]:
        """How many pictures and texts went through the weights so far."""
        now = self._towers.encoded if self._towers is not None else {}
        return {what: count + now.get(what, 0) for what, count in self._encoded.items()}

    def text_job(self, text: str, shelf: VectorFile | MemoryVectors) -> Job:
        """What encodes a text that fits."""
        key = key_of("embed", {"model": self.id.canonical(), "tower": "text", "text": text})
        return Job(key=key, shelf=shelf, text=text)

    def picture_job(self, image: Image, view: View, shelf: VectorFile | MemoryVectors, *, padded: bool) -> Job:
        """What encodes a picture, or what is shown of it.

        Raises:
            BadImage: the picture's file cannot be read.
        """
        shown = {"sha256": image.sha256, "view": view.canonical(), "frame": "padded" if padded else "whole"}
        key = key_of("embed", {"model": self.id.canonical(), "tower": "picture", "image": shown})

        def draw() -> tuple[Picture, ...]:
            pictures = view.render(image)
            return tuple(drawing.squared(picture) for picture in pictures) if padded else pictures

        return Job(key=key, shelf=shelf, draw=draw)

    async def split(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Each text in parts that fit.

        Raises:
            MissingExtra: torch or transformers is not installed.
            ConfigError: the tokenizer cannot be loaded.
            UsageError: only the identity of the weights is known.
        """
        return await self._in_thread(lambda: [parts_of(text, self._ready().fits) for text in texts])

    async def scale(self) -> tuple[float, float | None]:
        """By what the model multiplies a cosine, and what it adds where it adds anything.

        Raises:
            ConfigError: the weights cannot be loaded, or have no scale.
        """
        return await self._in_thread(lambda: self._ready().scale)

    async def vectors(self, jobs: Sequence[Job]) -> list[Half]:
        """The vector of each job, in their order; equal jobs are done once, and those of several callers together.

        Raises:
            AskanceError: what became of the first that has none.
        """
        queue = self._queue()
        loop = asyncio.get_running_loop()
        places = [(id(job.shelf), job.key) for job in jobs]
        for place, job in zip(places, jobs, strict=True):
            if place not in queue.jobs:
                queue.jobs[place] = (job, loop.create_future())
                queue.fresh.append(place)
        waited = [queue.jobs[place][1] for place in places]
        if queue.fresh and queue.worker is None:
            queue.worker = loop.create_task(self._work(queue))
        await asyncio.wait(waited)
        came = [future.result() for future in waited]
        for each in came:
            if isinstance(each, AskanceError):
                raise each
        return cast("list[Half]", came)

    def release(self) -> None:
        """Lets go of the weights; they are loaded again when they are needed again."""
        self._encoded = dict(self.encoded)
        self._towers = None

    async def _in_thread(self, make: Callable[[], Item]) -> Item:
        return await asyncio.get_running_loop().run_in_executor(self._thread, make)

    async def _work(self, queue: _Queue) -> None:
        """Encodes what is waited for, batch after batch: what comes in the meantime is in the next."""
        try:
            while queue.fresh:
                taken, queue.fresh = queue.fresh, []
                jobs = [queue.jobs[place][0] for place in taken]
                came = await self._in_thread(lambda jobs=jobs: self._came(jobs))
                for place, each in zip(taken, came, strict=True):
                    queue.jobs.pop(place)[1].set_result(each)
        finally:
            queue.worker = None
            for _, future in queue.jobs.values():
                future.cancel()
            queue.jobs.clear()
            queue.fresh.clear()

    def _came(self, jobs: Sequence[Job]) -> list[Came]:
        """What became of each job; nothing is raised."""
        came: dict[int, Came] = {}
        for shelf in {id(job.shelf): job.shelf for job in jobs}.values():
            mine = {job.key: job for job in jobs if job.shelf is shelf}
            try:
                found: dict[str, Came] = dict(shelf.find(list(mine)))
                found |= self._made([job for key, job in mine.items() if key not in found], shelf)
            except AskanceError as error:
                found = dict.fromkeys(mine, error)
            came |= {id(mine[key]): each for key, each in found.items()}
        return [came[id(job)] for job in jobs]

    def _made(self, jobs: Sequence[Job], shelf: VectorFile | MemoryVectors) -> dict[str, Came]:
        if not jobs:
            return {}
        texts = [job for job in jobs if job.draw is None]
        made = dict(zip([job.key for job in texts], _each(texts, self._read), strict=True))
        pictures = [job for job in jobs if job.draw is not None]
        for start in range(0, len(pictures), PICTURES):
            some = pictures[start : start + PICTURES]
            made.update(zip([job.key for job in some], self._seen(some), strict=True))
        vectors = {key: each for key, each in made.items() if not isinstance(each, AskanceError)}
        shelf.keep(vectors)
        # Another process may have been quicker, and its vectors are those that are kept.
        return made | shelf.find(list(vectors))

    def _read(self, jobs: Sequence[Job]) -> list[Half]:
        return self._ready().texts([job.text for job in jobs])

    def _seen(self, jobs: Sequence[Job]) -> list[Came]:
        """The vectors of pictures; one that cannot be used spoils no other."""
        drawn: dict[int, tuple[Picture, ...]] = {}
        came: dict[int, Came] = {}
        for job in jobs:
            try:
                drawn[id(job)] = job.draw() if job.draw is not None else ()
            except AskanceError as error:
                came[id(job)] = error
        sound = [job for job in jobs if id(job) in drawn]

        def see(some: Sequence[Job]) -> list[Half]:
            shown = iter(self._ready().pictures([picture for job in some for picture in drawn[id(job)]]))
            return [mean_of([next(shown) for _ in drawn[id(job)]]) for job in some]

        came.update(zip(map(id, sound), _each(sound, see), strict=True))
        return [came[id(job)] for job in jobs]

    def _ready(self) -> Towers:
        if self._folder is None:
            raise UsageError(
                f"The model {self.spec!r} is known by its identity alone.", hint="Name its folder: `clip:FOLDER`."
            )
        if self._towers is None:
            dtype = self._folder.dtype if self.local.dtype == "auto" else self.local.dtype
            self._towers = Towers(self._folder, self.local, spec=self.spec, dtype=dtype)
        return self._towers


_SHARED: WeakValueDictionary[tuple[str, Local], Encoding] = WeakValueDictionary()


def encoding(source: str, local: Local) -> Encoding:
    """The encoder of `source`; one in this process for whoever runs it the same way.

    Raises:
        ConfigError: as for `Encoding`.
    """
    where = str(Path(source).expanduser().absolute()) if Path(source).expanduser().is_dir() else source
    found = _SHARED.get((where, local))
    fresh = Encoding(source, local)
    # Weights that were changed meanwhile are another encoder's.
    if found is not None and found.id == fresh.id:
        return found
    _SHARED[where, local] = fresh
    return fresh


def _folder_with_towers(source: str, local: Local, spec: str) -> Folder:
    folder = find_folder(source, local, provider="clip")
    if not {"text_config", "vision_config"} <= folder.config.keys():
        raise no_towers(spec, folder.kind)
    return folder


def _each(jobs: Sequence[Job], make: Callable[[Sequence[Job]], list[Half]]) -> list[Came]:
    """What `make` gives; where it fails, by halves, so that what one of them does harms no other."""
    if not jobs:
        return []
    try:
        return list(make(jobs))
    except UsageError as error:
        return [error] * len(jobs)
    except Exception as error:  # noqa: BLE001  # the model's code may raise anything; the others go on
        if len(jobs) == 1:
            return [error if isinstance(error, AskanceError) else _failed(error)]
    middle = len(jobs) // 2
    return [*_each(jobs[:middle], make), *_each(jobs[middle:], make)]


def _failed(error: Exception) -> ModelError:
    said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    failure = ModelError(f"The encoder failed: {said}")
    failure.__cause__ = error
    return failure
