"""The engine: what the models of one run share. `call.py` shows the order in which a call uses it."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from weakref import WeakValueDictionary

from askance.errors import UsageError
from askance.models.capabilities import Capabilities
from askance.models.config import Config
from askance.models.events import Observer
from askance.models.langchain.langsmith_switch import settle_tracing
from askance.models.learnt_pace import LearntPace
from askance.models.limits import DEFAULT_CONCURRENCY, ConcurrencyLimit, EndpointLimits
from askance.models.loop import PerLoop, SingleFlight
from askance.models.recorder import Recorder
from askance.models.retry import RetryPolicy
from askance.models.settings import DEFAULT_TIMEOUT, ModelSettings, OutputMode
from askance.replay import STORE_VARIABLE, Address, Mode, Records, find_address, open_records, without_password
from askance.replay.shared_pace import SharedPace, Starts

if TYPE_CHECKING:
    from askance.chat import ModelId, Outcome, Usage
    from askance.images import ImagePolicy
    from askance.models.backend import Backend
    from askance.models.budget import BudgetGuard

_log = logging.getLogger("askance")

MODES: tuple[Mode, ...] = ("live", "auto", "replay", "refresh")


@dataclass(kw_only=True, eq=False)
class Engine:
    """How a run's calls are made; the models of one run share one engine.

    Raises:
        UsageError: settings that contradict each other.
    """

    mode: Mode = "auto"
    """`auto` reads the records and asks for what is missing; `replay` only reads; `live` and `refresh` only ask."""
    records: Records | None = None
    """They bring the leases of calls and the pace of endpoints. None is those of the project, opened when needed."""
    retry: frozenset[Outcome] = frozenset()
    """Recorded outcomes that are asked again, each request once: `invalid`, `refused`, `filtered`, `truncated`."""
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    """Bounds of asking again after faults."""
    concurrency: int | None = None
    """Calls to one endpoint at a time; None starts at `DEFAULT_CONCURRENCY` and finds out how many it takes."""
    rpm: float | None = None
    """Calls to one endpoint per minute; None learns what it lets through."""
    tpm: float | None = None
    """Tokens per minute, in and out; None goes by what the endpoint says."""
    image_policy: ImagePolicy | None = None
    """Goes before what each model's settings say, as do `timeout` and `protocol`."""
    timeout: float | None = None
    """Seconds that one try may take."""
    protocol: OutputMode | None = None
    """Form in which answers are asked for."""
    budget: BudgetGuard | None = None
    """Holds the run to its budget; None is no budget. The engine closes it."""
    starts: Callable[[ModelId], Starts] | None = None
    """What hands out the times at which calls to a model's endpoint may start, to workers that share no database; None
    leaves the pace to the records."""
    observers: list[Observer] = field(default_factory=list[Observer])
    """Called with every step of every call."""

    recorder: Recorder = field(init=False, repr=False)
    single_flight: SingleFlight = field(init=False, repr=False, default_factory=SingleFlight)
    endpoints: dict[str, Capabilities] = field(init=False, repr=False, default_factory=dict[str, Capabilities])
    """What endpoints can do, by the key of their record; it stays the same for the run once it is known."""
    _limits: dict[tuple[str, str | None], PerLoop[EndpointLimits]] = field(
        init=False, repr=False, default_factory=dict[tuple[str, str | None], PerLoop[EndpointLimits]]
    )
    _backends: list[Backend] = field(init=False, repr=False, default_factory=list["Backend"])
    _concurrency: list[ConcurrencyLimit] = field(init=False, repr=False, default_factory=list[ConcurrencyLimit])
    _miscounting: set[ModelId] = field(init=False, repr=False, default_factory=set["ModelId"])
    """Models of which it has been said that their endpoint miscounts."""
    _opened: Records | None = field(init=False, repr=False, default=None)
    _address: Address | None = field(init=False, repr=False, default=None)
    """Of the records that are opened where none are given; None is the project's."""
    _token: str = field(init=False, repr=False, default_factory=lambda: uuid4().hex)
    """Tells engines apart in pickles."""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise UsageError(f"{self.mode!r} is no mode.", hint=f"Modes: {', '.join(map(repr, MODES))}.")
        if self.retry and self.mode == "replay":
            raise UsageError("`replay` asks nothing, so it cannot ask again (`retry`).", hint="Use the mode `auto`.")
        unknown = self.retry - {"invalid", "refused", "filtered", "truncated"}
        if unknown:
            raise UsageError(
                f"No recorded answer is {min(unknown)!r}, so none can be asked again (`retry`).",
                hint="Outcomes to ask again: 'invalid', 'refused', 'filtered', 'truncated'.",
            )
        if self.concurrency is not None and self.concurrency < 1:
            raise UsageError(f"A concurrency of {self.concurrency} lets no call through.", hint="Give at least 1.")
        for name, most in (("rpm", self.rpm), ("tpm", self.tpm)):
            if most is not None and most <= 0:
                raise UsageError(f"A limit of {most:g} ({name}) lets no call through.", hint="Give more than 0.")
        settle_tracing(self.mode)
        self.recorder = Recorder(self._open, mode=self.mode, retry=self.retry)

    def settle(self, settings: ModelSettings) -> ModelSettings:
        """`settings` as this run uses them: the engine's own go first."""
        return replace(
            settings,
            image_policy=self.image_policy or settings.image_policy,
            timeout=self.timeout or settings.timeout or DEFAULT_TIMEOUT,
            protocol=self.protocol or settings.protocol,
        )

    @property
    def places(self) -> int:
        """Most calls that an endpoint of the run now takes at once; as many pictures under way keep it busy."""
        return max((limit.places for limit in self._concurrency), default=self.concurrency or DEFAULT_CONCURRENCY)

    @property
    def doing(self) -> str:
        """What backends on this machine do now, in words; empty where there is nothing to say."""
        return ", ".join(dict.fromkeys(doing for backend in self._backends if (doing := backend.doing)))

    def add_backend(self, backend: Backend) -> None:
        """Adds the backend of a model of the run, once."""
        if not any(known is backend for known in self._backends):
            self._backends.append(backend)

    def limits(self, model: ModelId) -> PerLoop[EndpointLimits]:
        """The limits that all models of one endpoint share."""
        return self._limits.setdefault((model.provider, model.endpoint), PerLoop(lambda: self._endpoint(model)))

    def check_counts(self, model: ModelId, usage: Usage) -> None:
        """Warns, once a model, of counts of tokens that no call can take."""
        if usage.impossible and model not in self._miscounting:
            self._miscounting.add(model)
            _log.warning(
                "%s counts tokens that no call can take (%s): such counts are unknown, and a budget counts these calls "
                "at their worst case.",
                model,
                usage.impossible,
            )

    def _endpoint(self, model: ModelId) -> EndpointLimits:
        own = LearntPace(rpm=self.rpm, tpm=self.tpm)
        if self.starts is None:
            pace = self.recorder.records.pace(model, own, rpm=self.rpm, tpm=self.tpm)
        else:
            pace = SharedPace(self.starts(model), own, rpm=self.rpm, tpm=self.tpm)
        endpoint = EndpointLimits(pace, self.concurrency)
        self._concurrency.append(endpoint.concurrency)
        return endpoint

    def __copy__(self) -> Engine:
        # Limits, budget and store are one for the run; a copy would have its own.
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Engine:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle holds the settings, and where the records and the budget's ledger lie; observers stay behind.

        In the process that made it, the pickle gives this engine; in another, one engine for all of its pickles.

        Raises:
            UsageError: records that are in the memory of this process.
        """
        records = self.records
        if records is not None and records.writable and records.leases() is None:
            raise UsageError(
                f"The engine cannot be pickled: its records ({records.name}) are in the memory of this process.",
                hint="Give it the records of a folder: `Engine(records=open_records(FOLDER))`.",
            )
        address = None if records is not None else without_password(self._own_address())
        settings = {each.name: getattr(self, each.name) for each in fields(self) if each.init}
        del settings["observers"]
        _pickled[self._token] = self
        return Engine._from_pickle, (self._token, address, settings)

    @classmethod
    def _from_pickle(cls, token: str, address: Address | None, settings: dict[str, Any]) -> Engine:
        engine = _pickled.get(token)
        if engine is None:
            engine = _pickled[token] = cls(**settings)
            engine._token, engine._address = token, address
        return engine

    async def aclose(self) -> None:
        """Waits until all records are written; closes the budget and a store that this engine opened, but no model."""
        await asyncio.to_thread(self.recorder.flush)
        if self.budget is not None:
            await asyncio.to_thread(self.budget.close)
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()
            self.recorder = Recorder(self._open, mode=self.mode, retry=self.retry)

    def _open(self) -> Records:
        if self.records is not None:
            return self.records
        self._opened = open_records(self._own_address(), read_only=self.mode == "replay")
        return self._opened

    def _own_address(self) -> Address:
        """Where the records lie that this engine opens by itself: the same from the first use on."""
        if self._address is None:
            self._address = project_address()
        return self._address


_pickled: WeakValueDictionary[str, Engine] = WeakValueDictionary()
"""By token, the engines of this process that were pickled, here or elsewhere."""

_defaults: dict[Address, Engine] = {}


def default_engine() -> Engine:
    """The engine of models that are given none: one for each store, so that they share limits and calls."""
    return _defaults.setdefault(project_address(), Engine())


def project_address() -> Address:
    """Where the records lie: what the environment says, else the settings file, else found from here upwards."""
    return find_address(None if os.environ.get(STORE_VARIABLE) else Config.find().store)
