"""`clip:`: dual encoders, such as CLIP and SigLIP, as a scorer of pictures with texts and as an embedder of texts.

    clip:FOLDER?scale=cosine&long=mean&frame=whole&device=auto&dtype=auto&batch=32

A score is the cosine of the two vectors (`scale=cosine`, between −1 and 1, what fusion needs), that times the model's
own scale and, for SigLIP, plus its bias (`logits`), or SigLIP's probability for the pair, from 0 to 1 (`sigmoid`). It
depends on this picture and this text alone: no softmax over the texts that happen to be asked about together.

A text that is longer than the encoder reads is split (see `parts.py`). With `long=mean` its vector is the mean of those
of its parts, brought to the length 1; with `long=max` its score is that of the part that fits best; `long=refuse` ends
in an error. Of a picture shown twice (`both` of a `View`) the vector is the mean as well. `frame=padded` makes pictures
square by bars beside them, for encoders that cut out the middle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from askance.errors import ConfigError, UsageError
from askance.images import ORIGINAL, WHOLE, Image, View
from askance.models.encoders.arrays import MemoryVectors, VectorFile, cosine_of, mean_of
from askance.models.encoders.encoding import Encoding, Job, encoding
from askance.models.encoders.settling import one_of, settings_in
from askance.models.settings import Local

if TYPE_CHECKING:
    from askance.chat import JsonObject, ModelId
    from askance.models.encoders.arrays import Half

Scale = Literal["cosine", "logits", "sigmoid"]
Long = Literal["mean", "max", "refuse"]
Frame = Literal["whole", "padded"]

BATCH = 32
"""Pictures or texts that are encoded at a time."""

_SIGMOID_KINDS = frozenset({"siglip", "siglip2"})

Shelf: TypeAlias = "VectorFile | MemoryVectors"


class _Dual:
    """What scorer and embedder have in common."""

    def __init__(self, source: str, local: Local | None, long: Long) -> None:
        self._encoding: Encoding = encoding(source, local or Local(batch=BATCH))
        self._long: Long = long
        self._shelf: Shelf = MemoryVectors()

    @property
    def id(self) -> ModelId:
        """Architecture, digest of weights and of what prepares pictures and texts, and what numbers are held in."""
        return self._encoding.id

    @property
    def encoded(self) -> Mapping[str, int]:
        """How many `pictures` and `texts` went through the weights so far; of what was kept, none do."""
        return self._encoding.encoded

    def keep_in(self, folder: Path | None) -> None:
        """Vectors are kept beside the records in `folder`; without one, in memory."""
        about: JsonObject = {"model": self.id.canonical()}
        if folder is None:
            self._shelf = self._shelf if isinstance(self._shelf, MemoryVectors) else MemoryVectors()
        elif not isinstance(self._shelf, VectorFile) or self._shelf.path.parent.parent != folder:
            self._shelf = VectorFile(folder, about)

    async def aclose(self) -> None:
        """Lets go of the weights."""
        self._encoding.release()

    async def _jobs_of(self, texts: Sequence[str]) -> list[list[Job]]:
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
        split = await self._encoding.split(texts)
        if self._long == "refuse" and (long := next((parts[0] for parts in split if len(parts) > 1), None)):
            raise UsageError(
                f"The text that begins {long[:40]!r} is longer than {self._encoding.spec!r} reads.",
                hint="With `long=mean` or `long=max` it is read in parts.",
            )
        return [[self._encoding.text_job(part, self._shelf) for part in parts] for parts in split]

    async def _vectors(self, jobs: Sequence[Sequence[Job]]) -> list[list[Half]]:
        came = iter(await self._encoding.vectors([job for some in jobs for job in some]))
        return [[next(came) for _ in some] for some in jobs]


class DualEncoder(_Dual):
    """How well texts fit a picture, by a dual encoder; its weights are loaded when they are first needed.

    Args:
        source: a folder, a name on the hub that was downloaded before, or the identity that records have.
        local: how it is run; by default 32 at a time.
        scale: what a score is: see above.
        long: what is done with long texts: see above.
        frame: whether pictures are padded to squares.

    Raises:
        ConfigError: it is not on this machine, not whole, or has no two towers; or gives no probabilities.
    """

    policy = ORIGINAL

    def __init__(
        self,
        source: str,
        *,
        local: Local | None = None,
        scale: Scale = "cosine",
        long: Long = "mean",
        frame: Frame = "whole",
    ) -> None:
        super().__init__(source, local, long)
        if scale == "sigmoid" and self._encoding.kind not in _SIGMOID_KINDS:
            raise ConfigError(
                f"The model {self._encoding.spec!r} is of the kind {self._encoding.kind!r}, which gives no probability "
                "for a pair.",
                hint="Take `scale=cosine` or `scale=logits`; `sigmoid` is SigLIP's.",
            )
        self._scale: Scale = scale
        self._frame: Frame = frame
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
        return await self.score_view(image, texts, WHOLE)

    async def score_view(self, image: Image, texts: Sequence[str], view: View) -> list[float]:
        """As `score`, of what a view shows of the picture.

        Raises:
            UsageError: a box lies outside the picture.
        """
        jobs = await self._jobs_of(texts)
        seen = [self._encoding.picture_job(image, view, self._shelf, padded=self._frame == "padded")]
        (picture,), *read = await self._vectors([seen, *jobs])
        cosines = [self._cosine(picture, parts) for parts in read]
        if self._scale == "cosine":
            return cosines
        factor, bias = await self._encoding.scale()
        logits = [factor * cosine + (bias or 0.0) for cosine in cosines]
        return logits if self._scale == "logits" else [_sigmoid(logit) for logit in logits]

    def _cosine(self, picture: Half, parts: Sequence[Half]) -> float:
        if self._long == "max":
            return max(cosine_of(picture, part) for part in parts)
        return cosine_of(picture, mean_of(parts))

    def __repr__(self) -> str:
        return f"DualEncoder({self._encoding.spec!r})"


class DualTexts(_Dual):
    """The texts' tower of a dual encoder, as an embedder.

    Args:
        source: as for `DualEncoder`.
        local: how it is run; by default 32 at a time.
        long: `mean` or `refuse`; there is no vector of the part that fits best.

    Raises:
        ConfigError: as for `DualEncoder`.
    """

    normalized = True
    keeps = True
    """It keeps vectors itself."""

    def __init__(self, source: str, *, local: Local | None = None, long: Long = "mean") -> None:
        super().__init__(source, local, long)
        if long == "max":
            raise ConfigError(
                f"The embedder {self._encoding.spec!r} gives one vector a text, and `long=max` would need several.",
                hint="Take `long=mean`.",
            )
        self.parameters: JsonObject = {"long": long, "normalized": True}

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, of the length 1 but for rounding to 16 bits.

        Raises:
            UsageError, MissingExtra, ConfigError, ModelError, StoreError: as for `DualEncoder.score`.
        """
        return [mean_of(parts).tolist() for parts in await self._vectors(await self._jobs_of(texts))]

    def __repr__(self) -> str:
        return f"DualTexts({self._encoding.spec!r})"


def dual_encoder(rest: str) -> DualEncoder:
    """The scorer of what stands behind `clip:`.

    Raises:
        ConfigError: an unknown setting, or as for `DualEncoder`.
    """
    own = {
        "scale": one_of("cosine", "logits", "sigmoid"),
        "long": one_of("mean", "max", "refuse"),
        "frame": one_of("whole", "padded"),
    }
    source, local, said = settings_in(rest, provider="clip", local=Local(batch=BATCH), own=own)
    return DualEncoder(source, local=local, **said)


def dual_texts(rest: str) -> DualTexts:
    """The embedder of what stands behind `clip:`.

    Raises:
        ConfigError: an unknown setting, or as for `DualTexts`.
    """
    own = {"long": one_of("mean", "max", "refuse")}
    source, local, said = settings_in(rest, provider="clip", local=Local(batch=BATCH), own=own)
    return DualTexts(source, local=local, **said)


def _sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-logit)) if logit >= 0 else math.exp(logit) / (1 + math.exp(logit))
