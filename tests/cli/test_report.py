"""`askance report` and `askance compare --html`: one file each, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command, Workplace, draw
from tests.evals.report.runs import Parsed

OWN = """\
from pathlib import Path

from pydantic import Field
from askance.evals import Sample, Task, right_or_wrong
from askance.images import Image

class Guess(Task):
    name = "own/guess"
    right: int
    count: int = Field(8, exclude=True)

    def samples(self):
        pictures = [Image.from_path(path) for path in sorted(Path("pictures").iterdir())]
        return [Sample(id=f"{each:02}", target=True, image=pictures[each % 2]) for each in range(self.count)]

    def solver(self):
        return lambda sample: int(sample.id) < self.right

    def scorer(self):
        return right_or_wrong()

    def label(self):
        return f"{self.right} right"
"""


@pytest.fixture(scope="module")
def made(workplace: Workplace) -> Workplace:
    with workplace.entered() as work:
        draw(work / "pictures", "a.png", "b.png")
        (work / "own.py").write_text(OWN, encoding="utf-8")
    for name, right in (("good", 7), ("bad", 1)):
        workplace.run("eval", "run", "own.py", "-T", f"right={right}", "--out", name)
    return workplace


@pytest.fixture(autouse=True)
def runs(made: Workplace, own_place: Path) -> None:
    made.copy_to(own_place)


def test_a_run_becomes_a_page(askance: Command) -> None:
    done = askance("report", "good", "--no-images")

    page = Path("report.html").read_text(encoding="utf-8")
    assert "data:image/jpeg" not in page
    assert (done.code, done.out) == (0, f"The page is in report.html ({len(page.encode()) / 1e6:.1f} MB).\n")
    assert "87.50 % 95 % interval" in Parsed(page).text
    assert not Path("report.html.part").exists()


def test_several_runs_go_into_one_page_with_a_title_and_a_place(askance: Command) -> None:
    assert askance("report", "good", "bad", "-o", "pages/both.html", "--title", "Guesses <1>").code == 0

    parsed = Parsed(Path("pages/both.html").read_text(encoding="utf-8"))
    assert [run["name"] for run in parsed.data("index")["runs"]] == ["7 right", "1 right"]
    assert "Guesses <1>" in parsed.text


def test_a_folder_of_runs_stands_for_all_of_them(askance: Command) -> None:
    Path("all").mkdir()
    for name in ("good", "bad"):
        Path(name).rename(Path("all") / name)

    assert askance("report", "all").code == 0

    page = Parsed(Path("report.html").read_text(encoding="utf-8"))
    assert [run["name"] for run in page.data("index")["runs"]] == ["1 right", "7 right"]


def test_pictures_are_shown_from_where_the_run_found_them_if_they_are_the_same(askance: Command) -> None:
    assert "2 pictures of at most 512 pixels.\n" in askance("report", "good").out

    places = json.loads(Path("good/.pictures").read_text(encoding="utf-8"))
    first = next(iter(places.values()))
    Path("changed.png").write_bytes(Path(first).read_bytes() + b"changed")
    moved = {name: "changed.png" if place == first else place for name, place in places.items()}
    Path("good/.pictures").write_text(json.dumps(moved), encoding="utf-8")
    assert "1 picture of at most 512 pixels; pictures not found, or not readable: 1.\n" in askance("report", "good").out


@pytest.mark.parametrize("places", ["[1]", "{", '{"a": 1, "b": "\\u0000"}', '{"a": "/dev/zero"}'])
def test_a_list_of_places_that_somebody_wrote_shows_no_other_file(askance: Command, places: str) -> None:
    Path("good/.pictures").write_text(places, encoding="utf-8")

    done = askance("report", "good")

    assert done.code == 0
    assert "picture" not in done.out


def test_pictures_are_found_and_counted(askance: Command) -> None:
    done = askance("report", "good", "--images", "pictures")

    assert done.out.endswith("2 pictures of at most 512 pixels.\n")
    assert len(Parsed(Path("report.html").read_text(encoding="utf-8")).data("pictures-0")) == 2


def test_pictures_may_lie_beside_the_page(askance: Command) -> None:
    assert askance("report", "good", "--images", "pictures", "--beside").code == 0

    parsed = Parsed(Path("report.html").read_text(encoding="utf-8"))
    assert all(Path(name).is_file() for name in parsed.data("index")["files"])
    assert "pictures-0" not in parsed.scripts


def test_the_same_in_json_writes_no_page(askance: Command) -> None:
    form: Any = json.loads(askance("report", "good", "bad", "--json").out)

    assert [run["results"] for run in form["runs"]] == [{"right": 7, "wrong": 1}, {"right": 1, "wrong": 7}]
    assert form["runs"][0]["figures"][0]["value"] == 0.875
    assert not Path("report.html").exists()


def test_a_comparison_becomes_a_page_and_is_printed_all_the_same(askance: Command) -> None:
    plain = askance("compare", "good", "bad").out
    done = askance("compare", "good", "bad", "--html", "pair.html", "--images", "pictures")

    assert done.code == 0
    assert done.out.startswith("The page is in pair.html (")
    assert done.out.endswith(plain)
    text = Parsed(Path("pair.html").read_text(encoding="utf-8")).text
    assert "7 right against 1 right" in text
    assert "A better 6" in text
    assert "options.right 7 1" in text


def test_with_json_a_comparison_prints_json_alone(askance: Command) -> None:
    done = askance("compare", "good", "bad", "--html", "pair.html", "--json")

    assert json.loads(done.out)["samples"] == 8
    assert Path("pair.html").is_file()


REFUSED = {
    "no run": (["report", "nowhere"], "askance: The folder 'nowhere' holds no run.\n"),
    "a folder as file": (
        ["report", "good", "-o", "pictures"],
        "askance: 'pictures' is a folder, and the page is one file.",
    ),
    "pictures for no page": (
        ["compare", "good", "bad", "--images", "pictures"],
        "askance: `--images` is for a page, and none is asked for.\n",
    ),
    "no pictures there": (["report", "good", "--images", "nowhere"], "askance: There is nothing at 'nowhere'.\n"),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_shown_is_told(arguments: list[str], message: str, askance: Command) -> None:
    done = askance(*arguments)

    assert (done.code, done.err[: len(message)]) == (2, message)


def test_a_page_that_cannot_be_written_leaves_the_old_one(askance: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("report.html").write_text("old", encoding="utf-8")
    Path("report.html.part").mkdir()  # in the way, as a disk that is full would be

    done = askance("report", "good")

    assert done.code != 0
    assert Path("report.html").read_text(encoding="utf-8") == "old"


def test_a_run_over_pictures_becomes_the_page_that_it_could_have_written(
    askance: Command, vlm: str, ads: list[str]
) -> None:
    askance("run", "explain", *ads, "--vlm", vlm, "--out", "seen", "--html", "at-once.html")

    done = askance("report", "seen", "--images", "ads")
    later, at_once = (Parsed(Path(name).read_text(encoding="utf-8")) for name in ("report.html", "at-once.html"))

    assert (done.code, done.out.splitlines()[1]) == (0, "3 pictures of at most 512 pixels.")
    assert later.data("index")["runs"][0]["rows"] == at_once.data("index")["runs"][0]["rows"]
    assert later.samples() == at_once.samples()
    assert later.data("pictures-0") == at_once.data("pictures-0")
