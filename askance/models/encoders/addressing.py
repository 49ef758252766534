"""How what is not a chat model is addressed: by a spec, by an identity of its own, or by the form of its requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from askance.chat import ModelId
from askance.errors import ConfigError, UsageError
from askance.models.backend import load
from askance.models.spec import nearest


def from_spec(spec: str, providers: Mapping[str, str], *, what: str, examples: str) -> object:
    """What the spec `provider:rest` names.

    Args:
        spec: as written.
        providers: by name, where the class or function is that makes it of the rest.
        what: what it is that is named, for messages.
        examples: of specs.

    Raises:
        ConfigError: there is no such provider, or nothing stands behind the colon.
    """
    provider, _, rest = spec.partition(":")
    if provider not in providers or not rest.strip():
        known = nearest(provider, providers) if provider not in providers else ""
        raise ConfigError(f"{spec!r} names no {what}.", hint=f"{known}Write {examples}.")
    make: Callable[[str], object] = load(providers[provider])
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
