"""A model as nodes use it: makes requests by its settings, and gets their answers."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from askance.chat import (
    ChatRequest,
    ChatResponse,
    ImagePart,
    JsonObject,
    Message,
    ModelId,
    Outcome,
    ResponseFormat,
    Sampling,
    ToolSpec,
    Usage,
)
from askance.errors import UsageError
from askance.images import WHOLE_IMAGE, ImagePolicy, RegionView, Shown
from askance.models.backend import Backend
from askance.models.call import CallPath
from askance.models.call_scope import current_scope
from askance.models.capabilities import NOTED, Capabilities, Probe, endpoint_form, endpoint_key, not_recorded
from askance.replay import Mode, Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from askance.images import Image
    from askance.models.box_unit import BoxUnit
    from askance.models.engine import Engine
    from askance.models.settings import ModelSettings, OutputMode, Price

_log = logging.getLogger("askance")

T = TypeVar("T")

THINKING = 16_384
"""Tokens that a model may take for thinking before its answer, where its settings give no limit."""


class Model:
    """A model within an engine; cheap to make, for its client is built at the first live call.

    Args:
        settings: what is known of the model.
        backend: what answers.
        engine: shared by the models of a run.
        declared: what the model can do, so that no endpoint is probed; None is not known.

    Raises:
        UsageError: nothing tells the model's answers from another's, and the engine's mode is `replay`.
    """

    def __init__(
        self, settings: ModelSettings, backend: Backend, engine: Engine, *, declared: Capabilities | None = None
    ) -> None:
        if not settings.stored and engine.mode == "replay":
            raise UsageError(
                f"The answers of {str(settings.id)!r} cannot be replayed: nothing tells them from another model's.",
                hint='Give the model a name of its own: `get_model(…, identity="…")`.',
            )
        self._unsettled = settings
        self.settings = engine.settle(settings)
        self.engine = engine
        self.id: ModelId = settings.id
        self.backend = backend
        self._declared = declared
        self._calls = CallPath(self.settings, backend, engine)
        self._warned: set[str] = set()
        self._part: ImagePart | None = None
        self._samplings: dict[int, Sampling] = {}

    def __repr__(self) -> str:
        return f"Model({str(self.id)!r}, mode={self.mode!r})"

    def __copy__(self) -> Model:
        # A copy would share its engine and connections.
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle holds the settings, in which no key stands; the model is made of them again where it is opened.

        Raises:
            UsageError: the model was made of an object, or a header may hold a secret; a replay needs neither.
        """
        made = partial(Model, declared=self._declared)
        if self.mode == "replay":
            return made, (replace(self._unsettled, headers={}), Backend.nobody(), self.engine)
        if self.backend.settings is None:
            raise UsageError(
                f"The model {str(self.id)!r} cannot be pickled: it was made of an object, which may hold a key.",
                hint="Name it by a spec or in the settings file, or make it in the process that asks it.",
            )
        for name, value in self.backend.settings.headers.items():
            if not value.startswith("env:"):
                raise UsageError(
                    f"The model {str(self.id)!r} cannot be pickled: its header {name!r} may hold a secret.",
                    hint="Write its value as `env:NAME`, and set that variable where the model is asked.",
                )
        return made, (self._unsettled, self.backend, self.engine)

    @property
    def mode(self) -> Mode:
        """The engine's."""
        return self.engine.mode

    @property
    def family(self) -> str | None:
        """Family by which prompts are worded."""
        return self.settings.family

    @property
    def protocol(self) -> OutputMode | None:
        """The output mode that the user chose; None is the strictest that the endpoint can do."""
        return self.settings.protocol

    def form(self) -> JsonObject:
        """All settings that can change an answer, as JSON; `model_from_form` reads it."""
        settings = self.settings
        declared = {} if self._declared is None else {"declared": self._declared.canonical()}
        return {
            "id": self.id.canonical(),
            "sampling": settings.sampling.canonical(),
            "extra": dict(settings.extra),
            "images": settings.image_policy.canonical(),
            "detail": settings.detail,
            "family": settings.family,
            "protocol": settings.protocol,
            **declared,
        }

    def image(self, image: Image, view: RegionView = WHOLE_IMAGE, policy: ImagePolicy | None = None) -> ImagePart:
        """`image`, or a view of it, as this model is shown it; `policy` is by default that of its settings.

        Questions in turn about one picture in one view get one object, which is written once.
        """
        shown = Shown(image, policy or self.settings.image_policy, view)
        part = self._part
        if part is None or part.shown.image is not image or part.shown != shown:
            part = self._part = ImagePart(shown, self.settings.detail)
        return part

    def request(
        self,
        messages: Sequence[Message],
        *,
        response: ResponseFormat | None = None,
        tools: Sequence[ToolSpec] = (),
        max_tokens: int | None = None,
        draw: int | None = None,
    ) -> ChatRequest:
        """The request that asks this model.

        Args:
            messages: the conversation so far.
            response: the form that the answer is to have.
            tools: what the model may call.
            max_tokens: limit where the settings give none; `THINKING` more for a model that thinks before it answers.
            draw: index that tells equal requests apart; None is that of `use_draw`.
        """
        sampling, default_limit = self.settings.sampling, False
        if max_tokens is not None and sampling.max_tokens is None:
            sampling, default_limit = self._limited(max_tokens), True
        return ChatRequest(
            model=self.id,
            messages=tuple(messages),
            tools=tuple(tools),
            response=response,
            sampling=sampling,
            extra=self.settings.extra,
            draw=current_scope().draw if draw is None else draw,
            default_limit=default_limit,
        )

    def _limited(self, max_tokens: int) -> Sampling:
        """The settings' sampling with a limit; equal limits give one object, so that it is written once."""
        sampling = self._samplings.get(max_tokens)
        if sampling is None:
            sampling = replace(self.settings.sampling, max_tokens=self.answer_limit(max_tokens))
            self._samplings[max_tokens] = sampling
        return sampling

    def answer_limit(self, max_tokens: int) -> int:
        """`max_tokens`, and `THINKING` more where the model thinks before it answers."""
        return max_tokens + (THINKING if self.thinks else 0)

    @property
    def thinks(self) -> bool:
        """Whether the model is known to think before it answers, in tokens that count as the answer's."""
        known = self.known
        return (known is not None and bool(known.thinks)) or self.settings.extra.get("reasoning_effort") is not None

    def generate(self, request: ChatRequest, *, again: bool = False) -> Coroutine[Any, Any, ChatResponse]:
        """The answer to `request`, from the records or from the endpoint.

        Args:
            request: made by `request`.
            again: ignore a recorded answer and ask, once a run; for an answer that could not be parsed.

        Raises:
            CallError: the call ended without an answer.
            ReplayMiss: the mode is `replay` and the answer is not on record.
        """
        return self._calls.answer(request, again=again)

    def asks_again(self, outcome: Outcome) -> bool:
        """Whether the run asks recorded answers of this outcome again."""
        return outcome in self.engine.retry

    @property
    def price(self) -> Price | None:
        """The configured price, else the list price; None where neither is known."""
        return self._calls.price

    def cost(self, usage: Usage) -> float | None:
        """US dollars for `usage`; None where no price is known."""
        return self.price.cost(usage) if self.price is not None else None

    async def output_mode(self) -> OutputMode:
        """The form in which answers are asked for.

        Raises:
            CallError: the endpoint had to be asked what it can do and did not answer.
            ReplayMiss: the mode is `replay` and that is not on record.
        """
        return self.protocol or (await self.capabilities()).output_mode

    async def capabilities(self) -> Capabilities:
        """What the endpoint can do: declared, known in this run, on record, or asked now and recorded.

        Raises:
            CallError: the endpoint had to be asked and did not answer.
            ReplayMiss: the mode is `replay` and it is not on record.
        """
        known = self.known
        if known is not None:
            return known
        if self.mode == "replay":
            raise not_recorded(self.id)
        return await self._calls.on_live_loop(lambda: self._probe(whole=False))

    async def calls_tools(self) -> bool:
        """Whether the endpoint calls tools: declared, on record, or asked now and recorded.

        A plan, which makes no calls, takes it for one that does.

        Raises:
            CallError: the endpoint had to be asked and did not answer.
            ReplayMiss: the mode is `replay` and it is not on record.
        """
        return await self._ability("tools", Probe.tools, planned=True)

    async def box_unit(self) -> BoxUnit:
        """The unit in which the model gives boxes: declared, on record, known by its family, or asked now and recorded.

        Pixels are those of the picture as it is sent. A plan, which makes no calls, counts with thousandths.

        Raises:
            CallError: the endpoint had to be asked and did not answer.
            ReplayMiss: the mode is `replay` and it is not on record.
        """
        return await self._ability("boxes", Probe.boxes, planned="thousandths")

    async def check(self) -> Capabilities:
        """Asks the endpoint for all that it can do, a tiny picture included, and records it.

        Raises:
            CallError: the endpoint did not answer.
            UsageError: the mode is `replay`.
        """
        if self.mode == "replay":
            raise UsageError("`replay` asks nothing, so it cannot check a model.", hint="Use the mode `auto`.")
        return await self._calls.on_live_loop(lambda: self._probe(whole=True))

    def notice(self, message: str, **facts: object) -> None:
        """Warns once of what answers show about their endpoint, and notes it in the endpoint's record.

        This run and its replay keep their output mode; the next run that makes calls uses what was noted.

        Args:
            message: what to tell the user.
            facts: fields of `Capabilities`, such as `schema="ignored"`.
        """
        if message in self._warned:
            return
        self._warned.add(message)
        _log.warning("%s: %s", self.id, message)
        known = self.known
        if known is not None and self.settings.stored and self.mode != "replay":
            form = {**known.canonical(), NOTED: facts}
            self.engine.recorder.write_soon(lambda: Record.make("endpoint", endpoint_form(self.id), form))

    def changed(self, change: Callable[[ModelSettings], ModelSettings], engine: Engine) -> Model:
        """The same backend with settings that `change` makes from this model's, in `engine`."""
        return Model(change(self._unsettled), self.backend, engine, declared=self._declared)

    async def aclose(self) -> None:
        """Closes the backend's connections; the next live call opens new ones."""
        await self.backend.aclose()

    @property
    def known(self) -> Capabilities | None:
        """What the endpoint can do, as far as it is known without asking: declared, found in this run, or on record."""
        return self._found if self._declared is None else self._declared

    @property
    def _found(self) -> Capabilities | None:
        """What was found out about the endpoint, in this run or on record."""
        endpoints, key = self.engine.endpoints, endpoint_key(self.id)
        if key not in endpoints and self.settings.stored:
            record = self.engine.recorder.records.get(key)
            if record is not None:
                endpoints[key] = Capabilities.from_canonical(self._with_what_was_noted(record.response))
        return endpoints.get(key)

    def _with_what_was_noted(self, form: JsonObject) -> JsonObject:
        """`form` with what an earlier run noted in it; a replay keeps the form that was asked in."""
        if NOTED not in form or self.mode == "replay":
            return form
        settled = {**form, **form[NOTED]}
        del settled[NOTED]
        self.engine.recorder.write_soon(lambda: Record.make("endpoint", endpoint_form(self.id), settled))
        return settled

    async def _ability(self, name: Literal["tools", "boxes"], ask: Callable[[Probe], Awaitable[T]], *, planned: T) -> T:
        """The field `name` of `Capabilities`, which is asked only when it is needed."""
        for known in (self._declared, self._found):
            if known is not None and getattr(known, name) is not None:
                return getattr(known, name)
        if self.mode == "replay":
            raise not_recorded(self.id, name)
        if current_scope().on_miss is not None:
            return planned
        await self.capabilities()
        key = endpoint_key(self.id)

        async def found() -> T:
            value, _ = await self.engine.single_flight.share(f"{key} {name}", lambda: self._ability_probed(name, ask))
            return value

        return await self._calls.on_live_loop(found)

    async def _ability_probed(self, name: Literal["tools", "boxes"], ask: Callable[[Probe], Awaitable[T]]) -> T:
        key, recorder = endpoint_key(self.id), self.engine.recorder

        def recorded() -> Record | None:
            return recorder.records.get(key) if self.settings.stored else None

        old = await recorder.off_loop(recorded)
        async with recorder.leased(key, old=old) if self.settings.stored else nullcontext():
            record = await recorder.off_loop(recorded)
            form = {} if record is None else record.response
            value = getattr(Capabilities.from_canonical(form), name)
            if value is None:  # nor has another process asked meanwhile
                start, probe = time.monotonic(), Probe(self._calls.unrecorded, self.settings)
                value = await ask(probe)
                self._calls.notify("probed", key, seconds=time.monotonic() - start, usage=probe.usage)
            now = replace(self._found or self._declared or Capabilities(), **{name: value})
            self.engine.endpoints[key] = now
            if self.settings.stored:
                # What the record says beside this may be for the next run, so it stays.
                whole = {**now.canonical(), **form, name: value}
                await recorder.write(lambda: Record.make("endpoint", endpoint_form(self.id), whole))
        return value

    async def _probe(self, *, whole: bool) -> Capabilities:
        key = endpoint_key(self.id)
        capabilities, _ = await self.engine.single_flight.share(
            f"{key} {whole}", lambda: self._probed_once(key, whole=whole)
        )
        return capabilities

    async def _probed_once(self, key: str, *, whole: bool) -> Capabilities:
        if not self.settings.stored:
            return await self._probed(key, whole=whole)
        async with self.engine.recorder.leased(key):
            # Learnt by an equal probe that ended just before, here or in another process.
            known = None if whole else self.known
            return await self._probed(key, whole=whole) if known is None else known

    async def _probed(self, key: str, *, whole: bool) -> Capabilities:
        start = time.monotonic()
        probe = Probe(self._calls.unrecorded, self.settings)
        capabilities = _with_dialect(
            await (probe.everything() if whole else probe.first_contact()), self.backend.noticed
        )
        seconds = time.monotonic() - start
        self._calls.notify("probed", key, seconds=seconds, usage=probe.usage)
        self.engine.endpoints[key] = capabilities
        if self.settings.stored:
            await self.engine.recorder.write(
                lambda: Record.make("endpoint", endpoint_form(self.id), capabilities.canonical())
            )
        return capabilities


def _with_dialect(capabilities: Capabilities, noticed: Mapping[str, Any]) -> Capabilities:
    """`capabilities` with what the backend learnt from the endpoint's error messages meanwhile."""
    return replace(capabilities, token_field=noticed.get("token_field"), without=tuple(noticed.get("without", ())))
