"""The leaderboard's file: scores in the order of its pairs, and which runs can be submitted."""

from __future__ import annotations

import io
import json
import zipfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import rankdata

from askance.errors import BadData, StoreError, UsageError
from askance.evals import Run, evaluate
from askance.evals.sherlock import Sherlock
from askance.evals.sherlock.comparison import InferenceComparison
from askance.evals.sherlock.layout import LENGTHS
from askance.evals.sherlock.leaderboard import hidden_instances
from askance.evals.sherlock.localization import Localization
from askance.evals.sherlock.retrieval import Retrieval
from askance.evals.sherlock.submission import SubmittedScores, submission_of
from askance.evals.sherlock.task import SherlockTask
from askance.images import WHOLE_IMAGE, Image, RegionView
from askance.models import Engine
from askance.replay import MemoryStore
from tests.evals.sherlock import corpus


class ByLot:
    """A scorer whose scores depend on the picture, the region and the text alone."""

    id = "lot"

    async def score(self, image: Image, texts: Sequence[str]) -> Sequence[float]:
        return await self.score_view(image, texts, WHOLE_IMAGE)

    async def score_view(self, image: Image, texts: Sequence[str], view: RegionView) -> Sequence[float]:
        boxes = [[int(edge) for edge in box] for box in view.boxes]
        return [lot(image.name, boxes, text) for text in texts]


