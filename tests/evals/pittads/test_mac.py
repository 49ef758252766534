"""Multi-label classification: every figure against scikit-learn, and what counts as true."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from askance import statistics
from askance.agents import LABELS
from askance.atypicality import RELATIONS
from askance.chat import ChatRequest
from askance.errors import UsageError
from askance.evals import Sample, Score, evaluate
from askance.evals.metric import Scored, figure
from askance.evals.pittads import Mac
from askance.evals.pittads.mac import label_scorer, score_labels
from tests.evals.pittads.files import key_of, row
from tests.evals.pittads.worlds import REFUSAL, model, picture_of, requests_of, shown, world
from tests.scripted import name_of

SCORING = label_scorer()
METRICS = {metric.name: metric for metric in SCORING.metrics}
TRUTHS = ["TR1", "TR1 NA", "TR2", "OIO OR", "OR", "OR NA", "TR1 OIO", "NA"]
ANSWERS = ["TR1", "TR1", "OIO", "OIO OR", "NA", "OR NA TR2", "TR1", "OIO"]


def sample(labels: str, number: int = 0) -> Sample:
    return Sample(id=f"{number}.jpg", target={"labels": labels.split()})


def figures_of(truths: Sequence[str], answers: Sequence[str]) -> dict[str, float | None]:
    scores = [score_labels(sample(true), given.split()) for true, given in zip(truths, answers, strict=True)]
    return {name: metric.of(scores) for name, metric in METRICS.items()}


def drawn(seed: int, count: int = 60) -> tuple[list[str], list[str]]:
    """True and given labels by chance; each is there for some and missing for others."""
    lot = random.Random(seed)
    truths, answers = ([" ".join(lot.sample(LABELS, lot.randint(1, 4))) for _ in range(count)] for _ in range(2))
    return truths, answers


def by_scikit_learn(truths: Sequence[str], answers: Sequence[str], labels: Sequence[str], end: str) -> dict[str, float]:
    from sklearn import metrics  # pyright: ignore[reportMissingTypeStubs]

    learn: Any = metrics
    true, given = ([[int(label in text.split()) for label in labels] for text in texts] for texts in (truths, answers))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of labels that never occur
        macro, micro = (
            learn.precision_recall_fscore_support(true, given, average=average, zero_division=0)
            for average in ("macro", "micro")
        )
        return {
            **{f"{name}{end}": float(macro[at]) for at, name in enumerate(("precision", "recall", "F1"))},
            **{f"micro {name}{end}": float(micro[at]) for at, name in enumerate(("precision", "recall", "F1"))},
            f"subset accuracy{end}": float(learn.accuracy_score(true, given)),
            f"AUC-ROC{end}": float(learn.roc_auc_score(true, given, average="macro")),
            f"AUC-PR{end}": float(learn.average_precision_score(true, given, average="macro")),
        }


@pytest.mark.parametrize("seed", range(5))
def test_figures_with_and_without_na_are_those_of_scikit_learn(seed: int) -> None:
    truths, answers = drawn(seed)
    expected = by_scikit_learn(truths, answers, LABELS, "") | by_scikit_learn(truths, answers, RELATIONS, " without NA")

    found = figures_of(truths, answers)

    assert {name: found[name] for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize("label", LABELS)
def test_figures_of_one_label_are_those_of_scikit_learn(label: str) -> None:
    truths, answers = drawn(7)
    expected = by_scikit_learn(truths, answers, [label], f" {label}")

    found = figures_of(truths, answers)

    for name in ("AUC-ROC", "AUC-PR"):
        assert found[f"{name} {label}"] == pytest.approx(expected[f"{name} {label}"])


def test_a_few_figures_by_hand() -> None:
    # true:   TR1, TR1 NA, NA;  given: TR1, NA, TR1
    found = figures_of(["TR1", "TR1 NA", "NA"], ["TR1", "NA", "TR1"])

    assert found["precision TR1"] == found["recall TR1"] == found["F1 TR1"] == 1 / 2
    assert (found["precision NA"], found["recall NA"], found["F1 NA"]) == (1, 1 / 2, 2 / 3)
    assert found["F1"] == pytest.approx((1 / 2 + 2 / 3) / 5)
    assert found["F1 without NA"] == pytest.approx((1 / 2) / 4)
    assert found["micro F1"] == pytest.approx(2 * 2 / (4 + 3))
    assert found["subset accuracy"] == found["subset accuracy without NA"] == 1 / 3
    assert found["AUC-ROC NA"] == pytest.approx((1 / 2 + 1) / 2)
    assert found["AUC-ROC OIO"] is None  # nobody has it


def test_without_na_asks_for_the_relations_alone() -> None:
    found = figures_of(["TR1 NA", "NA", "TR1"], ["TR1", "NA OR", "TR1 NA"])

    assert (found["subset accuracy"], found["subset accuracy without NA"]) == (0, 2 / 3)


def test_the_printed_averages_can_be_read_in_this_way() -> None:
    """Tables 1 and 7: five times a figure with NA, less four times that without, is a figure of NA."""
    rows = {
        "GPT-4, V+T, precision": (40.38, 35.95, 58.11),
        "GPT-4, V+T, recall": (22.56, 6.69, 86.04),
        "LLaVA, IN, precision": (25.12, 31.40, 0.0),
        "LLaVA, UH, precision": (44.35, 30.44, 100.0),
    }

    for with_na, without_na, of_na in rows.values():
        assert 5 * with_na - 4 * without_na == pytest.approx(of_na, abs=0.05)


# --- bounds ---


def filled(name: str, answers: Sequence[str | None], fill: str) -> float:
    """A figure over `TRUTHS` where `fill` stands for missing answers: `wrong`, `right`, or labels."""
    bounds = {"wrong": SCORING.if_wrong, "right": SCORING.if_right}
    scores: list[Score] = []
    for true, given in zip(TRUTHS, answers, strict=True):
        one = sample(true)
        scores.append(bounds[fill](one) if given is None else score_labels(one, given.split()))
    found = METRICS[name].of(scores)
    assert found is not None
    return found


@pytest.mark.parametrize("name", [name for name in METRICS if not name.startswith("AUC-PR")])
def test_bounds_hold_whatever_the_missing_answers_are(name: str) -> None:
    lot = random.Random(3)
    low, high = (filled(name, [*ANSWERS[:5], None, None, None], fill) for fill in ("wrong", "right"))

    for _ in range(200):
        made_up = [" ".join(lot.sample(LABELS, lot.randint(1, 5))) for _ in range(3)]
        assert low - 1e-12 <= filled(name, [*ANSWERS[:5], *made_up], "") <= high + 1e-12


def test_a_figure_of_sums_has_an_interval_around_it() -> None:
    truths, answers = drawn(1, 200)
    scores = [score_labels(sample(true), given.split()) for true, given in zip(truths, answers, strict=True)]
    rows = [
        Scored(
            cluster=str(place),
            score=score,
            if_wrong=SCORING.if_wrong(sample(true)),
            if_right=SCORING.if_right(sample(true)),
        )
        for place, (true, score) in enumerate(zip(truths, scores, strict=True))
    ]
    by_hand = statistics.cluster_bootstrap(
        lambda places: METRICS["F1"].of([scores[at] for at in places]),
        range(200),
        [str(place) for place in range(200)],
        seed=0,
    )

    found = figure(METRICS["F1"], rows)

    assert found.interval is not None
    assert by_hand is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((by_hand.low, by_hand.high))
    assert found.interval.low < (found.value or 0) < found.interval.high


# --- whole runs ---

KEY = key_of(11)
VOTES = [
    [row(KEY, "1"), row(KEY, "8"), row(KEY, "Regular_Object", "", "")],
    [row(key_of(12), "3"), row(key_of(12), "5"), row(key_of(12), "")],
]


def test_true_labels_are_all_that_any_annotator_says(tmp_path: Path) -> None:
    task = Mac(data=world(tmp_path, true=(3, 3), rows=VOTES), vlm=model(), context="I")

    assert [each.target for each in task.samples()] == [{"labels": ["TR1", "OR", "NA"]}, {"labels": ["OIO"]}]
    assert task.label() == "scripted (I)"


def test_a_perfect_classifier_is_right_throughout(tmp_path: Path) -> None:
    data = world(tmp_path, true=(3, 3), rows=VOTES)
    samples = Mac(data=data, vlm=model(), context="I").samples()
    true: dict[str, Any] = {each.image.sha256: each.target for each in samples if each.image is not None}

    def perfect(request: ChatRequest) -> dict[str, list[str]]:
        return {"categories": true[picture_of(request)]["labels"][::-1]}

    vlm = model(classify_from_picture=perfect)
    run = evaluate(Mac(data=data, vlm=vlm, context="I"), out=tmp_path / "run")
    figures = shown(run)

    assert [answer.prediction.value for answer in run.answers] == [["TR1", "OR", "NA"], ["OIO"]]
    assert figures["subset accuracy"] == figures["micro F1"] == figures["AUC-ROC"] == 100
    assert figures["F1"] == pytest.approx(100 * 4 / 5)  # nobody has TR2
    assert run.figures[0].metric == "F1"


@pytest.mark.parametrize(
    ("context", "before", "read"),
    [
        ("UH", ["unusual"], "ODD."),
        ("IN", ["narration"], "NARRATED."),
        ("V+T", ["objects", "scene_text"], "Objects: cup, brick"),
        ("T_V", ["combine", "narration", "objects", "scene_text", "unusual"], "COMBINED."),
        ("text-only", [], "No description of the image is available."),
    ],
)
def test_a_context_is_what_the_classifier_reads(context: str, before: list[str], read: str, tmp_path: Path) -> None:
    asked: list[ChatRequest] = []
    both = requests_of(asked, classify_atypicality={"categories": ["NA"]})

    evaluate(Mac(data=world(tmp_path, true=(3,)), vlm=both, context=context), out=tmp_path / "run")

    assert sorted(name_of(request) for request in asked[:-1]) == before
    assert read in asked[-1].messages[-1].text


def test_an_abstaining_classifier_is_between_the_bounds(tmp_path: Path) -> None:
    data = world(tmp_path, true=(3, 3), rows=VOTES)

    run = evaluate(Mac(data=data, vlm=model(classify_from_picture=REFUSAL), context="I"), out=tmp_path / "run")
    found = run.figure("micro F1")

    assert (found.value, found.if_wrong, found.if_right, found.answered) == (0, 0, 1, 0)
    assert run.totals["outcomes"] == {"refused": 2}


@pytest.mark.parametrize("context", ["I+T_V", "UH+s_IN", "I+s_true", "X"])
def test_contexts_with_two_things_are_no_contexts_here(context: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="context"):
        Mac(data=world(tmp_path), vlm=model(), context=context).evaluation()


@pytest.mark.parametrize("value", ["TR3", ["or"], [1], None], ids=repr)
def test_what_is_no_label_has_no_score(value: Any) -> None:
    with pytest.raises(UsageError, match="is no label"):
        score_labels(sample("TR1"), value)


def test_what_was_missed_and_what_was_wrong_is_noted() -> None:
    assert score_labels(sample("TR1 OR"), ["OR", "NA"]).notes == {"missed": ["TR1"], "wrong": ["NA"]}
    assert score_labels(sample("TR1"), "TR1").notes == {}
    assert not math.isnan(score_labels(sample("TR1"), []).values["subset accuracy"])
