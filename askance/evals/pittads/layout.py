"""Where the files of the data set lie in a folder: found by their names, in it and in the folders just below."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from askance.errors import BadData

Part: TypeAlias = Literal[
    "statements",
    "test statements",
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
    """The files of a folder that are known by their names."""

    folder: Path
    files: Mapping[Part, tuple[Path, ...]]
    """For each part its files, those nearer to the folder first; parts without any are left out."""

    @classmethod
    def find(cls, folder: Path) -> Layout:
        """The files in `folder` and in the folders up to two below, but for those with images.

        Raises:
            BadData: no such folder.
        """
        if not folder.is_dir():
            raise BadData(
                f"There is no data folder {str(folder)!r}.",
                hint="Name the folder that holds `final_csv.csv`, `train/` and the images.",
            )
        found: dict[Part, list[Path]] = {}
        for count, path in enumerate(_files(folder)):
            if count > _MOST:
                raise BadData(
                    f"The folder {str(folder)!r} holds more than {_MOST:,} files beside images.",
                    hint="Name the folder of the data set itself.",
                )
            for part in PARTS:
                if _NAMES[part].fullmatch(path.name):
                    found.setdefault(part, []).append(path)
        order = {part: sorted(found[part], key=lambda path: (len(path.parts), str(path))) for part in found}
        return cls(folder, {part: tuple(order[part]) for part in PARTS if part in order})

    def first(self, *parts: Part) -> Path | None:
        """The first file of the first of the parts that has any."""
        return next((self.files[part][0] for part in parts if part in self.files), None)

    def of(self, part: Part) -> tuple[Path, ...]:
        """The files of a part, of several with one name the first alone."""
        return tuple({path.name: path for path in reversed(self.files.get(part, ()))}.values())[::-1]

    @property
    def stamp(self) -> tuple[tuple[str, int, int], ...]:
        """Path, time of the last change and size of every file, and of every folder that may hold images.

        Another stamp means that something changed; an image that was overwritten in place does not show.
        """
        files = {path for paths in self.files.values() for path in paths}
        folders = [self.folder, *_folders(self.folder)]
        return tuple(
            (str(path), (known := path.stat()).st_mtime_ns, known.st_size) for path in [*sorted(files), *folders]
        )

    @property
    def shadowed(self) -> tuple[Path, ...]:
        """Files that another of the same name, nearer to the folder, stands in front of."""
        return tuple(path for part in self.files for path in self.files[part] if path not in self.of(part))


def statements_in(folder: Path) -> Path:
    """The file of true statements in a folder of the data set; that of release B before that of release A.

    Raises:
        BadData: no such folder, or no such file in it.
    """
    file = Layout.find(folder).first("statements", "release A statements")
    if file is None:
        raise BadData(f"No file of statements is in {str(folder)!r}.", hint="Name the file itself.")
    return file


def _files(folder: Path, depth: int = 0) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise BadData(
            f"The folder {str(folder)!r} cannot be read: {error.strerror}.", hint="Check the path and its permissions."
        ) from error
    for entry in entries:
        if entry.is_file():
            yield Path(entry.path)
        elif (
            depth < _DEEPEST
            and entry.is_dir()
            and not entry.name.startswith(".")
            and not _PICTURES.fullmatch(entry.name)
        ):
            yield from _files(Path(entry.path), depth + 1)


def _folders(folder: Path, depth: int = 0) -> Iterator[Path]:
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.is_dir() and depth < _DEEPEST:
            yield Path(entry.path)
            yield from _folders(Path(entry.path), depth + 1)
