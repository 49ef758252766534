"""What embedders and scorers have in common: their recorded responses, and the specs that name them.

The modes are those of an engine. Equal requests are made once, and all missing ones at once, since a local model is
fastest with many.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeAlias, cast, runtime_checkable

from askance.chat import JsonObject, ModelId, key_of
from askance.errors import ConfigError, UsageError
from askance.models.backend import close
from askance.models.call_scope import current_scope
from askance.models.engine import default_engine
from askance.models.loop import PerLoop
from askance.models.settings import DTYPES, Local
from askance.registry import Registry, nearest
from askance.replay import Record, explain_miss
from askance.spec_grammar import SettingReaders, count, one_of, read_settings, split_settings, yes_or_no

if TYPE_CHECKING:
    from pathlib import Path

    from askance.images import Image, RegionView
    from askance.models.engine import Engine
    from askance.replay import RecordKind

Make: TypeAlias = "Callable[[Sequence[int]], Awaitable[Sequence[JsonObject]]]"
"""From places among the requests to the responses there."""


class RecordedResponses:
    """The responses of one kind that one model gives: recorded ones, and for the others what the model gives.

    Args:
        kind: of the records.
        engine: whose records and mode are used.
        stored: whether anything tells this model's answers from another's, so that they can be recorded.
        replayable: whether they are the same in a replay: they are recorded, or made of calls that are.
        title: what the model is called in messages.

    Raises:
        UsageError: the mode is `replay` and nothing can be.
    """

    def __init__(self, kind: RecordKind, engine: Engine, *, stored: bool, replayable: bool, title: str) -> None:
        if not replayable and engine.mode == "replay":
            raise UsageError(
                f"The answers of {title!r} cannot be replayed: nothing tells them from another model's.",
                hint='Give it a name of its own: `identity="…"`.',
            )
        self.kind: RecordKind = kind
        self._engine = engine
        self._stored = stored
        self._renewed: set[str] = set()
        self._under_way: PerLoop[dict[str, asyncio.Event]] = PerLoop(dict[str, asyncio.Event])

    async def get(self, forms: Sequence[JsonObject], make: Make) -> list[JsonObject]:
        """The responses to `forms`, in their order.

        Args:
            forms: requests in canonical form.
            make: makes the responses that are neither on record nor under way; it gets no two equal requests.

        Raises:
            ReplayMiss: the mode is `replay` and one of them is not on record.
            BadRecord: one of the records is damaged.
            StoreError: the records cannot be read.
        """
        keys = [key_of(self.kind, form) for form in forms]
        places: dict[str, int] = {}
        for place, key in enumerate(keys):
            places.setdefault(key, place)
        if not self._stored:
            made = await make(list(places.values()))
            return [dict(zip(places, made, strict=True))[key] for key in keys]
        for observer in current_scope().observers:
            observer.looked_up(places)
        responses = await self._recorded_off_loop(places)
        while missing := {key: place for key, place in places.items() if key not in responses}:
            responses |= await self._next(forms, missing, make)
        return [responses[key] for key in keys]

    async def _next(self, forms: Sequence[JsonObject], missing: Mapping[str, int], make: Make) -> dict[str, JsonObject]:
        """Makes the responses that are not under way; where all are, waits for one. Gives what is there then."""
        under_way = self._under_way()
        mine = {key: place for key, place in missing.items() if key not in under_way}
        if not mine:
            await under_way[next(iter(missing))].wait()
            return await self._recorded_off_loop(missing)
        done = asyncio.Event()
        under_way.update(dict.fromkeys(mine, done))
        try:
            return await self._made(forms, mine, make)
        finally:
            for key in mine:
                del under_way[key]
            done.set()

    def lacking(self, forms: Sequence[JsonObject]) -> frozenset[str]:
        """Keys of those `forms` that are not on record, or not to be read from there."""
        keys = frozenset(key_of(self.kind, form) for form in forms)
        return keys - self._recorded(keys).keys() if self._stored else keys

    def lend_folder(self, model: object) -> None:
        """Tells a model that keeps vectors the records' folder; None where it may keep nothing there."""
        tell: Callable[[Path | None], None] | None = getattr(model, "keep_in", None)
        if tell is not None:
            tell(self.folder)

    @property
    def folder(self) -> Path | None:
        """The folder of the records; None where no vectors may be read or kept there."""
        records = self._engine.recorder.records
        allowed = self._stored and self._engine.mode == "auto"
        return records.folder if allowed else None

    async def _recorded_off_loop(self, keys: Iterable[str]) -> dict[str, JsonObject]:
        """Like `_recorded`; no event loop waits for a network."""
        return await self._engine.recorder.off_loop(lambda: self._recorded(keys))

    def _recorded(self, keys: Iterable[str]) -> dict[str, JsonObject]:
        """Of `keys`, what is on record and may be used."""
        mode = self._engine.mode
        usable = keys if mode in {"auto", "replay"} else [key for key in keys if key in self._renewed]
        return {key: record.response for key, record in self._engine.recorder.look_up_all(usable).items()}

    async def _made(self, forms: Sequence[JsonObject], places: Mapping[str, int], make: Make) -> dict[str, JsonObject]:
        recorded = await self._recorded_off_loop(places)
        missing = {key: place for key, place in places.items() if key not in recorded}
        recorder = self._engine.recorder
        if missing and recorder.mode == "replay":
            raise explain_miss(forms[min(missing.values())], self.kind, recorder.records)
        made = dict(zip(missing, await make(list(missing.values())), strict=True)) if missing else {}
        existing = frozenset[str]()
        if recorder.mode == "live":
            existing = frozenset(await recorder.off_loop(lambda: recorder.look_up_all(made)))
        fresh = [key for key in made if key not in existing]
        makers = [partial(Record.make, self.kind, forms[places[key]], made[key]) for key in fresh]
        written = await asyncio.gather(*map(recorder.write, makers))
        if recorder.mode == "refresh":
            self._renewed.update(key for key, done in zip(fresh, written, strict=True) if done)
        return recorded | made


