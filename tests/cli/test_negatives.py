from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import label_studio
from tests.cli.command import Command, draw, link_of
from tests.servers import FakeEndpoint, Seen, default_text

TRUE = {
    "0/10.jpg": ["I should drink tea Because it is hot", "I should buy tea because it calms me"],
    "1/21.jpg": ["I should fly Because it is fast"],
}
LARGE = "large_combined_hard_QA_Combined_Action_Reason_train.json"
_QUOTED = re.compile(r"<<(statement|candidate) ([0-9a-f]+)\n(.*?)\n\2>>", re.DOTALL)


def write(seen: Seen) -> str:
    """Writes negatives of its own, judges those with "shun" to be true, and chooses the first options."""
    text = seen.json["messages"][-1]["content"]
    quoted = {label: words for label, _, words in _QUOTED.findall(text)}
    match link_of(seen):
        case "negative":
            word = "shun" if "opposite or quite different one" in text else "leave"
            negative = quoted["statement"].replace("I should", f"I should {word} and")
            item = {"replaced": "", "replacement": f"{word} and", "statement": negative}
            return json.dumps({"negatives": [item]})
        case "judge_equivalence":
            verdict = "true" if "shun" in quoted["candidate"] else "false"
            return json.dumps({"common": "", "different": "", "reason": "so", "verdict": verdict})
        case _:
            return default_text(seen.json)


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint(write) as running:
        yield running


@pytest.fixture
def data(own_place: Path) -> str:
    (own_place / "true.json").write_text(json.dumps(TRUE), "utf-8")
    return "true.json"


@pytest.fixture
def generated(askance: Command, data: str, vlm: str) -> str:
    """A file with negatives of two kinds."""
    done = askance("negatives", "generate", data, "--llm", vlm, "--kinds", "reason,action", "--out", "hard")
    assert done.code == 0, done.err
    return f"hard/{LARGE}"


def test_generate_writes_the_files_and_says_so(askance: Command, generated: str, endpoint: FakeEndpoint) -> None:
    content = json.loads(Path(generated).read_text("utf-8"))
    asked = len(endpoint.bodies)
    again = askance(
        "negatives",
        "generate",
        "true.json",
        "--llm",
        f"openai:fake-model@{endpoint.url}",
        "--kinds",
        "action,reason",
        "--out",
        "hard",
    )

    assert {key: len(options) for key, (_, options) in content.items()} == {"0/10.jpg": 6, "1/21.jpg": 3}
    assert again.code == 0
    assert again.out.splitlines()[-1] == f"{generated}  2 images"
    assert again.err.startswith("6 of 6 calls: 6 answered; 6 different negatives.\n")
    assert len(endpoint.bodies) == asked


def test_generate_replays_without_an_endpoint(askance: Command, generated: str, endpoint: FakeEndpoint) -> None:
    asked = len(endpoint.bodies)
    done = askance("negatives", "generate", "true.json", "--llm", f"openai:fake-model@{endpoint.url}",
                   "--kinds", "action,reason", "--out", "again", "--replay", "--json")  # fmt: skip

    assert (done.code, done.lines[0]["outcomes"]) == (0, {"answered": 6})
    assert Path("again", LARGE).read_text("utf-8") == Path(generated).read_text("utf-8")
    assert len(endpoint.bodies) == asked


def test_a_plan_counts_the_calls_of_each_kind_and_asks_nothing(
    askance: Command, data: str, vlm: str, endpoint: FakeEndpoint
) -> None:
    words = ("negatives", "generate", data, "--llm", vlm, "--kinds", "reason,action,statement", "--out", "hard")
    planned = askance(*words, "--plan", "--json")
    plan = json.loads(planned.out)

    assert (planned.code, endpoint.requests, Path("hard").exists()) == (0, [], False)
    assert (plan["images"], plan["hits"], plan["calls"]) == (2, 0, 9)
    assert {kind: counts["known"] for kind, counts in plan["links"].items()} == {
        "action": 3,
        "reason": 3,
        "statement": 3,
    }
    assert askance(*words).code == 0
    assert json.loads(askance(*words, "--plan", "--json").out)["hits"] == 9


