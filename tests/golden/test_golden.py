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
    ScriptedEmbedder,
    ScriptedScorer,
    get_embedder,
    get_model,
    get_scorer,
    run_sync,
)
from askance.replay import SqliteLedger, open_records
from askance.tools import ocr
from tests.golden import commands, keys, state
from tests.golden.commands import askance_over, lay_out
from tests.golden.comparison import (
    DIGESTS,
    FILES,
    WAY_OUT,
    check,
    check_lines,
    digests,
    lines_of,
    over,
    text_of,
)
from tests.golden.state import BATCHED, EVAL, PICTURES, READING, TEXTS, take
from tests.servers import FakeEndpoint


def test_the_golden_files_are_as_they_were_written() -> None:
    written, there = ({*text.splitlines()} for text in (DIGESTS.read_text("utf-8"), digests()))
    changed = sorted({f"tests/golden/{line.split('  ')[1]}" for line in written ^ there})

    assert changed == [], f"not as written, new or gone: {', '.join(changed)}. {WAY_OUT}"


# --- what is asked, and what is said ---


def test_a_golden_file_that_is_missing_is_told_with_the_command_that_writes_it() -> None:
    with pytest.raises(AssertionError) as caught:
        check("tasks/new.json", "{}")

    way = "Write it with `python -m tests.golden tasks/new.json`."
    assert str(caught.value) == f"There is no tests/golden/files/tasks/new.json. {way}"


def test_every_prompt_is_asked_under_the_keys_of_before() -> None:
    check("prompts.json", text_of(keys.of_prompts()))


def test_every_packaged_prompt_has_keys() -> None:
    table: dict[str, list[str]] = json.loads((FILES / "prompts.json").read_text("utf-8"))
    asked = {(file, label.split(" · ")[1]) for label, (file, *_) in table.items()}
    wanted = {(each.file, form) for each in keys.PACKAGED for form in keys.FORMS if keys.FORMS[form] == each.form}

    assert wanted - asked == set(), "tests/golden/files/prompts.json lacks these: add a case to tests/golden/keys.py"


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

    askance_over("store", "cache", "verify", "--store", "store")
    askance_over("store", "cache", "export", "now.jsonl", "--store", "store")
    check("cassette.jsonl", Path("now.jsonl").read_text("utf-8"))


def test_a_cassette_is_read() -> None:
    take("cassette.jsonl")

    askance_over("cassette.jsonl", "cache", "import", "cassette.jsonl", "--store", "imported")
    askance_over("cassette.jsonl", "cache", "export", "now.jsonl", "--store", "imported")
    check("cassette.jsonl", Path("now.jsonl").read_text("utf-8"))


def test_answers_on_record_are_replayed() -> None:
    lay_out()
    take("store")

    askance_over("store", *EVAL, "--out", "again", "--store", "store", "--replay", said="3 replayed")
    check_lines("run/samples.jsonl", lines_of(Path("again/samples.jsonl")))
    read = askance_over("store", *READING, "--store", "store", "--replay", said="21 replayed")
    check_lines("readings/samples.jsonl", read.lines)


def test_answers_that_were_recorded_without_a_limit_are_replayed() -> None:
    lay_out()
    take("unlimited.jsonl")

    askance_over("unlimited.jsonl", "cache", "import", "unlimited.jsonl", "--store", "imported")
    verbalize = ("run", "verbalize", "ads", "--vlm", "golden", "--store", "imported", "--replay")
    askance_over("unlimited.jsonl", *verbalize, said="15 replayed")


def test_records_of_every_other_kind_are_replayed() -> None:
    lay_out()
    take("store")
    with over("store"), open_records("store", read_only=True) as store:
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

    askance_over(name, *command, "--out", name, "--store", "nothing", said="0 calls made")
    for file in (f"{name}/samples.jsonl", f"{name}/calls.jsonl"):
        check(file, Path(file).read_text("utf-8"))


def test_a_finished_run_opens_in_python() -> None:
    take("run")
    with over("run"):
        run = Run.open("run")
        assert (run.task, run.name, run.left, run.totals["outcomes"]) == ("posters", "golden", 0, {"answered": 3})
        assert run.figure("accuracy").value == pytest.approx(2 / 3)
        assert [answer.sample.id for answer in run.answers] == ["a.png", "b.png", "c.png"]


def test_a_run_that_broke_off_within_a_line_is_finished() -> None:
    lay_out()
    take("torn", "store")
    kept, torn = Path("torn/samples.jsonl").read_bytes().split(b"\n")

    again = (*EVAL, "--out", "torn", "--store", "store", "--replay")
    askance_over("torn", *again, said="0 calls made · 2 replayed")

    assert torn
    check_lines("run/samples.jsonl", lines_of(Path("torn/samples.jsonl")))
    assert Path("torn/samples.jsonl").read_bytes().split(b"\n")[0] == kept
    assert Run.open("torn").figures == Run.open(FILES / "run").figures


def test_a_budget_counts_what_was_spent() -> None:
    command = (*EVAL, "--out", "budget/run", "--store", "budget/store", "--budget")
    with FakeEndpoint(state.replied) as endpoint:
        lay_out(endpoint)
        take("budget")
        used_up = "Of the budget of 2 calls, 2 calls spent.\n"
        askance_over("budget/run/budget.db", *command, "2calls", code=1, said=used_up)
        assert endpoint.requests == []
        askance_over("budget/run/budget.db", *command, "9calls", said="Of the budget of 9 calls, 4 calls spent.\n")
        assert len(endpoint.requests) == 2
    check_lines("run/samples.jsonl", lines_of(Path("budget/run/samples.jsonl")))


def test_a_batch_under_way_is_taken_up_and_nothing_is_sent_twice() -> None:
    lay_out()
    take("batch")
    with over("batch"), state.resumed_server() as server:
        run = state.batched(server)
        lines = run.in_batches()
    with over("batch/budget.db"), closing(SqliteLedger(Path("batch/budget.db"), BATCHED)) as ledger:
        spent = ledger.balance()

    check_lines("batch/lines.jsonl", lines)
    assert (len(server.batches), server.steps.count("upload"), server.steps.count("create")) == (3, 2, 2)
    assert ({*server.made.values()}, server.made.total()) == ({1}, 14)
    assert (spent.spent.calls, spent.lost.calls, spent.reserved.calls) == (14 + PROBES, 0, 0)
    assert not Path("batch/batches").exists()


PROBES = 1
"""Calls that were made before, to see what the endpoint can do."""
