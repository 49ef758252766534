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
import math
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from askance.amounts import many
from askance.errors import UsageError
from askance.evals.run_folder import write_whole
from askance.evals.sample import INFERENCES, REGIONS
from askance.evals.sherlock.layout import CHUNKS, LENGTHS, TASKS
from askance.evals.sherlock.pools import SamplePools, columns_of
from askance.evals.sherlock.retrieval import CHUNK, group_of
from askance.evals.suite.submittable import RETRY, check_submittable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from askance.evals.run import Run, SampleResult
    from askance.evals.sherlock.dataset import Sherlock
    from askance.evals.sherlock.layout import LeaderboardTask, Split
    from askance.evals.sherlock.leaderboard import Leaderboard
    from askance.images.regions import Box

    Scores: TypeAlias = NDArray[np.float32 | np.float64]
    Vector: TypeAlias = NDArray[np.float32]

FOLDERS: Final[Mapping[str, str]] = {"test": "test_set_predictions", "val": "validation_set_predictions"}
"""By split, the folder with the files, and the name of the archive that holds it."""

ALIKE: Final = 1e-5
"""How far two scores of one pair may lie apart, as a part of the larger one and in itself."""

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
        counts = Counter[str]()
        for name, vector in self.vectors.items():
            counts[name.partition("_")[0]] += len(vector)
        return counts

    @property
    def missing(self) -> tuple[int, ...]:
        """Chunks of retrieval that have no scores where others have; the leaderboard scores all or none."""
        lacking = tuple(chunk for chunk in range(CHUNKS) if f"retrieval_{chunk}" not in self.vectors)
        return () if len(lacking) == CHUNKS else lacking

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
    tables = defaultdict[tuple["LeaderboardTask", int | None], _Table](dict)
    for run in runs:
        check_submittable(run, [f"sherlock/{task}" for task in TASKS])
        lacking = [answer.sample.id for answer in run.answers if answer.prediction.matrix is None]
        if lacking:
            raise UsageError(
                f"{many(len(lacking), 'sample has', 'samples have')} no scores, such as {lacking[0]!r}.", hint=RETRY
            )
        task = cast("LeaderboardTask", run.task.rpartition("/")[2])
        before = sum(map(len, tables.values()))
        for chunk, region, row in _rows(run):
            _check_equal(tables[task, chunk].setdefault(region, row), row, region)
        if sum(map(len, tables.values())) == before:
            raise UsageError(
                f"The run {str(run.path)!r} scores nothing that the runs before it have not scored.",
                hint="Name one run for each pair of a region and an inference.",
            )
    vectors: dict[str, Vector] = {}
    for task, chunk in sorted(tables, key=lambda key: (TASKS.index(key[0]), key[1] or 0)):
        name = task if chunk is None else f"{task}_{chunk}"
        vectors[name] = _vector(data.leaderboard(task, split, chunk), tables.pop((task, chunk)), name)
    made = SubmittedScores(split=split, vectors=vectors)
    made.check(lengths)
    return made


# --- what the runs say of each pair ---

_Region: TypeAlias = "tuple[str, tuple[Box, ...]]"
"""The url of an image, and the boxes of a region."""


@dataclass(frozen=True, slots=True)
class _Row:
    """The scores of a region."""

    run: Run
    scores: Scores
    columns: Mapping[str, int]
    """By inference, the place of its score."""


_Table: TypeAlias = "dict[_Region, _Row]"


def _rows(run: Run) -> Iterator[tuple[int | None, _Region, _Row]]:
    """The regions of a run; of retrieval with their chunk, whose inferences they are held against."""
    pools = SamplePools(
        CHUNK if run.task.endswith("/retrieval") else "", lambda: [answer.sample for answer in run.answers]
    )
    for answer in run.answers:
        sample, scores = answer.sample, _scores(answer)
        if pools:
            chunk, columns = pools.value(sample), pools.of(sample).columns
            url = sample.cluster.removeprefix(group_of(chunk, ""))
            yield chunk, (url, _boxes(sample.inputs[REGIONS][0])), _Row(run, scores[0].copy(), columns)
            continue
        columns = columns_of(sample.inputs[INFERENCES])
        for boxes, row in zip(sample.inputs[REGIONS], scores, strict=True):
            yield None, (sample.cluster, _boxes(boxes)), _Row(run, row, columns)


def _check_equal(one: _Row, other: _Row, region: _Region) -> None:
    """Checks that two runs score the pairs of a region alike, but for what float32 and batches of an encoder round.

    Raises:
        UsageError: they do not.
    """
    if one.run is other.run:
        return
    for text in filter(other.columns.__contains__, one.columns):
        first, second = (float(row.scores[row.columns[text]]) for row in (one, other))
        if not math.isclose(first, second, rel_tol=ALIKE, abs_tol=ALIKE):
            url, boxes = region
            raise UsageError(
                f"The runs {str(one.run.path)!r} and {str(other.run.path)!r} score one pair differently, {first:g} and "
                f"{second:g}: {text!r} of the region {[*boxes]} of {url!r}.",
                hint="Name runs by one model, in which no pair is scored twice.",
            )


def _boxes(boxes: Sequence[Sequence[Any]]) -> tuple[Box, ...]:
    return tuple(cast("Box", tuple(box)) for box in boxes)


def _scores(answer: SampleResult) -> Scores:
    assert answer.prediction.matrix is not None  # `submission_of` has looked
    return answer.prediction.matrix.array


# --- in the order of the leaderboard ---


def _vector(leaderboard: Leaderboard, table: _Table, name: str) -> Vector:
    """The scores of all pairs of a task, in the order of the sorted `test_id`.

    Raises:
        UsageError: a pair has no score.
    """
    import numpy as np

    vector: Vector = np.full(len(leaderboard.ids), np.nan, dtype=np.float32)
    for group in leaderboard.groups:
        scores = np.full((len(group.regions), len(group.inferences)), np.nan, dtype=np.float32)
        for place, region in enumerate(group.regions):
            if (row := table.get((region.url, region.boxes))) is not None:
                columns = [row.columns.get(text, -1) for text in group.inferences]
                scores[place] = np.append(row.scores, np.nan)[columns]  # what there is no score of takes the last
        vector[np.asarray(group.places)] = scores[np.asarray(group.rows), np.asarray(group.columns)]
    lacking = np.flatnonzero(np.isnan(vector))  # the scores of a run are finite
    if len(lacking):
        raise UsageError(
            f"The runs lack {len(lacking):,} of the {len(vector):,} pairs of {name}, such as the one with the test_id "
            f"{leaderboard.ids[lacking[0]]!r}.",
            hint="Run the task over these data, without `--limit` and `--ids`; of localization over both kinds of "
            "boxes, `-T boxes=gt` and `-T boxes=auto`.",
        )
    return vector