def test_what_is_drawn_plans_no_call(askance: Command, data: str) -> None:
    done = askance(
        "negatives", "generate", data, "--domain", "explanations", "--kinds", "random", "--out", "h", "--plan"
    )

    assert (done.code, done.out.split("\n")[0]) == (0, "2 images, 0 calls: 0 on record, 0 to be made.")


def test_a_budget_stops_and_a_larger_one_goes_on(askance: Command, data: str, vlm: str) -> None:
    command = ["negatives", "generate", data, "--llm", vlm, "--kinds", "action", "--out", "hard"]
    stopped = askance(*command, "--budget", "3calls", "--concurrency", "1")
    done = askance(*command, "--budget", "50calls")

    assert stopped.code == 1
    assert "The budget had nothing left for" in stopped.err
    assert (done.code, done.err.splitlines()[0]) == (0, "3 of 3 calls: 3 answered; 3 different negatives.")


def test_random_explanations_need_no_model(askance: Command, data: str) -> None:
    done = askance("negatives", "generate", data, "--domain", "explanations", "--kinds", "random", "--out", "hard")

    assert (done.code, "2 answered, 1 skipped" in done.err) == (1, True)  # the first image finds one of two
    assert Path("hard/random_hard_QA_Explanation.json").is_file()


def test_an_audit_finds_what_the_judge_calls_true(askance: Command, generated: str, vlm: str) -> None:
    done = askance("negatives", "audit", generated, "--judge", vlm)

    assert done.code == 1
    assert re.search(r"^action +3 +0 +0 +3$", done.out, re.MULTILINE)
    assert re.search(r"^equivalent +3  drop  means the same as a true statement, by the judge$", done.out, re.MULTILINE)


def test_apply_drops_and_counts_by_rule(askance: Command, generated: str, vlm: str) -> None:
    done = askance("negatives", "audit", generated, "--judge", vlm, "--apply", "mended.json", "--report", "audit.json",
                   "--json")  # fmt: skip

    assert done.code == 0
    assert done.lines[0] == json.loads(Path("audit.json").read_text("utf-8"))
    assert "mended.json: 3 negatives of 2 images; 3 dropped (3 equivalent), 0 images left out." in done.err
    mended = json.loads(Path("mended.json").read_text("utf-8"))
    assert not any("shun" in option for _, options in mended.values() for option in options)
    assert askance("negatives", "audit", "mended.json").code == 0


def test_a_blind_model_is_asked_without_an_image(askance: Command, generated: str, vlm: str) -> None:
    done = askance("negatives", "audit", generated, "--blind", vlm, "--orders", "2")

    assert "Without the image openai:fake-model" in done.out
    assert "0 of 4 calls have no answer" in done.out


def test_a_plan_of_an_audit_is_what_it_asks(askance: Command, generated: str, vlm: str, endpoint: FakeEndpoint) -> None:
    words = ("negatives", "audit", generated, "--judge", vlm, "--blind", vlm, "--orders", "2")
    before = len(endpoint.requests)
    plan = json.loads(askance(*words, "--plan", "--json").out)

    assert len(endpoint.requests) == before
    assert {role: counts["known"] for role, counts in plan["links"].items()} == {"judge": 10, "blind": 4}
    assert askance(*words).code == 1
    assert len(endpoint.requests) == before + 14
    assert json.loads(askance(*words, "--plan", "--json").out)["calls"] == 0


def test_rules_are_printed_and_taken_back(askance: Command, generated: str) -> None:
    printed = askance("negatives", "rules")
    rules = json.loads(printed.out)
    rules["actions"]["part"] = "drop"
    Path("rules.json").write_text(json.dumps(rules), "utf-8")

    assert askance("negatives", "audit", generated).code == 0
    assert askance("negatives", "audit", generated, "--rules", "rules.json").code == 1


