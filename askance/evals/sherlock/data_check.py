"""The report of `askance data check sherlock`: what a folder holds, how that compares with the published data, and what
about the data decides what a figure can say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from askance.evals.sherlock.dataset import Sherlock
from askance.evals.sherlock.layout import Split
from askance.evals.suite.files import Counted, Problems

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.sherlock.layout import Source

INSTANCES, IMAGES = 22_737, 6_656
"""Of the validation corpus, version 1.1."""
OF_SOURCE: Mapping[Source, tuple[int, int]] = {"VG": (13_194, 3_740), "VCR": (9_543, 2_916)}
"""Instances and images from each source."""
OF_CONFIDENCE: Mapping[int, int] = {1: 4_221, 2: 11_504, 3: 7_012}
CONFIDENCE: Mapping[int, str] = {1: "possibly", 2: "likely", 3: "definitely"}
"""What annotators chose from."""
CHUNK_SIZES = (
    *(983, 992, 986, 995, 988, 987, 986, 993, 985, 996, 980, 990),
    *(994, 985, 992, 990, 994, 979, 985, 991, 991, 992, 983),
)
"""Instances of each chunk; retrieval scores the square of that many pairs."""
COMPARED: Mapping[Split, int] = {"val": 4_850, "test": 4_719}
"""Pairs of comparison."""

Fact: TypeAlias = Literal[
    "boxes",
    "clipped boxes",
    "twins in chunks",
    "twins at images",
    "images with a doubled region",
    "crowded places",
    "regions off centre",
    "long images",
    "unseen regions",
]
"""What is counted about the instances; `_notes` says what each means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SherlockReport:
    """What a folder of the data set holds."""

    folder: str
    files: tuple[str, ...]
    """The files that are read, by their path below the folder; those in archives after a colon."""
    training: int | None
    """Instances of the training corpus, where it is there."""
    counts: Mapping[str, Counted]
    """Counts of `instances` and `images`, each also by source, and of images with `pictures` and `proposals`."""
    confidence: Mapping[str, Counted]
    """Instances by how sure the annotator was."""
    chunks: Mapping[int, Counted]
    """Instances of each chunk."""
    facts: Mapping[Fact, int]
    """Counts about the instances, as the notes explain them."""
    ceiling: float | None
    """The best P@1 of retrieval in percent, a mean over chunks: twins share a score, and none of them is then first."""
    chance: float | None
    """The accuracy of localization among the regions of people in percent that chance has, a mean over images."""
    leaderboard: Mapping[str, int]
    """Pairs of each file of the leaderboard."""
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """What should be mended, one sentence each."""

    @property
    def sound(self) -> bool:
        """Whether there are no problems."""
        return not self.problems

    def canonical(self) -> JsonObject:
        """The report as JSON."""
        return {**asdict(self), "sound": self.sound}


def check(
    folder: str | Path, *, images: str | Path | Sequence[str | Path] | None = None, pairs: bool = False
) -> SherlockReport:
    """Reads the files of a folder and reports what is there; errors of single rows are collected, not raised.

    Args:
        folder: of the data set.
        images: folder or folders with the pictures; by default `images` of the folder, or the folder itself.
        pairs: whether the pairs of retrieval and localization are read as well, of which there are millions.

    Raises:
        BadData: a folder is missing, or it holds nothing of the data set.
    """
    problems: Problems = []
    data = Sherlock.open(folder, images=images, problems=problems)
    instances = _instances(data, problems)
    urls = tuple(dict.fromkeys(instance.url for instance in instances))
    shown = [url for url in urls if data.picture(url) is not None]
    facts = dict(_facts(instances))
    report = SherlockReport(
        folder=str(folder),
        files=tuple(str(file).removeprefix(f"{data.folder}/") for file in data.files.all),
        training=_training(folder, data, problems),
        counts=dict(_counts(data, instances, shown)) if instances else {},
        confidence={
            CONFIDENCE[level]: Counted(found=sum(each.confidence == level for each in instances), published=count)
            for level, count in OF_CONFIDENCE.items()
        }
        if instances
        else {},
        chunks={chunk: Counted(found=len(data.of_chunk(chunk)), published=CHUNK_SIZES[chunk]) for chunk in data.chunks}
        if instances
        else {},
        facts=facts,
        ceiling=_ceiling(instances),
        chance=_chance(instances),
        leaderboard=dict(_leaderboard(data, problems, pairs=pairs)),
    )
