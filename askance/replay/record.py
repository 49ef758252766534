"""A record, and the protocol of everything that holds records.

A record is one request and its response, both in canonical form. Who asked, how long it took and how many tries it took
are not part of it: equal requests share one record.
"""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, cast, get_args, runtime_checkable

from askance.chat import ChatResponse, JsonObject, Outcome, key_of
from askance.documents import UnreadableDocument, decoder, parse_json, schema_violation
from askance.errors import DamagedRecord, StoreError
from askance.terminal import printable

if TYPE_CHECKING:
    from types import TracebackType

    from askance.chat import ModelId
    from askance.replay.leases import Leases
    from askance.replay.ledger import Budget, Ledger
    from askance.replay.pace import Pace

RecordKind = Literal["chat", "ocr", "endpoint", "embed", "score", "search"]
KINDS: frozenset[str] = frozenset(get_args(RecordKind))

Mode = Literal["live", "auto", "replay", "refresh"]
"""`live` never reads, `auto` reads or else calls and records, `replay` only reads, `refresh` calls and overwrites."""

DAMAGED_HINT = (
    "`askance cache verify` finds all such records; `askance cache prune --damaged` takes them out, and they are asked "
    "anew."
)

BLOCK = 256
"""Most records that are read at once by their keys."""

MAX_DEPTH = 100
"""Deepest nesting of a request or a response, in levels."""

MAX_INTEGER = 2**64
"""Integers from here on are refused: many readers of JSON would change them."""

MAX_DIGITS = len(str(MAX_INTEGER))
"""Most digits of an integer that is read."""

SCHEMA = Path(__file__).with_name("cassette.schema.json")
"""The JSON Schema of a line of a cassette, and so of a record."""

_EXACT_FLOATS = 2**53
"""Below this every whole float equals an integer exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One request and what came back for it, both in canonical form."""

    kind: RecordKind
    key: str
    """`askance.chat.key_of` of kind and request: 64 hex digits."""
    request: JsonObject
    response: JsonObject
    images: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """By `Shown.key`: `sent` (sha256 of what was sent), `media_type`, `width` and `height` in pixels; of a view also
    `source` (sha256 of the source bytes)."""
    at: str = ""
    """When it was answered: UTC, `2026-01-31T12:00:00Z`; empty where that is not known."""

    @classmethod
    def make(
        cls,
        kind: RecordKind,
        request: Mapping[str, Any],
        response: Mapping[str, Any],
        *,
        images: Mapping[str, Mapping[str, Any]] | None = None,
        at: str | None = None,
    ) -> Record:
        """The record of `response` to `request`, with its key; its time is now unless `at` is given.

        Raises:
            StoreError: a value that cannot be recorded: NaN, an integer beyond 64 bits, too many levels, no JSON.
        """
        plain = plain_object(request)
        return cls(
            kind=kind,
            key=key_of(kind, plain),
            request=plain,
            response=plain_object(response),
            images=plain_object(images or {}),
            at=record_time() if at is None else at,
        )

    @property
    def model(self) -> str:
        """The model that answered, in words; empty where the request names none."""
        return model_name(self.request)

    @property
    def outcome(self) -> Outcome:
        """The call's outcome before anyone reads the text; always `answered` but for chat."""
        if self.kind != "chat":
            return "answered"
        return ChatResponse(finish=self.response.get("finish", "stop"), refusal=self.response.get("refusal")).outcome

    def canonical(self) -> JsonObject:
        """The record as JSON values, without fields at their default."""
        form: JsonObject = {"kind": self.kind, "key": self.key, "request": self.request, "response": self.response}
        if self.images:
            form["images"] = dict(self.images)
        if self.at:
            form["at"] = self.at
        return form

    @classmethod
    def from_canonical(cls, form: Mapping[str, Any]) -> Record:
        """The record that `form` was made from.

        Raises:
            StoreError: `form` is no record. The key itself is not checked here.
        """
        try:
            kind, request, response, images = form["kind"], form["request"], form["response"], form.get("images", {})
            at = form.get("at", "")
            plain = type(request) is dict and type(response) is dict and type(images) is dict
            if plain and kind in KINDS and type(at) is str:
                return cls(
                    kind=kind,
                    key=form["key"],
                    request=cast("JsonObject", request),
                    response=cast("JsonObject", response),
                    images=cast("dict[str, JsonObject]", images),
                    at=at,
                )
        except (AttributeError, KeyError, TypeError):
            pass
        msg = "These values are no record: a record has a kind, a key, a request and a response."
        raise StoreError(msg)

    def to_json(self) -> str:
        """The record as one line of JSON text, equal for equal records."""
        form = self.canonical()
        text = _encode(form)
        # A lone half of a surrogate pair, which a model may write, has no UTF-8 form; escaped it is plain JSON.
        return text if _encodable(text) else _encode_ascii(form)


