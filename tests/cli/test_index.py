from __future__ import annotations

import json
from pathlib import Path

import pytest

from askance.models import ScriptedEmbedder
from askance.models.encoders import embedder as embedders
from tests.cli.command import Command
from tests.evals.pittads.files import record, release_b, true_of, write_json

CLAIMS = """\
text,image
I should drink Mason's Roast because it gives my day a solid start.,brick-cup.jpg
I should buy this coffee because it is as strong as a brick wall.,brick-cup.jpg
I should buy this coffee because it is as strong as a brick wall.,wall.jpg
I should never drink coffee because it keeps me awake.,
n/a,coin-horse.jpg
"""


@pytest.fixture
def claims(own_place: Path) -> Path:
    """A table with four texts of three images, one of them junk."""
    file = own_place / "claims.csv"
    file.write_text(CLAIMS, encoding="utf-8")
    return file


def letters(text: str) -> list[float]:
    """A vector of the letters of a text."""
    return [1.0 + text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"]


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> ScriptedEmbedder:
    """What `st:letters` is in these tests."""
    made = ScriptedEmbedder(letters, identity="letters")
    monkeypatch.setattr(embedders, "from_spec", lambda *_, **__: made)
    return made


# --- build ---


def test_texts_of_a_table_are_an_index(askance: Command, claims: Path) -> None:
    done = askance("index", "build", "claims.index", "--texts", "claims.csv")

    assert done.code == 0
    assert done.out == "claims.index: 4 texts of 3 images; no vectors.\n"
    assert "1 statement is one entry with an equal one of another image." in done.err
    assert "1 text says nothing" in done.err


def test_columns_are_named_and_a_cell_may_hold_a_list(askance: Command, own_place: Path) -> None:
    rows = [
        {"claims": ["Buy it.", "Drink it."], "of": "a.jpg"},
        {"claims": "Buy it.", "of": ["b.jpg", "c.jpg"], "part": "train"},
    ]
    (own_place / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

    columns = ("--column", "text=claims", "--column", "image=of", "--column", "split=part")
    done = askance("index", "build", "i", "--texts", "rows.jsonl", *columns, "--json")

    (said,) = done.lines
    assert (said["texts"], said["images"], said["splits"]) == (2, 3, {"": 1, "train": 1})


def test_the_ads_come_without_their_test_part_and_that_is_said(askance: Command, own_place: Path) -> None:
    release_b(own_place / "PittAd", {"1/11.jpg": record("1/11.jpg")})
    write_json(own_place / "PittAd/test_right.json", {"12.jpg": true_of("2/12.jpg")})

    train = askance("index", "build", "train.index", "--data", "PittAd", "--json")
    both = askance("index", "build", "both.index", "--data", "PittAd", "--split", "train,test", "--json")
    words = askance(
        "index", "build", "train.index", "--data", "PittAd", "--negatives", "train/QA_Combined_Action_Reason_train.json"
    )

    assert (train.lines[0]["splits"], both.lines[0]["splits"]) == ({"train": 3}, {"test": 3, "train": 3})
    assert "1 image left out: of the test part. `--split train,test` takes the test part as well." in train.err
    assert "Statements of 1 image of the part test, 1 image of the part train." in both.err
    assert words.code == 2
    assert "an index of other entries" in words.err


def test_a_second_embedder_needs_no_texts(askance: Command, claims: Path, scripted: ScriptedEmbedder) -> None:
    askance("index", "build", "i", "--texts", "claims.csv")

    planned = askance("index", "build", "i", "--embedder", "st:letters", "--plan")
    assert scripted.asked == []
    done = askance("index", "build", "i", "--embedder", "st:letters")
    again = askance("index", "build", "i", "--texts", "claims.csv", "--embedder", "st:letters", "--plan", "--json")

    assert planned.out == "i: 4 texts, 4 vectors to be made by st:letters.\n"
    assert done.out == "i: 4 texts of 3 images; letters.\n"
    assert again.lines == [{"index": "i", "texts": 4, "vectors": 0}]


def test_a_build_that_is_interrupted_says_how_to_go_on(
    askance: Command, claims: Path, monkeypatch: pytest.MonkeyPatch, scripted: ScriptedEmbedder
) -> None:
    def stop(_: str) -> list[float]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(scripted, "_vector", stop)
        stopped = askance("index", "build", "i", "--texts", "claims.csv", "--embedder", "st:letters")
    search = askance("index", "stats", "i")
    done = askance("index", "build", "i", "--texts", "claims.csv", "--embedder", "st:letters")

    assert stopped.code == 130
    assert "Interrupted. The same command goes on where this one stopped." in stopped.err
    assert search.code == 2
    assert "was not finished" in search.err
    assert done.code == 0


BAD_BUILDS = {
    "no texts": ([], "No texts are named"),
    "no such table": (["--texts", "none.csv"], "none.csv"),
    "no such column": (["--texts", "claims.csv", "--column", "text=words"], "no column 'words'"),
    "column of no table": (["--column", "text=words"], "goes with --texts"),
    "no column": (["--texts", "claims.csv", "--column", "words"], "names no column"),
    "a column twice": (["--texts", "claims.csv", "--column", "text=a", "--column", "text=b"], "stands twice"),
    "another thing": (["--texts", "claims.csv", "--column", "words=text"], "No 'words' is taken"),
    "a split of a table": (["--texts", "claims.csv", "--split", "train"], "goes with --data"),
    "negatives of a table": (["--texts", "claims.csv", "--negatives", "n.json"], "goes with --data"),
    "no such folder": (["--data", "nowhere"], "no data folder 'nowhere'"),
    "no such embedder": (["--texts", "claims.csv", "--embedder", "sst:x"], "sst"),
    "vectors of nobody": (["--texts", "claims.csv", "--vector-store", "lance"], "none are made"),
    "no such store": (
        ["--texts", "claims.csv", "--embedder", "st:x", "--vector-store", "chroma"],
        "no store of vectors 'chroma'",
    ),
    "a file of pictures": (["--texts", "claims.png"], "no table"),
}


@pytest.mark.parametrize(("words", "said"), BAD_BUILDS.values(), ids=BAD_BUILDS)
def test_a_build_that_cannot_be_says_why_and_the_way_out(
    askance: Command, claims: Path, words: list[str], said: str
) -> None:
    done = askance("index", "build", "i", *words)

    assert done.code in {2, 3}
    assert said in done.err
    assert "→" in done.err
    assert not Path("i").exists()


def test_a_store_of_ones_own_is_named_by_its_file(askance: Command, claims: Path, scripted: ScriptedEmbedder) -> None:
    Path("mine.py").write_text(
        "from pathlib import Path\nfrom askance.retrieval import ExactVectors\n"
        "STORE = ExactVectors(Path('elsewhere'), {'model': 'mine'})\nOTHER = 1\n",
        encoding="utf-8",
    )
    words = ("index", "build", "i", "--texts", "claims.csv", "--embedder", "st:letters", "--vector-store")

    done = askance(*words, "mine.py:STORE")
    wrong = askance(*words, "mine.py:OTHER")
    without = askance("index", "stats", "i")
    with_it = askance("index", "stats", "i", "--vector-store", "mine.py:STORE")

    assert done.code == 0, done.err
    assert list(Path("elsewhere/vectors").glob("*.rows"))
    assert "is no store of vectors: it is of the type int" in wrong.err
    assert (without.code, with_it.code) == (1, 0), with_it.err
    assert "--vector-store" in without.err


# --- stats ---


def test_stats_count_what_an_index_has(askance: Command, claims: Path, scripted: ScriptedEmbedder) -> None:
    askance("index", "build", "i", "--texts", "claims.csv", "--embedder", "st:letters")

    shown = askance("index", "stats", "i", "--near-twins")
    (said,) = askance("index", "stats", "i", "--json", "--near-twins").lines

    assert [line.split() for line in shown.out.splitlines() if "true of" in line or "letters" in line] == [
        ["true", "of", "an", "image", "3"],
        ["true", "of", "no", "image", "1"],
        ["letters", "26", "file", "0", "pairs", "of", "0", "texts"],
    ]
    counts = {name: said[name] for name in ("texts", "images", "without_image", "merged", "junk", "no_because")}
    assert counts == {"texts": 4, "images": 3, "without_image": 1, "merged": 1, "junk": 1, "no_because": 1}
    assert said["near_twins"] == {"letters": {"pairs": 0, "texts": 0}}
    assert said["problems"] == []
    assert {"index.json", "statements.jsonl", "bm25", "vectors"} <= {*said["bytes"]}


@pytest.mark.parametrize("name", ["statements.jsonl", "bm25", "vectors"])
def test_a_changed_file_is_found(askance: Command, claims: Path, scripted: ScriptedEmbedder, name: str) -> None:
    askance("index", "build", "i", "--texts", "claims.csv", "--embedder", "st:letters")
    path = Path("i", name)
    file = path if path.is_file() else sorted(path.glob("*.[rn][op]*"))[0]
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)

    done = askance("index", "stats", "i")

    assert done.code == 1 or (name == "statements.jsonl" and done.code == 3)
    assert name in done.err
    assert "Traceback" not in done.err


def test_a_text_cannot_move_the_cursor(askance: Command, own_place: Path) -> None:
    (own_place / "odd.jsonl").write_text(
        json.dumps({"text": "brick \x1b[2J wall", "image": "\x1b[31ma.jpg"}), encoding="utf-8"
    )
    askance("index", "build", "i\x1b[1m", "--texts", "odd.jsonl")

    done = askance("index", "stats", "i\x1b[1m")

    assert "\x1b" not in done.out + done.err
