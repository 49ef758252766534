"""A verdict stands only if it holds whichever way failed, filtered and missing answers would have gone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from askance.errors import Filtered, InvalidOutput, ModelError, Refused, Skipped, Truncated
from askance.evals import Run, Sample, Task, compare, evaluate, right_or_wrong
from askance.evals.report import build_comparison, comparison_page

ERRORS: dict[str, type[Exception]] = {
    "f": ModelError,
    "x": Filtered,
    "i": InvalidOutput,
    "r": Refused,
    "t": Truncated,
    "s": Skipped,
}


class Marked(Task):
    """Samples whose answers are given by letters: 1 right, 0 wrong, f failed, x filtered, i invalid and so on."""

    name = "tests/marked"
    answers: str
    count: int = Field(0, exclude=True)

    def samples(self) -> list[Sample]:
        return [Sample(id=f"{place:02}", target="1") for place in range(self.count or len(self.answers))]

    def solver(self) -> Any:
        def solve(sample: Sample) -> str:
            letter = self.answers[int(sample.id)]
            if letter in ERRORS:
                raise ERRORS[letter]("no")
            return letter

        return solve

    def scorer(self) -> Any:
        return right_or_wrong()


def run(name: str, answers: str, **options: Any) -> Run:
    return evaluate(Marked(answers=answers, **options), out=name)


def verdict(a: str, b: str, **options: Any) -> str:
    return compare(run("a", a), run("b", b), **options).metrics[0].verdict


VERDICTS: dict[str, tuple[str, str, str]] = {
    "all failed": ("1" * 8, "f" * 8, "undecided"),
    "all filtered": ("1" * 8, "x" * 8, "undecided"),
    "all failed in A": ("f" * 8, "1" * 8, "undecided"),
    "all failed in both": ("f" * 8, "f" * 8, "undecided"),
    "all wrong": ("1" * 8, "0" * 8, "better"),
    "one failed of many": ("1" * 20, "0" * 19 + "f", "better"),
    "too many failed": ("1" * 20, "0" * 4 + "f" * 16, "undecided"),
    "a tie that might have been none": ("f" * 8, "0" * 8, "undecided"),
    "a tie either way": ("1" * 4, "11f0", "tied"),
    "refused is the model's own": ("1" * 8, "r" * 8, "better"),
    "unread is counted by the convention": ("1" * 8, "i" * 8, "better"),
    "cut off": ("1" * 8, "t" * 8, "better"),
    "nothing to ask": ("1" * 8, "s" * 8, "better"),
}


@pytest.mark.parametrize(("a", "b", "expected"), VERDICTS.values(), ids=VERDICTS)
def test_a_verdict_does_not_rest_on_failed_calls(a: str, b: str, expected: str) -> None:
    assert verdict(a, b) == expected


def test_what_is_not_decided_says_why_and_how_far_it_may_reach() -> None:
    (found,) = compare(run("a", "1" * 8), run("b", "f" * 6 + "xx"))

    assert found.sentence == (
        "Which of a and b is better on accuracy is not decided: 6 calls of b failed, 2 calls of b were filtered. "
        "Over 8 samples a has 100.00 %; b has 0.00 % if those without an answer are wrong and 100.00 % if they are "
        "right."
    )
    assert found.form()["verdict"] == "undecided"
    assert found.form()["lacking"] == {"a": {}, "b": {"failed": 6, "filtered": 2}}


def test_the_way_out_names_the_task_the_folder_and_the_option() -> None:
    found = compare(run("a", "1" * 8), run("b", "f" * 6 + "xx"))

    (way,) = found.ways_out
    assert way.startswith("b: the command that began it (`askance eval run ")
    assert way.endswith(
        "test_missing_answers.py@tests/marked … --out b`) asks for what failed, with `--retry filtered` for what was "
        "filtered, and for nothing else."
    )
    assert found.form()["ways_out"] == [way]


def test_what_is_missing_is_asked_by_the_same_command() -> None:
    b = run("b", "0" * 8)
    for name in ("samples.jsonl", "scores.jsonl"):
        lines = (b.path / name).read_text(encoding="utf-8").splitlines(keepends=True)
        (b.path / name).write_text("".join(lines[:2]), encoding="utf-8")

    (way,) = compare(run("a", "1" * 8), Run.open(b.path)).ways_out

    assert way.endswith("… --out b`) asks for what is missing, and for nothing else.")


def test_where_no_sample_differs_the_sentence_says_how_far_apart_the_two_may_be() -> None:
    (found,) = compare(run("a", "1" * 8), run("b", "1" * 8))

    assert "+0.00 points (not one sample differs; 95 % interval -32.44 to +32.44), over 8 samples." in found.sentence


def test_the_page_says_what_samples_without_an_answer_count_as() -> None:
    a, failed, wrong = run("a", "1" * 8), run("b", "f" * 8), run("c", "0" * 8)

    note = "Samples without an answer count as wrong here"
    assert note in comparison_page(build_comparison(compare(a, failed)))
    assert note not in comparison_page(build_comparison(compare(a, wrong)))


def test_a_verdict_that_holds_either_way_says_so() -> None:
    (found,) = compare(run("a", "1" * 20), run("b", "0" * 19 + "f"))

    assert found.verdict == "better"
    assert found.sentence.endswith(" The verdict holds either way: 1 call of b failed.")


def test_of_unread_replies_and_refusals_it_is_said_whether_the_verdict_holds() -> None:
    (frail,) = compare(run("a", "1" * 8), run("b", "i" * 5 + "rrr"))
    (firm,) = compare(run("c", "1" * 20), run("d", "0" * 19 + "i"))

    assert (frail.verdict, frail.holds_for_unread) == ("better", False)
    assert frail.sentence.endswith(
        " The verdict rests on how these count: 5 replies of b could not be read, 3 replies of b were refusals."
    )
    assert (firm.verdict, firm.holds_for_unread) == ("better", True)
    assert firm.sentence.endswith(" The verdict holds either way: 1 reply of d could not be read.")


def test_by_the_other_convention_failed_calls_are_still_counted_either_way() -> None:
    a, b = run("a", "1" * 8 + "f" * 8), run("b", "0" * 8 + "1" * 8)

    (found,) = compare(a, b, convention="answered")

    assert (found.comparison.n, found.verdict) == (8, "undecided")


def test_where_one_run_answered_nothing_the_other_convention_decides_nothing() -> None:
    (found,) = compare(run("a", "1" * 8), run("b", "f" * 8), convention="answered")

    assert (found.comparison.n, found.verdict) == (0, "undecided")
    assert "b has 0.00 % if those without an answer are wrong and 100.00 % if they are right." in found.sentence


def test_a_sample_that_a_run_should_have_and_has_not_is_counted_either_way() -> None:
    a, b = run("a", "1" * 10), run("b", "0" * 6 + "1" * 4)
    assert compare(a, b).metrics[0].verdict == "better"
    for name in ("samples.jsonl", "scores.jsonl"):
        file = Path("b", name)
        file.write_text("".join(file.read_text(encoding="utf-8").splitlines(keepends=True)[1:]), encoding="utf-8")

    found = compare(a, Run.open("b"))

    assert found.metrics[0].verdict == "undecided"
    assert "not decided: 1 sample is missing from b." in found.metrics[0].sentence


def test_samples_that_a_run_was_never_given_do_not_count() -> None:
    a, b = run("a", "1" * 20), run("b", "0" * 20, count=8)

    assert compare(a, b).metrics[0].verdict == "better"


def test_an_answer_that_no_judge_could_score_is_no_answer() -> None:
    a = run("a", "1" * 8)
    run("b", "0" * 8)
    Path("b", "scores.jsonl").write_text("", encoding="utf-8")

    (found,) = compare(a, Run.open("b"))

    assert found.verdict == "undecided"
    assert "8 answers of b have no score." in found.sentence


def test_in_a_family_each_way_is_adjusted_as_a_whole() -> None:
    runs = run("a", "1" * 10), run("b", "0" * 9 + "f"), run("c", "f" * 10)

    found = compare(*runs)

    assert [(each.verdict, each.comparison.family) for each in found] == [("better", 2), ("undecided", 2)]


def test_a_chain_that_was_skipped_because_a_link_failed_lacks_an_answer() -> None:
    a = run("a", "1" * 8)
    run("b", "s" * 8)
    file = Path("b", "samples.jsonl")
    lines: list[Any] = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line["links"] = {"objects": {"outcome": "failed", "calls": []}, **line["links"]}
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    (found,) = compare(a, Run.open("b"))

    assert (found.verdict, found.form()["lacking"]["b"]) == ("undecided", {"failed": 8})


def test_the_page_says_not_decided_in_its_largest_letters() -> None:
    page = comparison_page(build_comparison(compare(run("a", "1" * 8), run("b", "f" * 8))))

    assert '<p class="big">Not decided</p>' in page
    assert "is better</p>" not in page
    assert "asks for what failed" in page
