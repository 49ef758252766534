"""`askance scale`: a corpus too large for one process: what it takes, and many workers that read it shard by shard."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askance.amounts import duration, many, money
from askance.cli.chain_command import ChainCommand, chosen_chain
from askance.cli.chain_options import (
    ChainOptions,
    chain_configuration,
    check_chain_options,
    fetch_of,
    named_chain,
    picture_finder,
)
from askance.cli.columns import Columns, Part, Report
from askance.cli.group import command_group
from askance.cli.options import AsJson, PromptCalls, spelled_out
from askance.cli.process import HELP, INTERRUPTED, OK, SOME
from askance.errors import UsageError
from askance.terminal import echo

if TYPE_CHECKING:
    from askance.chains import Chain, Plan
    from askance.chains.named_chain import ChosenChain
    from askance.cli.progress import Progress
    from askance.cli.workspace import CommandWorkspace
    from askance.evals.listed_picture import ListedPicture
    from askance.evals.picture_run import PictureKey
    from askance.scale import (
        CorpusEnd,
        CorpusPlan,
        CorpusStatus,
        PlanRow,
        Projection,
        Receipt,
        Workers,
    )

app = command_group("A corpus too large for one process: what it takes, and workers that read it shard by shard.")

SLOW = 3.0
"""Shards without a new line for so many times what the median shard takes are named."""

CorpusArgument = Annotated[
    str, typer.Argument(metavar="CORPUS", help="Folder or address that `scale run` was given by --out.")
]


@app.command("plan")
def plan(
    folder: Annotated[
        Path, typer.Argument(metavar="RUN", help="Folder of the pilot: a run over a few hundred pictures.")
    ],
    pictures: Annotated[int, typer.Option(help="Pictures of the corpus.")] = 100_000_000,
    repeats: Annotated[float, typer.Option(help="Share of them that are copies of others: 0.2.")] = 0.0,
    days: Annotated[float, typer.Option(help="Days in which all of it is to be read.")] = 14.0,
    batch_price: Annotated[float, typer.Option(help="Part of the list price that batches cost.")] = 0.5,
    tokens_per_second: Annotated[float, typer.Option(help="Tokens that a GPU reads and writes.")] = 12_000.0,
    gpus: Annotated[int, typer.Option(help="GPUs of one's own.")] = 64,
    kilobytes: Annotated[float, typer.Option(help="Of a picture as it is sent.")] = 100.0,
    cpu_ms: Annotated[float, typer.Option(help="Milliseconds of a client's processor for a call.")] = 2.0,
    rows_per_second: Annotated[float, typer.Option(help="Records that one PostgreSQL server takes.")] = 13_000.0,
    as_json: AsJson = False,
) -> None:
    """Project what a corpus would take from a run over some of its pictures, with 95 % intervals.

    Calls, tokens, dollars, bytes and failures are the pilot's; every other number is an option. Nothing is asked.
    """
    from askance.evals.run import Run
    from askance.scale import Assumptions, plan_corpus

    assumptions = Assumptions(
        pictures=pictures,
        repeats=repeats,
        days=days,
        batch_price=batch_price,
        tokens_per_second=tokens_per_second,
        gpus=gpus,
        kilobytes=kilobytes,
        cpu_ms=cpu_ms,
        rows_per_second=rows_per_second,
    )
    corpus = plan_corpus(Run.open(folder), assumptions)
    Report(lambda: corpus.form, lambda: _parts(corpus), corpus.notes).print(as_json=as_json)


def _parts(corpus: CorpusPlan) -> Iterator[Part]:
    yield f"{corpus.assumptions.pictures:,} pictures, by a pilot of {corpus.pilot:,}."
    yield ""
    head = ("", "a picture", "in all", "95 % interval", "assumes")
    yield Columns([head, *map(_cells, corpus.rows)], left=(0, 4))


def _cells(row: PlanRow) -> tuple[str, ...]:
    each = "" if row.per_picture is None else _number(row.per_picture)
    return row.what, each, _number(row.total.value), _interval(row.total), row.assumes


def _interval(total: Projection) -> str:
    return f"{_number(total.low)} – {_number(total.high)}"


def _number(value: float) -> str:
    """Three digits that count; whole numbers from a thousand on."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


# ---- reading it ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class CorpusOptions(ChainOptions):
    """The options of one `askance scale run` beside those of its calls; None is not given."""

    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="CORPUS",
            help="Folder of the corpus, which all workers reach by this path; or object storage: s3://BUCKET/NAME.",
        ),
    ]
    workers: Annotated[int, typer.Option(min=1, help="How many read shards, each in a process of its own.")] = 2
    ray: Annotated[
        bool, typer.Option("--ray", help="The workers are actors of a Ray cluster; by default it begins here.")
    ] = False
    address: Annotated[
        str | None, typer.Option(help="Of the Ray cluster that this machine belongs to: auto, HEAD:6379; with --ray.")
    ] = None
    gpus: Annotated[
        float | None,
        typer.Option(min=0, help="Of each worker of Ray; by default 1 for models that run in it, if there are any."),
    ] = None
    shards: Annotated[
        int | None, typer.Option(min=1, help="Into how many shards the corpus is cut; by default 100.")
    ] = None
    keep_every: Annotated[
        float,
        typer.Option(
            min=1,
            help="Seconds between two copies of a shard's records. A lost disk loses at most so many seconds of "
            "answers.",
        ),
    ] = 300.0


