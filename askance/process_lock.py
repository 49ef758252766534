"""Locks on files and folders that end with the process that holds them, even if it is killed.

filelock, which locks run folders, is not used here: it cannot lock a folder, and its lock on the file of a process that
has ended would make that file again.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from weakref import WeakSet

try:
    import fcntl
except ImportError:  # pragma: no cover  # not a POSIX system
    fcntl = None


def has_locks() -> bool:
    """Whether this system has such locks."""
    return fcntl is not None


class ProcessLock:
    """The lock on a file or a folder, held from now until `close` or the end of this process.

    Args:
        path: a file, which is made if it is missing, or a folder.

    Raises:
        BlockingIOError: somebody else holds it.
        OSError: the file cannot be opened, or there are no such locks here.
    """

    def __init__(self, path: Path) -> None:
        create = 0 if path.is_dir() else os.O_CREAT
        self._descriptor: int | None = _locked(path, create)
        _held.add(self)

    def close(self) -> None:
        """Releases the lock; the file stays."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def has_ended(path: Path, *, delete: bool = True) -> bool:
    """Whether the process that held the lock on a file has ended; if so, the file is deleted, unless it may not be."""
    try:
        descriptor = _locked(path)
    except FileNotFoundError:
        return True
    except BlockingIOError:
        return False
    try:
        if delete:
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)
    return True


def _locked(path: Path, create: int = 0) -> int:
    """The descriptor of the file, open and locked."""
    if fcntl is None:
        raise OSError(errno.ENOTSUP, "This system has no POSIX locks")
    # Non-blocking, since opening a pipe could hang.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | create, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


_held: WeakSet[ProcessLock] = WeakSet()


def _leave_to_parent() -> None:
    """Closes the locks that a fork has copied: a child that outlives its parent would otherwise keep them."""
    for lock in list(_held):
        lock.close()


if fcntl is not None:
    os.register_at_fork(after_in_child=_leave_to_parent)
