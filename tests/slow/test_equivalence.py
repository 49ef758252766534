"""`bem:` with tiny untrained classifiers, in a fresh environment with the extra `local`: held against transformers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from askance.evals import aevaluate
from askance.evals.whoops import Vqa
from askance.replay import open_records
from tests.evals.whoops import files
from tests.scripted import model_of, scripted
from tests.slow.environments import HERE, ROOT, checked

pytestmark = pytest.mark.slow(group="local")

Score: TypeAlias = Callable[..., dict[str, Any]]
Make: TypeAlias = Callable[[str], Path]

QUESTION = {"question": "what is it ?", "reference": "a cup of brick"}
TRIPLES = [
    {**QUESTION, "candidate": "a cup of brick"},
    {**QUESTION, "candidate": "two"},
    {**QUESTION, "candidate": "the brick cup is it a cup of a cup"},
    {**QUESTION, "candidate": "half \ud800"},
    {"question": "what is the cup ?", "reference": "brick", "candidate": "brick"},
]


@pytest.fixture(scope="module")
def tiny(local_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Gives a classifier that knows so many segments, made once."""
    folder = tmp_path_factory.mktemp("classifiers")

    @cache
    def make(segments: str) -> Path:
        checked([str(local_python), str(HERE / "make_classifier.py"), str(folder / segments), segments])
        return folder / segments

    return make


@pytest.fixture
def score(local_python: Path, own_place: Path) -> Score:
    """Scores answers in a process of its own."""

    def run(spec: str, triples: Any, *more: str, mode: str = "auto", python: Path = local_python) -> Any:
        command = [str(python), str(HERE / "score_answers.py"), spec, mode, *more]
        lines = "".join(json.dumps(triple) + "\n" for triple in triples)
        done = subprocess.run(
            command, input=lines, cwd=own_place, capture_output=True, text=True, timeout=300, check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.mark.parametrize("segments", ["3", "2"])
def test_scores_are_those_of_transformers_and_replay_without_torch(score: Score, tiny: Make, segments: str) -> None:
    folder = tiny(segments)
    live = score(f"bem:{folder}", TRIPLES, str(folder), segments)
    replayed = score(f"bem:{folder}", TRIPLES, mode="replay", python=Path(sys.executable))

    assert live["scores"] == pytest.approx(live["reference"], abs=1e-5)
    assert len({round(each, 4) for each in live["scores"]}) == len(TRIPLES)
    assert (live["early"], live["loaded"], replayed["loaded"]) == (False, True, False)
    assert (replayed["form"], replayed["scores"]) == (live["form"], live["scores"])


def test_the_other_class_and_alone_or_together(score: Score, tiny: Make) -> None:
    folder = tiny("3")
    together = score(f"bem:{folder}", TRIPLES[:3])["scores"]
    alone = score(f"bem:{folder}?batch=1", TRIPLES[:3], mode="live")["scores"]
    other = score(f"bem:{folder}?label=0", TRIPLES[:3])["scores"]

    assert together == pytest.approx(alone, abs=1e-5)
    assert [1 - each for each in other] == pytest.approx(together, abs=1e-5)


def test_what_is_too_long_is_cut_at_its_end(score: Score, tiny: Make) -> None:
    folder = tiny("3")
    # 24 tokens, 4 marks, 4 and 4 words
    asked = [{**QUESTION, "candidate": "brick " * count} for count in (500, 12, 11)]

    long, cut, shorter = score(f"bem:{folder}?batch=1", asked)["scores"]

    assert long == pytest.approx(cut, abs=1e-6)
    assert long != pytest.approx(shorter, abs=1e-6)


def test_weights_without_the_layer_that_tells_classes_are_refused(score: Score, tiny: Make) -> None:
    found = score(f"bem:{tiny('HEADLESS')}", TRIPLES)

    assert found["error"] == "ConfigError"
    assert "its files lack 2 of its weights, such as classifier.bias" in found["message"]


async def test_questions_are_scored_by_the_classifier(score: Score, tiny: Make, tmp_path: Path) -> None:
    folder, data = tiny("3"), files.first_release(tmp_path / "data")
    script = scripted(answer_from_picture={"answer": "a cup of brick"})
    task = Vqa(data=data, vlm=model_of(script), limit=1)
    asked = [
        {**sample.target, "reference": sample.target["answer"], "candidate": "a cup of brick"}
        for sample in task.samples()
    ]
    scores = score(f"bem:{folder}", asked)["scores"]

    with open_records("records") as store:
        scored = Vqa(data=data, vlm=model_of(script, store), limit=1, scorer=f"bem:{folder}")
        run = await aevaluate(scored, out=tmp_path / "run")

    assert run.figure("equivalence").value == pytest.approx(sum(scores) / len(scores))
    assert "torch" not in sys.modules
