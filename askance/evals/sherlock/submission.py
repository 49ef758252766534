"""The file that the leaderboard takes: the scores of finished runs in the order of its pairs.

A file `NAME.npy` of float32 holds the scores of one task, and of retrieval those of one chunk, in the order of the
sorted `test_id`. The folder `test_set_predictions` with these files lies in `test_set_predictions.zip`. Comparison has
to be there; localization and retrieval may be. The authors' validator checks the lengths of localization and retrieval
but not that of comparison; here all are held against the published ones.

A score is found by what it is about: the image, the boxes of the region, the text of the inference, and in retrieval
the chunk. So runs over the boxes of people and over proposals go into one file of localization.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from askance.amounts import many
from askance.errors import UsageError
from askance.evals.run_folder import write_whole
from askance.evals.sample import INFERENCES, REGIONS
from askance.evals.sherlock.layout import CHUNKS, LENGTHS, TASKS
from askance.evals.sherlock.region_solver import PLACE
from askance.evals.sherlock.retrieval import CHUNK, group_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from askance.evals.run import Run, SampleResult
    from askance.evals.sherlock.dataset import Sherlock
    from askance.evals.sherlock.instance import Box, Instance
    from askance.evals.sherlock.layout import LeaderboardTask, Split
    from askance.evals.sherlock.leaderboard import Leaderboard, PairGroup

    Scores: TypeAlias = NDArray[np.float32 | np.float64]
    Vector: TypeAlias = NDArray[np.float32]

FOLDERS: Final[Mapping[str, str]] = {"test": "test_set_predictions", "val": "validation_set_predictions"}
"""By split, the folder with the files, and the name of the archive that holds it."""

_DATE: Final = (1980, 1, 1, 0, 0, 0)
"""Of every file in an archive, so that equal scores give equal archives."""


@dataclass(frozen=True, kw_only=True)
class SubmittedScores:
    """Scores as the leaderboard takes them."""

    split: Split
    vectors: Mapping[str, Vector]
    """By name of a file, `comparison` or `retrieval_0`, the scores in the order of the sorted `test_id`."""

    @property
    def tasks(self) -> Mapping[str, int]:
        """By task, how many pairs are scored."""
        counts: dict[str, int] = {}
        for name, vector in self.vectors.items():
            task = name.partition("_")[0]
            counts[task] = counts.get(task, 0) + len(vector)
        return counts

    @property
    def missing(self) -> tuple[int, ...]:
        """Chunks of retrieval that have no scores where others have; the leaderboard scores all or none."""
        there = [f"retrieval_{chunk}" in self.vectors for chunk in range(CHUNKS)]
        return tuple(chunk for chunk, found in enumerate(there) if not found and any(there))

    def check(self, lengths: Mapping[str, int] = LENGTHS) -> None:
        """Checks what the leaderboard asks of a test set.

        Args:
            lengths: by name of a file, how many scores it has.

        Raises:
            UsageError: comparison is missing, or a file has another length, or a score that is not finite.
        """
        import numpy as np

        for name, vector in self.vectors.items():
            if self.split == "test" and len(vector) != lengths.get(name):
                raise UsageError(
                    f"{name}.npy would have {len(vector):,} scores, and that of the leaderboard has "
                    f"{lengths.get(name, 0):,}.",
                    hint="Fetch the leaderboard's files for this task again, and run it over them.",
                )
            if not np.isfinite(vector).all():
                raise UsageError(
                    f"{name}.npy would hold {int((~np.isfinite(vector)).sum()):,} scores that are no finite float32.",
                    hint="Score these pairs again.",
                )
        if self.split == "test" and "comparison" not in self.vectors:
            raise UsageError(
                "The leaderboard takes no submission without comparison.",
                hint="Name a run of sherlock/comparison as well.",
            )

    def write(self, path: str | Path) -> Path:
        """Writes the archive, in place of one that is there; at no time is it half written.

        Raises:
            UsageError: the leaderboard would not take a file of that name.
            StoreError: it cannot be written.
        """
        import numpy as np

        place, folder = Path(path), FOLDERS[self.split]
        if place.name != f"{folder}.zip":
            raise UsageError(
                f"The file is to be called {place.name!r}, and the leaderboard takes {folder}.zip alone.",
                hint=f"Name it so: -o {place.with_name(f'{folder}.zip')}.",
            )
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, vector in self.vectors.items():
                content = io.BytesIO()
                np.save(content, vector.astype("<f4"), allow_pickle=False)
                archive.writestr(zipfile.ZipInfo(f"{folder}/{name}.npy", _DATE), content.getvalue())
        write_whole(place, buffer.getvalue())
        return place


def submission_of(
    runs: Sequence[Run], *, data: Sherlock, split: Split = "test", lengths: Mapping[str, int] = LENGTHS
) -> SubmittedScores:
    """The submission of finished runs.

    Args:
        runs: of the three tasks, each pair scored by one of them.
        data: with the leaderboard's files of the tasks.
        split: test, or val, which the authors' scorers take; its lengths are those of the files alone.
        lengths: by name of a file, how many scores that of the test set has.

    Raises:
        UsageError: a run cannot be submitted, or the runs do not score every pair; the message says why.
        BadData: the data lack the leaderboard's files of a task, or they are not as they should be.
    """
    if not runs:
        raise UsageError("There is no run to submit.", hint="Name the folders of runs of Sherlock's tasks.")
    tables: dict[tuple[LeaderboardTask, int | None], _Table] = {}
    for run in runs:
        _check(run)
        task = cast("LeaderboardTask", run.task.rpartition("/")[2])
        if not _add(run, task, tables):
            raise UsageError(
                f"The run {str(run.path)!r} scores nothing that the runs before it have not scored.",
                hint="Name one run for each pair of a region and an inference.",
            )
    vectors: dict[str, Vector] = {}
    order = sorted(tables, key=lambda key: (TASKS.index(key[0]), key[1] or 0))
    for task, chunk in order:
        name = task if chunk is None else f"{task}_{chunk}"
        vectors[name] = _vector(data.leaderboard(task, split, chunk), tables.pop((task, chunk)), name)
    made = SubmittedScores(split=split, vectors=vectors)
    made.check(lengths)
    return made


def _check(run: Run) -> None:
    """Refuses a run whose scores are no submission."""
    known = [f"sherlock/{task}" for task in TASKS]
    if run.task not in known:
        raise UsageError(
            f"The run {str(run.path)!r} is of {run.task!r}, which the leaderboard does not have.",
            hint=f"Name a run of {', '.join(known)}.",
        )
    if run.finished is None or run.left:
        raise UsageError(f"The run {str(run.path)!r} is not finished.", hint="Finish it by the command that began it.")
    if control := run.options.get("control"):
        raise UsageError(f"The run {str(run.path)!r} is under the control {control!r}.", hint="Run it without.")
    if any(answer.epoch for answer in run.answers):
        raise UsageError(
            f"The run {str(run.path)!r} answers each sample several times.", hint="Run it with one epoch: --epochs 1."
        )
    lacking = [answer.sample.id for answer in run.answers if answer.prediction.matrix is None]
    if lacking:
        raise UsageError(
            f"{many(len(lacking), 'sample has', 'samples have')} no scores, such as {lacking[0]!r}.",
            hint="Ask for them again: the command of the run with `--retry invalid,refused,filtered,truncated`.",
        )


# --- what the runs say of each pair ---

_Region: TypeAlias = "tuple[str, tuple[Box, ...]]"
"""The url of an image, and the boxes of a region."""


@dataclass(frozen=True, slots=True)
class _Row:
    """The scores of a region."""

    scores: Scores
    columns: Mapping[str, int]
    """By inference, the place of its score."""


_Table: TypeAlias = "dict[_Region, _Row]"


def _add(run: Run, task: LeaderboardTask, tables: dict[tuple[LeaderboardTask, int | None], _Table]) -> bool:
    """Adds the scores of a run; whether one of them is new."""
    new = False
    by_chunk: dict[int | None, list[SampleResult]] = {}
    for answer in run.answers:
        chunk = answer.sample.tags[CHUNK] if task == "retrieval" else None
        by_chunk.setdefault(chunk, []).append(answer)
    for chunk, answers in by_chunk.items():
        table = tables.setdefault((task, chunk), {})
        for region, row in _rows(answers) if chunk is None else _rows_of_chunk(chunk, answers):
            new |= region not in table
            table.setdefault(region, row)
    return new


def _rows(answers: Sequence[SampleResult]) -> Iterator[tuple[_Region, _Row]]:
    """The regions of samples that have all their inferences themselves."""
    for answer in answers:
        columns = _places(answer.sample.inputs[INFERENCES])
        for boxes, scores in zip(answer.sample.inputs[REGIONS], _scores(answer), strict=True):
            yield (answer.sample.cluster, _boxes(boxes)), _Row(scores, columns)


def _rows_of_chunk(chunk: int, answers: Sequence[SampleResult]) -> Iterator[tuple[_Region, _Row]]:
    """The regions of samples that are held against each other, in the order of their places."""
    ordered = sorted(answers, key=lambda answer: int(answer.sample.tags[PLACE]))
    columns = _places([answer.sample.inputs[INFERENCES][0] for answer in ordered])
    for answer in ordered:
        url = answer.sample.cluster.removeprefix(group_of(chunk, ""))
        yield (url, _boxes(answer.sample.inputs[REGIONS][0])), _Row(_scores(answer)[0].copy(), columns)


def _places(inferences: Sequence[str]) -> Mapping[str, int]:
    """By text its place; of equal texts, whose scores are equal, the first."""
    return {text: place for place, text in reversed([*enumerate(inferences)])}


def _boxes(boxes: Sequence[Sequence[Any]]) -> tuple[Box, ...]:
    return tuple(cast("Box", tuple(box)) for box in boxes)


def _scores(answer: SampleResult) -> Scores:
    assert answer.prediction.matrix is not None  # `_check` has looked
    return answer.prediction.matrix.array


# --- in the order of the leaderboard ---


def _vector(leaderboard: Leaderboard, table: _Table, name: str) -> Vector:
    """The scores of all pairs of a task, in the order of the sorted `test_id`.

    Raises:
        UsageError: a pair has no score.
    """
    import numpy as np

    vector: Vector = np.full(len(leaderboard.ids), np.nan, dtype=np.float32)
    lacking: list[int] = []
    for group in leaderboard.groups:
        of_region = [_of_region(region, group, table) for region in group.regions]
        for row, column, place in zip(group.rows.tolist(), group.columns.tolist(), group.places.tolist(), strict=True):
            score = of_region[row][column]
            if score is None:
                lacking.append(place)
            else:
                vector[place] = score
    if lacking:
        raise UsageError(
            f"The runs lack {len(lacking):,} of the {len(vector):,} pairs of {name}, such as the one with the test_id "
            f"{leaderboard.ids[min(lacking)]!r}.",
            hint="Run the task over these data, without `--limit` and `--ids`; of localization over both kinds of "
            "boxes, `-T boxes=gt` and `-T boxes=auto`.",
        )
    return vector


def _of_region(region: Instance, group: PairGroup, table: _Table) -> Sequence[float | None]:
    """The score of each inference of a group for a region; None where there is none."""
    row = table.get((region.url, region.boxes))
    if row is None:
        return [None] * len(group.inferences)
    places = [row.columns.get(text) for text in group.inferences]
    scores = row.scores.tolist()
    return [None if place is None else scores[place] for place in places]
