"""Writing a run's folder: `RunFolder` holds its lock, adds a line for each sample, and ends it with totals and records.

`run.json` holds the configuration and the totals, `samples.jsonl` one line for each sample, `rankings` and `matrices`
the attachments of lines, `calls.jsonl` the records as a cassette. The same command finds the folder again and finishes
the run. If the last line was cut off, it is dropped and its sample is asked again. `askance.evals.run` reads folders;
`askance.evals.run_format` names and checks the files.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import IO, TYPE_CHECKING, Any, cast

from askance import __version__, replay
from askance.chat import JsonObject, key_of
from askance.errors import StoreError, UsageError
from askance.evals.run_configuration import difference_in_words
from askance.evals.run_format import (
    CALLS,
    COUNTERS,
    DESCRIPTION,
    FORMAT,
    LOCK,
    PLACES,
    PROMPTS,
    READ_BY,
    SAMPLES,
    SEAL,
    TRIALS,
    check_files,
)
from askance.evals.sample import ATTACHMENTS, attachments_of, reads_of
from askance.evals.seal import has_seal, seal_of
from askance.models.counters import counts_form
from askance.models.prices import list_version
from askance.nodes.reply import READERS

if TYPE_CHECKING:
    from filelock import FileLock

    from askance.evals.attachment import Attachment
    from askance.models import Counters
    from askance.replay import Records

ROOM = "Make room on the disk, or check the rights to the folder; then run the same command again."


class RunFolder:
    """The folder of a run, which one process at a time can write.

    Args:
        path: of the folder; it is made if it is missing.
        configuration: everything that decides the answers. A folder with a sample takes no other configuration.
        name: gives the name of the sample that a line is about.
        keeps: whether the answered line of an earlier process is still valid; by default it is.
        facts: further entries of `run.json` that do not tell runs apart.

    Raises:
        UsageError: the folder holds another run, or something else.
        StoreError: another process is writing the folder, or it cannot be written.
    """

    def __init__(
        self,
        path: Path,
        configuration: JsonObject,
        *,
        name: Callable[[Mapping[str, Any]], str] = lambda line: str(line["image"]),
        keeps: Callable[[JsonObject], bool] | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self.path = path
        self._name = name
        self._facts: JsonObject = dict(facts or {})
        self.configuration = configuration
        self.hash = key_of("run", configuration)
        self.finished: Mapping[str, JsonObject] = {}
        """Answered lines that earlier processes wrote, by name of the sample; each is read when it is looked up."""
        self._added = False
        self._keeping = Lock()  # a thread may keep records while the run is finished
        self._lock = _locked(path)
        try:
            check_files(path)
            self._start()
            places: dict[str, int] = {}
            count, whole = 0, cache(attrgetter("whole"))  # samples may share an attachment
            for count, (place, line) in enumerate(self._lines(), start=1):  # noqa: B007  # the last is how many there are
                with suppress(KeyError):  # a line that lacks its name is none of this run
                    keep = line["outcome"] == "answered" and (keeps is None or keeps(line))
                    if keep and _has_attachments(line, path, whole):
                        places[name(line)] = place
            if len(places) < count:
                self._begin_again()
            self._samples = self._rewritten(Lines(path / SAMPLES, places))
        except BaseException:
            self._lock.release()
            raise

    def add(self, line: Mapping[str, Any], attachments: Iterable[Attachment] = ()) -> JsonObject:
        """Writes a sample's attachments to the disk, then its line; returns the line as it will be read."""
        text = json.dumps(line, ensure_ascii=False)
        if self._name(line) not in self.finished:
            keep_attachments(self.path, attachments)
            with writing_to(self.path / SAMPLES):
                self._write(self._samples, text)
            self._added = True
        return json.loads(text)

    def finish(
        self, records: Records | None, *, also: Collection[str] = (), more: Mapping[str, Any] | None = None
    ) -> JsonObject:
        """Writes the records that the lines refer to, and the totals; returns the totals.

        The time at which the run was finished changes only if a line was added.

        Args:
            records: where the answers are; records that are in the folder already stay.
            also: keys of further records of the run, such as the capabilities of its endpoints.
            more: further entries of `run.json`.
        """
        self._samples.close()
        keys, outcomes = set[str](also), Counter[str]()
        ended: list[tuple[str, str | None]] = []
        for line in self.lines():
            keys.update(calls_of(line))
            outcomes[str(line["outcome"])] += 1
            ended.append((line["outcome"], line.get("rung")))
        recorded = self._keep_records(keys, records)
        totals: JsonObject = {
            "samples": outcomes.total(),
            "outcomes": dict(sorted(outcomes.items())),
            **({"read": reads} if (reads := reads_of(ended)) else {}),
            "records": recorded,
        }
        before = None if self._added else self._there().get("finished")
        self._save({"finished": before or _now(), "totals": totals, **(more or {})})
        self.close()
        return totals

    def keep_records(self, records: Records | None) -> None:
        """Writes the records that the lines so far refer to, so that the folder is all that another machine needs."""
        self._keep_records({key for line in self.lines() for key in calls_of(line)}, records)

    def counted(self, counts: Mapping[str, Counters]) -> None:
        """Adds what models computed in this process to the counts in `run.json`."""
        if not counts:
            return
        description = self._there()
        _describe(self.path, {**description, COUNTERS: counts_form(counts, description.get(COUNTERS))})

    def _there(self) -> JsonObject:
        """What `run.json` holds now."""
        return json.loads((self.path / DESCRIPTION).read_text(encoding="utf-8"))

    def keep_prompts(self, texts: Mapping[str, str]) -> None:
        """Writes the texts of prompts, by file name, into a folder within that of the run."""
        for name, text in texts.items():
            (self.path / PROMPTS).mkdir(exist_ok=True)
            with _writing(self.path / PROMPTS / name) as file:
                file.write(text)

    def _keep_records(self, keys: Collection[str], records: Records | None) -> int:
        """Writes the records of `keys` and the seal of their file; returns the number of records."""
        with self._keeping:
            own = records_of(self.path)
            holders = [own] if records is None else [records, own]
            records_of_key = ((holder.get(key) for holder in holders) for key in sorted(keys))
            first = (next((record for record in each if record is not None), None) for each in records_of_key)
            exported = replay.export_cassette(filter(None, first), self.path / CALLS, ordered=True)
            if (seal := seal_of(self.path / CALLS)) is not None:
                with writing_to(self.path / SEAL):
                    (self.path / SEAL).write_text(seal, encoding="ascii")
            return exported

    def keep_places(self, files: Mapping[str, Path | None]) -> None:
        """Notes where the pictures lie, for pages that show them.

        Args:
            files: the file of each sample's picture, by the sample's id; None where it has none.
        """
        places = {name: str(file.absolute()) for name, file in files.items() if file is not None}
        if places:
            with writing_to(self.path / PLACES):
                text = json.dumps(places, ensure_ascii=False, indent=0)
                (self.path / PLACES).write_text(text, encoding="utf-8", errors="backslashreplace")

    def close(self) -> None:
        """Releases the folder."""
        with suppress(OSError):  # a full disk was reported when the line was written
            self._samples.close()
        self._lock.release()

    def _start(self) -> None:
        file = self.path / DESCRIPTION
        if not file.exists():
            if any(each.name != LOCK for each in self.path.iterdir()):
                raise UsageError(
                    f"The folder {str(self.path)!r} holds something that is no run.", hint="Give a new or empty folder."
                )
            self._save({"started": _now()})
            return
        try:
            description: Any = json.loads(file.read_text(encoding="utf-8"))
            same = self.hash == description["hash"] and description["format"] == FORMAT
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UsageError(f"{str(file)!r} describes no run.", hint="Give another `--out`.") from error
        if not same and not any(self.lines()):  # it has no sample yet
            self._save({"started": _now()})
        elif not same:
            words = difference_in_words(description["configuration"], self.configuration)
            different = f", different in {words}" if words else ""
            raise UsageError(
                f"The folder {str(self.path)!r} holds a run of another configuration{different}.",
                hint="Give another `--out`, or the options that the run began with (they stand in its run.json).",
            )

    def _begin_again(self) -> None:
        """Says that the run is not finished, since samples without an answer are asked again."""
        if (description := self._there()).pop("finished", None) is not None:
            _describe(self.path, description)

    def lines(self) -> Iterator[JsonObject]:
        """The samples so far; a line that was cut off is left out."""
        return (line for _, line in self._lines())

    def _lines(self) -> Iterator[tuple[int, JsonObject]]:
        """The samples so far, each with the byte at which its line begins."""
        file = self.path / SAMPLES
        if not file.exists():
            return
        place = 0
        with file.open("rb") as texts:
            for text in texts:
                try:
                    line: Any = json.loads(text.decode("utf-8", "replace"))
                except (ValueError, RecursionError):
                    line = None
                if _is_line(line):
                    yield place, line
                place += len(text)

    def _rewritten(self, finished: Lines) -> IO[bytes]:
        """Replaces `samples.jsonl` by one with the finished lines only; returns it, open for more lines."""
        places: dict[str, int] = {}
        with replacing(self.path / SAMPLES) as part, part.open("wb") as file:
            for name, line in finished.items():
                places[name] = file.tell()
                self._write(file, json.dumps(line, ensure_ascii=False))
        self.finished = Lines(self.path / SAMPLES, places)
        return (self.path / SAMPLES).open("ab")

    def _write(self, file: IO[bytes], text: str) -> None:
        file.write(text.encode("utf-8", "backslashreplace") + b"\n")
        file.flush()

    def _save(self, more: JsonObject) -> None:
        file = self.path / DESCRIPTION
        description: JsonObject = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        # Lines that stay were read by the reply readers of the version that stands there.
        unchanged = ("started", COUNTERS, READ_BY) if self.finished else ("started", COUNTERS)
        content = {
            "format": FORMAT,
            "askance": __version__,
            "hash": self.hash,
            "configuration": self.configuration,
            **({} if self.finished else {READ_BY: READERS}),
            **{name: description[name] for name in unchanged if name in description},
            **({"prices": prices} if (prices := list_version() or description.get("prices")) else {}),
            **self._facts,
            **more,
        }
        _describe(self.path, content)


