"""Files of the leaderboard: which region is to be scored against which inference, and what two raters say of them."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, TypeAlias, cast

from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from askance.amounts import many
from askance.documents import validation_message
from askance.errors import BadData
from askance.evals.sherlock.instance import MEND, Box, Instance, read_pair

if TYPE_CHECKING:
    from askance.evals.sherlock.layout import LeaderboardFiles, LeaderboardKey, LeaderboardTask, Split
    from askance.evals.suite.files import DataFile


Places: TypeAlias = "array[int]"
"""Whole numbers of four bytes each; numpy takes them as they are, without a copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedInference:
    """An inference that two people rated for a region."""

    text: str
    test_id: str
    source_id: str = ""
    """The `instance_id` of the instance that it comes from; empty where the answers are hidden."""
    ratings: tuple[int, int] | None = None
    """How plausible the two found it, 1 to 3; None where the answers are hidden."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedRegion:
    """A region with the inferences, ten in the published data, that are compared for it (section 4.3)."""

    instance: Instance
    """With clue and inference of its own where the corpus is at hand and the answers are not hidden."""
    candidates: tuple[RatedInference, ...]
    """In the order of the answers, which decides how ties are broken; without answers that of the file."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairGroup:
    """Pairs of the leaderboard that are scored together: those of an image, of a rated region, or of a chunk."""

    regions: tuple[Instance, ...]
    inferences: tuple[str, ...]
    """Without repeats, as `regions`, in the order of the file."""
    rows: Places
    """For each pair the place of its region in `regions`."""
    columns: Places
    """For each pair the place of its inference in `inferences`."""
    places: Places
    """For each pair its place in the order of sorted `test_id`, in which official files have their numbers."""

    def pairs(self) -> Iterator[tuple[int, int, int]]:
        """Of each pair the row, the column and the place."""
        return zip(self.rows, self.columns, self.places, strict=True)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leaderboard:
    """The pairs of one task of the leaderboard; for retrieval of one chunk."""

    task: LeaderboardTask
    split: Split
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
    split, task, chunk = key
    groups: dict[object, _Group] = {}
    ids, owners = list[str](), list[_Group]()
    for place, row in files.instances.stream():
        region, inference = read_pair(row, f"The file {str(files.instances)!r}, item {place}")
        named = {"comparison": (region.url, region.boxes), "localization": region.url, "retrieval": None}[task]
        if (group := groups.get(named)) is None:
            group = groups[named] = _Group()
        group.add(region, inference)
        ids.append(region.id)
        owners.append(group)
    if not ids:
        raise BadData(f"The file {str(files.instances)!r} holds no instances.", hint=MEND)
    order = sorted(range(len(ids)), key=ids.__getitem__)
    sorted_ids = tuple(ids[at] for at in order)
    _check_ids(sorted_ids, files)
    places = array("i", bytes(4 * len(ids)))
    for place, at in enumerate(order):
        places[at] = place
    for place, group in zip(places, owners, strict=True):
        group.places.append(place)
    made = tuple(group.made() for group in groups.values())
    return Leaderboard(task=task, split=split, chunk=chunk, groups=made, ids=sorted_ids)


