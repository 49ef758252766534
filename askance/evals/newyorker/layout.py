"""The files of the data set in a folder, in any of the layouts that people have on disk; their rows in one shape.

| kind | files |
|---|---|
| `parquet`, `arrow` | `{config}/test-00000-of-00001.parquet`, other names of the hub, what `datasets` keeps on disk |
| `lines` | `{config}/test.jsonl`, or `{config}.zip` that holds it; pictures in `all_contest_images` or its archive |
| `repository` | `contest_matching_split=0_cleaned.json` and the like, or `tasks.zip` that holds them |
| `leaderboard` | `matching_test_set_public/instances.json` and its pictures, and so for ranking; labels are hidden |

A config is `matching`, `ranking` or `explanation`, then `_from_pixels` where it has no descriptions, then `_1` to `_4`
for folds 1 to 4; without a number it is fold 0. Descriptions of cartoons are in the file
`all_newyorker_contest_annotations.json` and, as each fold may see them, in `annotations_per_split`. A folder may hold
several of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeAlias, cast, get_args

from askance.data_table import ArrowFiles, is_below
from askance.documents import UnreadableDocument, parse_json
from askance.errors import BadData
from askance.evals.newyorker.annotations import MEND, list_in, mapping_in
from askance.evals.suite.files import DataFile, Problems, files_below, noting
from askance.evals.suite.pictures import PICTURE, PictureFiles, load_cell, load_picture
from askance.evals.suite.shuffle import stable_hash
from askance.images import Image

TaskName: TypeAlias = Literal["matching", "ranking", "explanation"]
Split: TypeAlias = Literal["train", "validation", "test"]
Kind: TypeAlias = Literal["parquet", "arrow", "lines", "repository", "leaderboard"]

TASKS: tuple[TaskName, ...] = get_args(TaskName)
SPLITS: tuple[Split, ...] = get_args(Split)

OFFICIAL_FOLDS = 5
"""Folds of the published tasks, 0 to 4 (section 2.3)."""
LEADERBOARD = 5
"""The number of the leaderboard's test set among the folds, as in the authors' code."""
LETTERS = "ABCDE"
CHOICES: Mapping[TaskName, int] = {"matching": 5, "ranking": 2, "explanation": 1}
"""How many captions an item of each task shows."""

DEEPEST = 6
MOST_FILES = 100_000
"""Files that are looked at, at most."""

_SUFFIXES: Mapping[str, Kind] = {".parquet": "parquet", ".arrow": "arrow", ".jsonl": "lines"}
_SPLIT_NAMES: Mapping[str, Split] = {"train": "train", "val": "validation", "validation": "validation", "test": "test"}
_CONFIG = re.compile(r"(matching|ranking|explanation)(_from_pixels)?(?:_([1-4]))?")
_SPLIT_FILE = re.compile(
    r"(?:newyorker_caption_contest-)?(train|validation|val|test)(?:-\d{5}-of-\d{5})?\.(?:parquet|arrow|jsonl)"
)
_SHARDS = re.compile(r"-\d{5}-of-(\d{5})\.")
_REPOSITORY = re.compile(
    r"(?:contest_(matching)|quality_(ranking)|(explanation)_generation)_split=([0-4])(?:_cleaned)?\.json"
)
_PUBLIC = re.compile(r"(matching|ranking)_test_set_public")
_INSTANCES = "instances.json"
_ANNOTATIONS = re.compile(r"all_newyorker_contest_annotations\.json|split=([0-4])_newyorker_contest_annotations\.json")
_ARCHIVES = re.compile(
    rf"(?:{_CONFIG.pattern}|{_PUBLIC.pattern}|tasks|annotations_per_split|all_newyorker_contest_annotations(?:\.json)?)\.zip"
)
PICTURE_FOLDER = "all_contest_images"
PICTURE_ARCHIVE = f"{PICTURE_FOLDER}.zip"

_COLUMNS = (
    "contest_number",
    "image_location",
    "image_description",
    "image_uncanny_description",
    "entities",
    "questions",
    "caption_choices",
    "winner_source",
    "label",
    "n_tokens_label",
    "instance_id",
)
"""Columns of the hub that are read; pictures are read when they are needed."""

_HINT = (
    "Expected are folders such as matching/ with parquet or JSON lines, tasks/contest_matching_split=0_cleaned.json, "
    "matching_test_set_public/ or all_newyorker_contest_annotations.json."
)


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One row of a task, in the shape that the hub has."""

    split: Split
    where: str
    """The file and the place in it, for messages."""
    values: Mapping[str, Any]
    load: Callable[[], Image | None] | None = None
    """Loads the row's own picture; None where pictures are files of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFiles:
    """The files that hold one fold of a task."""

    task: TaskName
    fold: int
    kind: Kind
    described: bool
    """Whether rows bring the description of the cartoon; then each row of training stands there once for every one."""
    home: str
    """The folder or the archive that holds them."""
    files: Mapping[Split | None, tuple[DataFile, ...]]
    """By split; a file of the repository holds all three and stands under None."""

    @property
    def official_ids(self) -> bool:
        """Whether rows have the ids of the published data."""
        return self.kind != "repository"

    def rows(self, problems: Problems | None = None) -> Iterator[SourceRow]:
        """All rows; pictures stay on the disk.

        Args:
            problems: takes the errors of single rows, which are then left out.

        Raises:
            BadData: a file cannot be read, or is not as it should be.
            MissingExtra: there is an Arrow file, and pyarrow is not installed.
        """
        for make in self._makers():
            with noting(problems):
                yield make()

    def _makers(self) -> Iterator[Callable[[], SourceRow]]:
        """A function for each row that makes it."""
        for split, files in self.files.items():
            if split is None:
                yield from _repository_rows(self.task, files[0])
            elif self.kind == "leaderboard":
                yield from _leaderboard_rows(self.task, files[0])
            elif self.kind == "lines":
                yield from _line_rows(files[0], split)
            else:
                yield from _arrow_rows(files, split)


def _arrow_rows(files: tuple[DataFile, ...], split: Split) -> Iterator[Callable[[], SourceRow]]:
    table = ArrowFiles([file.path for file in files])
    own = PICTURE in table.columns
    for place, values in enumerate(table.rows([name for name in table.columns if name in _COLUMNS])):
        where = f"The file {str(files[0])!r}, row {place}"
        yield partial(SourceRow, split, where, values, partial(load_cell, table, place) if own else None)


def _line_rows(file: DataFile, split: Split) -> Iterator[Callable[[], SourceRow]]:
    for number, line in enumerate(file.text().split("\n"), start=1):
        if line.strip():
            yield partial(_line_row, line, split, f"The file {str(file)!r}, line {number}")


def _line_row(line: str, split: Split, where: str) -> SourceRow:
    try:
        return SourceRow(split, where, mapping_in(parse_json(line), where))
    except UnreadableDocument as error:
        raise BadData(f"{where} {error}.", hint="Fetch the file again.") from error


def _repository_rows(task: TaskName, file: DataFile) -> Iterator[Callable[[], SourceRow]]:
    where = f"The file {str(file)!r}"
    for name, rows in mapping_in(file.json(), where).items():
        if name not in _SPLIT_NAMES:
            raise BadData(f"{where} has the split {name!r}.", hint="It should have 'train', 'val' and 'test'.")
        for place, row in enumerate(list_in(rows, f"{where}, {name!r}")):
            here = f"{where}, {name!r}, item {place}"
            yield partial(_repository_row, task, row, split=_SPLIT_NAMES[name], where=here)


def _repository_row(task: TaskName, row: object, *, split: Split, where: str) -> SourceRow:
    return SourceRow(split, where, _SHAPES[task](mapping_in(row, where), where))


def _matching_shape(row: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    correct, choices = row.get("correct_idx"), list_in(row.get("choices"), f"{where}, 'choices'")
    if isinstance(correct, bool) or not isinstance(correct, int) or not 0 <= correct < len(choices):
        raise BadData(f"{where}: 'correct_idx' is {correct!r}, and there are {len(choices)} choices.", hint=MEND)
    return {
        "contest_number": row.get("contest_number"),
        "caption_choices": [mapping_in(choice, where).get("clean_caption") for choice in choices],
        "label": LETTERS[correct : correct + 1],
    }


def _ranking_shape(row: Mapping[str, Any], _: str) -> Mapping[str, Any]:
    return {**row, "caption_choices": [row.get("A"), row.get("B")]}


def _explanation_shape(row: Mapping[str, Any], _: str) -> Mapping[str, Any]:
    return {
        "contest_number": row.get("contest_number"),
        "caption_choices": row.get("caption"),
        "label": row.get("explanation"),
        "n_tokens_label": row.get("n_expl_toks"),
    }


_SHAPES: Mapping[TaskName, Callable[[Mapping[str, Any], str], Mapping[str, Any]]] = {
    "matching": _matching_shape,
    "ranking": _ranking_shape,
    "explanation": _explanation_shape,
}


def _leaderboard_rows(task: TaskName, file: DataFile) -> Iterator[Callable[[], SourceRow]]:
    where = f"The file {str(file)!r}"
    for place, row in enumerate(list_in(file.json(), where)):
        yield partial(_leaderboard_row, task, row, file=file, where=f"{where}, item {place}")


def _leaderboard_row(task: TaskName, form: object, *, file: DataFile, where: str) -> SourceRow:
    """A row of the leaderboard. It hides the contest: the picture stands for it, by a number below zero of its name."""
    row, letters = mapping_in(form, where), LETTERS[: CHOICES[task]]
    name, choices = row.get("image"), mapping_in(row.get("choices"), f"{where}, 'choices'")
    if not isinstance(name, str) or not _is_beside(file, name):
        raise BadData(f"{where}: {str(name)[:80]!r} is no name of a picture beside it.", hint=MEND)
    if "".join(sorted(choices)) != letters:
        raise BadData(f"{where}: the choices {', '.join(sorted(choices))[:80]!r} are not {letters}.", hint=MEND)
    values = {
        "contest_number": -1 - stable_hash(name) % 10**12,
        "caption_choices": [choices[letter] for letter in letters],
        "instance_id": row.get("instance_id"),
    }
    return SourceRow("test", where, values, partial(_beside, file, name))


def _is_beside(file: DataFile, name: str) -> bool:
    """Whether a name is that of a file beside `file`, and no link that leads elsewhere."""
    if name in {"", ".."} or PurePosixPath(name).name != name or "\\" in name or "\0" in name:
        return False
    if len(name.encode("utf-8", "replace")) > _LONGEST_NAME:
        return False
    return bool(file.member) or is_below(file.path.with_name(name), file.path.parent)


_LONGEST_NAME = 255
"""Most bytes of the name of a file on the usual file systems."""


def _beside(file: DataFile, name: str) -> Image | None:
    """The picture of a name that lies beside a file."""
    if file.member:
        wanted = DataFile(file.path, str(PurePosixPath(file.member).with_name(name)))
        return load_picture(wanted) if wanted in wanted.members() else None
    path = file.path.with_name(name)
    return Image.from_path(path) if path.is_file() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewYorkerFiles:
    """What a folder holds; `scan` finds it by names alone."""

    folder: Path
    tasks: Mapping[tuple[TaskName, int], TaskFiles]
    """By task and fold; `LEADERBOARD` is the fold of the leaderboard."""
    annotations: Mapping[int | None, DataFile]
    """Descriptions as each fold may see them; under None all of them."""
    pictures: PictureFiles
    unread: tuple[str, ...]
    """Folders and archives with a fold of a task that is read from elsewhere."""

    @classmethod
    def scan(cls, folder: Path) -> NewYorkerFiles:
        """The files of a folder.

        Of one fold of a task that is there several times, the files with descriptions are read, and of these parquet
        before Arrow, JSON lines and the repository.

        Raises:
            BadData: the folder is missing or holds nothing of the data set; an archive cannot be read; or a file of
                several is missing.
        """
        if not folder.is_dir():
            raise BadData(f"There is no data folder {str(folder)!r}.", hint=_HINT)
        parts = list[_Part]()
        annotations: dict[int | None, DataFile] = {}
        archive: Path | None = None
        for file, place in _candidates(folder):
            if (match := _ANNOTATIONS.fullmatch(place[-1])) is not None:
                annotations.setdefault(None if match[1] is None else int(match[1]), file)
            elif (part := _part(file, place)) is not None:
                parts.append(part)
            elif place[-1] == PICTURE_ARCHIVE:
                archive = archive or file.path
        tasks, unread = _chosen(parts)
        if not tasks and not annotations:
            raise BadData(f"The folder {str(folder)!r} holds nothing of the data set.", hint=_HINT)
        apart = [f"{task}_test_set_public" for task in TASKS]
        pictures = PictureFiles.scan(folder, archive=archive, first=PICTURE_FOLDER, apart=apart)
        return cls(folder=folder, tasks=tasks, annotations=annotations, pictures=pictures, unread=unread)

    @property
    def stamp(self) -> tuple[object, ...]:
        """Path, time of the last change and size of every file with rows, and the pictures that there are.

        It changes when a file changes; a picture that was overwritten in place is not noticed.
        """
        pictures = tuple(self.pictures.by_stem.values())
        of_tasks = (file for task in self.tasks.values() for files in task.files.values() for file in files)
        packed = (file for file in pictures if file.member)
        paths = sorted({file.path for file in (*of_tasks, *self.annotations.values(), *packed)})
        return *((str(path), (known := path.stat()).st_mtime_ns, known.st_size) for path in paths), pictures


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A file with rows of a task, and what its path says about it."""

    task: TaskName
    fold: int
    kind: Kind
    described: bool
    split: Split | None
    file: DataFile
    home: str