def lot(*about: Any) -> float:
    return int(sha256(repr(about).encode()).hexdigest()[:6], 16) / 2**24  # a float32 holds it


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus.write(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def runs(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Run]:
    """Runs of all tasks over the validation corpus."""
    out = tmp_path_factory.mktemp("runs")
    tasks = {
        "comparison": made(InferenceComparison, folder),
        "localization": made(Localization, folder),
        "proposals": made(Localization, folder, boxes="auto"),
        "retrieval": made(Retrieval, folder),
        "lots": Retrieval(data=folder, solver="random"),
    }
    return {name: evaluate(task, out=out / name) for name, task in tasks.items()}


def made(kind: type[SherlockTask], folder: Path, **options: Any) -> SherlockTask:
    engine = Engine(records=MemoryStore())
    return kind(data=folder, scorer=ByLot(), engine=engine, **options)


def figure(run: Run, name: str) -> float:
    value = run.figure(name).value
    assert value is not None
    return value


def answers(folder: Path, name: str) -> tuple[Any, list[str]]:
    """The official answer key of a task and its sorted ids."""
    home = folder / "leaderboard_eval" / f"val_{name.partition('_')[0]}"
    key, ids = (json.loads((home / f"val_{name}_{part}.json").read_text()) for part in ("answer_key", "instance_ids"))
    return key, ids


def test_comparison_is_scored_by_its_answer_key_as_by_the_run(folder: Path, runs: Mapping[str, Run]) -> None:
    (vector,) = submission_of([runs["comparison"]], data=Sherlock.open(folder), split="val").vectors.values()
    key, ids = answers(folder, "comparison")
    by_pair = {tuple(key["test_id_map"][name].values()): score for name, score in zip(ids, vector, strict=True)}
    values: list[float] = []
    for item in key["annotations"]:
        scores = [by_pair[item["Input_iid"], each["source_iid"]] for each in item["candidates"]]
        for rater in ("annot1", "annot2"):
            ratings = [each[rater] for each in item["candidates"]]
            pairs = [(a, b) for a in range(4) for b in range(4) if ratings[a] < ratings[b]]
            values.append(float(np.mean([scores[a] < scores[b] for a, b in pairs])) * 2 - 1)
    assert figure(runs["comparison"], "human accuracy") == pytest.approx(np.mean(values))


def test_localization_has_people_s_regions_and_proposals_in_one_file(folder: Path, runs: Mapping[str, Run]) -> None:
    both = submission_of([runs["proposals"], runs["localization"]], data=Sherlock.open(folder), split="val")
    key, ids = answers(folder, "localization")
    by_inference: dict[str, list[tuple[float, float]]] = defaultdict(list)
    images: dict[str, str] = {}
    for name, score in zip(ids, both.vectors["localization"], strict=True):
        if key[name]["type"] == "auto":
            by_inference[key[name]["inst_id"]].append((score, key[name]["IoU"]))
            images[key[name]["inst_id"]] = key[name]["image"]
    of_image: dict[str, list[bool]] = defaultdict(list)
    for name, pairs in by_inference.items():
        of_image[images[name]].append(max(pairs)[1] > 0.5)
    expected = np.mean([np.mean(hits) for hits in of_image.values()])
    assert figure(runs["proposals"], "accuracy") == pytest.approx(expected)


@pytest.mark.parametrize("name", ["retrieval", "lots"])
def test_a_chunk_is_scored_by_its_answer_key_as_by_the_run(name: str, folder: Path, runs: Mapping[str, Run]) -> None:
    vectors = submission_of([runs[name]], data=Sherlock.open(folder), split="val").vectors
    assert [*vectors] == ["retrieval_0", "retrieval_1"]
    assert {vector.dtype for vector in vectors.values()} == {np.dtype("float32")}
    for chunk, vector in enumerate(vectors.values()):
        key, ids = answers(folder, f"retrieval_{chunk}")
        by_pair = {tuple(key[test_id]): score for test_id, score in zip(ids, vector, strict=True)}
        names = sorted({region for region, _ in by_pair})
        matrix = np.array([[by_pair[one, other] for other in names] for one in names])
        for figure_name, axis in (("rank im→txt", 1), ("rank txt→im", 0)):
            ranks = np.diagonal(rankdata(-matrix, axis=axis))
            assert figure(runs[name], f"{figure_name}: chunk {chunk}") == pytest.approx(ranks.mean())


def test_files_are_named_and_ordered_as_the_leaderboard_has_them(
    folder: Path, runs: Mapping[str, Run], tmp_path: Path
) -> None:
    found = submission_of(
        [run for name, run in runs.items() if name != "lots"], data=Sherlock.open(folder), split="val"
    )
    path = found.write(tmp_path / "new" / "validation_set_predictions.zip")
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == [
            "validation_set_predictions/comparison.npy",
            "validation_set_predictions/localization.npy",
            "validation_set_predictions/retrieval_0.npy",
            "validation_set_predictions/retrieval_1.npy",
        ]
        for name, vector in found.vectors.items():
            content = archive.read(f"validation_set_predictions/{name}.npy")
            stored = np.load(io.BytesIO(content), allow_pickle=False)
            assert stored.dtype.str == "<f4"
            assert stored.tolist() == vector.tolist()
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert found.write(tmp_path / "validation_set_predictions.zip").read_bytes() == path.read_bytes()


def test_the_leaderboard_takes_one_name_alone(tmp_path: Path) -> None:
    found = SubmittedScores(split="test", vectors={"comparison": np.zeros(4719, dtype=np.float32)})
    with pytest.raises(UsageError, match=r"'mine\.zip', and the leaderboard takes test_set_predictions\.zip alone"):
        found.write(tmp_path / "mine.zip")
    (tmp_path / "file").write_text("old", encoding="utf-8")
    with pytest.raises(StoreError, match="cannot be written"):
        found.write(tmp_path / "file" / "test_set_predictions.zip")


def test_the_published_lengths_are_squares_and_add_up() -> None:
    assert len(LENGTHS) == 25
    assert (LENGTHS["comparison"], LENGTHS["localization"]) == (4719, 2365256)
    assert [LENGTHS[f"retrieval_{chunk}"] for chunk in (0, 4, 16, 22)] == [1000000, 964324, 996004, 996004]


def test_a_test_set_has_the_published_lengths_and_comparison(folder: Path, tmp_path: Path) -> None:
    run = evaluate(made(InferenceComparison, folder, split="test"), out=tmp_path / "run")
    data = Sherlock.open(folder)
    with pytest.raises(
        UsageError, match=r"comparison\.npy would have 12 scores, and that of the leaderboard has 4,719"
    ):
        submission_of([run], data=data)
    found = submission_of([run], data=data, lengths={"comparison": 12})
    assert found.write(tmp_path / "test_set_predictions.zip").is_file()
    alone = SubmittedScores(split="test", vectors={"retrieval_3": np.zeros(LENGTHS["retrieval_3"], dtype=np.float32)})
    with pytest.raises(UsageError, match="takes no submission without comparison"):
        alone.check()


def test_the_test_set_is_run_and_submitted_without_its_answers(folder: Path, tmp_path: Path) -> None:
    tasks = (InferenceComparison, Localization, Retrieval)
    runs = [evaluate(made(task, folder, split="test"), out=tmp_path / task.name) for task in tasks]
    assert all(run.figures[0].value is None for run in runs)
    lengths = {"comparison": 12, "localization": 96, "retrieval_0": 49, "retrieval_1": 36}
    found = submission_of(runs, data=Sherlock.open(folder), lengths=lengths)
    assert found.missing == tuple(range(2, 23))
    home = folder / "leaderboard_eval"
    for name, vector in found.vectors.items():
        file = home / f"test_{name.partition('_')[0]}_public" / f"test_{name}_instances.json"
        rows = sorted(json.loads(file.read_text(encoding="utf-8")), key=lambda row: row["test_id"])
        assert vector.tolist() == [_score(row) for row in rows]


def _score(row: corpus.Row) -> float:
    """The score of a pair of the leaderboard."""
    boxes = [[box["left"], box["top"], box["left"] + box["width"], box["top"] + box["height"]] for box in row["region"]]
    return lot(row["image"]["url"].rpartition("/")[2], boxes, row["inference"])


def test_clues_and_proposals_alone_are_not_in_the_test_set(folder: Path) -> None:
    for task in (Localization, Retrieval):
        with pytest.raises(UsageError, match="The leaderboard's files have no clues"):
            made(task, folder, split="test", text="clue").samples()
    with pytest.raises(UsageError, match="have the regions of people and proposals together"):
        made(Localization, folder, split="test", boxes="auto").samples()


def test_a_chunk_of_which_pairs_are_missing_is_refused(folder: Path) -> None:
    chunk = Sherlock.open(folder).leaderboard("retrieval", "test", 0)
    assert len(hidden_instances(chunk)) == 7
    with pytest.raises(BadData, match="Chunk 0 of retrieval has 48 pairs, which are not all of its regions"):
        hidden_instances(replace(chunk, ids=chunk.ids[1:]))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_scores_that_are_not_finite_are_refused(value: float) -> None:
    vector = np.zeros(12, dtype=np.float32)
    vector[3] = value
    with pytest.raises(UsageError, match=r"comparison\.npy would hold 1 scores that are no finite float32"):
        SubmittedScores(split="val", vectors={"comparison": vector}).check()


def test_a_pair_without_a_score_is_refused(folder: Path, runs: Mapping[str, Run], tmp_path: Path) -> None:
    data = Sherlock.open(folder)
    with pytest.raises(UsageError, match="The runs lack 61 of the 96 pairs of localization") as caught:
        submission_of([runs["localization"]], data=data, split="val")
    assert "boxes=auto" in str(caught.value.hint)
    short = evaluate(made(InferenceComparison, folder, limit=2), out=tmp_path / "run")
    with pytest.raises(UsageError, match="The runs lack 4 of the 12 pairs of comparison"):
        submission_of([short], data=data, split="val")


def test_runs_that_are_no_submission_are_refused(folder: Path, runs: Mapping[str, Run]) -> None:
    run, data = runs["comparison"], Sherlock.open(folder)

    def refused(run: Run) -> str:
        with pytest.raises(UsageError) as caught:
            submission_of([run], data=data, split="val")
        assert caught.value.hint
        return str(caught.value)

    configuration = dict(run.configuration)
    assert "is of 'whoops/vqa', which the leaderboard does not have" in refused(
        replace(run, configuration={**configuration, "task": "whoops/vqa"})
    )
    assert "is not finished" in refused(replace(run, finished=None))
    assert "is not finished" in refused(replace(run, left=2))
    options = {**configuration["options"], "control": "swapped-image"}
    assert "under the control 'swapped-image'" in refused(
        replace(run, configuration={**configuration, "options": options})
    )
    with pytest.raises(UsageError, match="scores nothing that the runs before it have not scored"):
        submission_of([run, run], data=data, split="val")
    with pytest.raises(UsageError, match="There is no run to submit"):
        submission_of([], data=data)


def test_runs_that_score_a_pair_differently_are_not_mixed(
    folder: Path, runs: Mapping[str, Run], tmp_path: Path
) -> None:
    class Higher(ByLot):
        async def score_view(self, image: Image, texts: Sequence[str], view: RegionView) -> Sequence[float]:
            return [score + 0.001 for score in await super().score_view(image, texts, view)]

    data = Sherlock.open(folder)
    alike = evaluate(made(InferenceComparison, folder, limit=1), out=tmp_path / "alike")
    whole = submission_of([runs["comparison"]], data=data, split="val").vectors["comparison"]

    mixed = submission_of([alike, runs["comparison"]], data=data, split="val").vectors["comparison"]
    assert mixed.tolist() == whole.tolist()

    task = InferenceComparison(data=folder, scorer=Higher(), engine=Engine(records=MemoryStore()), limit=1)
    higher = evaluate(task, out=tmp_path / "higher")
    (answer,) = higher.answers
    with pytest.raises(UsageError) as caught:
        submission_of([higher, runs["comparison"]], data=data, split="val")
    told = str(caught.value)
    assert str(higher.path) in told
    assert str(runs["comparison"].path) in told
    assert any(repr(text) in told for text in answer.sample.inputs["inferences"])
    assert answer.sample.cluster in told
    assert caught.value.hint == "Name runs by one model, in which no pair is scored twice."


def test_samples_without_scores_are_refused(folder: Path, tmp_path: Path) -> None:
    class Broken(ByLot):
        async def score_view(self, image: Image, texts: Sequence[str], view: RegionView) -> Sequence[float]:
            return [float("nan") for _ in texts]

    task = InferenceComparison(data=folder, scorer=Broken(), engine=Engine(records=MemoryStore()))
    run = evaluate(task, out=tmp_path / "run")
    with pytest.raises(UsageError, match="3 samples have no scores"):
        submission_of([run], data=Sherlock.open(folder), split="val")


def test_a_run_in_several_epochs_is_refused(folder: Path, tmp_path: Path) -> None:
    run = evaluate(made(InferenceComparison, folder), out=tmp_path / "run", epochs=2)
    with pytest.raises(UsageError, match="answers each sample several times"):
        submission_of([run], data=Sherlock.open(folder), split="val")
