"""Who may ask for the calls of a job: other runs on the same records ask for them as well, and each is paid for once.

From when it is queued until its batch is asked for, a call's lease is held by this process, so that it is free as soon
as the process is gone. From then on it is held by the batch, whoever lives, until the answer is on record.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from askance.errors import BadRecord

if TYPE_CHECKING:
    from askance.models.batch.jobs import Job, Part
    from askance.models.recorder import Recorder
    from askance.replay import Leases


class Claims:
    """The leases of one job's calls; from any thread.

    Args:
        job: the state on disk.
        recorder: the records, and the leases beside them.
    """

    def __init__(self, job: Job, recorder: Recorder) -> None:
        self._job = job
        self._recorder = recorder
        self._own: set[str] = set()
        """Parts whose leases this process has taken."""

    @property
    def _leases(self) -> Leases | None:
        return self._recorder.leases

    def take(self, key: str) -> bool:
        """Takes the lease of a call that is to be queued; False where it is on record by now or another run asks.

        Raises:
            CallError: what is on record cannot be read.
        """
        leases, old = self._leases, self._recorder.superseded(key)
        if leases is not None and not leases.take(key):
            return False
        try:
            missing = self._recorder.answered_meanwhile(key, old) is None
        except BaseException:
            self.drop([key])
            raise
        if not missing:
            self.drop([key])
        return missing

    def drop(self, keys: Iterable[str]) -> None:
        """Frees what `take` took."""
        leases = self._leases
        if leases is not None:
            for key in keys:
                leases.release(key)

    def spooled(self, part: str) -> None:
        """Notes that a part is complete whose calls were all taken."""
        self._own.add(part)

    def claim(self, part: Part) -> bool:
        """Makes sure that this process has the leases of a part that is in no batch, and nothing of it is on record.

        Where that cannot be it has none of them.
        """
        leases = self._leases
        if leases is None:
            return True
        had, taken = part.id in self._own, list[str]()
        for key in self._job.keys(part.id):
            held = had and leases.owns(key)
            if not held and leases.take(key, of=part.id):
                taken.append(key)
                held = True
            if not held or self._answered(key):
                self.drop(taken)
                self.let_go(part)
                return False
        self._own.add(part.id)
        leases.let_go(part.id)
        return True

    def entrust(self, part: Part) -> bool:
        """Has the batch hold what this process holds; False where another one has taken something over meanwhile."""
        leases = self._leases
        if leases is None:
            return True
        try:
            done = leases.entrust(part.id, self._job.keys(part.id), kept=self._job.calls(part.id))
        except OSError:
            return True
        if done:
            self._own.discard(part.id)
        return done

    def let_go(self, part: Part) -> None:
        """Frees what is held for a part, by this process or by its batch."""
        if part.id in self._own:
            self._own.discard(part.id)
            self.drop(self._job.keys(part.id))
        if self._leases is not None:
            self._leases.let_go(part.id)

    def open(self, key: str) -> bool:
        """Whether a call that another run asked for is on record by now, or is free."""
        return self._answered(key) or self._leases is None or self._leases.free(key)

    def _answered(self, key: str) -> bool:
        with suppress(BadRecord):
            return self._recorder.answered_meanwhile(key, self._recorder.superseded(key)) is not None
        return False
