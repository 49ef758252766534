"""`askance train data`: sets of recorded runs and of data sets, the terms that go with them, and what is refused."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from askance.images import Image
from askance.training import TrainingSet
from tests.cli.command import Command
from tests.evals.newyorker import cartoons
from tests.evals.sherlock import corpus
from tests.evals.whoops import files

TERMS = "check whether the terms of its provider allow training on them."


@pytest.fixture
def seen(askance: Command, vlm: str, ads: list[str]) -> list[str]:
    """The pictures of the run `seen`."""
    assert askance("run", "verbalize", *ads, "--vlm", vlm, "--out", "seen").code == 0
    return ads


def records(askance: Command, *words: str) -> Any:
    return askance("train", "data", "records", *words)


def test_a_run_becomes_a_set_once_its_terms_are_agreed_to(askance: Command, seen: list[str]) -> None:
    refused = records(askance, "--run", "seen", "--link", "narration", "-o", "sft")
    assert (refused.code, refused.out) == (2, "")
    assert TERMS in refused.err
    assert "Nobody agreed to these terms.\n  → Read them, and add `--accept-terms`." in refused.err
    assert not Path("sft").exists()

    done = records(askance, "--run", "seen", "--link", "narration", "-o", "sft", "--accept-terms")
    made = TrainingSet.open("sft")
    assert done.code == 0
    assert done.out.startswith(f"sft: {len(seen)} examples with {len(seen)} pictures\n")
    assert made.count("train") + made.count("validation") == len(seen)
    assert TERMS in made.manifest["licences"][0]
    assert made.manifest["filters"]["links"] == ["narration"]
    (prompt,) = {name for name in made.prompts if name.startswith("narration")}
    assert [len(digest) for digest in made.prompts[prompt]] == [64]

    again = records(askance, "--run", "seen", "-o", "sft", "--accept-terms")
    assert (again.code, again.err) == (
        2,
        "askance: 'sft' is there already, and is no empty folder.\n  → Name a new folder.\n",
    )


def test_what_is_held_out_is_tested_and_what_is_kept_out_is_nowhere(askance: Command, seen: list[str]) -> None:
    held, kept, *_ = seen
    Path("held.txt").write_text(f"{Path(held).name}\nunknown\n", encoding="utf-8")

    done = records(
        askance, "--run", "seen", "--hold-out", "held.txt", "--keep-out", kept, "-o", "sft", "--accept-terms", "--json"
    )

    form = json.loads(done.out)
    made = TrainingSet.open("sft")
    assert form["rows"] == {split: made.count(split) for split in made.splits}
    assert form["digest"] == made.digest
    assert form["left_out"]["about a picture to evaluate on"] >= 1
    assert "· 1 of 2 listed to be held out are not here" in done.err
    digests = {
        split: {image.sha256 for each in made.examples(split) for image in each.pictures} for split in made.splits
    }
    assert digests["test"] == {Image.from_path(held).sha256}
    assert Image.from_path(kept).sha256 not in {digest for each in digests.values() for digest in each}


def test_records_alone_do_with_the_pictures_that_are_named(askance: Command, seen: list[str]) -> None:
    store = ("--store", "../store", "-o", "sft", "--accept-terms")
    lost = records(askance, *store, "--link", "narration")
    assert lost.code == 2
    assert "Name the run that asked: --run FOLDER" in lost.err

    done = records(askance, *store, "--images", str(Path(seen[0]).parent))
    assert done.code == 0, done.err
    assert TrainingSet.open("sft").has_pictures


def test_lines_for_openai_have_pictures_as_data_urls(askance: Command, seen: list[str]) -> None:
    few = records(askance, "--run", "seen", "--link", "narration", "-o", "few", "--accept-terms", "--to", "openai")
    assert (few.code, few.out) == (2, "")
    assert "OpenAI takes no training file of fewer than 10 lines" in few.err

    done = records(askance, "--run", "seen", "-o", "lines", "--accept-terms", "--to", "openai", "--validation", "0")

    assert done.code == 0, done.err
    lines = [json.loads(line) for line in Path("lines/train.jsonl").read_text(encoding="utf-8").splitlines()]
    assert done.out.startswith(f"lines: {len(lines)} examples\n")
    seeing = [line for line in lines if isinstance(line["messages"][1]["content"], list)]
    (url,) = {
        part["image_url"]["url"]
        for line in seeing[:1]
        for part in line["messages"][1]["content"]
        if "image_url" in part
    }
    head, _, data = url.partition(",")
    assert head in {"data:image/png;base64", "data:image/jpeg;base64"}
    assert base64.b64decode(data)[:2] in {b"\x89P", b"\xff\xd8"}
    assert {line["messages"][-1]["role"] for line in lines} == {"assistant"}


WRONG: dict[str, tuple[list[str], str]] = {
    "no source": ([], "Runs or a store of records are needed, one of the two."),
    "both sources": (["--run", "seen", "--store", "s"], "Runs or a store of records are needed, one of the two."),
    "no run": (["--run", "ads"], "holds no run"),
    "no number": (["--run", "seen", "--min-score", "accuracy"], "`--min-score accuracy` names no score and number."),
    "no score": (["--run", "seen", "--min-score", "accuracy=1"], "The run 'seen' has no score 'accuracy'."),
    "no judge": (["--run", "seen", "--judged"], "No judge has scored the run 'seen'."),
    "nobody held out": (["--run", "seen", "--hold-out", "no.txt"], "Nothing that 'no.txt' lists is here, such as 'x'."),
    "nothing kept out": (["--run", "seen", "--keep-out", "no.txt"], "There is no picture in 'no.txt' to keep out."),
    "no place": (["--run", "seen", "--images", "nowhere"], "There is no file or folder 'nowhere'."),
    "a share of one": (["--run", "seen", "--validation", "1"], "A share of 1 cannot be for validation."),
    "an unknown link": (["--run", "seen", "--link", "naration"], "The runs have no link 'naration'."),
    "an embedder of texts": (
        ["--run", "seen", "--near-twins", "openai:e"],
        "The embedder 'openai:e' takes no pictures.",
    ),
}


@pytest.mark.parametrize(("words", "message"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_done_is_said_with_the_way_out(
    askance: Command, seen: list[str], words: list[str], message: str
) -> None:
    Path("no.txt").write_text("x\n", encoding="utf-8")

    done = records(askance, *words, "-o", "sft", "--accept-terms")

    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert "\n  → " in done.err
    assert not Path("sft").exists()


def test_a_run_whose_pictures_are_gone_says_what_is_left_out(askance: Command, seen: list[str]) -> None:
    for picture in seen:
        Path(picture).unlink()

    done = records(askance, "--run", "seen", "--link", "narration", "-o", "sft", "--accept-terms")

    assert done.code == 2
    assert f"Left out: {len(seen)} examples: a picture is not at hand." in done.err


def test_sets_of_the_suites(askance: Command, own_place: Path) -> None:
    files.first_release(Path("weird"))
    cartoons.parquet(Path("jokes"), tasks=("matching",), folds=(0,))
    corpus.write(Path("regions"))

    weird = askance("train", "data", "whoops", "weird", "--fold", "2", "-o", "w", "--accept-terms")
    jokes = askance(
        "train", "data", "newyorker", "jokes", "--task", "matching", "--form", "choices", "-o", "n", "--accept-terms"
    )
    tuned = askance(
        "train",
        "data",
        "newyorker",
        "jokes",
        "--task",
        "matching",
        "--form",
        "chat",
        "-o",
        "o",
        "--accept-terms",
        "--to",
        "openai",
    )
    chosen = askance(
        "train",
        "data",
        "newyorker",
        "jokes",
        "--task",
        "matching",
        "--form",
        "choices",
        "-o",
        "c",
        "--accept-terms",
        "--to",
        "openai",
    )
    regions = askance("train", "data", "sherlock", "regions", "-o", "s", "--accept-terms")

    assert [done.code for done in (weird, jokes, tuned)] == [0, 0, 0]
    assert "WHOOPS! was made to test models." in weird.err
    assert "· Identifying is left out" in weird.err
    assert (TrainingSet.open("w").kind, TrainingSet.open("n").kind) == ("chat", "choices")
    first = json.loads(Path("o/train.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert first["messages"][-1]["content"].startswith("Answer: ")
    assert chosen.code == 2
    assert "OpenAI tunes models that write" in chosen.err
    assert regions.code == 2
    assert "has no corpus for train; it has the corpus for val." in regions.err
