"""A worker's part of a corpus: it reads a shard into the run folder of that shard, and writes its receipt."""

from __future__ import annotations

import json
import logging
import os
import time
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from secrets import token_hex
from socket import gethostname
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from askance.amounts import duration
from askance.errors import AskanceError, BadImage, ConfigError, StoreError, UsageError, boundary
from askance.evals.analysis.asked_cost import sum_of
from askance.evals.picture_run import NamedPicture, PictureRun, questions_form, samples_form
from askance.evals.reading_folder import open_folder
from askance.evals.run_folder import records_of
from askance.evals.run_format import BATCHES, CALLS, SAMPLES
from askance.evals.runner import BatchOptions
from askance.images.picture_folder import PICTURES, PictureFolder
from askance.models import run_sync
from askance.python_file import files_named_in, load_file
from askance.replay import merge
from askance.scale.coordinator import share
from askance.scale.shards import TRIES, Receipt, ShardedCorpus, ShardRow
from askance.scale.storage import is_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from askance.chains import Chain
    from askance.evals.picture_run import PictureKey
    from askance.evals.run_folder import RunFolder
    from askance.images.picture_folder import Fetch
    from askance.models import Engine, Model
    from askance.models.batch.policy import BatchProgress
    from askance.scale.coordinator import Ask

_log = logging.getLogger("askance")

_AFTER_FAULT = 20.0
"""Seconds that a worker waits which could not write, so that the others take the next shards."""
_FETCHED_AT_ONCE = 8


