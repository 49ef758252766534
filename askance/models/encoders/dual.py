"""`clip:`: dual encoders, such as CLIP and SigLIP, as a scorer of pictures with texts and as an embedder of both.

    clip:FOLDER?scale=cosine&long=mean&frame=whole&device=auto&dtype=auto&batch=32

A score is the cosine of the two vectors, from −1 to 1 (`scale=cosine`, which fusion needs); or the cosine times the
model's own scale, for SigLIP plus its bias (`logits`); or SigLIP's probability of the pair, from 0 to 1 (`sigmoid`). It
depends on one picture and one text alone: there is no softmax over the texts of a request.

A text that is longer than the encoder reads is split, see `towers.py`. With `long=mean` its vector is the mean of those
of its parts, brought to the length 1; with `long=max` its score is that of the part that fits best; `long=refuse` ends
in an error. Of a picture shown twice (`both` of a `RegionView`) the vector is the mean as well. `frame=padded` makes
pictures square by bars beside them, for encoders that cut out the middle.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, cast
from weakref import WeakValueDictionary

from askance.chat import ModelId, key_of
from askance.errors import AskanceError, ConfigError, UsageError
from askance.images import ORIGINAL_POLICY, WHOLE_IMAGE, Image, RegionView, Shown
from askance.images.pixels import pad_to_square
from askance.models.encoders.records import BATCH, settings_in
from askance.models.encoders.towers import SIGLIP_KINDS, Towers, no_towers, parts_of
from askance.models.encoders.vectors import MemoryVectors, VectorFile, cosine_of, cosines_of, mean_of
from askance.models.local.collector import BatchCollector
from askance.models.local.folder import ModelFolder, find_folder, identity_of, is_identity, no_weights
from askance.models.loop import PerLoop
from askance.models.settings import Local
from askance.spec_grammar import one_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image as Picture

    from askance.chat import JsonObject
    from askance.models.encoders.vectors import Half

Scale = Literal["cosine", "logits", "sigmoid"]
Long = Literal["mean", "max", "refuse"]
Frame = Literal["whole", "padded"]

KeptVectors: TypeAlias = "VectorFile | MemoryVectors"
Item = TypeVar("Item")
Encoded: TypeAlias = "Half | AskanceError"

PICTURES = 256
"""Pictures that are held decoded at a time, at most."""


class _DualBase:
    """What the scorer and the embedder have in common: the encoder, long texts, and where vectors are kept."""

    policy = ORIGINAL_POLICY

    def __init__(self, source: str, local: Local | None, *, long: Long, frame: Frame) -> None:
        self._encoder: SharedEncoder = shared_encoder(source, local or Local(batch=BATCH))
        self._long: Long = long
        self._frame: Frame = frame
        self._store: KeptVectors = MemoryVectors()

    @property
    def id(self) -> ModelId:
        """By the architecture, the digest of the folder's files, and the type that the weights are held in."""
        return self._encoder.id

    def keep_in(self, folder: Path | None) -> None:
        """Has vectors kept beside the records in `folder`; without one, in memory."""
        about: JsonObject = {"model": self.id.canonical()}
        if folder is None:
            self._store = self._store if isinstance(self._store, MemoryVectors) else MemoryVectors()
        elif not isinstance(self._store, VectorFile) or self._store.path.parent.parent != folder:
            self._store = VectorFile(folder, about)

    async def aclose(self) -> None:
        """Releases the weights."""
        self._encoder.release()

    async def _jobs_of(self, texts: Sequence[str]) -> list[list[EncodeJob]]:
        """For each text what is to be encoded of it: itself, or its parts.

        Raises:
            UsageError: a text is empty, or too long where nothing is split.
        """
        for place, text in enumerate(texts):
            if not text.strip():
                raise UsageError(
                    f"Text {place + 1} of {len(texts)} is empty, and an empty text fits everything.",
                    hint="Leave it out.",
                )
        split = await self._encoder.split(texts)
        if self._long == "refuse" and (long := next((parts[0] for parts in split if len(parts) > 1), None)):
            raise UsageError(
                f"The text that begins {long[:40]!r} is longer than {self._encoder.spec!r} reads.",
                hint="With `long=mean` or `long=max` it is read in parts.",
            )
        return [[self._encoder.text_job(part, self._store) for part in parts] for parts in split]

    def _picture_job(self, shown: Shown) -> EncodeJob:
        return self._encoder.picture_job(shown, self._store, padded=self._frame == "padded")

    async def _vectors(self, jobs: Sequence[Sequence[EncodeJob]]) -> list[list[Half]]:
        vectors = iter(await self._encoder.vectors([job for some in jobs for job in some]))
        return [[next(vectors) for _ in some] for some in jobs]


