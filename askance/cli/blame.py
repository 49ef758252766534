"""`askance blame`: which link of a run's chain its wrong answers come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from askance.amounts import many
from askance.cli.columns import Columns, Part, Report
from askance.cli.completion import figure_names
from askance.cli.options import (
    AsJson,
    Budget,
    Concurrency,
    Local,
    ModelCalls,
    Plan,
    Records,
    Replay,
    TaskPlace,
    Yes,
    spelled_out,
)
from askance.cli.process import OK, SOME
from askance.errors import UsageError
from askance.terminal import echo

if TYPE_CHECKING:
    from askance.cli.tally import Tally
    from askance.evals.analysis.blame import Blame, LinkBlame
    from askance.evals.analysis.trial import Replacement
    from askance.evals.metric import Figure
    from askance.evals.run import Run
    from askance.models import Model
    from askance.workspace import Workspace

SHOWN = 20
"""Answers that are listed at most."""


@dataclass(frozen=True, kw_only=True)
class BlameOptions:
    """The options of one `askance blame`; None is not given."""

    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished run.")]
    other: Annotated[
        Path | None, typer.Option("--with", metavar="OTHER", help="Take links from this run; by default drop them.")
    ] = None
    truth: Annotated[bool, typer.Option("--truth", help="Take links from what the samples say is true of them.")] = (
        False
    )
    truth_from: Annotated[
        Path | None, typer.Option(help="Take links from this file of JSON lines: `id`, and links by name.")
    ] = None
    link: Annotated[
        list[str] | None,
        typer.Option("--link", help="A link to try: V, T, IN, UH, T_V, s. May be repeated; by default all."),
    ] = None
    metric: Annotated[
        str | None,
        typer.Option(
            help="What tells right from wrong; by default the metric that stands for the task.",
            autocompletion=figure_names,
        ),
    ] = None
    vlm: Annotated[
        str | None, typer.Option(help="The model that sees; by default the run's, if its name says who it is.")
    ] = None
    llm: Annotated[str | None, typer.Option(help="The model that reads words, likewise.")] = None
    combiner: Annotated[str | None, typer.Option(help="The model that makes T_V, where it is another one.")] = None
    local: Local = False
    yes: Yes = False
    images: Annotated[
        list[str] | None,
        typer.Option("--images", help="Where the run's images are, for chains that answer from the image itself."),
    ] = None
    plan: Plan = False
    budget: Budget = None
    replay: Replay = False
    concurrency: Concurrency = None
    store: Records = None
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the results; by default the run's.")] = (
        None
    )
    seed: Annotated[int, typer.Option(help="Of the intervals.")] = 0
    task: TaskPlace = None
    as_json: AsJson = False

    @property
    def calls(self) -> ModelCalls:
        """How models are asked."""
        return ModelCalls(
            replay=self.replay,
            plan=self.plan,
            budget=self.budget,
            concurrency=self.concurrency,
            store=self.store,
            local=self.local,
            yes=self.yes,
        )


@spelled_out
def blame(options: BlameOptions) -> None:
    """Replace one link at a time, ask what follows from it again, and see which link turns wrong answers right."""
    from askance.chains import STATEMENT
    from askance.cli.execute import GOES_ON, execute
    from askance.cli.inputs import find_pictures
    from askance.cli.workspace import open_workspace
    from askance.evals.analysis.blame import LEDGER, blame_job, make_blame
    from askance.evals.analysis.trial import Trials
    from askance.evals.run import Run
    from askance.evals.task_catalog import task_of
    from askance.images import Image

    replacement = _replacement(options)
    links = [STATEMENT.short if name == "s" else name for name in options.link or ()] or None
    with open_workspace(options.calls, ledger=(options.out or options.folder) / LEDGER) as work:
        _ = work.config  # an error in the settings is said before one in the run
        run = Run.open(options.folder)
        if options.images:
            run = run.with_images(map(Image.from_path, find_pictures(options.images)))
        trials = Trials(
            run,
            task_of(run, options.task),
            engine=work.engine,
            models=dict(_models(options, run, work)),
            replacement=replacement,
            links=links,
            metric=options.metric,
        )
        code = execute(
            work,
            lambda progress: make_blame(trials, out=options.out, on_trial=progress.update, seed=options.seed),
            lambda blame: _report(options, blame, work.tally),
            plan=lambda: blame_job(trials).plan(),
            as_json=options.as_json,
            progress=lambda: work.progress("trials"),
            interrupted=lambda _: f"{work.tally}\n{GOES_ON}.",
        )
    raise typer.Exit(code)


def _report(options: BlameOptions, blame: Blame, tally: Tally) -> Report:
    """What the trials say."""
    counters = {"counters": dict(blame.counters)} if blame.counters else {}
    return Report(
        lambda: {**blame.form(), **counters},
        lambda: blame_parts(blame),
        breaks=False,
        ends=lambda: _end(options, blame, tally),
    )


def _end(options: BlameOptions, blame: Blame, tally: Tally) -> int:
    """Says what was asked, and what is left; returns the exit code."""
    from askance.models import Counters

    counted = (f"{name}: {Counters.from_canonical(form)}." for name, form in blame.counters.items())
    echo("\n".join([str(tally), *counted]), err=True)
    if blame.trials:
        echo(f"The trials are in {options.out or options.folder}.", err=True)
    if blame.left:
        echo(
            f"The next call might have passed the budget: "
            f"{many(blame.left, 'trial is', 'trials are')} left. The same command with a "
            "larger --budget goes on.",
            err=True,
        )
    unread = any(trial.now.outcome not in {"answered", "skipped"} for trial in blame.trials)
    return SOME if blame.left or unread else OK


def _replacement(options: BlameOptions) -> Replacement | None:
    """What is put in a link's place; None drops the link.

    Raises:
        UsageError: the options contradict each other.
    """
    from askance.evals.analysis.trial import from_run, from_truth
    from askance.evals.run import Run

    sources = [
        name
        for name, value in (("--with", options.other), ("--truth", options.truth), ("--truth-from", options.truth_from))
        if value
    ]
    if len(sources) > 1:
        raise UsageError(
            f"{sources[0]} and {sources[1]} both say what is put in a link's place.", hint="Leave one out."
        )
    if options.plan and options.replay:
        raise UsageError("`--replay` asks nothing, so there is nothing to plan.", hint="Leave one out.")
    if options.other is not None:
        return from_run(Run.open(options.other))
    return from_truth(options.truth_from) if options.truth or options.truth_from else None


def _models(options: BlameOptions, run: Run, work: Workspace) -> Iterator[tuple[str, Model]]:
    """The models by role: those that are named, and those of the run that the settings or their own names lead to."""
    from askance.evals.analysis.trial import JUDGE, model_forms

    names = {"vlm": options.vlm, "llm": options.llm, "combiner": options.combiner}
    forms = model_forms(run)
    for role in (*forms, *(role for role, name in names.items() if name and role not in forms)):
        name = names.get(role) or (None if role == JUDGE else work.local_model)
        if name is not None:
            model = work.model(name)
            if role in forms and model.form() != forms[role]:
                echo(f"askance: The {role} of the run was another model than {name!r}.", err=True)
            yield role, model
            continue
        own = work.described_model(forms[role])
        if own is not None:
            yield role, own


def blame_parts(blame: Blame) -> Iterator[Part]:
    """What the trials come to, and which link each wrong answer comes from."""
    right = blame.samples - blame.unanswered - len(blame.wrong)
    yield (
        f"{many(blame.samples, 'answer')}: {right:,} right by {blame.metric}, {len(blame.wrong):,} wrong, "
        f"{blame.unanswered:,} without an answer."
    )
    if not blame.wrong:
        yield "There is nothing to blame."
        return
    if not blame.sums:
        yield "There is nothing to put in the place of a link."
        return
    yield f"Each link {blame.words}, and what follows from it asked again:"
    yield ""
    yield _table(blame)
    yield ""
    for answer in blame.wrong[:SHOWN]:
        flips, guilty = blame.flips(answer), blame.guilty(answer)
        others = [blame.short(link) for link in flips if link not in guilty]
        also = f" (flipped by {', '.join(others)} too)" if others else ""
        epoch = f" (epoch {answer.epoch})" if answer.epoch else ""
        yield f"{answer.sample.id}{epoch}: {', '.join(map(blame.short, guilty)) or 'no single link'}{also}"
    if len(blame.wrong) > SHOWN:
        yield f"… and {len(blame.wrong) - SHOWN:,} more; `--json` has them all"


def _table(blame: Blame) -> Columns:
    head = ("link", "tried", "flips", "95 % interval", "to blame", "95 % interval", "change")
    return Columns([head, *(_link_row(each, blame.short(each.link), percent=blame.percent) for each in blame.sums)])


def _link_row(each: LinkBlame, name: str, *, percent: bool) -> tuple[str, ...]:
    from askance.evals.tables import NONE

    change = NONE if each.change.value is None else f"{each.change.value * (100 if percent else 1):+.2f}"
    return (name, f"{each.flips.samples:,}", *_share(each.flips), *_share(each.guilty), change)


def _share(figure: Figure) -> tuple[str, str]:
    from askance.evals.tables import NONE, shown_value

    interval = figure.interval
    limits = [] if interval is None else [interval.low, interval.high]
    return shown_value(figure.value, percent=True), " – ".join(
        shown_value(each, percent=True) for each in limits
    ) or NONE
