"""`askance compare`: the sentence, the counts, and what differs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command, Workplace

OWN = """\
from pydantic import Field
from askance.evals import Sample, Task, right_or_wrong

class Guess(Task):
    name = "own/guess"
    right: int
    count: int = Field(20, exclude=True)

    def samples(self):
        return [Sample(id=f"{each:02}", target=True) for each in range(self.count)]

    def solver(self):
        return lambda sample: int(sample.id) < self.right

    def scorer(self):
        return right_or_wrong()

    def label(self):
        return f"{self.right} right"
"""


@pytest.fixture(scope="module")
def made(workplace: Workplace) -> Workplace:
    with workplace.entered() as work:
        (work / "own.py").write_text(OWN, encoding="utf-8")
    for name, right, count in (("good", 19, 20), ("bad", 3, 20), ("short", 3, 5)):
        workplace.run("eval", "run", "own.py", "-T", f"right={right}", "-T", f"count={count}", "--out", name)
    return workplace


@pytest.fixture(autouse=True)
def runs(made: Workplace, own_place: Path) -> None:
    made.copy_to(own_place)


def test_the_sentence_then_counts_then_what_differs(askance: Command) -> None:
    done = askance("compare", "good", "bad")

    lines = done.out.splitlines()
    assert done.code == 0
    assert lines[0].startswith("19 right is better than 3 right on accuracy: 95.00 % against 15.00 %, a difference of ")
    assert "exact McNemar test, p < 0.001" in lines[0]
    assert lines[2] == "By accuracy: 19 right better on 16 samples, 3 right on 0, as good on 4."
    assert lines[3] == (
        "20 samples in both, 0 in the first alone, 0 in the second alone; 20 answered by both, 0 by the first alone, "
        "0 by the second alone."
    )
    assert lines[4:] == ["What differs:", "  options.right: 19 → 3"]


def test_what_so_few_samples_could_show_is_said(askance: Command) -> None:
    done = askance("compare", "bad", "short", "--metric", "accuracy")

    assert "bad and short are tied on accuracy at this size: 60.00 % against 60.00 %" in done.out
    assert "5 samples in both, 15 in the first alone, 0 in the second alone" in done.out


def test_as_json_it_is_one_object(askance: Command) -> None:
    form: Any = json.loads(askance("compare", "bad", "good", "--json").out)

    (metric,) = form["metrics"]
    assert (metric["metric"], metric["verdict"], metric["discordant"], metric["n"]) == (
        "accuracy",
        "worse",
        [0, 16],
        20,
    )
    assert metric["by_sample"] == {"better": 0, "worse": 16, "tied": 4}
    assert (form["samples"], [run["alone"] for run in form["runs"]]) == (20, [0, 0])
    assert {"place": "options.right", "values": [3, 19]} in form["differences"]


def test_one_configuration_is_said_to_be_one(askance: Command) -> None:
    askance("eval", "run", "own.py", "-T", "right=19", "--out", "again")

    done = askance("compare", "good", "again")

    assert done.out.endswith("The two are of one configuration.\n")
    assert "(not one sample differs; 95 % interval " in done.out


def test_several_runs_stand_in_a_table_with_a_letter_each(askance: Command) -> None:
    done = askance("compare", "good", "bad", "short")

    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines[:4] == ["A 19 right", "B 3 right (bad)", "C 3 right (short)", ""]
    assert lines[4].startswith("figure runs first second difference 95 % interval p verdict better worse tied")
    assert lines[5].startswith("accuracy A – B 100.00 60.00 +40.00 ")
    assert "· 5 samples in all 3, 15 more in A, 15 more in B, 0 more in C." in lines
    assert "· Compared: A against each of the others, on the samples that all have." in lines
    assert "· p adjusted for 2 comparisons by Holm's method; intervals each for itself." in lines
    assert "samples.count: 20 → 20 → 5" in lines


def test_of_a_prompt_the_words_that_changed_are_told(askance: Command, own_place: Path) -> None:
    askance("eval", "run", "own.py", "-T", "right=19", "--out", "again")
    for name, words in (("good", "in one sentence"), ("again", "in two short sentences")):
        description = own_place / name / "run.json"
        form: Any = json.loads(description.read_text(encoding="utf-8"))
        form["configuration"]["solver"]["prompts"] = {"caption.json.prompt": words[3:6] * 8}
        description.write_text(json.dumps(form), encoding="utf-8")
        (own_place / name / "prompts").mkdir(exist_ok=True)
        text = f"user:\nDescribe the whole image {words}, as it is.\n"
        (own_place / name / "prompts" / "caption.json.prompt").write_text(text, encoding="utf-8")

    done = askance("compare", "good", "again")

    assert done.out.splitlines()[-3:] == [
        "What differs:",
        "  prompt caption.json.prompt:",
        "    user: Describe the whole image in [-one sentence-]{+two short sentences+}, as it is.",
    ]


def test_every_two_may_be_compared(askance: Command) -> None:
    form: Any = json.loads(askance("compare", "good", "bad", "short", "--all-pairs", "--json").out)

    assert [(each["a"], each["b"]) for each in form["metrics"]] == [
        ("19 right", "3 right (bad)"),
        ("19 right", "3 right (short)"),
        ("3 right (bad)", "3 right (short)"),
    ]
    assert ({each["family"] for each in form["metrics"]}, form["pairs"]) == ({3}, "all")


FAILING = """\
from pathlib import Path
from askance.errors import ModelError
from askance.evals import Sample, Task, right_or_wrong

