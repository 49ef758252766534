"""What commands share that read pictures by a chain: their options, the checks of these, the chain that they name."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from askance.chains.named_chain import CHAINS, CHOOSING
from askance.cli.options import AllowFolder, Batch, Calls, Extract, Llm, Vlm
from askance.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from askance.chains import Chain
    from askance.chains.named_chain import ChosenChain
    from askance.chat import JsonObject
    from askance.cli.inputs import PictureFinder
    from askance.images.picture_folder import Fetch
    from askance.workspace import Workspace


@dataclass(frozen=True, kw_only=True)
class ChainOptions:
    """The options of a command that reads pictures by a chain, beside those of its calls; None is not given."""

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
    temperature: Annotated[
        float | None, typer.Option(min=0, help="Temperature of every model; goes before askance.toml.")
    ] = None
    seed: Annotated[int | None, typer.Option(help="Seed of every model, likewise; for endpoints that take one.")] = None
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Most tokens of an answer, likewise.")] = None
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print no cards, no progress and no counts: only what went wrong.")
    ] = False
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


def check_chain_options(options: ChainOptions, chosen: ChosenChain, calls: Calls) -> None:
    """Refuses options that would change nothing, rather than let someone believe that they did.

    Raises:
        UsageError: there is such an option, or one is missing.
    """
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


def _choosing(chosen: ChosenChain) -> str:
    """What takes options where a chain does not."""
    if goals := CHOOSING.get(chosen.named.name):
        return f"say {' or '.join(f'--goal {goal}' for goal in sorted(goals))}"
    return f"run {' or '.join(f'`{name}`' for name, goals in CHOOSING.items() if not goals)}"


def _check_pictures(options: ChainOptions, chosen: ChosenChain) -> None:
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


def picture_finder(options: ChainOptions, calls: Calls, work: Workspace, **drawn: Any) -> PictureFinder:
    """What finds the pictures; those that are fetched, or stand in a table, are kept beside the records.

    Args:
        options: name them.
        calls: say whether any are fetched.
        work: has the records.
        drawn: how a sample of them is drawn.
    """
    from askance.cli.inputs import PictureFinder, columns_named
    from askance.images.picture_folder import PICTURES, PictureFolder

    records = work.records
    return PictureFinder(
        named=options.named,
        columns=columns_named(options.column or ()),
        allowed=options.allow_folder or (),
        limit=options.limit,
        folder=lambda: PictureFolder(records.beside(PICTURES)),
        fetch=fetch_of(calls),
        quiet=options.quiet,
        **drawn,
    )


def fetch_of(calls: Calls) -> Fetch:
    """Which pictures are fetched from the web."""
    modes: Mapping[str, Fetch] = {"replay": "never", "live": "always", "refresh": "always"}
    return modes.get(calls.record_mode, "missing")


_ALWAYS_KEPT = ("context", "statement", "choose", "count", "step_by_step")
"""Options that every run folder names, null where they are not given or are none of its chain."""


def chain_configuration(options: ChainOptions, chosen: ChosenChain, chain: Chain) -> JsonObject:
    """Everything that decides the lines of a run, but its pictures."""
    return {
        "chain": options.chain,
        **dict.fromkeys(_ALWAYS_KEPT),
        **chosen.kept,
        "models": [model.form() for model in chain.models],
        "prompts": {prompt.path.name: prompt.digest for node in chain.nodes for prompt in node.prompts_in_use},
        **({} if options.question is None else {"question": options.question}),
    }


def named_chain(options: ChainOptions, chosen: ChosenChain, work: Workspace) -> Chain:
    """The chain that the command line names, with its models.

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
