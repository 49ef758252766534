"""`askance run`: pictures through a chain."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askance.cli.chain_command import chosen_chain
from askance.cli.chain_options import (
    ChainOptions,
    chain_configuration,
    check_chain_options,
    named_chain,
    picture_finder,
)
from askance.cli.columns import Report, complain
from askance.cli.options import Calls, PromptCalls, spelled_out
from askance.cli.process import INTERRUPTED, OK, SOME, Process
from askance.errors import AskanceError, UsageError
from askance.terminal import echo

if TYPE_CHECKING:
    from askance.chains import Chain
    from askance.chains.named_chain import ChosenChain
    from askance.chat import JsonObject
    from askance.cli.display import ReadingDisplay
    from askance.cli.inputs import Drawn
    from askance.cli.workspace import CommandWorkspace
    from askance.evals import RunFolder
    from askance.evals.picture_run import PictureOptions, PictureRun
    from askance.evals.runner import BatchOptions


@dataclass(frozen=True, kw_only=True)
class RunOptions(ChainOptions):
    """The options of one `askance run` beside those of its calls; None is not given."""

    sample: Annotated[int | None, typer.Option(min=1, help="Read only so many images, drawn at random.")] = None
    sample_seed: Annotated[int | None, typer.Option(help="Seed of the draw of --sample; by default 0.")] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line for each image.")] = False
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder that keeps the run: lines, records, totals.")
    ] = None
    html: Annotated[
        Path | None,
        typer.Option(help="Also write a page: every image with what was said of it, every prompt and reply."),
    ] = None


@spelled_out
def run(context_: typer.Context, options: RunOptions, calls: PromptCalls) -> None:
    """Read images: what is in them, what they say, what is odd, and which of the options they argue for."""
    chosen = chosen_chain(context_, options.chain)
    _check(options, chosen, calls)
    raise typer.Exit(_run(options, chosen, calls, ready=Process.of(context_).settled))


def _check(options: RunOptions, chosen: ChosenChain, calls: Calls) -> None:
    """Refuses options that go with no others."""
    check_chain_options(options, chosen, calls)
    if options.sample is not None and options.limit is not None:
        raise UsageError("`--sample` and `--limit` both say how many images are read.", hint="Leave one out.")
    if options.sample_seed is not None and options.sample is None:
        raise UsageError("`--sample-seed` goes with `--sample`.", hint="Say how many: --sample 20")
    if options.out is not None:
        calls.check_recorded("`--out` could not keep what was answered")
    if options.html is not None:
        _check_page(options.html, calls)


def _check_page(out: Path, calls: Calls) -> None:
    """Refuses a page that could not be written, before anything is asked."""
    if calls.plan:
        raise UsageError("`--plan` reads no image, so there is nothing for `--html` to show.", hint="Leave one out.")
    calls.check_recorded("`--html` could not show what was answered")
    if out.is_dir():
        raise UsageError(f"{str(out)!r} is a folder, and the page is one file.", hint="Name a file: --html page.html")


def _run(command_options: RunOptions, chosen: ChosenChain, calls: Calls, *, ready: Callable[[], None]) -> int:
    """Reads the pictures, or plans that; returns the exit code.

    Args:
        command_options: what to do.
        chosen: the chain that reads the pictures.
        calls: how models are asked.
        ready: called when everything that reading takes is made and loaded.

    Raises:
        UsageError: an option names something that does not exist.
        StoreError: the records or the run folder cannot be opened.
        CallError: no call can succeed.
    """
    from askance.cli.inputs import OptionsFile
    from askance.cli.workspace import open_workspace
    from askance.evals.picture_run import name_of

    with open_workspace(calls, image_policy=command_options.image_policy, settings=command_options.settings) as work:
        _ = work.config  # an error in the settings is said before one in the pictures
        finder = picture_finder(
            command_options, calls, work, sample=command_options.sample, seed=command_options.sample_seed or 0
        )
        samples: PictureOptions = finder.find()
        if command_options.options is not None:
            options = OptionsFile(command_options.options)
            samples = {picture: options.of(name_of(picture)) for picture in samples}
        chain = named_chain(command_options, chosen, work)
        _say_pictures(samples, finder.drawn, quiet=command_options.quiet)
        return _Reading(command_options, chosen, chain, samples, finder.drawn, work, ready).run()


def _say_pictures(samples: PictureOptions, drawn: Drawn | None, *, quiet: bool) -> None:
    """Says on stderr which pictures were drawn, and what could not be fetched.

    Raises:
        BadImage: no picture at all could be.
    """
    troubles = [picture.trouble for picture in samples if not isinstance(picture, Path) and picture.trouble]
    if troubles and len(troubles) == len(samples):
        raise troubles[0]
    if drawn is not None and not quiet:
        echo(f"{drawn.size:,} of {drawn.of:,} images are drawn, with the seed {drawn.seed}.", err=True)


@dataclass
class _Reading:
    """Pictures that a chain reads, and what is printed about it."""

    options: RunOptions
    chosen: ChosenChain
    chain: Chain
    samples: PictureOptions
    drawn: Drawn | None
    work: CommandWorkspace
    ready: Callable[[], None]
    """Called when everything that reading takes is made and loaded."""

    def run(self) -> int:
        """Reads the pictures, or plans that; returns the exit code."""
        from askance.cli.execute import GOES_ON, ON_RECORD, execute
        from askance.evals.picture_run import picture_job

        options = self.options
        code = execute(
            self.work,
            lambda _: self._run.read(self.samples),
            lambda _: Report(None, lambda: (), ends=self._end),  # each picture was printed when it was read
            plan=lambda: picture_job(self.chain, self.samples).plan(),
            as_json=options.as_json,
            progress=self._begun,
            interrupted=lambda _: "\n".join([*self._show.summary(self._run.counters), f"{GOES_ON}; {ON_RECORD}"]),
        )
        if options.html is not None:
            self._write_page(options.html, interrupted=code == INTERRUPTED)
        return code

    @contextmanager
    def _begun(self) -> Generator[None]:
        """Within it the run has its folder and its ledger, and shows its progress."""
        from askance.evals.run_format import LEDGER

        folder = self._folder
        self.work.use_ledger(name=self._name, file=None if folder is None else folder.path / LEDGER)
        with nullcontext() if folder is None else closing(folder), closing(self._show):
            _ = self._run
            self.ready()
            yield

    @cached_property
    def _configuration(self) -> JsonObject:
        """Everything that decides the lines of a run folder, and how its pictures were drawn."""
        from askance.evals.picture_run import questions_form, samples_form

        return {
            **chain_configuration(self.options, self.chosen, self.chain),
            **({} if self.drawn is None else {"drawn": asdict(self.drawn)}),
            "samples": samples_form(self.samples),
            **questions_form(self.samples),
        }

    @cached_property
    def _name(self) -> str:
        """The name of the ledger and batches that are kept with the records, where the run has no folder."""
        from askance.chat import key_of

        return key_of("run", self._configuration)[:16]

    @cached_property
    def _folder(self) -> RunFolder | None:
        if self.options.out is None:
            return None
        from askance.evals.reading_folder import open_folder

        return open_folder(self.options.out, self.chain, configuration=self._configuration, pictures=self.samples)

    @cached_property
    def _show(self) -> ReadingDisplay:
        from askance.cli.display import ReadingDisplay

        return ReadingDisplay(
            len(self.samples),
            as_json=self.options.as_json,
            quiet=self.options.quiet,
            tally=self.work.tally,
            engine=self.work.engine,
            keep=self.options.html is not None,
        )

    @cached_property
    def _run(self) -> PictureRun:
        from askance.evals.picture_run import PictureRun

        samples: Mapping[Any, Sequence[str] | None] = self.samples
        return PictureRun(
            self.chain,
            folder=self._folder,
            batches=self._batches if self.options.batch else None,
            on_line=lambda path, line: self._show.reading(line, samples[path]),
        )

    @property
    def _batches(self) -> BatchOptions:
        """The batches, which are kept in the run's folder while they are under way, else with the records."""
        from askance.cli.execute import batch_options
        from askance.evals.run_format import BATCHES

        folder = self._folder
        place = self.work.records.beside("batches") / self._name if folder is None else folder.path / BATCHES
        return batch_options(place)

    def _end(self) -> int:
        """Says how the run ended; returns the exit code."""
        from askance.cli.execute import say_budget
        from askance.evals.picture_run import picture_job

        options, run = self.options, self._run
        for line in self._show.summary(run.counters):
            echo(line, err=True)
        if options.chain == "brainstorm" and run.outcomes["answered"] and not options.quiet:
            echo(f"The captions are candidates that {self.chain.nodes[-1].model.id} wrote.", err=True)
        if self._folder is not None and not options.quiet:
            echo(f"The run is in {self._folder.path}.", err=True)
        if run.left or not options.quiet:
            left = picture_job(self.chain, run.left).plan if run.left else None
            say_budget(self.work.engine.budget, left)
        return SOME if self._show.unanswered or run.left else OK

    def _write_page(self, out: Path, *, interrupted: bool) -> None:
        """Writes the page in place of one that is there, and says on stderr where it is.

        If nothing was read there is no page, which is said too.

        Args:
            out: the file.
            interrupted: whether pictures are left because of Ctrl-C, and not because of the budget. The command then
                ends as interrupted even if the page cannot be written.

        Raises:
            StoreError: the file cannot be written.
        """
        try:
            self._write_readings(out, interrupted=interrupted)
        except AskanceError as error:
            if not interrupted:
                raise
            complain(error)
        except Exception as error:
            if not interrupted:
                raise
            complain(
                AskanceError(
                    f"The page {str(out)!r} cannot be made: {type(error).__name__}: {error}.",
                    hint="The same command with --replay makes it of what is on record.",
                )
            )

    def _write_readings(self, out: Path, *, interrupted: bool) -> None:
        from askance.evals.report.readings import PictureReading, write_readings
        from askance.evals.run_folder import records_of

        files = {
            picture.name: picture.file for picture in self.samples if not isinstance(picture, Path) and picture.file
        }
        read = [
            PictureReading(line=line, options=tuple(options), file=files.get(line["image"]))
            for line, options in self._show.readings or ()
        ]
        if not read:
            echo(f"No picture was read, so no page is written to {out}.", err=True)
            return
        left = self._show.total - len(read)
        size = write_readings(
            out,
            read,
            self.chain,
            name=self.options.chain,
            records=[*(() if self._folder is None else (records_of(self._folder.path),)), self.work.records],
            notes=[_left(left, interrupted=interrupted)] if left else (),
        )
        some = f" of {len(read):,} of {self._show.total:,} pictures" if left else ""
        if not self.options.quiet:
            echo(f"The page{some} is in {out} ({size / 1e6:.1f} MB).", err=True)


def _left(count: int, *, interrupted: bool) -> str:
    pictures, were = ("picture", "was") if count == 1 else ("pictures", "were")
    if interrupted:
        return f"{count:,} more {pictures} {were} not read when the run was interrupted."
    return f"{count:,} more {pictures} had no budget left."
