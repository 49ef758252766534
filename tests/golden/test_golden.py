"""What users have on record and on the disk is found, read and gone on with as ever; `files/` is only ever read.

Everything goes through commands, public names and the files themselves, so that no move of a module touches it.
"""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from askance.evals import Run
from askance.images import Image
from askance.models import (
    Config,
    Engine,
    Ledger,
    ScriptedEmbedder,
    ScriptedScorer,
    get_embedder,
    get_model,
    get_scorer,
    run_sync,
)
from askance.replay import Store
from askance.tools import ocr
from tests.cli.command import Done
from tests.golden import commands, keys, state
from tests.golden.commands import askance, lay_out
from tests.golden.comparison import DIGESTS, FILES, WAY_OUT, check, digests, text_of
from tests.golden.state import BATCHED, EVAL, PICTURES, READING, TEXTS, take
from tests.servers import FakeEndpoint

Lines = list[dict[str, Any]]


def test_the_golden_files_are_as_they_were_written() -> None:
    written, there = ({*text.splitlines()} for text in (DIGESTS.read_text("utf-8"), digests()))
    changed = sorted({line.split("  ")[1] for line in written ^ there})

    assert changed == [], WAY_OUT


# --- what is asked, and what is said ---


def test_every_prompt_is_asked_under_the_keys_of_before() -> None:
    check("prompts.json", text_of(keys.of_prompts()))


def test_every_packaged_prompt_has_keys() -> None:
    table: dict[str, list[str]] = json.loads((FILES / "prompts.json").read_text("utf-8"))
    asked = {(file, label.split(" · ")[1]) for label, (file, *_) in table.items()}

    assert {(each.file, rung) for each in keys.PACKAGED for rung, form in keys.FORMS.items() if form == each.form} == asked


def test_settings_and_parts_of_a_request_have_the_keys_of_before() -> None:
    check("settings.json", text_of(keys.of_settings()))


def test_vectors_scores_endpoints_and_read_texts_have_the_keys_of_before() -> None:
    check("records.json", text_of(keys.of_records()))


def test_every_command_has_the_help_of_before() -> None:
    check("help.txt", commands.help_text())


def test_the_demo_has_the_lines_of_before() -> None:
    check("demo.jsonl", commands.demo_lines())


def test_runs_packs_and_records_are_read_as_before() -> None:
    check("printed.json", text_of(state.printed()))


# --- records ---


def test_a_store_is_read() -> None:
    take("store")
    done = askance("cache", "export", "now.jsonl", "--store", "store")

    assert (done.code, askance("cache", "verify", "--store", "store").code) == (0, 0)
    assert Path("now.jsonl").read_bytes() == (FILES / "cassette.jsonl").read_bytes()


def test_a_cassette_is_read() -> None:
    take("cassette.jsonl")
    done = askance("cache", "import", "cassette.jsonl", "--store", "imported")
    askance("cache", "export", "now.jsonl", "--store", "imported")

    assert done.code == 0
    assert Path("now.jsonl").read_bytes() == (FILES / "cassette.jsonl").read_bytes()


@pytest.mark.parametrize("place", ["store", "imported"])
def test_answers_on_record_are_replayed(place: str) -> None:
    lay_out()
    take("store", "cassette.jsonl")
    askance("cache", "import", "cassette.jsonl", "--store", "imported")
    done = askance(*EVAL, "--out", "again", "--store", place, "--replay")
    read = askance(*READING, "--store", place, "--replay")

    assert (done.code, read.code) == (0, 0), (done, read)
    assert steady(Path("again/samples.jsonl")) == steady(FILES / "run" / "samples.jsonl")
    assert by_image(read.stable) == by_image(steady(FILES / "readings" / "samples.jsonl"))


def test_records_of_every_other_kind_are_replayed() -> None:
    lay_out()
    take("store")
    with Store.open("store", read_only=True) as store:
        engine = Engine(records=store, mode="replay")
        embedder = get_embedder(ScriptedEmbedder(refuse, identity="golden-embedder"), engine=engine)
        scorer = get_scorer(ScriptedScorer(refuse, identity="golden-scorer"), engine=engine)
        texts = get_scorer({"model": {"name": "golden-texts"}}, engine=engine)
        picture = Image.from_path(PICTURES[0])
        scores = [state.worth(None, text) for text in TEXTS]

        assert [list(vector) for vector in run_sync(embedder.embed(TEXTS))] == [*map(state.vector, TEXTS)]
        assert run_sync(scorer.score(picture, TEXTS)) == scores
        assert run_sync(texts.score_texts(keys.ABOUT, TEXTS)) == scores
        assert ocr(engine=engine).invoke(picture).lines == ("BUY",)
        model = get_model("golden", engine=engine, config=Config.find())
        assert run_sync(model.capabilities()).schema == "enforced"


