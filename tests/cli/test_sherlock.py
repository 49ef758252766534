"""`askance sherlock`: the leaderboard's file, candidate sets of one's own, and what goes with errors."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from askance.evals import evaluate
from askance.evals.sherlock.comparison import InferenceComparison
from askance.evals.sherlock.retrieval import Retrieval
from askance.models import ScriptedEmbedder
from askance.models.encoders import records as encoders
from tests.cli.command import Command
from tests.evals.sherlock import corpus
from tests.evals.sherlock import test_error_analysis as analysed
from tests.evals.sherlock.test_candidates import Eye, sense, write_corpus
from tests.evals.sherlock.test_submission import made


def test_submit_writes_the_files_of_the_leaderboard(askance: Command, own_place: Path) -> None:
    corpus.write(own_place / "data")
    for task in (InferenceComparison, Retrieval):
        evaluate(made(task, own_place / "data"), out=own_place / task.name)
    runs = ("sherlock/retrieval", "sherlock/comparison")
    done = askance("sherlock", "submit", *runs, "--data", "data", "--split", "val")
    assert (done.code, done.err) == (0, "")
    first, missing = done.out.splitlines()
    assert first == "validation_set_predictions.zip: comparison 12, retrieval 85"
    assert missing.startswith("· Retrieval is scored with all chunks alone; it lacks 2, 3, ")
    with zipfile.ZipFile("validation_set_predictions.zip") as archive:
        assert len(archive.namelist()) == 3
    done = askance("sherlock", "submit", "sherlock/comparison", "--data", "data", "-o", "mine.zip", "--split", "val")
    assert (done.code, done.out) == (2, "")
    assert "the leaderboard takes validation_set_predictions.zip alone" in done.err
    done = askance("sherlock", "submit", "sherlock/comparison", "--data", "data")
    assert (done.code, Path("test_set_predictions.zip").exists()) == (2, False)
    assert "The runs lack 12 of the 12 pairs of comparison" in done.err or "would have 12 scores" in done.err


@pytest.fixture
def encoders_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """What specs of encoders name in these tests."""

    def from_spec(spec: str, *_: object, **__: object) -> object:
        return Eye() if spec.startswith("clip:") else ScriptedEmbedder(sense, identity="sense")

    monkeypatch.setattr(encoders, "from_spec", from_spec)


def test_candidates_are_a_folder_that_comparison_reads(askance: Command, own_place: Path, encoders_named: None) -> None:
    write_corpus(own_place / "data")
    words = ("sherlock", "candidates", "--data", "data", "-T", "scorer=clip:eye", "-T", "embedder=st:sense")
    done = askance(*words, "--limit", "3", "-o", "mine")
    assert done.code == 0
    assert (
        done.out.splitlines()[0] == "mine/val_comparison/val_comparison_instances.json: 3 regions with 30 inferences."
    )
    assert "60 instances, 55 different inferences in 48 clusters" in done.out
    assert "5 instances without a picture that can be used." in done.out
    as_json = askance(*words, "--limit", "3", "-o", "again", "--json")
    assert json.loads(as_json.out) == json.loads(Path("mine/manifest.json").read_text(encoding="utf-8"))
    assert Path("mine/candidates.json").read_bytes() == Path("again/candidates.json").read_bytes()
    done = askance(*words, "-o", "mine")
    assert (done.code, "'mine' is there already" in done.err) == (2, True)
    done = askance("eval", "run", "sherlock/comparison", "--data", "mine", "-T", "solver=random", "--out", "run")
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("words", "message"),
    {
        "no scorer": (["-T", "embedder=st:x"], "Candidates need an option 'scorer'.\n  → Give -T scorer=clip:FOLDER."),
        "no embedder": (["-T", "scorer=clip:x"], "Candidates need an option 'embedder'."),
        "another": (
            ["-T", "scorre=clip:x"],
            "'scorre' is no option of candidates.\n  → There are scorer and embedder.",
        ),
        "no value": (["-T", "scorer"], "'scorer' is no option of candidates."),
    }.values(),
)
def test_candidates_need_a_scorer_and_an_embedder(
    words: list[str], message: str, askance: Command, own_place: Path
) -> None:
    done = askance("sherlock", "candidates", "--data", "data", "-o", "mine", *words)
    assert (done.code, message in done.err) == (2, True), done.err


def test_correlations_over_checkpoints(askance: Command, own_place: Path) -> None:
    data = corpus.write(own_place / "data")
    for number in range(3):
        for task in (InferenceComparison, Retrieval):
            analysed.evaluated(task, data, number, own_place)
    runs = [f"{task}{number}" for task in ("InferenceComparison", "Retrieval") for number in range(3)]
    done = askance("sherlock", "correlations", *runs, "--steps", "400,800,1200")
    assert (done.code, done.err) == (0, "")
    head, *rows = done.out.splitlines()
    assert head.split() == ["checkpoint", "step", "P@1", "human", "accuracy"]
    assert rows[-2].startswith("Human accuracy and P@1: ")
    assert rows[-1].startswith("Human accuracy and the training step: Pearson's r = ")
    form = json.loads(askance("sherlock", "correlations", *runs, "--json").out)
    assert [each["step"] for each in form["checkpoints"]] == [None, None, None]
    done = askance("sherlock", "correlations", *runs, "--steps", "400,x")
    assert (done.code, "The steps '400,x' are no numbers." in done.err) == (2, True)


def test_errors_are_predicted_from_inferences_and_agreement(
    askance: Command, own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def from_spec(*_: object, **__: object) -> ScriptedEmbedder:
        return analysed.TEXTS

    monkeypatch.setattr(encoders, "from_spec", from_spec)
    analysed.made(own_place / "run")
    done = askance("sherlock", "errors", "run", "-T", "texts=st:sense")
    assert (done.code, done.err) == (0, "")
    first, _, head, inferences, agreement, _, note = done.out.splitlines()
    assert first.endswith(": 40 regions, 50.00 % human accuracy in the mean.")
    assert head.split("  ")[0] == "above or below the mean, by"
    assert inferences.split()[:2] == ["inferences", "100.00"]
    assert agreement.startswith("agreement of the raters")
    assert note == "· Chance is 50 %."
    form = json.loads(askance("sherlock", "errors", "run", "--json").out)
    assert [each["features"] for each in form["predicted"]] == ["agreement of the raters"]
    done = askance("sherlock", "errors", "run", "-T", "text=st:sense")
    assert (done.code, "'text' is no option of errors." in done.err) == (2, True)
