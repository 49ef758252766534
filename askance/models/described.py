"""A model as a run describes it: its recorded answers can be had again, and nobody can be asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from askance.chat import ModelId, Sampling
from askance.errors import UsageError
from askance.images import ImagePolicy
from askance.models.backend import Backend
from askance.models.capabilities import Capabilities
from askance.models.model import Model
from askance.models.settings import ModelSettings

if TYPE_CHECKING:
    from askance.models.engine import Engine
    from askance.models.seam import ChatModel


def described_model(form: Mapping[str, Any], engine: Engine) -> Model:
    """The model that `Model.form` gave, for replays.

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
    return Model(settings, Backend(_nobody), engine, declared=known)


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


def _nobody() -> ChatModel:
    raise UsageError(
        "This model is known from a run alone, so that nobody can be asked.", hint="Use the mode `replay`."
    )