def _candidates(folder: Path) -> Iterator[tuple[DataFile, tuple[str, ...]]]:
    """Files that may belong to the data set, each with the parts of its path; those in archives as if unpacked."""
    for path in files_below(folder, deepest=DEEPEST, most=MOST_FILES, takes=_is_known):
        parts = (folder.resolve().name, *path.relative_to(folder).parts)
        if _ARCHIVES.fullmatch(path.name) is None:
            yield DataFile(path), parts
        else:
            for member in DataFile(path).members():
                yield member, (*parts[:-1], path.stem, *PurePosixPath(member.member).parts)


def _is_known(name: str) -> bool:
    return name.endswith((*_SUFFIXES, ".json", ".zip"))


def _part(file: DataFile, place: tuple[str, ...]) -> _Part | None:
    """What a path says; None where it has nothing to do with a task."""
    *folders, name = place
    home = str(file.path if file.member else file.path.parent)
    if (match := _REPOSITORY.fullmatch(name)) is not None:
        task = cast("TaskName", match[1] or match[2] or match[3])
        return _Part(
            task=task, fold=int(match[4]), kind="repository", described=False, split=None, file=file, home=home
        )
    if name == _INSTANCES and folders and (match := _PUBLIC.fullmatch(folders[-1])) is not None:
        task = cast("TaskName", match[1])
        return _Part(
            task=task, fold=LEADERBOARD, kind="leaderboard", described=False, split="test", file=file, home=home
        )
    kind, split = _SUFFIXES.get(PurePosixPath(name).suffix), _split(folders, name)
    config = next((match for each in reversed(folders) if (match := _CONFIG.fullmatch(each)) is not None), None)
    if kind is None or split is None or config is None or (file.member and kind != "lines"):
        return None
    return _Part(
        task=cast("TaskName", config[1]),
        fold=int(config[3] or 0),
        kind=kind,
        described=config[2] is None,
        split=split,
        file=file,
        home=str(file.path.parent.parent) if folders[-1] in _SPLIT_NAMES else home,
    )


