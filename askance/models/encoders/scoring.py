"""Scorers: how well texts fit a picture. Every score is on record (kind `score`), one record a picture and text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from askance.chat import JsonObject, ModelId, key_of
from askance.errors import BadRecord, ModelError, UsageError
from askance.images import CLEAN, Image, ImagePolicy
from askance.models.encoders.addressing import from_spec, id_of_form, identity_of
from askance.models.encoders.kept import Kept
from askance.models.engine import Engine, default_engine
from askance.models.seam import close
from askance.replay import DAMAGED_HINT

PROVIDERS: Mapping[str, str] = {}
"""Where the scorer of each kind of spec is: made from what stands behind the colon. None ships yet."""

EXAMPLES = "an object with `async def score(image, texts)`, such as a `ScriptedScorer`"


@runtime_checkable
class Scorer(Protocol):
    """Whatever says how well texts fit a picture: the higher, the better.

    It may have more:

    - `id`, a `ModelId` or a name, tells its scores from another scorer's, unless `stored` is False; without one they
      are neither recorded nor replayed. It is known without loading weights;
    - `parameters`, JSON values, are what else decides its scores;
    - `policy`, an `ImagePolicy`, says how pictures are prepared for it; by default they are `clean`;
    - `async aclose()` lets go of what it holds.
    """

    async def score(self, image: Image, texts: Sequence[str]) -> Sequence[float]:
        """A score for each text, in their order."""
        ...


ScorerLike: TypeAlias = "str | Scorer | RecordedScorer | Mapping[str, Any]"
"""A spec, any `Scorer`, or what `RecordedScorer.form` gave."""


class RecordedScorer:
    """A scorer whose scores come from the records where they are there; `get_scorer` makes it.

    Args:
        scorer: what is asked for the others.
        id: tells its scores from another scorer's; None neither records nor replays them.
        parameters: what else decides them.
        engine: whose records and mode are used.
        policy: how pictures are prepared.
    """

    def __init__(
        self,
        scorer: Scorer,
        *,
        id: ModelId | None,  # noqa: A002  # as everywhere here
        engine: Engine,
        parameters: Mapping[str, Any],
        policy: ImagePolicy = CLEAN,
    ) -> None:
        self.id = id or ModelId("custom", type(scorer).__name__)
        self.stored = id is not None
        self.engine = engine
        self.parameters = parameters
        self.policy = policy
        self._scorer = scorer
        self._kept = Kept("score", engine, stored=self.stored, title=str(self.id))

    def form(self) -> JsonObject:
        """Everything but picture and text that decides a score, as JSON: `get_scorer` takes it for its records."""
        return {"model": self.id.canonical(), **self.parameters}

    def request(self, image: Image, text: str) -> JsonObject:
        """What is asked of one picture and one text, in canonical form.

        Raises:
            BadImage: the picture's file cannot be read.
        """
        picture = {"sha256": image.sha256, "policy": self.policy.canonical()}
        return {**self.form(), "image": picture, "text": text}

    def keys(self, image: Image, texts: Sequence[str]) -> tuple[str, ...]:
        """Keys of the records of a picture and `texts`, each once; none where nothing is recorded."""
        keys = (key_of("score", self.request(image, text)) for text in texts)
        return tuple(dict.fromkeys(keys)) if self.stored else ()

    async def score(self, image: Image, texts: Sequence[str]) -> list[float]:
        """A score for each text, in their order; those that are missing are made together, equal texts once.

        Raises:
            BadImage: the picture cannot be used.
            ReplayMiss: the mode is `replay` and one of them is not on record.
            CallError: the scorer gave something else than a number for each text, or a record is damaged.
        """
        forms = [self.request(image, text) for text in texts]

        async def make(places: Sequence[int]) -> list[JsonObject]:
            made = await self._scorer.score(image, [texts[place] for place in places])
            if len(made) != len(places):
                raise ModelError(f"{str(self.id)!r} was asked for {len(places)} scores and gave {len(made)}.")
            return [{"score": _number(score, by=str(self.id))} for score in made]

        found = await self._kept.answers(forms, make)
        return [_score(response, form) for form, response in zip(forms, found, strict=True)]

    def changed(self, *, identity: str | None = None, engine: Engine | None = None) -> RecordedScorer:
        """The same scorer under another name, or in another engine."""
        own = self.id if self.stored else None
        return RecordedScorer(
            self._scorer,
            id=own if identity is None else ModelId("custom", identity, name=identity),
            engine=engine or self.engine,
            parameters=self.parameters,
            policy=self.policy,
        )

    async def aclose(self) -> None:
        """Lets go of what the scorer holds."""
        await close(self._scorer)

    def __repr__(self) -> str:
        return f"RecordedScorer({str(self.id)!r})"


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
        UsageError: `scorer` is nothing that can be asked.
    """
    run = engine if engine is not None else default_engine()
    if isinstance(scorer, RecordedScorer):
        same = identity is None and engine in {None, scorer.engine}
        return scorer if same else scorer.changed(identity=identity, engine=engine)
    if isinstance(scorer, str):
        made: object = from_spec(scorer, PROVIDERS, what="scorer", examples=EXAMPLES)
    elif isinstance(scorer, Mapping):
        fields = dict(scorer)
        model = id_of_form(fields.pop("model", None))
        return RecordedScorer(_Nobody(model), id=model, engine=run, parameters=fields)
    else:
        made = scorer
    if not isinstance(made, Scorer):
        raise UsageError(f"A {type(made).__name__} is no scorer.", hint=f"Give {EXAMPLES}.")
    return RecordedScorer(
        made,
        id=identity_of(made, identity),
        engine=run,
        parameters=dict(getattr(made, "parameters", {})),
        policy=getattr(made, "policy", CLEAN),
    )


class _Nobody:
    """Stands where only the records of a scorer are known."""

    def __init__(self, model: ModelId) -> None:
        self._model = model

    async def score(self, image: Image, texts: Sequence[str]) -> Sequence[float]:
        raise UsageError(
            f"The scorer {str(self._model)!r} is known by its records alone, and they lack the picture "
            f"{image.name!r} with {texts[0][:60]!r}.",
            hint="Name the scorer itself.",
        )
