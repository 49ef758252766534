"""Blame in a report: what the folder holds of it, of which run it is, and what is shown of each link and sample."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import pytest

from askance.errors import UsageError
from askance.evals import Run, blame, rescore
from askance.evals.analysis.trial import from_run
from askance.evals.report import build_report, report_page
from tests.evals.guilty import Guilty, liar, run_of
from tests.evals.odd import write_pictures
from tests.evals.report.blames import LIED, changed, hostile, lied
from tests.evals.report.runs import HOSTILE, Parsed


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("pictures"), count=4)


@pytest.fixture(scope="module")
def honest(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that nobody blames."""
    return run_of(pictures, None, out=str(tmp_path_factory.mktemp("runs") / "honest"))


@pytest.fixture(scope="module")
def blamed_once(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return lied(pictures, tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def run(blamed_once: Run, tmp_path: Path) -> Run:
    """A copy of a run that was led wrong by what is unusual in two of four pictures, blamed by dropping."""
    return Run.open(copytree(blamed_once.path, tmp_path / "run"))


def page_of(*runs: Run, blames: tuple[Path, ...] = ()) -> Parsed:
    return Parsed(report_page(build_report(runs, blames=blames)))


def test_every_link_has_its_counts_and_shares(run: Run) -> None:
    text = page_of(run).text

    assert "Of 4 answers 2 are right by accuracy, 2 wrong, and 0 are missing." in text
    assert "V · objects 2 0 0.00 0.00 – 65.76 0 0.00 0.00 – 65.76 +0.00" in text
    assert "UH · what is unusual 2 2 100.00 34.24 – 100.00 2 100.00 34.24 – 100.00 +100.00" in text
    assert "wrong answer to blame flipped by too 01 UH 03 UH" in text


def test_links_lead_to_samples_and_to_filters(run: Run) -> None:
    parsed = page_of(run)
    index = parsed.data("index")["runs"][0]["rows"]

    assert {each["href"] for _, each in parsed.elements if "href" in each} == {
        *("#", "#samples", "#blame=UH", "#sample=01", "#sample=03"),
    }
    assert [row.get("blame") for row in index] == [None, ["UH"], None, ["UH"]]


def test_a_sample_tells_what_each_link_made_of_its_answer(run: Run) -> None:
    details = [side for [side] in page_of(run).samples()[0]]
    (told,) = details[1]["blame"]
    trials = {trial["link"]: trial for trial in told["trials"]}

    assert ["blame" in detail for detail in details] == [False, True, False, True]
    assert (told["words"], told["metric"], told["was"]) == ("dropped", "accuracy", 0.0)
    assert trials["unusual"] == {
        "link": "unusual",
        "worth": 1.0,
        "flips": True,
        "guilty": True,
        "outcome": "answered",
        "chosen": [1],
        "became": {"description": "A cup of bricks in 01."},
        "calls": 2,
    }
    assert (trials["objects"]["chosen"], trials["objects"]["flips"]) == ([2], False)
    assert trials["description"]["put"].startswith("Objects: cup")


def test_several_blames_and_several_runs_stand_apart(run: Run, honest: Run, pictures: Path, tmp_path: Path) -> None:
    model = liar(pictures, "unusual", of=LIED)
    blame(run, Guilty, engine=model.engine, models={"vlm": model}, replacement=from_run(honest))
    other = lied(pictures, tmp_path / "other", links=["scene_text"])
    parsed = page_of(run, other, honest)

    assert "To blame, in % of the wrong answers that a link was tried on; each link dropped" in parsed.text
    assert [row.get("blame") for row in parsed.data("index")["runs"][0]["rows"]][1] == [
        "dropped: UH",
        "taken from honest: UH",
    ]
    assert "#sample=01&run=1" in {each.get("href") for _, each in parsed.elements}
    assert [run["rows"][1].get("blame") for run in parsed.data("index")["runs"][1:]] == [["no single link"], None]


def test_the_report_as_json_has_it_too(run: Run) -> None:
    (part,) = json.loads(json.dumps(build_report([run]).form()))["runs"]

    (told,) = part["blames"]
    assert (told["how"], told["wrong"], [each["link"] for each in told["links"]][-1]) == ("dropped", 2, "none")
    assert told["answers"][0] == {"id": "01", "epoch": 0, "flips": ["unusual"], "guilty": ["unusual"]}


def test_a_run_that_nobody_blamed_has_no_such_section(honest: Run) -> None:
    assert "h-blame" not in {each.get("id") for _, each in page_of(honest).elements}
    assert "blames" not in build_report([honest]).form()["runs"][0]


def torn(folder: Path) -> None:
    (folder / "blame.json").unlink()


def spoilt(folder: Path) -> None:
    (folder / "blame.json").write_text("{", encoding="utf-8")


def answered_otherwise(folder: Path) -> None:
    file = folder / "samples.jsonl"
    file.write_text(file.read_text(encoding="utf-8").replace("A cup of 01.", "A mug of 01."), encoding="utf-8")


OF_ANOTHER = (
    "Blame (dropped): it is of another run, or of this one before it was answered or scored anew. "
    "The same `askance blame` makes what has changed anew."
)
UNREADABLE = "Blame: blame.json is of another version or broken; `askance blame` makes it anew."
SPOILT: dict[str, tuple[Callable[[Path], None], str]] = {
    "begun and killed": (
        torn,
        "Blame: 12 trials were made and not summed up; the same `askance blame` goes on with them.",
    ),
    "no JSON": (spoilt, UNREADABLE),
    "another version": (changed(lambda form: form.update(format=7)), UNREADABLE),
    "of an older version": (changed(lambda form: form.pop("runs")), OF_ANOTHER),
    "of another run": (changed(lambda form: form["runs"].update(dropped="0" * 64)), OF_ANOTHER),
    "of other answers": (answered_otherwise, OF_ANOTHER),
    "without its links": (
        changed(lambda form: form["blames"]["dropped"].pop("links")),
        "Blame (dropped): what blame.json says of it cannot be read; `askance blame` makes it anew.",
    ),
}


@pytest.mark.parametrize(("spoil", "note"), SPOILT.values(), ids=SPOILT)
def test_what_cannot_be_shown_is_said(run: Run, spoil: Callable[[Path], None], note: str) -> None:
    spoil(run.path)
    parsed = page_of(Run.open(run.path))

    assert note in parsed.text
    assert "Each link dropped" not in parsed.text


HALF: dict[str, tuple[Callable[[Path], None], str]] = {
    "no budget left": (
        changed(lambda form: form["blames"]["dropped"].update(left=5)),
        "The budget had nothing left for 5 trials; the same command with a larger one goes on.",
    ),
    "no answer": (
        changed(lambda form: form["blames"]["dropped"]["answers"][0]["tried"].update(objects=None)),
        "Trials without an answer: V 1.",
    ),
    "more since": (
        changed(lambda form: form["blames"]["dropped"].update(trials=10)),
        "2 trials were made since and not summed up; the same command goes on with them.",
    ),
    "lines lost": (lambda folder: (folder / "blame.jsonl").unlink(), "Each link dropped"),
}


@pytest.mark.parametrize(("spoil", "note"), HALF.values(), ids=HALF)
def test_half_of_a_blame_is_shown_with_a_note(run: Run, spoil: Callable[[Path], None], note: str) -> None:
    spoil(run.path)
    text = page_of(Run.open(run.path)).text

    assert note in text
    assert "UH · what is unusual 2 2 100.00" in text


def test_scoring_alike_again_changes_nothing(run: Run) -> None:
    before = page_of(run).text
    asyncio.run(rescore(run, Guilty))

    assert "Each link dropped" in before
    assert "Each link dropped" in page_of(Run.open(run.path)).text


def test_a_blame_that_lies_elsewhere_is_shown_where_it_is_named(run: Run, pictures: Path, tmp_path: Path) -> None:
    lied(pictures, tmp_path / "apart", into=tmp_path / "blame")
    apart = Run.open(tmp_path / "apart")

    assert "Each link dropped" not in page_of(apart).text
    assert "Each link dropped" in page_of(apart, blames=(tmp_path / "blame",)).text


def test_a_folder_without_a_blame_of_the_runs_is_refused(run: Run, honest: Run) -> None:
    with pytest.raises(UsageError, match=r"^The folder '.*run' holds no blame of what the report is of\."):
        build_report([honest], blames=[run.path])


def test_what_means_harm_is_text(run: Run) -> None:
    there = page_of(run)
    parsed = page_of(hostile(run))

    assert {tag for tag, _ in parsed.elements} == {tag for tag, _ in there.elements}
    assert all(str(each["href"]).startswith("#") for _, each in parsed.elements if "href" in each)
    assert f"Each link {HOSTILE[0]}" in parsed.text
