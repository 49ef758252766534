"""`Ranking`: what a solver ranked, the best first, of which a run keeps more than a line of it should hold.

It is a file of its own beside the lines of a run, `rankings/SHA256.json`, named by the sha256 of its content. The line
has that digest and the number of ids. So a line is small, equal rankings are one file, and a file that was changed is
found out when it is read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from askance.chat import canonical_json
from askance.documents import UnreadableDocument, parse_json
from askance.errors import UsageError
from askance.evals.run_format import LARGEST_RANKING, LONGEST_RANKED_ID, MOST_RANKED, RANKINGS

if TYPE_CHECKING:
    from askance.chat import JsonObject

_Content: TypeAlias = tuple[tuple[str, ...], tuple[float, ...]]

_DIGEST: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_DIGITS: Final = 310
"""Most digits of a score that is a whole number: those of the largest float."""
_MEND: Final = "Take the file from a copy, or run the evaluation again: the same command answers the sample anew."


class Ranking:
    """Ids with their scores, the best first. Two rankings with the same ids and scores are equal.

    Args:
        ids: each once, at most `MOST_RANKED`, of 1 to `LONGEST_RANKED_ID` characters.
        scores: as many, finite. The order of the ids is what counts: after a reranking the scores need not fall.

    Raises:
        UsageError: it breaks one of these rules.
    """

    __slots__ = ("_content", "_file", "count", "digest")

    def __init__(self, ids: Iterable[str], scores: Iterable[float]) -> None:
        self._content: _Content | None = _checked([*ids], [*scores], where="This ranking")
        self._file: Path | None = None
        self.count: int = len(self._content[0])
        """How many ids it has."""
        self.digest: str = sha256(self.text.encode()).hexdigest()
        """sha256 of its text, 64 hex digits."""

    @classmethod
    def kept(cls, folder: Path, form: Mapping[str, Any]) -> Ranking:
        """The ranking that a line tells of; its file is read, and checked, each time its ids or scores are asked for.

        Nothing of it is held, since a run may have thousands.

        Args:
            folder: of the run.
            form: of the ranking, as the line has it.

        Raises:
            UsageError: the form is none of a ranking.
        """
        digest, count = form.get("sha256"), form.get("count")
        if not (isinstance(digest, str) and _DIGEST.fullmatch(digest) and type(count) is int and count >= 0):
            raise UsageError(
                f"This is no ranking of a line: {str(dict(form))[:80]!r}.",
                hint="It has `sha256`, 64 hex digits, and `count`, a whole number.",
            )
        found = cls.__new__(cls)
        found._content, found._file, found.count, found.digest = None, folder / place_of_ranking(digest), count, digest
        return found

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids, the best first.

        Raises:
            UsageError: its file is missing, was changed, or holds no ranking.
        """
        return self._read()[0]

    @property
    def scores(self) -> tuple[float, ...]:
        """The score of each id.

        Raises:
            UsageError: as `ids`.
        """
        return self._read()[1]

    @property
    def text(self) -> str:
        """The content of its file, canonical JSON."""
        ids, scores = self._read()
        return canonical_json({"ids": [*ids], "scores": [*scores]})

    @property
    def whole(self) -> bool:
        """Whether it can be read."""
        try:
            self._read()
        except UsageError:
            return False
        return True

    def form(self) -> JsonObject:
        """What the line of a sample holds of it."""
        return {"sha256": self.digest, "count": self.count}

    def _read(self) -> _Content:
        if self._content is not None:
            return self._content
        return _content_of(cast("Path", self._file), self.digest, self.count)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ranking) and self.form() == other.form()

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Ranking({self.count:,} ids, {self.digest[:12]})"


def place_of_ranking(digest: str) -> str:
    """The file of a ranking within the folder of its run."""
    return f"{RANKINGS}/{digest}.json"