def hidden_instances(leaderboard: Leaderboard) -> tuple[Instance, ...]:
    """The regions of a chunk, each with any of its inferences: which belong together is hidden.

    A region or an inference that stands in the chunk several times does so here.

    Raises:
        BadData: the pairs are not all regions with all inferences.
    """
    regions, texts, count = list[Instance](), list[str](), math.isqrt(len(leaderboard.ids))
    for group in leaderboard.groups:
        for row, pairs in sorted(Counter(group.rows.tolist()).items()):
            regions += [group.regions[row]] * (pairs // count)
        for column, pairs in sorted(Counter(group.columns.tolist()).items()):
            texts += [group.inferences[column]] * (pairs // count)
    if not len(regions) == len(texts) == count or count**2 != len(leaderboard.ids):
        raise BadData(
            f"Chunk {leaderboard.chunk} of retrieval has {len(leaderboard.ids):,} pairs, which are not all of its "
            "regions with all of its inferences.",
            hint=MEND,
        )
    return tuple(
        replace(region, id=f"chunk {leaderboard.chunk}/{place}", inference=text, chunk=leaderboard.chunk)
        for place, (region, text) in enumerate(zip(regions, texts, strict=True))
    )


class _Group:
    """A `PairGroup` while it is read."""

    def __init__(self) -> None:
        self.regions: dict[tuple[str, tuple[Box, ...]], tuple[int, Instance]] = {}
        self.inferences: dict[str, int] = {}
        self.rows, self.columns, self.places = array("i"), array("i"), array("i")

    def add(self, region: Instance, inference: str) -> None:
        self.rows.append(self.regions.setdefault((region.url, region.boxes), (len(self.regions), region))[0])
        self.columns.append(self.inferences.setdefault(inference, len(self.inferences)))

    def made(self) -> PairGroup:
        return PairGroup(
            regions=tuple(region for _, region in self.regions.values()),
            inferences=tuple(self.inferences),
            rows=self.rows,
            columns=self.columns,
            places=self.places,
        )


def _check_ids(ids: Sequence[str], files: LeaderboardFiles) -> None:
    """Checks that sorted ids are different from each other, and those of their file."""
    twice = next((one for one, other in pairwise(ids) if one == other), None)
    if twice is not None:
        raise BadData(f"The file {str(files.instances)!r} has the 'test_id' {twice[:60]!r} twice.", hint=MEND)
    if files.instance_ids is None:
        return
    listed = read_ids(files.instance_ids)
    where = f"The file {str(files.instance_ids)!r}"
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
    leaderboard: Leaderboard, files: LeaderboardFiles, corpus: Mapping[str, Instance]
) -> tuple[RatedRegion, ...]:
    """The regions of comparison with their ratings, where the files have them.

    Args:
        leaderboard: of comparison.
        files: it was read from.
        corpus: instances by id, which say what the annotator saw and inferred.

    Raises:
        BadData: the answers cannot be read, or are not those of the instances.
    """
    if files.answer_key is None:
        return tuple(_unrated(group, leaderboard.ids) for group in leaderboard.groups)
    try:
        key = _answer_keys().validate_python(files.answer_key.json())
    except ValidationError as error:
        raise BadData(f"The file {str(files.answer_key)!r}: {validation_message(error)}.", hint=MEND) from error
    where = f"The file {str(files.answer_key)!r}"
    shown: _Shown = {}
    for group in leaderboard.groups:
        for row, column, place in group.pairs():
            test_id = leaderboard.ids[place]
            if test_id not in key["test_id_map"]:
                raise BadData(f"{where} lacks the 'test_id' {test_id[:60]!r}.", hint=MEND)
            origin = key["test_id_map"][test_id]
            pair = origin["Input_iid"], origin["candidate"]
            shown[pair] = group.regions[row], group.inferences[column], test_id
    rated = [_rated(annotation, shown, where) for annotation in key["annotations"]]
    return tuple(_told(region, corpus.get(region.instance.id)) for region in rated)


_Shown: TypeAlias = "dict[tuple[str, str], tuple[Instance, str, str]]"
"""By the ids of a region's and of a candidate's instance: the region, the text and the `test_id`."""


def _told(region: RatedRegion, own: Instance | None) -> RatedRegion:
    """The region with what its annotator says of it, where that is known."""
    if own is None:
        return region
    instance = replace(
        region.instance, clue=own.clue, inference=own.inference, confidence=own.confidence, chunk=own.chunk
    )
    return replace(region, instance=instance)


def _unrated(group: PairGroup, ids: Sequence[str]) -> RatedRegion:
    return RatedRegion(
        instance=group.regions[0],
        candidates=tuple(
            RatedInference(text=group.inferences[column], test_id=ids[place]) for _, column, place in group.pairs()
        ),
    )


def _rated(annotation: _AnnotationForm, shown: _Shown, where: str) -> RatedRegion:
    name = annotation["Input_iid"]
    if not annotation["candidates"]:
        raise BadData(f"{where}: {name[:60]!r} has no candidates.", hint=MEND)
    rated = list[RatedInference]()
    regions = list[Instance]()
    for form in annotation["candidates"]:
        if (name, form["source_iid"]) not in shown:
            raise BadData(
                f"{where}: the candidate {form['source_iid'][:60]!r} of {name[:60]!r} has no instance.", hint=MEND
            )
        region, text, test_id = shown[name, form["source_iid"]]
        regions.append(region)
        ratings = int(form["annot1"]), int(form["annot2"])
        rated.append(RatedInference(text=text, test_id=test_id, source_id=form["source_iid"], ratings=ratings))
    if len({(region.url, region.boxes) for region in regions}) > 1:
        raise BadData(f"{where}: the candidates of {name[:60]!r} are shown with several regions.", hint=MEND)
    return RatedRegion(instance=replace(regions[0], id=name), candidates=tuple(rated))
