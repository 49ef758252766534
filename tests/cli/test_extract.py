"""`--extract MODEL`: a model reads the replies that no rule reads, in runs of tasks and of chains, and in replays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import Command, draw, link_of, telling
from tests.evals.newyorker import cartoons
from tests.servers import Answer, FakeEndpoint, Seen

TASK = """\
name: posters
summary: Which claim a poster argues for.
data: ads/samples.jsonl
chain: end-to-end
choose: single
score: choice
options: [I should drink tea., I should buy bricks., I should fly.]
"""
PROSE = {"answers": "I keep coming back to the bricks"}


def prose(seen: Seen) -> Answer:
    match link_of(seen):
        case "end_to_end":
            return json.dumps(PROSE)
        case "extract_answer" if b"back to the second" in seen.body:
            return json.dumps({"quote": "coming back to the second", "answers": ["B"]})
        case "extract_answer" if b"no caption" in seen.body:
            return json.dumps({"quote": "", "answers": []})
        case "extract_answer":
            return json.dumps({"quote": "coming back to the bricks", "answers": ["2"]})
        case _:
            return telling(seen)


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint(prose) as running:
        yield running


@pytest.fixture(autouse=True)
def posters(own_place: Path) -> None:
    draw(own_place / "ads", "a.png", "b.png")
    rows = [{"image": f"{name}.png", "target": 2} for name in "ab"]
    Path("ads/samples.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    Path("posters.yaml").write_text(TASK, encoding="utf-8")


def test_a_task_is_run_scored_and_packed_with_its_extractor(askance: Command, endpoint: FakeEndpoint, vlm: str) -> None:
    reader = vlm.replace("openai:", "openai:reader-of-")
    plain = askance("eval", "run", "posters.yaml", "--vlm", vlm, "--out", "plain", "--json")
    done = askance("eval", "run", "posters.yaml", "--vlm", vlm, "--extract", reader, "--out", "run", "--json")

    assert plain.lines[0]["figures"][0]["value"] == 0
    assert done.lines[0]["figures"][0]["value"] == 1
    asked = len(endpoint.requests)
    models = json.loads(Path("run/run.json").read_text(encoding="utf-8"))["configuration"]["models"]
    assert models["extractor"]["id"]["model"].startswith("reader-of-")
    assert askance("eval", "score", "run", "--reread", "--json").lines[0]["changed"] == []
    assert askance("pack", "run", "--out", "run.pack").code == 0
    assert askance("replay", "run.pack", "--rerun").code == 0
    assert len(endpoint.requests) == asked


def test_a_chain_over_pictures_is_replayed_with_its_extractor(askance: Command, vlm: str) -> None:
    Path("options.txt").write_text("I should drink tea.\nI should buy bricks.\n", encoding="utf-8")
    asked = ("run", "end-to-end", "ads/a.png", "--options", "options.txt", "--vlm", vlm, "--extract", vlm, "--json")

    first, second = askance(*asked), askance(*asked, "--replay")

    assert first.lines[0]["answers"] == [2]
    assert second.stable == first.stable


def test_recorded_replies_are_extracted_packed_and_replayed_also_where_none_is_read(
    askance: Command, endpoint: FakeEndpoint, vlm: str
) -> None:
    cartoons.lines(Path("data"), tasks=("matching",))
    said = ("Answer: A", "A", "I keep coming back to the second one.", "There is no caption that I like.")
    names = [row["instance_id"] for row in cartoons.hub_rows("matching", 0, "test")][:4]
    Path("replies.json").write_text(json.dumps(dict(zip(names, said, strict=True))), encoding="utf-8")
    words = ("eval", "run", "newyorker/matching", "--data", "data", "--fold", "0", "--limit", "4")
    words = (*words, "-T", "answers=replies.json", "--extract", vlm)

    plan = askance(*words, "--plan", "--json")
    done = askance(*words, "--out", "run")

    assert plan.lines[0]["links"]["extraction"]["known"] == 2
    assert "Answers read: 1 declared, 1 whole, 1 extracted, 1 unread." in done.out
    assert "2 calls made" in done.err
    asked = len(endpoint.requests)
    assert askance("report", "run", "--out", "page.html").code == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert "1 declared, 1 whole, 1 extracted, 1 unread" in page
    assert "2 made, 0 replayed" in page
    assert askance("pack", "run", "--out", "run.pack").code == 0
    replayed = askance("replay", "run.pack", "--rerun")
    assert replayed.code == 0, replayed.out
    assert len(endpoint.requests) == asked


def test_a_plan_counts_the_replies_on_record_that_would_be_extracted(askance: Command, vlm: str) -> None:
    askance("eval", "run", "posters.yaml", "--vlm", vlm, "--out", "plain")

    plan = askance("eval", "run", "posters.yaml", "--vlm", vlm, "--extract", vlm, "--plan", "--json")

    assert plan.lines[0]["links"]["extraction"]["known"] == 1  # both replies are equal


def test_what_chooses_nothing_takes_no_extractor(askance: Command, vlm: str) -> None:
    done = askance("run", "verbalize", "ads/a.png", "--vlm", vlm, "--extract", vlm)

    assert done.code == 2
    assert "No link of the chain 'verbalize' chooses from a closed set of answers." in done.err
