"""The bounds of a run's batches, and how far they have come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from askance.models.batch.queue import MAX_BYTES, MAX_CALLS

Phase = Literal["queueing", "sent", "waiting", "settled", "trouble"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPolicy:
    """Bounds of a run's batches."""

    most_calls: int = MAX_CALLS
    """Calls that a batch may hold."""
    most_bytes: int = MAX_BYTES
    """Bytes that its file may have."""
    tries: int = 3
    """How often a call is sent until it counts as failed."""
    first_poll: float = 5.0
    """Seconds until a new batch is looked up; the time between two look-ups grows up to `poll`."""
    poll: float = 60.0
    """Most seconds between two look-ups of a batch."""
    grace: float = 60.0
    """Seconds within which a batch appears in the list whose creation got no answer."""
    requests: int = 8
    """Tries of a request other than a poll; polls go on for as long as a batch may take."""
    max_wait: float = 60.0
    """Most seconds between two tries."""
    at_once: int = 2
    """Uploads and downloads at a time."""
    ahead: int = 4
    """Parts that may wait for their upload; with more the pass waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProgress:
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
    """Ids of the batches under way."""
    words: str = ""
    """The error, in the phase `trouble`."""
