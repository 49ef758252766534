from __future__ import annotations

import json
from pathlib import Path

import pytest

from askance.models import ScriptedEmbedder
from askance.models.encoders import records as encoders
from tests.cli.command import Command, draw
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


def stand_in(monkeypatch: pytest.MonkeyPatch, made: ScriptedEmbedder) -> ScriptedEmbedder:
    """Has every spec of an embedder name `made`."""

    def from_spec(*_: object, **__: object) -> ScriptedEmbedder:
        return made

    monkeypatch.setattr(encoders, "from_spec", from_spec)
    return made


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> ScriptedEmbedder:
    """What `st:letters` is in these tests."""
    return stand_in(monkeypatch, ScriptedEmbedder(letters, identity="letters"))


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
    assert (said["entries"], said["images"], said["splits"]) == (2, 3, {"": 1, "train": 1})


def test_the_ads_come_without_their_test_part_and_that_is_said(askance: Command, own_place: Path) -> None:
    release_b(own_place / "PittAd", {"1/11.jpg": record("1/11.jpg")})
    write_json(own_place / "PittAd/test_right.json", {"12.jpg": true_of("2/12.jpg")})

    train = askance("index", "build", "train.index", "--data", "PittAd", "--json")
    both = askance("index", "build", "both.index", "--data", "PittAd", "--split", "train,test", "--json")
    words = askance(
        "index", "build", "train.index", "--data", "PittAd", "--negatives", "train/QA_Combined_Action_Reason_train.json"
    )

    assert (train.lines[0]["splits"], both.lines[0]["splits"]) == ({"train": 3}, {"test": 3, "train": 3})
    assert "1 image left out: of the test part. `--split train,test` takes both parts." in train.err
    assert "Statements of 1 image of the part test, 1 image of the part train." in both.err
    (own_place / "PittAd/test_right.json").unlink()
    lacking = askance("index", "build", "lacking.index", "--data", "PittAd", "--split", "train,test")
    assert "No statement of the part test is there: `test_right.json` would have them." in lacking.err
    assert words.code == 2
    assert "an index of other entries" in words.err


def test_a_second_embedder_needs_no_texts(askance: Command, claims: Path, scripted: ScriptedEmbedder) -> None:
    askance("index", "build", "i", "--texts", "claims.csv")

    planned = askance("index", "build", "i", "--embedder", "st:letters", "--plan")
    assert scripted.asked == []
    done = askance("index", "build", "i", "--embedder", "st:letters")
    again = askance("index", "build", "i", "--texts", "claims.csv", "--embedder", "st:letters", "--plan", "--json")

    assert planned.out == "i: 4 texts, 4 vectors to be made.\n"
    assert done.out == "i: 4 texts of 3 images; letters.\n"
    assert again.lines == [{"index": "i", "entries": 4, "vectors": 0}]


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


