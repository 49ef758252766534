"""The report of `askance data check sherlock`: what a folder holds, and how that compares with the published data.

It says as well what about the instances limits the figures: twins, images several times in a chunk, regions unseen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, get_args

from askance.amounts import first_few, many
from askance.errors import BadImage
from askance.evals.sherlock.dataset import Sherlock
from askance.evals.sherlock.instance import CONFIDENCES, Instance
from askance.evals.sherlock.layout import CHUNKS, LENGTHS, VAL_CHUNKS, LeaderboardKey, Source, pairs_name, source_of
from askance.evals.sherlock.leaderboard import read_ids
from askance.evals.suite.files import Counted, FolderReport, Problems, noting

if TYPE_CHECKING:
    from askance.images.regions import Box

PUBLISHED: Mapping[str, int] = {
    "instances": 22_737,
    "instances of VG": 13_194,
    "instances of VCR": 9_543,
    "images": 6_656,
    "images of VG": 3_740,
    "images of VCR": 2_916,
    "pictures of VG": 3_740,
    "pictures of VCR": 2_916,
    "images with proposals": 6_656,
}
"""Of the validation corpus, version 1.1."""
OF_CONFIDENCE: Mapping[int, int] = {1: 4_221, 2: 11_504, 3: 7_012}
PAIRS: Mapping[str, int] = {
    "val_comparison": 4_850,
    **{pairs_name(("val", "retrieval", chunk)): size**2 for chunk, size in enumerate(VAL_CHUNKS)},
    **{f"test_{name}": length for name, length in LENGTHS.items()},
}
"""Pairs of the leaderboard that are published, as far as their number is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusReport:
    """What the validation corpus holds, and what limits figures on it."""

    counts: Mapping[str, Counted]
    """Counts of instances, images and pictures, by source, and of images for which a detector proposes boxes."""
    confidence: Mapping[str, Counted]
    """Instances by how sure the annotator was."""
    chunks: Mapping[int, Counted]
    """Instances by chunk."""
    boxes: int
    clipped: int
    """Boxes that run past the edge of their image, and are clipped to it when they are shown."""
    twins: int
    """Inferences that repeat another of their chunk, word for word."""
    twins_of_image: int
    """Inferences that repeat another of their image, in any chunk."""
    doubled: tuple[str, ...]
    """Images with one region twice."""
    shared_chunks: int
    """How often an image has several instances in one chunk."""
    off_centre: int
    """Regions that lie wholly outside the square in the middle of their image."""
    long: Mapping[Source, int]
    """Images that are more than twice as long as wide, or as wide as long, by source."""
    between: int
    """Regions of them that lie wholly between the squares at both ends."""
    ceiling: float | None
    """The highest P@1 of retrieval in percent, mean over chunks, as twins have equal scores."""
    chance: float
    """The accuracy at chance of localization among people's regions in percent, mean over images."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SherlockReport(FolderReport):
    """What a folder of the data set holds."""

    files: tuple[str, ...]
    """The corpora and the proposals that are read."""
    corpus: CorpusReport | None
    """Of the validation corpus, where it is there."""
    training: int | None
    """Instances of the training corpus, where it is there."""
    pairs: Mapping[str, int]
    """Pairs in each part of the leaderboard."""


def check(folder: str | Path, *, images: str | Path | None = None, all_pairs: bool = False) -> SherlockReport:
    """Reads the files of a folder and reports what is there; errors of single rows are collected, not raised.

    Args:
        folder: of the data set.
        images: folder of the pictures; by default `images` of the folder, or the folder itself.
        all_pairs: whether the pairs of retrieval and localization are read as well, of which there are millions.

    Raises:
        BadData: a folder is missing, or it holds nothing of the data set.
    """
    problems: Problems = []
    data = Sherlock.open(folder, images=images, problems=problems)
    training = Sherlock.open(folder, images=images, split="train", problems=problems)
    trained, instances, proposed = tuple[Instance, ...](), tuple[Instance, ...](), set[str]()
    with noting(problems):
        trained = training.instances if "train" in data.files.corpora else ()
    with noting(problems):
        instances = data.instances if "val" in data.files.corpora else ()
    with noting(problems):
        proposed = {*data.proposed} if instances else set[str]()
    sizes = {instance.url: (instance.width, instance.height) for instance in instances}
    shown = {url: None for url in sizes if data.picture(url) is not None}
    corpus = _corpus(data, shown, proposed) if instances else None
    pairs = dict(_pairs(data, all_pairs=all_pairs))
    named = [*data.files.corpora.values(), *([] if data.files.proposals is None else [data.files.proposals])]
    about = [*_notes(data, shown), *(_limits(corpus) if corpus else ()), *_otherwise(corpus, pairs)]
    mend = [
        *_lacking(sizes, shown, ("image has no picture", "images have no picture")),
        *_lacking(sizes, proposed, ("image has no proposals", "images have no proposals")),
        *_resized(data, sizes, shown),
    ]
    return SherlockReport(
        folder=str(folder),
        files=tuple(str(file).removeprefix(f"{data.folder}/") for file in named),
        corpus=corpus,
        training=len(trained) if "train" in data.files.corpora else None,
        pairs=pairs,
        notes=tuple(dict.fromkeys([*training.notes, *data.notes, *about])),
        problems=tuple(dict.fromkeys([*(error.message for error in problems), *mend])),
    )


# --- the corpus ---


def _corpus(data: Sherlock, shown: Collection[str], proposed: Collection[str]) -> CorpusReport:
    instances, images = data.instances, [data.of_image(url) for url in data.urls]
    found = Counter(name for each in instances for name in ("instances", f"instances of {each.source}"))
    found += Counter(name for url in data.urls for name in ("images", f"images of {source_of(url)}"))
    found += Counter(f"pictures of {source_of(url)}" for url in shown)
    found["images with proposals"] = len(proposed)
    places = Counter((instance.chunk, instance.url) for instance in instances)
    regions = Counter((instance.url, instance.boxes) for instance in instances)
    long = [of_image[0] for of_image in images if _is_long(of_image[0])]
    return CorpusReport(
        counts={name: Counted(found=found[name], published=count) for name, count in PUBLISHED.items()},
        confidence={
            CONFIDENCES[level]: Counted(found=sum(each.confidence == level for each in instances), published=count)
            for level, count in OF_CONFIDENCE.items()
        },
        chunks={chunk: Counted(found=len(data.of_chunk(chunk)), published=VAL_CHUNKS[chunk]) for chunk in data.chunks},
        boxes=sum(len(instance.boxes) for instance in instances),
        clipped=sum(map(_clipped, instances)),
        twins=_repeats((each.chunk, each.inference) for each in instances if each.chunk is not None),
        twins_of_image=_repeats((each.url, each.inference) for each in instances),
        doubled=tuple(dict.fromkeys(url for (url, _), count in regions.items() if count > 1)),
        shared_chunks=sum(count > 1 for (chunk, _), count in places.items() if chunk is not None),
        off_centre=sum(map(_is_off_centre, instances)),
        long={source: sum(each.source == source for each in long) for source in get_args(Source)},
        between=sum(map(_is_between, instances)),
        ceiling=100 * fmean(_alone(data.of_chunk(chunk)) for chunk in data.chunks) if data.chunks else None,
        chance=100 * fmean(1 / len(of_image) for of_image in images),
    )


def _repeats(values: Iterable[Hashable]) -> int:
    """How many of some values stand there before."""
    return sum(count - 1 for count in Counter(values).values())


def _alone(instances: Sequence[Instance]) -> float:
    """The share of instances whose inference no other one has."""
    return sum(count == 1 for count in Counter(each.inference for each in instances).values()) / len(instances)


def _clipped(instance: Instance) -> int:
    """How many boxes run past the edge of the image."""
    width, height = instance.width, instance.height
    return sum(left < 0 or top < 0 or right > width or bottom > height for left, top, right, bottom in instance.boxes)


def _along(instance: Instance) -> tuple[int, int, list[tuple[float, float]]]:
    """Long and short side of the image, and where each box begins and ends along the long one."""
    boxes: Sequence[Box] = instance.boxes
    if instance.width >= instance.height:
        return instance.width, instance.height, [(left, right) for left, _, right, _ in boxes]
    return instance.height, instance.width, [(top, bottom) for _, top, _, bottom in boxes]


def _is_long(instance: Instance) -> bool:
    long, short, _ = _along(instance)
    return long > 2 * short


def _is_off_centre(instance: Instance) -> bool:
    long, short, spans = _along(instance)
    edge = (long - short) / 2
    return all(end <= edge or begin >= edge + short for begin, end in spans)


def _is_between(instance: Instance) -> bool:
    long, short, spans = _along(instance)
    return all(begin >= short and end <= long - short for begin, end in spans)


# --- the leaderboard ---


def _pairs(data: Sherlock, *, all_pairs: bool) -> Iterator[tuple[str, int]]:
    for key in data.files.leaderboard:
        with noting(data.problems):
            yield pairs_name(key), _count(data, key, all_pairs=all_pairs)


def _count(data: Sherlock, key: LeaderboardKey, *, all_pairs: bool) -> int:
    split, task, chunk = key
    listed = data.files.leaderboard[key].get("instance_ids")
    if task == "comparison":
        return sum(len(region.candidates) for region in data.comparison(split))
    if all_pairs or listed is None:
        return len(data.leaderboard(task, split, chunk).ids)
    return len(read_ids(listed))


# --- what is to be known, and what should be mended ---


def _notes(data: Sherlock, shown: Collection[str]) -> Iterator[str]:
    if data.split not in data.files.corpora:
        yield "There is no validation corpus, which `sherlock/retrieval` and `sherlock/localization` are asked on."
    elif not shown:
        yield (
            "There are no pictures: name their folder with --images. They are those of Visual Genome (VG_100K, "
            "VG_100K_2) and of VCR (vcr1images), from their own pages; the addresses in the files are not for fetching."
        )
    if data.files.proposals is None:
        yield "There are no boxes of a detector, which `boxes=auto` needs: image_url2auto_bboxes.json.zip."
    if ("val", "comparison", None) not in data.files.leaderboard:
        yield "There are no ratings, which `sherlock/comparison` needs: val_comparison.zip of the leaderboard."


def _limits(corpus: CorpusReport) -> Iterator[str]:
    if corpus.twins and corpus.ceiling is not None:
        yield (
            f"{many(corpus.twins, 'inference repeats', 'inferences repeat')} another of the chunk word for word. Both "
            "get one score, so that neither is ever alone in the first place: P@1 of retrieval is at most "
            f"{corpus.ceiling:.3f}."
        )
    if corpus.shared_chunks:
        yield (
            f"In {many(corpus.shared_chunks, 'place', 'places')} an image has several instances in one chunk, so that "
            "another inference of the same image, which may be true as well, counts as wrong."
        )
    if corpus.twins_of_image:
        yield (
            f"{many(corpus.twins_of_image, 'inference repeats', 'inferences repeat')} another of the image word for "
            "word: localization cannot tell their regions apart."
        )
    if corpus.doubled:
        yield (
            f"{many(len(corpus.doubled), 'image has', 'images have')} one region twice, with different inferences: "
            f"{first_few(corpus.doubled)}."
        )
    if corpus.clipped:
        yield (
            f"{many(corpus.clipped, f'box of {corpus.boxes:,} runs', f'boxes of {corpus.boxes:,} run')} past the edge "
            "of the image; what is shown of them is clipped to it."
        )
    if corpus.off_centre:
        yield (
            f"{many(corpus.off_centre, 'region lies', 'regions lie')} wholly outside the square in the middle of the "
            "image: an encoder that crops to it does not see them, and `frame=widescreen` sees most of them."
        )
    if count := sum(corpus.long.values()):
        sources = " and ".join(f"{each:,} of {source}" for source, each in corpus.long.items() if each)
        yield (
            f"{many(count, 'image is', 'images are')} longer than two squares side by side ({sources}), so that "
            f"`frame=widescreen` misses the middle; {many(corpus.between, 'region lies', 'regions lie')} there unseen."
        )


def _otherwise(corpus: CorpusReport | None, pairs: Mapping[str, int]) -> Iterator[str]:
    """Counts that are not those of the published data."""
    if corpus is not None:
        sizes = [corpus.chunks[chunk].found if chunk in corpus.chunks else 0 for chunk in range(CHUNKS)]
        others = sum(size != published for size, published in zip(sizes, VAL_CHUNKS, strict=True))
        if not corpus.chunks:
            yield "The corpus has no chunks, which `sherlock/retrieval` needs: its rows have no 'split_idx'."
        elif others:
            yield (
                f"Of the {CHUNKS} chunks {others} are missing or have another size than the published ones, so that "
                "figures of retrieval cannot be compared with those of others."
            )
    others = [
        f"{name} has {count:,} and not {PAIRS[name]:,}"
        for name, count in pairs.items()
        if name in PAIRS and count != PAIRS[name]
    ]
    if others:
        yield f"Parts of the leaderboard with another number of pairs than published: {first_few(others)}."


def _lacking(urls: Iterable[str], found: Collection[str], words: tuple[str, str]) -> Iterator[str]:
    """A sentence on images that lack what others have."""
    lacking = [url for url in urls if url not in found] if found else []
    if lacking:
        yield f"{many(len(lacking), *words)}: {first_few(lacking)}."


def _resized(data: Sherlock, sizes: Mapping[str, tuple[int, int]], shown: Collection[str]) -> Iterator[str]:
    """Pictures in whose pixels the boxes do not lie, and those that cannot be used."""
    others = list[str]()
    for url in shown:
        picture = data.picture(url)
        try:
            if picture is not None and (picture.info.width, picture.info.height) != sizes[url]:
                others.append(url)
        except BadImage as error:
            yield error.message
    if others:
        width, height = sizes[others[0]]
        yield (
            f"{many(len(others), 'picture has', 'pictures have')} another size than the corpus says, so that boxes lie "
            f"elsewhere: {first_few(others)}; the first should have {width}×{height} pixels."
        )
