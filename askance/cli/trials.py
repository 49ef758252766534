"""One `askance blame`: its options, its models, its trials, and what is said of them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from askance.amounts import many
from askance.chains import STATEMENT
from askance.cli.exits import INTERRUPTED, OK, SOME
from askance.cli.inputs import find_pictures
from askance.cli.output import print_plan
from askance.cli.progress import Progress, calls_state
from askance.errors import UsageError
from askance.evals.analysis.blame import LEDGER, make_blame, plan_blame
from askance.evals.analysis.trial import JUDGE, Trials, from_run, from_truth, model_forms
from askance.evals.catalog import task_of
from askance.evals.run import Run
from askance.evals.tables import NONE, shown_value
from askance.images import Image
from askance.models import Counters
from askance.terminal import printable

if TYPE_CHECKING:
    from askance.cli.options import ModelCalls
    from askance.cli.tally import Tally
    from askance.evals.analysis.blame import Blame, LinkBlame
    from askance.evals.analysis.trial import Replacement
    from askance.evals.metric import Figure
    from askance.models import Model
    from askance.workspace import Workspace

SHOWN = 20
"""Answers that are listed at most."""

_TYPED = {"s": STATEMENT.short}
"""Short names of links as they are typed."""


def blame_text(blame: Blame) -> Iterator[str]:
    """What the trials come to, and whose answers came from where."""
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
    yield from _table(blame)
    yield ""
    for answer in blame.wrong[:SHOWN]:
        flips, guilty = blame.flips(answer), blame.guilty(answer)
        others = [blame.short(link) for link in flips if link not in guilty]
        also = f" (flipped by {', '.join(others)} too)" if others else ""
        epoch = f" (epoch {answer.epoch})" if answer.epoch else ""
        yield f"{answer.sample.id}{epoch}: {', '.join(map(blame.short, guilty)) or 'no single link'}{also}"
    if len(blame.wrong) > SHOWN:
        yield f"… and {len(blame.wrong) - SHOWN:,} more; `--json` has them all"


def _table(blame: Blame) -> Iterator[str]:
    head = ("link", "tried", "flips", "95 % interval", "to blame", "95 % interval", "change")
    rows = [head, *(_row(each, blame.short(each.link), percent=blame.percent) for each in blame.sums)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(head))]
    for row in rows:
        cells = (f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
        yield f"{row[0]:<{widths[0]}}  {'  '.join(cells)}"


def _row(each: LinkBlame, name: str, *, percent: bool) -> tuple[str, ...]:
    change = NONE if each.change.value is None else f"{each.change.value * (100 if percent else 1):+.2f}"
    return (name, f"{each.flips.samples:,}", *_share(each.flips), *_share(each.guilty), change)


def _share(figure: Figure) -> tuple[str, str]:
    interval = figure.interval
    limits = [] if interval is None else [interval.low, interval.high]
    return shown_value(figure.value, percent=True), " – ".join(
        shown_value(each, percent=True) for each in limits
    ) or NONE


@dataclass(frozen=True, kw_only=True)
class BlameOptions:
    """The options of one `askance blame`; None is not given."""

    folder: Path
    other: Path | None
    truth: bool
    truth_from: Path | None
    links: Sequence[str]
    metric: str | None
    models: Mapping[str, str | None]
    images: Sequence[str]
    out: Path | None
    seed: int
    task: str | None
    as_json: bool


def blame_by(asked: BlameOptions, calls: ModelCalls) -> int:
    """Makes the trials, or plans them; returns the exit code.

    Raises:
        UsageError: the options contradict each other, or name what is not there.
        StoreError: the records or the run folder cannot be opened.
        CallError: no call can succeed.
    """
    replacement, links = _replacement(asked, calls), [_TYPED.get(name, name) for name in asked.links] or None
    with calls.open(ledger=(asked.out or asked.folder) / LEDGER) as work:
        _ = work.config  # settings that cannot be used are told of before the run is
        run = Run.open(asked.folder)
        if asked.images:
            run = run.with_images(map(Image.from_path, find_pictures(asked.images)))
        trials = Trials(
            run,
            task_of(run, asked.task),
            engine=work.engine,
            models=dict(_models(asked, run, work)),
            replacement=replacement,
            links=links,
            metric=asked.metric,
        )
        if not calls.plan:
            return _blame(asked, trials, work.tally)
        print_plan(asyncio.run(plan_blame(trials)), work.engine, as_json=asked.as_json)
        return OK


def _blame(asked: BlameOptions, trials: Trials, tally: Tally) -> int:
    try:
        with Progress("trials", state=calls_state(tally, trials.engine)) as progress:
            blame = asyncio.run(make_blame(trials, out=asked.out, on_trial=progress.update, seed=asked.seed))
    except KeyboardInterrupt:
        print(f"{tally}\nInterrupted. The same command goes on where this one stopped.", file=sys.stderr)
        return INTERRUPTED
    counters = {"counters": dict(blame.counters)} if blame.counters else {}
    print(json.dumps({**blame.form(), **counters}) if asked.as_json else printable("\n".join(blame_text(blame))))
    counted = (f"{printable(name)}: {Counters.from_canonical(form)}." for name, form in blame.counters.items())
    print("\n".join([str(tally), *counted]), file=sys.stderr)
    if blame.trials:
        print(f"The trials are in {asked.out or asked.folder}.", file=sys.stderr)
    if blame.left:
        print(
            f"The next call might have passed the budget: "
            f"{many(blame.left, 'trial is', 'trials are')} left. The same command with a "
            "larger --budget goes on.",
            file=sys.stderr,
        )
    unread = any(trial.now.outcome not in {"answered", "skipped"} for trial in blame.trials)
    return SOME if blame.left or unread else OK


def _replacement(asked: BlameOptions, calls: ModelCalls) -> Replacement | None:
    given = [
        name
        for name, value in (("--with", asked.other), ("--truth", asked.truth), ("--truth-from", asked.truth_from))
        if value
    ]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} both say what is put in a link's place.", hint="Leave one out.")
    if calls.plan and calls.record_mode == "replay":
        raise UsageError("`--replay` asks nothing, so there is nothing to plan.", hint="Leave one out.")
    if asked.other is not None:
        return from_run(Run.open(asked.other))
    return from_truth(asked.truth_from) if asked.truth or asked.truth_from else None


def _models(asked: BlameOptions, run: Run, work: Workspace) -> Iterator[tuple[str, Model]]:
    """Those that are named, and those of the run that the settings or their names lead to."""
    forms = model_forms(run)
    for role in (*forms, *(role for role, name in asked.models.items() if name and role not in forms)):
        name = asked.models.get(role) or (None if role == JUDGE else work.local_model)
        if name is not None:
            model = work.model(name)
            if role in forms and model.form() != forms[role]:
                print(f"askance: The {role} of the run was another model than {printable(name)!r}.", file=sys.stderr)
            yield role, model
            continue
        own = work.described_model(forms[role])
        if own is not None:
            yield role, own
