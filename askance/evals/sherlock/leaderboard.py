"""Files of the leaderboard: which region is to be scored against which inference, and what two raters say of them."""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar, cast

from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from askance.amounts import many
from askance.documents import validation_message
from askance.errors import BadData
from askance.evals.sherlock.instance import MEND, Instance, read_pair

if TYPE_CHECKING:
    from askance.evals.sherlock.layout import LeaderboardFiles, LeaderboardKey
    from askance.evals.suite.files import DataFile

Item = TypeVar("Item")

Places: TypeAlias = "array[int]"
"""Whole numbers of four bytes each; numpy takes them as they are, without a copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedInference:
    """An inference that two people rated for a region."""

    text: str
    test_id: str
    ratings: tuple[int, int] | None = None
    """How plausible the two found it, 1 to 3; None where the answers are hidden."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedRegion:
    """A region with the inferences, ten in the published data, that are compared for it (section 4.3)."""

    instance: Instance
    """Without an inference of its own; how sure its author was is known where the corpus is at hand."""
    candidates: tuple[RatedInference, ...]
    """In the order of the answers, which decides how ties are broken; without answers that of the file."""


@dataclass(slots=True, eq=False)
class PairGroup:
    """Pairs of the leaderboard that are scored together: those of an image, of a rated region, or of a chunk."""

    regions: list[Instance] = field(default_factory=list["Instance"])
    inferences: list[str] = field(default_factory=list[str])
    """Without repeats, as `regions`, in the order of the file."""
    rows: Places = field(default_factory=lambda: array("i"))
    """For each pair the place of its region in `regions`."""
    columns: Places = field(default_factory=lambda: array("i"))
    """For each pair the place of its inference in `inferences`."""
    places: Places = field(default_factory=lambda: array("i"))
    """For each pair its place in the order of sorted `test_id`, in which official files have their numbers."""
    _known: dict[object, int] = field(default_factory=dict[object, int], repr=False)

    def pairs(self) -> Iterator[tuple[int, int, int]]:
        """Of each pair the row, the column and the place."""
        return zip(self.rows, self.columns, self.places, strict=True)

    def add(self, region: Instance, inference: str) -> None:
        """Adds a pair, whose place is added later."""
        self.rows.append(self._place(region, self.regions, key=(region.url, region.boxes)))
        self.columns.append(self._place(inference, self.inferences, key=inference))

    def _place(self, item: Item, items: list[Item], *, key: object) -> int:
        """The place of an item, which is added where none with its key is there."""
        place = self._known.setdefault(key, len(items))
        if place == len(items):
            items.append(item)
        return place


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leaderboard:
    """The pairs of one task of the leaderboard; for retrieval of one chunk."""

    chunk: int | None
    groups: tuple[PairGroup, ...]
    ids: tuple[str, ...]
    """Every `test_id`, sorted."""


def read_leaderboard(key: LeaderboardKey, files: LeaderboardFiles) -> Leaderboard:
    """The pairs in the files of one task. Of comparison each region is a group, of localization each image.

    Raises:
        BadData: a file cannot be read, a row is not as it should be, an id stands there twice, or `instance_ids` are
            not the sorted ids of the instances.
    """
    _, task, chunk = key
    groups = defaultdict[object, PairGroup](PairGroup)
    ids, owners = list[str](), list[PairGroup]()
    for place, row in files["instances"].stream():
        region, inference = read_pair(row, f"The file {str(files['instances'])!r}, item {place}")
        named = {"comparison": (region.url, region.boxes), "localization": region.url, "retrieval": None}[task]
        owners.append(groups[named])
        owners[-1].add(region, inference)
        ids.append(region.id)
    if not ids:
        raise BadData(f"The file {str(files['instances'])!r} holds no instances.", hint=MEND)
    order = sorted(range(len(ids)), key=ids.__getitem__)
    sorted_ids = tuple(ids[at] for at in order)
    _check_ids(sorted_ids, files)
    places = array("i", bytes(4 * len(ids)))
    for place, at in enumerate(order):
        places[at] = place
    for place, group in zip(places, owners, strict=True):
        group.places.append(place)
    return Leaderboard(chunk=chunk, groups=tuple(groups.values()), ids=sorted_ids)