def refuse(*_: object) -> Any:
    raise AssertionError("what is on record was asked for")


# --- runs ---


@pytest.mark.parametrize(("name", "command"), [("run", EVAL), ("readings", READING)], ids=["eval", "run"])
def test_a_finished_run_is_whole(name: str, command: tuple[str, ...]) -> None:
    lay_out()
    take(name)
    files = ("samples.jsonl", "calls.jsonl")
    done = askance(*command, "--out", name, "--store", "nothing")

    assert (done.code, "0 calls made" in done.err) == (0, True), done
    assert [Path(name, file).read_bytes() for file in files] == [(FILES / name / file).read_bytes() for file in files]


def test_a_finished_run_opens_in_python() -> None:
    take("run")
    run = Run.open("run")

    assert (run.task, run.name, run.left, run.totals["outcomes"]) == ("posters", "golden", 0, {"answered": 3})
    assert run.figure("accuracy").value == pytest.approx(2 / 3)
    assert [answer.sample.id for answer in run.answers] == ["a.png", "b.png", "c.png"]


def test_a_run_that_broke_off_within_a_line_is_finished() -> None:
    lay_out()
    take("torn", "store")
    kept, torn = Path("torn/samples.jsonl").read_bytes().split(b"\n")
    done = askance(*EVAL, "--out", "torn", "--store", "store", "--replay")

    assert torn
    assert (done.code, done.err.partition(" · ")[0], "2 replayed" in done.err) == (0, "0 calls made", True), done
    assert Path("torn/samples.jsonl").read_bytes().split(b"\n")[0] == kept
    assert steady(Path("torn/samples.jsonl")) == steady(FILES / "run" / "samples.jsonl")
    assert Run.open("torn").figures == Run.open(FILES / "run").figures


def test_a_budget_counts_what_was_spent() -> None:
    command = (*EVAL, "--out", "budget/run", "--store", "budget/store", "--budget")
    with FakeEndpoint(state.replied) as endpoint:
        lay_out(endpoint)
        take("budget")
        used_up, before = askance(*command, "2calls"), len(endpoint.requests)
        done = askance(*command, "9calls")

    assert (used_up.code, before, "Of the budget of 2 calls, 2 calls spent." in used_up.err) == (1, 0, True), used_up
    assert (done.code, len(endpoint.requests)) == (0, 2)
    assert "Of the budget of 9 calls, 4 calls spent.\n" in done.err
    assert steady(Path("budget/run/samples.jsonl")) == steady(FILES / "run" / "samples.jsonl")


def test_a_batch_under_way_is_taken_up_and_nothing_is_sent_twice() -> None:
    lay_out()
    take("batch")
    with state.resumed_server() as server:
        run = state.batched(server)
        lines = run.in_batches()
    with closing(Ledger(Path("batch/budget.db"), BATCHED)) as ledger:
        spent = ledger.balance()

    assert lines == json_lines((FILES / "batch" / "lines.jsonl").read_text("utf-8"))
    assert (len(server.batches), server.steps.count("upload"), server.steps.count("create")) == (3, 2, 2)
    assert ({*server.made.values()}, server.made.total()) == ({1}, 14)
    assert (spent.spent.calls, spent.lost.calls, spent.reserved.calls) == (14 + PROBES, 0, 0)
    assert not Path("batch/batches").exists()


PROBES = 1
"""Calls that were made before, to see what the endpoint can do."""


def json_lines(text: str) -> Lines:
    return [json.loads(line) for line in text.splitlines()]


def steady(file: Path) -> Lines:
    """The lines of a run without what is volatile, in the order of their samples."""
    lines = [{**line, "meta": None} for line in json_lines(file.read_text("utf-8"))]
    return sorted(lines, key=lambda line: line.get("id", ""))


def by_image(lines: Lines) -> dict[str, Any]:
    return {line["image"]: line for line in lines}
