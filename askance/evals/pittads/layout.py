"""Finding the files of the data set in a folder, in any layout: data files by their names, images by key or base name.

Data files are found in the folder and up to two levels below it. Images are in `train_images/9/142269.jpg`,
`train_images_total/…`, `test_images/…`, `tiny_test/…`, `images/…`, `9/142269.jpg`, `subfolder-9/142269.jpg` (as the
archives unpack), or all in one folder: only the names of the file and of its folder count.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from askance.errors import BadData
from askance.evals.suite.files import files_below, is_picture
from askance.evals.suite.image_keys import base_name, full_key, key_order, shard_of

Part: TypeAlias = Literal[
    "statements",
    "test statements",
    "test truths",
    "release A statements",
    "actions",
    "reasons",
    "hard negatives",
    "atypicality",
    "topics",
    "sentiments",
    "strategies",
    "slogans",
    "symbols",
    "topics list",
    "sentiments list",
    "strategies list",
    "descriptions",
]
PARTS: tuple[Part, ...] = get_args(Part)

ANNOTATIONS = "final_csv.csv"
STATEMENTS = "train/QA_Combined_Action_Reason_train.json"

_NAMES: Mapping[Part, re.Pattern[str]] = {
    "statements": re.compile(r"QA_Combined_Action_Reason_train\.json"),
    "test statements": re.compile(r"QA_Combined_Action_Reason_test\.json"),
    "test truths": re.compile(r"test_right\.json"),
    "release A statements": re.compile(r"QA_Combined_Action_Reason\.json"),
    "actions": re.compile(r"QA_Action\.json"),
    "reasons": re.compile(r"QA_Reason\.json"),
    "hard negatives": re.compile(r"[a-z_]+_hard_QA_Combined_Action_Reason_train\.json"),
    "atypicality": re.compile(re.escape(ANNOTATIONS)),
    "topics": re.compile(r"Topics(_train|_test)?\.json"),
    "sentiments": re.compile(r"Sentiments(_train|_test)?\.json"),
    "strategies": re.compile(r"Strategies(_train|_test)?\.json"),
    "slogans": re.compile(r"Slogans(_train|_test)?\.json"),
    "symbols": re.compile(r"Symbols(_train|_test)?\.json"),
    "topics list": re.compile(r"Topics_List\.txt"),
    "sentiments list": re.compile(r"Sentiments_List\.txt"),
    "strategies list": re.compile(r"Strategies_List\.txt"),
    "descriptions": re.compile(r"(?:IN|UH|V|T|combine)_.+_description_.+\.csv"),
}

_DEEPEST = 2
_MOST = 200_000
_PICTURES = re.compile(r"(?:train_images(?:_total)?|test_images|tiny_test|images|(?:subfolder-)?\d+)")


@dataclass(frozen=True, slots=True)
class Layout:
    """The data files of a folder."""

    folder: Path
    files: Mapping[Part, tuple[Path, ...]]
    """By part its files, those nearer to the folder first; parts without a file are left out."""

    @classmethod
    def find(cls, folder: Path) -> Layout:
        """The data files in `folder` and up to two levels below; folders of images are not searched.

        Raises:
            BadData: no such folder.
        """
        if not folder.is_dir():
            raise BadData(
                f"There is no data folder {str(folder)!r}.",
                hint="Name the folder that holds `final_csv.csv`, `train/` and the images.",
            )
        by_part: dict[Part, list[Path]] = {}
        files = files_below(folder, deepest=_DEEPEST, most=_MOST, enters=lambda name: not _PICTURES.fullmatch(name))
        for path in files:
            for part in PARTS:
                if _NAMES[part].fullmatch(path.name):
                    by_part.setdefault(part, []).append(path)
        order = {part: sorted(by_part[part], key=lambda path: (len(path.parts), str(path))) for part in by_part}
        return cls(folder, {part: tuple(order[part]) for part in PARTS if part in order})

    @staticmethod
    def names(part: Part, path: Path) -> bool:
        """Whether a file has the name of this part."""
        return _NAMES[part].fullmatch(path.name) is not None

    def first(self, *parts: Part) -> Path | None:
        """The first file of the first of the parts that has any."""
        return next((self.files[part][0] for part in parts if part in self.files), None)

    def of(self, part: Part) -> tuple[Path, ...]:
        """The files of a part; of several with one name only the first."""
        return tuple({path.name: path for path in reversed(self.files.get(part, ()))}.values())[::-1]

    @property
    def stamp(self) -> tuple[tuple[str, int, int], ...]:
        """Path, time of the last change and size of every data file, and of every folder that may hold images.

        It changes when a file changes; an image that was overwritten in place is not noticed.
        """
        files = {path for paths in self.files.values() for path in paths}
        folders = [self.folder, *_folders(self.folder)]
        return tuple(
            (str(path), (known := path.stat()).st_mtime_ns, known.st_size) for path in [*sorted(files), *folders]
        )

    @property
    def shadowed(self) -> tuple[Path, ...]:
        """Files that are not used, because one of the same name is nearer to the folder."""
        return tuple(path for part in self.files for path in self.files[part] if path not in self.of(part))


def has_statements(folder: Path) -> bool:
    """Whether a folder has a file of true statements.

    Raises:
        BadData: the folder cannot be read.
    """
    return _statements(folder) is not None


def statements_in(folder: Path) -> Path:
    """The file of true statements in a folder of the data set; that of release B before that of release A.

    Raises:
        BadData: no such folder, or no such file in it.
    """
    file = _statements(folder)
    if file is None:
        raise BadData(f"No file of statements is in {str(folder)!r}.", hint="Name the file itself.")
    return file


def _statements(folder: Path) -> Path | None:
    return Layout.find(folder).first("statements", "release A statements")


def _folders(folder: Path, depth: int = 0) -> Iterator[Path]:
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.is_dir() and depth < _DEEPEST:
            yield Path(entry.path)
            yield from _folders(Path(entry.path), depth + 1)


DEEPEST = 6
"""Folders below the data folder in which images are looked for."""
MOST_FILES = 1_000_000
"""Files that are looked at, at most; the data set has 64,832 images."""

Split: TypeAlias = Literal["train", "test"]

_SPLITS: Mapping[str, Split] = {
    "train_images": "train",
    "train_images_total": "train",
    "test_images": "test",
    "tiny_test": "test",
}
_SHARD = re.compile(r"(?:subfolder-)?(\d|10)")


@dataclass(frozen=True, slots=True)
class Pictures:
    """The images below a folder. `scan` makes it; it reads names only."""

    folder: Path
    by_key: Mapping[str, tuple[Path, ...]]
    """By key, or by name if an image is in no shard: the file and its copies."""
    by_name: Mapping[str, tuple[str, ...]]
    """Keys by base name."""

    @classmethod
    def scan(cls, folder: Path) -> Pictures:
        """The images below `folder`.

        Raises:
            BadData: no such folder, or one with more than `MOST_FILES` files.
        """
        if not folder.is_dir():
            raise BadData(
                f"There is no data folder {str(folder)!r}.", hint="Name the folder with the data set's files."
            )
        by_key: dict[str, list[Path]] = {}
        for path in files_below(folder, deepest=DEEPEST, most=MOST_FILES, takes=is_picture):
            by_key.setdefault(_key(path, folder), []).append(path)
        by_name: dict[str, list[str]] = {}
        for key in sorted(by_key, key=key_order):
            by_name.setdefault(base_name(key), []).append(key)
        return cls(
            folder,
            {key: tuple(sorted(paths, key=_preference)) for key, paths in by_key.items()},
            {name: tuple(keys) for name, keys in by_name.items()},
        )

    def find(self, key: str) -> Path | None:
        """The file of an image by its key, `9/142269.jpg`, or by its base name; None if there is none.

        A key without an ending, `17`, means `17.png`, as in WHOOPS! re-cast.

        Raises:
            BadData: several images have that base name, and none is in the shard that the rule says.
        """
        picture = self._key(key)
        return None if picture is None else self.by_key[picture][0]

    def _key(self, key: str) -> str | None:
        for exact in (full_key(key), key, f"{key}.png"):
            if exact in self.by_key:
                return exact
        name = base_name(key)
        others = self.by_name.get(name, ())
        if name != key and shard_of(name) is None:  # base names are unique only within the data set
            others = tuple(other for other in others if other == name)
        if len(others) > 1:
            raise BadData(
                f"The image {key!r} may be {' or '.join(map(repr, others[:3]))} in {str(self.folder)!r}.",
                hint="Base names should be unique: keep one of them.",
            )
        return others[0] if others else None

    def split(self, key: str) -> Split | None:
        """The part of the data set that an image is of, by the name of its folder; None if the name does not say."""
        picture = self._key(key)
        if picture is None:
            return None
        splits = [_split(path, self.folder) for path in self.by_key[picture]]
        return "train" if "train" in splits else "test" if "test" in splits else None

    def splits(self) -> Mapping[Split | None, int]:
        """How many images each part has."""
        counts: dict[Split | None, int] = {}
        for key in self.by_key:
            counts[self.split(key)] = counts.get(self.split(key), 0) + 1
        return counts

    @property
    def shared_names(self) -> tuple[str, ...]:
        """Base names that several images have; the data set has none."""
        return tuple(name for name, keys in self.by_name.items() if len(keys) > 1)

    def __len__(self) -> int:
        return len(self.by_key)


def _key(path: Path, folder: Path) -> str:
    if path.parent != folder and (shard := _SHARD.fullmatch(path.parent.name)):
        return f"{shard[1]}/{path.name}"
    return full_key(path.name)


def _split(path: Path, folder: Path) -> Split | None:
    parts = path.relative_to(folder).parts[:-1]
    return next((_SPLITS[part] for part in parts if part in _SPLITS), None)


def _preference(path: Path) -> tuple[int, str]:
    """The key to sort copies by: training images first, test images last."""
    places = {"train_images": 0, "train_images_total": 1, "test_images": 3, "tiny_test": 3}
    return min((places[part] for part in path.parts if part in places), default=2), str(path)