class Lines(Mapping[str, JsonObject]):
    """The lines of a JSONL file, by name; each is read when it is looked up.

    Args:
        file: lines may be added to it, but none may change.
        places: by name, the byte at which the line begins.
    """

    def __init__(self, file: Path, places: Mapping[str, int]) -> None:
        self._file = file
        self._places = places

    @classmethod
    def of(cls, file: Path, name: Callable[[Mapping[str, Any]], str]) -> Lines:
        """The lines of a file that is whole, by what `name` calls them."""
        places, place = dict[str, int](), 0
        with file.open("rb") as lines:
            for line in lines:
                places[name(json.loads(line))] = place
                place += len(line)
        return cls(file, places)

    def __getitem__(self, name: str) -> JsonObject:
        with self._file.open("rb") as lines:
            lines.seek(self._places[name])
            return json.loads(lines.readline().decode("utf-8", "replace"))

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def calls_of(line: Mapping[str, Any]) -> Iterator[str]:
    """Keys of the records that the links of a line name."""
    return (key for link in line["links"].values() for key in link["calls"])


def keep_attachments(folder: Path, attachments: Iterable[Attachment]) -> None:
    """Writes attachments into the folder of their run; one that it has already is not written again.

    Raises:
        StoreError: one cannot be written.
    """
    for each in attachments:
        if not type(each).kept(folder, each.form()).whole:
            write_whole(folder / each.place, each.content)


