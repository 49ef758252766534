"""A batch job on disk. A journal holds its steps, so that the process may be killed at any instant.

```
batches/
  .lock            held by the one process that works on the job
  journal.jsonl    the steps so far, one a line; each is on disk before the next one is taken
  PART.jsonl       a part as it is uploaded; gone once its batch is created
  PART.calls.jsonl the calls of a part: key, request in canonical form, pictures as sent
```

A part goes through the steps `spooled`, `uploading`, `uploaded`, `creating`, `created` and `settled`. Where a second
batch of it might have been created, `alone` before `settled` says that there is none. Files of a part that the journal
does not name are left from a pass that did not end: they are removed, and the pass is repeated.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, cast
from uuid import uuid4

from askance import errors
from askance.errors import CallError, StoreError
from askance.replay import Cost

if TYPE_CHECKING:
    from filelock import FileLock

    from askance.chat import JsonObject

JOURNAL = "journal.jsonl"
FORMAT = 1
"""Version of the folder's layout."""

_PART = re.compile(r"[0-9a-f]{32}")
_FAILURE_FIELDS = ("error", "message", "hint", "again", "counts")


@dataclass(slots=True)
class BatchPart:
    """Calls that make up one batch, and how far it has come."""

    id: str
    """32 random hex digits; the batch carries them, and is found by them where its own id was lost."""
    target: str
    """The model and the endpoint that it is for; see `BatchTarget`."""
    count: int
    size: int
    """Bytes to upload."""
    worst: Cost | None = None
    """The most that its calls can cost, where there is a budget."""
    spent: Cost | None = None
    """What its calls have cost, once it is settled, where there is a budget."""
    form: JsonObject = field(default_factory=dict[str, Any])
    """The dialect that its calls are written in: `token_field` and `without`; see `Dialect`."""
    uploading: bool = False
    """Whether an upload was begun."""
    file: str | None = None
    """Id of the uploaded file at the endpoint."""
    creating: float | None = None
    """When the batch was last asked to be created, in seconds since the epoch; None is never, or it was rejected."""
    batch: str | None = None
    """Id of the batch at the endpoint."""
    may_be_double: bool = False
    """Whether a second batch of it may still appear, since its creation was asked for twice or got no answer."""
    settled: bool = False
    """Whether each of its calls has its answer on record, or is noted as failed."""
    unanswered: frozenset[str] = frozenset()
    """Keys of its calls without an answer, once it is settled."""

    @property
    def has_no_batch(self) -> bool:
        """Whether it is certain that there is no batch of it."""
        return self.batch is None and self.creating is None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFailure:
    """Why calls of a batch have no answer."""

    error: str
    """Name of the error's class."""
    message: str
    hint: str | None = None
    keys: tuple[str, ...] = ()
    again: bool = False
    """Whether the calls are sent again, unless they have used up their tries."""
    counts: bool = True
    """Whether the calls have used up a try."""

    def to_error(self) -> CallError:
        """The error that the call ends with."""
        kind: object = getattr(errors, self.error, None)
        known = kind if isinstance(kind, type) and issubclass(kind, CallError) else CallError
        return known(self.message, hint=self.hint)

    def canonical(self) -> JsonObject:
        return asdict(self)


