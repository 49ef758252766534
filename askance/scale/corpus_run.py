"""A corpus that workers read, shard by shard, and its shards as one run."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from heapq import merge as in_order
from pathlib import Path
from typing import TYPE_CHECKING

from askance.amounts import first_few, many
from askance.chat import JsonObject
from askance.errors import FATAL, UsageError
from askance.evals.picture_run import NamedPicture, questions_form, samples_form
from askance.evals.run_folder import Lines, RunFolder, records_of
from askance.evals.run_format import COUNTERS, DESCRIPTION, PROMPTS, SAMPLES
from askance.models.counters import Counters, counts_form
from askance.replay import merge, open_records
from askance.scale.shards import Receipt, ShardedCorpus

if TYPE_CHECKING:
    from askance.evals.picture_run import PictureKey
    from askance.replay import Ledger
    from askance.scale.shard_worker import ShardReader
    from askance.scale.workers import Workers

FAILED_IN_A_ROW = 5
"""Shards that fail one after the other before no further one is handed out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusEnd:
    """How reading a corpus ended."""

    failed: tuple[Receipt, ...]
    """Shards that are not done because of an error."""
    left: int
    """Pictures of the shards that were read and that the budget had nothing left for."""
    waiting: int
    """Shards that no worker was given."""


def read_corpus(
    corpus: ShardedCorpus,
    reader: ShardReader,
    workers: Workers,
    *,
    ledger: Ledger | None = None,
    on_receipt: Callable[[Receipt], None] | None = None,
) -> CorpusEnd:
    """Has workers read the shards that have no receipt. What ends without one, the same call begins where it stopped.

    Args:
        corpus: the shards.
        reader: reads one of them.
        workers: that do it side by side.
        ledger: of the budget, in a file; None where there is none, or the records bring one that is shared.
        on_receipt: called with each receipt.

    Raises:
        StoreError: another process reads the corpus, or its storage cannot be written.
        UsageError: the chain cannot be sent to workers, or not be made there.
        CallError: one shard ended with what all others would end with, too.
    """
    failed, left, in_a_row = list[Receipt](), 0, 0
    with corpus.storage.locked():
        done = {receipt.shard for receipt in corpus.receipts()}
        todo = [number for number in corpus.numbers if number not in done]
        waiting = len(todo)
        if not todo:
            return CorpusEnd(failed=(), left=0, waiting=0)
        with closing(workers.receipts(reader, todo, ledger=ledger)) as receipts:
            for receipt in receipts:
                waiting -= 1
                if on_receipt is not None:
                    on_receipt(receipt)
                if (kind := FATAL.get(receipt.kind)) is not None:
                    raise kind(receipt.error or "", hint=f"So ended shard {receipt.shard:05}, on {receipt.worker}.")
                in_a_row = in_a_row + 1 if receipt.error else 0
                failed += [receipt] if receipt.error else []
                left += receipt.left
                if left or in_a_row == FAILED_IN_A_ROW:
                    break
    return CorpusEnd(failed=tuple(failed), left=left, waiting=waiting)


# ---- one run ---------------------------------------------------------------------------------------------------------


def merge_corpus(corpus: ShardedCorpus, out: Path, *, on_line: Callable[[int], None] | None = None) -> JsonObject:
    """Makes an ordinary run folder of all shards: that which one process would have made.

    Args:
        corpus: whose shards are all done.
        out: folder of the run; one that was begun is finished.
        on_line: called with the number of lines that are written.

    Returns:
        The totals of the run.

    Raises:
        UsageError: shards are missing, or changed after their receipt; or the folder holds something else.
        StoreError: it cannot be written.
    """
    receipts = {receipt.shard: receipt for receipt in corpus.receipts()}
    if lacking := [number for number in corpus.numbers if number not in receipts]:
        raise UsageError(
            f"{many(len(lacking), 'shard')} of {corpus.storage.shown!r} not done: {first_few([*map(str, lacking)])}.",
            hint="The command that began the work finishes it.",
        )
    with tempfile.TemporaryDirectory(prefix="askance-") as beside, open_records(Path(beside) / "store") as records:
        corpus = ShardedCorpus(corpus.place, disk=Path(beside))
        folders = [corpus.bring(number) for number in corpus.numbers]
        for number, receipt in receipts.items():
            if corpus.digest(number) != receipt.digest or not receipt.digest:
                raise UsageError(
                    f"Shard {number:05} of {corpus.storage.shown!r} is not what its receipt says: somebody changed it.",
                    hint="Delete its folder and its receipt, and run the command that began the work.",
                )
        pictures: dict[PictureKey, Sequence[str] | None] = {}
        files: dict[str, Path | None] = {}
        for row in in_order(*map(corpus.rows, corpus.numbers), key=lambda row: row.number):
            pictures[NamedPicture(row.name, None, question=row.question)] = row.options
            lasts = corpus.storage.path is not None or Path(row.file or "").is_absolute()
            files[row.name] = corpus.file(row) if lasts else None
        configuration = {**corpus.configuration, "samples": samples_form(pictures), **questions_form(pictures)}
        for each in folders:
            merge(records_of(each), records)
        with closing(RunFolder(out, configuration)) as folder:
            folder.keep_prompts({file.name: file.read_text("utf-8") for file in (folders[0] / PROMPTS).iterdir()})
            folder.keep_places(files)
            for written, line in enumerate(_lines(corpus), start=1):
                folder.add(line)
                if on_line is not None:
                    on_line(written)
            endpoints = [record.key for record in records.of_kind("endpoint")]
            return folder.finish(records, also=endpoints, more=_computed(folders))


def _computed(folders: Sequence[Path]) -> JsonObject:
    """What models computed, over all shards, as an entry of `run.json`; empty where none did."""
    total: JsonObject = {}
    for folder in folders:
        counts = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8")).get(COUNTERS, {})
        total = counts_form({name: Counters.from_canonical(form) for name, form in counts.items()}, total)
    return {COUNTERS: total} if total else {}


def _lines(corpus: ShardedCorpus) -> Iterator[JsonObject]:
    """The lines of all shards, in the order of the corpus."""

    def of(number: int) -> Iterator[tuple[int, JsonObject]]:
        lines = Lines.of(corpus.folder(number) / SAMPLES, lambda line: str(line["image"]))
        return ((row.number, lines[row.name]) for row in corpus.rows(number))

    return (line for _, line in in_order(*map(of, corpus.numbers), key=lambda each: each[0]))
