"""`NewYorker`: cartoons of the caption contest, what people say of them, and the items of three tasks in five folds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from hashlib import md5
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args

from askance.amounts import many
from askance.errors import BadData
from askance.evals.newyorker.annotations import (
    MEND,
    CartoonAnnotation,
    DescribedCartoon,
    annotation_of,
    count_in,
    list_in,
    read_annotations,
    text_in,
)
from askance.evals.newyorker.layout import (
    CHOICES,
    LEADERBOARD,
    LETTERS,
    SPLITS,
    NewYorkerFiles,
    SourceRow,
    Split,
    TaskFiles,
    TaskName,
)
from askance.evals.suite.files import Problems, note, noting
from askance.evals.suite.shuffle import stable_hash

if TYPE_CHECKING:
    from askance.images import Image

WinnerSource: TypeAlias = Literal["official_winner", "crowd_winner"]
"""Who chose the better caption of a ranking item: the editors of the magazine, or the crowd."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cartoon:
    """The cartoon of one contest."""

    contest: int
    """Its number; for a picture of the leaderboard, which hides the contest, a number below zero of its name."""
    finalists: tuple[str, ...] = ()
    """The three finalists of the magazine as they stand in the file, the winner of the vote first; often empty."""
    describe: Callable[[], tuple[CartoonAnnotation, ...]] = field(compare=False, repr=False)
    """Reads `annotations`."""
    load: Callable[[], Image | None] = field(compare=False, repr=False)
    """Loads the picture; None if the folder has none."""

    @property
    def annotations(self) -> tuple[CartoonAnnotation, ...]:
        """All its valid descriptions, six for most; without a file of descriptions those of all rows."""
        return self.describe()


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One question of a task."""

    id: str
    official_id: bool
    """Whether the id is that of the published data; the repository has none, and files for others cannot be written."""
    task: TaskName
    contest: int
    fold: int
    split: Split
    choices: tuple[str, ...]
    """Five captions for matching, two for ranking, one for explanation."""
    label: str
    """The letter of the right choice, or the explanation; empty where it is hidden, on the leaderboard."""
    winner_source: WinnerSource | None = None
    """Who chose the better caption, for ranking."""
    annotation: CartoonAnnotation | None = None
    """The description of this row; None where there is none."""
    n_tokens: int | None = None
    """Tokens of the explanation, by which the authors divide for perplexity."""


@dataclass(frozen=True, kw_only=True)
class NewYorker:
    """The cartoons and tasks of a folder; `open` makes one. Rows are read for the folds that are asked for alone."""

    files: NewYorkerFiles
    problems: Problems | None = None
    _items: dict[tuple[TaskName, int], Mapping[Split, tuple[Item, ...]]] = field(
        default_factory=dict[tuple[TaskName, int], Mapping[Split, tuple[Item, ...]]], init=False, repr=False
    )
    _pictures: dict[int, Callable[[], Image | None]] = field(
        default_factory=dict[int, "Callable[[], Image | None]"], init=False, repr=False
    )
    """Pictures of rows, by contest."""
    _described: dict[int | None, Mapping[int, DescribedCartoon]] = field(
        default_factory=dict[int | None, "Mapping[int, DescribedCartoon]"], init=False, repr=False
    )
    _tested: dict[tuple[TaskName, int], int] = field(
        default_factory=dict[tuple[TaskName, int], int], init=False, repr=False
    )
    """The fold that tests a contest."""

    @classmethod
    def open(cls, folder: str | Path, *, problems: Problems | None = None) -> NewYorker:
        """The data in a folder, in any of the layouts (see `askance.evals.newyorker.layout`); only names are read here.

        Args:
            folder: with the data set.
            problems: takes the errors of single rows, which are then left out; without it the first error is raised.

        Raises:
            BadData: the folder is missing or holds nothing of the data set, or an archive cannot be read.
        """
        files = NewYorkerFiles.scan(Path(folder))
        return _shared(Path(folder), files.stamp) if problems is None else cls(files=files, problems=problems)

    @property
    def folder(self) -> Path:
        """Where the data set lies."""
        return self.files.folder

    @property
    def folds(self) -> tuple[int, ...]:
        """The folds that any task has, without that of the leaderboard."""
        return tuple(sorted({fold for _, fold in self.files.tasks} - {LEADERBOARD}))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was passed over in the files that were read so far, one sentence each."""
        return self._notes_on(self._described)

    def notes_on(self, task: TaskName, folds: Iterable[int], *, shown: bool) -> tuple[str, ...]:
        """What was passed over in the files of descriptions that a task rests on, one sentence each.

        Args:
            task: the task.
            folds: that are asked.
            shown: whether cartoons are.

        Raises:
            BadData: as `cartoon`.
        """
        read = [self._file_for(fold) for fold in folds if not self.files.tasks[task, fold].described]
        return self._notes_on([*read, *([None] if shown else [])])

    def _notes_on(self, files: Iterable[int | None]) -> tuple[str, ...]:
        contests = [
            contest for fold in files for contest, known in self._annotated(fold).items() if known.finalist_is_nan
        ]
        return tuple(f"A finalist of contest {contest} is NaN, and left out." for contest in dict.fromkeys(contests))

    def items(self, task: TaskName, *, fold: int, split: Split = "test") -> tuple[Item, ...]:
        """The items of one split, in the order of the file.

        In training an item stands there once for every description of its cartoon, if there are any.

        Args:
            task: the task.
            fold: 0 to 4, or `LEADERBOARD`.
            split: its part.

        Raises:
            BadData: the folder does not have it; or a row, a file or the division into splits is not as it should be.
            MissingExtra: there is an Arrow file, and pyarrow is not installed.
        """
        in_split = self.splits(task, fold).get(split)
        if in_split is None:
            home = self.files.tasks[task, fold].home
            raise BadData(f"{home!r} has no items for {split}.", hint="Fetch the file of that split.")
        return in_split

    def splits(self, task: TaskName, fold: int) -> Mapping[Split, tuple[Item, ...]]:
        """All items of one fold of a task, by split; a split without a file is left out.

        A file of the repository holds all three splits, and some of them may be empty.

        Raises:
            BadData, MissingExtra: as `items`.
        """
        key = task, fold
        if key not in self._items:
            if key not in self.files.tasks:
                raise BadData(self._absent(task, fold), hint="`askance data check newyorker DIR` says what is there.")
            try:
                self._items[key] = self._read(self.files.tasks[key])
            except BadData as error:
                note(error, self.problems)
                self._items[key] = {}
        return self._items[key]

    def cartoon(self, contest: int) -> Cartoon:
        """The cartoon of a contest; its picture and descriptions are read when they are asked for.

        Raises:
            BadData: the file of descriptions, if there is one, cannot be read.
        """
        known = self._annotated(None).get(contest)
        return Cartoon(
            contest=contest,
            finalists=() if known is None else known.finalists,
            describe=partial(self._annotations, contest),
            load=partial(self._picture, contest),
        )

    @cached_property
    def contests(self) -> tuple[int, ...]:
        """The contests of all descriptions and of all items, in order; all files are read.

        Raises:
            BadData: a file or a row cannot be read.
        """
        numbers = {contest for fold in self.files.annotations for contest in self._annotated(fold)}
        for task, fold in self.files.tasks:
            numbers.update(item.contest for items in self.splits(task, fold).values() for item in items)
        return tuple(sorted(numbers))

    def _picture(self, contest: int) -> Image | None:
        if str(contest) in self.files.pictures:
            return self.files.pictures.load(str(contest))
        for task, fold in self.files.tasks:
            if contest in self._pictures:
                break
            self.splits(task, fold)
        return self._pictures[contest]() if contest in self._pictures else None

    def _annotations(self, contest: int) -> tuple[CartoonAnnotation, ...]:
        """Of all files the longest list, since a fold's own file has one description of what it tests."""
        listed = [self._annotated(fold).get(contest) for fold in (None, *self.files.annotations)]
        longest = max((each.annotations for each in listed if each is not None), key=len, default=())
        return longest or tuple(self._row_annotations.get(contest, ()))

    @cached_property
    def _row_annotations(self) -> Mapping[int, Mapping[CartoonAnnotation, None]]:
        """The descriptions of all rows, by contest, in order."""
        by_contest: dict[int, dict[CartoonAnnotation, None]] = {}
        for task, fold in self.files.tasks:
            for items in self.splits(task, fold).values():
                for item in items:
                    if item.annotation is not None:
                        by_contest.setdefault(item.contest, {})[item.annotation] = None
        return by_contest

    def _absent(self, task: TaskName, fold: int) -> str:
        if not self.files.tasks:
            return (
                f"The folder {str(self.folder)!r} has descriptions of cartoons and no tasks; `askance newyorker build` "
                "makes some of them."
            )
        wanted = "no leaderboard" if fold == LEADERBOARD else f"no fold {fold}"
        others = ", ".join(str(each) for name, each in self.files.tasks if name == task and each != LEADERBOARD)
        available = f"the folds {others}" if others else "none"
        return f"The folder {str(self.folder)!r} has {wanted} of {task}; it has {available}."

    def _read(self, files: TaskFiles) -> Mapping[Split, tuple[Item, ...]]:
        in_one_file: Sequence[Split] = SPLITS if None in files.files else ()
        items_by_split: dict[Split, dict[str, Item]] = {split: {} for split in in_one_file}
        for row in files.rows(self.problems):
            items = items_by_split.setdefault(row.split, {})
            with noting(self.problems):
                for item in self._of_row(files, row):
                    if any(item.id in each for each in items_by_split.values()):
                        raise BadData(f"{row.where}: the id {item.id!r} stands there twice.", hint=MEND)
                    items[item.id] = item
        by_split: dict[Split, tuple[Item, ...]] = {
            split: tuple(items.values()) for split, items in items_by_split.items()
        }
        self._check_splits(files, by_split)
        return by_split

    def _check_splits(self, files: TaskFiles, by_split: Mapping[Split, tuple[Item, ...]]) -> None:
        """Checks that contests are in one split each, and that no other fold tests those that this one tests."""
        contests = {split: {item.contest for item in items} for split, items in by_split.items()}
        for one, other in combinations(contests, 2):
            if shared := sorted(contests[one] & contests[other]):
                error = BadData(
                    f"Fold {files.fold} of {files.task} has {many(len(shared), 'contest')} both in {one} and in "
                    f"{other}, such as {shared[0]}.",
                    hint=f"Whole contests belong to one split; fetch {files.home!r} again.",
                )
                note(error, self.problems)
        twice: dict[int, list[int]] = {}
        for contest in sorted(contests.get("test", ())):
            other = self._tested.setdefault((files.task, contest), files.fold)
            if other != files.fold:
                twice.setdefault(other, []).append(contest)
        for other, shared in twice.items():
            error = BadData(
                f"Folds {other} and {files.fold} of {files.task} both test {many(len(shared), 'contest')}, such as "
                f"{shared[0]}.",
                hint="Each contest is tested by one fold; fetch both again.",
            )
            note(error, self.problems)

    def _of_row(self, files: TaskFiles, row: SourceRow) -> Iterator[Item]:
        """The items of a row: one, or in training one for every description where the row brings none.

        Raises:
            BadData: the row is not as it should be.
        """
        values, where = row.values, row.where
        contest: int = values["contest_number"] if files.fold == LEADERBOARD else _contest(values, where)
        tokens = values.get("n_tokens_label")
        item = Item(
            id="",
            official_id=True,
            task=files.task,
            contest=contest,
            fold=files.fold,
            split=row.split,
            choices=_choices(files.task, values.get("caption_choices"), where),
            label=_label(files, values.get("label"), where),
            winner_source=_winner_source(files, values.get("winner_source"), where),
            n_tokens=None if tokens is None else count_in(tokens, f"{where}, 'n_tokens_label'"),
        )
        instance_id = values.get("instance_id")
        known = [annotation_of(values, where)] if files.described else self._valid(item, where)
        if row.load is not None:
            self._pictures.setdefault(contest, row.load)
        if not files.official_ids:
            for place, annotation in enumerate(known):
                yield replace(item, id=_own_id(item, place), official_id=False, annotation=annotation)
        else:
            yield replace(item, id=text_in(instance_id, f"{where}, 'instance_id'"), annotation=known[0])

    def _valid(self, item: Item, where: str) -> Sequence[CartoonAnnotation | None]:
        """The descriptions that an item may have, by the files of them: in training all, else one, which is fixed.

        Raises:
            BadData: there are such files, and the contest is in none of them.
        """
        fold = self._file_for(item.fold)
        known = self._annotated(fold)
        if item.fold == LEADERBOARD or not known:
            return [None]
        if item.contest not in known:
            raise BadData(
                f"{where}: contest {item.contest} is not in {str(self.files.annotations[fold])!r}.",
                hint="Fetch the descriptions of the same release as the tasks.",
            )
        known_annotations = known[item.contest].annotations
        drawn = sorted(known_annotations, key=lambda each: stable_hash(item.contest, each.location, each.description))
        return known_annotations if item.split == "train" else drawn[:1]

    def _file_for(self, fold: int) -> int | None:
        """The fold whose file describes the cartoons of a fold; None is the file of all."""
        return fold if fold in self.files.annotations else None

    def _annotated(self, fold: int | None) -> Mapping[int, DescribedCartoon]:
        """The cartoons of one file of descriptions, by contest; empty where there is no such file."""
        file = self.files.annotations.get(fold)
        if fold not in self._described:
            try:
                self._described[fold] = {} if file is None else read_annotations(file, self.problems)
            except BadData as error:
                note(error, self.problems)
                self._described[fold] = {}
        return self._described[fold]


