"""The files of a corpus: in a folder that all workers reach by its path, or on object storage by an address of fsspec.

In a folder shards are read where they lie. From an address a worker fetches what there is of a shard onto its own disk,
and uploads it from there.
"""

from __future__ import annotations

import logging
import re
import signal
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from errno import EDQUOT, ENOSPC
from functools import cached_property
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory, gettempdir
from threading import Event, Thread, main_thread
from typing import Any, TypeVar

from askance.errors import MissingExtra, StoreError, UsageError, boundary
from askance.evals.run_folder import write_whole, writing_to
from askance.replay.address import without_password

T = TypeVar("T")

LOCK = ".lock"
BEAT = 5.0
"""Seconds between two signs of life of the process that holds an address."""
EXPIRED = 20.0
"""Seconds without one, after which another process takes its place."""
SETTLED = 2.0
"""Seconds to wait after taking the lock, before looking who wrote last."""
_NO_FILES = re.compile(r"[^/]{2,}://?/*|[^/]{2,}:/[^/].*|/+|.*://.*[*?\[].*")
"""Places that name no folder and no address of files: a lone `s3://` or `/`, `Path("s3://runs")`, a pattern."""

_log = logging.getLogger("askance")


class Storage:
    """Files by names such as `receipts/00017.jsonl`, in a folder or at an address.

    Args:
        place: a path, or an address such as `s3://runs/ads`, whose keys and endpoint come from the environment.

    Raises:
        UsageError: it is neither.
    """

    def __init__(self, place: str | Path) -> None:
        if _NO_FILES.fullmatch(str(place)):
            raise UsageError(
                f"{without_password(str(place))!r} is neither a folder for a corpus nor an address of one.",
                hint="Name a folder, or s3://BUCKET/NAME. An address is a text without the characters * ? [.",
            )
        self.path = None if is_address(place) else Path(place).absolute()
        """The folder; None at an address."""
        self.place = str(self.path or place).rstrip("/")
        self.shown = str(without_password(self.place))
        """The place as people may see it."""
        self._known: dict[str, tuple[str, Any]] = {}

    def names(self, folder: str = "") -> list[str]:
        """What is in a folder; nothing where there is none."""
        return [*self._listed(folder)]

    def read(self, name: str) -> bytes | None:
        """A file; None where there is none."""
        with self._faults("read"), suppress(FileNotFoundError):
            return self._files.cat_file(self._at(name))
        return None

    def read_all(self, folder: str, names: Collection[str], of: Callable[[str, bytes], T]) -> dict[str, T]:
        """Parses each file of a folder; what has not changed is not read again.

        Args:
            folder: that has the files.
            names: of the files; others are passed over.
            of: makes a value of the name and the content of a file.
        """
        listed = {name: repr(facts) for name, facts in self._listed(folder).items() if name in names}
        changed = [name for name, facts in listed.items() if self._known.get(name, ("",))[0] != facts]
        with self._faults("read"):
            paths = [self._at(f"{folder}/{name}") for name in changed]
            contents: Sequence[Any] = self._files.cat_ranges(paths, None, None, on_error="return") if paths else ()
            for content in contents:
                if isinstance(content, Exception) and not isinstance(content, FileNotFoundError):
                    raise content
        for name, content in zip(changed, contents, strict=True):
            if isinstance(content, bytes):  # else it was removed meanwhile
                self._known[name] = listed[name], of(name, content)
        return {name: self._known[name][1] for name in listed if name in self._known}

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
        """Brings a file, or the files below a folder, onto this disk: all of it, or nothing where that fails."""
        with self._faults("read"):
            found: list[str] = self._files.find(self._at(name))
            inside = [file.removeprefix(self._at(name)) for file in found]
            if outside := [file for file in inside if ".." in file.split("/")]:
                raise StoreError(f"{outside[0]!r} is no name of a file.", hint=f"Remove it from {self.shown!r}.")
            if not found:
                return
            with _filling(into.parent):
                into.parent.mkdir(parents=True, exist_ok=True)
                with TemporaryDirectory(dir=into.parent, prefix=".part-") as beside:
                    part = Path(beside) / into.name
                    targets = [Path(f"{part}{file}") for file in inside]
                    for folder in {target.parent for target in targets}:
                        folder.mkdir(parents=True, exist_ok=True)
                    self._files.get(found, [*map(str, targets)])
                    if into.is_dir():
                        into.replace(Path(beside) / f"{into.name}.old")
                    part.replace(into)

    def send(self, name: str, folder: Path) -> None:
        """Uploads the files below `folder` to an address; a folder of a corpus has them already."""
        if self.path is None:
            files = [file for file in folder.rglob("*") if file.is_file() and not file.name.endswith((LOCK, ".part"))]
            with self._faults("written"):
                targets = [self._at(f"{name}/{file.relative_to(folder).as_posix()}") for file in files]
                self._files.put([*map(str, files)], targets)

    @contextmanager
    def new_folder(self, name: str) -> Generator[Path]:
        """A new folder on this disk, in place of one that there is; it is uploaded at the end."""
        self.remove(name)
        if self.path is not None:
            (self.path / name).mkdir(parents=True)
            yield self.path / name
            return
        with writing_to(Path(gettempdir())), TemporaryDirectory(prefix="askance-") as folder:
            yield Path(folder)
            self.send(name, Path(folder))

    @contextmanager
    def locked(self) -> Generator[None]:
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
            raise _taken(self.shown) from error
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
                f"Addresses such as {self.shown!r} need another package: {error}.",
                hint="pip install 'askance[s3]'" if kind.startswith("s3") else "Every worker needs it as well.",
            ) from error
        except ValueError as error:
            raise UsageError(
                f"{self.shown!r} is no address of storage: {error}.", hint="Name a folder, or s3://BUCKET/NAME."
            ) from error
        if hasattr(files, "auto_mkdir"):  # where folders have to be made
            files.auto_mkdir = True
        return files, root

    def _at(self, name: str) -> str:
        return f"{self._opened[1]}/{name}".rstrip("/")

    def _listed(self, folder: str) -> dict[str, Mapping[str, Any]]:
        """By name, what is known of each file of a folder."""
        with self._faults("read"), suppress(FileNotFoundError):
            listed = {each["name"].rpartition("/")[2]: each for each in self._files.ls(self._at(folder), detail=True)}
            return {name: facts for name, facts in listed.items() if name}  # a bucket may list the folder itself
        return {}

    @contextmanager
    def _faults(self, what: str) -> Generator[None]:
        with boundary(
            lambda words: StoreError(
                f"{self.shown!r} cannot be {what}: {words}.",
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
            raise _taken(self._storage.shown)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        with suppress(StoreError):  # it expires
            if self._holds():
                self._storage.remove(LOCK)

    def _wait(self) -> None:
        """Waits until the lock is gone, or has not changed for `EXPIRED` seconds.

        Raises:
            StoreError: it changed: its process lives.
        """
        found, until = self._storage.read(LOCK), time.monotonic() + EXPIRED
        if found is not None:
            _log.warning("%s: waiting %.0f s for a sign of another process.", self._storage.shown, EXPIRED)
        while found is not None and time.monotonic() < until:
            time.sleep(min(1.0, EXPIRED / 10))
            now = self._storage.read(LOCK)
            if now not in {found, None}:
                raise _taken(self._storage.shown)
            found = now

    def _holds(self) -> bool:
        return (self._storage.read(LOCK) or b"").startswith(self._mine.encode())

    def _live(self) -> None:
        beats = 0
        while not self._ended.wait(BEAT):
            with suppress(StoreError):  # it may be reached again before it is taken
                if not self._holds():
                    _log.error("Another process has taken %s: this one gave no sign in time.", self._storage.shown)
                    if main := main_thread().ident:  # the signal wakes it, whatever it waits for
                        signal.pthread_kill(main, signal.SIGINT)
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


@contextmanager
def _filling(disk: Path) -> Generator[None]:
    """Names the disk that is full, where files are read from elsewhere."""
    try:
        yield
    except OSError as error:
        if error.errno not in {ENOSPC, EDQUOT}:
            raise
        with writing_to(disk):
            raise
