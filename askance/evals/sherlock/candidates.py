"""Candidates of comparison: for each image a region with ten inferences that are plausible and unlike each other.

Appendix E of the paper, whose code was not published. A scorer of pictures says how plausible each inference of the
corpus is of each region; an embedder says which inferences are alike.

1. Inferences of like meaning are one: average linkage of cosine distances, cut at so many clusters as 80 % of the
   corpus has instances; one of each cluster is drawn.
2. Of a region remain those that the scorer finds more plausible than its own inference. A region with fewer than 20 is
   left out.
3. Ten are chosen one after the other: the one with the highest sum of five times its plausibility and its
   dissimilarity, which is 1 less the mean cosine with those chosen before.
4. An inference is in no more sets than it has verbatim copies in the corpus, three at most, and once in an image.
5. Of each image the best set stays, and of all the best 500, by the sum of three ranks among all sets: of the mean
   number of words, of diversity (the mean cosine of its inferences, lower being better), and five times that of the
   mean plausibility.

Regions are looked at in an order that is drawn, since of two regions that would choose one inference the first has it.
Equal data, scores, vectors and seed give equal sets. Ties are broken by the order of the corpus.

Memory is bounded by blocks of regions, but for the linkage: about 16·n² bytes for n different texts, 6 GB for the
19,209 of the validation corpus.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from askance.errors import BadData, BadImage
from askance.evals.run_folder import check_new, write_whole
from askance.evals.sherlock.measures import CANDIDATES
from askance.evals.sherlock.pools import view_of
from askance.models import get_embedder, get_scorer
from askance.models.encoders.search import TextVectors
from askance.statistics import linkage_clusters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from askance.chat import JsonObject
    from askance.evals.sherlock.dataset import Sherlock
    from askance.evals.sherlock.instance import Instance
    from askance.models.encoders.embedder import EmbedderLike, RecordedEmbedder
    from askance.models.encoders.picture_scorer import ScorerLike
    from askance.models.engine import Engine

    Numbers = NDArray[np.float64]

CLUSTERED: Final = 0.8
"""Clusters of like inferences, as a share of the instances of the corpus."""
LEAST_LEFT: Final = 20
"""Inferences that must remain of a region."""
COPIES: Final = 3
"""Sets that one text may be in, at most."""
WEIGHT: Final = 5.0
"""Of plausibility, beside dissimilarity and the other ranks."""
SETS: Final = 500
"""Sets that are kept."""
BLOCK: Final = 64
"""Regions that are scored at a time; it changes nothing but memory and time."""

MANIFEST: Final = "manifest.json"
SOURCES: Final = "candidates.json"
"""File that says which instance each candidate comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An inference of the corpus that is to be rated for a region it was not written for."""

    source_id: str
    """The `instance_id` of an instance with this inference."""
    text: str
    plausibility: float
    """The score that the scorer gave it for the region."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateSet:
    """A region with its candidates, in the order in which they were chosen."""

    instance: Instance
    candidates: tuple[Candidate, ...]
    similarity: float
    """The mean cosine of two of them."""

    def rows(self) -> Iterator[JsonObject]:
        """A row of the official shape for each candidate."""
        region = [
            {"height": bottom - top, "width": right - left, "left": left, "top": top}
            for left, top, right, bottom in self.instance.boxes
        ]
        image = {"url": self.instance.url, "width": self.instance.width, "height": self.instance.height}
        for each in self.candidates:
            yield {
                "image": image,
                "region": region,
                "inference": each.text,
                "test_id": self.test_id(each),
                "extra_info": {"task": "comparison"},
            }

    def test_id(self, candidate: Candidate) -> str:
        """The id of one candidate for this region."""
        named = json.dumps([self.instance.id, candidate.source_id])
        return md5(named.encode(), usedforsecurity=False).hexdigest()

    def form(self) -> JsonObject:
        """Which instances it is made of; the names are those of an official answer key."""
        return {
            "Input_iid": self.instance.id,
            "candidates": [
                {
                    "source_iid": each.source_id,
                    "test_id": self.test_id(each),
                    "inference": each.text,
                    "plausibility": each.plausibility,
                }
                for each in self.candidates
            ],
        }