@lru_cache(maxsize=2)
def _shared(folder: Path, stamp: tuple[object, ...]) -> NewYorker:  # noqa: ARG001
    """The data in a folder, read once for all tasks of a process, and again where the stamp is another."""
    return NewYorker(files=NewYorkerFiles.scan(folder))


def _contest(values: Mapping[str, object], where: str) -> int:
    return count_in(values.get("contest_number"), f"{where}, 'contest_number'")


def _choices(task: TaskName, value: object, where: str) -> tuple[str, ...]:
    where = f"{where}, 'caption_choices'"
    texts = [value] if task == "explanation" else list_in(value, where)
    if len(texts) != CHOICES[task]:
        raise BadData(f"{where}: {len(texts)} captions, and {task} has {CHOICES[task]}.", hint=MEND)
    return tuple(text_in(text, where) for text in texts)


def _label(files: TaskFiles, value: object, where: str) -> str:
    if files.fold == LEADERBOARD:
        return ""
    label, letters = text_in(value, f"{where}, 'label'"), LETTERS[: CHOICES[files.task]]
    if files.task != "explanation" and (len(label) != 1 or label not in letters):
        raise BadData(f"{where}: the label is {label[:60]!r}, and the choices are {letters}.", hint=MEND)
    return label


def _winner_source(files: TaskFiles, value: object, where: str) -> WinnerSource | None:
    if files.task != "ranking" or files.fold == LEADERBOARD:
        return None
    known = get_args(WinnerSource)
    if value not in known:
        raise BadData(f"{where}: 'winner_source' is {value!r}, and not {' or '.join(known)}.", hint=MEND)
    return cast("WinnerSource", value)


def _own_id(item: Item, place: int) -> str:
    """An id for a row that has none: of task, contest and captions, and of the place of a further description."""
    parts = [item.task, item.contest, *item.choices, *([place] if place else [])]
    return md5(json.dumps(parts).encode(), usedforsecurity=False).hexdigest()
