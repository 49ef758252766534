"""A process as one that holds leases: files that it keeps locked, and a link to one of them for each lease.

The lock falls when the process dies, in whatever way. A rising number that it writes into its files every few seconds
tells a process that lives from one that is stopped.
"""

from __future__ import annotations

import atexit
import errno
import os
import secrets
import threading
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover  # not a POSIX system
    fcntl = None

BEAT = 5.0
"""Seconds between two signs of life."""
_TRIES = 8


class Holder:
    """This process.

    Args:
        folder: of the leases.

    Raises:
        OSError: there can be no file for it.
    """

    def __init__(self, folder: Path) -> None:
        if fcntl is None:
            raise OSError
        folder.mkdir(parents=True, exist_ok=True)
        _clear(folder)
        self.process = os.getpid()
        self._folder = folder
        self._files: dict[int, tuple[Path, int]] = {}
        """By inode: name and descriptor. A file system takes so many links to one file, such as 65,000."""
        self._growing = threading.Lock()
        self._file = self._grown()
        self._stopped = threading.Event()
        threading.Thread(target=self._beat, name="askance-leases", daemon=True).start()
        atexit.register(self.stop)

    def take(self, lease: str) -> bool:
        """Whether `lease` was free and now is held.

        Raises:
            OSError: it cannot be written.
        """
        file = self._file
        try:
            os.link(file, lease)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno != errno.EMLINK:
                raise
            with self._growing:
                if self._file == file:
                    self._file = self._grown()
            return self.take(lease)
        return True

    def owns(self, lease: str) -> bool:
        """Whether this process holds `lease`."""
        return inode_of(lease) in self._files

    def release(self, lease: str) -> bool:
        """Frees `lease`; False where another one has taken it over."""
        with suppress(OSError):
            found = inode_of(lease)
            if found not in self._files:
                return found is None
            Path(lease).unlink()
        return True

    def stop(self) -> None:
        """Lets go of everything."""
        atexit.unregister(self.stop)
        if not self._stopped.is_set() and os.getpid() == self.process:
            self._stopped.set()
            for file, descriptor in self._files.values():
                with suppress(OSError):
                    file.unlink(missing_ok=True)
                os.close(descriptor)

    def _grown(self) -> Path:
        """A new file of this process.

        Raises:
            OSError: there can be none.
        """
        for _ in range(_TRIES):
            file = self._folder / f"{secrets.token_hex(8)}.holder"
            descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
            inode = os.fstat(descriptor).st_ino
            # Who clears away may have taken it for a dead one's before it was locked.
            if locked(descriptor) and inode_of(str(file)) == inode:
                self._files = {**self._files, inode: (file, descriptor)}
                return file
            os.close(descriptor)
        raise OSError

    def _beat(self) -> None:
        number = 0
        while not self._stopped.wait(BEAT):
            number += 1
            for _, descriptor in self._files.values():
                with suppress(OSError):
                    os.pwrite(descriptor, f"{number}\n".encode(), 0)


def look(lease: str | Path) -> tuple[int, bytes | None] | None:
    """Who holds a lease, and the last sign of life, None where the holder has died; None where it has been freed."""
    try:
        descriptor = os.open(lease, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        inode = os.fstat(descriptor).st_ino
        return inode, None if locked(descriptor, shared=True) else os.read(descriptor, 64)
    finally:
        os.close(descriptor)


def locked(descriptor: int, *, shared: bool = False) -> bool:
    """Whether the open file could be locked, which it is until it is closed."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def inode_of(file: str) -> int | None:
    """Which file it is; None where there is none."""
    try:
        return os.stat(file).st_ino  # noqa: PTH116
    except OSError:
        return None


def _clear(folder: Path) -> None:
    """Removes the files of holders that have died; their leases go when they are wanted."""
    for file in folder.glob("*.holder"):
        with suppress(OSError):
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if locked(descriptor):
                    file.unlink(missing_ok=True)
            finally:
                os.close(descriptor)
