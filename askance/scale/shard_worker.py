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

from askance.errors import AskanceError, BadImage, ConfigError, StoreError, UsageError, boundary
from askance.evals.analysis.asked_cost import sum_of
from askance.evals.picture_run import NamedPicture, PictureRun, questions_form, samples_form
from askance.evals.reading_folder import open_folder
from askance.evals.run_folder import write_whole
from askance.evals.run_format import BATCHES, SAMPLES
from askance.evals.runner import BatchOptions
from askance.images.picture_folder import PICTURES, PictureFolder
from askance.models import run_sync
from askance.python_file import files_named_in, load_file
from askance.scale.coordinator import share
from askance.scale.shards import Receipt, ShardedCorpus, ShardRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from askance.chains import Chain
    from askance.evals.picture_run import PictureKey
    from askance.evals.run_folder import RunFolder
    from askance.images.picture_folder import Fetch
    from askance.models import Engine, Model
    from askance.scale.coordinator import Ask

_log = logging.getLogger("askance")

KEPT_EVERY = 300.0
"""Seconds between two copies of a shard's records into its folder: what is lost at most with the disk of a worker."""
STALL = 1800.0
"""Seconds without a line after which a worker ends itself, so that another begins where it stopped."""
TRIES = 3
"""How often a shard may end its worker, without a line in between, before it is left out."""
_AFTER_FAULT = 20.0
"""Seconds that a worker waits which could not write, so that the others take the next shards."""
_FETCHED_AT_ONCE = 8


@dataclass(frozen=True, kw_only=True)
class ShardReader:
    """Reads shards by a chain, in any process; it travels to workers as a pickle, without keys of models."""

    chain: Chain
    corpus: Path
    """Folder of the corpus, which all workers reach by this path."""
    fetch: Fetch = "missing"
    """Which pictures are fetched from the web."""
    batch: bool = False
    """Whether it asks by the provider's batch interface, shard by shard."""
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
            corpus = ShardedCorpus(self.corpus)
            known = corpus.receipt(number)
            if known is not None and known.done:
                return known
            receipt = self._read(corpus, number)
            if receipt.done:
                corpus.keep(receipt)
        except AskanceError as error:
            receipt = failed_receipt(number, error)
            if isinstance(error, StoreError):
                time.sleep(_AFTER_FAULT)
        return receipt

    def _read(self, corpus: ShardedCorpus, number: int) -> Receipt:
        rows = [*corpus.rows(number)]
        place = corpus.place(number)
        self._count_try(place, number)
        chain, engine = self.chain, self._engine
        found = _pictures(rows, engine, self.fetch)
        pictures: dict[PictureKey, Sequence[str] | None] = dict(zip(found, (row.options for row in rows), strict=True))
        configuration = {**corpus.configuration, "samples": samples_form(pictures), **questions_form(pictures)}
        before = time.monotonic()
        with closing(open_folder(place, chain, configuration=configuration, pictures=pictures)) as folder:
            batches = BatchOptions(folder=place / BATCHES) if self.batch else None
            run = PictureRun(chain, folder=folder, batches=batches)
            with _looked_after(folder, engine, stalls=not self.batch):
                run_sync(run.read(pictures))
        place.with_suffix(".tries").unlink()
        return _receipt(corpus, number, left=len(run.left), seconds=time.monotonic() - before)

    def _count_try(self, place: Path, number: int) -> None:
        """Notes that a worker begins with a shard.

        Raises:
            UsageError: it has ended several workers already, at the same picture.
        """
        samples, file = place / SAMPLES, place.with_suffix(".tries")
        here = [self.work, samples.stat().st_size if samples.exists() else 0]
        *there, tries = json.loads(file.read_text(encoding="ascii")) if file.exists() else [0]
        tries = tries + 1 if there == here else 1
        if tries > TRIES:
            file.unlink()
            raise UsageError(
                f"Shard {number:05} ended {TRIES} workers, one after the other.",
                hint="The chain over its next picture alone shows why (`askance run`); the same command tries again.",
            )
        write_whole(file, json.dumps([*here, tries]))

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


def _pictures(rows: Sequence[ShardRow], engine: Engine | None, fetch: Fetch) -> list[NamedPicture]:
    """The pictures of a shard; those from the web are fetched first, side by side."""

    def picture(row: ShardRow) -> NamedPicture:
        if row.address is None:
            return NamedPicture(row.name, Path(row.file or ""), question=row.question)
        assert engine is not None
        kept = PictureFolder(engine.recorder.records.beside(PICTURES))
        try:
            return NamedPicture(row.name, kept.of_address(row.address, fetch=fetch), question=row.question)
        except BadImage as error:
            return NamedPicture(row.name, None, trouble=error, question=row.question)

    with ThreadPoolExecutor(_FETCHED_AT_ONCE, thread_name_prefix="askance-fetch") as threads:
        return [*threads.map(picture, rows)]


@contextmanager
def _looked_after(folder: RunFolder, engine: Engine | None, *, stalls: bool) -> Generator[None]:
    """Within it the folder has the records of its lines before long, and a process that `stalls` ends."""
    ended, file = Event(), folder.path / SAMPLES

    def look() -> None:
        size, grown, kept = -1, time.monotonic(), time.monotonic()
        while not ended.wait(1.0):
            now = time.monotonic()
            if (new := file.stat().st_size) != size:
                size, grown = new, now
            if stalls and now - grown > STALL:
                _log.error("%s has read no picture for %.0f minutes, and ends.", this_worker(), STALL / 60)
                os._exit(1)
            if now - kept > KEPT_EVERY and engine is not None:
                with suppress(StoreError):  # it is said where the next line cannot be written
                    folder.keep_records(engine.recorder.records)
                kept = time.monotonic()

    thread = Thread(target=look, name="askance-shard", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _receipt(corpus: ShardedCorpus, number: int, *, left: int, seconds: float) -> Receipt:
    """What the lines of a shard say."""
    outcomes, pictures = Counter[str](), Counter[str]()
    calls, replayed, costs = 0, 0, list[float | None]()
    with (corpus.place(number) / SAMPLES).open("rb") as lines:
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
        digest=corpus.digest(number),
    )
