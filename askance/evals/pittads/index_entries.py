"""Entries of an index from the ads: every action-reason that a data folder holds, with its images and its part.

| file | its statements are of |
|---|---|
| `train/QA_Combined_Action_Reason_train.json` (release B) | `train` |
| `test_right.json`, or a `QA_Combined_Action_Reason_test.json` with answers | `test` |
| `QA_Combined_Action_Reason.json` (release A) | the part that release B has the image in; neither has no part |

The answers of the test part are hidden for a reason, and a search that can find them measures nothing. So they come
in only where `test` is asked for by name. Release A, of 2017, was published whole: it has statements of images that
release B, of 2018, put into its test part. Such images are of the test part here as well. Where the folder does not
say which images those are, release A is taken only for images that are known to be of the training part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from askance.amounts import many
from askance.errors import BadData, UsageError
from askance.evals.pittads.dataset import placed
from askance.evals.pittads.layout import STATEMENTS, Layout, Pictures, Split
from askance.evals.suite.statements import SHAPES, QaFile, read_qa
from askance.retrieval import IndexEntry

SPLITS: tuple[Split, ...] = get_args(Split)

LeftOut: TypeAlias = Literal["of the training part", "of the test part", "perhaps of the test part"]
"""Why the statements of an image are not taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionReasons:
    """What an index of the ads is made of."""

    rows: tuple[IndexEntry, ...]
    """One for each statement of each image, as `merge_entries` takes them; those of no image last."""
    images: Mapping[str, int]
    """Images with statements, by their part; an empty name is that of images without one."""
    left_out: Mapping[LeftOut, int]
    """Images whose statements the folder has and the rows have not."""


def index_entries(
    data: str | Path, *, splits: Collection[str] = ("train",), negatives: Sequence[str | Path] = ()
) -> ActionReasons:
    """Every action-reason of a data folder, exactly as written.

    Args:
        data: folder of the data set, in any layout; or one file of statements, such as one of release B's shape.
        splits: parts whose statements are taken, of `train` and `test`. Images without a part are always taken.
        negatives: files of statements and options, whose wrong options are added as texts that are true of no image;
            paths from here or from the folder.

    Raises:
        UsageError: there is no such part.
        BadData: no such folder or file, no statement in the folder, a file that cannot be used, or one of `negatives`
            that does not say which options are wrong.
    """
    unknown = sorted({*splits} - {*SPLITS})
    if unknown or not splits:
        raise UsageError(
            f"The ads have no part {unknown[0]!r}." if unknown else "No part of the ads is named.",
            hint="Name `train`, `test`, or both: `train,test`.",
        )
    path = Path(data)
    folder = path.parent if path.is_file() else path
    files = _Files.of_file(path) if path.is_file() else _Files.of_folder(Layout.find(path))
    rows: list[IndexEntry] = []
    images: dict[str, Split | None] = {}
    left_out: dict[str, LeftOut] = {}
    for key, texts in files.statements():
        split = files.split(key)
        if reason := files.reason_against(key, splits):
            left_out[key] = reason
            continue
        images[key] = split
        rows += (IndexEntry.of(text, (key,), split or "") for text in dict.fromkeys(texts))
    if not rows:
        held = f" but those of {many(len(left_out), 'image')} {next(iter(left_out.values()))}" if left_out else ""
        raise BadData(
            f"No action-reason of {str(data)!r} can be taken{held}.",
            hint="Put `test_right.json` with the true statements of the test part into the folder, or take `train`."
            if left_out and "train" not in splits
            else "`--split train,test` takes the test part as well."
            if left_out
            else f"Put `{STATEMENTS}` into the folder, or name a file of true statements.",
        )
    hidden = frozenset[str]() if "test" in splits else files.test_texts
    wrong = _wrong_options([placed(Path(each), folder) for each in negatives], hidden)
    return ActionReasons(
        rows=(*rows, *wrong),
        images=dict(sorted(Counter(split or "" for split in images.values()).items())),
        left_out=dict(Counter(left_out.values())),
    )


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of statements in a folder; None is not there."""

    train: QaFile | None
    test: QaFile | None
    """True statements of the test part, where the user has them."""
    options: QaFile | None
    """Options of the test part, whose answers are hidden; they say which images it has."""
    release_a: QaFile | None
    pictures: Pictures

    @classmethod
    def of_folder(cls, layout: Layout) -> _Files:
        train, test, options, release_a = (
            None if path is None else read_qa(path)
            for path in map(layout.first, ("statements", "test truths", "test statements", "release A statements"))
        )
        if options is not None and options.shape != "test":
            test, options = test or options, None
        return cls(train, test, options, release_a, Pictures.scan(layout.folder))

    @classmethod
    def of_file(cls, path: Path) -> _Files:
        """One file alone, whose shape says what it is; published truths are known by their name."""
        file, pictures = read_qa(path), Pictures(path.parent, {}, {})
        match file.shape:
            case "train" | "question":
                return cls(file, None, None, None, pictures)
            case "test":
                return cls(None, None, file, None, pictures)
            case "true":
                is_test = Layout.names("test truths", path)
                return cls(None, file if is_test else None, None, None if is_test else file, pictures)

    def statements(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Images with their true statements; an image may stand in several files."""
        for file in (self.train, self.test, self.release_a):
            yield from () if file is None else ((key, record.true) for key, record in file.records.items())

    def split(self, key: str) -> Split | None:
        """The part that an image is of; None where nothing says."""
        if self._has(key, self.test, self.options):
            return "test"
        return "train" if self._has(key, self.train) else self.pictures.split(key)

    def reason_against(self, key: str, splits: Collection[str]) -> LeftOut | None:
        """Why the statements of an image are not taken; None if they are."""
        split = self.split(key)
        if split is not None:
            return None if split in splits else "of the test part" if split == "test" else "of the training part"
        knows_test = self.test is not None or self.options is not None
        return None if knows_test or self.train is None or "test" in splits else "perhaps of the test part"

    @property
    def test_texts(self) -> frozenset[str]:
        """The texts that are true of images of the test part, as far as they are known."""
        return frozenset(
            text for key, texts in self.statements() if self.reason_against(key, ("train",)) for text in texts
        )

    @staticmethod
    def _has(key: str, *files: QaFile | None) -> bool:
        return any(file is not None and key in file.records for file in files)


def _wrong_options(paths: Sequence[Path], hidden: Collection[str]) -> list[IndexEntry]:
    """The wrong options of files, each once, without those that are true of hidden images.

    Raises:
        BadData: a file has no options, or does not say which of them are wrong.
    """
    texts: dict[str, None] = {}
    for path in paths:
        file = read_qa(path)
        if file.shape not in {"train", "question"}:
            raise BadData(
                f"The file {str(path)!r} does not say which options are wrong: it has {SHAPES[file.shape]}.",
                hint="Name one with true statements and options, as `askance negatives generate` writes it.",
            )
        texts.update(dict.fromkeys(text for record in file.records.values() for text in record.negatives))
    return [IndexEntry.of(text) for text in texts if text not in hidden]
