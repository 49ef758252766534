"""What an endpoint can do, and the form of asking that follows from it.

The form is part of each request, so it is found out once, frozen for a run, and kept as an `endpoint` record that is
exported with the answers: a replay knows it with the server gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from askance.chat import JsonObject, ModelId, key_of
from askance.errors import ReplayMiss
from askance.models.settings import TOKEN_FIELDS

if TYPE_CHECKING:
    from askance.models.settings import Rung, TokenField

SchemaSupport = Literal["enforced", "ignored", "refused", "unknown"]

PROBE_VERSION = 1
"""Rises when the probe asks otherwise, so that an endpoint is asked anew."""

NOTED = "noted"
"""Field of an `endpoint` record: capabilities that answers have shown since, for the next run that asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an endpoint can do; None is not known."""

    schema: SchemaSupport = "unknown"
    """What becomes of a JSON schema sent along: answers are held to it, it is ignored, or the request is refused."""
    json_object: bool | None = None
    """Whether it can be told to answer with a JSON object."""
    images: bool | None = None
    seed: bool | None = None
    logprobs: bool | None = None
    served_model: str | None = None
    """Name by which the endpoint calls the model."""
    token_field: TokenField | None = None
    """Name under which it takes the token limit."""
    without: tuple[str, ...] = ()
    """Sampling fields that it rejects."""
    thinks: bool | None = None
    """Whether it thinks before it answers."""

    @property
    def rung(self) -> Rung:
        """The highest form of asking that it can do."""
        if self.schema == "enforced":
            return "json_schema"
        return "json_object" if self.json_object else "prompted"

    def canonical(self) -> JsonObject:
        """The fields that are known, as JSON values."""
        form: JsonObject = {"schema": self.schema}
        for each in fields(self)[1:]:
            value = getattr(self, each.name)
            if value is not None and value != ():
                form[each.name] = list(self.without) if each.name == "without" else value
        return form

    @classmethod
    def from_canonical(cls, form: Mapping[str, Any]) -> Capabilities:
        """The capabilities that `form` was made from; what is not known here, as from a later version, is left out."""
        known = {each.name: _FITS.get(each.name, _is_flag) for each in fields(cls)}
        given: JsonObject = {name: value for name, value in form.items() if name in known and known[name](value)}
        given["without"] = tuple(given.get("without", ()))
        return cls(**given)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


_FITS: Mapping[str, Callable[[Any], bool]] = {
    "schema": lambda value: value in get_args(SchemaSupport),
    "served_model": lambda value: isinstance(value, str),
    "token_field": lambda value: value in TOKEN_FIELDS,
    "without": lambda value: (
        isinstance(value, list) and all(isinstance(name, str) for name in cast("list[Any]", value))
    ),
}
"""By name: whether a value, which anyone may have written into a record, is one that the field can have."""


def endpoint_form(model: ModelId) -> JsonObject:
    """The request of the `endpoint` record of `model`."""
    return {"model": model.canonical(), "probe": PROBE_VERSION}


def endpoint_key(model: ModelId) -> str:
    """The key of the `endpoint` record of `model`."""
    return key_of("endpoint", endpoint_form(model))


def not_recorded(model: ModelId) -> ReplayMiss:
    """The error of a replay that needs to know an endpoint and has no record of it."""
    return ReplayMiss(
        f"What {str(model)!r} can do is not on record, and replay does not ask.",
        key=endpoint_key(model),
        hint=f"Run `askance models check {model}` with the endpoint up, import the cassette that it belongs to, "
        "or name the form of asking (`protocol`).",
    )
