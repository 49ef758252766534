from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from askance.chat import ChatResponse, Usage
from askance.images.picture_folder import PictureFolder
from askance.replay import Cassette, Record, database, export_cassette, open_records
from tests.cli.command import Command, draw
from tests.replay.samples import record, request

MILLION = Usage(input=1_000_000, output=1_000_000)
PRICED = Record.make("chat", request("priced"), ChatResponse(text="x", usage=MILLION).canonical())


@pytest.fixture
def other(own_place: Path) -> Path:
    """A store with one record more and one that answers otherwise than the project's."""
    with open_records() as mine, open_records(own_place / "other") as theirs:
        for store, answer in ((mine, "a cup"), (theirs, "a mug")):
            store.put(record("both"))
            store.put(record("asked twice", answer))
        mine.put(PRICED)
        theirs.put(record("new", model="llava"))
    return own_place / "other"


def test_two_stores_are_compared(askance: Command, other: Path, tmp_path: Path) -> None:
    done = askance("cache", "diff", str(tmp_path / "store"), str(other))

    assert done.code == 0
    assert sorted(line[0] for line in done.out.splitlines()) == ["+", "-", "1", "≠"]
    assert done.out.splitlines()[-1] == "1 only in the first, 1 only in the second, 1 differ."


def test_a_store_and_a_cassette_are_compared(askance: Command, other: Path, own_place: Path) -> None:
    with open_records(other, read_only=True) as store:
        export_cassette(store, own_place / "all.jsonl")

    done = askance("cache", "diff", str(other), "all.jsonl")

    assert done.out == "0 only in the first, 0 only in the second, 0 differ.\n"


def test_a_store_is_taken_in(askance: Command, other: Path) -> None:
    assert askance("cache", "merge", str(other)).out == "1 new, 1 known, 1 answered otherwise (kept as they were).\n"
    assert (
        askance("cache", "merge", str(other), "--overwrite").out == "0 new, 2 known, 1 answered otherwise (replaced).\n"
    )
    assert askance("cache", "diff", str(other), str(other)).out.startswith("0 only in the first")
    assert "4 records" in askance("cache", "stats").out


def test_a_store_that_is_not_there_is_named(askance: Command) -> None:
    done = askance("cache", "merge", "nowhere")

    assert (done.code, done.err.splitlines()[0]) == (2, "askance: There is no store 'nowhere'.")


def test_records_are_taken_out(askance: Command, other: Path) -> None:
    assert askance("cache", "prune").code == 2
    assert askance("cache", "prune", "--model", "llava", "--store", str(other), "--dry-run").out == (
        "1 record, 0.0 MB, would be taken out.\n"
    )
    assert askance("cache", "prune", "--model", "llava", "--store", str(other)).out.startswith("1 record")
    assert askance("cache", "prune", "--older-than", "1d", "--store", str(other)).out.startswith("2 records")
    assert "0 records" in askance("cache", "stats", "--store", str(other)).out


def test_what_a_run_needs_stays(askance: Command, vlm: str, ads: list[str]) -> None:
    command = ["run", "verbalize", *ads, "--vlm", vlm, "--out", "run", "--json"]
    first = askance(*command)
    with open_records() as store:
        store.put(record("of no run"))

    gone = askance("cache", "prune", "--unused-by", "run")

    assert gone.out.startswith("1 record, ")
    again = askance("run", "verbalize", *ads, "--vlm", vlm, "--json", "--replay")
    assert again.stable == first.stable
    assert askance("cache", "prune", "--unused-by", "ads").err.startswith("askance: The folder 'ads' holds no run.")


def test_the_worth_of_the_records_is_told(askance: Command, other: Path, own_place: Path) -> None:
    (own_place / "askance.toml").write_text(
        '[models.four]\nspec = "openai:gpt-4o"\nprice = { input = 2, output = 8 }\n', encoding="utf-8"
    )

    told = askance("cache", "stats").out.splitlines()

    assert told[-1] == "  Each replay of all of it saves $10.0000, and what 2 answers without a known price cost."
    assert [line.split() for line in told if "models" in line] == [["models", "openai:gpt-4o", "3", "$10.0000"]]


LEFT_OUT = (
    "1 damaged record of {store!r} is left out: `askance cache verify --store {store}` names them, `askance cache "
    "prune --damaged --store {store}` takes them out.\n"
)


@pytest.fixture
def damaged(other: Path) -> Path:
    """The store beside the project's, with a row that is no record."""
    with closing(sqlite3.connect(other / "cache.db", isolation_level=None)) as file:
        file.execute("UPDATE Cache SET value = '[]' WHERE key = ?", (record("both").key,))
    return other


def test_sound_records_take_the_place_of_damaged_ones(askance: Command, damaged: Path, tmp_path: Path) -> None:
    open_records(tmp_path / "store").close()

    done = askance("cache", "merge", str(tmp_path / "store"), "--store", str(damaged))
    checked = askance("cache", "verify", "--store", str(damaged))

    assert (done.code, done.out) == (
        0,
        "1 new, 0 known, 1 answered otherwise (kept as they were), 1 in the place of damaged ones.\n",
    )
    assert checked.code == 0