def record_in_row(key: str, text: Callable[[], str]) -> Record:
    """The record in a row of a store, which anybody may have written.

    Args:
        key: of the row.
        text: gives what is in it, as `Record.to_json` wrote it; a `StoreError` says that it is nothing of the kind.

    Raises:
        DamagedRecord: it is no record, or one with another key.
    """
    try:
        record = Record.from_canonical(parse_json(text(), max_digits=MAX_DIGITS))
    except (UnreadableDocument, StoreError) as error:
        reason = error.message if isinstance(error, StoreError) else f"it {error}"
        raise DamagedRecord(
            f"The row {key[:12]!r} of the store is damaged: {reason.rstrip('.')}.",
            hint=" ".join(filter(None, (getattr(error, "hint", None), DAMAGED_HINT))),
        ) from error
    if record.key != key:
        raise DamagedRecord(
            f"The row {key[:12]!r} of the store holds the record {str(record.key)[:12]!r}.", hint=DAMAGED_HINT
        )
    return record


def recorded_response(text: str, *, key: str, canonical_text: str) -> JsonObject | None:
    """The response in the text of a chat record; the request is compared as text and not decoded.

    Args:
        text: as `Record.to_json` gives it.
        key: of the request.
        canonical_text: the request's canonical JSON.

    Returns:
        None where the text is not exactly that of a record of this request. The caller then decodes all of it.

    Raises:
        ValueError: a part that is decoded is no JSON.
    """
    # Decoding takes less time than a search for the whole request would.
    place = text.find(_BEFORE) + len(_BEFORE)
    end = place + len(canonical_text)
    if not (text.startswith(canonical_text, place) and text.startswith(_AFTER, end)):
        return None
    response: JsonObject
    head: JsonObject
    response, last = _decode(text, end + len(_AFTER))
    before = text[: place - len(',"request":')] + "}"
    head, head_end = _decode(before)
    if type(response) is not dict or type(head) is not dict or text[last:] != "}" or head_end != len(before):
        return None
    return response if head.get("key") == key and type(head.get("images", {})) is dict else None