@runtime_checkable
class AskingModel(Protocol):
    """A model that asks chat models, whose calls are on record: its own responses are made of them, also in a replay.

    Its `id` is what it is called by.
    """

    def in_engine(self, engine: Engine) -> Self:
        """The model with its chat models in an engine."""
        ...


class RecordedModel(ABC):
    """A model whose responses come from the records where they are there, else from the model itself.

    What it is called is said by its class: `registry` has the providers of its specs, `examples` shows such specs, and
    a model is of one of the `protocols`.

    Args:
        model: gives the responses that are not on record.
        kind: of its records.
        id: tells its responses from another model's; None neither records nor replays them.
        engine: whose records and mode are used.
        parameters: what else decides its responses.
    """

    registry: ClassVar[Registry]
    examples: ClassVar[str]
    protocols: ClassVar[tuple[type, ...]]

    def __init__(
        self,
        model: object,
        kind: RecordKind,
        *,
        id: ModelId | None,  # noqa: A002  # as everywhere here
        engine: Engine,
        parameters: Mapping[str, Any],
    ) -> None:
        self.id = id or _shown_id(model)
        self.stored = id is not None
        self.engine = engine
        self.parameters = parameters
        self._recorded = model
        self._responses = self.responses(kind)

    @classmethod
    def of(cls, model: object, *, identity: str | None, engine: Engine | None) -> Self:
        """The model that `model` names, describes or is.

        Args:
            model: a spec, a model of one of the protocols, one with its records, or the form of one.
            identity: name under which its responses are filed; an object without an `id` is not recorded without it.
            engine: the run's; None is one with default settings on the project's store.

        Raises:
            ConfigError: no model goes by that spec.
            UsageError: `model` is of no kind that is known here.
        """
        if isinstance(model, cls):
            same = identity is None and engine in {None, model.engine}
            return model if same else model.changed(identity=identity, engine=engine)
        run = engine if engine is not None else default_engine()
        if isinstance(model, Mapping):
            fields = dict(cast("Mapping[str, Any]", model))
            return cls._described(id_of_form(fields.pop("model", None)), fields, engine=run)
        made = from_spec(model, cls.registry, examples=cls.examples) if isinstance(model, str) else model
        made = made.in_engine(run) if isinstance(made, AskingModel) else made
        if not isinstance(made, cls.protocols):
            raise UsageError(f"A {type(made).__name__} is no {cls.registry.what}.", hint=f"Give {cls.examples}.")
        return cls._around(made, identity_of(made, identity), engine=run)

    @classmethod
    @abstractmethod
    def _described(cls, model: ModelId, fields: dict[str, Any], *, engine: Engine) -> Self:
        """The model of a form, which may be a stranger's, by its identity and the other fields."""

    @classmethod
    @abstractmethod
    def _around(cls, made: Any, model: ModelId | None, *, engine: Engine) -> Self:
        """A model of one of the protocols, with the records of its identity."""

    @property
    def asks(self) -> bool:
        """Whether it asks chat models, so that it is none that is run here."""
        return isinstance(self._recorded, AskingModel)

    def responses(self, kind: RecordKind) -> RecordedResponses:
        """Its responses of one kind.

        Raises:
            UsageError: the mode is `replay`, and nothing of it can be replayed.
        """
        return RecordedResponses(
            kind, self.engine, stored=self.stored, replayable=self.stored or self.asks, title=str(self.id)
        )

    def changed(self, *, identity: str | None = None, engine: Engine | None = None) -> Self:
        """The same model under another name, or in another engine."""
        other = copy(self)
        if identity is not None:
            other.id, other.stored = ModelId("custom", identity, name=identity), True
        other.engine = engine or self.engine
        if isinstance(other._recorded, AskingModel):
            other._recorded = other._recorded.in_engine(other.engine)
        other._responses = other.responses(self._responses.kind)
        return other

    async def aclose(self) -> None:
        """Closes the model."""
        await close(self._recorded)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.id)!r})"


