"""BLEU-4 in two conventions and ROUGE-L: against calculations by hand and sacrebleu's own corpus score."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from askance.errors import MissingExtra
from askance.evals.sample import Sample, Score
from askance.evals.suite.text_overlap import (
    PLAIN_WORDS,
    ROUGE_L,
    SACREBLEU,
    WORDS,
    BleuConvention,
    overlap_scorer,
    overlap_values,
    plain_words,
    rouge_l,
)

TEXTS = st.text(alphabet="ab c.,'-D\n2", max_size=30)


def scored(convention: BleuConvention, *pairs: tuple[str, Sequence[str]]) -> list[Score]:
    return [Score(values=convention.counts(said, references)) for said, references in pairs]


def grams(score: Score) -> list[float]:
    return [score.values[f"right {n}-grams"] for n in (1, 2, 3, 4)]


# --- BLEU-4 of plain words ---


def test_bleu_of_the_corpus_by_hand() -> None:
    first, second = scored(
        PLAIN_WORDS,
        ("A cat sat on the mat.", ["The cat sat on the mat", "a cat is here"]),
        ("two dogs run fast", ["two dogs run", "dogs run very fast today"]),
    )
    # right of all: 1-grams 6/6 + 4/4, 2-grams 5/5 + 2/3, 3-grams 3/4 + 1/2, 4-grams 2/3 + 0/1; "a cat" is in the second
    assert grams(first) == [6, 5, 3, 2]
    assert grams(second) == [4, 2, 1, 0]
    assert (first.values["reference words"], second.values["reference words"]) == (6, 3)

    product = (10 / 10) * (7 / 8) * (4 / 6) * (2 / 4)

    assert PLAIN_WORDS.metric.of([first, second]) == pytest.approx(product**0.25)


def test_a_short_text_is_penalised() -> None:
    scores = scored(PLAIN_WORDS, ("a cat sat on the", ["a cat sat on the mat in peace"]))

    assert PLAIN_WORDS.metric.of(scores) == pytest.approx(math.exp(1 - 8 / 5))


@pytest.mark.parametrize("said", ["", "dog", "..."])
@pytest.mark.parametrize("convention", [PLAIN_WORDS, SACREBLEU], ids=["plain words", "sacrebleu"])
def test_bleu_of_nothing_right_is_zero(said: str, convention: BleuConvention) -> None:
    assert convention.metric.of(scored(convention, (said, ["a cat sat on the mat"]))) == 0


def test_plain_words_are_in_lower_case() -> None:
    assert plain_words('A "Cat", isn\'t it? 2.5 m -- high!') == "a cat isn't it 2.5 m high"
    assert plain_words("...") == ""


# --- BLEU-4 as sacrebleu has it ---


def test_bleu_by_sacrebleu_keeps_case_and_punctuation_and_smooths() -> None:
    scores = scored(SACREBLEU, ("A cat sat.", ["a cat sat there."]))

    assert grams(scores[0]) == [3, 1, 0, 0]
    # "a" is not "A"; 3-grams and 4-grams are none right of 2 and 1, and count as 1/2 and 1/4 of one
    product = (3 / 4) * (1 / 3) * (1 / (2 * 2)) * (1 / (4 * 1))
    assert SACREBLEU.metric.of(scores) == pytest.approx(math.exp(1 - 5 / 4) * product**0.25)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5))
def test_bleu_of_sums_is_that_of_corpus_bleu(pairs: list[tuple[str, str]]) -> None:
    whole = sacrebleu.corpus_bleu(  # pyright: ignore[reportUnknownMemberType]
        [said for said, _ in pairs], [[reference for _, reference in pairs]]
    )

    found = SACREBLEU.metric.of(scored(SACREBLEU, *((said, [reference]) for said, reference in pairs)))

    assert found == pytest.approx(whole.score / 100)


# --- ROUGE-L ---


def longest_common(one: Sequence[str], other: Sequence[str]) -> int:
    """The length of the longest common subsequence, by its definition."""
    if not one or not other:
        return 0
    if one[0] == other[0]:
        return 1 + longest_common(one[1:], other[1:])
    return max(longest_common(one[1:], other), longest_common(one, other[1:]))


@given(*[st.lists(st.sampled_from("abcd"), min_size=1, max_size=6)] * 2)
def test_rouge_l_is_the_f1_of_its_definition(said: list[str], reference: list[str]) -> None:
    common = longest_common(said, reference)
    precision, recall = common / len(said), common / len(reference)
    by_hand = 2 * precision * recall / (precision + recall) if common else 0.0

    assert rouge_l(" ".join(said), " ".join(reference)) == pytest.approx(by_hand)


def test_rouge_l_knows_no_case_no_punctuation_and_no_stems() -> None:
    assert rouge_l("The DOG, barks!", "the dog barks") == 1
    assert rouge_l("barking", "barks") == 0
    assert rouge_l("", "the dog barks") == 0


# --- the scorer ---


SAMPLES = {
    "a": ("The chef is a fish.", "The chef is a fish, which is odd."),
    "b": ("", "It is a pun on taking stock."),
}


def scores_of(pairs: Mapping[str, tuple[str, str]]) -> list[Score]:
    scorer = overlap_scorer()
    return [
        found
        for name, (said, reference) in pairs.items()
        if isinstance(found := scorer.score(Sample(id=name, target=reference), said), Score)
    ]


def test_an_empty_text_counts_with_nothing_right() -> None:
    both, one = scores_of(SAMPLES), scores_of({"a": SAMPLES["a"]})

    assert ROUGE_L.of(both) == pytest.approx((ROUGE_L.of(one) or 0) / 2)
    assert both[1].values["words"] == 0
    assert (SACREBLEU.metric.of(both) or 0) < (SACREBLEU.metric.of(one) or 0)
    assert WORDS.of(both) == 2.5


def test_bounds_are_an_empty_text_and_the_reference() -> None:
    scorer, sample = overlap_scorer(), Sample(id="a", target=SAMPLES["a"][1])

    right, wrong = scorer.if_right(sample), scorer.if_wrong(sample)

    assert [metric.of([right]) for metric in scorer.metrics] == [pytest.approx(1), 1, None]
    assert [metric.of([wrong]) for metric in scorer.metrics] == [0, 0, None]


def test_the_reference_may_stand_elsewhere_in_the_target() -> None:
    scorer = overlap_scorer(lambda sample: sample.target["text"])

    found = scorer.score(Sample(id="a", target={"text": "a pun"}), "a pun")

    assert isinstance(found, Score)
    assert found.values == overlap_values("a pun", "a pun")


@pytest.mark.parametrize(("package", "figure"), [("sacrebleu", "BLEU"), ("rouge_score", "ROUGE-L")])
def test_without_a_package_the_error_names_the_extra(
    package: str, figure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(MissingExtra, match=rf"is not installed, which {figure} .* 'askance\[captions\]'"):
        overlap_scorer()
