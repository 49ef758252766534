"""What bounds a run's batches, and what is told of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from askance.models.batch.queue import MOST_BYTES, MOST_CALLS

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
