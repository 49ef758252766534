"""From a folder of pictures, of which nobody has said anything, to hard negatives."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from askance.chains import explain
from askance.errors import BadData
from askance.evals.negatives import PictureStatements, Recipe, agenerate, read_negatives
from askance.images import Image
from askance.models import Engine, ScriptedModel, get_model
from askance.replay import MemoryStore
from tests.cli.command import Command, link_of, picture_of
from tests.scripted import ENFORCED, model_of
from tests.servers import FakeEndpoint, Seen, default_text

ALL = "large_combined_hard_QA_Explanation.json"
_STATEMENT = re.compile(r"<<statement ([0-9a-f]+)\n(.*?)\n\1>>", re.DOTALL)


def explain_and_write(seen: Seen) -> str:
    """Explains each picture in words of its own, and writes negatives with a word of their own."""
    if picture_of(seen) and link_of(seen).startswith("explain"):
        return json.dumps({"explanation": f"The cup has {sha256(picture_of(seen).encode()).hexdigest()[:6]} handles."})
    if link_of(seen) == "negative":
        found = _STATEMENT.search(seen.json["messages"][-1]["content"])
        assert found is not None
        item = {"replaced": "has", "replacement": "lacks", "statement": found[2].replace("has", "lacks")}
        return json.dumps({"negatives": [item]})
    return default_text(seen.json)


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint(explain_and_write) as running:
        yield running


@pytest.fixture
def command(ads: list[str], vlm: str) -> list[str]:
    assert len(ads) == 3
    return ["negatives", "generate", "ads", "--vlm", vlm, "--kinds", "verb", "--out", "hard"]


def test_what_a_model_says_of_each_picture_is_taken_for_true(
    askance: Command, command: list[str], endpoint: FakeEndpoint
) -> None:
    done = askance(*command)
    sets = read_negatives(Path("hard", ALL))
    lines = [json.loads(line) for line in Path("hard/statements.jsonl").read_text("utf-8").splitlines()]

    assert done.code == 0, done.err
    assert done.err.startswith("3 of 3 calls: 3 answered; 3 different negatives.\n")
    assert re.search(r"What is true of 3 pictures was said by \S+fake-model\S*, and checked by nobody: ", done.err)
    assert [(each.key, each.true[0].replace("has", "lacks")) for each in sets] == [
        (each.key, each.negatives[0].text) for each in sets
    ]
    assert [(line["image"], line["statement"]) for line in lines] == [(each.key, each.true[0]) for each in sets]
    assert {line["image"] for line in lines} == {"a.png", "b.png", "c.png"}
    assert {call for line in lines for call in line["calls"]} <= keys(Path("hard/calls.jsonl"))
    assert "openai:fake-model" in lines[0]["by"]

    asked = len(endpoint.bodies)
    again = askance(*command)
    replayed = askance(*command[:-1], "again", "--replay")
    sheet = askance("negatives", "sample", f"hard/{ALL}", "--images", "ads", "--out", "sheet")
    assert [each.code for each in (again, replayed, sheet)] == [0, 0, 0]
    assert "0 of which cannot be read" in sheet.err
    assert Path("again", ALL).read_bytes() == Path("hard", ALL).read_bytes()
    assert len(endpoint.bodies) == asked


def keys(cassette: Path) -> set[str]:
    return {json.loads(line).get("key") for line in cassette.read_text("utf-8").splitlines()}


def test_a_plan_counts_the_pictures_and_what_depends_on_them(
    askance: Command, command: list[str], endpoint: FakeEndpoint
) -> None:
    before = json.loads(askance(*command, "--plan", "--json").out)
    requests = list(endpoint.requests)
    assert askance(*command).code == 0
    after = json.loads(askance(*command, "--plan", "--json").out)

    assert (before["images"], before["hits"], before["calls"], requests) == (3, 0, 6, [])
    assert {link: counts["below"] for link, counts in before["links"].items()} == {"reply": 0, "verb": 3}
    assert (after["hits"], after["calls"]) == (6, 0)


def test_a_picture_that_cannot_be_used_is_counted_and_stops_no_other(
    askance: Command, command: list[str], ads: list[str]
) -> None:
    Path(ads[1]).write_bytes(b"no picture")
    done = askance(*command)

    assert done.code == 1
    assert done.err.splitlines()[-1] == "No statement for 1 picture: 1 failed."
    assert [each.key for each in read_negatives(Path("hard", ALL))] == ["a.png", "c.png"]


def test_a_budget_stops_and_a_larger_one_goes_on(askance: Command, command: list[str]) -> None:
    stopped = askance(*command, "--budget", "2calls", "--concurrency", "1")
    done = askance(*command, "--budget", "50calls")

    assert stopped.code == 1
    assert "No statement for 2 pictures: 2 over budget." in stopped.err
    assert (done.code, done.err.splitlines()[0]) == (0, "3 of 3 calls: 3 answered; 3 different negatives.")


def test_pictures_of_a_list_alone(askance: Command, command: list[str]) -> None:
    Path("ids.txt").write_text("c.png\n", encoding="utf-8")
    done = askance(*command, "--ids", "ids.txt")
    Path("ids.txt").write_text("d.png\n", encoding="utf-8")
    missing = askance(*command, "--ids", "ids.txt")

    assert done.code == 0, done.err
    assert [each.key for each in read_negatives(Path("hard", ALL))] == ["c.png"]
    assert (missing.code, missing.err.splitlines()[0]) == (
        2,
        "askance: 1 of the listed images are not in 'ads', such as 'd.png'.",
    )


WRONG = {
    "ads": (("--domain", "ads"), "The folder 'ads' holds pictures, and nothing says what they argue for."),
    "no model": ((), "No model is named that says what is unusual about the pictures of 'ads'."),
}


@pytest.mark.parametrize(("options", "message"), WRONG.values(), ids=WRONG)
def test_what_pictures_cannot_do_is_said(
    askance: Command, ads: list[str], options: tuple[str, ...], message: str
) -> None:
    done = askance("negatives", "generate", "ads", "--out", "hard", *options)

    assert len(ads) == 3
    assert (done.code, done.err.splitlines()[0], Path("hard").exists()) == (2, f"askance: {message}", False)


def test_statements_in_a_file_are_asked_of_no_vlm(askance: Command) -> None:
    Path("true.json").write_text('{"a.png": ["I should fly Because it is fast"]}', encoding="utf-8")
    done = askance("negatives", "generate", "true.json", "--vlm", "demo", "--out", "hard")

    assert (done.code, done.err.splitlines()[0]) == (
        2,
        "askance: 'true.json' says what is true by itself, so there is nothing for --vlm to say.",
    )


async def test_pictures_come_before_calls_and_are_asked_about_once(tmp_path: Path, ads: list[str]) -> None:
    script = ScriptedModel(lambda _: json.dumps({"explanation": "The cup is odd."}), capabilities=ENFORCED)
    pictures = PictureStatements(
        images={Path(ad).name: Image.from_path(ad) for ad in ads}, chain=explain(model_of(script))
    )
    told: list[list[tuple[str, int, int]]] = []
    for _ in range(2):
        told.append([])
        await agenerate(
            pictures,
            None,
            out=tmp_path / "hard",
            recipe=Recipe(domain="explanations", kinds=("random",)),
            on_progress=lambda what, done, total: told[-1].append((what, done, total)),
        )

    calls = [("calls", done, 3) for done in (1, 2, 3)]
    assert told == [[*(("images", done, 3) for done in (1, 2, 3)), *calls], calls]
    assert (len(pictures.true), len(script.requests)) == (3, 3)


@pytest.mark.parametrize("text", ["{", "[]\n", '{"image": "a.png"}\n', '{"image": "a", "statement": 3}\n'])
async def test_a_file_of_statements_that_is_none_is_said(text: str, tmp_path: Path, ads: list[str]) -> None:
    model = get_model("demo", engine=Engine(records=MemoryStore()))
    pictures = PictureStatements(images={"a.png": Image.from_path(ads[0])}, chain=explain(model))
    (tmp_path / "statements.jsonl").write_text(text, encoding="utf-8")

    with pytest.raises(BadData, match=r"statements\.jsonl' cannot be read"):
        await pictures.read(tmp_path)