@dataclass(frozen=True, kw_only=True)
class CandidateSets:
    """Sets of candidates, the most promising first."""

    split: str
    sets: tuple[CandidateSet, ...]
    manifest: Mapping[str, Any]
    """What they were made from, and how much was left out."""

    def write(self, folder: Path) -> Path:
        """Writes them as the leaderboard has them, so that a task reads the folder; the manifest comes last.

        Args:
            folder: a new or empty one.

        Returns:
            The file with the pairs to be rated.

        Raises:
            UsageError: the folder holds something.
            StoreError: a file cannot be written.
        """
        check_new(folder)
        rows = sorted((row for each in self.sets for row in each.rows()), key=lambda row: str(row["test_id"]))
        name = f"{self.split}_comparison"
        pairs = folder / name / f"{name}_instances.json"
        _write(pairs, rows)
        _write(folder / name / f"{name}_instance_ids.json", [row["test_id"] for row in rows])
        _write(folder / SOURCES, [each.form() for each in self.sets])
        _write(folder / MANIFEST, self.manifest)
        return pairs


def _write(path: Path, form: object) -> None:
    write_whole(path, json.dumps(form, ensure_ascii=False, indent=1) + "\n")


async def build_candidates(
    data: Sherlock,
    *,
    scorer: ScorerLike,
    embedder: EmbedderLike,
    seed: int = 0,
    most: int = SETS,
    engine: Engine | None = None,
    on_progress: Callable[[int], object] | None = None,
) -> CandidateSets:
    """Sets of candidates of the instances of a corpus.

    Args:
        data: with a corpus and its pictures; regions without a picture that can be used have no set.
        scorer: says how plausible a text is of a region, which is highlighted; it is to give cosines, as `clip:` does.
        embedder: says how like two inferences are.
        seed: of the inference of each cluster, and of the order of regions.
        most: sets at most.
        engine: whose records and mode are used.
        on_progress: is told how many regions were looked at.

    Raises:
        BadData: the corpus has no picture, or no set of ten can be made.
        UsageError: the scorer takes no views of pictures, or asks models.
        CallError: the scorer or the embedder failed.
    """
    import numpy as np

    recorded = get_scorer(scorer, engine=engine).as_encoder()
    texts_alike = get_embedder(embedder, engine=engine)
    pool = await Pool.of(data.instances, embedder=texts_alike, seed=seed)
    order = list(data.instances)
    Random(seed).shuffle(order)
    regions = [(instance, image) for instance in order if (image := data.picture(instance.url)) is not None]
    if not regions:
        raise BadData(
            f"No picture of the corpus for {data.split} is there.",
            hint="Name the folder of pictures with --images; `askance data check sherlock DIR` says what it looks for.",
        )
    made: list[CandidateSet] = []
    unusable = 0
    for start in range(0, len(regions), BLOCK):
        some = regions[start : start + BLOCK]
        own = list(dict.fromkeys(instance.inference for instance, _ in some))
        shown = [(image, view_of(instance.boxes, show="highlight")) for instance, image in some]
        for (instance, _), scores in zip(some, await recorded.fresh_rows(shown, [*pool.texts, *own]), strict=True):
            if isinstance(scores, BadImage):
                unusable += 1
                continue
            row = np.array(scores)
            plausibility, gold = row[: len(pool.texts)], row[len(pool.texts) + own.index(instance.inference)]
            chosen = pool.choose(instance, plausibility, above=float(gold))
            if chosen is not None:
                made.append(chosen)
        if on_progress is not None:
            on_progress(start + len(some))
    best = ranked(made)[:most]
    if not best:
        raise BadData(
            f"No region has {LEAST_LEFT} inferences that are more plausible than its own, of which "
            f"{CANDIDATES} could be chosen.",
            hint="Take a larger corpus, or another scorer.",
        )
    manifest = {
        "seed": seed,
        "scorer": recorded.form(),
        "embedder": texts_alike.form(),
        "instances": len(data.instances),
        "without_picture": len(order) - len(regions) + unusable,
        "texts": pool.different,
        "clusters": len(pool.texts),
        "regions_with_a_set": len(made),
        "sets": len(best),
    }
    return CandidateSets(split=data.split, sets=tuple(best), manifest=manifest)


