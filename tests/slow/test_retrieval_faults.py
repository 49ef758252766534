"""What goes wrong with an index, by the command: each fault is named with the way out, and the way out helps."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image as Pillow

from tests.evals.pittads.files import row, write_json
from tests.slow.ads_folder import ANNOTATIONS, STATEMENTS, ads_folder
from tests.slow.commands import Place, Ran
from tests.slow.conftest import Switch

pytestmark = pytest.mark.slow(group="retrieval")

REFUSED = {2, 3}
"""Exit codes where the command does not do what it was asked for: it was asked wrongly, or cannot begin."""
QUERY = "a strong coffee in the morning"
STORE = """\
import chromadb
from llama_index.vector_stores.chroma import ChromaVectorStore
from askance.retrieval.llama import LlamaVectorStore

client = chromadb.HttpClient(host="127.0.0.1", port={port})
STORE = LlamaVectorStore(ChromaVectorStore(client.get_or_create_collection("ads", metadata={{"hnsw:space": "cosine"}})))
"""


class Lab:
    """A user's folder with the demo's ads and an index of them."""

    def __init__(self, place: Place, python: Path, encoder: Path) -> None:
        self.place, self.python, self.encoder = place, python, encoder
        self.build = ("index", "build", "ads.index", "--data", "ads", "--embedder", f"st:{encoder}")
        self.by = {"dense": ("--how", "dense", "--embedder", f"st:{encoder}"), "bm25": ("--how", "bm25")}

    def run(self, *words: str) -> Ran:
        return self.place.run_by(self.python, words, {"OMP_NUM_THREADS": "1"})

    def refused(self, *words: str, names: tuple[str, ...]) -> None:
        """Runs a command that is refused with a message that holds all of `names`, and without a traceback."""
        ran = self.run(*words)
        said = " ".join(ran.err.split())
        assert ran.code in REFUSED, ran.out + ran.err
        assert [name for name in names if name not in said] == [], said
        assert "Traceback" not in said

    def works(self, *words: str) -> Ran:
        ran = self.run(*words)
        assert ran.code == 0, ran.err
        return ran


@pytest.fixture(scope="module")
def whole(retrieval_python: Path, static: Path, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A folder with an index that is sound."""
    place = Place(folder=tmp_path_factory.mktemp("faults"))
    ads_folder(place.folder / "ads")
    lab = Lab(place, retrieval_python, static)
    lab.works(*lab.build)
    return lab


@pytest.fixture
def lab(whole: Lab, tmp_path: Path) -> Lab:
    """A copy of it, to spoil."""
    shutil.copytree(whole.place.folder, tmp_path / "lab")
    return Lab(Place(folder=tmp_path / "lab"), whole.python, whole.encoder)


SEARCH = ("index", "search", "ads.index", QUERY)


# --- an index of others ---


TIRED = "I should sleep because I am tired"


def test_an_index_of_other_texts(lab: Lab) -> None:
    other = lab.place.folder / "other" / STATEMENTS
    other.parent.mkdir(parents=True)
    other.write_text(json.dumps({"1/11.jpg": [[TIRED], [TIRED, "I should wake up"]]}), "utf-8")
    shutil.copytree(lab.place.folder / "ads" / "train_images", lab.place.folder / "other" / "train_images")
    shutil.copyfile(
        lab.place.folder / "ads" / "train_images" / "1" / "1.jpg",
        lab.place.folder / "other" / "train_images" / "1" / "11.jpg",
    )
    asked = ("eval", "run", "pittads/open-arr", "--data", "other", "--context", "I", "-T", "how=image")

    lab.refused(*lab.build[:3], "--data", "other", names=("ads.index", "other entries", "another folder"))
    lab.refused(*asked, "-T", "index=ads.index", names=("ads.index", "no true statement", "askance index build"))


def test_an_index_of_another_encoder(lab: Lab, clip: Path) -> None:
    other, picture = ("--embedder", f"clip:{clip}"), (*SEARCH[:3], "ads/train_images/1/1.jpg", "--how", "image")
    names = ("ads.index", "no vectors", "A build with another embedder adds its vectors")

    lab.refused(*SEARCH, "--how", "dense", *other, names=names)
    lab.refused(*picture, names=("ads.index", "clip:"))
    lab.works("index", "build", "ads.index", *other)
    lab.works(*picture, "--encoder", f"clip:{clip}")


# --- changed files ---


