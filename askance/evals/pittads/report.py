"""`DataReport`: what `check` found, as values, as JSON, and for a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from askance.amounts import many
from askance.evals.suite.ids import FULL_SET

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.pittads.layout import Part


@dataclass(frozen=True, slots=True)
class FileFound:
    """A file that is there."""

    part: Part
    path: str
    """From the folder."""
    holds: str
    """What is in it, in a few words."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """What was dropped for one reason."""

    reason: str
    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFound:
    """What became of a list of images."""

    listed: int
    kept: int
    unknown: tuple[str, ...]
    """Those that match nothing in the folder."""
    dropped: tuple[Dropped, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataReport:
    """What a folder of the data set holds."""

    folder: str
    release: str | None
    """Of the statements, in words."""
    statements: str | None
    """The file that they are read from."""
    files: tuple[FileFound, ...]
    missing: Mapping[str, str]
    """Files that are not there, and what they are for."""
    images: Mapping[str, int]
    """Images on the disk by the part whose folder they lie in: `train`, `test`, `elsewhere`."""
    images_missing: tuple[str, ...]
    """Of the images that can be evaluated on, those whose picture is not there."""
    annotated: int
    """Images with atypicality annotations, of 3,928."""
    rows: int
    """Annotations, one an annotator."""
    sets: Mapping[str, int]
    """Images `usable` by the rule of the published code, `labelled` by that of the paper, and `typical`."""
    options: Mapping[int, int]
    """How many images have how many options."""
    true: Mapping[int, int]
    """How many images have how many true statements."""
    rows_dropped: tuple[Dropped, ...]
    images_dropped: tuple[Dropped, ...]
    listed: ListedFound | None
    notes: tuple[str, ...]
    problems: tuple[str, ...]
    """What should be mended."""

    def with_problems(self, found: Iterable[str]) -> DataReport:
        """The report with what should be mended: what was found, and what its own figures say."""
        problems = [*dict.fromkeys(found)]
        problems += [f"{name!r} is missing: {use}." for name, use in self.missing.items()]
        if self.images_missing and self.images:
            shown = ", ".join(map(repr, self.images_missing[:3]))
            problems.append(
                f"{many(len(self.images_missing), 'image is', 'images are')} missing, "
                f"{shown}{' …' * (len(self.images_missing) > 3)}."
            )
        if self.listed is not None and self.listed.unknown:
            problems.append(
                f"{many(len(self.listed.unknown), 'listed image matches', 'listed images match')} "
                f"nothing, {self.listed.unknown[0]!r} first."
            )
        return replace(self, problems=tuple(problems))

    @property
    def sound(self) -> bool:
        """Whether there is nothing to mend."""
        return not self.problems

    def canonical(self) -> JsonObject:
        """The report as JSON."""
        return {**asdict(self), "paper": {"full_set": FULL_SET}, "sound": self.sound}
