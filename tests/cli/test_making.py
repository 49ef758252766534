"""Questions made from captions on the command line: planned, made, gone on with, replayed, put before people."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command, link_of
from tests.evals.whoops import files
from tests.evals.whoops.test_questions import CANDIDATES, CAPTIONS, GUESSED, QUESTIONS, READ, same
from tests.servers import FakeEndpoint, Seen, default_text

MAKE = ("data", "make-questions", "whoops", "weird", "-o", "made", "--llm")
GATES = """\
| gate | pass | dropped | why |
| --- | ---: | ---: | --- |
| in the caption | 7 | 1 | 1 the caption does not have these words |
| question | 6 | 1 | 1 the question has the answer in it |
| answered from the caption | 5 | 1 | 1 the caption answers … |
| not answered blindly | 4 | 1 | 1 a model that sees nothing answers … |
| new | 3 | 1 | 1 another pair of the image asks the same |

made/questions.json  3 questions of 2 images
made/dropped.jsonl  5 pairs with the gate that stopped them, and why
"""


def answer(seen: Seen) -> str:
    """From the tables of the tests of the making itself."""
    text = seen.json["messages"][-1]["content"]
    quoted = {label: words for label, _, words in re.findall(r"<<(\w+) (\w+)\n(.*?)\n\2>>", text, re.DOTALL)}
    said: Any = None
    match link_of(seen):
        case "answer_candidates":
            said = {"answers": CANDIDATES[quoted["caption"]]}
        case "write_question":
            said = {"question": QUESTIONS[quoted["answer"]]}
        case "answer_from_description":
            question = text.rpartition("Question: ")[2].partition("\n")[0]
            blind = quoted["description"].startswith("No description")
            known = next(each for each, asked in QUESTIONS.items() if asked == question)
            said = {"answer": GUESSED.get(question, "no idea") if blind else READ.get(question, known)}
        case "judge_equivalence":
            verdict = same(quoted["reference"], quoted["candidate"])
            said = {"common": "", "different": "", "reason": "so", "verdict": verdict}
        case _:
            return default_text(seen.json)
    return json.dumps(said)


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint(answer, models=("fake-model", "other-model")) as running:
        yield running


@pytest.fixture(autouse=True)
def weird(own_place: Path) -> None:
    table = [{"image_id": key, "crowd_captions": json.dumps(texts)} for key, texts in CAPTIONS.items()]
    files.write_table(own_place / "weird" / "whoops_dataset.csv", table)
    files.pictures(own_place / "weird" / "whoops_images")


def calls_of(endpoint: FakeEndpoint) -> list[str]:
    return [name for seen in endpoint.requests if (name := link_of(seen)) not in {"", "probe"}]


def test_every_gate_is_told_and_the_same_command_asks_nothing_again(
    askance: Command, endpoint: FakeEndpoint, vlm: str
) -> None:
    done = askance(*MAKE, vlm)
    asked = len(endpoint.requests)
    again = askance(*MAKE, vlm)

    assert (done.code, done.out) == (0, GATES)
    assert done.err.startswith("3 of 3 captions: 8 answers found.\n")
    assert (again.code, again.out, len(endpoint.requests)) == (0, GATES, asked)
    assert len(Path("made/dropped.jsonl").read_text("utf-8").splitlines()) == 5


def test_a_plan_asks_nothing_and_is_no_less_than_what_comes(askance: Command, endpoint: FakeEndpoint, vlm: str) -> None:
    planned = askance(*MAKE, vlm, "--plan", "--json")
    before = len(endpoint.requests), Path("made").exists()
    askance(*MAKE, vlm)
    again = askance(*MAKE, vlm, "--plan", "--json")

    assert (planned.code, *before) == (0, 0, False)
    links = {name: link["known"] + link["below"] for name, link in planned.lines[0]["links"].items()}
    assert links == {"finder": 3, "writer": 15, "reader": 15, "blind": 15, "judge": 30}  # five answers a caption
    assert (again.lines[0]["calls"], again.lines[0]["hits"]) == (0, len(calls_of(endpoint)))


def test_what_is_half_known_is_planned_with_what_stands_behind(
    askance: Command, endpoint: FakeEndpoint, vlm: str
) -> None:
    askance(*MAKE, vlm, "--blind", f"openai:other-model@{endpoint.url}")
    planned = askance(*MAKE, vlm, "--plan", "--json")

    links = {name: (link["hits"], link["known"], link["below"]) for name, link in planned.lines[0]["links"].items()}
    assert links["blind"] == (0, 4, 0)  # of five pairs that came so far two ask the same
    assert links["judge"][2] == 5
    assert links["finder"] == (3, 0, 0)


def test_a_budget_stops_and_a_larger_one_goes_on(askance: Command, endpoint: FakeEndpoint, vlm: str) -> None:
    stopped = askance(*MAKE, vlm, "--budget", "8calls", "--concurrency", "1")
    done = askance(*MAKE, vlm, "--budget", "200calls", "--json")

    assert stopped.code == 1
    assert "The budget had nothing left for" in stopped.err
    assert (done.code, done.lines[0]["questions"], done.lines[0]["left"]) == (0, 3, 0)
    assert len(calls_of(endpoint)) == len({seen.body for seen in endpoint.requests if link_of(seen) != "probe"})


def test_it_replays_without_an_endpoint(askance: Command, endpoint: FakeEndpoint, vlm: str) -> None:
    first = askance(*MAKE, vlm)
    asked = len(endpoint.requests)
    again = askance("data", "make-questions", "whoops", "weird", "-o", "again", "--llm", vlm, "--replay")

    assert (first.code, again.code, len(endpoint.requests)) == (0, 0, asked)
    assert Path("again/questions.json").read_text("utf-8") == Path("made/questions.json").read_text("utf-8")


def test_a_sheet_is_written_as_a_table(askance: Command, vlm: str) -> None:
    done = askance(*MAKE, vlm, "--sheet", "sheet")
    rows = [*csv.DictReader(Path("sheet/sheet.csv").read_text("utf-8-sig").splitlines())]
    key = json.loads(Path("sheet/key.json").read_text("utf-8"))

    assert done.code == 0
    assert len(rows) == len(key["items"]) == 5  # three questions, and one of each image with another's answer
    assert sum(not item["true"] for item in key["items"]) == 2


BAD = {
    "no model": (("data", "make-questions", "whoops", "weird", "-o", "made"), 2, "No model is named that writes"),
    "no data": (("data", "make-questions", "whoops", "gone", "-o", "made", "--llm", "x"), 2, "There is no data folder"),
    "no captions": (
        ("data", "make-questions", "whoops", "bare", "-o", "made", "--llm", "x"),
        2,
        "The images of 'bare' have no captions",
    ),
    "unreachable": ((*MAKE, "openai:m@http://127.0.0.1:9/v1"), 3, "askance: "),
    "a plan of a replay": ((*MAKE, "openai:m@http://127.0.0.1:9/v1", "--plan", "--replay"), 2, "nothing to plan"),
}


@pytest.mark.parametrize(("words", "code", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_made_is_said(askance: Command, words: tuple[str, ...], code: int, message: str) -> None:
    files.write_table(Path("bare/whoops_dataset.csv"), [{"image_id": "w1"}])
    done = askance(*words)

    assert (done.code, done.out) == (code, "")
    assert message in " ".join(done.err.split())