def _has_attachments(line: Mapping[str, Any], folder: Path, whole: Callable[[Attachment], bool]) -> bool:
    """Whether the attachments of a line can be read; a line without one lacks nothing."""
    try:
        return all(map(whole, attachments_of(line, folder)))
    except UsageError:  # somebody wrote the line
        return False


def records_of(folder: Path) -> Records:
    """The records of a run; their file is read when one of them is first looked up.

    It is checked line by line, unless a run of this user wrote it and it has not changed since.
    """
    file = folder / CALLS
    return replay.Cassette(file, check=not has_seal(file, folder / SEAL)) if file.exists() else replay.MemoryStore()


@contextmanager
def amending(path: Path) -> Generator[Callable[[Mapping[str, Any]], None]]:
    """Locks a run's folder; gives a function that changes entries of its `run.json`.

    Raises:
        StoreError: another process is writing the folder, or it cannot be written.
    """
    lock = _locked(path)
    try:
        description: JsonObject = json.loads((path / DESCRIPTION).read_text(encoding="utf-8"))
        yield lambda changes: _describe(path, {**description, **changes})
    finally:
        lock.release()


def write_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Writes a JSONL file, whole or not at all."""
    with writing_to(path), replacing(path) as part, _writing(part) as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _describe(folder: Path, content: Mapping[str, Any]) -> None:
    write_whole(folder / DESCRIPTION, json.dumps(content, ensure_ascii=False, indent=2, sort_keys=True) + "\n")


def _locked(path: Path) -> FileLock:
    from filelock import FileLock, Timeout

    folders = (path, path / PROMPTS, *(path / kind.folder for kind in ATTACHMENTS))
    for file in (file for folder in folders for file in folder.glob("*")):
        if file.is_symlink():  # what is written to it would be written elsewhere
            raise UsageError(f"{str(file)!r} is a symbolic link.", hint="Remove it, or give another folder.")
    lock = FileLock(path / LOCK, blocking=False, thread_local=False)
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout as error:
        raise StoreError(
            f"Another process is writing the run folder {str(path)!r}.",
            hint="Wait for it, or give another `--out`.",
        ) from error
    except OSError as error:
        raise StoreError(
            f"The run folder {str(path)!r} cannot be written: {error.strerror}.", hint="Give another `--out`."
        ) from error
    return lock


def _writing(path: Path) -> IO[str]:
    """Opens a text file to write. A lone surrogate, as a file name may hold, is written as its JSON escape."""
    return path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def writing_to(path: Path, *, hint: str = ROOM) -> Generator[None]:
    """Turns an `OSError` of writing `path` into a `StoreError`.

    Raises:
        StoreError: the file cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise StoreError(f"{str(path)!r} cannot be written: {error.strerror or error}.", hint=hint) from error


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """The file `NAME.part` to write to: it takes the place of `path` once it is whole; after an error it is removed."""
    part = path.with_name(f"{path.name}.part")
    try:
        yield part
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink()


