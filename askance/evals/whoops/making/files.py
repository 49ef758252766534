"""Files of questions that were made: those kept, those dropped with their reasons, and a sheet for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from askance.errors import UsageError
from askance.evals.negatives import HardNegative, OptionSet, Sheet, draw_sheet, write_sheet
from askance.evals.storage import write_lines, write_whole
from askance.evals.suite.options import lot

if TYPE_CHECKING:
    from askance.evals.whoops.making.gates import Pair
    from askance.images import Image

KEPT, DROPPED = "questions.json", "dropped.jsonl"
QUESTION = "Is this the right answer to the question about the image?"
IMAGES = 100
"""Images of a sheet; the paper had people check 300 questions."""


def write_questions(out: Path, pairs: Mapping[str, Sequence[Pair]]) -> None:
    """Writes `questions.json`, question and answer by image, and `dropped.jsonl`, why each other was dropped."""
    kept = {
        key: [[pair.question, pair.answer] for pair in found if pair.stopped is None] for key, found in pairs.items()
    }
    write_whole(out / KEPT, json.dumps(kept, ensure_ascii=False, indent=1) + "\n")
    dropped = (
        {"image": key, "gate": pair.stopped, "reason": pair.reason, "question": pair.question, "answer": pair.answer}
        for key, found in pairs.items()
        for pair in found
        if pair.stopped is not None
    )
    write_lines(out / DROPPED, dropped)


def write_validation(
    out: Path,
    kept: Mapping[str, Sequence[Pair]],
    *,
    images: Callable[[str], Image | None],
    count: int = IMAGES,
    seed: int = 0,
) -> Sheet:
    """Writes a blind sheet for people: `sheet.html`, `sheet.csv`, and `key.json`, which they must not see.

    A quarter of its lines are questions with the answer of another image, as in section 4.2. What people answer is read
    by `askance.evals.negatives.read_ratings`.

    Args:
        out: folder for the files.
        kept: by image the pairs that passed every gate.
        images: finds an image by its id.
        count: images at most.
        seed: of images, order and wrong answers.

    Raises:
        UsageError: there is nothing to sample.
        BadData: none of the images could be shown.
    """
    sets = [_options(key, kept, seed=seed) for key, pairs in kept.items() if pairs]
    if not any(each.negatives for each in sets):
        raise UsageError(
            f"The questions of {len(sets):,} images are too few for a sheet.",
            hint="Wrong answers are those of other images: it takes questions of two that are answered otherwise.",
        )
    sheet = draw_sheet([each for each in sets if each.negatives], count=count, seed=seed)
    write_sheet(sheet, out, images=images, question=QUESTION)
    return sheet


def _options(key: str, kept: Mapping[str, Sequence[Pair]], *, seed: int) -> OptionSet:
    """The pairs of an image as statements, and to three of them one with a wrong answer."""
    true = tuple(dict.fromkeys(_shown(pair.question, pair.answer) for pair in kept[key]))
    own = {pair.answer.casefold() for pair in kept[key]}
    others = [pair.answer for other, pairs in kept.items() if other != key for pair in pairs]
    wrong = sorted({each for each in others if each.casefold() not in own}, key=lambda each: lot(seed, key, each))
    made = [_shown(pair.question, answer) for pair, answer in zip(kept[key], wrong, strict=False)]
    negatives = tuple(
        HardNegative(key=key, text=text, source=true[0]) for text in made[: -(-len(true) // 3)] if text not in true
    )
    return OptionSet(
        key=key, true=true, options=(*true, *(negative.text for negative in negatives)), negatives=negatives
    )


def _shown(question: str, answer: str) -> str:
    return f"{question} {answer}"
