"""A small corpus of pictures that workers read by a real endpoint on this machine."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from askance.chains import Chain, action_reason
from askance.evals.listed_picture import ListedPicture
from askance.evals.reading_folder import configuration_of, read_pictures
from askance.models import Engine, get_model
from askance.models.budget import BudgetGuard
from askance.replay import Address, Budget, Ledger, SqliteLedger, open_records
from askance.scale import CorpusEnd, Receipt, ShardedCorpus, ShardReader, Workers, cut_corpus, read_corpus
from askance.scale.workers import Reader
from tests.faults.run import QUICK, picture, stable
from tests.scripted import OPTIONS
from tests.servers import JsonObject


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Pictures in a folder, and how they are read.

    Args:
        url: of the endpoint.
        home: an empty folder.
        store: address of the records; by default a folder in `home`.
        place: of the corpus; by default a folder in `home`.
    """

    url: str
    home: Path
    pictures: int = 12
    shards: int = 4
    store: Address | None = None
    place: str | None = None
    concurrency: int | None = None
    rpm: float | None = None
    budget: Budget | None = None

    @property
    def files(self) -> list[Path]:
        folder = self.home / "pictures"
        files = [folder / picture(number).name for number in range(self.pictures)]
        if not folder.exists():
            folder.mkdir()
            for number, file in enumerate(files):
                file.write_bytes(picture(number).data)
        return files

    @contextmanager
    def chain(self, store: Address | None = None) -> Generator[Chain]:
        with open_records(store or self.store or self.home / "store") as records:
            engine = Engine(
                records=records,
                policy=QUICK,
                concurrency=self.concurrency,
                rpm=self.rpm,
                budget=None if self.budget is None else BudgetGuard(SqliteLedger(self.out / "budget.db", self.budget)),
            )
            yield action_reason(get_model(f"openai:fake-model@{self.url}", identity="fake", engine=engine))

    @property
    def out(self) -> Path:
        return self.home / "corpus"

    def cut(self) -> ShardedCorpus:
        with self.chain() as chain:
            configuration = {name: value for name, value in configuration_of(chain, {}).items() if name != "samples"}
        return cut_corpus(
            self.place or self.out,
            (ListedPicture(str(file), file, tuple(OPTIONS)) for file in self.files),
            configuration=configuration,
            listing={"pictures": self.pictures},
            shards=self.shards,
        )

    def read(self, workers: Workers, **options: Any) -> CorpusEnd:
        corpus = self.cut()
        with self.chain() as chain:
            budget = next(iter(chain.models)).engine.budget
            ledger = None if budget is None else budget.ledger
            reader = ShardReader(chain=chain, corpus=corpus.place, **options)
            return read_corpus(corpus, reader, workers, ledger=ledger)

    def alone(self) -> Path:
        """The run of one process, on a store of its own."""
        out = self.home / "alone"
        with self.chain(self.home / "other") as chain:
            read_pictures(chain, dict.fromkeys(self.files, OPTIONS), out=out)
        return out


class Here:
    """Reads shards in this process, one after the other."""

    def receipts(self, reader: Reader, numbers: Sequence[int], *, ledger: Ledger | None) -> Generator[Receipt]:
        yield from map(reader, numbers)


def lines_of(run: Path) -> list[JsonObject]:
    return [json.loads(line) for line in (run / "samples.jsonl").read_text(encoding="utf-8").splitlines()]


def same_answers(run: Path, other: Path) -> bool:
    """Whether two runs are equal, byte for byte, without what changes from run to run."""

    def text(lines: Sequence[JsonObject]) -> str:
        return json.dumps(stable(lines))

    return text(lines_of(run)) == text(lines_of(other))
