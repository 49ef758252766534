"""Correlations over checkpoints, and what predicts errors, beside what is known of made-up runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askance.errors import BadData, UsageError
from askance.evals import Evaluation, Prediction, Run, Sample, Score, Scorer, evaluate
from askance.evals.metric import mean
from askance.evals.sherlock import InferenceComparison, Retrieval, Sherlock, checkpoint_correlations, error_prediction
from askance.images import Image, RegionView
from askance.models import Engine, ScriptedEmbedder, run_sync
from askance.replay import MemoryStore
from tests.evals.sherlock import corpus
from tests.evals.sherlock.test_submission import ByLot, lot

# --- checkpoints ---


class Checkpoint(ByLot):
    def __init__(self, number: int) -> None:
        self.id = f"checkpoint {number}"

    async def score_view(self, image: Image, texts: Sequence[str], view: RegionView) -> Sequence[float]:
        return [lot(self.id, image.name, text) for text in texts]


def evaluated(kind: type[Any], folder: Path, number: int, out: Path) -> Run:
    task = kind(data=folder, scorer=Checkpoint(number), engine=Engine(records=MemoryStore()))
    return evaluate(task, out=out / f"{kind.__name__}{number}")


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Run], list[Run]]:
    """Runs of comparison and of retrieval by four checkpoints."""
    folder, out = corpus.write(tmp_path_factory.mktemp("data")), tmp_path_factory.mktemp("runs")
    return (
        [evaluated(InferenceComparison, folder, number, out) for number in range(4)],
        [evaluated(Retrieval, folder, number, out) for number in range(4)],
    )


def test_runs_of_one_scorer_go_together_in_any_order(checkpoints: tuple[list[Run], list[Run]]) -> None:
    compared, retrieved = checkpoints
    found = checkpoint_correlations([*reversed(retrieved), *compared], steps=[400, 800, 1200, 1600])
    human = [run.figure("human accuracy").value for run in compared]
    first = [run.figure("P@1").value for run in retrieved]
    assert [(each.human, each.first) for each in found.checkpoints] == [*zip(human, first, strict=True)]
    assert [each.step for each in found.checkpoints] == [400, 800, 1200, 1600]
    assert found.with_retrieval.rho == pytest.approx(np.corrcoef(np.array(first), np.array(human))[0, 1])
    assert found.with_step is not None
    assert found.with_step.rho == pytest.approx(np.corrcoef([1, 2, 3, 4], np.array(human))[0, 1])
    assert found.with_step.n == 4
    without = checkpoint_correlations([*compared, *retrieved])
    assert without.with_step is None
    assert without.form()["checkpoints"][0]["step"] is None


def test_each_checkpoint_needs_both_runs_once(checkpoints: tuple[list[Run], list[Run]]) -> None:
    compared, retrieved = checkpoints
    with pytest.raises(UsageError, match="has no run of sherlock/retrieval by the same scorer"):
        checkpoint_correlations([*compared, *retrieved[1:]])
    with pytest.raises(UsageError, match="are of one task by one scorer"):
        checkpoint_correlations([*compared, *retrieved, compared[0]])
    with pytest.raises(UsageError, match="3 steps do not go with 4 runs of comparison"):
        checkpoint_correlations([*compared, *retrieved], steps=[1, 2, 3])


# --- errors ---

COUNT = 40


def made(out: Path, *, name: str = "sherlock/comparison") -> Run:
    """A run over forty regions; every second is above the average, as its inferences say and its picture does not."""
    samples = [
        Sample(
            id=f"{number:02}",
            inputs={"inferences": [f"{'good' if number % 2 else 'bad'} {number}", f"other {number}"]},
            group=f"{corpus.VG}VG_100K/{number}.jpg",
        )
        for number in range(COUNT)
    ]

    def score(sample: Sample, prediction: Prediction) -> Score:
        number = int(sample.id)
        return Score(values={"human accuracy": float(number % 2), "people": 1 - number / COUNT})

    scorer = Scorer(
        score=score,
        metrics=(mean("human accuracy"), mean("people")),
        if_wrong=lambda _: Score(values={"human accuracy": 0.0, "people": 0.0}),
        if_right=lambda _: Score(values={"human accuracy": 1.0, "people": 0.0}),
        takes="prediction",
    )
    evaluation = Evaluation(samples=samples, solver=lambda _: 1, scorer=scorer, name=name)
    return evaluate(evaluation, out=out, engine=Engine(records=MemoryStore()))


def sense(text: str) -> list[float]:
    return [float(text.startswith("good")), float(text.startswith("bad"))]


TEXTS = ScriptedEmbedder(sense, identity="sense")
PICTURES = ScriptedEmbedder(sense, identity="pictures", image=lambda image: [lot(image.name) - 0.5])


def predicted(run: Run, **options: Any) -> Any:
    return run_sync(error_prediction(run, engine=Engine(records=MemoryStore()), **options))


def test_what_inferences_give_away_is_predicted_and_what_nothing_says_is_not(tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    found = predicted(run, texts=TEXTS)
    assert (found.regions, found.average) == (COUNT, 0.5)
    by_texts, by_agreement = found.predicted
    assert (by_texts.features, by_texts.area, by_texts.by_fold) == ("inferences", 1.0, (1.0,) * 5)
    assert by_agreement.features == "agreement of the raters"
    assert 0.2 < by_agreement.area < 0.8
    assert by_agreement.area == pytest.approx(np.mean(by_agreement.by_fold))
    assert predicted(run, texts=TEXTS) == found
    assert predicted(run, texts=TEXTS, seed=1) != found


def test_regions_on_which_raters_agree_most_are_taken(tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    assert predicted(run, most=20).regions == 20
    assert predicted(run, most=21).average == pytest.approx(10 / 21)
    with pytest.raises(UsageError, match="has 4 regions above its average and 4 others"):
        predicted(run, most=8)


def test_pictures_are_found_by_the_image_of_a_sample(tmp_path: Path) -> None:
    run, home = made(tmp_path / "run"), corpus.write(tmp_path / "data")
    with pytest.raises(UsageError, match="Pictures are features, and there are no data"):
        predicted(run, pictures=PICTURES)
    with pytest.raises(BadData, match=r"The picture of '.*VG_100K/0\.jpg' is not there"):
        predicted(run, pictures=PICTURES, data=Sherlock.open(home))
    for number in range(COUNT):
        path = home / "images" / "VG_100K" / f"{number}.jpg"
        path.write_bytes(corpus.picture(corpus.SCENES[number % 5]))
    first, *_ = predicted(run, pictures=PICTURES, data=Sherlock.open(home)).predicted
    assert first.features == "pictures"
    assert len(PICTURES.shown) == 5  # equal pictures once


def test_errors_are_those_of_comparison(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is of 'sherlock/retrieval'"):
        predicted(made(tmp_path / "run", name="sherlock/retrieval"))
    with pytest.raises(UsageError, match="is of 'whoops/vqa'"):
        checkpoint_correlations([made(tmp_path / "other", name="whoops/vqa")])
