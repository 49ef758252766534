from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from askance.agents import judge_equivalence
from askance.evals import Evaluation, Sample, evaluate
from askance.evals.judges import judged_scoring, read_card
from askance.models import Engine, get_model
from askance.replay import open_records
from tests.cli.command import Command
from tests.evals.report.runs import Parsed
from tests.judges import verdict_by_words
from tests.servers import FakeEndpoint, Seen

LABELS = """\
group,reference,candidate,votes
fish,Fishes live under water.,Fishes live in water.,true;true;true
fish,Fishes live under water.,The tree is bare.,false;false;false
snow,Deserts have no snow.,It snows.,true;true;false
snow,Deserts have no snow.,Camels need no water.,false;false;true
"""
pytestmark = pytest.mark.usefixtures("few_draws")

ODD = {"prose": "I would say that they are the same.", "constant": '{"verdict": "true"}'}
"""What an endpoint says of every pair that is about a fish's words."""


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    def answer(seen: Seen) -> str | None:
        return ODD.get(seen.json["model"]) or verdict_by_words(seen)

    with FakeEndpoint(answer, models=("words", *ODD)) as running:
        yield running


@pytest.fixture
def labels(own_place: Path) -> str:
    (own_place / "labels.csv").write_text(LABELS, encoding="utf-8")
    return "labels.csv"


def spec(endpoint: FakeEndpoint, model: str = "words") -> str:
    return f"openai:{model}@{endpoint.url}"


CARD = """\
 (short)
on labels.csv: 4 labelled pairs in 2 groups, 2 of them true

| figure | value | 95 % interval | pairs |
| --- | --- | --- | ---: |
| accuracy | 75.00 | 50.00 to 100.00 | 4 |
| base rate | 50.00 | 9.45 to 90.55 | 4 |
| sensitivity | 50.00 | 9.45 to 90.55 | 2 |
| specificity | 100.00 | 34.24 to 100.00 | 2 |
| unscored | 0.00 | 0.00 to 65.76 | 4 |
| cohen kappa | 0.500 | 0.000 to 1.000 | 4 |
"""
TABLE = """\
|  | judge: true | judge: false | judge: unclear | unscored |
| --- | ---: | ---: | ---: | ---: |
| people: true | 1 | 1 | 0 | 0 |
| people: false | 0 | 2 | 0 | 0 |

· Flip rate: pairs whose verdict changes when reference and candidate change places.
"""


def test_a_card_is_told_for_a_person_and_replayed(askance: Command, endpoint: FakeEndpoint, labels: str) -> None:
    command = ("judge", "card", "--labels", labels, "--judge", spec(endpoint), "--form", "short")
    done = askance(*command)
    asked = len(endpoint.requests)
    again = askance(*command, "--replay")

    assert (done.code, again.code, again.out) == (0, 0, done.out)
    assert done.err.startswith("16 calls made · 0 replayed ·")
    assert again.err == "0 calls made · 16 replayed\n"
    assert done.out.startswith(spec(endpoint) + CARD)
    assert done.out.endswith(TABLE)
    assert len(endpoint.requests) == asked == 1 + 4 * 4  # what it can do; three draws and a swap of each pair


def test_json_is_the_card_that_tasks_take(askance: Command, endpoint: FakeEndpoint, labels: str) -> None:
    done = askance(
        *("judge", "card", "--labels", labels, "--judge", spec(endpoint), "--draws", "1", "--no-swaps", "--json")
    )
    Path("card.json").write_text(done.out, encoding="utf-8")

    assert json.loads(json.dumps(read_card("card.json").form())) == done.lines[0]
    assert "flip rate" not in done.lines[0]["figures"]


def test_a_plan_counts_every_call_and_asks_nothing(askance: Command, endpoint: FakeEndpoint, labels: str) -> None:
    command = ("judge", "card", "--labels", labels, "--judge", spec(endpoint), "--plan", "--json")
    planned = askance(*command)
    asked = len(endpoint.requests)
    askance(*command[:-2], "--draws", "1")
    again = askance(*command)

    assert (planned.code, asked) == (0, 0)
    assert {name: planned.lines[0][name] for name in ("images", "hits", "calls")} == {
        "images": 4,
        "hits": 0,
        "calls": 16,
    }
    assert (again.lines[0]["hits"], again.lines[0]["calls"]) == (8, 8)  # a draw and a swap of each are on record


