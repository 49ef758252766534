"""`Ranking`: what a solver ranked, the best first, as a file beside the lines of a run: `rankings/SHA256.json`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, TypeAlias, cast

from typing_extensions import override

from askance.chat import canonical_json
from askance.documents import UnreadableDocument, parse_json
from askance.errors import UsageError
from askance.evals.attachment import AGAIN, Attachment
from askance.evals.run_format import LARGEST_RANKING, LONGEST_RANKED_ID, MOST_RANKED, RANKINGS, RankingForm

_Lists: TypeAlias = tuple[tuple[str, ...], tuple[float, ...]]

_DIGITS: Final = 310
"""Most digits of a score that is a whole number: those of the largest float."""


class Ranking(Attachment):
    """Ids with their scores, the best first.

    Args:
        ids: each once, at most `MOST_RANKED`, of 1 to `LONGEST_RANKED_ID` characters.
        scores: as many, finite. The order of the ids is what counts: after a reranking the scores need not fall.

    Raises:
        UsageError: it breaks one of these rules.
    """

    kind: ClassVar[str] = "ranking"
    folder: ClassVar[str] = RANKINGS
    suffix: ClassVar[str] = ".json"
    line_form: ClassVar[type] = RankingForm

    __slots__ = ()

    def __init__(self, ids: Iterable[str], scores: Iterable[float]) -> None:
        names, numbers = _checked([*ids], [*scores], where="This ranking")
        text = canonical_json({"ids": [*names], "scores": [*numbers]})
        super().__init__(text.encode(), {"count": len(names)})

    @property
    def count(self) -> int:
        """How many ids it has."""
        return self._form["count"]

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids, the best first.

        Raises:
            UsageError: its file is missing, was changed, or holds no ranking.
        """
        return self._lists()[0]

    @property
    def scores(self) -> tuple[float, ...]:
        """The score of each id.

        Raises:
            UsageError: as `ids`.
        """
        return self._lists()[1]

    @override
    def check(self) -> None:
        self._lists()

    @property
    @override
    def _most_bytes(self) -> int:
        return LARGEST_RANKING

    def _lists(self) -> _Lists:
        try:
            form: Any = parse_json(self.content, unique=True, max_digits=_DIGITS)
        except UnreadableDocument as error:
            raise UsageError(f"{self._where} {error}.", hint=AGAIN) from error
        lists = cast("dict[str, Any]", form) if isinstance(form, dict) else {}
        ids, scores = lists.get("ids"), lists.get("scores")
        if not (isinstance(ids, list) and isinstance(scores, list)):
            raise UsageError(f"{self._where} is not an object with the lists `ids` and `scores`.", hint=AGAIN)
        checked = _checked(cast("list[Any]", ids), cast("list[Any]", scores), where=self._where)
        if len(checked[0]) != self.count:
            raise UsageError(
                f"{self._where} has {len(checked[0]):,} ids, and its line says {self.count:,}.", hint=AGAIN
            )
        return checked

    @override
    def __repr__(self) -> str:
        return f"Ranking({self.count:,} ids, {self.digest[:12]})"


def _checked(ids: list[Any], scores: list[Any], *, where: str) -> _Lists:
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
    texts = {name: text for name, text in pairs if isinstance(name, str) and isinstance(text, str)}
    return texts if texts and len(texts) == len(hits) else None
