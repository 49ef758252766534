"""The target of batches, one model at one endpoint: its batch interface, its dialect, its answers on record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from askance.errors import UsageError
from askance.models.budget import cost_of
from askance.models.capabilities import Capabilities
from askance.models.events import CallEvent, notify
from askance.models.image_data import encode
from askance.models.openai.batch_api import BatchApi, batch_api
from askance.models.openai.client import is_own
from askance.models.openai.dialect import OPTIONAL, PATHS, Dialect, to_body

if TYPE_CHECKING:
    from askance.chat import ChatRequest, Usage
    from askance.models.batch.batch_job import BatchJob, BatchPart
    from askance.models.model import Model
    from askance.models.settings import ModelSettings, TokenField
    from askance.models.vendor_errors import ErrorDetails
    from askance.replay import Cost, Record


def target_of(settings: ModelSettings) -> str:
    """The key of a model's target, in parts and in the journal."""
    model = settings.id
    return json.dumps([model.endpoint, model.model, model.api])


def line_of(request: ChatRequest, settings: ModelSettings, dialect: Dialect) -> bytes:
    """The call as a line of a batch's file; the body is the same as online.

    Raises:
        BadImage: a picture cannot be used.
        ConfigError: the API has no such parameter.
    """
    model = settings.id
    body = to_body(request, encode, api=model.api, model=model.model, dialect=dialect)
    form = {"custom_id": request.key, "method": "POST", "url": f"/v1{PATHS[model.api]}", "body": body}
    return json.dumps(form, separators=(",", ":"), allow_nan=False).encode() + b"\n"


class BatchTarget:
    """One model at one endpoint; a batch holds calls of one target only.

    Args:
        model: whose calls they are.
        job: the state on disk.

    Raises:
        UsageError: the model has no batch interface that is known here.
    """

    def __init__(self, model: Model, job: BatchJob) -> None:
        _check(model)
        self.key = target_of(model.settings)
        self.model = model
        self.dialect = Dialect()
        """The form in which the model takes requests."""
        self._job = job
        self._checked = False

    async def begin(self) -> None:
        """Sets the dialect by what the settings, the job and the endpoint say.

        Raises:
            CallError: the endpoint had to be asked and did not answer.
        """
        learnt: Mapping[str, Any] = self._job.learnt.get(self.key, {})
        known = Capabilities() if self.model.protocol is not None else await self.model.capabilities()
        own: TokenField = "max_completion_tokens" if is_own(self.model.id.endpoint) else "max_tokens"
        self.dialect.token_field = (
            learnt.get("token_field") or self.model.settings.token_field or known.token_field or own
        )
        self.dialect.without |= {*known.without, *learnt.get("without", ())}
        self.dialect.noticed |= learnt
        self.dialect.warn(str(self.model.id))

    @cached_property
    def api(self) -> BatchApi:
        """The batch interface."""
        return batch_api(self.model.settings)

    async def check(self) -> None:
        """Makes sure, once, that the endpoint has a batch interface.

        Raises:
            UsageError: the endpoint has no batch interface.
            CallError: it cannot be asked.
        """
        if not self._checked:
            await self.api.check()
            self._checked = True

    async def aclose(self) -> None:
        """Closes the connections."""
        if "api" in self.__dict__:
            await self.api.aclose()

    @property
    def share(self) -> float:
        """The price in a batch as a part of the price online; 1.0 where it is not known."""
        price = self.model.price
        return 1.0 if price is None or price.batch is None else price.batch

    def cost(self, usage: Usage) -> Cost | None:
        """What a call that took `usage` has cost; None where the endpoint did not count."""
        return cost_of(usage, self.model.price, share=self.share)

    def put(self, record: Record, usage: Usage) -> None:
        """Records an answer and tells the engine's observers; runs in a thread."""
        engine, price = self.model.engine, self.model.price
        engine.check_counts(self.model.id, usage)
        engine.recorder.records.put(record)
        if engine.retry:
            engine.recorder.renewed(record.key)
        cost = price.cost(usage) if price is not None else None
        if price is not None and cost is not None:
            cost = None if price.batch is None else cost * price.batch
        notify(
            engine.observers,
            CallEvent(phase="answered", key=record.key, model=self.model.id, usage=usage, cost=cost),
        )

    def learn(self, part: BatchPart, details: ErrorDetails) -> bool:
        """Whether an error about a call of `part` says how to ask instead; later parts are written in that form."""
        form = Dialect(part.form["token_field"], set(part.form["without"]))
        fields = {name: 0 for name in (form.token_field, *OPTIONAL) if name not in form.without}
        if not form.learn(details, fields):
            return False
        noticed = {**self.dialect.noticed, **form.noticed}
        if noticed != self.dialect.noticed:
            self.dialect.token_field = form.token_field
            self.dialect.without |= form.without
            self.dialect.noticed |= noticed
            self.dialect.warn(str(self.model.id))
            self._job.note("learnt", target=self.key, noticed=noticed)
        return True


def _check(model: Model) -> None:
    """Refuses a model whose calls cannot go into a batch.

    Raises:
        UsageError: it has no batch interface, its answers are not recorded, or the mode is not `auto`.
    """
    name, settings = str(model.id), model.settings
    if settings.id.provider != "openai" or settings.azure is not None or not settings.stored:
        raise UsageError(
            f"The model {name!r} has no batch interface that is known here.",
            hint="Batches are for `openai:` models, at OpenAI and at endpoints that have /files and /batches.",
        )
    if model.mode != "auto":
        raise UsageError(
            f"The mode {model.mode!r} does not go with batches, whose answers are read from the records.",
            hint="Leave out the mode, or leave out `--batch`.",
        )