class ReplayOnlyModel:
    """A replay-only model: it answers from records, and makes no vector and no score.

    Args:
        model: whose records they are.
        what: noun for it in messages.
    """

    sees_pictures = False

    def __init__(self, model: ModelId, what: str) -> None:
        self._model = model
        self._what = what

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        raise self._lacking(repr(texts[0][:60]))

    async def embed_image(self, image: Image) -> Sequence[float]:
        raise self._lacking(f"the picture {image.name!r}")

    async def score(self, image: Image, texts: Sequence[str]) -> Sequence[float]:
        raise self._lacking(f"the picture {image.name!r} with {texts[0][:60]!r}")

    async def score_view(self, image: Image, texts: Sequence[str], view: RegionView) -> Sequence[float]:  # noqa: ARG002  # a scorer's
        raise self._lacking(f"the picture {image.name!r} with {texts[0][:60]!r}")

    async def score_texts(self, about: Mapping[str, str], texts: Sequence[str]) -> Sequence[float]:
        raise self._lacking(f"{next(iter(about.values()), '')[:60]!r} with {texts[0][:60]!r}")

    def _lacking(self, wanted: str) -> UsageError:
        return UsageError(
            f"The {self._what} {str(self._model)!r} is known by its records alone, and they lack {wanted}.",
            hint=f"Name the {self._what} itself: a spec, or an object.",
        )


def _shown_id(model: object) -> ModelId:
    """What a model is called whose responses are not recorded."""
    return cast("Any", model).id if isinstance(model, AskingModel) else ModelId("custom", type(model).__name__)


def parameters_of(model: object) -> dict[str, Any]:
    """What a model of the caller's says that decides its responses, beside its identity."""
    return dict(cast("Mapping[str, Any]", getattr(model, "parameters", {})))


# --- how an embedder or a scorer is named ---


def from_spec(spec: str, registry: Registry, *, examples: str) -> object:
    """What the spec `provider:rest` names.

    Args:
        spec: as written.
        registry: by provider, the class or function that makes it of the rest.
        examples: of specs.

    Raises:
        ConfigError: there is no such provider, or nothing stands behind the colon.
    """
    provider, _, rest = spec.partition(":")
    known = provider in registry
    if not known or not rest.strip():
        close = "" if known else nearest(provider, registry.names())
        raise ConfigError(f"{spec!r} names no {registry.what}.", hint=f"{close}Write {examples}.")
    make: Callable[[str], object] = registry.load(provider)
    return make(rest.strip())


def identity_of(model: object, identity: str | None) -> ModelId | None:
    """The identity of an object of the caller's: the name given to it, else its own `id`; None where it has neither."""
    own: object = getattr(model, "id", None)
    if identity is not None:
        return ModelId("custom", identity, name=identity)
    if getattr(model, "stored", True) is False:
        return None
    if isinstance(own, str) and own:
        return ModelId("custom", own, name=own)
    return own if isinstance(own, ModelId) else None


def id_of_form(form: object) -> ModelId:
    """The identity in the canonical form of a request.

    Raises:
        UsageError: it is none.
    """
    shown = str(form)[:80]
    fields = cast("Mapping[str, object]", form if isinstance(form, Mapping) else {})
    provider, model, name = (fields.get(field) for field in ("provider", "model", "name"))
    if isinstance(name, str) and name:
        return ModelId("custom", name, name=name)
    if isinstance(provider, str) and isinstance(model, str):
        return ModelId(provider, model)
    raise UsageError(
        f"This is the identity of no model: {shown!r}.", hint="Give what a run's `run.json` says of a model."
    )


# --- settings in a spec, behind its source: `clip:FOLDER?scale=logits&device=cuda` ---

BATCH = 32
"""Texts or pictures that are encoded at a time."""

_LOCAL: SettingReaders = {
    "batch": count,
    "device": str,
    "dtype": one_of(*DTYPES),
    "pickled": yes_or_no,
    "remote_code": yes_or_no,
    "revision": str,
}
"""Settings of any encoder: fields of `Local`."""


def settings_in(rest: str, *, provider: str, local: Local, own: SettingReaders) -> tuple[str, Local, dict[str, Any]]:
    """The source in the part of a spec behind the colon, how it is run, and what else is set.

    Args:
        rest: the part of the spec behind the colon.
        provider: what stands in front of it.
        local: how it is run where nothing is said.
        own: settings beside those of `Local`.

    Raises:
        ConfigError: a setting that there is not, or a value that it does not take.
    """
    source, settings = split_settings(rest)
    values = read_settings(settings, {**_LOCAL, **own}, of=f"{provider}:{source}")
    ours = {name: values.pop(name) for name in list(values) if name in _LOCAL}
    return source, replace(local, **ours), values


def allows_code(spec: str) -> bool:
    """Whether a spec lets weights run code: code that comes with them, or pickles."""
    return any(name in {"pickled", "remote_code"} and text == "true" for name, text in split_settings(spec)[1])