class DualEncoder(_DualBase):
    """A dual encoder as a scorer of texts against a picture; its weights are loaded when they are first needed.

    Args:
        source: a folder, a name on the hub that was downloaded before, or the identity that records have.
        local: how it is run; by default 32 at a time.
        scale: what a score is: see above.
        long: what is done with long texts: see above.
        frame: whether pictures are padded to squares.

    Raises:
        ConfigError: it is not on this machine, not whole, or has no two towers; or gives no probabilities.
    """

    def __init__(
        self,
        source: str,
        *,
        local: Local | None = None,
        scale: Scale = "cosine",
        long: Long = "mean",
        frame: Frame = "whole",
    ) -> None:
        super().__init__(source, local, long=long, frame=frame)
        if scale == "sigmoid" and self._encoder.kind not in SIGLIP_KINDS:
            raise ConfigError(
                f"The model {self._encoder.spec!r} is of the kind {self._encoder.kind!r}, which gives no probability "
                "for a pair.",
                hint="Take `scale=cosine` or `scale=logits`; `sigmoid` is SigLIP's.",
            )
        self._scale: Scale = scale
        self.parameters: JsonObject = {"scale": scale, "long": long, "frame": frame}

    async def score(self, image: Image, texts: Sequence[str]) -> list[float]:
        """A score for each text, in their order.

        Raises:
            BadImage: the picture cannot be used.
            UsageError: a text is empty, or only the identity of the weights is known.
            MissingExtra: torch or transformers is not installed.
            ConfigError: the weights cannot be loaded.
            ModelError: what came out is no number, or does not fit into memory.
            StoreError: the file of vectors is damaged.
        """
        return await self.score_view(image, texts, WHOLE_IMAGE)

    async def score_view(self, image: Image, texts: Sequence[str], view: RegionView) -> list[float]:
        """As `score`, of what a view shows of the picture.

        Raises:
            UsageError: a box lies outside the picture.
        """
        jobs = await self._jobs_of(texts)
        seen = [self._picture_job(Shown(image, self.policy, view))]
        (picture,), *read = await self._vectors([seen, *jobs])
        cosines = [self._cosine(picture, parts) for parts in read]
        if self._scale == "cosine":
            return cosines
        factor, bias = await self._encoder.scale()
        logits = [factor * cosine + (bias or 0.0) for cosine in cosines]
        return logits if self._scale == "logits" else [_sigmoid(logit) for logit in logits]

    async def score_views(self, shown: Sequence[Shown], texts: Sequence[str]) -> NDArray[np.float64]:
        """As `score_view`, of many texts with each of many views: each text and each view is encoded once.

        Raises:
            BadImage, UsageError, MissingExtra, ConfigError, ModelError, StoreError: as for `score_view`.
        """
        jobs = await self._jobs_of(texts)
        seen, *read = await self._vectors([[self._picture_job(each) for each in shown], *jobs])
        cosines = await asyncio.to_thread(self._cosines, seen, read)
        if self._scale == "cosine":
            return cosines
        factor, bias = await self._encoder.scale()
        logits = factor * cosines + (bias or 0.0)
        return logits if self._scale == "logits" else _sigmoids(logits)

    def _cosines(self, pictures: Sequence[Half], texts: Sequence[Sequence[Half]]) -> NDArray[np.float64]:
        import numpy as np

        if self._long != "max":
            return cosines_of(pictures, [mean_of(parts) for parts in texts])
        of_parts = cosines_of(pictures, [part for parts in texts for part in parts])
        starts = np.cumsum([0, *(len(parts) for parts in texts[:-1])])
        return np.maximum.reduceat(of_parts, starts, axis=1)

    def _cosine(self, picture: Half, parts: Sequence[Half]) -> float:
        if self._long == "max":
            return max(cosine_of(picture, part) for part in parts)
        return cosine_of(picture, mean_of(parts))

    def __repr__(self) -> str:
        return f"DualEncoder({self._encoder.spec!r})"


