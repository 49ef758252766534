"""`askance blame`: the table of links, the plan, the budget, replays, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import Command, Workplace, draw, link_of, telling
from tests.replies import WRONG_KEY
from tests.servers import Answer, FakeEndpoint, Seen

TASK = """\
name: posters
summary: Which claim a poster argues for.
data: ads/samples.jsonl
chain: action-reason
choose: single
score: choice
options: [I should drink tea., I should buy bricks.]
"""
EXPIRED = Path("expired")
"""The endpoint takes no key any more when there is such a file."""
TABLE = """\
3 answers: 1 right by accuracy, 2 wrong, 0 without an answer.
Each link dropped, and what follows from it asked again:

link  tried   flips   95 % interval  to blame   95 % interval   change
V         2    0.00    0.00 – 65.76      0.00    0.00 – 65.76    +0.00
T         2    0.00    0.00 – 65.76      0.00    0.00 – 65.76    +0.00
IN        2    0.00    0.00 – 65.76      0.00    0.00 – 65.76    +0.00
UH        2  100.00  34.24 – 100.00    100.00  34.24 – 100.00  +100.00
T_V       2    0.00    0.00 – 65.76      0.00    0.00 – 65.76    +0.00
ŝ         2    0.00    0.00 – 65.76      0.00    0.00 – 65.76    +0.00
none      2    0.00    0.00 – 65.76      0.00    0.00 – 65.76    +0.00