def test_impossible_counts_of_tokens_are_said_and_no_problem(askance: Command, tmp_path: Path) -> None:
    counted = replace(record("counted"), response={"text": "a cup", "finish": "stop", "usage": {"output": -7}})
    with open_records(tmp_path / "store") as store:
        store.put(counted)

    checked = askance("cache", "verify", "--store", str(tmp_path / "store"))
    written = askance("cache", "export", "all.jsonl", "--store", str(tmp_path / "store"))

    assert (checked.code, checked.out.splitlines()) == (
        0,
        [
            f"{counted.key[:12]}: It counts tokens that no call can take (output -7); they are read as unknown.",
            "1 record, 0 problems.",
        ],
    )
    assert (written.code, written.err) == (0, "1 record written to all.jsonl\n")


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["stats", "--store", "STORE"], ": 2 records, 0.0 MB"),
        (["why", "--last", "--store", "STORE"], "The nearest other one, "),
        (["diff", "STORE", "STORE"], "0 only in the first, 0 only in the second, 0 differ."),
        (["export", "all.jsonl", "--store", "STORE"], ""),
    ],
    ids=["stats", "why", "diff", "export"],
)
def test_what_is_sound_is_used_and_what_is_left_out_is_said(
    askance: Command, damaged: Path, command: list[str], shown: str
) -> None:
    done = askance("cache", *[word.replace("STORE", str(damaged)) for word in command])

    assert (done.code, shown in done.out) == (1, True)
    assert done.err.endswith(LEFT_OUT.format(store=str(damaged)))


def test_an_exported_cassette_holds_nothing_that_an_import_would_refuse(
    askance: Command, damaged: Path, own_place: Path
) -> None:
    with closing(sqlite3.connect(damaged / "cache.db", isolation_level=None)) as file:
        forged = record("new", model="llava").to_json().replace("new", "another")
        file.execute("UPDATE Cache SET value = ? WHERE key = ?", (forged, record("new", model="llava").key))

    done = askance("cache", "export", "all.jsonl", "--store", str(damaged))

    assert (done.code, done.err.splitlines()[0]) == (1, "1 record written to all.jsonl")
    assert done.err.splitlines()[1].startswith(f"2 damaged records of {str(damaged)!r} are left out: ")
    assert list(Cassette(own_place / "all.jsonl")) == [record("asked twice", "a mug")]


def test_a_damaged_store_is_taken_in_without_what_is_damaged(
    askance: Command, damaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(f"27 1 0:1 / / rw - ext4 x rw\n31 27 0:4 / {damaged} rw - nfs4 server:/x rw\n", "utf-8")
    monkeypatch.setattr(database, "MOUNTS", table)

    refused = askance("cache", "merge", str(damaged))
    done = askance("cache", "merge", str(damaged), "--skip-damaged")
    told = askance("cache", "stats", "--store", str(damaged)).err

    assert (refused.code, "--skip-damaged" in refused.err, "prune" in refused.err) == (3, True, False)
    assert (done.code, done.out) == (
        1,
        "1 new, 0 known, 1 answered otherwise (kept as they were), 1 damaged (left where they are).\n",
    )
    assert f"`askance cache merge --skip-damaged {damaged}` takes the others into a store on a local disk" in told


def test_pictures_from_the_web_are_counted_and_taken_out_by_age(askance: Command, own_place: Path) -> None:
    with open_records() as store:
        store.put(record("one"))
        folder = PictureFolder(store.beside("pictures"))
    for number in range(3):
        folder.of_bytes(f"picture {number}".encode())
    for file in sorted(folder.path.glob("[!.]*"))[:2]:
        os.utime(file, (0, 0))

    counted = askance("cache", "stats").out
    tried = askance("cache", "prune", "--pictures", "--older-than", "30d", "--dry-run")
    done = askance("cache", "prune", "--pictures", "--older-than", "30d")

    assert "  pictures  from the web and from tables, 0.0 MB" in counted
    assert counted.splitlines()[0].endswith("1 record, 0.0 MB")
    assert tried.out == "2 pictures, 0.0 MB, would be taken out.\n"
    assert (done.code, done.out) == (0, "2 pictures, 0.0 MB, are taken out.\n")
    assert len([*folder.kept()]) == 1
    assert "1 record, " in askance("cache", "stats").out


def test_pictures_are_merged_with_their_records(askance: Command, own_place: Path) -> None:
    with open_records() as store, open_records("other") as other:
        other.put(record("one"))
        here, there = (PictureFolder(each.beside("pictures")) for each in (store, other))
    both, new = (Path(each).read_bytes() for each in draw(own_place, "a.png", "b.png"))
    here.of_bytes(both)
    there.of_bytes(both)
    kept = there.of_bytes(new)
    there.of_bytes(b"no picture")
    (there.path / "notes.png").write_bytes(new)
    (there.path / f"{'0' * 64}.png").symlink_to(own_place / "b.png")

    done = askance("cache", "merge", "other")
    again = askance("cache", "merge", "other")

    assert (done.code, done.out) == (
        1,
        "1 new, 0 known.\n1 picture new, 1 known, 1 left where it is: no picture is in the file.\n",
    )
    assert again.out.startswith("0 new, 1 known.\n0 pictures new, 2 known, ")
    assert len([*here.kept()]) == 2
    assert (here.path / kept.name).read_bytes() == new


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Nothing says which pictures to take out."),
        (("--older-than", "1d", "--model", "x"), "Pictures have no model, no run and no form to go by."),
        (("--older-than", "soon"), "'soon' is no date."),
    ],
    ids=["no age", "a model", "no date"],
)
def test_pictures_are_taken_out_by_age_alone(askance: Command, words: tuple[str, ...], message: str) -> None:
    with open_records() as store:
        store.put(record("one"))

    done = askance("cache", "prune", "--pictures", *words)

    assert (done.code, done.err.splitlines()[0]) == (2, f"askance: {message}")
