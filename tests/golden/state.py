"""What a user of today has on the disk: records, a cassette, runs, a pack, a budget, a batch under way.

The endpoint that answers is scripted, so the words are the same whenever they are written; times, and the numbers of
batches, are those of the writing.
"""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
import time
from base64 import b64encode
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

from askance.images import Image
from askance.models import Engine, ScriptedEmbedder, ScriptedScorer, get_embedder, get_scorer, run_sync
from askance.replay import Budget, Record, open_records
from tests.batch_client import Run, answer
from tests.batch_server import BatchServer, Made, Step, When
from tests.cli.command import Done, link_of, picture_of, start, telling
from tests.golden.commands import NOBODY, askance, askance_over, lay_out
from tests.golden.comparison import FILES
from tests.golden.keys import ABOUT, OCR, READ, SAID
from tests.servers import Answer, FakeEndpoint, Reply, Seen

PLACE = "/folder-of-the-run"
"""Stands in golden files for the folder that they were written in."""

PICTURES = ("ads/a.png", "ads/b.png", "ads/c.png")
EVAL = ("eval", "run", "posters.yaml", "--vlm", "golden", "--json")
READING = ("run", "action-reason", "ads", "--options", "options.txt", "--vlm", "golden", "--json")
BATCHED = Budget(calls=100)
TEXTS = ["a cup", SAID]

STATE = ("store", "cassette.jsonl", "run", "run.pack", "torn", "readings", "budget", "batch")
"""What is kept of what `write` makes."""
LEFT_OUT = shutil.ignore_patterns(".lock", ".gitignore", "*.holder", "*.db-shm", "*.db-wal", "batches.lines.jsonl")
"""Marks of processes that have ended."""


def replied(seen: Seen) -> Answer:
    """The first option for every picture, and words of its own for every other question."""
    return json.dumps({"answers": [1]}) if link_of(seen) == "end_to_end" else telling(seen)


def vector(text: str) -> list[float]:
    return [byte / 256 for byte in sha256(text.encode()).digest()[:4]]


def worth(_: object, text: str) -> float:
    return sum(vector(text))


class TextScorer:
    """Scores texts against texts."""

    id = "golden-texts"

    async def score_texts(self, about: Any, texts: Any) -> list[float]:
        return [worth(about, text) for text in texts]


# --- written anew ---


def write() -> None:
    """Writes all of it into the working directory, which is empty."""
    with FakeEndpoint(replied) as endpoint:
        lay_out(endpoint)
        _done(askance(*EVAL, "--out", "run", "--store", "store"))
        _done(askance(*READING, "--out", "readings", "--store", "store"))
        _done(askance(*EVAL, "--out", "budget/run", "--store", "budget/store", "--budget", "2calls"), code=1)
    _add_records()
    _done(askance("cache", "export", "cassette.jsonl", "--store", "store"))
    _done(askance("pack", "run", "-o", "run.pack"))
    write_torn()
    write_batch()
    for database in Path().rglob("*.db"):
        _settle(database)


