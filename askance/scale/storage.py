"""The files of a corpus: in a folder that all workers reach by its path, or on object storage by an address of fsspec.

In a folder shards are read where they lie. From an address a worker fetches what there is of a shard onto its own disk,
and uploads it from there.
"""

from __future__ import annotations

import logging
import time
from _thread import interrupt_main
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any, TypeVar

from askance.errors import MissingExtra, StoreError, UsageError, boundary
from askance.evals.run_folder import write_whole

T = TypeVar("T")

LOCK = ".lock"
BEAT = 5.0
"""Seconds between two signs of life of the process that holds an address."""
EXPIRED = 20.0
"""Seconds without one, after which another process takes its place."""
SETTLED = 2.0
"""Seconds after which, of processes that took one place at once, the last to write is known."""

_log = logging.getLogger("askance")


class Storage:
    """Files by names such as `receipts/00017.jsonl`, in a folder or at an address.

    Args:
        place: a path, or an address such as `s3://runs/ads`, whose keys and endpoint come from the environment.
    """

    def __init__(self, place: str | Path) -> None:
        self.path = None if is_address(place) else Path(place).absolute()
        """The folder; None at an address."""
        self.place = str(self.path or place).rstrip("/")
        self._known: dict[str, tuple[str, Any]] = {}

    def names(self, folder: str = "") -> list[str]:
        """What is in a folder; nothing where there is none."""
        return [name.rpartition("/")[2] for name in self._listed(folder)]

    def read(self, name: str) -> bytes | None:
        """A file; None where there is none."""
        with self._faults("read"), suppress(FileNotFoundError):
            return self._files.cat_file(self._at(name))
        return None

    def read_all(self, folder: str, of: Callable[[str, bytes], T]) -> dict[str, T]:
        """By name, what `of` makes of the name and content of each file of a folder; it is read again if it changed."""
        listed = {name: repr(facts) for name, facts in self._listed(folder).items()}
        changed = [name for name, facts in listed.items() if self._known.get(name, ("",))[0] != facts]
        with self._faults("read"):
            contents: Sequence[Any] = self._files.cat_ranges(changed, None, None, on_error="return") if changed else ()
        for name, content in zip(changed, contents, strict=True):
            if isinstance(content, bytes):  # else it was removed meanwhile
                self._known[name] = listed[name], of(name.rpartition("/")[2], content)
        return {name.rpartition("/")[2]: self._known[name][1] for name in listed if name in self._known}

    def age(self, name: str) -> float:
        """Seconds since a file was written."""
        with self._faults("read"):
            return max(0.0, time.time() - self._files.modified(self._at(name)).timestamp())

    def size(self, name: str) -> int:
        """Bytes of a file; 0 where there is none."""
        with self._faults("read"), suppress(FileNotFoundError):
            return self._files.size(self._at(name)) or 0
        return 0

    def write(self, name: str, content: str) -> None:
        """Writes a file, whole or not at all."""
        if self.path is not None:
            write_whole(self.path / name, content)
            return
        with self._faults("written"):
            self._files.pipe_file(self._at(name), content.encode("utf-8", "backslashreplace"))

    def remove(self, name: str) -> None:
        """Removes a file or a folder, if it is there."""
        with self._faults("written"), suppress(FileNotFoundError):
            self._files.rm(self._at(name), recursive=True)

    def fetch(self, name: str, into: Path) -> None:
        """Brings a file, or the files below a folder, onto this disk."""
        with self._faults("read"):
            found: list[str] = self._files.find(self._at(name))
            files = [into / file.removeprefix(self._at(name)).lstrip("/") for file in found]
            if outside := [file for file in files if ".." in file.parts]:
                raise StoreError(f"{str(outside[0])!r} is no name of a file.", hint=f"Remove it from {self.place!r}.")
            for folder in {file.parent for file in files}:
                folder.mkdir(parents=True, exist_ok=True)
            self._files.get(found, [*map(str, files)])

    def send(self, name: str, folder: Path) -> None:
        """Uploads the files below a folder of this disk, unless it is the folder itself."""
        if self.path is None:
            files = [file for file in folder.rglob("*") if file.is_file() and not file.name.endswith((LOCK, ".part"))]
            with self._faults("written"):
                targets = [self._at(f"{name}/{file.relative_to(folder).as_posix()}") for file in files]
                self._files.put([*map(str, files)], targets)

    @contextmanager
    def made(self, name: str) -> Generator[Path]:
        """A new folder on this disk, in place of one that there is; it is uploaded at the end."""
        self.remove(name)
        with TemporaryDirectory(prefix="askance-") as beside:
            folder = (self.path or Path(beside)) / name
            folder.mkdir(parents=True)
            yield folder
            self.send(name, folder)

    @contextmanager
    def held(self) -> Generator[None]:
        """Within it no other process holds these files.

        Raises:
            StoreError: another does.
        """
        if self.path is None:
            with _Lease(self):
                yield
            return
        from filelock import FileLock, Timeout

        lock = FileLock(self.path / LOCK, blocking=False)
        try:
            lock.acquire()
        except Timeout as error:
            raise _taken(self.place) from error
        try:
            yield
        finally:
            lock.release()

    @property
    def _files(self) -> Any:
        return self._opened[0]

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        """The file system of fsspec, and where in it the files are.

        Raises:
            MissingExtra: the package for such addresses is not installed.
            UsageError: there are no such addresses.
        """
        import fsspec  # pyright: ignore[reportMissingTypeStubs]

        library: Any = fsspec
        if self.path is not None:
            return library.filesystem("file"), self.place
        try:
            files, root = library.url_to_fs(self.place, use_listings_cache=False)
        except ImportError as error:
            kind = self.place.partition("://")[0]
            raise MissingExtra(
                f"Addresses such as {self.place!r} need another package: {error}.",
                hint="pip install 'askance[s3]'" if kind.startswith("s3") else "Every worker needs it as well.",
            ) from error
        except ValueError as error:
            raise UsageError(
                f"{self.place!r} is no address of storage: {error}.", hint="Name a folder, or s3://BUCKET/NAME."
            ) from error
        if hasattr(files, "auto_mkdir"):  # where folders have to be made
            files.auto_mkdir = True
        return files, root

    def _at(self, name: str) -> str:
        return f"{self._opened[1]}/{name}".rstrip("/")

    def _listed(self, folder: str) -> dict[str, Mapping[str, Any]]:
        with self._faults("read"), suppress(FileNotFoundError):
            return {each["name"]: each for each in self._files.ls(self._at(folder), detail=True)}
        return {}

    @contextmanager
    def _faults(self, what: str) -> Generator[None]:
        with boundary(
            lambda words: StoreError(
                f"{self.place!r} cannot be {what}: {words}.",
                hint="Check the address, its keys and rights, or the disk.",
            )
        ):
            yield