def _split(folders: Sequence[str], name: str) -> Split | None:
    match = _SPLIT_FILE.fullmatch(name)
    if match is not None:
        return _SPLIT_NAMES[match[1]]
    return None if name.startswith("cache-") or not folders else _SPLIT_NAMES.get(folders[-1])


def _chosen(parts: Iterable[_Part]) -> tuple[dict[tuple[TaskName, int], TaskFiles], tuple[str, ...]]:
    """Of each fold of a task the files that are read, and where the others are."""
    groups: dict[tuple[TaskName, int], dict[tuple[bool, int, str], list[_Part]]] = {}
    for part in parts:
        rank = (not part.described, get_args(Kind).index(part.kind), part.home)
        groups.setdefault((part.task, part.fold), {}).setdefault(rank, []).append(part)
    tasks: dict[tuple[TaskName, int], TaskFiles] = {}
    unread = list[str]()
    for key, group in sorted(groups.items()):
        (_, best), *others = sorted(group.items())
        files: dict[Split | None, tuple[DataFile, ...]] = {}
        for split in (*SPLITS, None):
            if same := [part.file for part in best if part.split == split]:
                files[split] = _whole(same)
        first = best[0]
        tasks[key] = TaskFiles(
            task=first.task,
            fold=first.fold,
            kind=first.kind,
            described=first.described,
            home=first.home,
            files=files,
        )
        unread.extend(home for (_, _, home), _ in others)
    return tasks, tuple(dict.fromkeys(unread))


def _whole(files: Sequence[DataFile]) -> tuple[DataFile, ...]:
    """The files of a split in order.

    Raises:
        BadData: their names say that there are more.
    """
    counts = [int(match[1]) for file in files if (match := _SHARDS.search(file.path.name)) is not None]
    if counts and set(counts) != {len(files)}:
        raise BadData(
            f"{str(files[0])!r} says that it is one of {max(counts)} files, and {len(files)} are there.",
            hint="Fetch the others, and keep those of one download.",
        )
    return tuple(files)
