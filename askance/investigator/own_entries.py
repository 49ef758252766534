"""Which entries of an index belong to a picture, so that a search tells nobody the answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from askance.amounts import many
from askance.errors import UsageError
from askance.retrieval import Index, IndexEntry, IndexLike
from askance.retrieval.entries import entry_id


class OwnEntries:
    """The entries of an index by the pictures that they are true of.

    Pictures are compared by their names without case and ending. A name with folders before it is that of a picture
    whose name has fewer of them: `ads/3/cup.png` and `cup` are one, `3/cup.png` and `7/cup.png` are two.

    Raises:
        UsageError: only the form of the index is known.
        StoreError: its entries are missing, or were changed.
    """

    def __init__(self, index: Index) -> None:
        self._by_id = index.by_id
        self._by_name: dict[str, list[IndexEntry]] = {}
        self._by_end: dict[str, list[IndexEntry]] = {}
        for entry in index.entries:
            for image in entry.images:
                name, *ends = _ends(image)
                self._by_name.setdefault(name, []).append(entry)
                for end in ends:
                    self._by_end.setdefault(end, []).append(entry)

    def of(self, *, texts: Collection[str], images: Collection[str]) -> Sequence[IndexEntry]:
        """The entries that are one of these texts, exactly as written, or are true of one of these pictures."""
        found = [self._by_id[each] for text in texts if (each := entry_id(text)) in self._by_id]
        for image in images:
            ends = _ends(image)
            found += self._by_end.get(ends[0], [])
            found += [entry for end in ends for entry in self._by_name.get(end, [])]
        return list(dict.fromkeys(found))


def check_held_out(index: IndexLike, *, texts: Collection[str], images: Collection[str]) -> None:
    """Refuses an index that holds what an evaluation asks for.

    Args:
        index: what `similar` is to search.
        texts: the right answers of the evaluation.
        images: names or ids of its pictures and groups.

    Raises:
        UsageError: an entry is a right answer, or is true of one of the pictures; or only the form of the index is
            known.
        StoreError: its entries are missing, or were changed.
    """
    opened = Index.open(index)
    held = OwnEntries(opened).of(texts=texts, images=images)
    if held:
        raise UsageError(
            f"The index {opened} holds {many(len(held), 'text')} of the evaluation's own answers or pictures, such as "
            f"{held[0].text[:60]!r}.",
            hint="Search an index of another split, or leave the tool `similar` out.",
        )


def _ends(name: str) -> Sequence[str]:
    """A picture's name without case and ending: whole, then without its first folder, and so on."""
    folders = name.casefold().replace("\\", "/").split("/")
    folders[-1] = folders[-1].rsplit(".", 1)[0]
    return ["/".join(folders[start:]) for start in range(len(folders))]