@runtime_checkable
class Records(Protocol):
    """What holds records, and what goes with them: leases, ledgers, a pace, a folder.

    A class that inherits this is open for reading only, unless it overrides `writable`, `put_all` and `remove`.
    `askance.testing.check_records` holds a store of one's own against what every store does.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """What to call it in a message."""
        ...

    @property
    def writable(self) -> bool:
        """Whether records can be added."""
        return False

    @property
    def remote(self) -> bool:
        """Whether reading and writing wait for a network; event loops then leave both to a thread."""
        return False

    @property
    def folder(self) -> Path | None:
        """The local folder for files that belong to the records, such as pictures; None where there is none."""
        return None

    def beside(self, name: str, /) -> Path:
        """The file or folder `name` beside the records, which need not exist.

        Raises:
            StoreError: the records are in no folder.
        """
        if self.folder is None:
            msg = f"The records of {self.name!r} are in no folder that could keep {name!r} as well."
            raise StoreError(msg, hint="Use the records of a folder (--store, ASKANCE_STORE).")
        return self.folder / name

    @abstractmethod
    def get(self, key: str, /) -> Record | None:
        """The record with this key, or None.

        Raises:
            StoreError: the records cannot be read.
            DamagedRecord: what is stored under the key is no record.
        """
        ...

    def get_all(self, keys: Iterable[str], /) -> dict[str, Record]:
        """By key, in the order of `keys`: the records that are there.

        Raises:
            StoreError: the records cannot be read.
            DamagedRecord: what is stored under one of the keys is no record.
        """
        return {key: record for key in keys if (record := self.get(key)) is not None}

    def answer(self, key: str, canonical_text: str, /) -> JsonObject | None:  # noqa: ARG002  # a store compares the request
        """The response to a chat request, by its key and its canonical JSON; None where it is not on record."""
        record = self.get(key)
        return None if record is None else record.response

    def near(self, key: str, canonical_text: str, /) -> JsonObject | None:
        """Like `answer`, without waiting for a network: None also where that would have to be asked.

        `fetch` brings near what is on record.
        """
        return self.answer(key, canonical_text)

    def fetch(self, keys: Iterable[str], /) -> set[str]:
        """Brings records near, for `near`; gives the keys of those that are on record.

        Raises:
            StoreError: the records cannot be read.
        """
        return {key for key in keys if self.get(key) is not None}

    def put(self, record: Record, /) -> None:
        """Keep the record; one with the same key is replaced.

        Raises:
            StoreError: the records are open for reading only, or the key is not that of the request.
        """
        self.put_all((record,))

    def put_all(self, records: Iterable[Record], /) -> None:  # noqa: ARG002  # nothing is kept
        """Keep all of the records or none; those with the same keys are replaced.

        Raises:
            StoreError: the records are open for reading only, or a key is not that of the request.
        """
        raise _read_only(self)

    def add_all(self, records: Iterable[Record], /) -> dict[str, Record]:
        """Keeps the records whose keys are new, all of them or none.

        Returns:
            By key: what was there already, and stays. A damaged record is replaced.

        Raises:
            StoreError: the records are open for reading only, or a key is not that of the request.
        """
        adding = {record.key: record for record in records}
        there = dict[str, Record]()
        for key in adding:
            with suppress(DamagedRecord):
                if (record := self.get(key)) is not None:
                    there[key] = record
        self.put_all(record for key, record in adding.items() if key not in there)
        return there

    def remove(self, keys: Iterable[str], /) -> None:  # noqa: ARG002  # nothing is removed
        """Deletes the records with these keys, where there are any.

        Raises:
            StoreError: the records are open for reading only.
        """
        raise _read_only(self)

    def leases(self) -> Leases | None:
        """The leases of calls that are not on record; None where no other process can use the records.

        Each call makes new ones, which the caller closes.
        """
        return None

    def ledger(self, name: str, budget: Budget, /) -> Ledger:  # noqa: ARG002  # there is none
        """The ledger of a budget, by its name, which all processes share that use the records; the caller closes it.

        Raises:
            StoreError: no ledger can be kept with the records.
        """
        msg = f"No budget can be kept with the records of {self.name!r}."
        raise StoreError(msg, hint="Keep its ledger in a file: `SqliteLedger(FILE, budget)`.")

    def pace(
        self,
        endpoint: ModelId,  # noqa: ARG002  # none is shared
        own: Pace,
        /,
        *,
        rpm: float | None,  # noqa: ARG002
        tpm: float | None,  # noqa: ARG002
    ) -> Pace:
        """The pace of a model's endpoint that all share who use the records; `own` where each process has its own.

        Args:
            endpoint: a model of it.
            own: what this process learns of the endpoint.
            rpm: calls per minute that are never exceeded; None learns the rate.
            tpm: tokens per minute, likewise.
        """
        return own

    def close(self) -> None:
        """Closes what was opened; a later use opens it again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def keys(self) -> Iterator[str]:
        """The keys, sorted."""
        ...

    def __iter__(self) -> Iterator[Record]:
        """The records, sorted by key."""
        return (record for key in self.keys() if (record := self.get(key)) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self.keys())

    def of_kind(self, kind: RecordKind, /) -> Iterator[Record]:
        """The records of one kind, in the order in which they were added."""
        return (record for record in self if record.kind == kind)

    def readable(self, kind: RecordKind | None = None, /, *, damaged: set[str] | None = None) -> Iterator[Record]:  # noqa: ARG002  # a store has damaged rows
        """The records, or those of one kind, without those that are damaged: for comparisons and counts.

        Args:
            kind: None is every kind.
            damaged: the keys of what is left out are added to it.

        Raises:
            StoreError: the records cannot be read at all.
        """
        return iter(self) if kind is None else self.of_kind(kind)

    def damages(self) -> Iterator[str]:
        """What is wrong with the file that holds the records, in words."""
        return iter(())


def _read_only(records: Records) -> StoreError:
    msg = f"The records of {records.name!r} are open for reading only."
    return StoreError(msg, hint="Import the cassette into a store, or replay what it holds.")


class MemoryStore(Records):
    """Records in memory, which end with the process."""

    def __init__(self, records: Iterable[Record] = (), *, name: str = "memory", writable: bool = True) -> None:
        self._records = {record.key: record for record in records}
        self._name = name
        self._writable = writable

    def __repr__(self) -> str:
        return f"MemoryStore({self._name!r}, {len(self)} records)"

    @property
    def name(self) -> str:
        """What to call it in a message."""
        return self._name

    @property
    def writable(self) -> bool:
        """Whether `put` works."""
        return self._writable

    def get(self, key: str, /) -> Record | None:
        """The record with this key, or None."""
        return self._records.get(key)

    def put_all(self, records: Iterable[Record], /) -> None:
        """Keep all of the records or none; those with the same keys are replaced.

        Raises:
            StoreError: they are open for reading only, or a key is not that of the request.
        """
        if not self._writable:
            super().put_all(records)
        new = {record.key: record for record in records}
        for record in new.values():
            check_key(record)
        self._records |= new

    def remove(self, keys: Iterable[str], /) -> None:
        """Deletes the records with these keys, where there are any.

        Raises:
            StoreError: they are open for reading only.
        """
        if not self._writable:
            super().remove(keys)
        for key in keys:
            self._records.pop(key, None)

    def keys(self) -> Iterator[str]:
        """The keys, sorted."""
        return iter(sorted(self._records))

    def __len__(self) -> int:
        return len(self._records)

    def of_kind(self, kind: RecordKind, /) -> Iterator[Record]:
        """The records of one kind, in the order in which they were added."""
        return iter([record for record in self._records.values() if record.kind == kind])


