"""Retrieval by the command, with real weights: indexes of ads are built, searched, asked about, and replayed.

`ASKANCE_TEST_PITTADS` names a folder with real records of the ads and the negatives that the paper prints. They come
without pictures, and are given those of the demo.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from askance.chat import OUTCOMES
from askance.evals import Run
from askance.retrieval import entry_id
from tests.slow.ads_folder import HARD, PUBLISHED, RECORDS, STATEMENTS, ads_folder
from tests.slow.commands import Place, Ran
from tests.slow.conftest import Switch
from tests.slow.environments import checked

REAL = Path(os.environ.get("ASKANCE_TEST_PITTADS", ""))
"""A folder with real records of the ads."""

pytestmark = [
    pytest.mark.slow(group="retrieval"),
    pytest.mark.skipif(
        not ((REAL / RECORDS).is_file() and (REAL / PUBLISHED).is_file()),
        reason="ASKANCE_TEST_PITTADS names no folder with real records of the ads",
    ),
]

SETTINGS = """\
[models.blind]
spec = "openai:blind-vlm@{url}"
temperature = 0
max_tokens = 60
extra = {{ repetition_penalty = 1.3 }}  # or it says one thing for ever

[models.reader]
spec = "openai:blind-vlm@{url}"
temperature = 0
max_tokens = 200
extra = {{ repetition_penalty = 1.3 }}
"""
"""SmolLM2, which describes what it does not see, guesses, and reads statements again."""

INDEX = "ads.index"
OPEN = ("eval", "run", "pittads/open-arr", "--data", "ads", "-T", f"index={INDEX}")
FEW = ("--llm", "reader", "--limit", "6")
ASKS = ("--vlm", "blind", *FEW)
ASKED: dict[str, tuple[str, ...]] = {
    "by the picture": (*OPEN, "--context", "I", "-T", "how=image"),
    "by words": (*OPEN, *ASKS, "--context", "IN", "-T", "how=bm25"),
    "by all, read again": (*OPEN, *ASKS, "--context", "I+IN", "-T", "how=hybrid", "-T", "rerank=30"),
    "by parts": (*OPEN, *FEW, "--vlm", "reader", "--context", "V+T", "-T", "how=dense", "-T", "query=parts"),
    "by guesses": (*OPEN, *ASKS, "--context", "IN", "-T", "how=dense+bm25", "-T", "query=guess"),
    "among options": (*OPEN, *ASKS, "--context", "IN", "-T", "within=options"),
}
"""What is run against the server, each once, in this order: later ones find on record what earlier ones asked."""

SEARCHED: tuple[tuple[str, ...], ...] = (
    ("a hot drink for the morning", "--how", "dense"),
    ("a hot drink for the morning", "--how", "bm25"),
    ("ads/train_images/1/1.jpg", "--how", "image"),
    ("ads/train_images/1/1.jpg", "--vlm", "blind", "--context", "IN"),
)
"""What is searched for."""

SENTENCES, PICTURES = "st:models/minilm", "clip:models/clip"
"""The encoders, which are named where there are weights."""

ABSENT = ("torch", "transformers", "sentence_transformers", "llama_index", "bm25s", "Stemmer", "lancedb", "chromadb")
WITHOUT = f"""\
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {ABSENT!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""
"""A `sitecustomize.py` under which these packages cannot be loaded."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A run against the server, what was planned, and what the server had to do with it."""

    ran: Ran
    run: Run
    planned: int
    """Calls that were planned before."""
    left: int
    """What would be asked or computed if it ran again."""
    served: int
    """Requests that the server counted meanwhile."""
    recorded: int
    """Calls that came on record meanwhile."""


class Lab:
    """A user's folder with ads and an index of them, beside a server; each run is made once."""

    def __init__(self, switch: Switch, place: Place, python: Path, built: Mapping[str, Ran]) -> None:
        self.switch, self.place, self.python = switch, place, python
        self.built = built
        """What the builds of the index said, by the embedder."""
        self.asked = cache(self._asked)
        self.searched = cache(self._searched)

    def run(self, *words: str, **variables: str) -> Ran:
        """`askance WORDS`, where there are torch and all packages for retrieval."""
        return self.place.run_by(self.python, words, {"OMP_NUM_THREADS": "1", **variables})

    def _searched(self, *words: str) -> Ran:
        return self.run("index", "search", INDEX, *words, "--embedder", SENTENCES, "--encoder", PICTURES, "--json")

    def _asked(self, name: str) -> Asked:
        words = (*ASKED[name], "-T", f"embedder={SENTENCES}", "-T", f"encoder={PICTURES}", "--json")
        server = self.switch.on()
        plan = self.run(*words, "--plan")
        assert plan.code == 0, plan.err
        planned = sum(to_do(link) for name, link in plan.lines[0]["links"].items() if name not in COMPUTED)
        served, known, started = server.requests_served, self.place.keys(), time.monotonic()
        ran = self.run(*words, "--out", folder_of(name))
        assert ran.code in {0, 1}, ran.err
        run = Run.open(self.place.folder / folder_of(name))
        served, recorded = server.requests_served - served, len(self.place.keys() - known)
        sys.stdout.write(
            f"\n{name}: {run.totals['outcomes']}, {planned} calls planned, {served} served, "
            f"{time.monotonic() - started:.0f} s\n"
        )
        left = sum(map(to_do, self.run(*words, "--plan").lines[0]["links"].values()))
        return Asked(ran=ran, run=run, planned=planned, left=left, served=served, recorded=recorded)


COMPUTED = {"searches", "vectors"}
"""Links of a plan that ask no model."""


def to_do(link: Mapping[str, int]) -> int:
    """What a plan says is still to be asked or computed for a link."""
    return link["known"] + link["below"]


def folder_of(name: str) -> str:
    return f"runs/{name.replace(', ', '-').replace(' ', '-')}"


@pytest.fixture(scope="module")
def lab(
    vllm_switch: Switch, retrieval_python: Path, minilm: Path, clip: Path, tmp_path_factory: pytest.TempPathFactory
) -> Lab:
    """A folder in which an index was built, with vectors by two encoders."""
    place = Place(folder=tmp_path_factory.mktemp("retrieval"))
    ads_folder(place.folder / "ads", REAL)
    (place.folder / "models").mkdir()
    (place.folder / "models" / "minilm").symlink_to(minilm)
    (place.folder / "models" / "clip").symlink_to(clip)
    (place.folder / "askance.toml").write_text(SETTINGS.format(url=vllm_switch.on().url), "utf-8")
    built: dict[str, Ran] = {}
    lab = Lab(vllm_switch, place, retrieval_python, built)
    data = ("--data", "ads", *("--negatives", f"ads/{STATEMENTS}"), *("--negatives", f"ads/train/{HARD}"))
    for embedder in (SENTENCES, PICTURES):
        built[embedder] = lab.run("index", "build", INDEX, *data, "--embedder", embedder, "--json")
        assert built[embedder].code == 0, built[embedder].err
    for model in ("blind", "reader"):  # so that no run has to find out what the endpoint can do
        assert lab.run("models", "check", model).code == 0
    return lab


# --- the index ---


def true_statements(lab: Lab) -> dict[str, list[str]]:
    """By image its true statements, read from the file."""
    records = json.loads((lab.place.folder / "ads" / STATEMENTS).read_text("utf-8"))
    return {key: true for key, (true, _) in records.items()}


def texts_in(lab: Lab) -> set[str]:
    """All statements and options of the folder's files."""
    files = [lab.place.folder / "ads" / STATEMENTS, lab.place.folder / "ads" / "train" / HARD]
    records = [record for file in files for record in json.loads(file.read_text("utf-8")).values()]
    return {text for record in records for texts in record for text in texts}


def test_an_index_of_real_statements_has_each_text_once(lab: Lab) -> None:
    stats = lab.run("index", "stats", INDEX, "--json").lines[0]
    true = true_statements(lab)

    assert stats["entries"] == len(texts_in(lab))
    assert stats["without_image"] == len(texts_in(lab) - {text for texts in true.values() for text in texts})
    assert stats["junk"] >= 1  # one of the real statements is `n/a`
    assert stats["problems"] == []
    assert len(stats["spaces"]) == 2


THEIRS = """\
import json, sys
from sentence_transformers import SentenceTransformer
texts, queries = json.loads(sys.argv[2]), json.loads(sys.argv[3])
model = SentenceTransformer(sys.argv[1])
vectors, asked = (model.encode(some, normalize_embeddings=True) for some in (texts, queries))
print(json.dumps((asked @ vectors.T).tolist()))
"""


def test_a_dense_search_finds_what_sentence_transformers_says(lab: Lab) -> None:
    queries = ["a hot drink for the morning", "strong liquor"]
    texts = sorted(texts_in(lab))
    command = [str(lab.python), "-c", THEIRS, "models/minilm", json.dumps(texts), json.dumps(queries)]
    wanted = json.loads(checked(command, folder=lab.place.folder).splitlines()[-1])

    for query, cosines in zip(queries, wanted, strict=True):
        hits = lab.searched(query, "--how", "dense", "-k", "20").lines[0]["hits"]
        known = dict(zip(texts, cosines, strict=True))
        assert [hit["score"] for hit in hits] == pytest.approx([known[hit["text"]] for hit in hits], abs=2e-3)
        assert [hit["score"] for hit in hits] == pytest.approx(sorted(cosines, reverse=True)[:20], abs=2e-3)


def test_words_and_vectors_find_the_statements_of_the_ad(lab: Lab) -> None:
    hits = lab.searched("a ketchup that tastes of chili", "--how", "dense+bm25").lines[0]["hits"]

    assert {image for hit in hits[:3] for image in hit["images"]} == {"1/67121.jpg"}


# --- the task ---


@pytest.mark.parametrize("name", ASKED)
def test_every_sample_ends_in_a_named_outcome_and_all_of_it_is_on_record(lab: Lab, name: str) -> None:
    asked = lab.asked(name)
    outcomes = Counter(answer.prediction.outcome for answer in asked.run.answers)

    assert {*outcomes} <= {*OUTCOMES}
    assert outcomes["answered"] > 0 or name == "by parts"  # lists of objects are cut off, as small models write them
    assert asked.ran.code == int({*outcomes} != {"answered"})
    assert asked.served == asked.recorded <= 2 * asked.planned  # a reply that cannot be read is asked for again
    assert asked.left == 0


@pytest.mark.parametrize("name", [name for name in ASKED if name != "among options"])
def test_figures_are_of_the_whole_ranking_and_say_whose_they_are(lab: Lab, name: str) -> None:
    run = lab.asked(name).run
    true = true_statements(lab)
    found: dict[str, list[float]] = {}
    for answer in run.answers:
        ranking = answer.prediction.ranking
        if answer.prediction.outcome == "answered" and ranking is not None:
            wanted = {entry_id(text) for text in true[answer.sample.id] if text != "n/a"}
            first = ranking.ids[:10]
            found.setdefault("recall@10", []).append(len(wanted & {*first}) / len(wanted))
            found.setdefault("hit@1", []).append(float(ranking.ids[0] in wanted))

    everything = len(run.answers)  # what was not answered found nothing
    for metric, values in found.items():
        assert run.figure(metric).value == pytest.approx(sum(values) / everything)
    assert any("no published figure" in note for note in run.notes)


def test_the_picture_among_its_options_is_the_task_of_the_paper_rank_by_rank(lab: Lab) -> None:
    words = ("--data", "ads", "--json")
    clip = lab.run("eval", "run", "pittads/arr-clip", *words, "-T", f"scorer={PICTURES}", "--out", "runs/arr-clip")
    within = ("-T", f"index={INDEX}", "-T", "within=options", "-T", "how=image", "-T", f"encoder={PICTURES}")
    open_ = lab.run("eval", "run", "pittads/open-arr", *words, *within, "--context", "I", "--out", "runs/within")
    assert (clip.code, open_.code) == (0, 0), clip.err + open_.err
    paper, ours = (Run.open(lab.place.folder / "runs" / name) for name in ("arr-clip", "within"))

    assert len(paper.answers) == len(ours.answers) == len(true_statements(lab)) - 1  # one picture is not atypical
    for one, other in zip(by_id(paper), by_id(ours), strict=True):
        assert (one.sample.id, one.sample.inputs["options"]) == (other.sample.id, other.sample.inputs["options"])
        assert one.prediction.value == other.prediction.value
        scores = other.prediction.trace["scores"]
        assert scores == pytest.approx(one.prediction.trace["scores"], abs=1e-9)
        assert ranks(scores) == ranks(one.prediction.trace["scores"])
    assert {(each.metric, each.value) for each in paper.figures} == {(each.metric, each.value) for each in ours.figures}


def by_id(run: Run) -> list[Any]:
    return sorted(run.answers, key=lambda answer: answer.sample.id)


def ranks(scores: list[float]) -> list[int]:
    """Places of the options, the best first."""
    return sorted(range(len(scores)), key=lambda place: -scores[place])


# --- replay ---


def test_all_of_it_is_replayed_with_nothing_there(lab: Lab) -> None:
    """No server, no packages, no weights, and of the index its description alone."""
    searched = {words: lab.searched(*words) for words in SEARCHED}
    asked = {name: lab.asked(name) for name in ASKED}
    lab.switch.off()
    absent = sitecustomize(lab.place.folder / "absent")
    away = lab.place.folder / "away"
    away.mkdir()
    for name in (INDEX, "models"):
        (lab.place.folder / name).rename(away / name)
    (lab.place.folder / INDEX).mkdir()
    shutil.copyfile(away / INDEX / "index.json", lab.place.folder / INDEX / "index.json")

    for words, ran in searched.items():
        assert ran.code == 0, ran.err
        again = lab.place.run("index", "search", INDEX, *words, "--json", "--replay", PYTHONPATH=str(absent))
        assert again.code == 0, again.err
        assert hits_of(again) == hits_of(ran)
    for name, each in asked.items():
        out = f"{folder_of(name)}-again"
        again = lab.place.run(*ASKED[name], "--json", "--replay", "--out", out, PYTHONPATH=str(absent))
        assert again.code == each.ran.code, again.err
        assert lasting(lab.place.folder / out) == lasting(lab.place.folder / folder_of(name))
        assert Run.open(lab.place.folder / out).figures == each.run.figures


def sitecustomize(folder: Path) -> Path:
    """A folder for `PYTHONPATH` under which what the index and the models need cannot be loaded."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(WITHOUT, "utf-8")
    said = subprocess.run(
        [sys.executable, "-c", "import bm25s"], env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True,
        text=True, check=False,
    ).stderr  # fmt: skip
    assert "No module named 'bm25s'" in said
    return folder


def hits_of(ran: Ran) -> list[tuple[str, float, str]]:
    return [(hit["id"], hit["score"], hit["text"]) for hit in ran.lines[0]["hits"]]


def lasting(folder: Path) -> dict[str, list[str] | bytes]:
    """The samples of a run by id, without what is volatile, and its files of rankings."""
    lines = map(json.loads, (folder / "samples.jsonl").read_text("utf-8").splitlines())
    found = [{name: value for name, value in line.items() if name != "meta"} for line in lines]
    samples = [json.dumps(line, sort_keys=True) for line in sorted(found, key=lambda line: line["id"])]
    return {"samples": samples, **{path.name: path.read_bytes() for path in sorted(folder.glob("rankings/*"))}}
