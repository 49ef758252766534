"""The report of `askance data check newyorker`: what a folder holds, and how that compares with the published data.

It checks as well whether folds and captions are as the paper builds them (section 2.3, appendix C).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from askance.amounts import many
from askance.errors import BadData, BadImage
from askance.evals.newyorker.dataset import Item, NewYorker
from askance.evals.newyorker.layout import (
    LEADERBOARD,
    LETTERS,
    OFFICIAL_FOLDS,
    PICTURE_ARCHIVE,
    SPLITS,
    TASKS,
    Kind,
    Split,
    TaskName,
)
from askance.evals.suite.files import Counted, FolderReport, Problems

CARTOONS = 704
"""Cartoons of the paper (section 2); the file of descriptions has one more."""
SIZES: Mapping[TaskName, Mapping[Split, int]] = {
    "matching": {"train": 1_600, "validation": 538, "test": 538},
    "ranking": {"train": 1_600, "validation": 523, "test": 523},
    "explanation": {"train": 391, "validation": 130, "test": 130},
}
"""Items of a fold, means over five folds (Table 1); those of training with matching and ranking are rounded there."""
EXPLANATIONS = 651
"""Explanations (section 2.2)."""
FOLD_0: Mapping[TaskName, int] = {"matching": 528, "ranking": 513, "explanation": 131}
"""Items that fold 0 tests, as the hub counts them."""
LEADERBOARD_SIZES: Mapping[TaskName, int] = {"matching": 830, "ranking": 664}
"""Items of the leaderboard's test sets."""
WRONG = 4
"""How often a caption is wrong for each time that it is right; then captions alone do not say which is right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldSource:
    """Where one fold of a task is read from."""

    task: TaskName
    fold: int
    kind: Kind
    home: str
    """The folder or the archive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewYorkerReport(FolderReport):
    """What a folder of the data set holds."""

    sources: tuple[FoldSource, ...]
    counts: Mapping[str, Counted]
    """Counts of `cartoons`, `described`, `pictures` and `explanations`."""
    items: Mapping[TaskName, Mapping[Split, Counted]]
    """Items by task and split, means over the folds; each counts once, however many descriptions its cartoon has."""
    fold_0: Mapping[TaskName, Counted]
    """Items that fold 0 tests."""
    leaderboard: Mapping[TaskName, Counted]
    captions: int
    """Captions of matching, counted in each split of each fold."""
    unbalanced: int
    """Those that are not wrong four times for each time that they are right."""


Key = tuple[TaskName, int]
"""A task and a fold."""
Splits = Mapping[Split, Sequence[Item]]


def check(folder: str | Path) -> NewYorkerReport:
    """Reads all files of a folder and reports what is there; errors of single rows are collected, not raised.

    Args:
        folder: of the data set, in any of the layouts.

    Raises:
        BadData: the folder is missing or holds nothing of the data set.
        MissingExtra: there is an Arrow file, and pyarrow is not installed.
    """
    problems: Problems = []
    data = NewYorker.open(folder, problems=problems)
    by_task = {key: data.splits(*key) for key in data.files.tasks}
    official = {key: splits for key, splits in by_task.items() if key[1] != LEADERBOARD}
    contests = [contest for contest in data.contests if contest > 0]
    shown = [contest for contest in data.contests if _shows(data, contest, problems)]
    captions, unbalanced = 0, list[str]()
    for (task, fold), splits in official.items():
        for split, items in splits.items() if task == "matching" else ():
            captions += len({text for item in items for text in item.choices})
            unbalanced += [f"fold {fold}, {split}: {text!r}" for text in _unbalanced(items)]
    return NewYorkerReport(
        folder=str(folder),
        sources=tuple(
            FoldSource(task=files.task, fold=files.fold, kind=files.kind, home=files.home)
            for files in data.files.tasks.values()
        ),
        counts={
            "cartoons": Counted(found=len(contests), published=CARTOONS),
            "described": Counted(
                found=sum(bool(data.cartoon(each).annotations) for each in contests), published=CARTOONS
            ),
            "pictures": Counted(found=sum(contest > 0 for contest in shown), published=CARTOONS),
            "explanations": Counted(found=len(_explained(official)), published=EXPLANATIONS),
        },
        items=dict(_sizes(official)),
        fold_0={
            task: Counted(found=len(official[task, 0].get("test", ())), published=count)
            for task, count in FOLD_0.items()
            if (task, 0) in official
        },
        leaderboard={
            task: Counted(found=len(by_task[task, LEADERBOARD].get("test", ())), published=count)
            for task, count in LEADERBOARD_SIZES.items()
            if (task, LEADERBOARD) in by_task
        },
        captions=captions,
        unbalanced=len(unbalanced),
        notes=tuple(_notes(data, official, shown)),
        problems=tuple(
            dict.fromkeys(
                [error.message for error in problems] + [*_problems(data, official, shown), *_uneven(unbalanced)]
            )
        ),
    )