def _settle(database: Path) -> None:
    """Brings what a killed process has left beside a database into it."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _done(done: Done, *, code: int = 0) -> None:
    assert done.code == code, done


def _add_records() -> None:
    """Records of the kinds that no command above has made."""
    with open_records("store") as store:
        engine = Engine(records=store)
        embedder = get_embedder(ScriptedEmbedder(vector, identity="golden-embedder"), engine=engine)
        scorer = get_scorer(ScriptedScorer(worth, identity="golden-scorer"), engine=engine)
        run_sync(embedder.embed(TEXTS))
        run_sync(scorer.score(Image.from_path(PICTURES[0]), TEXTS))
        run_sync(get_scorer(TextScorer(), engine=engine).score_texts(ABOUT, TEXTS))
        store.put(Record.make("ocr", OCR, READ))


def write_torn() -> None:
    """A run that was killed while it wrote the line of its second picture."""
    later = [b64encode(Image.from_path(picture).data).decode() for picture in PICTURES[1:]]
    samples = Path("torn/samples.jsonl")

    def stuck(seen: Seen) -> Answer:
        return Reply(delay=math.inf) if picture_of(seen).endswith(tuple(later)) else replied(seen)

    with FakeEndpoint(stuck) as endpoint:
        lay_out(endpoint)
        _done(askance("models", "check", "golden", "--store", "torn-store"))
        process = start(*EVAL, "--out", "torn", "--store", "torn-store")
        deadline = time.monotonic() + 60
        while not (samples.exists() and samples.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.kill()
        process.communicate()
    _, second, _ = Path("run/samples.jsonl").read_bytes().splitlines()
    with samples.open("ab") as file:
        file.write(second[: len(second) // 2])
    shutil.rmtree("torn-store")


def batched(server: BatchServer, place: Path = Path("batch")) -> Run:
    """The chain over two pictures, through the batch interface."""
    settings = {"identity": "golden"}
    return Run(server.url, place, PICTURES[:2], settings=settings, budget=BATCHED)


def write_batch() -> None:
    """A run that was killed while its first batch was under way, and what the endpoint then has of it."""
    Path("batch").mkdir()
    with BatchServer(Path("batch/server"), answer=answer) as server:
        process = batched(server).alone()

        def fault(step: Step, when: When) -> None:
            if (step, when) == ("poll", "before"):
                process.kill()

        server.fault = fault
        process.join(60)
        _moved(server.url, NOBODY)
        _moved(str(Path.cwd()), PLACE)
        state = {"files": server.files, "batches": [made.form for made in server.batches.values()]}
        Path("batch/server.json").write_text(json.dumps(state, indent=2) + "\n", encoding="utf-8")
    with BatchServer(Path("batch-again"), answer=answer) as server:
        run = batched(server, Path("online"))
        lines = run.online()
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    Path("batch/lines.jsonl").write_text(text, encoding="utf-8")


# --- taken up again ---


def take(*names: str) -> None:
    """Copies golden files into the working directory, where they may be changed."""
    for name in names:
        source = FILES / name
        if source.is_dir():
            shutil.copytree(source, name, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(source, name)


def resumed_server() -> BatchServer:
    """The endpoint as it was left by `write_batch`, in the copy of its files."""
    server = BatchServer(Path("batch/server"), answer=answer)
    state = json.loads(Path("batch/server.json").read_text("utf-8"))
    server.files |= state["files"]
    server.batches |= {form["id"]: Made(form) for form in state["batches"]}
    _moved(NOBODY, server.url)
    _moved(PLACE, str(Path.cwd()))
    return server


def _moved(old: str, new: str) -> None:
    """Has the batch under way at another address, or in another folder."""
    for file in [Path("batch/batches/journal.jsonl"), *Path("batch/store/leases/batches").glob("*")]:
        file.write_text(file.read_text("utf-8").replace(old, new), encoding="utf-8")


PRINTED: dict[str, tuple[str, ...]] = {
    "the same command": (*EVAL, "--out", "run", "--store", "nothing"),
    "eval table": ("eval", "table", "run", "--format", "csv"),
    "eval score": ("eval", "score", "run", "--reread", "--json"),
    "replay": ("replay", "run.pack", "--rerun"),
    "cache stats": ("cache", "stats", "--store", "store"),
}
"""Commands that read a finished run, a pack and a store."""


def printed() -> dict[str, list[str]]:
    """By name, the lines that the commands print over copies of the golden files."""
    lay_out()
    read = ("run", "run.pack", "store")
    take(*read)
    found: dict[str, list[str]] = {}
    for name, command in PRINTED.items():
        done = askance_over(" ".join(each for each in read if each in command), *command)
        found[name] = done.out.replace(f"{Path.cwd()}/", "").splitlines()
    return found
