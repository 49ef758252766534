"""`whoops/identify`: accuracy over pairs, both of a pair, contexts, controls, and what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest
from askance.errors import BadData, UsageError
from askance.evals import evaluate
from askance.evals.controls import controlled
from askance.evals.whoops import Identify
from tests.evals.pittads.worlds import shown
from tests.evals.whoops import files
from tests.evals.whoops.files import IDS
from tests.evals.whoops.worlds import REFUSAL, by_picture, description, model


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three pairs: two of 'Physical rules' (the first and the third), one of 'Nutrition mismatch'."""
    folder = files.first_release(tmp_path / "data")
    files.pairs(folder / "pairs")
    return folder


def said(weird: tuple[str, ...]) -> Any:
    """Calls the pictures of these rows weird, and every other normal."""
    return by_picture("answer", dict.fromkeys(weird, "weird"), "normal")


def test_figures_over_pairs_by_hand(data: Path, tmp_path: Path) -> None:
    run = evaluate(Identify(data=data, vlm=model(identify_from_picture=said(IDS[:2]))), out=tmp_path / "run")

    assert shown(run) == {  # weird: right, right, wrong; normal: all right
        "accuracy": pytest.approx(100 * 5 / 6),
        "both of a pair": pytest.approx(100 * 2 / 3),
        "accuracy of weird": pytest.approx(100 * 2 / 3),
        "accuracy of normal": 100,
        "said weird": pytest.approx(100 * 2 / 6),
        "accuracy: Nutrition mismatch": 100,
        "accuracy: Physical rules": 75,
    }
    assert (run.figure("accuracy").samples, run.figure("accuracy").clusters) == (6, 3)


def test_one_who_always_says_weird_is_at_chance_and_right_about_no_pair(data: Path, tmp_path: Path) -> None:
    run = evaluate(Identify(data=data, vlm=model(identify_from_picture={"answer": "weird"})), out=tmp_path / "run")

    assert [shown(run)[name] for name in ("accuracy", "both of a pair", "said weird")] == [50, 0, 100]


def test_refusals_are_between_the_bounds(data: Path, tmp_path: Path) -> None:
    def half(request: ChatRequest) -> Any:
        found = said(IDS[:3])(request)
        return REFUSAL if found["answer"] == "normal" else found

    run = evaluate(Identify(data=data, vlm=model(identify_from_picture=half)), out=tmp_path / "run")
    both = run.figure("both of a pair")

    assert (both.value, both.if_wrong, both.if_right) == (0, 0, 1)
    assert run.totals["outcomes"] == {"answered": 3, "refused": 3}
    assert run.figure("accuracy").if_right == 1


@pytest.mark.parametrize(
    ("context", "read"),
    [("caption", "CAPTIONED."), ("text-only", "No description of the image is available.")],
)
def test_a_context_is_what_is_read(context: str, read: str, data: Path, tmp_path: Path) -> None:
    texts: list[str] = []

    def answer(request: ChatRequest) -> Any:
        texts.append(description(request))
        return {"answer": "weird"}

    who = model(caption={"description": "CAPTIONED."}, identify_from_description=answer)
    run = evaluate(Identify(data=data, vlm=who, context=context), out=tmp_path / "run")

    assert {*texts} == {read}
    assert run.figure("accuracy").value == 0.5


def test_the_oracle_reads_the_captions_of_both(data: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs"
    pairs.mkdir()
    row = {"weird": "w.png", "normal": "n.png", "weird_caption": "A cup of bricks", "normal_caption": "A cup"}
    for name in ("w.png", "n.png"):
        (pairs / name).write_bytes((data / "whoops_images" / f"{IDS[0]}.png").read_bytes())
    files.write_table(pairs / "pairs.csv", [row])

    def answer(request: ChatRequest) -> Any:
        return {"answer": "weird" if "bricks" in description(request) else "normal"}

    llm = model(identify_from_description=answer)
    run = evaluate(Identify(data=pairs, llm=llm, context="gold-caption"), out=tmp_path / "run")

    assert shown(run)["accuracy"] == 100
    with pytest.raises(BadData, match="The normal image of the pair 'w00-brick-cup' has no caption"):
        Identify(data=data, llm=llm, context="gold-caption").evaluation()


def test_a_blind_model_does_as_well_on_swapped_pictures(data: Path, tmp_path: Path) -> None:
    blind = model(identify_from_picture={"answer": "weird"})
    plain = Identify(data=data, vlm=blind)

    runs = [evaluate(task, out=tmp_path / str(n)) for n, task in enumerate((plain, controlled(plain, "swapped-image")))]

    assert shown(runs[0]) == shown(runs[1])


def test_folds_split_whole_pairs_and_hold_each_once(tmp_path: Path) -> None:
    data = files.first_release(tmp_path / "data")
    files.pairs(data / "pairs", count=5)
    parts = [[sample.id for sample in Identify(data=data, vlm=model(), fold=fold).samples()] for fold in range(5)]

    assert [len(part) for part in parts] == [2] * 5
    assert sorted(name for part in parts for name in part) == sorted(
        sample.id for sample in Identify(data=data, vlm=model()).samples()
    )
    assert all(len({name.partition("#")[0] for name in part}) == 1 for part in parts)
    listed = [name.partition("#")[0] for part in parts[1:3] for name in part[:1]]
    task = Identify(data=data, vlm=model(), ids=listed, fold=1)
    assert [sample.id for sample in task.samples()] == parts[1]
    with pytest.raises(UsageError, match=r"cannot be 5\. It takes a whole number from 0 to 4\."):
        Identify(data=data, vlm=model(), fold=5).evaluation()


def test_what_cannot_be_is_said(data: Path, tmp_path: Path) -> None:
    who = model()
    with pytest.raises(UsageError, match=r"no context 'X'\. Choose one of I, caption"):
        Identify(data=data, vlm=who, context="X").evaluation()
    with pytest.raises(UsageError, match=r"looks at the picture\. Give a `vlm`"):
        Identify(data=data, llm=who).evaluation()
    with pytest.raises(BadData, match="holds no pairs"):
        Identify(data=files.image_folder(tmp_path / "other"), vlm=who).evaluation()
    with pytest.raises(UsageError, match=r"cannot be 0\. It takes a whole number from 1\."):
        Identify(data=data, vlm=who, limit=0).evaluation()
    assert len(Identify(data=data, vlm=who, limit=1).samples()) == 2
