"""From the folder of WHOOPS! to hard negatives, and from these to the task that chooses among them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from tests.cli.command import Command, link_of, picture_of
from tests.evals.whoops import files
from tests.evals.whoops.files import IDS
from tests.servers import FakeEndpoint, Seen, default_text

ALL = "hard/large_combined_hard_QA_Explanation.json"
_STATEMENT = re.compile(r"<<statement ([0-9a-f]+)\n(.*?)\n\1>>", re.DOTALL)


def write_and_choose(seen: Seen) -> str:
    """Writes negatives with a word of their own, and chooses the option that has none and is of the cup of bricks."""
    match link_of(seen):
        case "negative":
            found = _STATEMENT.search(seen.json["messages"][-1]["content"])
            assert found is not None
            mark = f"never {sha256(seen.body).hexdigest()[:8]}"
            item = {"replaced": "", "replacement": mark, "statement": f"{found[2]} {mark}"}
            return json.dumps({"negatives": [item]})
        case "choose_explanation_from_picture":
            text = json.dumps(seen.json["messages"])
            numbers = re.findall(r"(\d+)\. A brick cup breaks rule \d of everyday life(?! never)", text)
            return json.dumps({"answers": [int(numbers[0])] if numbers and picture_of(seen) else [1]})
        case _:
            return default_text(seen.json)


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint(write_and_choose) as running:
        yield running


@pytest.fixture(autouse=True)
def weird(own_place: Path) -> None:
    files.first_release(own_place / "weird")


def test_negatives_of_a_folder_are_what_the_hard_task_reads(askance: Command, vlm: str) -> None:
    written = askance("negatives", "generate", "weird", "--llm", vlm, "--most", "1", "--out", "hard", "--json")
    run = askance("eval", "run", "whoops/explain-choice", "--data", "weird", "--vlm", vlm, "-T", "negatives=hard",
                  "-T", f"qa={ALL}", "--out", "run", "--json")  # fmt: skip
    samples = [json.loads(line) for line in Path("run/samples.jsonl").read_text("utf-8").splitlines()]

    assert (written.code, written.lines[0]["outcomes"]) == (0, {"answered": 25})
    assert run.code == 0, run.err
    assert [line["sample"]["id"] for line in samples] == list(IDS)
    kinds = ["adjective", "causal", "object", "random", "true", "verb"]
    assert [sorted(line["sample"]["target"]["kinds"]) for line in samples] == [kinds] * 5
    scores = [json.loads(line) for line in Path("run/scores.jsonl").read_text("utf-8").splitlines()]
    assert scores[0]["values"]["accuracy"] == 1, scores[0]


def test_listed_images_alone_are_written_for(askance: Command, vlm: str) -> None:
    Path("ids.txt").write_text(f"{IDS[3]}\n{IDS[1]}\n", encoding="utf-8")
    done = askance("negatives", "generate", "weird", "--llm", vlm, "--kinds", "verb", "--ids", "ids.txt",
                   "--limit", "1", "--out", "hard")  # fmt: skip

    assert done.code == 0, done.err
    assert [*json.loads(Path("hard/verb_hard_QA_Explanation.json").read_text("utf-8"))] == [IDS[3]]


BAD = {
    "as ads": (["--domain", "ads"], "The folder 'weird' holds explanations of WHOOPS!, and no ads."),
    "kinds of ads": (["--kinds", "reason"], "'reason' is no kind of negative for explanations."),
    "unknown image": (["--ids", "other.txt"], "1 listed images are not there, such as 'w99'."),
}


@pytest.mark.parametrize(("more", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_written_is_said(askance: Command, vlm: str, more: list[str], message: str) -> None:
    Path("other.txt").write_text("w99\n", encoding="utf-8")
    done = askance("negatives", "generate", "weird", "--llm", vlm, "--out", "hard", *more)

    assert (done.code, done.out) == (2, "")
    assert message in done.err
