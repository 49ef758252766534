"""Batches: parts of a queue through the batch interface of an endpoint, from the upload to the answers on record.

Each part is carried by a task of its own. What a step does is written down before it is taken where it must not be
taken twice, and after it where it may; so a part is picked up wherever the last process left it. Whether a batch was
made is not known when its making got no answer: it is then looked for by the part's number until it would have shown.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from askance.errors import BadRequest, CallError, ModelError, UsageError
from askance.models.batch_harvest import Harvest
from askance.models.batch_queue import MOST_BYTES, MOST_CALLS, URLS, Queue, target_of
from askance.models.capabilities import Capabilities
from askance.models.events import CallEvent
from askance.models.openai_batches import BatchApi, batch_api
from askance.models.openai_client import is_own
from askance.models.openai_habits import OPTIONAL, Habits

if TYPE_CHECKING:
    from askance.chat import Usage
    from askance.errors import AskanceError
    from askance.models.batch_jobs import Ending, Job, Part
    from askance.models.complaints import Complaint
    from askance.models.model import Model
    from askance.models.openai_batches import Batch
    from askance.models.settings import TokenField
    from askance.replay import Record

T = TypeVar("T")

_log = logging.getLogger("askance")

_UNSURE = frozenset({408, 409, 425})
"""Statuses below 500 that do not say that nothing was done."""

NO_ROOM = frozenset({"token_limit_exceeded", "rate_limit_exceeded"})
"""Codes by which an endpoint says that too much waits there already."""


Phase = Literal["walking", "sent", "waiting", "settled", "trouble"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPolicy:
    """Bounds of a run's batches."""

    most_calls: int = MOST_CALLS
    """Calls that a batch may hold."""
    most_bytes: int = MOST_BYTES
    """Bytes that its file may have."""
    tries: int = 3
    """How often a call is sent until it counts as failed."""
    first_poll: float = 5.0
    """Seconds until a new batch is looked at; the time grows up to `poll`."""
    poll: float = 60.0
    grace: float = 60.0
    """Seconds in which a batch shows whose making got no answer."""
    requests: int = 8
    """Tries of a request that is no poll; polls go on for as long as a batch may take."""
    max_wait: float = 60.0
    """Most seconds between two tries."""
    at_once: int = 2
    """Uploads and downloads at a time."""
    ahead: int = 4
    """Parts on the disk that wait for their upload, until the walk waits for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchNews:
    """How far a run's batches have come."""

    phase: Phase
    round: int
    queued: int = 0
    """Calls in this round's batches."""
    sent: int = 0
    """Of these, in batches that the endpoint has."""
    done: int = 0
    """Of these, done by the endpoint."""
    batches: tuple[str, ...] = ()
    """Numbers of the batches under way."""
    words: str = ""
    """What is in the way, in `trouble`."""


