"""The files of the data set in a folder, and where its pictures lie.

| file | holds |
|---|---|
| `sherlock_val_with_split_idxs_v1_1.json` | the validation corpus: regions, each with a clue and an inference |
| `sherlock_train_v1_1.json` | the training corpus, which has no chunks |
| `{val,test}_{comparison,localization,retrieval_0}_instances.json` | pairs of the leaderboard: a region, an inference |
| `…_instance_ids.json`, `…_answer_key.json` | their ids in order; the answers, which the test set hides |
| `image_url2auto_bboxes.json` | proposals of boxes for each image, by a detector |

Each may be a file, or in the `.zip` that it comes in; folders may be nested. Version 1 of the corpus, which the authors
call deprecated, is read where version 1.1 is missing. Pictures are those of Visual Genome (`VG_100K`, `VG_100K_2`) and
of VCR (`vcr1images`), as they are unpacked; no picture is fetched.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias, cast, get_args

from askance.errors import BadData
from askance.evals.suite.files import DataFile, files_below

Split: TypeAlias = Literal["train", "val", "test"]
LeaderboardTask: TypeAlias = Literal["comparison", "localization", "retrieval"]
FilePart: TypeAlias = Literal["instances", "instance_ids", "answer_key"]
Source: TypeAlias = Literal["VG", "VCR"]
"""Where an image is from: Visual Genome, or VCR."""

TASKS: tuple[LeaderboardTask, ...] = get_args(LeaderboardTask)
CHUNKS = 23
"""Parts of the validation corpus within which inferences are retrieved (section 4.1), numbered from 0."""
VAL_CHUNKS = (
    *(983, 992, 986, 995, 988, 987, 986, 993, 985, 996, 980, 990),
    *(994, 985, 992, 990, 994, 979, 985, 991, 991, 992, 983),
)
"""By chunk, how many instances the validation corpus has."""
TEST_CHUNKS = (
    *(1000, 989, 996, 1004, 982, 989, 996, 991, 988, 992, 992, 1000),
    *(997, 990, 988, 987, 998, 983, 996, 983, 985, 992, 998),
)
"""By chunk, how many regions the test set has, and as many inferences."""
LENGTHS: Mapping[str, int] = {
    "comparison": 4_719,
    "localization": 2_365_256,
    **{f"retrieval_{chunk}": count**2 for chunk, count in enumerate(TEST_CHUNKS)},
}
"""By name of a file of the leaderboard, how many pairs of the test set it scores."""
IMAGES = "images"
"""The folder with pictures, within that of the data, where none is named."""

DEEPEST = 4
MOST_FILES = 400_000
"""Files that are looked at, at most; folders of pictures are not."""

_CORPUS = re.compile(r"sherlock_(train|val)(?:_with_split_idxs)?_v1(_1)?\.json")
_LEADERBOARD = re.compile(rf"(val|test)_({'|'.join(TASKS)})(?:_(\d{{1,2}}))?_({'|'.join(get_args(FilePart))})\.json")
_PROPOSALS = "image_url2auto_bboxes.json"
_ARCHIVES = re.compile(
    rf"{_CORPUS.pattern}\.zip|{re.escape(_PROPOSALS)}\.zip|leaderboard_eval\.zip|(?:val|test)_(?:{'|'.join(TASKS)})(?:_public)?\.zip"
)
_PICTURES = frozenset({IMAGES, "VG_100K", "VG_100K_2", "vcr1images"})
"""Folders in which no file of the data set is looked for."""
_PLAIN = re.compile(r"(?!\.{1,2}$)[^/\\\0]+")

HINT = (
    "Expected are sherlock_val_with_split_idxs_v1_1.json.zip, folders such as val_comparison with "
    "val_comparison_instances.json, or image_url2auto_bboxes.json.zip; they may be unpacked."
)


LeaderboardFiles: TypeAlias = Mapping[FilePart, DataFile]
"""The files of one task of the leaderboard, for retrieval of one chunk; `instances` are always there."""
LeaderboardKey: TypeAlias = tuple[Split, LeaderboardTask, int | None]
"""A split, a task, and for retrieval a chunk."""


def pairs_name(key: LeaderboardKey) -> str:
    """How the files of a part of the leaderboard begin, such as `val_retrieval_0`."""
    return "_".join(str(part) for part in key if part is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SherlockFiles:
    """What a folder holds; `scan` finds it by names alone."""

    folder: Path
    corpora: Mapping[Split, DataFile]
    leaderboard: Mapping[LeaderboardKey, LeaderboardFiles]
    proposals: DataFile | None

    @property
    def deprecated(self) -> frozenset[Split]:
        """Splits of which version 1 of the corpus is read."""
        return frozenset(split for split, file in self.corpora.items() if _is_deprecated(file))

    @classmethod
    def scan(cls, folder: Path) -> SherlockFiles:
        """The files of a folder. Of several of one name, the first by path is read, and unpacked before packed ones.

        Raises:
            BadData: the folder is missing or holds nothing of the data set; or an archive cannot be read.
        """
        if not folder.is_dir():
            raise BadData(f"There is no data folder {str(folder)!r}.", hint=HINT)
        corpora: dict[Split, DataFile] = {}
        leaderboard = defaultdict[LeaderboardKey, dict[FilePart, DataFile]](dict)
        proposals: DataFile | None = None
        for file in sorted(_candidates(folder), key=lambda file: (_is_deprecated(file), bool(file.member), str(file))):
            name = PurePosixPath(file.member or file.path.name).name
            if (match := _CORPUS.fullmatch(name)) is not None:
                corpora.setdefault(cast("Split", match[1]), file)
            elif (match := _LEADERBOARD.fullmatch(name)) is not None:
                split, task, chunk, part = match.groups()
                if (task == "retrieval") == (chunk is not None):
                    key = cast("Split", split), cast("LeaderboardTask", task), None if chunk is None else int(chunk)
                    leaderboard[key].setdefault(cast("FilePart", part), file)
            elif name == _PROPOSALS and proposals is None:
                proposals = file
        whole = {key: files for key, files in leaderboard.items() if "instances" in files}
        if not corpora and not whole:
            raise BadData(f"The folder {str(folder)!r} holds nothing of the data set.", hint=HINT)
        order = sorted(whole, key=lambda key: (key[:2], key[2] or 0))
        return cls(folder=folder, corpora=corpora, leaderboard={key: whole[key] for key in order}, proposals=proposals)


def _is_deprecated(file: DataFile) -> bool:
    """Whether a corpus is of version 1."""
    return not file.stem.endswith("_v1_1")


def _candidates(folder: Path) -> Iterator[DataFile]:
    """Files that may belong to the data set, also those in archives."""
    known = files_below(
        folder,
        deepest=DEEPEST,
        most=MOST_FILES,
        takes=lambda name: name.endswith(".json") or _ARCHIVES.fullmatch(name) is not None,
        enters=lambda name: name not in _PICTURES,
    )
    for path in known:
        if path.suffix == ".zip":
            yield from DataFile(path).members()
        else:
            yield DataFile(path)


def source_of(url: str) -> Source:
    """Where an image is from, by its address."""
    return "VG" if "VG_" in url else "VCR"


def picture_path(url: str, folder: Path) -> Path | None:
    """The file of an image below a folder of pictures; None if it is not there.

    An image of Visual Genome is `VG_100K/1.jpg` or `VG_100K_2/1.jpg`. One of VCR is `vcr1images/{clip}/{name}.jpg`, or
    `{clip}/{name}.jpg` where the folder is `vcr1images` itself. An address with parts that are no plain names, such as
    `..`, has no file.
    """
    parts = url.split("/")[-3:]
    for count in (2,) if source_of(url) == "VG" else (3, 2):
        names = parts[-count:]
        if len(names) == count and all(map(_PLAIN.fullmatch, names)):
            path = folder.joinpath(*names)
            if path.is_file():
                return path
    return None
