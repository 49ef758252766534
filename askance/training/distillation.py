"""What a small model has learnt of a large one: teacher, student before and after on pictures that were held out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from askance.amounts import many
from askance.errors import UsageError
from askance.evals.analysis.asked_cost import sum_of
from askance.evals.analysis.compare import compare
from askance.images.image import image_digest
from askance.training.training_set import ChatExample

if TYPE_CHECKING:
    from askance.evals import Run
    from askance.evals.analysis.compare import RunsComparison
    from askance.training.training_set import TrainingSet

ROLES_OF_RUNS = ("teacher", "student before", "student after")


@dataclass(frozen=True, kw_only=True)
class Distillation:
    """Three runs of one task over the same samples."""

    comparison: RunsComparison
    """All pairs of them, by paired tests."""
    pictures: int
    """That the samples in common are about."""
    dollars: tuple[float | None, ...]
    """By run: a thousand pictures at list price; None where a price is not known."""

    @property
    def notes(self) -> Iterator[str]:
        yield f"dollars are those of {many(self.pictures, 'picture')}, projected to a thousand"
        if 0.0 in self.dollars:
            yield "a model on this machine costs nothing a call; its hours and its power are not counted"

    @property
    def form(self) -> dict[str, Any]:
        """The report as JSON values."""
        runs = [
            {"role": role, "run": name, "dollars_a_thousand_pictures": dollars}
            for role, name, dollars in zip(ROLES_OF_RUNS, self.comparison.names, self.dollars, strict=True)
        ]
        return {"runs": runs, "pictures": self.pictures, "comparison": self.comparison.form()}


def distillation(
    teacher: Run, before: Run, after: Run, *, data: TrainingSet, metric: str | None = None, seed: int = 0
) -> Distillation:
    """Compares a teacher with its student before and after training.

    Args:
        teacher: the large model's run.
        before: the base's run of the same task.
        after: the trained model's.
        data: the training set, none of whose pictures may be in the runs.
        metric: of the task; None takes its first, and shows the others beside.
        seed: of the resampling.

    Raises:
        UsageError: a picture of the training set is in the runs, or a sample of it that has none; or the runs cannot be
            compared.
    """
    comparison = compare(teacher, before, after, metric=metric, pairs="all", seed=seed)
    samples = [row[0].sample for row in comparison.common.rows]
    asked = {digest for each in samples if each.image is not None and (digest := image_digest(each.image)) is not None}
    taught = [each for split in ("train", "validation") if data.count(split) for each in data.examples(split)]
    both = {image.sha256 for each in taught for image in each.pictures} & asked
    suite = teacher.task.partition("/")[0]
    own = [each for each in taught if isinstance(each, ChatExample) and _suite_of(each) == suite]
    by_name = {each.meta.get("sample") for each in own} & {each.id for each in samples if each.image is None}
    if both or by_name:
        raise UsageError(
            f"{many(len(both), 'picture') if both else many(len(by_name), 'sample')} of the runs are in the training "
            f"set {str(data.folder)!r}: the student may know them by heart.",
            hint="Run all three on what was held out: `askance train data … --hold-out`, and `eval run --ids`.",
        )
    count = len(asked) or len({each.cluster for each in samples})
    sums = [sum_of(each.dollars for each in costs) for costs in comparison.costs]
    return Distillation(
        comparison=comparison,
        pictures=count,
        dollars=tuple(None if total is None else total / count * 1000 for total in sums),
    )


def _suite_of(example: ChatExample) -> str:
    """The first part of the name of its task, which a set of a benchmark names, and a set of runs puts into groups."""
    return str(example.meta.get("task", example.group)).partition("/")[0].partition(":")[0]
