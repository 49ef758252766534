"""Answers that look at nothing, over the very samples of `pittads/arr-multi` and `pittads/arr-single`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from askance.agents import Mode
from askance.errors import UsageError
from askance.evals.baselines import LongestOption, MajoritySolver, RandomSolver, expected_figures
from askance.evals.pittads.ads import Source, taken
from askance.evals.pittads.arr import TrueShown, samples_of
from askance.evals.pittads.contexts import view_of
from askance.evals.pittads.kinds import NEGATIVE_KINDS, kinds_of, options_notes
from askance.evals.suite.choice import COUNT, kinds_in, multi_scoring, single_scoring
from askance.evals.suite.context import TEXT_ONLY
from askance.evals.tasks import Scoring, Task, task

if TYPE_CHECKING:
    from askance.evals.figures import Figure
    from askance.evals.pittads.ads import Taken
    from askance.evals.pittads.dataset import Negatives
    from askance.evals.pittads.selection import Which
    from askance.evals.solving import Solver
    from askance.evals.values import Sample

Baseline: TypeAlias = Literal["random", "longest", "majority"]
"""What looks at nothing: lots, the longest options, the numbers that are true most often."""


CHANCES = ("p@1", "p@2", "p@3", "acc@1", "acc@2", "mean of five", "accuracy")
"""Figures of which the exact chance is told."""


def scoring(*, mode: Mode = "multi", orders: int = 1) -> Scoring:
    """How answers are scored: as those of `pittads/arr-multi` or `pittads/arr-single`."""
    return (multi_scoring if mode == "multi" else single_scoring)(NEGATIVE_KINDS, orders=orders)


def count_of(mode: Mode) -> int:
    """Options of an answer."""
    return COUNT if mode == "multi" else 1


def solver(
    *, samples: Sequence[Sample] = (), baseline: Baseline = "random", mode: Mode = "multi", seed: int = 0
) -> Solver:
    """The solver of a run over `samples`."""
    return _solver(baseline, samples, count=count_of(mode), seed=seed)


@task("pittads/arr-baseline", scoring=scoring, solver=solver)
def arr_baseline(  # noqa: PLR0913  # the options of a task
    data: Path,
    *,
    baseline: Baseline = "random",
    mode: Mode = "multi",
    true: TrueShown = "all",
    ids: Path | None = None,
    small: bool = False,
    limit: int | None = None,
    seed: int = 0,
    orders: int = 1,
    which: Which = "usable",
    qa: Path | None = None,
    negatives: Negatives = "easy",
) -> Task:
    """What answers get that look neither at the picture nor at what is said of it.

    Args:
        data: folder of the data set.
        baseline: `random` options, the `longest` ones, or the numbers that are true most often (`majority`).
        mode: `multi` gives three options, `single` one.
        true: whether `one` of the true statements stands among the options, or `all`.
        ids: file that lists the images.
        small: 250 images, drawn by the seed.
        limit: images at most.
        seed: of the lots, of the order of options, of the true one, and of the drawn set.
        orders: 2 asks each sample again with its options the other way round.
        which: of the annotated images the `usable`, the `labelled` or the `typical` ones.
        qa: file of statements and options; by default the data set's own.
        negatives: wrong options, `easy` ones of the data set or `hard` ones of `askance negatives generate`.

    Raises:
        BadData: the data lack what the task needs.
        UsageError: an option that cannot be.
    """
    source = Source(data=data, ids=ids, small=small, seed=seed, which=which, qa=qa, negatives=negatives)
    asked = {"mode": mode, "orders": orders, "true": true}
    found, samples = samples_from(source, TEXT_ONLY, looks=False, limit=limit, asked=asked)
    return Task(
        samples=samples,
        solver=_solver(baseline, samples, count=count_of(mode), seed=seed),
        label=baseline,
        options={**source.form(), **asked, "baseline": baseline},
        notes=(*found.notes, chance_note(samples, mode=mode)) if baseline == "random" else found.notes,
    )


def _solver(baseline: Baseline, samples: Sequence[Sample], *, count: int, seed: int) -> Solver:
    if baseline not in get_args(Baseline):
        raise UsageError(f"There is no baseline {baseline!r}.", hint=f"Choose one of {', '.join(get_args(Baseline))}.")
    if baseline == "random":
        return RandomSolver(count=count, seed=seed)
    return LongestOption(count=count) if baseline == "longest" else MajoritySolver(samples, count=count)


def samples_from(
    source: Source, context: str, *, looks: bool, limit: int | None, asked: Mapping[str, Any]
) -> tuple[Taken, list[Sample]]:
    """The ads, and their samples as the other tasks have them."""
    if asked["mode"] not in get_args(Mode) or asked["true"] not in get_args(TrueShown):
        raise UsageError(
            f"There is no mode {asked['mode']!r} with {asked['true']!r} of the true statements.",
            hint="The mode is `multi` or `single`; true statements are `one` or `all`.",
        )
    view = view_of(context)
    found = taken(
        source,
        view,
        looks=looks,
        limit=limit,
        needs=("options", "true"),
        usable={"with no true and no wrong option": lambda ad: bool(ad.true and ad.negatives)},
    )
    kinds = kinds_of(found.data)
    each = (samples_of(ad, found, view, kinds=kinds, seed=source.seed, asked=asked) for ad in found.ads)
    made = [sample for samples in each for sample in samples]
    return replace(found, notes=(*found.notes, *options_notes(found.data, made))), made


def chance_figures(samples: Sequence[Sample], *, mode: Mode = "multi", seed: int = 0) -> tuple[Figure, ...]:
    """What random answers get on average, exactly, in the figures of the tasks."""
    return expected_figures(samples, scoring(mode=mode), count=count_of(mode), alike=_kinds, seed=seed)


def chance_note(samples: Sequence[Sample], *, mode: Mode) -> str:
    """The same in a sentence, to stand beside what was drawn."""
    shown = [each for each in chance_figures(samples, mode=mode) if each.metric in CHANCES and each.value is not None]
    return f"Chance, exactly: {', '.join(f'{each.metric} {100 * (each.value or 0):.2f}' for each in shown)}"


def _kinds(sample: Sample) -> tuple[str, ...]:
    """How many options there are of each kind: all that the expectation depends on."""
    return tuple(sorted(kinds_in(sample)))
