"""Two runs side by side: what changed, on which samples, and the page of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from askance.evals import Evaluation, Run, Sample, Scorer, Task, compare, evaluate
from askance.evals.report import ComparisonReport, build_comparison, comparison_page
from tests.evals.pittads import worlds
from tests.evals.report.runs import SCORING, Parsed, chain_run, plain_run


class Shown(Task):
    """What scores the plain runs."""

    name = "tests/shown"

    def samples(self) -> list[Sample]:
        return []

    def solver(self) -> Callable[[Sample], None]:
        return lambda _: None

    def scorer(self) -> Scorer:
        return SCORING


def difference_of(*runs: Run) -> ComparisonReport:
    return build_comparison(compare(*runs))


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """Two runs of the chain: the second narrates otherwise and chooses badly."""
    tmp_path = tmp_path_factory.mktemp("two")
    data = worlds.world(tmp_path / "data")
    worse = worlds.choosing(lambda text: not worlds.is_wrong(text))
    return (
        chain_run(tmp_path / "a", data),
        chain_run(tmp_path / "b", data, narration={"description": "ANOTHER VIEW."}, choose_action_reasons=worse),
    )


def test_pairs_are_better_worse_or_the_same(chains: tuple[Run, Run]) -> None:
    difference = difference_of(*chains)

    assert [row.change(0, 1) for row in difference.rows] == ["better"] * 3
    assert difference.names == ("a", "b")
    assert difference.comparison.metrics[0].by_sample == (3, 0, 0)
    assert [row.change(0, 0) for row in difference.rows] == ["same"] * 3


def test_the_page_says_verdict_counts_and_what_differs(chains: tuple[Run, Run]) -> None:
    text = Parsed(comparison_page(difference_of(*chains))).text

    for words in (
        "a against b",
        "a and b are tied on mean of five at this size: 100.00 % against 0.00 %",
        "Exploratory, p not adjusted: p@1, p@2, p@3, acc@1",
        "A better 3 B better 0 Other answer 0 Same answer 0",
        "3 samples in both, 0 more in A, 0 more in B",
        "The two are of one configuration.",
    ):
        assert words in text


def test_counts_are_by_the_metric_that_is_asked_for(chains: tuple[Run, Run]) -> None:
    a, b = chains
    found = build_comparison(compare(a, b, metric=["acc@1", "p@1"]))
    text = Parsed(comparison_page(found)).text

    values = found.comparison.values
    assert values is not None
    assert (values.metric, found.comparison.metrics[0].by_sample) == ("acc@1", (3, 0, 0))
    assert [row.worths for row in found.rows] == [(1.0, 0.0)] * 3
    assert "Samples by change of acc@1 change samples A better 3 B better 0" in text
    assert Parsed(comparison_page(found)).data("index")["rows"][0]["worths"] == [1.0, 0.0]


def test_the_configuration_stands_below_the_figures_by_words_that_changed(tmp_path: Path) -> None:
    data = worlds.world(tmp_path / "data")
    a = chain_run(tmp_path / "a", data)
    b = chain_run(tmp_path / "b", data)
    file = b.path / "prompts" / "narration.json.prompt"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("Describe the image in detail.", "Describe the image in <b>two</b> words."), "utf-8")
    b.configuration["solver"]["prompts"]["narration.json.prompt"] = "0" * 64
    page = comparison_page(build_comparison(compare(a, b)))

    words = Parsed(page).text
    assert words.index("What differs in the configuration") > words.index("Figures")
    assert "prompt narration.json.prompt" in words
    assert "<del>detail</del><ins>&lt;b&gt;two&lt;/b&gt; words</ins>" in page


def test_both_sides_of_a_pair_are_there_with_their_calls(chains: tuple[Run, Run]) -> None:
    parsed = Parsed(comparison_page(difference_of(*chains)))
    samples, calls = parsed.samples()

    narrated = [side["verbalization"]["narration"] for side in samples[0]]
    assert narrated == ["NARRATED.", "ANOTHER VIEW."]
    assert {key for run in chains for answer in run.answers for key in answer.keys} == calls.keys()
    row = parsed.data("index")["rows"][0]
    assert (row["worths"], row["answers"], row["asked"]) == ([1.0, 0.0], [0, 1], [0, 0])


def test_a_sample_whose_id_is_a_hash_has_its_question(tmp_path: Path) -> None:
    samples = [Sample(id="0f3a" * 16, inputs={"question": "What is odd?"}, target="yes")]
    task = Evaluation(samples=samples, solver=lambda _: "yes", scorer=SCORING, name="tests/shown")
    runs = [evaluate(task, out=tmp_path / name) for name in ("a", "b")]

    report = build_comparison(compare(*runs, metric=(), task="tests/shown"))
    (row,) = Parsed(comparison_page(report)).data("index")["rows"]
    assert row["title"] == "What is odd?"


def test_what_is_known_of_samples_is_small_in_the_page(chains: tuple[Run, Run]) -> None:
    parsed = Parsed(comparison_page(difference_of(*chains)))

    assert len(parsed.scripts["d-0-0"]) < len(json.dumps(parsed.data("d-0-0"))) / 4


def test_another_configuration_and_other_samples_are_shown(tmp_path: Path) -> None:
    a, b = (
        plain_run(tmp_path / name, count, shift=shift, label=name)
        for name, count, shift in (("a", 12, 0), ("b", 10, 1))
    )
    difference = build_comparison(compare(a, b, metric=(), task="tests/shown"))
    common = difference.comparison.common

    assert [row.change(0, 1) for row in difference.rows[:5]] == ["same", "better", "same", "other", "worse"]
    assert (common.alone, common.unlike) == ((2, 0), 1)
    assert {each.place for each in difference.comparison.differences} >= {"options.shift", "samples.count"}
    assert [row.asked for row in difference.rows].count((0, 1)) == 1
    assert "No figure of the task" in Parsed(comparison_page(difference)).text


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, ...]:
    """Runs of the chain: as it is, by another narration, and with bad choices."""
    tmp_path = tmp_path_factory.mktemp("three")
    data = worlds.world(tmp_path / "data")
    worse = worlds.choosing(lambda text: not worlds.is_wrong(text))
    return (
        chain_run(tmp_path / "a", data),
        chain_run(tmp_path / "b", data, narration={"description": "ANOTHER VIEW."}),
        chain_run(tmp_path / "c", data, choose_action_reasons=worse),
    )


def test_of_three_runs_every_two_have_their_changes(three: tuple[Run, ...]) -> None:
    difference = difference_of(*three)

    assert {pair: counts["better"] for pair, counts in difference.changes().items()} == {
        (0, 1): 0,
        (0, 2): 3,
        (1, 2): 3,
    }
    assert [row.answers for row in difference.rows] == [(0, 0, 1)] * 3


def test_the_page_of_three_names_each_by_a_letter(three: tuple[Run, ...]) -> None:
    parsed = Parsed(comparison_page(difference_of(*three)))

    for words in (
        "a against b and c",
        "A a B b C c",
        "A – B 0 0 0 3 A – C 3 0 0 0 B – C 3 0 0 0",
        "3 of 3 samples are not answered alike by all.",
        "3 samples in all 3, 0 more in A, 0 more in B, 0 more in C",
        "Compared: A against each of the others, on the samples that all have",
        "p adjusted for 2 comparisons",
        "The runs are of one configuration.",
    ):
        assert words in parsed.text
    assert parsed.data("index")["letters"] == ["A", "B", "C"]
    assert [len(sides) for sides in parsed.samples()[0]] == [3, 3, 3]
