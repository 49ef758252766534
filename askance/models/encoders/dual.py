"""`clip:`: dual encoders, such as CLIP and SigLIP, as a scorer of pictures with texts and as an embedder of both.

    clip:FOLDER?scale=cosine&long=mean&frame=whole&draw=sherlock&prefix=TEXT&device=auto&dtype=auto&batch=32

A score is the cosine of the two vectors, from −1 to 1 (`scale=cosine`, which fusion needs); or the cosine times the
model's own scale, for SigLIP plus its bias (`logits`); or SigLIP's probability of the pair, from 0 to 1 (`sigmoid`). It
depends on one picture and one text alone: there is no softmax over the texts of a request.

A text that is longer than the encoder reads is split, see `towers.py`. With `long=mean` its vector is the mean of those
of its parts, brought to the length 1; with `long=max` its score is that of the part that fits best; `long=refuse` ends
in an error. `prefix=TEXT` stands in front of each text, or of each of its parts, with a space between.

Of a picture shown twice (`both` of a `RegionView`) the vector is the mean as well. `draw` is the style in which views
are drawn; without it each is drawn in its own. `frame` makes squares of pictures: `padded` by bars of CLIP's mean
colour, `resize` by black bars, `crop` by cutting out the middle of what is scaled; `widescreen` cuts two squares, one
at each end, out of what is drawn, and their vectors are averaged before the mean is brought to the length 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from askance.errors import ConfigError, UsageError
from askance.images import ORIGINAL_POLICY, WHOLE_IMAGE, Image, RegionView, Shown
from askance.images.region_styles import StyleName
from askance.images.square_frames import Frame, frame_form
from askance.models.encoders.records import BATCH, settings_in
from askance.models.encoders.shared_encoder import EncodeJob, KeptVectors, SharedEncoder, shared_encoder
from askance.models.encoders.towers import SIGLIP_KINDS
from askance.models.encoders.vectors import MemoryVectors, VectorFile, VectorRows, mean_of
from askance.models.settings import Local
from askance.spec_grammar import one_of

if TYPE_CHECKING:
    from askance.chat import JsonObject, ModelId
    from askance.models.encoders.vectors import Half
    from askance.spec_grammar import SettingReaders

Scale = Literal["cosine", "logits", "sigmoid"]
Long = Literal["mean", "max", "refuse"]

TEXTS_KEPT = 2
"""How many lists of texts a scorer keeps the vectors of in memory, at most."""


class _DualBase:
    """What the scorer and the embedder have in common: the encoder, long texts, and where vectors are kept."""

    policy = ORIGINAL_POLICY

    def __init__(self, source: str, local: Local | None, *, long: Long, frame: Frame, prefix: str) -> None:
        self._encoder: SharedEncoder = shared_encoder(source, local or Local(batch=BATCH))
        self._long: Long = long
        self._frame: Frame = frame
        self._prefix = f"{prefix} " if prefix else ""
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
        split = await self._encoder.split(texts, prefix=self._prefix)
        if self._long == "refuse" and (long := next((parts[0] for parts in split if len(parts) > 1), None)):
            raise UsageError(
                f"The text that begins {long.removeprefix(self._prefix)[:40]!r} is longer than {self._encoder.spec!r} "
                "reads.",
                hint="With `long=mean` or `long=max` it is read in parts.",
            )
        return [[self._encoder.text_job(part, self._store) for part in parts] for parts in split]

    def _picture_job(self, shown: Shown) -> EncodeJob:
        return self._encoder.picture_job(shown, self._store, frame=self._frame)

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
        frame: how pictures are made into squares: see above.
        draw: the style in which views are drawn; by default each in its own.
        prefix: stands in front of each text, with a space between.

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
        draw: StyleName | None = None,
        prefix: str = "",
    ) -> None:
        super().__init__(source, local, long=long, frame=frame, prefix=prefix)
        if scale == "sigmoid" and self._encoder.kind not in SIGLIP_KINDS:
            raise ConfigError(
                f"The model {self._encoder.spec!r} is of the kind {self._encoder.kind!r}, which gives no probability "
                "for a pair.",
                hint="Take `scale=cosine` or `scale=logits`; `sigmoid` is SigLIP's.",
            )
        self._scale: Scale = scale
        self._draw = draw
        self._known: dict[tuple[str, ...], VectorRows] = {}
        drawn = {} if draw is None else {"draw": draw}
        prefixed = {"prefix": prefix} if prefix else {}
        self.parameters: JsonObject = {"scale": scale, "long": long, **frame_form(frame), **drawn, **prefixed}

    def keep_in(self, folder: Path | None) -> None:
        """As for both; rows of another place are forgotten."""
        store = self._store
        super().keep_in(folder)
        if self._store is not store:
            self._known.clear()

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
        if self._draw is not None:
            view = replace(view, style=self._draw)
        known = self._known.get(asked := tuple(texts))
        jobs = [] if known is not None else await self._jobs_of(texts)
        (picture,), *parts = await self._vectors([[self._picture_job(Shown(image, self.policy, view))], *jobs])
        cosines = (known or self._rows(asked, parts)).cosines(picture)
        if self._scale == "cosine":
            return cosines
        factor, bias = await self._encoder.scale()
        logits = [factor * cosine + (bias or 0.0) for cosine in cosines]
        return logits if self._scale == "logits" else [_sigmoid(logit) for logit in logits]

    def _rows(self, texts: tuple[str, ...], parts: Sequence[Sequence[Half]]) -> VectorRows:
        """The rows of texts, of which the latest are kept: many pictures are held against the same texts in turn."""
        rows = VectorRows.of(parts if self._long == "max" else [[mean_of(vectors)] for vectors in parts])
        while len(self._known) >= TEXTS_KEPT:
            del self._known[next(iter(self._known))]
        self._known[texts] = rows
        return rows

    def __repr__(self) -> str:
        return f"DualEncoder({self._encoder.spec!r})"


class DualEmbedder(_DualBase):
    """A dual encoder as an embedder of texts and pictures; the scorer's cosine is that of its vectors.

    Args:
        source: as for `DualEncoder`.
        local: how it is run; by default 32 at a time.
        long: `mean` or `refuse`; there is no vector of the part that fits best.
        frame: how pictures are made into squares: see above.
        prefix: stands in front of each text, with a space between.

    Raises:
        ConfigError: as for `DualEncoder`.
    """

    normalized = True
    keeps = True
    """It keeps vectors itself."""

    def __init__(
        self,
        source: str,
        *,
        local: Local | None = None,
        long: Long = "mean",
        frame: Frame = "whole",
        prefix: str = "",
    ) -> None:
        super().__init__(source, local, long=long, frame=frame, prefix=prefix)
        if long == "max":
            raise ConfigError(
                f"The embedder {self._encoder.spec!r} gives one vector a text, and `long=max` would need several.",
                hint="Take `long=mean`.",
            )
        framed = {} if frame == "whole" else frame_form(frame)
        prefixed = {"prefix": prefix} if prefix else {}
        self.parameters: JsonObject = {"long": long, "normalized": True, **framed, **prefixed}

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


_OF_BOTH: SettingReaders = {"frame": one_of(*get_args(Frame)), "prefix": str.strip}
"""Settings of the scorer and of the embedder that are read alike."""


def dual_encoder(rest: str) -> DualEncoder:
    """The scorer that the rest of a spec behind `clip:` describes.

    Raises:
        ConfigError: an unknown setting, or as for `DualEncoder`.
    """
    own: SettingReaders = {
        "scale": one_of(*get_args(Scale)),
        "long": one_of(*get_args(Long)),
        "draw": one_of(*get_args(StyleName)),
        **_OF_BOTH,
    }
    source, local, settings = settings_in(rest, provider="clip", local=Local(batch=BATCH), own=own)
    return DualEncoder(source, local=local, **settings)


def dual_embedder(rest: str) -> DualEmbedder:
    """The embedder that the rest of a spec behind `clip:` describes.

    Raises:
        ConfigError: an unknown setting, or as for `DualEmbedder`.
    """
    own: SettingReaders = {"long": one_of(*get_args(Long)), **_OF_BOTH}
    source, local, settings = settings_in(rest, provider="clip", local=Local(batch=BATCH), own=own)
    return DualEmbedder(source, local=local, **settings)


def _sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-logit)) if logit >= 0 else math.exp(logit) / (1 + math.exp(logit))