def _shows(data: NewYorker, contest: int, problems: Problems) -> bool:
    """Whether the picture of a contest is there; one that cannot be used is a problem."""
    try:
        picture = data.cartoon(contest).load()
        return picture is not None and bool(picture.info)
    except BadImage as error:
        problems.append(BadData(f"The picture of contest {contest}: {error.message}", hint="Fetch it again."))
        return True


def _distinct(items: Sequence[Item]) -> list[Item]:
    """Each item once, however many descriptions its cartoon has."""
    return [*{(item.contest, item.choices): item for item in items}.values()]


def _explained(official: Mapping[Key, Splits]) -> set[tuple[int, tuple[str, ...]]]:
    return {
        (item.contest, item.choices)
        for (task, _), splits in official.items()
        for items in splits.values()
        for item in items
        if task == "explanation"
    }


def _sizes(official: Mapping[Key, Splits]) -> Iterator[tuple[TaskName, Mapping[Split, Counted]]]:
    for task in TASKS:
        folds = [splits for (name, _), splits in official.items() if name == task]
        if folds:
            yield (
                task,
                {
                    split: Counted(
                        found=round(fmean(len(_distinct(splits.get(split, ()))) for splits in folds)),
                        published=SIZES[task][split],
                    )
                    for split in SPLITS
                },
            )


def _unbalanced(items: Sequence[Item]) -> list[str]:
    """Captions of a split of matching that answers alone may tell by how often they are shown."""
    right, shown = Counter[str](), Counter[str]()
    for item in _distinct(items):
        right[item.choices[LETTERS.index(item.label)]] += 1
        shown.update(item.choices)
    return [text for text, count in shown.items() if count != (1 + WRONG) * right[text]]


def _notes(data: NewYorker, official: Mapping[Key, Splits], shown: Sequence[int]) -> Iterator[str]:
    yield from data.notes
    if not official:
        kinds = "the leaderboard's items" if data.files.tasks else "descriptions of cartoons"
        yield f"There are {kinds} and no tasks of the folds; `askance newyorker build` makes tasks from raw captions."
    for task in TASKS:
        folds = [fold for name, fold in official if name == task]
        if folds and len(folds) < OFFICIAL_FOLDS:
            yield f"Of {task} there are the folds {', '.join(map(str, folds))}; published figures are means over five."
    if not shown:
        yield f"There are no pictures: contexts that show the cartoon need them, in {PICTURE_ARCHIVE} for most layouts."
    if any(not files.official_ids for files in data.files.tasks.values()):
        yield (
            "The files of the repository have no ids: those of items are made up from task, contest and captions, and "
            "no file for the official scorer can be written."
        )
        if not {fold for _, fold in official} <= {*data.files.annotations}:
            yield (
                "There is no file of descriptions for each fold (annotations_per_split), which fixes that of every "
                "test item: one is drawn for each contest, which need not be the published one."
            )
    if data.files.unread:
        places = [Path(home).relative_to(data.folder) for home in data.files.unread]
        yield f"The same folds of tasks are there again and not read from there: {_some(places)}."


def _problems(data: NewYorker, official: Mapping[Key, Splits], shown: Sequence[int]) -> Iterator[str]:
    missing = [contest for contest in data.contests if contest not in {*shown}]
    if shown and missing:
        yield f"{many(len(missing), 'cartoon has', 'cartoons have')} no picture: contest {_some(missing)}."
    yield from _untested(official)
    for (task, fold), splits in official.items():
        if absent := [split for split in SPLITS if not splits.get(split)]:
            yield f"Fold {fold} of {task} has no items for {' and '.join(absent)}."
        for split in ("validation", "test"):
            described: dict[int, set[object]] = {}
            for item in splits.get(split, ()):
                described.setdefault(item.contest, set()).add(item.annotation)
            several = [contest for contest, each in described.items() if len(each) > 1]
            if several:
                yield (
                    f"Fold {fold} of {task} has several descriptions of a cartoon in {split}, where one is fixed: "
                    f"contest {_some(several)}."
                )


def _uneven(unbalanced: Sequence[str]) -> Iterator[str]:
    if unbalanced:
        yield (
            f"{many(len(unbalanced), 'caption of matching is', 'captions of matching are')} not wrong four times for "
            f"each time right, which tells those who see captions alone: {_some(unbalanced)}."
        )


def _untested(official: Mapping[Key, Splits]) -> Iterator[str]:
    """Contests that no fold tests, and ids that two folds test, where all five are there."""
    for task in TASKS:
        folds = [splits for (name, _), splits in official.items() if name == task]
        if len(folds) == OFFICIAL_FOLDS:
            contests = {item.contest for splits in folds for items in splits.values() for item in items}
            tests = [item for splits in folds for item in splits.get("test", ())]
            if left := sorted(contests - {item.contest for item in tests}):
                yield f"No fold of {task} tests {many(len(left), 'contest')}: {_some(left)}."
            if twice := [name for name, count in Counter(item.id for item in tests).items() if count > 1]:
                yield f"{many(len(twice), 'id')} of {task} in the tests of several folds: {_some(twice)}."


def _some(names: Sequence[object]) -> str:
    return ", ".join(map(str, names[:3])) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