BAD_BUILDS: dict[str, tuple[list[str], str]] = {
    "no texts": ([], "No texts are named"),
    "no such table": (["--texts", "none.csv"], "none.csv"),
    "no such column": (["--texts", "claims.csv", "--column", "text=words"], "no column 'words'"),
    "column of no table": (["--column", "text=words"], "goes with --texts"),
    "no column": (["--texts", "claims.csv", "--column", "words"], "names no column"),
    "a column twice": (["--texts", "claims.csv", "--column", "text=a", "--column", "text=b"], "stands twice"),
    "another thing": (["--texts", "claims.csv", "--column", "words=text"], "names no column"),
    "a split of a table": (["--texts", "claims.csv", "--split", "train"], "goes with --data"),
    "negatives of a table": (["--texts", "claims.csv", "--negatives", "n.json"], "goes with --data"),
    "no split": (["--data", ".", "--split", ""], "No part of the ads is named"),
    "no such folder": (["--data", "nowhere"], "no data folder 'nowhere'"),
    "no such embedder, said first": (["--texts", "none.csv", "--embedder", "sst:x"], "sst"),
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
    with_it = askance("index", "stats", "i", "--vector-store", "mine.py:STORE", "--near-twins")

    assert done.code == 0, done.err
    assert list(Path("elsewhere/vectors").glob("*.rows"))
    assert "is no store of vectors: it is of the type int" in wrong.err
    assert (without.code, with_it.code) == (1, 0), with_it.err
    assert "--vector-store" in without.err
    assert "counted in files of vectors alone" in with_it.err


# --- search ---


@pytest.fixture
def index(askance: Command, claims: Path, own_place: Path) -> str:
    """An index of the claims, by words alone; and the demo's pictures beside it."""
    askance("index", "build", "claims.index", "--texts", "claims.csv")
    askance("demo", "--copy", "ads")
    return "claims.index"


def test_texts_are_found_by_words(askance: Command, index: str) -> None:
    done = askance("index", "search", index, "a strong coffee")

    lines = done.out.splitlines()
    assert lines[0].endswith("I should buy this coffee because it is as strong as a brick wall.")
    assert lines[1].strip() == "brick-cup.jpg, wall.jpg"
    assert lines[3].strip() == "true of no image"
    assert done.code == 0


def test_hits_are_printed_as_json(askance: Command, index: str) -> None:
    (said,) = askance("index", "search", index, "coffee wall", "-k", "1", "--json").lines

    (hit,) = said["hits"]
    assert hit["images"] == ["brick-cup.jpg", "wall.jpg"]
    assert (said["texts"], said["image"], said["how"]) == (["coffee wall"], None, "hybrid")


def test_hits_behind_the_first_hundred_have_their_texts_from_the_index(askance: Command, own_place: Path) -> None:
    texts = [f"I should drink coffee because of reason {number}" for number in range(103)]
    Path("reasons.csv").write_text("\n".join(["text", *texts]), encoding="utf-8")
    askance("index", "build", "i", "--texts", "reasons.csv")

    (said,) = askance("index", "search", "i/index.json", "coffee", "-k", "103", "--json").lines

    assert sorted(hit["text"] for hit in said["hits"]) == sorted(texts)


def test_a_picture_is_searched_by_what_models_say_of_it(askance: Command, index: str) -> None:
    words = ("index", "search", index, "ads/brick-cup.jpg", "--vlm", "demo", "--context", "V+T", "-k", "1")

    planned = askance(*words, "--plan")
    done = askance(*words)
    replayed = askance(*words, "--replay")
    planned_again = askance(*words, "--plan", "--json")

    assert "1 query, 3 calls: 0 on record, 3 to be made." in planned.out
    assert "brick-cup.jpg" in done.out
    assert "2 calls made" in done.err
    assert replayed.out == done.out
    assert "0 calls made · 2 replayed" in replayed.err
    assert (planned_again.lines[0]["hits"], planned_again.lines[0]["calls"]) == (3, 0)


def test_a_search_on_record_needs_neither_index_nor_encoder(
    askance: Command, index: str, scripted: ScriptedEmbedder
) -> None:
    askance("index", "build", index, "--embedder", "st:letters")
    words = ("index", "search", index, "a cup made of bricks")
    done = askance(*words, "--embedder", "st:letters")
    for path in sorted(Path(index).rglob("*"), reverse=True):
        if path.name != "index.json":
            path.rmdir() if path.is_dir() else path.unlink()
    asked = len(scripted.asked)

    replayed = askance(*words, "--replay")
    other = askance("index", "search", index, "another cup", "--replay")

    assert [line for line in done.out.splitlines() if line[:3].strip()] == replayed.out.splitlines()
    assert len(scripted.asked) == asked
    assert other.code == 3
    assert "differs in the query" in other.err


def test_a_picture_finds_texts_by_its_own_vector(askance: Command, index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = ScriptedEmbedder(letters, identity="dual", image=lambda _: letters("strong wall"))
    stand_in(monkeypatch, made)
    askance("index", "build", index, "--embedder", "clip:dual")

    words = ("index", "search", index, "ads/brick-cup.jpg", "--encoder", "clip:dual")
    alone = askance(*words, "--how", "image")
    hybrid = askance(*words)
    told = askance(*words, "--how", "image", "--vlm", "demo")

    assert alone.code == hybrid.code == 0, alone.err + hybrid.err
    assert alone.out == hybrid.out
    assert made.shown == ["brick-cup.jpg"]
    assert told.code == 2
    assert "searched by itself" in told.err


def test_an_encoder_that_has_to_be_named_is_asked_for(askance: Command, index: str, scripted: ScriptedEmbedder) -> None:
    askance("index", "build", index, "--embedder", "st:letters")

    done = askance("index", "search", index, "a cup")

    assert done.code == 2
    assert "or `--embedder`." in done.err


def test_a_picture_of_which_nothing_was_said_is_not_searched_by(askance: Command, index: str) -> None:
    Path("ads/mine.jpg").write_bytes(Path("ads/brick-cup.jpg").read_bytes()[:-2] + b"\x00\x00")

    done = askance("index", "search", index, "ads/mine.jpg", "--vlm", "demo")

    assert done.code == 1
    assert "Without an answer" in done.err


def test_nothing_found_is_said(askance: Command, index: str) -> None:
    done = askance("index", "search", index, "zebra")

    assert (done.code, done.out, done.err) == (0, "", "Nothing was found. No text shares a word with the query.\n")


BAD_SEARCHES: dict[str, tuple[list[str], str]] = {
    "no index": (["nowhere", "tea"], "holds no index"),
    "no picture": (["claims.index", "nowhere.jpg"], "no picture 'nowhere.jpg'"),
    "a name too long": (["claims.index", f"{'a' * 300}.jpg"], "no picture"),
    "a blank": (["claims.index", " "], "query is empty"),
    "no model": (["claims.index", "ads/brick-cup.jpg"], "no model puts it into words"),
    "no such context": (["claims.index", "ads/brick-cup.jpg", "--vlm", "demo", "--context", "X"], "no context 'X'"),
    "a model for words": (["claims.index", "tea", "--llm", "demo"], "no file of one"),
    "no such way": (["claims.index", "tea", "--how", "denes"], "searched by 'denes'"),
    "no vectors": (["claims.index", "tea", "--how", "dense"], "searched by 'dense'"),
    "no such space": (["claims.index", "tea", "--embedder", "st:x"], "no vectors of the embedder"),
}


@pytest.mark.parametrize(("words", "said"), BAD_SEARCHES.values(), ids=BAD_SEARCHES)
def test_a_search_that_cannot_be_says_why_and_the_way_out(
    askance: Command, index: str, words: list[str], said: str
) -> None:
    done = askance("index", "search", *words)

    assert done.code == 2
    assert said in done.err
    assert "→" in done.err


# --- stats ---


def test_stats_count_what_an_index_has(askance: Command, claims: Path, scripted: ScriptedEmbedder) -> None:
    askance("index", "build", "i", "--texts", "claims.csv", "--embedder", "st:letters")

    shown = askance("index", "stats", "i", "--near-twins")
    askance("index", "build", "words", "--texts", "claims.csv")
    assert "the index has none" in askance("index", "stats", "words", "--near-twins").err
    (said,) = askance("index", "stats", "i", "--json", "--near-twins").lines

    assert [line.split() for line in shown.out.splitlines() if "true of" in line or "letters" in line] == [
        ["true", "of", "an", "image", "3"],
        ["true", "of", "no", "image", "1"],
        ["letters", "26", "file"],
        ["Near-twins", "by", "letters:", "0", "pairs"],
    ]
    counts = {name: said[name] for name in ("entries", "images", "without_image", "merged", "junk", "no_because")}
    assert counts == {"entries": 4, "images": 3, "without_image": 1, "merged": 1, "junk": 1, "no_because": 1}
    assert said["near_twins"] == {"letters": {"pairs": 0, "entries": 0}}
    assert said["problems"] == []
    assert {"index.json", "statements.jsonl", "bm25", "vectors"} <= {*said["bytes"]}


@pytest.mark.parametrize("name", ["statements.jsonl", "bm25", "vectors"])
def test_a_changed_file_is_found(askance: Command, claims: Path, scripted: ScriptedEmbedder, name: str) -> None:
    askance("index", "build", "i", "--texts", "claims.csv", "--embedder", "st:letters")
    path = Path("i", name)
    file = path if path.is_file() else min(path.glob("*.[rn][op]*"))
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)

    done = askance("index", "stats", "i")

    assert done.code == 1
    assert name in done.err
    assert "Traceback" not in done.err


def test_a_text_cannot_move_the_cursor(askance: Command, own_place: Path) -> None:
    (own_place / "odd.jsonl").write_text(
        json.dumps({"text": "brick \x1b[2J wall", "image": "\x1b[31ma.jpg"}), encoding="utf-8"
    )
    askance("index", "build", "i\x1b[1m", "--texts", "odd.jsonl")

    done = askance("index", "stats", "i\x1b[1m")
    found = askance("index", "search", "i\x1b[1m", "brick")

    assert "brick \\x1b[2J wall" in found.out
    assert "\x1b" not in done.out + done.err + found.out + found.err


def test_a_mistyped_name_of_a_picture_is_not_searched_for(askance: Command, index: str, own_place: Path) -> None:
    draw(own_place, "photo.jpg", "other.png")
    mistyped = askance("index", "search", index, "photo.jgp")
    words = [askance("index", "search", index, query) for query in ("node.js", "photo.jgp ", "see photo.jgp")]

    assert mistyped.code == 2
    assert mistyped.err == (
        "askance: There is no picture 'photo.jgp'.\n"
        "  → Nearest: 'photo.jpg'. A blank behind the name searches for the words.\n"
    )
    assert [done.code for done in words] == [0, 0, 0]


@pytest.mark.parametrize("query", ["cup.jgp", "there/cup.jepg", "cup.heic", "PHOTO.JGP"])
def test_a_name_that_can_only_be_that_of_a_picture_is_not_searched_for(
    askance: Command, index: str, own_place: Path, query: str
) -> None:
    draw(own_place, "photo.jpg")
    done = askance("index", "search", index, query)

    assert (done.code, done.err.splitlines()[0]) == (2, f"askance: There is no picture {query!r}.")
    assert ("Nearest: 'photo.jpg'." in done.err) == (query == "PHOTO.JGP")


def test_a_file_is_a_picture_whatever_its_ending(askance: Command, index: str, own_place: Path) -> None:
    (own_place / "notes.txt").write_text("bricks", encoding="utf-8")
    done = askance("index", "search", index, "notes.txt")

    assert done.code == 2
    assert "The picture 'notes.txt' holds no picture that is known here" in done.err