@app.command("run", cls=ChainCommand, epilog=HELP)
@spelled_out
def run(context_: typer.Context, options: CorpusOptions, calls: PromptCalls) -> None:
    """Read a corpus by many workers, shard by shard; the same command goes on where it stopped.

    The shards are cut when the command first runs. `askance scale merge` makes one run of them.
    """
    from askance.cli.workspace import open_workspace

    chosen = chosen_chain(context_, options.chain)
    check_chain_options(options, chosen, calls)
    calls.check_recorded("shards could not keep what was answered")
    if not options.ray and (options.address is not None or options.gpus is not None):
        raise UsageError("`--address` and `--gpus` are for workers of Ray.", hint="Add `--ray`, or leave them out.")
    with open_workspace(calls, image_policy=options.image_policy, settings=options.settings) as work:
        _ = work.config  # an error in the settings is said before one in the pictures
        code = _CorpusReading(options, chosen, calls, named_chain(options, chosen, work), work).run()
    raise typer.Exit(code)


@dataclass
class _CorpusReading:
    """A corpus that workers read, and what is printed about it."""

    options: CorpusOptions
    chosen: ChosenChain
    calls: PromptCalls
    chain: Chain
    work: CommandWorkspace

    def run(self) -> int:
        """Reads it, or plans that; returns the exit code."""
        from askance.cli.execute import GOES_ON, plan_report
        from askance.cli.progress import Progress
        from askance.models import run_sync

        if self.work.plan:
            return plan_report(run_sync(self._plan()), self.work.engine).print(as_json=False)
        with nullcontext() if self.options.quiet else Progress("images listed") as progress:
            try:
                end = self._read(progress)
            except KeyboardInterrupt:
                echo(f"{GOES_ON}.", err=True)
                return INTERRUPTED
        return self._say_end(end)

    def _read(self, progress: Progress | None) -> CorpusEnd:
        from askance.scale import ShardReader, cut_corpus, digest_of_list, read_corpus

        options, work = self.options, self.work
        self._corpus = cut_corpus(
            options.out,
            self._listed(),
            configuration=chain_configuration(options, self.chosen, self.chain),
            listing={
                **digest_of_list([*options.named, *([str(options.options)] if options.options else [])]),
                **({"limit": options.limit} if options.limit else {}),
                **({"column": options.column} if options.column else {}),
            },
            shards=options.shards,
            on_picture=progress and progress.update,
        )
        ledger = None
        if work.engine.budget is not None:
            work.use_ledger(name=self._corpus.key, file=None if work.records.remote else self._corpus.ledger)
            ledger = None if work.records.remote else work.engine.budget.ledger
        read = sum(receipt.pictures for receipt in self._corpus.receipts())

        def tell(receipt: Receipt) -> None:
            nonlocal read
            read += receipt.pictures
            if receipt.error:
                echo(f"askance: shard {receipt.shard:05} on {receipt.worker}: {receipt.error}", err=True)
            if progress is not None:
                progress.count("images", read, self._corpus.pictures)

        if progress is not None:
            progress.count("images", read, self._corpus.pictures)
        reader = ShardReader(
            chain=self.chain,
            corpus=self._corpus.place,
            fetch=fetch_of(self.calls),
            batch=options.batch,
            kept_every=options.keep_every,
        )
        return read_corpus(self._corpus, reader, self._workers, ledger=ledger, on_receipt=tell)

    @property
    def _workers(self) -> Workers:
        from askance.scale import LocalWorkers, RayWorkers

        options = self.options
        if options.ray:
            return RayWorkers(count=options.workers, address=options.address, gpus=options.gpus)
        return LocalWorkers(options.workers)

    def _listed(self) -> Iterator[ListedPicture]:
        """The pictures of the corpus, with what can be chosen from."""
        from askance.cli.inputs import OptionsFile

        file = None if self.options.options is None else OptionsFile(self.options.options)
        for each in picture_finder(self.options, self.calls, self.work).listed():
            yield each if file is None else replace(each, options=file.of(each.name))

    async def _plan(self) -> Plan:
        from askance.cli.inputs import OptionsFile
        from askance.evals.picture_run import name_of, picture_job

        pictures: dict[PictureKey, tuple[str, ...] | None] = picture_finder(self.options, self.calls, self.work).find()
        if self.options.options is not None:
            file = OptionsFile(self.options.options)
            pictures = {picture: file.of(name_of(picture)) for picture in pictures}
        return await picture_job(self.chain, pictures).plan()

    def _say_end(self, end: CorpusEnd) -> int:
        """Says how it ended; returns the exit code."""
        from askance.cli.execute import say_budget
        from askance.replay.address import without_password
        from askance.scale import status_of

        corpus, options = self._corpus, self.options
        status = status_of(corpus)
        if not options.quiet:
            for line in _status_lines(status):
                echo(line, err=True)
        say_budget(self.work.engine.budget, None)
        if end.left:
            echo("The budget is used up. The same command with a larger --budget goes on.", err=True)
        elif end.failed or status.done < status.shards:
            echo(f"{many(status.shards - status.done, 'shard')} left. The same command goes on.", err=True)
        elif not options.quiet:
            place = without_password(options.out)
            echo(f"All shards are read: `askance scale merge {place} --out RUN` makes one run of them.", err=True)
        unanswered = status.read - status.outcomes.get("answered", 0)
        return SOME if end.failed or end.left or status.done < status.shards or unanswered else OK