@dataclass
class BatchJob:
    """The state of one run's batches; a process has it for itself while it is open.

    Args:
        folder: made where it is missing.
        tries: how often a call is sent until it counts as failed.

    Raises:
        StoreError: another process works on it, or it cannot be written.
    """

    folder: Path
    tries: int = 3
    id: str = field(init=False, default="")
    """Random hex digits: tells this job from an earlier one in the same folder."""
    parts: dict[str, BatchPart] = field(init=False, default_factory=dict[str, BatchPart])
    """By id, the oldest first."""
    call_limits: dict[str, int] = field(init=False, default_factory=dict[str, int])
    """By target: calls that a part may hold, where the endpoint had no room for a larger one; parts then take turns."""
    learnt: dict[str, JsonObject] = field(init=False, default_factory=dict[str, dict[str, Any]])
    """By target: what its error messages taught; see `Dialect.noticed`."""
    _sent: dict[str, int] = field(init=False, default_factory=dict[str, int])
    _failures: dict[str, CallFailure] = field(init=False, default_factory=dict[str, CallFailure])
    _lock: FileLock = field(init=False)
    _journal: IO[bytes] = field(init=False)
    _writing: Lock = field(init=False, default_factory=Lock)

    def __post_init__(self) -> None:
        self._lock = _locked(self.folder)
        try:
            for event in self._events():
                self._apply(event)
            self._journal = (self.folder / JOURNAL).open("ab")
            if not self._journal.tell():
                self.note("begun", format=FORMAT, id=uuid4().hex)
                self.sync()
            self._sweep()
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> BatchJob:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Releases the folder; what is in it stays."""
        self._journal.close()
        self._lock.release()

    def remove(self) -> None:
        """Ends the job and removes its folder."""
        if self._journal.closed:
            return
        self._journal.close()
        # The journal goes last: what a kill leaves is still a job.
        for file in sorted(self.folder.iterdir(), key=lambda file: (file.name == JOURNAL, file.name)):
            if file.name != ".lock":
                file.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.release()

    @property
    def unsettled(self) -> list[BatchPart]:
        """The parts that are under way."""
        return [part for part in self.parts.values() if not part.settled]

    def upload_file(self, part: str) -> Path:
        """The file that is uploaded: a line for each call."""
        return self.folder / f"{part}.jsonl"

    def calls_file(self, part: str) -> Path:
        """The file of the part's calls: key, request and pictures."""
        return self.folder / f"{part}.calls.jsonl"

    def failure(self, key: str) -> CallFailure | None:
        """Why a call failed that is not sent again; None for every other call."""
        failure = self._failures.get(key)
        return None if failure is None or (failure.again and self._sent[key] < self.tries) else failure

    def sync(self) -> None:
        """Syncs the folder to the disk, where the system lets a folder be opened."""
        if not hasattr(os, "O_DIRECTORY"):
            return
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def answered_keys(self) -> Iterator[str]:
        """Keys of the calls of settled parts that have an answer."""
        for part in self.parts.values():
            if part.settled:
                yield from (key for key in self.keys(part.id) if key not in part.unanswered)

    def keys(self, part: str) -> Iterator[str]:
        """Keys of the calls of a part."""
        with self.calls_file(part).open("rb") as lines:
            yield from (json.loads(line)["key"] for line in lines)

    def note(self, event: str, part: BatchPart | None = None, **facts: object) -> None:
        """Writes an event into the journal, on disk when this returns, and applies it to the state.

        Raises:
            StoreError: it cannot be written.
        """
        form = {"event": event, **({} if part is None else {"part": part.id}), **facts}
        with self._writing:
            try:
                self._journal.write(json.dumps(form, separators=(",", ":")).encode() + b"\n")
                self._journal.flush()
                os.fsync(self._journal.fileno())
            except OSError as error:
                raise self.unwritten(error) from error
            self._apply(form)

    def unwritten(self, error: OSError) -> StoreError:
        """The error of a journal or queue that cannot be written."""
        return StoreError(
            f"The queue of the batches in {str(self.folder)!r} cannot be written: {error.strerror or error}.",
            hint="Make room on the disk; the same command goes on from here.",
        )

    def _apply(self, event: Mapping[str, Any]) -> None:
        """Applies one event to the state."""
        kind, part = event["event"], self.parts.get(event.get("part", ""))
        if kind == "begun":
            if event["format"] != FORMAT:
                raise _damaged(self.folder)
            self.id = event.get("id", "")
        elif kind == "spooled":
            size = event["count"], event["size"], cost_in(event.get("worst"))
            new = BatchPart(event["part"], event["target"], *size, form=event["form"])
            self.parts[new.id] = new
        elif kind == "narrowed":
            self.call_limits[event["target"]] = event["most"]
        elif kind == "learnt":
            self.learnt[event["target"]] = event["noticed"]
        elif part is not None:
            self._apply_step(kind, part, event)

    def _apply_step(self, kind: str, part: BatchPart, event: Mapping[str, Any]) -> None:
        if kind == "uploading":
            part.uploading = True
        elif kind == "uploaded":
            part.file = event["file"]
        elif kind == "creating":
            part.creating = event["at"]
        elif kind == "rejected":  # it is certain that there is no batch
            part.creating = None
        elif kind == "created":
            part.batch = event["batch"]
            part.may_be_double = event.get("doubtful", False)
        elif kind == "alone":
            part.may_be_double = False
        elif kind == "settled":
            part.settled = True
            part.spent = cost_in(event.get("spent"))
            for form in cast("list[JsonObject]", event["endings"]):
                self._add_failure(CallFailure(**{name: form[name] for name in _FAILURE_FIELDS}), form["keys"])
            part.unanswered = frozenset(key for form in event["endings"] for key in form["keys"])

    def _add_failure(self, failure: CallFailure, keys: Sequence[str]) -> None:
        for key in keys:
            self._sent[key] = self._sent.get(key, 0) + failure.counts
            self._failures[key] = failure

    def _events(self) -> Iterator[Mapping[str, Any]]:
        """The events in the journal; a last line that a kill left half-written is cut off first."""
        file = self.folder / JOURNAL
        if not file.exists():
            return
        with file.open("rb+") as lines:
            whole = 0
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                whole += len(line)
                yield _event(line, self.folder)
            lines.truncate(whole)

    def _sweep(self) -> None:
        """Removes the files of parts of an unfinished pass, and the upload of each part whose batch is created."""
        for file in self.folder.glob("*.jsonl"):
            name, _, rest = file.name.partition(".")
            part = self.parts.get(name)
            if _PART.fullmatch(name) and (part is None or (rest == "jsonl" and (part.batch or part.settled))):
                file.unlink()


def cost_in(form: object) -> Cost | None:
    """The cost that `form_of` made `form` from."""
    if not isinstance(form, list):
        return None
    nanodollars, tokens, calls = map(int, cast("list[Any]", form))
    return Cost(nanodollars=nanodollars, tokens=tokens, calls=calls)


def form_of(amount: Cost | None) -> list[int] | None:
    """`amount` as the journal holds it."""
    return None if amount is None else [amount.nanodollars, amount.tokens, amount.calls]


def _event(line: bytes, folder: Path) -> Mapping[str, Any]:
    try:
        event: Any = json.loads(line)
        if isinstance(event, dict) and isinstance(cast("dict[str, Any]", event).get("event"), str):
            return cast("dict[str, Any]", event)
    except (ValueError, RecursionError):
        pass
    raise _damaged(folder)


def _damaged(folder: Path) -> StoreError:
    return StoreError(
        f"The folder {str(folder)!r} holds batches in a form that this version does not read.",
        hint="Let the version that began them finish, or remove the folder: its batches are then paid for and lost.",
    )


def _locked(folder: Path) -> FileLock:
    from filelock import FileLock, Timeout

    lock = FileLock(folder / ".lock", blocking=False, thread_local=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout as error:
        raise StoreError(
            f"Another process works on the batches in {str(folder)!r}.",
            hint="Wait for it: it makes the same calls. Or give another folder.",
        ) from error
    except OSError as error:
        raise StoreError(
            f"The folder {str(folder)!r} for batches cannot be written: {error.strerror}.",
            hint="Check the rights to it and the room on the disk, or give another folder.",
        ) from error
    return lock