def hidden_instances(leaderboard: Leaderboard) -> tuple[Instance, ...]:
    """The regions of a chunk, each with any of its inferences: which belong together is hidden.

    A region or an inference that stands in the chunk several times does so here.

    Raises:
        BadData: the pairs are not all regions with all inferences.
    """
    (group,), count = leaderboard.groups, math.isqrt(len(leaderboard.ids))
    rows, columns = (
        [place for place, pairs in sorted(Counter(places).items()) for _ in range(pairs // count)]
        for places in (group.rows, group.columns)
    )
    if not len(rows) == len(columns) == count or count**2 != len(leaderboard.ids):
        raise BadData(
            f"Chunk {leaderboard.chunk} of retrieval has {len(leaderboard.ids):,} pairs, which are not all of its "
            "regions with all of its inferences.",
            hint=MEND,
        )
    return tuple(
        replace(
            group.regions[row],
            id=f"chunk {leaderboard.chunk}/{place}",
            inference=group.inferences[column],
            chunk=leaderboard.chunk,
        )
        for place, (row, column) in enumerate(zip(rows, columns, strict=True))
    )


def _check_ids(ids: Sequence[str], files: LeaderboardFiles) -> None:
    """Checks that sorted ids are different from each other, and those of their file."""
    twice = next((one for one, other in pairwise(ids) if one == other), None)
    if twice is not None:
        raise BadData(f"The file {str(files['instances'])!r} has the 'test_id' {twice[:60]!r} twice.", hint=MEND)
    if "instance_ids" not in files:
        return
    listed = read_ids(files["instance_ids"])
    where = f"The file {str(files['instance_ids'])!r}"
    if len(listed) != len(ids):
        raise BadData(
            f"{where} has {many(len(listed), 'id')}, and there are {len(ids):,} instances.",
            hint="Fetch both files of one download again.",
        )
    place = next((place for place, name in enumerate(ids) if listed[place] != name), None)
    if place is not None:
        raise BadData(
            f"{where}, item {place} is {str(listed[place])[:60]!r}, and the sorted ids of the instances have "
            f"{ids[place][:60]!r} there.",
            hint="Numbers are handed in in the order of the sorted ids; fetch both files of one download again.",
        )


def read_ids(file: DataFile) -> Sequence[object]:
    """The ids in a file.

    Raises:
        BadData: it cannot be read, or is no list.
    """
    ids = file.json()
    if not isinstance(ids, list):
        raise BadData(f"The file {str(file)!r} holds no list of ids.", hint=MEND)
    return cast("list[object]", ids)


# --- the answers of comparison ---

_Rating = Annotated[float, Field(ge=1, le=3, multiple_of=1)]


class _OriginForm(TypedDict):
    Input_iid: str
    candidate: str


class _RatedForm(TypedDict):
    source_iid: str
    annot1: _Rating
    annot2: _Rating


class _AnnotationForm(TypedDict):
    Input_iid: str
    candidates: list[_RatedForm]


class _AnswerKeyForm(TypedDict):
    test_id_map: dict[str, _OriginForm]
    annotations: list[_AnnotationForm]


@cache
def _answer_keys() -> TypeAdapter[_AnswerKeyForm]:
    return TypeAdapter(_AnswerKeyForm)


def rated_regions(
    leaderboard: Leaderboard, files: LeaderboardFiles, confidences: Mapping[str, int | None]
) -> tuple[RatedRegion, ...]:
    """The regions of comparison with their ratings, where the files have them.

    Args:
        leaderboard: of comparison.
        files: it was read from.
        confidences: how sure the author of an instance was, by its id.

    Raises:
        BadData: the answers cannot be read, or are not those of the instances.
    """
    pairs = [(group.regions[0], [*_candidates(group, leaderboard.ids)]) for group in leaderboard.groups]
    if "answer_key" not in files:
        return tuple(RatedRegion(instance=region, candidates=tuple(some)) for region, some in pairs)
    where = f"The file {str(files['answer_key'])!r}"
    try:
        key = _answer_keys().validate_python(files["answer_key"].json())
    except ValidationError as error:
        raise BadData(f"{where}: {validation_message(error)}.", hint=MEND) from error
    shown: _Shown = {}
    for region, candidates in pairs:
        for candidate in candidates:
            if candidate.test_id not in key["test_id_map"]:
                raise BadData(f"{where} lacks the 'test_id' {candidate.test_id[:60]!r}.", hint=MEND)
            origin = key["test_id_map"][candidate.test_id]
            shown[origin["Input_iid"], origin["candidate"]] = region, candidate
    rated = (_rated(annotation, shown, where=where) for annotation in key["annotations"])
    return tuple(
        replace(each, instance=replace(each.instance, confidence=confidences.get(each.instance.id))) for each in rated
    )


_Shown: TypeAlias = "dict[tuple[str, str], tuple[Instance, RatedInference]]"
"""By the ids of a region's and of a candidate's instance: the region, and the candidate without its ratings."""


def _candidates(group: PairGroup, ids: Sequence[str]) -> Iterator[RatedInference]:
    """The inferences of a region, of which no rating is known yet."""
    for _, column, place in group.pairs():
        yield RatedInference(text=group.inferences[column], test_id=ids[place])


def _rated(annotation: _AnnotationForm, shown: _Shown, *, where: str) -> RatedRegion:
    """A region with its ratings."""
    name, regions, candidates = annotation["Input_iid"], list[Instance](), list[RatedInference]()
    for form in annotation["candidates"]:
        source = form["source_iid"]
        if (name, source) not in shown:
            raise BadData(f"{where}: the candidate {source[:60]!r} of {name[:60]!r} has no instance.", hint=MEND)
        region, candidate = shown[name, source]
        regions.append(region)
        ratings = int(form["annot1"]), int(form["annot2"])
        candidates.append(replace(candidate, ratings=ratings))
    if not regions:
        raise BadData(f"{where}: {name[:60]!r} has no candidates.", hint=MEND)
    if len({(region.url, region.boxes) for region in regions}) > 1:
        raise BadData(f"{where}: the candidates of {name[:60]!r} are shown with several regions.", hint=MEND)
    return RatedRegion(instance=replace(regions[0], id=name), candidates=tuple(candidates))
