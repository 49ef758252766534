"""Controls, as experiments have them: the task again, with each picture or region swapped for that of another sample.

What a model gets right on the wrong picture, it did not get from the picture.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from askance.amounts import many
from askance.chains import STATEMENT
from askance.chains.link import LINKS_BY_NAME
from askance.errors import BadImage, UsageError
from askance.evals.sample import REGIONS, SHOTS, Sample
from askance.evals.solver import as_solver
from askance.evals.task import Task, evaluation_of

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.evaluation import Evaluation
    from askance.images import Image

Control: TypeAlias = Literal["swapped-image", "swapped-region"]
CONTROLS: tuple[Control, ...] = get_args(Control)

SWAPPED_NOTE = "Control: each sample is shown another sample's picture, and what was given of its own is dropped"
SWAPPED_REGION_NOTE = "Control: each sample is asked about a region of another sample's picture"


def controlled(task: Task | Evaluation, control: str, *, seed: int = 0) -> Evaluation:
    """`task` with a control.

    Args:
        task: a task, or the evaluation of one.
        control: name of the control.
        seed: decides which picture goes where.

    Raises:
        UsageError: there is no control of that name, or the task cannot have it.
    """
    make = _CONTROLS.get(control)
    if make is None:
        raise UsageError(f"There is no control {control!r}.", hint=f"There are {', '.join(CONTROLS)}.")
    return make(evaluation_of(task), seed)


def swapped_images(task: Task | Evaluation, *, seed: int = 0) -> Evaluation:
    """`task` with every sample's picture swapped for that of another sample.

    No sample keeps its own picture, or one of equal bytes. Samples that share a picture share one after the swap. Ids,
    targets, groups and options stay. Links that are given, such as published verbalizations, describe the sample's own
    picture, so they are dropped.

    Args:
        task: its samples have pictures.
        seed: decides which picture goes where.

    Raises:
        UsageError: a sample has no picture, all have the same one, the chain has no step for a link that is dropped, a
            sample's examples were chosen by what is like its own picture, or samples are about regions.
    """
    task = evaluation_of(task)
    if any(REGIONS in sample.inputs for sample in task.samples):
        raise UsageError(
            f"The samples of {task.name!r} are about regions, which lie in their own pictures.",
            hint="Give --control swapped-region, which swaps regions with their pictures.",
        )
    _check_pictures(task)
    pictures = {_digest(sample): sample.image for sample in task.samples}
    if len(pictures) < 2:
        raise UsageError(
            f"The samples of {task.name!r} all have one picture, which cannot be swapped.",
            hint="Give the task at least two pictures.",
        )
    after = next_of(list(pictures), seed=seed)
    chain = as_solver(task.solver).answers_from
    links = LINKS_BY_NAME if chain is None else chain.links
    return replace(
        task,
        samples=[_shown(sample, pictures[after[_digest(sample)]], links) for sample in task.samples],
        label=f"{task.label}, swapped image" if task.label else "",
        options={**task.options, "control": "swapped-image", "control_seed": seed},
        notes=(*task.notes, SWAPPED_NOTE),
    )


def swapped_regions(task: Task | Evaluation, *, seed: int = 0) -> Evaluation:
    """`task` with every sample's regions, and the picture that they lie in, swapped for those of another sample.

    No sample keeps its picture, or one of equal bytes. Samples that share a picture share one after the swap. A sample
    takes the regions of one with as many; where no other picture has such a sample, it is left out. What is asked of
    the regions, ids, targets, groups and options stay.

    Args:
        task: its samples are about regions.
        seed: decides which regions go where.

    Raises:
        UsageError: a sample has no picture or no regions, no sample has a partner, or as for `swapped_images`.
    """
    task = evaluation_of(task)
    if not all(sample.inputs.get(REGIONS) for sample in task.samples):
        raise UsageError(
            f"The samples of {task.name!r} are about no regions.", hint="Give --control swapped-image, for pictures."
        )
    _check_pictures(task)
    by_count: dict[int, list[Sample]] = {}
    for sample in task.samples:
        by_count.setdefault(len(sample.inputs[REGIONS]), []).append(sample)
    partners = {own.id: other for some in by_count.values() for own, other in _partners(some, seed=seed)}
    if not partners:
        raise UsageError(
            f"The regions of {task.name!r} cannot be swapped: no two pictures have samples with as many.",
            hint="Give the task more pictures.",
        )
    samples = [_with_regions(sample, partners[sample.id]) for sample in task.samples if sample.id in partners]
    lost = len(task.samples) - len(samples)
    left_out = f"{many(lost, 'sample is', 'samples are')} left out: no other picture has as many regions"
    return replace(
        task,
        samples=samples,
        solver=as_solver(task.solver).among(samples),
        label=f"{task.label}, swapped region" if task.label else "",
        options={**task.options, "control": "swapped-region", "control_seed": seed},
        notes=(*task.notes, SWAPPED_REGION_NOTE, *((left_out,) if lost else ())),
    )


def _partners(samples: Sequence[Sample], *, seed: int) -> Iterator[tuple[Sample, Sample]]:
    """Pairs each sample with one of the next picture, those of a picture in turn; none where there is one picture."""
    by_picture: dict[str, list[Sample]] = {}
    for sample in samples:
        by_picture.setdefault(_digest(sample), []).append(sample)
    if len(by_picture) < 2:
        return
    after = next_of(list(by_picture), seed=seed)
    for picture, own in by_picture.items():
        others = by_picture[after[picture]]
        yield from ((sample, others[place % len(others)]) for place, sample in enumerate(own))


def _with_regions(sample: Sample, other: Sample) -> Sample:
    return replace(sample, image=other.image, inputs={**sample.inputs, REGIONS: other.inputs[REGIONS]})


def next_of(names: Sequence[str], *, seed: int) -> Mapping[str, str]:
    """Maps each of at least two names to another one: the next in a ring, whose order the seed decides."""
    ring = sorted(names, key=lambda name: sha256(f"{seed}\n{name}".encode()).hexdigest())
    return dict(zip(ring, [*ring[1:], ring[0]], strict=True))


def _check_pictures(task: Evaluation) -> None:
    """Raises where a sample has no picture, or where something of its own picture would stay."""
    lacking = [sample.id for sample in task.samples if sample.image is None]
    if lacking:
        raise UsageError(
            f"The pictures of {task.name!r} cannot be swapped: "
            f"{many(len(lacking), 'sample has', 'samples have')} none, such as "
            f"{lacking[0]!r}.",
            hint="Give the task data with pictures, and a context that looks at them.",
        )
    _check_links(task)
    _check_examples(task)


def _check_links(task: Evaluation) -> None:
    """Raises where the chain has no step for a link that is dropped; a statement may be missing."""
    chain = as_solver(task.solver).answers_from
    if chain is None:
        return
    links = {STATEMENT.name, *(step.link.name for step in chain.steps)}
    dropped = {name for sample in task.samples for name in sample.inputs}
    for link in chain.links:
        if link in dropped - links:
            raise UsageError(
                f"The pictures of {task.name!r} cannot be swapped: {link!r} is given with every sample.",
                hint="Make the task without published descriptions, in a context that looks at the picture.",
            )


def _check_examples(task: Evaluation) -> None:
    """Raises where examples were chosen by likeness: they would tell of the picture that is not shown."""
    shots: list[Any] = [sample.trace.get(SHOTS) for sample in task.samples]
    ways = {str(cast("JsonObject", each).get("from")) for each in shots if isinstance(each, Mapping)}
    for how in sorted(ways - {"random"}):
        raise UsageError(
            f"The pictures of {task.name!r} cannot be swapped: the examples of each sample were chosen by its own "
            f"picture or description (shots_from={how}), and tell of it.",
            hint="Give -T shots_from=random, here and in the run that the control stands beside.",
        )


def _shown(sample: Sample, image: Image | None, links: Collection[str]) -> Sample:
    return replace(
        sample, image=image, inputs={name: value for name, value in sample.inputs.items() if name not in links}
    )


def _digest(sample: Sample) -> str:
    """Digest of the sample's picture; a file that cannot be read counts as a picture of its own."""
    try:
        return "" if sample.image is None else sample.image.sha256
    except BadImage:
        return f"of {sample.cluster}"


_CONTROLS: Mapping[str, Callable[[Evaluation, int], Evaluation]] = {
    "swapped-image": lambda task, seed: swapped_images(task, seed=seed),
    "swapped-region": lambda task, seed: swapped_regions(task, seed=seed),
}
