"""Kinds of wrong options: what was changed in a hard negative, by the file that it comes from (Fig. 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from askance.evals.pittads.release import read_qa

if TYPE_CHECKING:
    from askance.evals.pittads.contents import Ad
    from askance.evals.pittads.dataset import PittAds

NegativeKind: TypeAlias = Literal[
    "action", "reason", "adjective", "object", "statement", "other image", "unknown hard negative"
]
"""Five kinds of hard negatives; `other image`: a statement that is true of another image, as in the data set itself."""
NEGATIVE_KINDS: tuple[NegativeKind, ...] = get_args(NegativeKind)

TRUE = "true"

KindsOf: TypeAlias = Callable[["Ad"], Mapping[str, str]]


def kinds_of(data: PittAds) -> KindsOf:
    """From an ad to the kind of each of its options, `true` for the true ones.

    The name of the file of statements says the kind. In a file with all kinds, a negative is of the kind whose own file
    in the folder has it for this image, and of an unknown one where none has.
    """
    hard = data.contents.qa.hard if data.contents.qa is not None else None
    by_image: dict[str, dict[str, str]] = {}
    for path in data.contents.layout.of("hard negatives") if hard == "all" else ():
        file = read_qa(path)
        if file.hard is not None and file.hard != "all":
            for key, record in file.records.items():
                by_image.setdefault(key, {}).update(dict.fromkeys(record.negatives, file.hard))
    other = "other image" if hard is None else "unknown hard negative" if hard == "all" else hard

    def kinds(ad: Ad) -> Mapping[str, str]:
        known = by_image.get(ad.id, {})
        return {text: TRUE if text in ad.true else known.get(text, other) for text in ad.options}

    return kinds
