"""`whoops/captioning`: BLEU-4 and CIDEr against calculations by hand, in runs, and without their packages."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest
from askance.errors import MissingExtra, UsageError
from askance.evals import evaluate
from askance.evals.suite.text_overlap import plain_words
from askance.evals.whoops import Captioning
from askance.evals.whoops.captioning import CIDER_METRIC, caption_score, cider
from tests.evals.pittads.worlds import shown
from tests.evals.whoops import files
from tests.evals.whoops.files import IDS, NAMES
from tests.evals.whoops.worlds import REFUSAL, model, seen


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return files.first_release(tmp_path / "data")


# --- CIDEr ---


def by_hand(captions: Sequence[tuple[str, Sequence[str]]]) -> list[float]:
    """CIDEr-D as the paper of CIDEr writes it, without the package."""

    def grams(text: str, n: int) -> Counter[tuple[str, ...]]:
        words = text.split()
        return Counter(tuple(words[at : at + n]) for at in range(len(words) - n + 1))

    documents = [
        {n: {gram for text in references for gram in grams(text, n)} for n in range(1, 5)} for _, references in captions
    ]

    def weights(text: str, n: int) -> dict[tuple[str, ...], float]:
        frequency = {gram: sum(gram in document[n] for document in documents) for gram in grams(text, n)}
        return {
            gram: count * (math.log(len(captions)) - math.log(max(1, frequency[gram])))
            for gram, count in grams(text, n).items()
        }

    def alike(said: str, reference: str, n: int) -> float:
        one, other = weights(said, n), weights(reference, n)
        norm = math.sqrt(sum(w * w for w in one.values())) * math.sqrt(sum(w * w for w in other.values()))
        shared = sum(min(w, other.get(gram, 0.0)) * other.get(gram, 0.0) for gram, w in one.items())
        # the authors' code counts 2-grams for the length
        apart = (len(said.split()) - 1) - (len(reference.split()) - 1)
        return (shared / norm if norm else 0.0) * math.exp(-(apart**2) / (2 * 6.0**2))

    return [
        10 * sum(alike(said, each, n) for each in references for n in range(1, 5)) / 4 / len(references)
        for said, references in captions
    ]


CAPTIONS = [
    ("a cat sat on the mat", ["the cat sat on the mat", "a cat on a mat"]),
    ("two dogs run in the snow", ["two dogs run through snow", "dogs in the snow run fast today"]),
    ("a wolf howls", ["a wolf howls at the sun", "the wolf howls"]),
    ("nothing of it", ["a horse of gold", "a golden horse"]),
]


def test_cider_is_that_of_its_definition() -> None:
    found = cider(CAPTIONS)

    assert found == pytest.approx(by_hand(CAPTIONS))
    assert found[0] > found[3]
    assert min(found) >= 0


def test_a_caption_that_is_its_only_reference_has_ten() -> None:
    same = [(f"picture {n} shows thing {n} here", [f"picture {n} shows thing {n} here"]) for n in range(3)]

    assert cider(same) == pytest.approx([10, 10, 10])


def test_one_image_has_no_cider() -> None:
    assert cider([("a cat", ["a cat"])]) == [0.0]
    assert cider([]) == []
    assert cider([("", [""]), ("a", [""])]) == [0.0, 0.0]


def test_the_metric_weighs_by_the_scores_that_it_is_given() -> None:
    scores = [caption_score(said, references) for said, references in CAPTIONS]

    assert CIDER_METRIC.of(scores) == pytest.approx(sum(by_hand(CAPTIONS)) / 4)
    assert CIDER_METRIC.of(scores[:2]) == pytest.approx(sum(by_hand(CAPTIONS[:2])) / 2)


# --- runs ---


def saying(request: ChatRequest) -> Any:
    """The second reference of the first pictures, something else of the rest."""
    captions = {row["image_id"]: row["crowd_captions"][1] for row in files.rows()[:3]}
    return {"description": captions.get(seen(request), "A dog")}


def test_figures_of_a_run_by_hand(data: Path, tmp_path: Path) -> None:
    run = evaluate(Captioning(data=data, vlm=model(caption=saying)), out=tmp_path / "run")
    said = [row["crowd_captions"][1] if at < 3 else "A dog" for at, row in enumerate(files.rows())]
    captions = [
        (plain_words(text), [plain_words(other) for other in row["crowd_captions"]])
        for text, row in zip(said, files.rows(), strict=True)
    ]
    figures = shown(run)

    assert figures["CIDEr"] == pytest.approx(100 * sum(by_hand(captions)) / 5)
    # 10 words each of three pictures right; "a" of two is right: 32 of 34 words, 27 of 29, 24 of 24, 21 of 21
    product = (32 / 34) * (27 / 29) * (24 / 24) * (21 / 21)
    assert figures["BLEU-4"] == pytest.approx(100 * math.exp(1 - 50 / 34) * product**0.25)
    assert figures["BLEU-4: Nutrition mismatch"] == 100
    assert figures["BLEU-4: Art knowledge"] == 0
    assert len(NAMES) == len(run.answers)


def test_a_non_answer_is_an_empty_caption(data: Path, tmp_path: Path) -> None:
    def half(request: ChatRequest) -> Any:
        return REFUSAL if seen(request) == IDS[0] else saying(request)

    run = evaluate(Captioning(data=data, vlm=model(caption=half)), out=tmp_path / "run")

    for name in ("CIDEr", "BLEU-4"):
        figure = run.figure(name)
        assert (figure.samples, figure.answered, figure.value) == (5, 4, figure.if_wrong)
        assert figure.if_right is not None
        assert figure.if_wrong is not None
        assert figure.if_wrong < figure.if_right


@pytest.mark.parametrize("context", ["text-only", "IN"])
def test_captions_may_be_written_from_words(context: str, data: Path, tmp_path: Path) -> None:
    who = model(
        narration={"description": "N."}, caption_from_description={"description": files.rows()[0]["selected_caption"]}
    )
    run = evaluate(Captioning(data=data, vlm=who, context=context, limit=2), out=tmp_path / "run")

    assert shown(run)["BLEU-4: Physical rules"] == 100


@pytest.mark.parametrize(("package", "figure"), [("sacrebleu", "BLEU"), ("pycocoevalcap", "CIDEr")])
def test_without_a_package_nobody_is_asked(
    package: str, figure: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(MissingExtra, match=rf"{package} is not installed, which {figure} .* 'askance\[captions\]'"):
        Captioning(data=data, vlm=model()).evaluation()


def test_a_caption_of_a_caption_is_no_task(data: Path) -> None:
    with pytest.raises(UsageError, match="'whoops/captioning' has no context 'caption'"):
        Captioning(data=data, vlm=model(), context="caption").evaluation()
