"""The tasks over WHOOPS! on the command line: run, run again from the records, scored again, planned."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command, Done, link_of, telling
from tests.evals.whoops import files
from tests.judges import verdict_by_words
from tests.servers import Answer, FakeEndpoint, Seen


@pytest.fixture(autouse=True)
def weird(own_place: Path) -> None:
    files.pairs(files.first_release(own_place / "weird") / "pairs")


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint(weird_answer, models=("fake-model", "judge")) as running:
        yield running


EXPLAIN = ("eval", "run", "whoops/explain", "--data", "weird")


def weird_answer(seen: Seen) -> Answer:
    said = {
        "explain_from_picture": {"explanation": "A cat cup breaks the rule of everyday life"},
        "identify_from_picture": {"answer": "weird"},
    }
    found = said.get(link_of(seen))
    return json.dumps(found) if found is not None else verdict_by_words(seen) or telling(seen)


def figures(done: Done) -> dict[str, Any]:
    (form,) = done.lines
    return {figure["metric"]: figure["value"] for figure in form["figures"]}


def test_explanations_are_judged_and_judged_again_from_the_folder(
    askance: Command, endpoint: FakeEndpoint, vlm: str
) -> None:
    command = ("eval", "run", "whoops/explain", "--data", "weird", "--vlm", vlm, "-T", f"judge={vlm}", "--json")
    done = askance(*command, "--out", "run")
    asked = [link_of(seen) for seen in endpoint.requests]

    assert (done.code, asked.count("explain_from_picture"), asked.count("judge_equivalence")) == (0, 5, 25)
    assert figures(done)["judged"] == 1  # they share "breaks", "rule" and "everyday life"
    assert "which has no card" in done.lines[0]["notes"][0]
    again = askance("eval", "score", "run", "--reread", "--json")
    assert figures(again) == figures(done)
    assert len(endpoint.requests) == len(asked)


def test_a_judge_of_its_own_is_reached_first_and_its_form_is_kept_with_the_run(
    askance: Command, endpoint: FakeEndpoint, vlm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = f"openai:judge@{endpoint.url}"
    done = askance(*EXPLAIN, "--vlm", vlm, "-T", f"judge={judge}", "--out", "run", "--json")
    monkeypatch.setenv("ASKANCE_STORE", "elsewhere")
    again = askance("eval", "score", "run", "--json")
    gone = askance(*EXPLAIN, "--vlm", vlm, "-T", "judge=openai:judge@http://127.0.0.1:9/v1", "--out", "other")

    assert (done.code, again.code) == (0, 0), again.err
    assert figures(again) == figures(done)
    assert (gone.code, gone.out) == (3, "")
    assert [link_of(seen) for seen in endpoint.requests].count("explain_from_picture") == 5


def test_the_judges_calls_are_planned(askance: Command, endpoint: FakeEndpoint, vlm: str) -> None:
    command = (*EXPLAIN, "--vlm", vlm, "-T", f"judge={vlm}")
    before = askance(*command, "--plan", "--json").lines[0]
    asked = len(endpoint.requests)
    askance(*command, "--limit", "2", "--out", "run")
    after = askance(*command, "--plan", "--json").lines[0]

    assert asked == 0
    assert counts(before) == {"reply": (0, 5, 0), "judge": (0, 0, 25)}
    assert counts(after) == {"reply": (2, 3, 0), "judge": (10, 0, 15)}
    assert before["images"] == 5


JUDGED = """
models: {Fake: null}
tables:
  explained:
    title: Explained
    task: whoops/explain
    columns: {judged: judged}
    rows: [{label: once, vlm: Fake, judge: Fake}, {label: captions, vlm: Fake, judge: Fake, context: gold-caption}]
"""


def test_the_judges_of_a_grid_are_planned(askance: Command, endpoint: FakeEndpoint, vlm: str, own_place: Path) -> None:
    (own_place / "judged.yaml").write_text(JUDGED, encoding="utf-8")
    command = ("eval", "grid", "judged.yaml", "--data", "weird", "--model", f"Fake={vlm}")
    before = askance(*command, "--plan").out
    asked = len(endpoint.requests)
    askance(*command, "--limit", "2")
    after = askance(*command, "--plan").out

    assert asked == 0
    assert judge_line(before) == ("0", "50")
    assert judge_line(after) == ("20", "30")
    assert "5 samples, 60 calls: 24 on record, 36 to be made." in after


def judge_line(plan: str) -> tuple[str, ...]:
    """What a plan says of the judge: on record, to make."""
    return tuple(next(line for line in plan.splitlines() if line.startswith("judge ")).split()[2:4])


def counts(plan: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
    return {name: (link["hits"], link["known"], link["below"]) for name, link in plan["links"].items()}


def test_pairs_are_run_from_the_folder_of_the_data(askance: Command, vlm: str) -> None:
    done = askance("eval", "run", "whoops/identify", "--data", "weird", "--vlm", vlm, "--json")

    assert done.code == 0
    assert (figures(done)["accuracy"], figures(done)["both of a pair"]) == (0.5, 0)


def test_a_run_is_planned(askance: Command, endpoint: FakeEndpoint, vlm: str) -> None:
    done = askance("eval", "run", "whoops/vqa", "--data", "weird", "--vlm", vlm, "--context", "caption", "--plan")

    assert done.code == 0
    assert endpoint.requests == []
    assert "description" in done.out


BAD: dict[str, tuple[list[str], str]] = {
    "no judge": (["whoops/explain", "--data", "weird"], "needs 'judge'"),
    "no file": (["whoops/explain-choice", "--data", "weird", "-T", "negatives=hard"], "not part of the data set"),
    "no data": (["whoops/matching", "--data", "gone"], "There is no data folder 'gone'"),
    "no such task": (["whoops/explains"], "Near it: whoops/explain, whoops/explain-choice"),
}


@pytest.mark.parametrize(("words", "message"), BAD.values(), ids=BAD)
def test_what_is_missing_is_said(words: list[str], message: str, askance: Command, vlm: str) -> None:
    done = askance("eval", "run", *words, "--vlm", vlm)

    assert (done.code, done.out) == (2, "")
    assert message in " ".join(done.err.split())