def in_blocks(keys: Iterable[str]) -> Iterator[list[str]]:
    """The keys, in blocks of `BLOCK`."""
    rest = iter(keys)
    while block := list(islice(rest, BLOCK)):
        yield block


def record_time(time: datetime | None = None) -> str:
    """A time with a zone, by default now, as records write it: UTC, `2026-01-31T12:00:00Z`."""
    return (time or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def model_name(request: Mapping[str, Any]) -> str:
    """The model that a canonical request is addressed to, in words: its name, or `provider:model@endpoint`."""
    model = request.get("model")
    if isinstance(model, str):
        return model
    if not isinstance(model, Mapping):
        return ""
    parts = {str(name): str(value) for name, value in cast("Mapping[Any, Any]", model).items()}
    if "name" in parts:
        return parts["name"]
    name = ":".join(parts[part] for part in ("provider", "model") if part in parts)
    return f"{name}@{parts['endpoint']}" if "endpoint" in parts else name


def check_key(record: Record) -> None:
    """Refuses a record whose key is not that of its request.

    Raises:
        StoreError: the key is another request's, or the request is no JSON.
    """
    try:
        key = key_of(record.kind, record.request)
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"The request of record {record.key[:12]!r} is no JSON: {error}."
        raise StoreError(msg) from error
    if key != record.key:
        msg = f"The key {record.key[:12]!r} is not that of the request beside it, {key[:12]!r}."
        raise StoreError(msg)


def check_schema(form: Mapping[str, Any]) -> None:
    """Checks a line against the schema that ships with the package.

    Raises:
        StoreError: it does not fit; the message names the place.
    """
    if (wrong := schema_violation(form, SCHEMA, whole="the record")) is not None:
        raise StoreError(printable(wrong))


def check_record(record: Record) -> None:
    """Refuses a record that can be read, but has a wrong key or violates the schema.

    Raises:
        StoreError: the key is not its request's, or its form does not fit the schema.
    """
    check_key(record)
    check_schema(plain_object(record.canonical()))


def refuse_damaged(record: Record, *, hint: str = DAMAGED_HINT) -> None:
    """Refuses what `check_record` refuses, with an error that calls the record damaged.

    Raises:
        DamagedRecord: the key is not its request's, or its form does not fit the schema.
    """
    try:
        check_record(record)
    except StoreError as error:
        msg = f"The record {record.key[:12]!r} is damaged: {error.message.rstrip('.')}."
        raise DamagedRecord(msg, hint=hint) from error


def plain_object(form: Mapping[str, Any]) -> JsonObject:
    """`form` as plain dicts, lists and numbers, which are the same after a round trip through JSON text.

    Raises:
        StoreError: a value that cannot be recorded.
    """
    return cast("JsonObject", _plain(form, MAX_DEPTH))


_BEFORE, _AFTER = '"kind":"chat","request":', ',"response":'
_decode = decoder(max_digits=MAX_DIGITS).raw_decode
_encode, _encode_ascii = (
    json.JSONEncoder(ensure_ascii=ascii_only, allow_nan=False, sort_keys=True, separators=(",", ":")).encode
    for ascii_only in (False, True)
)


def _plain(value: object, depth: int) -> object:
    kind = type(value)
    if kind is str or value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, (int, float)):
        return _number(value)
    if not depth:
        msg = f"A value nested deeper than {MAX_DEPTH} levels cannot be recorded."
        raise StoreError(msg)
    # The plain types first: `isinstance` with an abstract class is slow.
    if kind is dict or isinstance(value, Mapping):
        return {_name(name): _plain(item, depth - 1) for name, item in cast("Mapping[object, object]", value).items()}
    if kind is list or (isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray))):
        return [_plain(item, depth - 1) for item in cast("Sequence[object]", value)]
    msg = f"A {kind.__name__} cannot be recorded: it is no JSON value."
    raise StoreError(msg)


def _number(value: float) -> float:
    if isinstance(value, float):
        if not math.isfinite(value):
            msg = f"The number {value!r} cannot be recorded: JSON has no such number."
            raise StoreError(msg)
        return int(value) if value.is_integer() and abs(value) < _EXACT_FLOATS else value
    if abs(value) >= MAX_INTEGER:
        msg = "An integer beyond 64 bits cannot be recorded."
        raise StoreError(msg)
    return value


def _name(name: object) -> str:
    if isinstance(name, str):
        return name
    msg = f"The field name {name!r} cannot be recorded: it is no text."
    raise StoreError(msg)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