def _content_of(file: Path, digest: str, count: int) -> _Content:
    """The content of a ranking's file.

    Raises:
        UsageError: it is missing, was changed, or holds no ranking.
    """
    where = f"The ranking {str(file)!r}"
    try:
        if file.is_symlink() or not file.is_file():
            raise UsageError(f"{where} is missing.", hint=_MEND)
        with file.open("rb") as content:
            text = content.read(LARGEST_RANKING + 1)
    except OSError as error:
        raise UsageError(f"{where} cannot be read: {error.strerror}.", hint=_MEND) from error
    if len(text) > LARGEST_RANKING:
        raise UsageError(f"{where} is larger than {LARGEST_RANKING >> 20} MB.", hint=_MEND)
    if sha256(text).hexdigest() != digest:
        raise UsageError(f"{where} was changed: its content does not have the digest of its name.", hint=_MEND)
    try:
        form: Any = parse_json(text, unique=True, max_digits=_DIGITS)
    except UnreadableDocument as error:
        raise UsageError(f"{where} {error}.", hint=_MEND) from error
    lists = cast("dict[str, Any]", form) if isinstance(form, dict) else {}
    ids, scores = lists.get("ids"), lists.get("scores")
    if not (isinstance(ids, list) and isinstance(scores, list)):
        raise UsageError(f"{where} is not an object with the lists `ids` and `scores`.", hint=_MEND)
    found = _checked(cast("list[Any]", ids), cast("list[Any]", scores), where=where)
    if len(found[0]) != count:
        raise UsageError(f"{where} has {len(found[0]):,} ids, and its line says {count:,}.", hint=_MEND)
    return found


def _checked(ids: list[Any], scores: list[Any], *, where: str) -> _Content:
    """Ids and scores as a ranking has them.

    Raises:
        UsageError: they are none.
    """
    if len(ids) != len(scores) or len(ids) > MOST_RANKED:
        raise UsageError(
            f"{where} has {len(ids):,} ids and {len(scores):,} scores.",
            hint=f"Give a score for each id, and at most {MOST_RANKED:,} ids.",
        )
    odd = [each for each in ids if not _is_id(each)]
    if odd:
        raise UsageError(
            f"{where} has the id {str(odd[0])[:80]!r}.", hint=f"An id is a text of 1 to {LONGEST_RANKED_ID} characters."
        )
    if len(set(ids)) != len(ids):
        twice = next(each for place, each in enumerate(ids) if each in ids[:place])
        raise UsageError(f"{where} has the id {twice!r} twice.", hint="Rank each id once.")
    numbers = [_number(each) for each in scores]
    wrong = next((place for place, each in enumerate(numbers) if not math.isfinite(each)), None)
    if wrong is not None:
        raise UsageError(f"{where} has the score {str(scores[wrong])[:80]!r}.", hint="A score is a finite number.")
    return tuple(map(str, ids)), tuple(numbers)


def _is_id(value: Any) -> bool:
    try:
        return isinstance(value, str) and 0 < len(value) <= LONGEST_RANKED_ID and bool(value.encode())
    except UnicodeEncodeError:  # half a surrogate pair
        return False


def _number(value: Any) -> float:
    """A number as float; NaN for anything else, such as a text or True."""
    try:
        return math.nan if isinstance(value, (str, bytes, bool)) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def texts_of_hits(value: Any) -> dict[str, str] | None:
    """The texts of the hits that a prediction's value lists, by id, the best first; None where it lists none.

    Args:
        value: a list of objects with `id` and `text`, as of a solver that retrieves; strangers may have written it.
    """
    hits = cast("list[Any]", value) if isinstance(value, list) else []
    forms = [cast("Mapping[str, Any]", each) for each in hits if isinstance(each, Mapping)]
    pairs = [(form.get("id"), form.get("text")) for form in forms]
    found = {name: text for name, text in pairs if isinstance(name, str) and isinstance(text, str)}
    return found if found and len(found) == len(hits) else None