a: UH
c: UH
"""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint(lying) as running:
        yield running


def lying(seen: Seen) -> Answer:
    """What is unusual is always a lie, which T_V passes on, and who reads it chooses the second option."""
    if EXPIRED.exists():
        return WRONG_KEY
    believed = "A LIE" in json.dumps(seen.json["messages"])
    match link_of(seen):
        case "unusual":
            return json.dumps({"unusual": "A LIE."})
        case "combine":
            return json.dumps({"description": "A LIE." if believed else "The truth."})
        case "choose_action_reasons":
            return json.dumps({"answers": [2 if believed else 1]})
        case _:
            return telling(seen)


@pytest.fixture(scope="module")
def made(workplace: Workplace, endpoint: FakeEndpoint) -> Workplace:
    """A run over three pictures, of which one is answered right."""
    rows = [{"id": name, "image": f"{name}.png", "target": target} for name, target in (("a", 1), ("b", 2), ("c", 1))]
    with workplace.entered() as work:
        draw(work / "ads", "a.png", "b.png", "c.png")
        (work / "ads/samples.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        (work / "posters.yaml").write_text(TASK, encoding="utf-8")
    workplace.run("eval", "run", "posters.yaml", "--vlm", f"openai:fake-model@{endpoint.url}", "--out", "run")
    return workplace


@pytest.fixture(autouse=True)
def posters(made: Workplace, own_place: Path) -> None:
    made.copy_to(own_place)


def test_the_link_to_blame_is_named_for_each_and_in_sum(askance: Command) -> None:
    done = askance("blame", "run")

    assert (done.code, done.out) == (0, TABLE)
    assert done.err.splitlines()[-1] == "The trials are in run."


def test_the_second_time_nothing_is_asked_and_a_replay_says_the_same(askance: Command, endpoint: FakeEndpoint) -> None:
    askance("blame", "run")
    before = len(endpoint.requests)

    again, replayed = askance("blame", "run"), askance("blame", "run", "--replay", "--out", "elsewhere")

    assert (again.out, replayed.out, len(endpoint.requests)) == (TABLE, TABLE, before)


def test_what_a_model_computed_is_said_and_kept(askance: Command, endpoint: FakeEndpoint) -> None:
    command = ("blame", "run", "--vlm", f"vllm:fake-model@{endpoint.url}")
    before = len(endpoint.requests)
    done = askance(*command)
    again = askance(*command, "--json")
    (counted,) = json.loads(Path("run/blame.json").read_text(encoding="utf-8"))["counters"].values()

    assert counted["models"] == again.lines[0]["counters"]
    assert [each["answers"] for each in counted["models"].values()] == [len(endpoint.requests) - before]
    assert f"{next(iter(counted['models']))}: {len(endpoint.requests) - before} answers" in done.err


def test_a_plan_asks_nothing_and_writes_nothing(askance: Command, endpoint: FakeEndpoint) -> None:
    before, files = len(endpoint.requests), sorted(Path("run").iterdir())

    done = askance("blame", "run", "--plan")

    assert done.out.startswith("12 trials, ")
    assert (done.code, len(endpoint.requests), sorted(Path("run").iterdir())) == (0, before, files)


SETTINGS = """\
[models.poster-reader]
spec = "openai:fake-model@{url}"
price = {{ input = 100, output = 100 }}
"""


def test_the_price_of_the_settings_is_known_to_the_plan_of_a_blame(askance: Command, endpoint: FakeEndpoint) -> None:
    unpriced = askance("blame", "run", "--plan")
    Path("askance.toml").write_text(SETTINGS.format(url=endpoint.url), encoding="utf-8")

    priced = askance("blame", "run", "--plan")

    assert ("cost        not known" in unpriced.out, "online      " in unpriced.out) == (True, False)
    assert ("cost        not known" in priced.out, "online      $" in priced.out) == (False, True)


def test_a_budget_ends_it_and_the_same_command_goes_on(askance: Command) -> None:
    short = askance("blame", "run", "--budget", "2calls", "--concurrency", "1")
    whole = askance("blame", "run", "--budget", "100calls")

    assert short.code == 1
    assert "The next call might have passed the budget: " in short.err
    assert (whole.code, whole.out) == (0, TABLE)


def test_records_that_a_blame_rests_on_are_not_pruned(askance: Command) -> None:
    askance("blame", "run")
    pruned = askance("cache", "prune", "--unused-by", "run")

    assert pruned.out == "0 records, 0.0 MB, are taken out.\n"
    assert askance("blame", "run", "--replay", "--out", "elsewhere").out == TABLE


def test_a_key_that_is_wrong_by_now_ends_it_at_once(askance: Command) -> None:
    EXPIRED.touch()

    done = askance("blame", "run", "--concurrency", "1")

    assert (done.code, done.out) == (3, "")
    assert "Stopped at the first sample, since the others would fail alike." in done.err


def test_only_the_links_that_are_named_are_tried(askance: Command) -> None:
    (form,) = askance("blame", "run", "--link", "UH", "--link", "s", "--json").lines

    assert [(each["link"], each["flips"]["value"]) for each in form["links"]] == [
        ("unusual", 1.0),
        ("statement", 0.0),
        ("none", 0.0),
    ]
    assert form["answers"][0] == {
        "id": "a",
        "epoch": 0,
        "worth": 0.0,
        "tried": {"unusual": 1.0, "statement": 0.0},
        "flips": ["unusual"],
        "guilty": ["unusual"],
    }


def test_what_is_true_may_stand_in_a_file(askance: Command) -> None:
    Path("true.jsonl").write_text('{"id": "a", "unusual": "Nothing."}\n{"id": "c", "narration": "Tea."}\n', "utf-8")

    (form,) = askance("blame", "run", "--truth-from", "true.jsonl", "--json").lines

    assert [(answer["id"], answer["tried"], answer["guilty"]) for answer in form["answers"]] == [
        ("a", {"unusual": 1.0}, ["unusual"]),
        ("c", {"narration": 0.0}, []),
    ]


def test_where_nothing_is_wrong_there_is_nothing_to_blame(askance: Command, vlm: str) -> None:
    askance("eval", "run", "posters.yaml", "--vlm", vlm, "--out", "right", "--ids", ids("b"))

    done = askance("blame", "right")

    assert (done.code, done.out) == (
        0,
        "1 answer: 1 right by accuracy, 0 wrong, 0 without an answer.\nThere is nothing to blame.\n",
    )


def ids(*names: str) -> str:
    Path("ids.txt").write_text("\n".join(names), encoding="utf-8")
    return "ids.txt"


REFUSED = {
    "two sources": (
        ("--truth", "--with", "run"),
        "--with and --truth both say what is put in a link's place.\n  → Leave one out.",
    ),
    "a plan of a replay": (("--plan", "--replay"), "`--replay` asks nothing, so there is nothing to plan."),
    "no such link": (("--link", "W"), "The chain 'action_reason' has no link 'W' before its answer."),
    "no such metric": (("--metric", "bleu"), "No metric 'bleu' tells right from wrong.\n  → Use accuracy."),
    "no such role": (("--llm", "openai:other"), "The run 'run' has no 'llm'.\n  → It has vlm."),
    "no such run": (("--with", "nowhere"), "The folder 'nowhere' holds no run."),
    "no such file": (("--truth-from", "nowhere"), "There is no file 'nowhere'."),
    "no lines": (("--truth-from", "posters.yaml"), "'posters.yaml', line 1 is no JSON "),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused(askance: Command, options: tuple[str, ...], message: str) -> None:
    done = askance("blame", "run", *options)

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"askance: {message}")
