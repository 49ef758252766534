"""One `askance blame`: its options, its models, its trials, and what is said of them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askance.amounts import many
from askance.chains import STATEMENT
from askance.cli.exits import INTERRUPTED, OK, SOME
from askance.cli.progress import Progress, calls_state
from askance.errors import ConfigError, UsageError
from askance.evals.blame_files import LEDGER
from askance.evals.blaming import Blaming
from askance.evals.catalog import definition_of
from askance.evals.replacing import from_run, from_truth
from askance.evals.run import Run
from askance.evals.tables import NONE, shown_value
from askance.models import Counters
from askance.terminal import printable

if TYPE_CHECKING:
    from askance.cli.options import ModelCalls
    from askance.cli.tally import Tally
    from askance.evals.blamed import Blame, Blamed
    from askance.evals.figures import Figure
    from askance.evals.replacing import Replacement
    from askance.evals.values import Sample
    from askance.models import Engine, Model
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


def _row(each: Blamed, name: str, *, percent: bool) -> tuple[str, ...]:
    change = NONE if each.change.value is None else f"{each.change.value * (100 if percent else 1):+.2f}"
    return (name, f"{each.flips.samples:,}", *_share(each.flips), *_share(each.guilty), change)


def _share(figure: Figure) -> tuple[str, str]:
    interval = figure.interval
    limits = [] if interval is None else [interval.low, interval.high]
    return shown_value(figure.value, percent=True), " – ".join(
        shown_value(each, percent=True) for each in limits
    ) or NONE


@dataclass(frozen=True, kw_only=True)
class Asked:
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


def blame_by(asked: Asked, calls: ModelCalls) -> int:
    """Makes the trials, or plans them; returns the exit code.

    Raises:
        UsageError: the options contradict each other, or name what is not there.
        StoreError: the records or the run folder cannot be opened.
        CallError: no call can succeed.
    """
    replacement, links = _replacement(asked, calls), [_TYPED.get(name, name) for name in asked.links] or None
    with calls.open(ledger=(asked.out or asked.folder) / LEDGER) as work:
        _ = work.config  # settings that cannot be used are told of before the run is
        run = _with_images(Run.open(asked.folder), asked.images)
        blaming = Blaming(
            run,
            definition_of(run, asked.task),
            engine=work.engine,
            models=dict(_models(asked, run, work)),
            replacement=replacement,
            links=links,
            metric=asked.metric,
        )
        return _plan(asked, blaming, work.engine) if calls.plan else _blame(asked, blaming, work.tally)


def _blame(asked: Asked, blaming: Blaming, tally: Tally) -> int:
    try:
        with Progress("trials", state=calls_state(tally, blaming.engine)) as progress:
            blame = asyncio.run(blaming.blame(out=asked.out, told=progress.update, seed=asked.seed))
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


def _plan(asked: Asked, blaming: Blaming, engine: Engine) -> int:
    from askance.cli.output import plan_form, plan_text

    found = asyncio.run(blaming.planned())
    if asked.as_json:
        print(json.dumps(plan_form(found, engine)))
    else:
        print(plan_text(found, engine).replace(" images, ", " trials, ", 1).replace(" image, ", " trial, ", 1))
    return OK


def _replacement(asked: Asked, calls: ModelCalls) -> Replacement | None:
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
    if asked.truth_from is not None:
        told = dict(_told(asked.truth_from))
        return from_truth(lambda sample: _true_of(sample, told))
    return from_truth() if asked.truth else None


def _told(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What a file says is true, by id of the sample or of its group."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"The file {str(file)!r} cannot be read: {error}.", hint="Give a readable file of UTF-8 text."
        ) from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            form: Any = json.loads(line)
            said: Mapping[str, Any] = {link: form[link] for link in form if link != "id"}
            yield str(form["id"]), said
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f"Line {number} of {str(file)!r} says nothing of a sample.",
                hint='Write one object a line: {"id": "…", "statement": "…"}.',
            ) from error


def _true_of(sample: Sample, told: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    return told.get(sample.id) or told.get(sample.cluster) or {}


def _models(asked: Asked, run: Run, work: Workspace) -> Iterator[tuple[str, Model]]:
    """Those that are named, and those of the run whose names say who they are."""
    forms: Mapping[str, Any] = run.configuration["models"]
    for role in (*forms, *(role for role, name in asked.models.items() if name and role not in forms)):
        name = asked.models.get(role) or work.local_model
        if name is not None:
            model = work.model(name)
            if role in forms and model.form() != forms[role]:
                print(f"askance: The {role} of the run was another model than {printable(name)!r}.", file=sys.stderr)
            yield role, model
            continue
        own = _own(forms[role], work)
        if own is not None:
            yield role, own


def _own(form: Mapping[str, Any], work: Workspace) -> Model | None:
    """The model that a run describes, where its name leads to it; None where it does not."""
    who: Mapping[str, Any] = form["id"]
    name = who.get("name") or f"{who.get('provider')}:{who.get('model')}"
    spec = f"{name}@{who['endpoint']}" if who.get("endpoint") else str(name)
    try:
        model = work.model(spec)
    except (ConfigError, UsageError):
        return None
    return model if model.form() == form else None


def _with_images(run: Run, places: Sequence[str]) -> Run:
    """The run with the pictures that lie in `places`, in place of their digests."""
    if not places:
        return run
    from askance.cli.inputs import find_pictures
    from askance.images import Image

    found = {image.sha256: image for image in map(Image.from_path, find_pictures(places))}
    answers = [
        replace(answer, sample=replace(answer.sample, image=found.get(answer.sample.image.sha256)))
        if answer.sample.image is not None and answer.sample.image.sha256 in found
        else answer
        for answer in run.answers
    ]
    return run.scored(answers, run.figures)
