"""`askance run investigate` on the demo's pictures, by its hand-written answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from askance.cli.transcript import confidence_row, step_rows
from tests.cli.command import Command
from tests.servers import FakeEndpoint, Seen

COMMAND = ("run", "investigate", "ads/brick-cup.jpg", "ads/cat-cup.jpg", "--vlm", "demo", "--tools", "unusual,zoom")


@pytest.fixture(autouse=True)
def ads(askance: Command, own_place: Path) -> None:  # the place is empty
    """The demo's pictures and their options."""
    askance("demo", "--copy", "ads")


def test_each_step_is_a_line_on_the_card_then_the_answer_and_what_it_rests_on(askance: Command) -> None:
    done = askance(*COMMAND, "--calls", "6")

    card = done.out.split("\n\n")[0].splitlines()
    assert (done.code, card) == (
        0,
        [
            "ads/brick-cup.jpg",
            "  step 1      unusual → The cup and the saucer look as if they had been built by a… (4 calls left)",
            "  step 2      zoom left “What is the saucer made of?” → Of red bricks with pale mo… (2 calls left)",
            "  reply       A coffee cup and its saucer are built of bricks, although cups are thin and smooth and",
            "              bricks are neither.",
            "  confidence  90 %, by steps 1, 2",
        ],
    )
    assert "the answers of the demo are hand-written" in done.err


def test_the_transcript_is_kept_and_a_replay_gives_equal_lines(askance: Command) -> None:
    done, again = (askance(*COMMAND, "--json", *more) for more in (["-o", "runs/looked"], ["--replay"]))
    kept = Path("runs/looked/samples.jsonl").read_text(encoding="utf-8").splitlines()

    trace = done.lines[0]["links"]["reply"]["trace"]
    assert [(step["tool"], step["left"]) for step in trace["steps"]] == [
        ("unusual", "6 calls"),
        ("zoom", "4 calls"),
        ("answer", "3 calls"),
    ]
    assert trace["steps"][1]["views"][0]["boxes"] == [[0, 300, 400, 700]]
    assert (trace["budget"], trace["confidence"], trace["evidence"]) == ("8 calls", 90, [1, 2])
    assert [line["links"] for line in again.lines] == [line["links"] for line in done.lines]
    assert json.loads(kept[0])["links"]["reply"]["trace"] == trace


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--goal choose", "`askance run investigate` chooses among options, and none are given."),
        ("--options ads/options.json", "→ Leave it out, or say --goal choose or --goal statement."),
        ("--goal answer", "The goal `answer` answers a question, and none is given."),
        ("--question What?", "The goal 'explain' has a question of its own."),
        ("--count 2", "The goal 'explain' chooses one answer."),
        ("--tools zom", "There is no tool 'zom'."),
        ("--tools similar", "The tool `similar` searches an index, and none is given."),
        ("--index nowhere", "'nowhere' holds no index."),
        ("--calls 1", "An investigation takes at least 2 calls, and may make 1."),
        ("--budget-each much", "'much' is not a budget."),
        ("--batch", "no batch can hold its calls."),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_asked(askance: Command, more: str, message: str) -> None:
    done = askance("run", "investigate", "ads/brick-cup.jpg", "--vlm", "demo", *more.split())

    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_steps_without_an_answer_say_why() -> None:
    steps = [
        {"step": 1, "tool": "", "outcome": "invalid", "reason": "the reply is no JSON object", "left": "5 calls"},
        {
            "step": 2,
            "tool": "zoom",
            "arguments": {"box": [500, 0, 400, 100], "question": "What is written on the sign above the door?"},
            "outcome": "invalid",
            "reason": "The box [500, 0, 400, 100] has no area.",
            "left": "4 calls",
        },
        {
            "step": 3,
            "tool": "compare",
            "arguments": {"boxes": [[0, 0, 9, 9]], "regions": ["top"], "question": "Which?"},
            "views": [{"boxes": [[0, 0, 9, 9]]}, {"boxes": [[300, 0, 700, 400]]}],
            "outcome": "answered",
            "reply": "the\nfirst",
            "repeated": True,
            "left": "3 calls",
        },
    ]
    trace = {"steps": steps, "confidence": 40, "evidence": [3], "enough": False}

    assert [*step_rows(trace), *confidence_row(trace)] == [
        ("step 1", "no tool → invalid: the reply is no JSON object (5 calls left)"),
        ("step 2", "zoom [500, 0, 400, 100] “What is written on the sign a…” → invalid: The b… (4 calls left)"),
        ("step 3", "compare [0, 0, 9, 9] and [300, 0, 700, 400] “Which?” → known already:… (3 calls left)"),
        ("confidence", "40 %, by step 3; it saw too little"),
    ]


def by_json(seen: Seen) -> str | None:
    """Ignores tools; takes one JSON object a turn: asks, zooms and answers."""
    form = seen.json.get("response_format", {}).get("json_schema", {})
    if form.get("name") != "investigate":
        return None
    turns = [message for message in seen.json["messages"] if message["role"] == "assistant"]
    tool, arguments = (
        ("ask", {"question": "What is it?"}),
        ("zoom", {"region": "left", "question": "What is there?"}),
        ("answer", {"value": {"explanation": "Odd."}, "confidence": 70, "evidence": [2], "enough": True}),
    )[min(len(turns), 2)]
    return json.dumps({"thought": "So.", "tool": tool, "arguments": arguments})


def test_an_endpoint_that_ignores_tools_is_asked_for_json_and_replayed_when_it_is_gone(askance: Command) -> None:
    with FakeEndpoint(by_json) as endpoint:
        command = ("run", "investigate", "ads/brick-cup.jpg", "--vlm", f"openai:fake-model@{endpoint.url}", "--json")
        done = askance(*command)
        asked = [body for body in endpoint.bodies if "tools" in body]
    again = askance(*command, "--replay")

    trace = done.lines[0]["links"]["reply"]["trace"]
    assert (trace["form"], [step["tool"] for step in trace["steps"]]) == ("json", ["ask", "zoom", "answer"])
    assert len(asked) == 1, "the probe alone"
    assert [line["links"] for line in again.lines] == [line["links"] for line in done.lines]