class Failing(Task):
    name = "own/failing"
    reachable: bool

    def samples(self):
        return [Sample(id=str(each), target=True) for each in range(8)]

    def solver(self):
        return self.answer

    def answer(self, sample):
        if not self.reachable and not Path("mended").exists():
            raise ModelError("the endpoint is gone")
        return self.reachable

    def scorer(self):
        return right_or_wrong()
"""


def test_a_verdict_that_rests_on_failed_calls_is_not_decided_until_they_are_asked_again(
    askance: Command, own_place: Path
) -> None:
    (own_place / "failing.py").write_text(FAILING, encoding="utf-8")
    askance("eval", "run", "failing.py", "-T", "reachable=true", "--out", "up")
    begun = ("eval", "run", "failing.py", "-T", "reachable=false", "--out", "down")
    askance(*begun)

    done = askance("compare", "up", "down", "--html", "pair.html")
    words = " ".join(done.out.split())

    assert (
        "Which of up and down is better on accuracy is not decided: 8 calls of down failed. Over 8 samples up" in words
    )
    assert "failing.py@own/failing … --out down`) asks for what failed, and for nothing else." in words
    assert '<p class="big">Not decided</p>' in (own_place / "pair.html").read_text(encoding="utf-8")

    (own_place / "mended").touch()
    askance(*begun)

    assert askance("compare", "up", "down").out.startswith(
        "up is better than down on accuracy: 100.00 % against 0.00 %"
    )


def test_in_a_table_of_runs_what_is_not_decided_is_said_with_its_way_out(askance: Command, own_place: Path) -> None:
    (own_place / "failing.py").write_text(FAILING, encoding="utf-8")
    for name, reachable in (("up", "true"), ("down", "false"), ("away", "false")):
        askance("eval", "run", "failing.py", "-T", f"reachable={reachable}", "--out", name)

    words = " ".join(askance("compare", "up", "down", "away").out.split())

    assert words.count("not decided 8 0 0") == 2
    assert words.count("is not decided: 8 calls of") == 2
    assert words.count("asks for what failed") == 2


REFUSED = {
    "no metric": (["good", "bad", "--metric", "f1"], "askance: The task has no metric 'f1'.\n  → It has accuracy.\n"),
    "one twice": (["good", "bad", "./good"], "askance: The run 'good' is named twice.\n  → Name each run once.\n"),
    "no run": (["good", "nowhere"], "askance: The folder 'nowhere' holds no run.\n"),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_compared_is_told(arguments: list[str], message: str, askance: Command) -> None:
    done = askance("compare", *arguments)

    assert (done.code, done.err[: len(message)]) == (2, message)


def test_runs_over_pictures_are_compared_link_by_link(askance: Command, vlm: str, ads: list[str]) -> None:
    askance("run", "verbalize", *ads, "--vlm", vlm, "--out", "whole")
    askance("run", "verbalize", *ads, "--vlm", vlm, "--context", "UH", "--out", "unusual")

    done = askance("compare", "whole", "unusual", "--html", "pair.html", "--no-images")

    assert (done.code, done.err) == (0, "")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines[1:5] == ["A whole", "B unusual", "", "link same other A alone B alone"]
    assert "narration 0 0 3 0" in lines
    assert "· 3 pictures in both, 0 more in A, 0 more in B." in lines
    assert "context: – → UH" in lines
    assert max(map(len, done.out.split("What differs")[0].splitlines())) <= 80


def test_a_metric_is_no_part_of_pictures(askance: Command, vlm: str, ads: list[str]) -> None:
    for name in ("one", "two"):
        askance("run", "explain", ads[0], "--vlm", vlm, "--out", name)

    done = askance("compare", "one", "two", "--metric", "accuracy")

    assert (done.code, done.err.splitlines()[-1]) == (2, "  → Leave it out: they are compared link by link.")