def test_a_sheet_is_written_and_read_back(askance: Command, generated: str) -> None:
    draw(Path("pictures"), "10.jpg", "21.jpg")
    made = askance("negatives", "sample", generated, "--images", "pictures", "--out", "sheet")
    key = json.loads(Path("sheet/key.json").read_text("utf-8"))
    for name in ("ann", "ben"):
        with Path(f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["sheet", "item", "answer"])
            rows.writerows([key["sheet"], each["item"], "right" if each["true"] else "wrong"] for each in key["items"])
    read = askance("negatives", "sample", "--key", "sheet/key.json", "--answers", "ann.csv", "--answers", "ben.csv")

    assert made.out == "sheet/sheet.html\nsheet/sheet.csv\n"
    assert made.err.startswith("9 statements about 2 images, 0 of which cannot be read.")
    assert (read.code, read.out.partition(" [")[0]) == (0, "True negatives: 100.00%")
    assert "Agreement, krippendorff alpha: 1.000" in read.out
    assert "Rater ben: 9 of 9 items" in read.out


def test_a_sheet_goes_to_label_studio_and_comes_back(askance: Command, generated: str) -> None:
    draw(Path("pictures"), "10.jpg", "21.jpg")
    made = askance("negatives", "sample", generated, "--images", "pictures", "--out", "sheet", "--to", "label-studio")
    true = {each["item"]: each["true"] for each in json.loads(Path("sheet/key.json").read_text("utf-8"))["items"]}

    def answers(task: Mapping[str, str]) -> Mapping[str, str]:
        page = task["page"]
        return {
            f"answer_{item.removeprefix(page)}": "Right" if right else "Wrong"
            for item, right in true.items()
            if item.startswith(page)
        }

    label_studio.write(Path("export.json"), label_studio.exported(Path("sheet"), {3: answers, 4: answers}))
    read = askance("negatives", "sample", "--key", "sheet/key.json", "--answers", "export.json")

    assert made.out == "sheet/label-studio.json\nsheet/label-studio.xml\n"
    assert made.err == (
        "9 statements about 2 images, 0 of which cannot be read.\n"
        "Label Studio gets both files, and never sheet/key.json, which says what is true.\n"
    )
    assert (read.code, read.out.partition(" [")[0]) == (0, "True negatives: 100.00%")
    assert "Rater export:4: 9 of 9 items" in read.out


BAD: dict[str, tuple[list[str], int, str]] = {
    "no file": (["generate", "none.json", "--out", "o", "--llm", "x"], 2, "There is no file 'none.json'."),
    "no model": (["generate", "true.json", "--out", "o"], 2, "No model is named that writes the negatives."),
    "unknown kind": (
        ["generate", "true.json", "--out", "o", "--kinds", "verb"],
        2,
        "'verb' is no kind of negative for ads.",
    ),
    "hidden answers": (["generate", "test.json", "--out", "o"], 2, "The file 'test.json' has no true statements"),
    "no options": (["audit", "true.json"], 2, "The file 'true.json' has no options to choose from"),
    "unknown rule": (
        ["audit", "options.json", "--rules", "bad.json"],
        2,
        "'parts' was unexpected",
    ),
    "no negatives": (["audit", "options.json"], 2, "There is no negative to audit."),
    "a sheet without images": (["sample", "options.json"], 2, "A sheet needs a file of options, --images and --out."),
    "answers without a key": (["sample", "--answers", "a.csv"], 2, "Answers are read back with --key and --answers"),
    "no image found": (
        ["sample", "hard.json", "--images", ".", "--out", "sheet"],
        2,
        "None of the 1 images of the sheet could be read, such as '0/10.jpg'.",
    ),
    "unreachable": (
        ["generate", "true.json", "--out", "o", "--llm", "openai:m@http://127.0.0.1:9/v1"],
        3,
        "askance: ",
    ),
    "replay of nothing": (
        ["generate", "true.json", "--out", "o", "--llm", "openai:m@http://127.0.0.1:9/v1", "--replay"],
        3,
        "askance: ",
    ),
}


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(("arguments", "code", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_message(askance: Command, arguments: list[str], code: int, message: str) -> None:
    files: dict[str, Any] = {
        "test.json": {"0/10.jpg": [f"option {place}" for place in range(15)]},
        "options.json": {"0/10.jpg": [["true"], ["true"]]},
        "hard.json": {"0/10.jpg": [["true"], ["true", "false"]]},
        "bad.json": {"actions": {"parts": "drop"}},
    }
    for name, content in files.items():
        Path(name).write_text(json.dumps(content), "utf-8")
    done = askance("negatives", *arguments)

    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert "→" in done.err