class DualEmbedder(_DualBase):
    """A dual encoder as an embedder of texts and pictures; the scorer's cosine is that of its vectors.

    Args:
        source: as for `DualEncoder`.
        local: how it is run; by default 32 at a time.
        long: `mean` or `refuse`; there is no vector of the part that fits best.
        frame: whether pictures are padded to squares.

    Raises:
        ConfigError: as for `DualEncoder`.
    """

    normalized = True
    keeps = True
    """It keeps vectors itself."""

    def __init__(self, source: str, *, local: Local | None = None, long: Long = "mean", frame: Frame = "whole") -> None:
        super().__init__(source, local, long=long, frame=frame)
        if long == "max":
            raise ConfigError(
                f"The embedder {self._encoder.spec!r} gives one vector a text, and `long=max` would need several.",
                hint="Take `long=mean`.",
            )
        framed = {} if frame == "whole" else {"frame": frame}
        self.parameters: JsonObject = {"long": long, "normalized": True, **framed}

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, of the length 1 but for rounding to 16 bits.

        Raises:
            UsageError, MissingExtra, ConfigError, ModelError, StoreError: as for `DualEncoder.score`.
        """
        return [mean_of(parts).tolist() for parts in await self._vectors(await self._jobs_of(texts))]

    async def embed_image(self, image: Image) -> list[float]:
        """The vector of a picture, of the length 1 but for rounding to 16 bits.

        Raises:
            BadImage: the picture cannot be used.
            UsageError, MissingExtra, ConfigError, ModelError, StoreError: as for `DualEncoder.score`.
        """
        ((vector,),) = await self._vectors([[self._picture_job(Shown(image, self.policy))]])
        return vector.tolist()

    def __repr__(self) -> str:
        return f"DualEmbedder({self._encoder.spec!r})"


def dual_encoder(rest: str) -> DualEncoder:
    """The scorer that the rest of a spec behind `clip:` describes.

    Raises:
        ConfigError: an unknown setting, or as for `DualEncoder`.
    """
    own = {
        "scale": one_of("cosine", "logits", "sigmoid"),
        "long": one_of("mean", "max", "refuse"),
        "frame": one_of("whole", "padded"),
    }
    source, local, settings = settings_in(rest, provider="clip", local=Local(batch=BATCH), own=own)
    return DualEncoder(source, local=local, **settings)


def dual_embedder(rest: str) -> DualEmbedder:
    """The embedder that the rest of a spec behind `clip:` describes.

    Raises:
        ConfigError: an unknown setting, or as for `DualEmbedder`.
    """
    own = {"long": one_of("mean", "max", "refuse"), "frame": one_of("whole", "padded")}
    source, local, settings = settings_in(rest, provider="clip", local=Local(batch=BATCH), own=own)
    return DualEmbedder(source, local=local, **settings)


def _sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-logit)) if logit >= 0 else math.exp(logit) / (1 + math.exp(logit))


def _sigmoids(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    small = np.exp(-np.abs(logits))
    return np.where(logits >= 0, 1, small) / (1 + small)


# --- the encoder: one in this process for all that run it alike; what is asked at once goes in one batch ---


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EncodeJob:
    """A text that fits or a picture, to be encoded, and where its vector is kept."""

    key: str
    store: KeptVectors
    text: str = ""
    draw: Callable[[], tuple[Picture, ...]] | None = None


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

    def text_job(self, text: str, store: KeptVectors) -> EncodeJob:
        """The job of a text that fits."""
        key = key_of("embed", {"model": self.id.canonical(), "tower": "text", "text": text})
        return EncodeJob(key=key, store=store, text=text)

    def picture_job(self, shown: Shown, store: KeptVectors, *, padded: bool) -> EncodeJob:
        """The job of a picture, or of a view of it, which is drawn from the file as it is.

        Raises:
            BadImage: the picture's file cannot be read.
        """
        image, view = shown.image, shown.view
        form = {"sha256": image.sha256, "view": view.canonical(), "frame": "padded" if padded else "whole"}
        key = key_of("embed", {"model": self.id.canonical(), "tower": "picture", "image": form})

        def draw() -> tuple[Picture, ...]:
            pictures = view.render(image)
            return tuple(pad_to_square(picture) for picture in pictures) if padded else pictures

        return EncodeJob(key=key, store=store, draw=draw)

    async def split(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Each text in parts that fit.

        Raises:
            MissingExtra: torch or transformers is not installed.
            ConfigError: the tokenizer cannot be loaded.
            UsageError: only the identity of the weights is known.
        """
        return await self._in_thread(lambda: [parts_of(text, self._ready().fits) for text in texts])

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
        texts = [job for job in jobs if job.draw is None]
        made = dict(zip([job.key for job in texts], self._ready().texts([job.text for job in texts]), strict=True))
        pictures = [job for job in jobs if job.draw is not None]
        for start in range(0, len(pictures), PICTURES):
            some = pictures[start : start + PICTURES]
            made.update(zip([job.key for job in some], self._encode_pictures(some), strict=True))
        vectors = {key: each for key, each in made.items() if not isinstance(each, AskanceError)}
        store.keep(vectors)
        # Where another process kept a vector first, that one is used.
        return made | store.find(list(vectors))

    def _encode_pictures(self, jobs: Sequence[EncodeJob]) -> list[Encoded]:
        """The vector of each picture, or its error; a picture that cannot be used does not stop the others."""
        drawn: dict[EncodeJob, tuple[Picture, ...]] = {}
        outcomes: dict[EncodeJob, Encoded] = {}
        for job in jobs:
            try:
                drawn[job] = job.draw() if job.draw is not None else ()
            except AskanceError as error:
                outcomes[job] = error
        shown = iter(self._ready().pictures([picture for pictures in drawn.values() for picture in pictures]))
        for job, pictures in drawn.items():
            vectors = [next(shown) for _ in pictures]
            error = next((each for each in vectors if isinstance(each, AskanceError)), None)
            outcomes[job] = error or mean_of(cast("list[Half]", vectors))
        return [outcomes[job] for job in jobs]

    def _ready(self) -> Towers:
        if self._folder is None:
            raise no_weights(self.spec)
        if self._towers is None:
            self._towers = Towers(self._folder, self.local, spec=self.spec)
        return self._towers


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