@dataclass(frozen=True, kw_only=True)
class ShardReader:
    """Reads shards by a chain, in any process; it travels to workers as a pickle, without keys of models."""

    chain: Chain
    corpus: str
    """Absolute path or address of the corpus, by which all workers reach it."""
    fetch: Fetch = "missing"
    """Which pictures are fetched from the web."""
    batch: bool = False
    """Whether it asks by the provider's batch interface, shard by shard."""
    kept_every: float = 300.0
    """Seconds between two copies of a shard's records: what is lost at most with the disk of a worker."""
    stall: float = 1800.0
    """Seconds without a line after which a worker ends itself, so that another begins where it stopped."""
    ask: Ask | None = None
    """Asks the coordinator of the work; None where there is none."""
    work: str = field(default_factory=lambda: token_hex(8))
    """Tells this piece of work from another that was ended by something else than a shard."""

    @property
    def tries(self) -> None:
        """How often a shard may end its worker: that is counted beside it, by whether it has come further."""

    @property
    def models(self) -> Iterable[Model]:
        """Those that are asked."""
        return self.chain.models

    def asking(self, ask: Ask, /) -> ShardReader:
        """The reader, for workers that ask this coordinator."""
        return replace(self, ask=ask)

    def __call__(self, number: int, /) -> Receipt:
        """The receipt of a shard, which is read unless it has one.

        Never raises for what a picture, a model, the disk or the records do: that stands in the receipt.
        """
        try:
            receipt = self._corpus.receipt(number) or self._read(number)
        except AskanceError as error:
            receipt = failed_receipt(number, error)
            if isinstance(error, StoreError):
                time.sleep(_AFTER_FAULT)
        return receipt

    def _read(self, number: int) -> Receipt:
        corpus, chain, engine = self._corpus, self.chain, self._engine
        rows, folder = [*corpus.rows(number)], corpus.bring(number)
        if not corpus.begin(number, self.work):
            raise UsageError(
                f"Shard {number:05} ended {TRIES} workers, one after the other.",
                hint="The chain over its next picture alone shows why (`askance run`); the same command tries again.",
            )
        records = None if engine is None else engine.recorder.records
        if records is not None and records.writable and not records.remote:
            merge(records_of(folder), records)  # what a worker on another machine was answered
        found = self._pictures(rows)
        pictures: dict[PictureKey, Sequence[str] | None] = dict(zip(found, (row.options for row in rows), strict=True))
        configuration = {**corpus.configuration, "samples": samples_form(pictures), **questions_form(pictures)}
        before = time.monotonic()
        opened = open_folder(folder, chain, configuration=configuration, pictures=pictures, records=records)
        with closing(opened) as run_folder:
            batches = BatchOptions(folder=folder / BATCHES, on_progress=self._sent(number)) if self.batch else None
            run = PictureRun(chain, folder=run_folder, batches=batches)
            with self._looked_after(run_folder, number):
                run_sync(run.read(pictures))
        receipt = _receipt(corpus, number, left=len(run.left), seconds=time.monotonic() - before)
        if receipt.done:
            corpus.end(receipt)
        else:
            corpus.send(number)
        return receipt

    def _pictures(self, rows: Sequence[ShardRow]) -> list[NamedPicture]:
        """The pictures of a shard; those from elsewhere are fetched first, side by side."""
        engine, fetch = self._engine, self.fetch

        def picture(row: ShardRow) -> NamedPicture:
            if row.address is None:
                return NamedPicture(row.name, self._corpus.file(row), question=row.question)
            assert engine is not None
            kept = PictureFolder(engine.recorder.records.beside(PICTURES))
            try:
                return NamedPicture(row.name, kept.of_address(row.address, fetch=fetch), question=row.question)
            except BadImage as error:
                return NamedPicture(row.name, None, trouble=error, question=row.question)

        with ThreadPoolExecutor(_FETCHED_AT_ONCE, thread_name_prefix="askance-fetch") as threads:
            return [*threads.map(picture, rows)]

    @contextmanager
    def _looked_after(self, folder: RunFolder, number: int) -> Generator[None]:
        """Within it the records of the lines are kept before long, and a process that stalls ends."""
        ended, file, engine = Event(), folder.path / SAMPLES, self._engine

        def look() -> None:
            size, grown, kept, kept_size, warned = -1, time.monotonic(), time.monotonic(), 0, False
            while not ended.wait(min(1.0, self.kept_every, self.stall)):
                now = time.monotonic()
                if (new := file.stat().st_size) != size:
                    size, grown = new, now
                if not self.batch and now - grown > self.stall:
                    _log.error("%s has read no picture for %s, and ends.", this_worker(), duration(self.stall))
                    os._exit(1)
                if now - kept > self.kept_every and (size != kept_size or self.batch):
                    try:
                        folder.keep_records(None if engine is None else engine.recorder.records)
                        self._corpus.send(number)
                    except StoreError as error:
                        if not warned:
                            _log.warning("Shard %05d is read on, without a copy of its records: %s", number, error)
                        warned = True
                    kept, kept_size = time.monotonic(), size

        thread = Thread(target=look, name="askance-shard", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _sent(self, number: int) -> Callable[[BatchProgress], None]:
        """Uploads a shard as soon as the endpoint has a batch of it, so that no other machine asks for it again."""

        def tell(progress: BatchProgress) -> None:
            if progress.phase == "sent":
                with suppress(StoreError):  # it is tried again before long, and said there
                    self._corpus.send(number)

        return tell

    @cached_property
    def _corpus(self) -> ShardedCorpus:
        disk = None if self._engine is None else self._engine.recorder.records.folder
        if disk is None and is_address(self.corpus):
            disk = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "askance" / "shards"
        return ShardedCorpus(self.corpus, disk=disk)

    @cached_property
    def _engine(self) -> Engine | None:
        engine = engine_of(self.models)
        if engine is not None and self.ask is not None:
            share(engine, self.ask)
        return engine


def engine_of(models: Iterable[Model]) -> Engine | None:
    """The engine that models share; None where there are none."""
    return next((model.engine for model in models), None)


def packed(reader: Any) -> bytes:
    """A reader as it is sent to workers.

    Raises:
        UsageError: its chain cannot be sent.
    """
    with boundary(
        lambda words: UsageError(
            f"The chain cannot be sent to workers: {words}.",
            hint="Its parts must be importable, so not from the script that runs; its records those of a folder or a "
            "database.",
        )
    ):
        content = bytes(ForkingPickler.dumps(reader))
        return bytes(ForkingPickler.dumps((files_named_in(content), content)))


def unpacked(content: bytes) -> Any:
    """A reader that was sent.

    Raises:
        ConfigError: what it is made of is not installed here.
    """
    with boundary(
        lambda words: ConfigError(
            f"The chain cannot be made on {gethostname()}: {words}.",
            hint="Every machine needs the same packages, the same version of askance, and the user's own files.",
        )
    ):
        files, reader = _loads(content)
        for file in files:
            load_file(file)
        return _loads(reader)


def _loads(content: bytes) -> Any:
    return ForkingPickler.loads(content)  # pyright: ignore  # noqa: PGH003  # the stub lacks the name


def this_worker() -> str:
    """Machine and process, in words."""
    return f"{gethostname()}:{os.getpid()}"


def failed_receipt(number: int, error: AskanceError) -> Receipt:
    """The receipt of a shard that ended with an error."""
    kind = type(error).__name__
    return Receipt(shard=number, worker=this_worker(), error=str(error), kind=kind, ended=time.time())


def _receipt(corpus: ShardedCorpus, number: int, *, left: int, seconds: float) -> Receipt:
    """What the lines of a shard say."""
    outcomes, pictures = Counter[str](), Counter[str]()
    calls, replayed, costs = 0, 0, list[float | None]()
    with (corpus.folder(number) / SAMPLES).open("rb") as lines:
        for line in map(json.loads, lines):
            outcomes[line["outcome"]] += 1
            pictures[line["sha256"] or line["image"]] += 1
            meta: Mapping[str, Any] = line["meta"]
            calls, replayed = calls + meta["calls"], replayed + meta["replayed"]
            costs.append(meta["cost"])
    return Receipt(
        shard=number,
        worker=this_worker(),
        left=left,
        pictures=outcomes.total(),
        outcomes=dict(sorted(outcomes.items())),
        repeats=pictures.total() - len(pictures),
        calls=calls,
        replayed=replayed,
        dollars=sum_of(costs),
        seconds=seconds,
        ended=time.time(),
        size=(corpus.folder(number) / CALLS).stat().st_size,
        digest=corpus.digest(number),
    )
