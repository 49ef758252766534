"""Makes a `Model` of a spec, a configured name, an object, or the form that a run holds."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from askance.chat import ModelId, Sampling
from askance.errors import ConfigError, UsageError
from askance.images import ImagePolicy
from askance.models.backend import Backend, ChatModel
from askance.models.capabilities import Capabilities
from askance.models.config import Config, changed, check_table, settings_from
from askance.models.engine import Engine, default_engine
from askance.models.model import Model
from askance.models.settings import ModelSettings, family_of
from askance.models.spec import BUILT_IN, DECLARED, EXAMPLES
from askance.registry import import_object, nearest
from askance.spec_grammar import split_settings

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

if TYPE_CHECKING:
    ModelLike: TypeAlias = "str | Model | ChatModel | BaseChatModel"
else:
    ModelLike = Annotated[Any, "a model"]  # a field of a task may have this type, and pydantic reads it
"""A spec, a name from the settings file, a model, any `ChatModel`, or a chat model of LangChain."""

_log = logging.getLogger("askance")

_LANGCHAIN = "askance.models.langchain.langchain_model"


def get_model(
    model: ModelLike,
    *,
    identity: str | None = None,
    engine: Engine | None = None,
    config: Config | None = None,
    **settings: Any,
) -> Model:
    """The model that `model` names or is.

    Args:
        model: see `ModelLike`.
        identity: name under which its answers are filed; an object whose settings are not known from outside is not
            recorded without it.
        engine: the run's; None is one with default settings on the project's store.
        config: the settings file; None is the project's.
        settings: go before what the settings file says; the names are those of a model's table there.

    Raises:
        ConfigError: no model has this name, or a setting is not known.
        UsageError: `model` is not a model.
    """
    if identity is not None:
        settings["identity"] = identity
    check_table(settings, where="`get_model`")
    if isinstance(model, Model):
        return _again(model, engine, settings)
    run = engine if engine is not None else default_engine()
    if isinstance(model, str):
        known = named(model, settings, config=config)
        declared = DECLARED.get(known.id.provider)
        return Model(known, Backend.of(known), run, declared=None if declared is None else import_object(declared))
    return _wrapped(model, settings, run)


def named(name: str, changes: Mapping[str, Any] | None = None, *, config: Config | None = None) -> ModelSettings:
    """The settings of the model called `name` in the settings file, or of the spec `name`, with `changes` on top.

    Raises:
        ConfigError: no model has this name, a setting is not known, or the user does not consent to it.
    """
    config = Config.find() if config is None else config
    if not name.strip():
        raise ConfigError("No model is named.", hint=f"Write {EXAMPLES}.")
    table = config.models.get(name) or BUILT_IN.get(name)
    where = (
        f"`{split_settings(name)[0]}`"
        if table is None
        else f"the model {name!r} in {config.path.name if config.path else 'the settings'!r}"
    )
    if table is None and ":" not in name:
        hint = nearest(name, [*config.models, *BUILT_IN])
        raise ConfigError(f"No model is called {name!r}.", hint=f"{hint}Or write a spec: {EXAMPLES}.")
    settings = settings_from({**(table or {"spec": name}), **(changes or {})}, where=where)
    consent = config.consent(name, changes or {})
    if consent is not None and config.asks:
        consent.ask()
    return replace(settings, family=family_of(settings), consent=consent)


def configured(config: Config) -> list[ModelSettings]:
    """The settings of all models that have a name; one that cannot be used is left out, such as one without weights."""
    settings: list[ModelSettings] = []
    for name in (*BUILT_IN, *config.models):
        with suppress(ConfigError):
            settings.append(named(name, config=config))
    return settings


def _again(model: Model, engine: Engine | None, changes: Mapping[str, Any]) -> Model:
    if engine in {None, model.engine} and not changes:
        return model
    _no_address(changes)
    return model.changed(lambda settings: _renamed(changed(settings, changes), changes), engine or model.engine)


def _wrapped(model: object, changes: Mapping[str, Any], engine: Engine) -> Model:
    """A model around an object of the caller's."""
    _no_address(changes)
    if is_langchain(model):
        identity: ModelId | None = import_object(f"{_LANGCHAIN}:identity_of")(model)
        wrapped: ChatModel = import_object(f"{_LANGCHAIN}:LangChainModel")(model)
    elif isinstance(model, ChatModel):
        identity, wrapped = _own_identity(model), model
    else:
        raise UsageError(
            f"A {type(model).__name__} is no model.",
            hint=f"Give {EXAMPLES}, a chat model of LangChain, or an object with `async def generate(request)`.",
        )
    known = identity or ModelId("custom", type(model).__name__)
    stored = identity is not None and getattr(model, "stored", True) is not False
    settings = _renamed(changed(ModelSettings(id=known, stored=stored), changes), changes)
    if identity is None and not settings.stored:
        _warn_unrecorded(type(model).__name__)
    declared = getattr(model, "capabilities", None)
    return Model(
        replace(settings, family=family_of(settings)),
        Backend(lambda: wrapped, open_model=wrapped),
        engine,
        declared=declared if isinstance(declared, Capabilities) else None,
    )