class _Lease:
    """Holds an address by a file that changes while its writer lives. Nobody's clock is compared with another's."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._mine = token_hex(8)
        self._ended = Event()
        self._thread = Thread(target=self._live, name="askance-lock", daemon=True)

    def __enter__(self) -> None:
        self._wait()
        self._storage.write(LOCK, self._mine)
        time.sleep(SETTLED)
        if not self._holds():
            raise _taken(self._storage.place)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        with suppress(StoreError):  # it expires
            if self._holds():
                self._storage.remove(LOCK)

    def _wait(self) -> None:
        """Waits until it is known that the process of a file has ended.

        Raises:
            StoreError: it lives.
        """
        found, until = self._storage.read(LOCK), time.monotonic() + EXPIRED
        if found is not None:
            _log.warning("%s: waiting %.0f s for a sign of another process.", self._storage.place, EXPIRED)
        while found is not None and time.monotonic() < until:
            time.sleep(min(1.0, EXPIRED / 10))
            now = self._storage.read(LOCK)
            if now not in {found, None}:
                raise _taken(self._storage.place)
            found = now

    def _holds(self) -> bool:
        return (self._storage.read(LOCK) or b"").startswith(self._mine.encode())

    def _live(self) -> None:
        beats = 0
        while not self._ended.wait(BEAT):
            with suppress(StoreError):  # it may be reached again before it is taken
                if not self._holds():
                    _log.error("Another process has taken %s: this one gave no sign in time.", self._storage.place)
                    interrupt_main()
                    return
                beats += 1
                self._storage.write(LOCK, f"{self._mine} {beats}")


def is_address(place: str | Path) -> bool:
    """Whether a place is an address, and no path."""
    return "://" in str(place)


def _taken(place: str) -> StoreError:
    return StoreError(
        f"Another process is reading the corpus in {place!r}.",
        hint="Wait for it (`askance scale watch` shows how far it is), or give another `--out`.",
    )
