"""Embedders: texts to vectors, and pictures where an embedder takes them. Every vector is on record (kind `embed`).

The key of a record is made of the embedder's identity, of what else decides its vectors (pooling, normalization) and of
the text, or of the digest of the picture's file. A replay needs neither the weights nor the package that runs them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeAlias, runtime_checkable

from askance.chat import JsonObject, ModelId, key_of
from askance.errors import ConfigError, UsageError
from askance.models.encoders.records import RecordedModel, ReplayOnlyModel, parameters_of
from askance.models.encoders.vectors import Vector, checked_vectors, packed, unpacked
from askance.models.local.folder import REVISION, hub_folder
from askance.registry import Registry

EMBEDDERS = Registry(
    group="askance.embedders",
    what="embedder",
    built_in={
        "clip": "askance.models.encoders.dual:dual_embedder",
        "openai": "askance.models.openai.embeddings:OpenAIEmbedder",
        "st": "askance.models.encoders.sentence:SentenceEncoder",
    },
    error=ConfigError,
)
"""By provider of a spec: the class or function that makes the embedder from the part behind the colon."""


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors.

    These members are optional:

    - `id`, a `ModelId` or a name, tells its vectors from another embedder's, unless `stored` is False; without one they
      are neither recorded nor replayed. It is known without loading weights;
    - `parameters`, JSON values, are what else decides its vectors;
    - `normalized` says whether every vector has the length 1;
    - `async embed_image(image)` gives the vector of a picture, to be compared with those of texts; with `sees_pictures`
      False it is never asked for one;
    - `keep_in(folder)` is told, before it is asked, where arrays of numbers can be kept beside the records; None where
      nothing may be read or kept;
    - `async aclose()` closes it.
    """

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector for each text, in their order, all of one size."""
        ...


if TYPE_CHECKING:
    from askance.images import Image
    from askance.models.engine import Engine

    EmbedderLike: TypeAlias = "str | Embedder | RecordedEmbedder | Mapping[str, Any]"
else:
    EmbedderLike = Annotated[Any, "an embedder"]  # a field of a task may have this type, and pydantic reads it
"""A spec, any `Embedder`, or what `RecordedEmbedder.form` gave."""


class RecordedEmbedder(RecordedModel):
    """An embedder with its records: it makes only the vectors that are not on record. `get_embedder` makes it.

    Args:
        embedder: makes the vectors that are not on record.
        id: tells its vectors from another embedder's; None neither records nor replays them.
        parameters: what else decides them.
        engine: whose records and mode are used.
        normalized: whether every vector has the length 1; None is not known.
    """

    registry = EMBEDDERS
    examples = (
        "`st:FOLDER` or `st:sentence-transformers/all-mpnet-base-v2` for a sentence encoder, "
        "`openai:text-embedding-3-small` for an endpoint, "
        "or an object with `async def embed(texts)`"
    )
    protocols = (Embedder,)

    def __init__(
        self,
        embedder: Embedder,
        *,
        id: ModelId | None,  # noqa: A002  # as everywhere here
        engine: Engine,
        parameters: Mapping[str, Any],
        normalized: bool | None,
    ) -> None:
        super().__init__(embedder, "embed", id=id, engine=engine, parameters=parameters)
        self.normalized = normalized
        self._embedder = embedder

    @classmethod
    def _described(cls, model: ModelId, fields: dict[str, Any], *, engine: Engine) -> RecordedEmbedder:
        normalized = fields.get("normalized")
        return cls(_named(model), id=model, engine=engine, parameters=fields, normalized=normalized)

    @classmethod
    def _around(cls, made: Embedder, model: ModelId | None, *, engine: Engine) -> RecordedEmbedder:
        normalized = getattr(made, "normalized", None)
        return cls(made, id=model, engine=engine, parameters=parameters_of(made), normalized=normalized)

    def form(self) -> JsonObject:
        """Everything but text or picture that decides a vector, as JSON: `get_embedder` takes it for its records."""
        return {"model": self.id.canonical(), **self.parameters}

    def request(self, subject: str | Image) -> JsonObject:
        """What is asked for one text or picture, in canonical form.

        Raises:
            BadImage: the picture's file cannot be read.
        """
        content = {"text": subject} if isinstance(subject, str) else {"image": {"sha256": subject.sha256}}
        return {**self.form(), **content}

    def keys(self, subjects: Sequence[str | Image]) -> tuple[str, ...]:
        """Keys of the records of texts and pictures, each once; none where nothing is recorded.

        Raises:
            BadImage: a picture's file cannot be read.
        """
        return tuple(dict.fromkeys(key_of("embed", self.request(each)) for each in subjects)) if self.stored else ()

    def lacking(self, subjects: Sequence[str | Image]) -> frozenset[str]:
        """Keys of the vectors that are not on record.

        Raises:
            BadImage: a picture's file cannot be read.
        """
        return self._responses.lacking([self.request(each) for each in subjects])

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text, in their order; those that are missing are made together, equal texts once.

        Raises:
            ReplayMiss: the mode is `replay` and a text is not on record.
            CallError: the embedder gave something else than a vector for each text, or a record is damaged.
        """
        forms = [self.request(text) for text in texts]

        async def make(places: Sequence[int]) -> list[JsonObject]:
            made = await self.fresh([texts[place] for place in places])
            return [packed(vector, by=str(self.id)) for vector in made]

        responses = await self._responses.get(forms, make)
        return [unpacked(response, key=key_of("embed", form)) for form, response in zip(forms, responses, strict=True)]

    async def embed_image(self, image: Image) -> Vector:
        """The vector of a picture, to be compared with those of texts.

        Raises:
            BadImage: the picture cannot be used.
            UsageError: the embedder takes no pictures.
            ReplayMiss: the mode is `replay` and the picture is not on record.
            CallError: the embedder gave something else than a vector, or a record is damaged.
        """
        form = self.request(image)

        async def make(places: Sequence[int]) -> list[JsonObject]:  # noqa: ARG001  # there is one
            method: Callable[[Image], Awaitable[Sequence[float]]] | None
            method = getattr(self._embedder, "embed_image", None)
            if method is None:
                raise UsageError(
                    f"The embedder {str(self.id)!r} takes no pictures.",
                    hint="Give one that does: `clip:FOLDER`, or an object with `async def embed_image(image)`.",
                )
            self._responses.lend_folder(self._embedder)
            return [packed(await method(image), by=str(self.id))]

        (response,) = await self._responses.get([form], make)
        return unpacked(response, key=key_of("embed", form))

    async def fresh(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """What the embedder itself gives, unrecorded: for thousands of texts, which are not recorded one by one.

        Raises:
            CallError: it gave something else than a vector for each text.
        """
        self._responses.lend_folder(self._embedder)
        return checked_vectors(await self._embedder.embed(texts), len(texts), by=str(self.id))

    @property
    def sees_pictures(self) -> bool:
        """Whether the embedder makes vectors of pictures."""
        return getattr(self._embedder, "sees_pictures", hasattr(self._embedder, "embed_image")) is True

    @property
    def keeps(self) -> bool:
        """Whether the embedder keeps vectors beside the records itself."""
        return getattr(self._embedder, "keeps", False) is True

    @property
    def folder(self) -> Path | None:
        """The folder beside the records where vectors may be kept; None where none may be read or kept."""
        return self._responses.folder


def get_embedder(
    embedder: EmbedderLike, *, identity: str | None = None, engine: Engine | None = None
) -> RecordedEmbedder:
    """The embedder that `embedder` names or is.

    Args:
        embedder: see `EmbedderLike`. What a form describes answers from its records; it can be asked for more where the
            form names weights of the hub that are on this machine.
        identity: name under which its vectors are filed; an object without an `id` is not recorded without it.
        engine: the run's; None is one with default settings on the project's store.

    Raises:
        ConfigError: no embedder goes by that spec.
        UsageError: `embedder` is of no kind that is known here.
    """
    return RecordedEmbedder.of(embedder, identity=identity, engine=engine)


def _named(model: ModelId) -> Embedder:
    # A form may be a stranger's. Settings, which are no part of an identity, could have code run, and `st:` downloads;
    # and it names no package that the user has not named.
    if model.name is not None or model.provider not in EMBEDDERS.built_in or "?" in model.model:
        return ReplayOnlyModel(model, "embedder")
    name, _, revision = model.model.partition("@")
    if model.provider == "st" and not name.startswith("sha256:") and hub_folder(name, revision or REVISION) is None:
        return ReplayOnlyModel(model, "embedder")
    return EMBEDDERS.load(model.provider)(model.model)


class ScriptedEmbedder:
    """An embedder whose vectors a function makes, for tests.

    Args:
        vector: from a text to its vector.
        identity: the name that its vectors are filed under; None neither records nor replays them, for nothing tells
            them from those of another script.
        normalized: whether every vector has the length 1; None does not say.
        image: from a picture to its vector; without it pictures are refused.
    """

    def __init__(
        self,
        vector: Callable[[str], Sequence[float]],
        *,
        identity: str | None = None,
        normalized: bool | None = None,
        image: Callable[[Image], Sequence[float]] | None = None,
    ) -> None:
        self.id = ModelId("scripted", identity or "scripted", name=identity)
        self.stored = identity is not None
        """Whether its vectors are recorded and replayed."""
        self.normalized = normalized
        self.asked: list[tuple[str, ...]] = []
        """The texts of each call, in order."""
        self.shown: list[str] = []
        """The names of the pictures that were embedded, in order."""
        self.sees_pictures = image is not None
        """Whether it makes vectors of pictures."""
        self._vector = vector
        self._image = image

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.asked.append(tuple(texts))
        return [self._vector(text) for text in texts]

    async def embed_image(self, image: Image) -> Sequence[float]:
        self.shown.append(image.name)
        if self._image is None:
            raise UsageError("This script has no vectors of pictures.", hint="Give one: `image=`.")
        return self._image(image)

    def __repr__(self) -> str:
        return f"ScriptedEmbedder(identity={self.id.name!r}, asked={len(self.asked)})"
