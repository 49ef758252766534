"""`FolderReport`: what `askance data check` says of a folder, whatever the data set."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from askance.chat import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderReport:
    """What a folder of a data set holds; a suite adds what it counts."""

    folder: str
    notes: tuple[str, ...] = ()
    """What is to be known, one sentence each."""
    problems: tuple[str, ...] = ()
    """What should be mended, likewise."""

    @property
    def sound(self) -> bool:
        """Whether there are no problems."""
        return not self.problems

    def canonical(self) -> JsonObject:
        """The report as JSON."""
        return {**asdict(self), "sound": self.sound}