class Batches:
    """The batches of one run.

    Args:
        job: the state on disk.
        models: those of the chain, all of one engine.
        policy: bounds.
        told: of every step.

    Raises:
        UsageError: a model has no batch interface that is known here.
    """

    def __init__(
        self,
        job: Job,
        models: Sequence[Model],
        *,
        policy: BatchPolicy | None = None,
        told: Callable[[BatchNews], None] | None = None,
    ) -> None:
        for model in models:
            _check(model)
        self.policy = policy or BatchPolicy()
        self.round = 1
        self._job = job
        self._told = told
        self._models = {target_of(model.settings): model for model in models}
        self._engine = models[0].engine
        self._habits: dict[str, Habits] = {}
        self._apis: dict[str, BatchApi] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._lines = asyncio.Semaphore(self.policy.at_once)
        self._landed = asyncio.Condition()
        self._flying: Counter[str] = Counter()
        self._done: dict[str, int] = {}

    async def begin(self) -> None:
        """Learns what the endpoints want, and picks up the parts that an earlier process left.

        Raises:
            UsageError: the job holds batches of other models.
            CallError: an endpoint cannot be asked.
        """
        for target, model in self._models.items():
            self._habits[target] = await _habits(model, self._job.learnt.get(target, {}))
        for key in self._job.answered_keys():
            self._engine.shelf.renewed(key)
        for part in sorted(self._job.unsettled, key=lambda part: part.batch is None):
            if part.target not in self._models:
                raise UsageError(
                    f"The folder {str(self._job.folder)!r} holds batches of another model.",
                    hint="Finish them with the run that began them, or give another folder.",
                )
            self.start(part)

    async def ready(self) -> None:
        """Makes sure, once, that there is somewhere to send batches to.

        Raises:
            UsageError: an endpoint has no batch interface.
            CallError: an endpoint cannot be asked.
        """
        for target in self._models.keys() - self._apis.keys():
            await self._persist(self._api(target).check)

    def queue(self, *, closed: bool = False) -> Queue:
        """A queue for the next walk; `closed`, for the last."""
        return Queue(
            self._job,
            self._habits,
            most_calls=self.policy.most_calls,
            most_bytes=self.policy.most_bytes,
            told=self.round == 1 and not closed,
            closed=closed,
        )

    def start(self, part: Part) -> None:
        """Has a part carried to its end."""
        task = asyncio.create_task(self._carry(part))
        self._tasks.add(task)

    async def room(self) -> None:
        """Waits while too much is waiting for its upload.

        Raises:
            AskanceError: a part cannot be carried on.
        """
        while sum(part.file is None for part in self._job.unsettled) > self.policy.ahead and self._tasks:
            await self._raised(await asyncio.wait(self._tasks, timeout=0.2))

    async def drain(self) -> None:
        """Waits until every part that was started is settled.

        Raises:
            AskanceError: a part cannot be carried on; the others are left as they are.
        """
        while self._tasks:
            await self._raised(await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED))

    async def aclose(self) -> None:
        """Leaves every part as it is."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for api in self._apis.values():
            await api.aclose()

    def tell(self, phase: Phase, words: str = "", *, queued: int | None = None) -> None:
        """Says how far it has come."""
        if self._told is not None:
            parts = [part for part in self._job.parts.values() if part.id in self._done or not part.settled]
            self._told(
                BatchNews(
                    phase=phase,
                    round=self.round,
                    queued=sum(part.count for part in parts) if queued is None else queued,
                    sent=sum(part.count for part in parts if part.batch),
                    done=sum(part.count if part.settled else self._done.get(part.id, 0) for part in parts),
                    batches=tuple(part.batch for part in parts if part.batch and not part.settled),
                    words=words,
                )
            )

    async def _raised(self, waited: tuple[set[asyncio.Task[None]], object]) -> None:
        done, _ = waited
        self._tasks -= done
        for task in done:
            task.result()
        if not self._tasks:
            self._done.clear()

    # --- one part ---

    async def _carry(self, part: Part) -> None:
        self._done.setdefault(part.id, 0)
        if part.batch is None:
            await self._upload(part)
        async with self._landed:
            # Where there is too little room for all, each waits until the one before it is done.
            await self._landed.wait_for(lambda: part.target not in self._job.most or not self._flying[part.target])
            self._flying[part.target] += 1
        try:
            if part.batch is None:
                await self._create(part)
            self.tell("sent")
            batch = await self._ended(part)
            await self._settle(part, batch)
        finally:
            self._flying[part.target] -= 1
            async with self._landed:
                self._landed.notify_all()
        self.tell("settled")

    async def _upload(self, part: Part) -> None:
        if part.file is not None:
            return
        api, name = self._api(part.target), f"askance-{part.id}.jsonl"
        async with self._lines:
            found = await self._persist(lambda: api.find_file(name, part.size)) if part.uploading else None
            if found is None:
                self._job.note("uploading", part)
                found = await self._persist(lambda: api.upload(self._job.body(part.id), name))
        self._job.note("uploaded", part, file=found)

    async def _create(self, part: Part) -> None:
        """Has the batch made, once.

        Raises:
            CallError: the endpoint will not make it.
        """
        attempt, made = 0, None
        while made is None:
            try:
                made = await self._found(part) or await self._asked(part)
            except CallError as error:
                attempt += 1
                if attempt >= self.policy.requests or not (error.retryable or part.file is None):
                    raise
                self.tell("trouble", str(error))
                await self._pause(attempt, error)
        self._job.note("created", part, batch=made.id)
        self._job.body(part.id).unlink(missing_ok=True)

    async def _asked(self, part: Part) -> Batch:
        """Asks for the batch; that none was made is written down where it is certain.

        Raises:
            CallError: there is no batch, or nobody knows.
        """
        await self._upload(part)
        self._job.note("creating", part, at=time.time())
        url = URLS[self._models[part.target].id.api]
        try:
            return await self._api(part.target).create(part.file or "", url=url, part=part.id)
        except ModelError as error:
            if error.status is not None and error.status < 500 and error.status not in _UNSURE:
                self._job.note("rejected", part)
                if isinstance(error, BadRequest) and "file" in error.message.lower():
                    # A file is not found any more, or not yet by who has just taken it.
                    self._job.note("uploaded", part, file=None)
            raise

    async def _found(self, part: Part) -> Batch | None:
        """The batch whose making got no answer, or None where there was none or it would have shown by now."""
        api, since = self._api(part.target), part.creating
        while since is not None:
            made = await self._persist(lambda: api.find(part.id))
            if made:
                *others, first = made  # the latest is named first
                for other in others:
                    with suppress(CallError):
                        await api.cancel(other.id)
                return first
            # A clock that was set back makes nobody wait for longer.
            left = min(since + self.policy.grace - time.time(), self.policy.grace)
            if left <= 0:
                break
            await asyncio.sleep(min(left, self.policy.first_poll))
        return None

    async def _ended(self, part: Part) -> Batch:
        """The batch once it has ended; the endpoint may be out of reach for as long as it likes."""
        api, wait = self._api(part.target), self.policy.first_poll
        while True:
            try:
                batch = await api.get(part.batch or "")
            except CallError as error:
                if not error.retryable:
                    raise self._lost(part, error) from error
                self.tell("trouble", str(error))
            else:
                self._done[part.id] = min(batch.done or 0, part.count)
                if batch.ended:
                    return batch
                self.tell("waiting")
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, self.policy.poll)

    async def _settle(self, part: Part, batch: Batch) -> None:
        """Takes what the batch brought into the records, and writes down what it left."""
        api, model = self._api(part.target), self._models[part.target]
        harvest = await asyncio.to_thread(
            Harvest,
            self._job.calls(part.id),
            api.asked,
            model.id.api,
            lambda record, usage: self._put(model, record, usage),
            lambda complaint: self._learn(part, complaint),
        )
        if batch.status == "failed" and not batch.output:
            endings = self._not_begun(part, batch, harvest)
        else:
            await self._reap(part, batch, harvest)
            endings = await asyncio.to_thread(harvest.endings, batch)
        if harvest.unknown:
            _log.warning("The batch %s holds %d lines about no call of it.", part.batch, harvest.unknown)
        self._job.note(
            "settled", part, answered=len(harvest.answered), endings=[ending.canonical() for ending in endings]
        )
        self._job.body(part.id).unlink(missing_ok=True)
        with suppress(CallError):  # it holds pictures, and nobody needs it any more
            await api.forget(part.file or "")

    async def _reap(self, part: Part, batch: Batch, harvest: Harvest) -> None:
        """Downloads and reads the batch's files, again where they break off before their end."""
        api = self._api(part.target)
        target = self._job.folder / f"{part.id}.answers"
        for attempt in range(self.policy.tries):
            if attempt:
                await asyncio.sleep(min(2.0**attempt, self.policy.poll))
            harvest.unknown = 0
            for file in (batch.output, batch.errors):
                if file is not None:
                    async with self._lines:
                        await self._persist(lambda file=file: api.download(file, target))
                        await asyncio.to_thread(harvest.take, target)
            target.unlink(missing_ok=True)
            if harvest.lines >= min(batch.done or 0, part.count):
                return

    def _not_begun(self, part: Part, batch: Batch, harvest: Harvest) -> Sequence[Ending]:
        if not any(code in NO_ROOM for code, _, _ in batch.complaints):
            return harvest.rejected(batch)
        taking_turns = part.target in self._job.most
        most = max(1, part.count // 2) if taking_turns else part.count
        self._job.note("narrowed", target=part.target, most=most)
        return harvest.postponed(counts=taking_turns and part.count == 1)

    # --- what parts share ---

    def _api(self, target: str) -> BatchApi:
        if target not in self._apis:
            self._apis[target] = batch_api(self._models[target].settings)
        return self._apis[target]

    def _put(self, model: Model, record: Record, usage: Usage) -> None:
        """Records an answer and tells the engine's observers; runs in a thread."""
        shelf = self._engine.shelf
        shelf.records.put(record)
        shelf.renewed(record.key)
        price = model.settings.price
        cost = price.cost(usage) if price is not None else None
        if price is not None and cost is not None:
            cost = None if price.batch is None else cost * price.batch
        event = CallEvent(phase="answered", key=record.key, model=model.id, usage=usage, cost=cost)
        for observer in self._engine.observers:
            try:
                observer(event)
            except Exception:  # noqa: BLE001  # an answer is worth more than the news of it
                _log.exception("An observer of calls failed.")

    def _learn(self, part: Part, complaint: Complaint) -> bool:
        """Whether a complaint about a call of `part` tells of another form to ask in; that one is used from now on."""
        form = Habits(part.form["token_field"], set(part.form["without"]))
        fields = {name: 0 for name in (form.token_field, *OPTIONAL) if name not in form.without}
        if not form.learn(complaint, fields):
            return False
        habits = self._habits[part.target]
        noticed = {**habits.noticed, **form.noticed}
        if noticed != habits.noticed:
            self._habits[part.target] = Habits(form.token_field, habits.without | form.without, noticed)
            self._job.note("learnt", target=part.target, noticed=noticed)
        return True

    def _lost(self, part: Part, error: CallError) -> AskanceError:
        """The error of a batch that cannot be looked at."""
        if not isinstance(error, ModelError) or error.status != 404:
            return error
        return UsageError(
            f"{self._api(part.target).asked.where} does not know the batch {part.batch!r}.",
            hint="Use the key that began it. To give up what it brings and begin anew, remove the folder "
            f"{str(self._job.folder)!r}.",
        )

    async def _persist(self, make: Callable[[], Awaitable[T]]) -> T:
        """The result of `make()`, asked again after faults that may pass.

        Raises:
            CallError: it does not come to one.
        """
        attempt = 0
        while True:
            try:
                return await make()
            except CallError as error:
                attempt += 1
                if not error.retryable or attempt >= self.policy.requests:
                    raise
                self.tell("trouble", str(error))
                await self._pause(attempt, error)

    async def _pause(self, attempt: int, error: CallError) -> None:
        asked = error.retry_after if isinstance(error, ModelError) else None
        await asyncio.sleep(min(max(asked or 0.0, 0.5 * 2.0**attempt), self.policy.max_wait))


def _check(model: Model) -> None:
    """Refuses a model whose calls cannot go into a batch.

    Raises:
        UsageError: see above.
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
            hint="Leave it out.",
        )
    if model.engine.purse is not None:
        raise UsageError("A budget is held to call by call, which a batch cannot be.", hint="Leave one of them out.")


async def _habits(model: Model, learnt: Mapping[str, Any]) -> Habits:
    """What requests to the model have to look like, as far as it is known.

    Raises:
        CallError: the endpoint had to be asked and did not answer.
    """
    known = Capabilities() if model.protocol is not None else await model.capabilities()
    own: TokenField = "max_completion_tokens" if is_own(model.id.endpoint) else "max_tokens"
    return Habits(
        learnt.get("token_field") or model.settings.token_field or known.token_field or own,
        {*known.without, *learnt.get("without", ())},
        dict(learnt),
    )
