"""`askance run`: pictures through a chain."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from askance.chains.named_chain import CHAINS, CHOOSING
from askance.cli.chain_command import chosen_chain
from askance.cli.columns import Report, complain
from askance.cli.options import AllowFolder, Batch, Calls, Extract, Llm, PromptCalls, Vlm, spelled_out
from askance.cli.process import INTERRUPTED, OK, SOME, Process
from askance.errors import AskanceError, ConfigError, UsageError
from askance.terminal import echo

if TYPE_CHECKING:
    from askance.chains import Chain
    from askance.chains.named_chain import ChosenChain
    from askance.chat import JsonObject
    from askance.cli.display import ReadingDisplay
    from askance.cli.inputs import Drawn, PictureFinder
    from askance.cli.workspace import CommandWorkspace
    from askance.evals import RunFolder
    from askance.evals.picture_run import PictureOptions, PictureRun
    from askance.evals.runner import BatchOptions
    from askance.images.picture_folder import Fetch
    from askance.workspace import Workspace


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of one `askance run` beside those of its calls; None is not given."""

    chain: Annotated[
        str,
        typer.Argument(
            help=f"What to find out of each image: {', '.join(CHAINS.built_in)}, or a chain that an installed package "
            "brings.",
            autocompletion=CHAINS.names,
        ),
    ]
    images: Annotated[
        list[str],
        typer.Argument(
            help="Files, folders, patterns and addresses (https://…); a table: CSV, JSON lines, Parquet, or a data set "
            "of Hugging Face (hf:OWNER/NAME). For `ask` the first is the question."
        ),
    ]
    vlm: Vlm = None
    llm: Llm = None
    extract: Extract = None
    options: Annotated[
        Path | None,
        typer.Option(
            help="What can be chosen from: one a line; a JSON or YAML list, or map by image name; or a table (CSV, "
            "JSON lines) with the columns image and options."
        ),
    ] = None
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COLUMN",
            help="Of a table: image=COLUMN has the images (by default the column image), options=COLUMN what can be "
            "chosen from, question=COLUMN what `ask` asks about each image, in place of a question for all.",
        ),
    ] = None
    allow_folder: AllowFolder = None
    limit: Annotated[int | None, typer.Option(min=1, help="Read only so many images, the first ones.")] = None
    sample: Annotated[int | None, typer.Option(min=1, help="Read only so many images, drawn at random.")] = None
    sample_seed: Annotated[int | None, typer.Option(help="Seed of the draw of --sample; by default 0.")] = None
    temperature: Annotated[
        float | None, typer.Option(min=0, help="Temperature of every model; goes before askance.toml.")
    ] = None
    seed: Annotated[int | None, typer.Option(help="Seed of every model, likewise; for endpoints that take one.")] = None
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Most tokens of an answer, likewise.")] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line for each image.")] = False
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print no cards, no progress and no counts: only what went wrong.")
    ] = False
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder that keeps the run: lines, records, totals.")
    ] = None
    html: Annotated[
        Path | None,
        typer.Option(help="Also write a page: every image with what was said of it, every prompt and reply."),
    ] = None
    batch: Batch = False
    image_policy: Annotated[
        Literal["clean", "original"] | None,
        typer.Option(help="clean takes metadata out of what is sent; original sends files as they are."),
    ] = None

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings of every model."""
        settings = {"temperature": self.temperature, "seed": self.seed, "max_tokens": self.max_tokens}
        return {name: value for name, value in settings.items() if value is not None}

    @property
    def question(self) -> str | None:
        """What `ask` asks about all images."""
        return self.images[0] if self.chain == "ask" and not self.questions_of_table else None

    @property
    def questions_of_table(self) -> bool:
        """Whether a table brings a question for each image."""
        return any(column.startswith("question=") for column in self.column or ())

    @property
    def options_of_table(self) -> bool:
        """Whether a table brings what can be chosen from."""
        return any(column.startswith("options=") for column in self.column or ())

    @property
    def named(self) -> Sequence[str]:
        """What names images."""
        return self.images if self.question is None else self.images[1:]


@spelled_out
def run(context_: typer.Context, options: RunOptions, calls: PromptCalls) -> None:
    """Read images: what is in them, what they say, what is odd, and which of the options they argue for."""
    chosen = chosen_chain(context_, options.chain)
    _check(options, chosen, calls)
    raise typer.Exit(_run(options, chosen, calls, ready=Process.of(context_).settled))


def _check(options: RunOptions, chosen: ChosenChain, calls: Calls) -> None:
    """Refuses options that would change nothing, rather than let someone believe that they did."""
    _check_pictures(options, chosen)
    if options.options is not None and chosen.chooses is False:
        raise UsageError(
            f"`askance run {options.chain}` takes no --options.", hint=f"Leave it out, or {_choosing(chosen)}."
        )
    if chosen.chooses and options.options is None and not options.options_of_table:
        raise UsageError(
            f"`askance run {options.chain}` chooses among options, and none are given.",
            hint="Give --options FILE: one option a line, a JSON list, or a JSON map by image name.",
        )
    if chosen.kept.get("choose") == "single" and "count" in chosen.kept:
        raise UsageError("`--choose single` chooses one option, so it takes no --count.", hint="Leave one out.")
    if chosen.kept.get("goal") == "answer" and "question" not in chosen.kept and not options.questions_of_table:
        raise UsageError("The goal `answer` answers a question, and none is given.", hint='Say --question "…".')
    calls.check_batch(wanted=options.batch)
    if options.out is not None:
        calls.check_recorded("`--out` could not keep what was answered")
    if options.html is not None:
        _check_page(options.html, calls)


def _choosing(chosen: ChosenChain) -> str:
    """What takes options where a chain does not."""
    if goals := CHOOSING.get(chosen.named.name):
        return f"say {' or '.join(f'--goal {goal}' for goal in sorted(goals))}"
    return f"run {' or '.join(f'`{name}`' for name, goals in CHOOSING.items() if not goals)}"


def _check_pictures(options: RunOptions, chosen: ChosenChain) -> None:
    """Refuses options that name pictures, or choose among them, and go with no others."""
    if options.question is not None:
        _check_question(options.question, options.named)
    if options.options_of_table and chosen.chooses is False:
        raise UsageError(f"`askance run {options.chain}` takes no options.", hint="Leave `--column options=…` out.")
    asks = options.chain == "ask" or chosen.kept.get("goal") == "answer" or options.chain not in CHAINS.built_in
    if options.questions_of_table and not asks:
        raise UsageError(
            f"`askance run {options.chain}` asks no question of yours.", hint="Leave `--column question=…` out."
        )
    if options.options_of_table and options.options is not None:
        raise UsageError("`--options` and `--column options=…` both bring the options.", hint="Leave one out.")
    if options.sample is not None and options.limit is not None:
        raise UsageError("`--sample` and `--limit` both say how many images are read.", hint="Leave one out.")
    if options.sample_seed is not None and options.sample is None:
        raise UsageError("`--sample-seed` goes with `--sample`.", hint="Say how many: --sample 20")


def _check_question(question: str, images: Sequence[str]) -> None:
    """Refuses an image in the place of the question, and a question without an image."""
    from askance.images import SUFFIXES

    path = Path(question)
    if not question.strip() or path.suffix.lower() in SUFFIXES or os.path.isdir(question):  # noqa: PTH112  # a question may be too long for a path
        raise UsageError(
            f"{question!r} stands in the place of the question.",
            hint='The question comes first: askance run ask "What is odd here?" photo.jpg',
        )
    if not images:
        raise UsageError(
            f"No image is named to ask about: {question!r} is the question.",
            hint='Name one after it: askance run ask "What is odd here?" photo.jpg',
        )


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
    from askance.cli.inputs import read_options
    from askance.cli.workspace import open_workspace
    from askance.evals.picture_run import name_of

    with open_workspace(calls, image_policy=command_options.image_policy, settings=command_options.settings) as work:
        _ = work.config  # an error in the settings is said before one in the pictures
        finder = _finder(command_options, calls, work)
        samples: PictureOptions = finder.find()
        if command_options.options is not None:
            options = read_options(command_options.options, [name_of(picture) for picture in samples])
            samples = dict(zip(samples, options, strict=True))
        chain = _build(command_options, chosen, work)
        _say_pictures(samples, finder.drawn, quiet=command_options.quiet)
        return _Reading(command_options, chosen, chain, samples, finder.drawn, work, ready).run()


def _finder(options: RunOptions, calls: Calls, work: Workspace) -> PictureFinder:
    """What finds the pictures; those that are fetched, or stand in a table, are kept beside the records."""
    from askance.cli.inputs import PictureFinder, columns_named
    from askance.images.picture_folder import PICTURES, PictureFolder

    modes: Mapping[str, Fetch] = {"replay": "never", "live": "always", "refresh": "always"}
    records = work.records
    return PictureFinder(
        named=options.named,
        columns=columns_named(options.column or ()),
        allowed=options.allow_folder or (),
        limit=options.limit,
        sample=options.sample,
        seed=options.sample_seed or 0,
        folder=lambda: PictureFolder(records.beside(PICTURES)),
        fetch=modes.get(calls.record_mode, "missing"),
        quiet=options.quiet,
    )


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


_ALWAYS_KEPT = ("context", "statement", "choose", "count", "step_by_step")
"""Options that every run folder names, null where they are not given or are none of its chain."""


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

        options, chain = self.options, self.chain
        return {
            "chain": options.chain,
            **dict.fromkeys(_ALWAYS_KEPT),
            **self.chosen.kept,
            "models": [model.form() for model in chain.models],
            "prompts": {prompt.path.name: prompt.digest for node in chain.nodes for prompt in node.prompts_in_use},
            **({} if options.question is None else {"question": options.question}),
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


def _build(options: RunOptions, chosen: ChosenChain, work: Workspace) -> Chain:
    """The chain that the command line names.

    Raises:
        ConfigError: no model is named, or none has the name.
    """
    from askance.chains import ask

    vlm_name = options.vlm or work.default_model("vlm")
    if vlm_name is None:
        raise ConfigError(
            "No model is named for --vlm.",
            hint="On this machine: --local. "
            "A local server: --vlm openai:Qwen/Qwen2.5-VL-7B-Instruct@http://localhost:8000/v1. "
            "An API: --vlm openai:gpt-4o (with OPENAI_API_KEY set). Or set `vlm` in askance.toml.",
        )
    vlm = work.model(vlm_name)
    llm_name = options.llm or work.default_model("llm")
    llm = vlm if llm_name is None else work.model(llm_name)
    if options.chain == "ask":
        chain = ask(vlm, options.question, prompts=work.library)
    else:
        chain = chosen.make(vlm, llm, prompts=work.library)
    return chain if options.extract is None else chain.with_extractor(work.model(options.extract), prompts=work.library)