def flipped(path: Path) -> None:
    """Changes one byte in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def cut(path: Path) -> None:
    """Cuts a file off."""
    path.write_bytes(path.read_bytes()[:-5])


@pytest.mark.parametrize(
    ("file", "how", "spoil"),
    [
        ("vectors/*.rows", "dense", flipped),
        ("vectors/*.rows", "dense", cut),
        ("bm25/data*", "bm25", flipped),
        ("statements.jsonl", "bm25", flipped),
        ("statements.jsonl", "bm25", Path.unlink),
    ],
)
def test_a_changed_file(lab: Lab, file: str, how: str, spoil: Callable[[Path], None]) -> None:
    wanted = hits(lab.works(*SEARCH, *lab.by[how], "--json"))
    (path,) = (lab.place.folder / "ads.index").glob(file)
    shutil.rmtree(lab.place.folder / ".askance")
    spoil(path)

    lab.refused(*SEARCH, *lab.by[how], names=(path.name,))
    stats = lab.run("index", "stats", "ads.index")
    assert stats.code in {1, *REFUSED}
    assert path.name in stats.err
    path.unlink(missing_ok=True)
    lab.works(*lab.build)
    assert hits(lab.works(*SEARCH, *lab.by[how], "--json")) == wanted


def test_an_index_that_was_not_finished(lab: Lab) -> None:
    (lab.place.folder / "ads.index" / "index.json").unlink()

    lab.refused(*SEARCH, names=("ads.index", "not finished", "same build again"))
    lab.works(*lab.build)
    lab.works(*SEARCH, *lab.by["bm25"])


def hits(ran: Ran) -> list[tuple[str, float]]:
    return [(hit["id"], hit["score"]) for hit in ran.lines[0]["hits"]]


# --- a server ---


def test_a_store_at_a_server_that_is_dead(lab: Lab, chroma_switch: Switch) -> None:
    port = chroma_switch.on().url.rpartition(":")[2]
    (lab.place.folder / "mine.py").write_text(STORE.format(port=port), "utf-8")
    build = (*lab.build[:2], "served.index", *lab.build[3:], "--vector-store", "mine.py:STORE")
    search = ("index", "search", "served.index", QUERY, "--json", *lab.by["dense"])
    store = ("--vector-store", "mine.py:STORE")
    lab.works(*build)
    found = hits(lab.works(*search, *store))

    lab.refused(*search[:3], "tea", *lab.by["dense"], names=("served.index", "--vector-store"))
    chroma_switch.off()
    lab.refused(*search, *store, names=("mine.py", "connect"))
    assert hits(lab.works(*search, "--replay")) == found  # the records are enough


# --- queries ---


@pytest.mark.parametrize("query", ["", "   ", "\n"])
def test_an_empty_query(lab: Lab, query: str) -> None:
    lab.refused(*SEARCH[:3], query, names=("query", "text"))


def test_a_picture_that_is_not_there(lab: Lab) -> None:
    lab.refused(*SEARCH[:3], "ads/nowhere.jpg", names=("ads/nowhere.jpg", "Check the name"))


def test_words_that_no_text_has_find_nothing(lab: Lab) -> None:
    ran = lab.works(*SEARCH[:3], "xylophone zeppelin", "--how", "bm25")

    assert ran.out == ""
    assert "Nothing was found" in ran.err


# --- leaks ---


TOLD = {
    "true statement": "The ad says: i should drink Mason's Roast, because it gives my day a SOLID START!",
    "option": "A cup of bricks. I should look after old chimneys because swifts nest in them.",
}


@pytest.mark.parametrize("what", TOLD)
def test_a_description_that_was_told_what_to_find(lab: Lab, what: str) -> None:
    said = lab.place.folder / "said"
    said.mkdir()
    with (said / "IN_LLAVA_description_ARR.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("ID", "description"), ("1/1.jpg", TOLD[what])])
    (lab.place.folder / "one.txt").write_text("1/1.jpg\n", "utf-8")
    asked = ("eval", "run", "pittads/open-arr", "--data", "ads", "--ids", "one.txt", "--context", "IN")
    asked += ("-T", "index=ads.index", "-T", "descriptions=said", "-T", "how=bm25", "--out", "run")

    lab.refused(*asked, names=("1/1.jpg", what, "leaks=noted"))
    lab.works(*asked, "-T", "leaks=noted")
    assert "1/1.jpg" in (lab.place.folder / "run" / "run.json").read_text("utf-8")


def test_an_index_with_truths_of_the_test_part(lab: Lab) -> None:
    """They are in an index only where they are asked for, and searched only where that is said again."""
    (lab.place.folder / "ads" / "test_right.json").write_text(json.dumps({"2/22.jpg": [TIRED]}), "utf-8")
    split = (*lab.build[:2], "both.index", *lab.build[3:5], "--split", "train,test")
    asked = ("eval", "run", "pittads/open-arr", "--data", "ads", "--context", "text-only", "-T", "baseline=frequent")
    asked += ("-T", "index=both.index", "--out", "run")

    lab.works(*lab.build)  # the test part is left out: the texts are those that were there
    lab.works(*split)
    lab.refused(*asked, names=("both.index", "test", "splits=any"))
    lab.works(*asked, "-T", "splits=any")


@pytest.mark.parametrize(("quality", "why"), [(None, "the same picture"), (95, "a near-twin")])
def test_an_example_with_the_picture_of_the_question(lab: Lab, clip: Path, quality: int | None, why: str) -> None:
    source = lab.place.folder / "ads" / "train_images" / "1" / "1.jpg"
    copy = lab.place.folder / "ads" / "train_images" / "9" / "99.jpg"
    copy.parent.mkdir(exist_ok=True)
    if quality is None:
        shutil.copyfile(source, copy)
    else:
        Pillow.open(source).save(copy, quality=quality)
    with (lab.place.folder / "ads" / ANNOTATIONS).open("a", encoding="utf-8", newline="") as file:
        csv.writer(file).writerow(row("9/99.jpg", "1", "cup", "bricks"))
    records = json.loads((lab.place.folder / "ads" / STATEMENTS).read_text("utf-8"))
    write_json(lab.place.folder / "ads" / STATEMENTS, {**records, "9/99.jpg": records["1/1.jpg"]})
    asked = ("eval", "run", "pittads/mac", "--data", "ads", "--vlm", "demo", "--context", "I", "--out", "run")
    asked += ("-T", "shots=2", "-T", "shots_from=knn", "-T", f"embedder=clip:{clip}")

    lab.refused(*asked, names=("1/1.jpg", "9/99.jpg", why, "shots_leaks=leave-out"))
    assert lab.run(*asked, "-T", "shots_leaks=leave-out").code in {0, 1}  # the demo knows no answers with examples
    lines = (lab.place.folder / "run" / "samples.jsonl").read_text("utf-8").splitlines()
    left_out = {line["id"]: line["sample"]["trace"]["shots"].get("left_out", []) for line in map(json.loads, lines)}
    assert [each["id"] for each in left_out["1/1.jpg"]] == ["9/99.jpg"]