@app.command("watch")
def watch(
    folder: CorpusArgument,
    once: Annotated[bool, typer.Option("--once", help="Say how it stands, and end.")] = False,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 10.0,
    as_json: AsJson = False,
) -> None:
    """Say how far the workers are: shards, pictures a second, cost, shards that take long. It only reads."""
    from askance.scale import ShardedCorpus, status_of

    corpus = ShardedCorpus(folder)
    status = status_of(corpus)
    while not once and not as_json and status.done < status.shards:
        echo("\n".join([*_status_lines(status), ""]))
        time.sleep(every)
        status = status_of(corpus)
    Report(lambda: status.form, lambda: _status_lines(status)).print(as_json=as_json)


@app.command("merge")
def merge(
    folder: CorpusArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the run that is made.")],
    as_json: AsJson = False,
) -> None:
    """Make one run of all shards, for `report`, `compare`, `pack` and the others: that of a single process.

    Every shard is held against its receipt first.
    """
    from askance.cli.progress import Progress
    from askance.scale import ShardedCorpus, merge_corpus

    corpus = ShardedCorpus(folder)
    with Progress("images", corpus.pictures) as progress:
        totals = merge_corpus(corpus, out, on_line=progress.update)
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in totals["outcomes"].items())
    text = f"{many(totals['samples'], 'image')} ({outcomes}) and {many(totals['records'], 'record')} are in {out}."
    Report(lambda: totals, lambda: [text]).print(as_json=as_json)


def _status_lines(status: CorpusStatus) -> Iterator[str]:
    """How far a corpus is, in words."""
    yield f"{status.read:,} of {status.pictures:,} images, {status.done:,} of {status.shards:,} shards."
    if status.outcomes:
        yield ", ".join(f"{count:,} {outcome}" for outcome, count in status.outcomes.items()) + "."
    cost = "of unknown cost" if status.dollars is None else money(status.dollars)
    each = f", {status.calls / status.dollars:,.0f} a dollar" if status.dollars else ""
    asked = status.calls + status.replayed
    share = f" ({100 * status.replayed / asked:.0f} %)" if asked else ""
    yield f"{many(status.calls, 'call')} ({cost}{each}), {many(status.replayed, 'answer')} on record{share}."
    if status.lost is not None and status.lost.calls:
        dollars = f" ({money(status.lost.dollars)})" if status.lost.dollars else ""
        yield f"{many(status.lost.calls, 'call')}{dollars} lost with workers that died; so many may be paid twice."
    if status.per_second:
        left = (status.pictures - status.read) / status.per_second
        rest = f", {duration(left)} left" if left else ""
        yield f"{status.per_second:.3g} images and {status.calls_per_second:.3g} calls a second{rest}."
    if status.bytes_per_picture:
        yield f"{status.bytes_per_picture / 1000:.3g} kB of records an image."
    if status.straggler_ratio is not None and status.idle is not None:
        idle = f"{100 * status.idle:.0f} %"
        yield f"Slowest shards: {status.straggler_ratio:.2g} × the median. Workers without a shard: {idle}."
    slow = [each for each in status.under_way if status.median is not None and each.quiet > SLOW * status.median]
    for each in slow[:5]:
        yield f"Shard {each.shard:05}: {each.read:,} of {each.of:,} images, none for {duration(each.quiet)}."


def workers_named(text: str) -> Workers:
    """The workers that `--workers` names: `4` processes of this machine, `ray` or `ray:4` actors of a Ray cluster.

    Raises:
        UsageError: it names none.
    """
    from askance.scale import LocalWorkers, RayWorkers

    name, _, count = text.rpartition("ray") if text == "ray" else text.rpartition(":")
    number = int(count) if count.isdecimal() and int(count) else None
    if text == "ray" or (name == "ray" and number):
        return RayWorkers(count=number or os.cpu_count() or 1)
    if name or number is None:
        raise UsageError(f"`--workers {text}` names no workers.", hint="Write 4, ray or ray:4.")
    return LocalWorkers(number)