def _is_line(line: Any) -> bool:
    """Whether it may be the line of a sample, a picture or another thing that a run is over."""
    return isinstance(line, dict) and all(
        isinstance(cast("dict[str, Any]", line).get(name), kind) for name, kind in (("outcome", str), ("links", dict))
    )


def check_new(folder: Path) -> None:
    """Refuses a folder that holds something.

    Raises:
        UsageError: it does, or it is no folder.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{str(folder)!r} is there already, and is no empty folder.", hint="Name a new folder.")


def write_whole(path: Path, content: str | bytes) -> None:
    """Writes a file, in place of one that is there; at no time is it half written.

    Its folder is made. Half a surrogate pair in a text, as a name may hold, is written as JSON's escape for it.

    Raises:
        StoreError: it cannot be written; a file that was there stays.
    """
    with writing_to(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as part:
            part.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace"))


def keys_used(folder: Path) -> frozenset[str]:
    """Keys of the records that a run folder refers to, finished or not, and those of its blame.

    A last line that a kill tore does not count.

    Raises:
        UsageError: the folder holds no run, or a line of it is none.
        StoreError: a file of the run cannot be read.
    """
    if not (folder / DESCRIPTION).is_file():
        raise UsageError(f"The folder {str(folder)!r} holds no run.", hint="Name the folder that `--out` named.")
    keys = set[str]()
    try:
        for file in (folder / SAMPLES, folder / TRIALS):
            if file.exists():
                *whole, _ = file.read_text(encoding="utf-8").split("\n")
                keys.update(key for line in whole for key in _keys_of(line, file))
    except OSError as error:
        raise StoreError(
            f"The run folder {str(folder)!r} cannot be read: {error.strerror}.",
            hint="Check the path and its permissions.",
        ) from error
    return frozenset(keys.union(records_of(folder).keys()))


def _keys_of(line: str, file: Path) -> list[str]:
    try:
        links = cast("dict[str, Any]", json.loads(line)["links"])
        return [str(key) for link in links.values() for key in link["calls"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"A line of {str(file)!r} is no sample of a run.",
            hint="Name a run that can be read; nothing is removed before all of them were.",
        ) from error