class Pool:
    """The inferences that candidates are chosen from, and what is left of them.

    Args:
        instances: the corpus.
        vectors: by text, of every inference.
        seed: of the inference that stands for a cluster.
    """

    def __init__(self, instances: Sequence[Instance], vectors: Mapping[str, NDArray[np.float16]], *, seed: int) -> None:
        import numpy as np

        sources: dict[str, list[str]] = defaultdict(list)
        for instance in instances:
            sources[instance.inference].append(instance.id)
        self.different = len(sources)
        """How many different inferences the corpus has."""
        texts = list(sources)
        clusters = linkage_clusters([vectors[text] for text in texts], max(1, round(CLUSTERED * len(instances))))
        members: dict[int, list[str]] = defaultdict(list)
        for text, cluster in zip(texts, clusters, strict=True):
            members[cluster] += [text] * len(sources[text])  # an instance of the cluster is drawn
        generator = Random(seed)
        self.texts = tuple(generator.choice(some) for some in members.values())
        """One inference of each cluster."""
        self._places = {text: place for place, text in enumerate(self.texts)}
        rows = np.stack([vectors[text] for text in self.texts]).astype(np.float64)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        self._rows: Numbers = rows / np.where(lengths > 0, lengths, 1.0)
        self._sources = [sources[text][:COPIES][::-1] for text in self.texts]  # the next one is the last
        self._free = np.ones(len(self.texts), dtype=bool)
        self._of_image: dict[str, set[int]] = defaultdict(set)

    @classmethod
    async def of(cls, instances: Sequence[Instance], *, embedder: RecordedEmbedder, seed: int) -> Pool:
        """The pool of a corpus.

        Raises:
            CallError: the embedder failed.
        """
        texts = list(dict.fromkeys(instance.inference for instance in instances))
        vectors = await TextVectors(embedder).of(texts)
        return await asyncio.to_thread(cls, instances, dict(zip(texts, vectors, strict=True)), seed=seed)

    def choose(self, instance: Instance, plausibility: Numbers, *, above: float) -> CandidateSet | None:
        """The set of a region; what it takes is no longer free. None where too few inferences are left.

        Args:
            instance: the region.
            plausibility: of each of `texts`.
            above: that of the region's own inference.
        """
        free = self._free & (plausibility > above)
        used = self._of_image[instance.url]
        free[list(used)] = False
        if (own := self._places.get(instance.inference)) is not None:
            free[own] = False
        if int(free.sum()) < LEAST_LEFT:
            return None
        places = self._greedy(plausibility, free)
        used |= {*places}
        return CandidateSet(
            instance=instance,
            candidates=tuple(
                Candidate(source_id=self._take(place), text=self.texts[place], plausibility=float(plausibility[place]))
                for place in places
            ),
            similarity=self._similarity(places),
        )

    def _greedy(self, plausibility: Numbers, free: NDArray[np.bool_]) -> list[int]:
        import numpy as np

        places: list[int] = []
        similar = np.zeros(len(self.texts))
        for count in range(CANDIDATES):
            worth = WEIGHT * plausibility + (1 - similar / max(1, count))
            worth[~free] = -np.inf
            place = int(worth.argmax())
            places.append(place)
            free[place] = False
            similar += self._rows @ self._rows[place]
        return places

    def _similarity(self, places: Sequence[int]) -> float:
        """The mean cosine of two of several."""
        rows = self._rows[list(places)]
        count = len(places)
        return float(((rows @ rows.T).sum() - (rows * rows).sum()) / (count * (count - 1)))

    def _take(self, place: int) -> str:
        """The next instance with this text, which is used then."""
        source = self._sources[place].pop()
        self._free[place] = bool(self._sources[place])
        return source


def ranked(sets: Sequence[CandidateSet]) -> list[CandidateSet]:
    """The best set of each image, the most promising first."""
    import numpy as np

    worths = (
        (1, [fmean(len(each.text.split()) for each in some.candidates) for some in sets]),
        (1, [-some.similarity for some in sets]),
        (WEIGHT, [fmean(each.plausibility for each in some.candidates) for some in sets]),
    )
    # The rank of a number is how many are smaller.
    promise = sum(weight * np.searchsorted(sorted(numbers), numbers) for weight, numbers in worths)
    best: dict[str, CandidateSet] = {}
    order: list[int] = np.argsort(-promise, kind="stable").tolist()
    for place in order:
        best.setdefault(sets[place].instance.url, sets[place])
    return list(best.values())
