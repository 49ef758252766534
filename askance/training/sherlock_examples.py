"""Examples of Sherlock: a region of a picture with its clue and its inference, or the clue and the inference alone.

Regions are highlighted as the authors draw them (section 5). Every observation is two pairs, so that a multitask model
may draw either at even odds ("Multitask learning"); `kind` tells the two apart. Texts alone are for a model
that maps clues to inferences (appendix B).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from askance.evals.sherlock import Sherlock
from askance.evals.sherlock.pools import view_of
from askance.training.example_splits import split_by_group
from askance.training.training_set import MadeSet, PairExample, Source, Split, TextExample, TrainingExample

SherlockForm: TypeAlias = Literal["pairs", "text"]

LICENCE = (
    "The annotations of Sherlock are CC BY 4.0, of their authors; its pictures are those of Visual Genome and VCR, "
    "which have terms of their own."
)
OFFICIAL = (
    "The validation corpus chooses the checkpoint, as in the paper: figures over that corpus are no test of it, those "
    "of the leaderboard's test are"
)


def sherlock_set(
    folder: str | Path,
    *,
    images: str | Path | None = None,
    form: SherlockForm = "pairs",
    official: bool = False,
    validation: float = 0.02,
    seed: int = 0,
) -> MadeSet:
    """The examples of the training corpus, and some for validation.

    Args:
        folder: of the data set.
        images: folder of the pictures; by default `images` of the folder.
        form: regions with texts, or texts alone.
        official: whether the validation corpus validates, as in the paper; else a share of the training pictures does,
            so that the suite's tasks over the validation corpus stay a test.
        validation: that share.
        seed: of the drawing of these pictures.

    Raises:
        BadData: the folder lacks a corpus that is needed, or cannot be read.
        UsageError: the share is none.
    """
    train = Sherlock.open(folder, images=images, split="train")
    left_out = Counter[str]()
    examples = [*_examples(train, form, left_out)]
    notes = list(train.notes)
    splits: dict[Split, list[TrainingExample]]
    if official:
        held = Sherlock.open(folder, images=images, split="val")
        splits = {"train": examples, "validation": [*_examples(held, form, left_out)]}
        notes += [*held.notes, OFFICIAL]
    else:
        splits = split_by_group(examples, validation=validation, seed=seed)
    drawn = {} if official else {"validation": validation, "seed": seed}
    origin = {"command": "sherlock", "form": form, "official": official, **drawn}
    return MadeSet(splits, Source(origin=origin, licences=(LICENCE,), left_out=left_out, notes=tuple(notes)))


def _examples(data: Sherlock, form: SherlockForm, left_out: Counter[str]) -> Iterator[TrainingExample]:
    pictures = {url: data.picture(url) for url in data.urls} if form == "pairs" else {}
    for instance in data.instances:
        if form == "text":
            yield TextExample(input=instance.clue, target=instance.inference, group=instance.url)
            continue
        image = pictures[instance.url]
        if image is None:
            left_out["the folder has no picture of it"] += 2
            continue
        view = view_of(instance.boxes, show="highlight")
        yield PairExample(image=image, view=view, text=instance.clue, kind="clue", group=instance.url)
        yield PairExample(image=image, view=view, text=instance.inference, kind="inference", group=instance.url)
