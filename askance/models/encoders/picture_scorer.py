"""Scorers: how well texts fit a picture, or other texts. Every score is on record (kind `score`), one record a text.

A scorer has `score` (texts against a picture), `score_texts` (against other texts) or both.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeAlias, cast, runtime_checkable

from askance.chat import JsonObject, ModelId, key_of
from askance.errors import BadImage, BadRecord, ConfigError, ModelError, UsageError
from askance.images import CLEAN_POLICY, WHOLE_IMAGE, Image, ImagePolicy, RegionView, Shown
from askance.models.encoders.records import RecordedModel, ReplayOnlyModel, parameters_of
from askance.registry import Registry
from askance.replay import DAMAGED_HINT

SCORERS = Registry(
    group="askance.scorers",
    what="scorer",
    built_in={
        "bem": "askance.models.encoders.classifier:answer_classifier",
        "clip": "askance.models.encoders.dual:dual_encoder",
    },
    error=ConfigError,
)
"""By provider of a spec: the function that makes the scorer from the part behind the colon."""

EXAMPLES = (
    "`clip:FOLDER` for CLIP, SigLIP and their like, `bem:FOLDER` for answers, "
    "or an object with `async def score(image, texts)`"
)


@runtime_checkable
class PictureScorer(Protocol):
    """Scores how well texts fit a picture: the higher, the better.

    These members are optional:

    - `id`, a `ModelId` or a name, tells its scores from another scorer's, unless `stored` is False; without one they
      are neither recorded nor replayed. It is known without loading weights;
    - `parameters`, JSON values, are what else decides its scores;
    - `policy`, an `ImagePolicy`, says how pictures are prepared for it; by default they are `clean`;
    - `async score_view(image, texts, view)` scores what a `RegionView` shows of a picture;
    - `keep_in(folder)` is told, before it is asked, where arrays of numbers can be kept beside the records; None where
      nothing may be read or kept;
    - `in_engine(engine)` gives a scorer that asks chat models with these in an engine. The calls are on record, so that
      the scorer is replayed though `stored` is False;
    - `async aclose()` closes it.
    """

    async def score(self, image: Image, texts: Sequence[str]) -> Sequence[float]:
        """A score for each text, in their order."""
        ...


@runtime_checkable
class TextScorer(Protocol):
    """Scores how well texts fit other texts, such as answers a question and a reference: the higher, the better.

    It may have what a `PictureScorer` may have, apart from pictures.
    """

    async def score_texts(self, about: Mapping[str, str], texts: Sequence[str]) -> Sequence[float]:
        """A score for each text, in their order; `about` are the texts that they are held against, by name."""
        ...


if TYPE_CHECKING:
    from askance.models.engine import Engine

    ScorerLike: TypeAlias = "str | PictureScorer | TextScorer | RecordedScorer | Mapping[str, Any]"
else:
    ScorerLike = Annotated[Any, "a scorer"]  # a field of a task may have this type, and pydantic reads it
"""A spec, any `PictureScorer` or `TextScorer`, or what `RecordedScorer.form` gave."""


class RecordedScorer(RecordedModel):
    """A scorer with its records: it makes only the scores that are not on record. `get_scorer` makes it.

    Args:
        scorer: makes the scores that are not on record.
        id: tells its scores from another scorer's; None neither records nor replays them.
        parameters: what else decides them.
        engine: whose records and mode are used.
        policy: how pictures are prepared.
    """

    registry = SCORERS
    examples = EXAMPLES
    protocols = (PictureScorer, TextScorer)

    def __init__(
        self,
        scorer: PictureScorer | TextScorer,
        *,
        id: ModelId | None,  # noqa: A002  # as everywhere here
        engine: Engine,
        parameters: Mapping[str, Any],
        policy: ImagePolicy = CLEAN_POLICY,
    ) -> None:
        super().__init__(scorer, "score", id=id, engine=engine, parameters=parameters)
        self.policy = policy

    @classmethod
    def _described(cls, model: ModelId, fields: dict[str, Any], *, engine: Engine) -> RecordedScorer:
        policy = _policy(fields.pop("policy", None))
        return cls(ReplayOnlyModel(model, "scorer"), id=model, engine=engine, parameters=fields, policy=policy)

    @classmethod
    def _around(cls, made: PictureScorer | TextScorer, model: ModelId | None, *, engine: Engine) -> RecordedScorer:
        policy = getattr(made, "policy", CLEAN_POLICY)
        return cls(made, id=model, engine=engine, parameters=parameters_of(made), policy=policy)

    def form(self) -> JsonObject:
        """Everything but picture and text that decides a score, as JSON: `get_scorer` takes it for its records."""
        policy = {} if self.policy == CLEAN_POLICY else {"policy": self.policy.canonical()}
        return {**self._own(), **policy}

    def _own(self) -> JsonObject:
        return {"model": self.id.canonical(), **self.parameters}

    def request(self, subject: Image | Mapping[str, str], text: str, *, view: RegionView = WHOLE_IMAGE) -> JsonObject:
        """What is asked of one text and what it is held against, in canonical form.

        Raises:
            BadImage: the picture's file cannot be read.
        """
        if not isinstance(subject, Image):
            return {**self._own(), "about": dict(subject), "text": text}
        return {**self._own(), "image": Shown(subject, self.policy, view).canonical(), "text": text}

    def keys(
        self, subject: Image | Mapping[str, str], texts: Sequence[str], *, view: RegionView = WHOLE_IMAGE
    ) -> tuple[str, ...]:
        """Keys of the records of `texts` and what they are held against, each once; none where nothing is recorded."""
        keys = (key_of("score", self.request(subject, text, view=view)) for text in texts)
        return tuple(dict.fromkeys(keys)) if self.stored else ()

    def lacking(
        self, subject: Image | Mapping[str, str], texts: Sequence[str], *, view: RegionView = WHOLE_IMAGE
    ) -> frozenset[str]:
        """Keys of the scores that are not on record."""
        return self._responses.lacking([self.request(subject, text, view=view) for text in texts])

    async def score(self, image: Image, texts: Sequence[str], *, view: RegionView = WHOLE_IMAGE) -> list[float]:
        """A score for each text, in their order; those that are missing are made together, equal texts once.

        Args:
            image: the picture.
            texts: held against it.
            view: what is shown of the picture; by default all of it, as it is.

        Raises:
            BadImage: the picture cannot be used.
            UsageError: the scorer takes no pictures, or no views of them.
            ReplayMiss: the mode is `replay` and one of them is not on record.
            CallError: the scorer gave something else than a number for each text, or a record is damaged.
        """
        forms = [self.request(image, text, view=view) for text in texts]
        return await self._scores(forms, texts, lambda some: self.fresh(image, some, view=view))

    async def fresh(self, image: Image, texts: Sequence[str], *, view: RegionView = WHOLE_IMAGE) -> list[float]:
        """What the scorer itself gives, unrecorded: for thousands of texts, which are not recorded one by one.

        Raises:
            BadImage: the picture cannot be used.
            UsageError: the scorer takes no pictures, or no views of them.
            CallError: it gave something else than a number for each text.
        """
        self._responses.lend_folder(self._recorded)
        if view != WHOLE_IMAGE:
            method = _method(self._recorded, "score_view", lacking="no part of a picture", by=self.id)
            return self._checked(await method(image, texts, view), len(texts))
        method = _method(self._recorded, "score", lacking="no pictures", by=self.id)
        return self._checked(await method(image, texts), len(texts))

    async def fresh_rows(
        self, pictures: Sequence[tuple[Image, RegionView]], texts: Sequence[str]
    ) -> list[list[float] | BadImage]:
        """As `fresh`, for each of many pictures; a dual encoder encodes each picture and each text once.

        Args:
            pictures: each with what is shown of it.
            texts: held against each of them.

        Returns:
            For each picture its scores, or why it cannot be used.

        Raises:
            UsageError, CallError: as for `fresh`.
        """

        async def row(image: Image, view: RegionView) -> list[float] | BadImage:
            try:
                return await self.fresh(image, texts, view=view)
            except BadImage as error:
                return error

        rows: list[list[float] | BadImage] = []
        for image, view in pictures:
            rows.append(await row(image, view))
            if not isinstance(rows[-1], BadImage):  # now the texts are known
                break
        return [*rows, *await asyncio.gather(*(row(image, view) for image, view in pictures[len(rows) :]))]

    def as_encoder(self) -> RecordedScorer:
        """Itself, where a model is wanted that runs here, since nobody plans or counts its scores as calls.

        Raises:
            UsageError: it asks chat models.
        """
        if self.asks:
            raise UsageError(
                f"The scorer {str(self.id)!r} asks chat models, so it is no encoder.",
                hint="Give one that runs here, such as `clip:FOLDER`, or the model itself: --vlm MODEL.",
            )
        return self

    def check_views(self) -> None:
        """Checks that the scorer can be shown a part of a picture.

        Raises:
            UsageError: it cannot.
        """
        _method(self._recorded, "score_view", lacking="no part of a picture", by=self.id)

    async def score_texts(self, about: Mapping[str, str], texts: Sequence[str]) -> list[float]:
        """As `score`, against other texts.

        Raises:
            UsageError: the scorer takes no texts alone.
            ReplayMiss: the mode is `replay` and one of them is not on record.
            CallError: the scorer gave something else than a number for each text, or a record is damaged.
        """

        async def ask(some: Sequence[str]) -> Sequence[float]:
            self._responses.lend_folder(self._recorded)
            method = _method(self._recorded, "score_texts", lacking="no texts without a picture", by=self.id)
            return self._checked(await method(about, some), len(some))

        return await self._scores([self.request(about, text) for text in texts], texts, ask)

    async def _scores(
        self,
        forms: Sequence[JsonObject],
        texts: Sequence[str],
        ask: Callable[[Sequence[str]], Awaitable[Sequence[float]]],
    ) -> list[float]:
        async def make(places: Sequence[int]) -> list[JsonObject]:
            return [{"score": score} for score in await ask([texts[place] for place in places])]

        responses = await self._responses.get(forms, make)
        return [_score(response, form) for form, response in zip(forms, responses, strict=True)]

    def _checked(self, scores: Sequence[float], count: int) -> list[float]:
        if len(scores) != count:
            raise ModelError(f"{str(self.id)!r} was asked for {count} scores and gave {len(scores)}.")
        return [_number(score, by=str(self.id)) for score in scores]


def _method(scorer: object, name: str, *, lacking: str, by: ModelId) -> Any:
    method: Any = getattr(scorer, name, None)
    if method is None:
        raise UsageError(f"The scorer {str(by)!r} takes {lacking}.", hint=f"Give one that does: {EXAMPLES}.")
    return method


def _number(score: float, *, by: str) -> float:
    number = float(score)
    if not math.isfinite(number):
        raise ModelError(f"{by!r} gave {number} as a score, which is no number.")
    return number


def _score(response: Mapping[str, Any], form: JsonObject) -> float:
    score: Any = response.get("score")
    if not isinstance(score, (int, float)) or isinstance(score, bool):
        raise BadRecord(f"The record {key_of('score', form)[:12]!r} holds no score.", hint=DAMAGED_HINT)
    return float(score)


def get_scorer(scorer: ScorerLike, *, identity: str | None = None, engine: Engine | None = None) -> RecordedScorer:
    """The scorer that `scorer` names or is.

    Args:
        scorer: see `ScorerLike`. What a form describes answers from its records alone.
        identity: name under which its scores are filed; an object without an `id` is not recorded without it.
        engine: the run's; None is one with default settings on the project's store.

    Raises:
        ConfigError: no scorer goes by that spec.
        UsageError: `scorer` is of no kind that is known here.
    """
    return RecordedScorer.of(scorer, identity=identity, engine=engine)


def _policy(form: object) -> ImagePolicy:
    """The policy in the form of a scorer; without one it is `clean`.

    Raises:
        UsageError: it is none.
    """
    if form is None:
        return CLEAN_POLICY
    try:
        fields = dict(cast("Mapping[str, Any]", form))
        fields["formats"] = tuple(fields.get("formats", CLEAN_POLICY.formats))
        return ImagePolicy(**fields)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"This is no image policy of a scorer: {str(form)[:80]!r}.",
            hint="Give what a run's `run.json` says of a scorer.",
        ) from error


class ScriptedScorer:
    """A scorer whose scores a function of picture and text makes, for tests.

    Args:
        score: from a picture and a text to the score.
        identity: the name that its scores are filed under; None neither records nor replays them.
    """

    def __init__(self, score: Callable[[Image, str], float], *, identity: str | None = None) -> None:
        self.id = ModelId("scripted", identity or "scripted", name=identity)
        self.stored = identity is not None
        """Whether its scores are recorded and replayed."""
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        """Name of the picture and the texts of each call, in order."""
        self._score = score

    async def score(self, image: Image, texts: Sequence[str]) -> Sequence[float]:
        self.asked.append((image.name, tuple(texts)))
        return [self._score(image, text) for text in texts]

    def __repr__(self) -> str:
        return f"ScriptedScorer(identity={self.id.name!r}, asked={len(self.asked)})"