@cache
def _warn_unrecorded(kind: str) -> None:
    """Says once for each class that nothing its models answer is recorded."""
    _log.warning(
        "The answers of %s are not recorded: nothing tells them from another model's. "
        'Give it a name: `get_model(model, identity="…")`.',
        kind,
    )


def _own_identity(model: object) -> ModelId | None:
    own = getattr(model, "id", None)
    if isinstance(own, str) and own:
        return ModelId("custom", own, name=own)
    return own if isinstance(own, ModelId) else None


def _renamed(settings: ModelSettings, changes: Mapping[str, Any]) -> ModelSettings:
    if "identity" not in changes:
        return settings
    return replace(settings, id=replace(settings.id, name=changes["identity"]), stored=True)


def _no_address(changes: Mapping[str, Any]) -> None:
    """Refuses settings that apply only where a client is made."""
    own = ("api", "azure", "base_url", "headers", "idempotency", "key_variable", "local", "spec", "token_field", "vllm")
    for name in own:
        if name in changes:
            raise UsageError(
                f"{name!r} belongs to a model's client, and this model has one already.",
                hint="Give a spec or a name from the settings file.",
            )


def is_langchain(model: object) -> bool:
    """Whether `model` is a chat model of LangChain; that package is not loaded to find out."""
    loaded = sys.modules.get("langchain_core.language_models.chat_models")
    return loaded is not None and isinstance(model, loaded.BaseChatModel)


def model_from_form(form: Mapping[str, Any], engine: Engine) -> Model:
    """The model that `Model.form` describes; it has recorded answers only, and cannot be asked.

    Raises:
        UsageError: it is the form of no model.
    """
    try:
        policy: dict[str, Any] = {name: _frozen(value) for name, value in form["images"].items()}
        sampling: dict[str, Any] = {name: _frozen(value) for name, value in form["sampling"].items()}
        settings = ModelSettings(
            id=_id(form["id"]),
            sampling=Sampling(**sampling),
            extra=dict(form["extra"]),
            image_policy=ImagePolicy(**policy),
            detail=form["detail"],
            family=form["family"],
            protocol=form["protocol"],
        )
        declared = form.get("declared")
        known = None if declared is None else Capabilities.from_canonical(declared)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            f"This describes no model: {str(form)[:80]!r}.", hint="Give what a run's `run.json` says of a model."
        ) from error
    return Model(settings, Backend.nobody(), engine, declared=known)


def _id(form: Mapping[str, Any]) -> ModelId:
    name = form.get("name")
    return ModelId(
        provider=str(form.get("provider", "custom")),
        model=str(form.get("model", name)),
        endpoint=form.get("endpoint"),
        name=name,
        api=form.get("api", "chat"),
    )


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