def test_several_judges_are_a_panel(askance: Command, endpoint: FakeEndpoint, labels: str) -> None:
    judges = [word for model in ("words", "constant", "words") for word in ("--judge", spec(endpoint, model))]
    done = askance("judge", "card", "--labels", labels, *judges, "--form", "short", "--draws", "1")

    assert done.code == 0
    assert "| members, pairs | 50.00 |" in done.out


def test_a_judge_that_always_says_the_same_is_told_so(askance: Command, endpoint: FakeEndpoint, labels: str) -> None:
    done = askance("judge", "card", "--labels", labels, "--judge", spec(endpoint, "constant"), "--form", "short")

    assert "| cohen kappa | 0.000 |" in done.out
    assert "· The judge says true of everything: it tells no pair from another." in done.out


def test_a_judge_that_answers_in_prose_is_unscored(askance: Command, endpoint: FakeEndpoint, labels: str) -> None:
    done = askance("judge", "card", "--labels", labels, "--judge", spec(endpoint, "prose"), "--draws", "1")

    assert done.code == 1
    assert "| accuracy | – |  | 0 |" in done.out
    assert "| unscored | 100.00 | 34.24 to 100.00 | 4 |" in done.out
    assert "· The judge gave no verdict that could be read, so nothing is known of it." in done.out


def test_a_runs_rate_is_corrected(askance: Command, endpoint: FakeEndpoint, labels: str, own_place: Path) -> None:
    askance("judge", "card", "--labels", labels, "--judge", spec(endpoint), "--form", "short")  # makes the records
    with open_records(own_place.parent / "store", read_only=False) as records:
        engine = Engine(records=records)
        judge = judge_equivalence(get_model(spec(endpoint), engine=engine), form="short")
        samples = [Sample(id=f"s{number}", target="Fishes live under water.") for number in range(4)]
        said = {"s0": "Water, and fishes, which live.", "s1": "It is bare."}
        task = Evaluation(
            name="explain",
            samples=samples,
            solver=lambda sample: said.get(sample.id, "Fishes live in water."),
            scorer=judged_scoring(judge),
        )
        evaluate(task, out="run", engine=engine)

    done = askance(*("judge", "card", "--labels", labels, "--judge", spec(endpoint), "--form", "short", "--run", "run"))

    assert done.code == 0
    assert "| as judged | 75.00 |" in done.out
    assert "| Rogan–Gladen | 100.00 |" in done.out
    assert "| prediction-powered, 0 labelled | – |  | 4 |" in done.out


MISTAKES = {
    "no column": (
        "reference,answer\na,b\n",
        (),
        2,
        "askance: The label file 'labels.csv' lacks candidate and verdict or votes; it has 'reference', 'answer'.",
    ),
    "no run": (LABELS, ("--run", "nowhere"), 2, "askance: The folder 'nowhere' holds no run."),
    "nothing on record": (LABELS, ("--replay",), 3, "askance: What '"),
}


@pytest.mark.parametrize(("text", "more", "code", "message"), MISTAKES.values(), ids=MISTAKES)
def test_what_cannot_be_done_is_one_message(
    askance: Command, endpoint: FakeEndpoint, text: str, more: tuple[str, ...], code: int, message: str
) -> None:
    Path("labels.csv").write_text(text, encoding="utf-8")

    done = askance("judge", "card", "--labels", "labels.csv", "--judge", spec(endpoint), *more)

    assert (done.code, done.out) == (code, "")
    assert done.err.startswith(message)
    assert endpoint.requests == []


def test_a_judge_that_cannot_be_reached_ends_the_command(askance: Command, labels: str) -> None:
    done = askance("judge", "card", "--labels", labels, "--judge", "openai:x@http://127.0.0.1:9/v1")

    assert (done.code, done.out) == (3, "")


def test_a_card_becomes_a_page(askance: Command, endpoint: FakeEndpoint, labels: str) -> None:
    command = ("judge", "card", "--labels", labels, "--judge", spec(endpoint), "--form", "short")
    plain = askance(*command)
    done = askance(*command, "--replay", "--html", "card.html")

    parsed = Parsed(Path("card.html").read_text(encoding="utf-8"))
    assert (done.code, done.out) == (0, plain.out)
    assert "The page is in card.html (" in done.err
    assert "people: true 1 1 people: false 0 2" in parsed.text
    assert "100 % 1 100.00 20.65 – 100.00" in parsed.text  # of the pair of which all draws say true, people do too
    assert parsed.data("index")["runs"] == []
