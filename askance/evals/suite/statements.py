"""Files of action-reason statements: both releases of PittAds and files made from them, recognised by their shape.

| a value is | shape | which file |
|---|---|---|
| a list of one to five texts | `true` | release A of 2017, and the published answers of release B's test set |
| `[true statements, options]` | `train` | release B of 2018, its training set; hard negatives; re-cast WHOOPS! |
| a list of fifteen texts | `test` | release B, its test set: the answers are hidden |
| `[question, true statements, options]` | `question` | WHOOPS! as re-cast for this kind of task |

Texts are compared exactly: nothing is stripped, folded or unescaped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast

from askance.errors import BadData
from askance.evals.suite.files import Problems, noting, read_map
from askance.evals.suite.image_keys import check_key, full_key

Shape: TypeAlias = Literal["true", "train", "test", "question"]

SHAPES: Mapping[Shape, str] = {
    "true": "release A (2017), true statements without options",
    "train": "release B (2018), true statements and options",
    "test": "release B (2018), options whose answers are hidden",
    "question": "questions, true statements and options, as WHOOPS! was re-cast",
}
"""What a file of each shape is, in words."""

TEST_OPTIONS = 15
"""Options of each image of release B."""
MOST_TRUE = 5
"""True statements of an image at most, in either release."""

HardKind: TypeAlias = Literal["action", "reason", "adjective", "object", "statement", "all"]

_HARD = re.compile(r"(large_combined|action|reason|adjective|semantic|object)_hard_QA")
_HARD_KINDS: Mapping[str, HardKind] = {"large_combined": "all", "semantic": "statement"}

_EXPECTED = (
    "A value is a list of 1 to 5 true statements, [true statements, options], 15 options, "
    "or [question, true statements, options]."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdOptions:
    """What a file says of one image."""

    key: str
    """The image, with its shard."""
    shape: Shape
    true: tuple[str, ...] = ()
    """True statements; empty where they are hidden."""
    options: tuple[str, ...] = ()
    """All options, with the true ones; empty in release A. A text may be there twice."""
    question: str | None = None

    @property
    def negatives(self) -> tuple[str, ...]:
        """The options that are not true, each once; empty if the true ones are hidden."""
        return tuple(text for text in dict.fromkeys(self.options) if text not in self.true) if self.true else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QaFile:
    """A file of statements, image by image."""

    path: Path
    shape: Shape
    """Shape of the values; `question` if any value has a question."""
    records: Mapping[str, AdOptions]
    """By the image's key with its shard, in the order of the file."""

    @property
    def release(self) -> str:
        """The release, in words."""
        return SHAPES[self.shape]

    @property
    def hard(self) -> HardKind | None:
        """The kind of its hard negatives, from the name of the file; None for other files."""
        return hard_kind(self.path)

    @property
    def option_counts(self) -> Mapping[int, int]:
        """How many images have how many options: 15 in release B; with hard negatives 18 or, less doubles, fewer."""
        return _counted(len(record.options) for record in self.records.values() if record.options)

    @property
    def true_counts(self) -> Mapping[int, int]:
        """How many images have how many true statements."""
        return _counted(len(record.true) for record in self.records.values() if record.true)


def hard_kind(path: Path) -> HardKind | None:
    """The kind of the hard negatives in a file, from its name; None for other files."""
    match = _HARD.match(path.name)
    return None if match is None else _HARD_KINDS.get(match[1], cast("HardKind", match[1]))


def _counted(numbers: Iterable[int]) -> dict[int, int]:
    return dict(sorted(Counter(numbers).items()))


def read_qa(path: Path, problems: Problems | None = None) -> QaFile:
    """The statements in a file.

    Args:
        path: a JSON object; its keys are images, `9/142269.jpg` or `142269.jpg`.
        problems: takes what is wrong with single images, which are then left out; without it the first is raised.

    Raises:
        BadData: no such file, a value of an unknown shape or of another than the first, no true statement among the
            options, more true ones than options, an image that stands there twice.
    """
    records: dict[str, AdOptions] = {}
    for key, value in read_map(path, problems).items():
        where = f"The file {str(path)!r}, key {key[:80]!r}"
        with noting(problems):
            record = _record(full_key(check_key(key, where=f"The file {str(path)!r}")), value, where)
            _check_kind(record, records, where)
            if record.key in records:
                raise BadData(f"{where}: the image {record.key!r} stands there twice.", hint="Keep one of the two.")
            records[record.key] = record
    if not records:
        raise BadData(f"The file {str(path)!r} holds no statements that can be used.", hint=_EXPECTED)
    shapes: list[Shape] = [record.shape for record in records.values()]
    return QaFile(path=path, shape="question" if "question" in shapes else shapes[0], records=records)


def _check_kind(record: AdOptions, records: Mapping[str, AdOptions], where: str) -> None:
    """Raises where the shape is not that of the file's first value."""
    first = next(iter(records.values()), record)
    if record.shape != first.shape and not {record.shape, first.shape} <= {"train", "question"}:
        raise BadData(
            f"{where}: here are {SHAPES[record.shape]}, and at {first.key!r} {SHAPES[first.shape]}.",
            hint="Keep the releases in files of their own.",
        )


def _record(key: str, value: object, where: str) -> AdOptions:
    if not isinstance(value, list):
        raise BadData(f"{where}: the value is no list.", hint=_EXPECTED)
    items = cast("list[object]", value)
    if all(isinstance(item, str) for item in items):
        return _flat(key, cast("list[str]", items), where)
    if len(items) == 2:
        return _with_options(key, items, where)
    if len(items) == 3 and isinstance(items[0], str):
        return _with_options(key, items[1:], where, question=items[0])
    raise BadData(f"{where}: a list of {len(items)} items that is none of the known shapes.", hint=_EXPECTED)


def _flat(key: str, texts: list[str], where: str) -> AdOptions:
    if len(texts) == TEST_OPTIONS:
        return AdOptions(key=key, shape="test", options=tuple(texts))
    if 1 <= len(texts) <= MOST_TRUE:
        return AdOptions(key=key, shape="true", true=tuple(texts))
    raise BadData(f"{where}: a list of {len(texts)} texts.", hint=_EXPECTED)


def _with_options(key: str, items: list[object], where: str, *, question: str | None = None) -> AdOptions:
    first = [items[0]] if isinstance(items[0], str) else items[0]
    true, options = _texts(first, "true statements", where), _texts(items[1], "options", where)
    _check_options(true, options, where)
    shape: Shape = "train" if question is None else "question"
    return AdOptions(key=key, shape=shape, true=true, options=options, question=question)


def _texts(value: object, what: str, where: str) -> tuple[str, ...]:
    items = cast("list[object]", value) if isinstance(value, list) else None
    if items is None or not all(isinstance(item, str) for item in items):
        raise BadData(f"{where}: the {what} are no list of texts.", hint=_EXPECTED)
    return tuple(cast("list[str]", items))


def _check_options(true: tuple[str, ...], options: tuple[str, ...], where: str) -> None:
    if not true:
        raise BadData(f"{where}: there is no true statement.", hint="The first list should have at least one.")
    if len(true) > len(options):
        raise BadData(
            f"{where}: there are {len(true)} true statements and only {len(options)} options.",
            hint="The options should include the true statements.",
        )
    strange = [text for text in true if text not in options]
    if len(strange) == len(true):
        raise BadData(f"{where}: none of the options is true.", hint="Texts are compared exactly, blanks and case too.")
    if strange:
        raise BadData(
            f"{where}: the true statement {strange[0]!r} is not among the options.",
            hint="Texts are compared exactly, blanks and case too.",
        )
