"""Candidate sets: what appendix E promises of them, and that equal inputs give equal files."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from askance.errors import BadData, UsageError
from askance.evals.sherlock import CandidateSet, CandidateSets, Sherlock, build_candidates
from askance.evals.sherlock.candidates import Candidate, Pool, ranked
from askance.evals.sherlock.instance import Instance
from askance.images import WHOLE_IMAGE, Image, RegionView
from askance.models import Engine, ScriptedEmbedder, run_sync
from askance.replay import MemoryStore
from tests.evals.sherlock import corpus

IMAGES, REGIONS = 12, 5
OFTEN = "it is daytime"
"""An inference that six instances have."""


def numbers(*about: Any, count: int) -> list[float]:
    """Numbers from -1 to 1 that are always the same for these names."""
    digest = sha256(repr(about).encode()).digest()
    return [byte / 127.5 - 1 for byte in digest[:count]]


class Eye:
    """A scorer of regions whose cosines are drawn."""

    id = "eye"

    async def score(self, image: Image, texts: Sequence[str]) -> Sequence[float]:
        return await self.score_view(image, texts, WHOLE_IMAGE)

    async def score_view(self, image: Image, texts: Sequence[str], view: RegionView) -> Sequence[float]:
        view.render(image)
        return [plausible(image.name, view.boxes, text) for text in texts]


def plausible(name: str, boxes: Sequence[Sequence[float]], text: str) -> float:
    rare = 0.0 if text == OFTEN else 0.2  # the frequent one is to be chosen often
    return numbers(name, [list(map(int, box)) for box in boxes], text, count=1)[0] * 0.1 - rare


def sense(text: str) -> list[float]:
    return numbers("sense", text, count=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("data"))


def write_corpus(home: Path) -> Path:
    """A corpus of 60 instances with 55 different inferences; every picture but the last is there."""
    rows = list[corpus.Row]()
    for image in range(IMAGES):
        url = f"{corpus.VG}VG_100K/{image}.jpg"
        for place in range(REGIONS):
            number = image * REGIONS + place
            inputs = {
                "image": {"url": url, "width": 60, "height": 40},
                "bboxes": corpus.forms([(place * 9, 4, 8, 8)]),
                "clue": f"clue {number}",
                "confidence": 2.0,
                "obs_idx": place,
            }
            text = OFTEN if place == 0 and image < 6 else f"inference{' and more' * (number % 4)} {number}"
            rows.append(corpus.sealed(inputs, text, 0))
        if image < IMAGES - 1:
            path = home / "images" / "VG_100K" / f"{image}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(corpus.picture(corpus.SCENES[0]))
    corpus.write_json(home / corpus.CORPUS, rows)
    return home


def built(folder: Path, **options: Any) -> CandidateSets:
    making = build_candidates(
        Sherlock.open(folder),
        scorer=Eye(),
        embedder=ScriptedEmbedder(sense, identity="sense"),
        engine=Engine(records=MemoryStore()),
        **options,
    )
    return run_sync(making)


@pytest.fixture(scope="module")
def sets(folder: Path) -> CandidateSets:
    return built(folder)


def test_a_set_has_ten_different_inferences_above_its_own(sets: CandidateSets) -> None:
    assert sets.sets
    for each in sets.sets:
        texts = [candidate.text for candidate in each.candidates]
        assert len(texts) == len({*texts}) == 10
        name = each.instance.url.rpartition("/")[2]
        own = plausible(name, each.instance.boxes, each.instance.inference)
        for candidate in each.candidates:
            assert candidate.plausibility == plausible(name, each.instance.boxes, candidate.text) > own
        assert each.instance.inference not in texts


def test_an_image_has_one_set_and_a_text_is_taken_as_often_as_it_is_written(sets: CandidateSets, folder: Path) -> None:
    written = {instance.id: instance.inference for instance in Sherlock.open(folder).instances}
    assert len({each.instance.url for each in sets.sets}) == len(sets.sets) <= IMAGES - 1
    sources = [candidate.source_id for each in sets.sets for candidate in each.candidates]
    assert len(sources) == len({*sources})
    uses = Counter(candidate.text for each in sets.sets for candidate in each.candidates)
    assert all(count <= min(3, [*written.values()].count(text)) for text, count in uses.items())
    assert all(written[candidate.source_id] == candidate.text for each in sets.sets for candidate in each.candidates)


def test_one_inference_stands_for_those_alike(sets: CandidateSets) -> None:
    manifest = sets.manifest
    assert (manifest["instances"], manifest["texts"], manifest["clusters"]) == (60, 55, 48)
    assert manifest["without_picture"] == REGIONS


def test_a_damaged_picture_is_left_out(tmp_path: Path, sets: CandidateSets) -> None:
    folder = write_corpus(tmp_path)
    (folder / "images" / "VG_100K" / "3.jpg").write_bytes(b"no picture")

    manifest = built(folder).manifest

    assert manifest["without_picture"] == sets.manifest["without_picture"] + REGIONS


def test_no_more_sets_are_kept_than_asked_for(folder: Path, sets: CandidateSets) -> None:
    few = built(folder, most=2)
    assert few.sets == sets.sets[:2]
    assert few.manifest["regions_with_a_set"] == sets.manifest["regions_with_a_set"]


def written(sets: CandidateSets, folder: Path) -> dict[str, bytes]:
    sets.write(folder)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_equal_seeds_give_equal_files_and_another_seed_others(
    folder: Path, sets: CandidateSets, tmp_path: Path
) -> None:
    first = written(sets, tmp_path / "a")
    assert first == written(built(folder), tmp_path / "b")
    assert first != written(built(folder, seed=1), tmp_path / "c")


def test_the_folder_is_one_of_the_leaderboard(sets: CandidateSets, tmp_path: Path) -> None:
    pairs = sets.write(tmp_path / "mine")
    assert pairs == tmp_path / "mine" / "val_comparison" / "val_comparison_instances.json"
    regions = Sherlock.open(tmp_path / "mine", images=tmp_path).comparison()
    by_region = {(each.instance.url, each.instance.boxes): each for each in sets.sets}
    assert len(regions) == len(sets.sets)
    for region in regions:
        made = by_region[region.instance.url, region.instance.boxes]
        assert {each.text for each in region.candidates} == {each.text for each in made.candidates}
        assert {each.test_id for each in region.candidates} == {made.test_id(each) for each in made.candidates}
        assert all(each.ratings is None for each in region.candidates)
    sources = json.loads((tmp_path / "mine" / "candidates.json").read_text())
    assert [each["Input_iid"] for each in sources] == [each.instance.id for each in sets.sets]
    with pytest.raises(UsageError, match="is there already"):
        sets.write(tmp_path / "mine")


def test_ratings_are_read_from_an_answer_key_that_is_made_of_the_candidates(
    sets: CandidateSets, tmp_path: Path
) -> None:
    """As docs/sherlock.md says it."""
    pairs = sets.write(tmp_path / "mine")
    regions = json.loads((tmp_path / "mine" / "candidates.json").read_text())
    key = {
        "test_id_map": {
            each["test_id"]: {"Input_iid": region["Input_iid"], "candidate": each["source_iid"]}
            for region in regions
            for each in region["candidates"]
        },
        "annotations": [
            {
                "Input_iid": region["Input_iid"],
                "candidates": [
                    {"source_iid": each["source_iid"], "annot1": 1 + place % 3, "annot2": 3}
                    for place, each in enumerate(region["candidates"])
                ],
            }
            for region in regions
        ],
    }
    corpus.write_json(pairs.with_name("val_comparison_answer_key.json"), key)

    data = Sherlock.open(tmp_path / "mine", images=tmp_path)

    rated = data.comparison()
    assert [region.instance.id for region in rated] == [each.instance.id for each in sets.sets]
    assert {tuple(each.ratings for each in region.candidates) for region in rated} == {
        tuple((1 + place % 3, 3) for place in range(10))
    }
    assert data.notes == []


def test_without_pictures_or_inferences_enough_nothing_is_made(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / corpus.CORPUS).write_bytes((folder / corpus.CORPUS).read_bytes())
    with pytest.raises(BadData, match="No picture of the corpus for val is there"):
        built(tmp_path / "data")
    with pytest.raises(BadData, match="No region has 20 inferences that are more plausible than its own"):
        built(corpus.write(tmp_path / "small"))


# --- how ten are chosen ---


def instance(number: int, text: str, *, url: str = "VG_100K/1.jpg") -> Instance:
    return Instance(id=f"i{number}", url=url, width=60, height=40, boxes=((0, 0, 9, 9),), inference=text)


TEXTS = [f"text {number}" for number in range(20)]


def pool(copies: int = 2) -> tuple[Pool, list[Instance]]:
    """A pool of twenty texts; the first two point the same way, all others each its own."""
    vectors = dict(zip(TEXTS, np.eye(20, dtype=np.float16), strict=True))
    vectors[TEXTS[1]] = vectors[TEXTS[0]]
    instances = [instance(20 * copy + number, text) for copy in range(copies) for number, text in enumerate(TEXTS)]
    return Pool(instances, vectors, seed=0), instances


def test_plausibility_weighs_five_times_as_much_as_dissimilarity() -> None:
    plausibility = np.linspace(0.5, 0.3, 20)
    plausibility[:3] = 0.9, 0.85, 0.7
    chosen = pool()[0].choose(instance(99, "own", url="2.jpg"), plausibility, above=0.0)
    assert chosen is not None
    # Beside the first, the second is worth 5 × 0.85 + 0, and the third 5 × 0.7 + 1.
    assert [each.text for each in chosen.candidates[:3]] == ["text 0", "text 2", "text 1"]
    assert chosen.similarity == pytest.approx(2 / 90)


def test_nothing_at_or_below_the_gold_inference_is_chosen() -> None:
    plausibility = np.linspace(0.5, 0.3, 20)
    assert pool()[0].choose(instance(99, "own"), plausibility, above=0.3) is None  # nineteen are left
    assert pool()[0].choose(instance(99, "own"), plausibility, above=0.29) is not None
    assert pool()[0].choose(instance(99, "text 3"), plausibility, above=0.0) is None


def test_what_an_image_or_three_sets_have_taken_is_not_free() -> None:
    plausibility = np.linspace(0.5, 0.3, 20)
    many, _ = pool(copies=5)
    assert many.choose(instance(99, "own", url="a"), plausibility, above=0.0) is not None
    assert many.choose(instance(98, "own", url="a"), plausibility, above=0.0) is None  # ten are left for the image
    taken = defaultdict[str, list[str]](list)
    for url in "bcdef":
        chosen = many.choose(instance(97, "own", url=url), plausibility, above=0.0)
        for each in chosen.candidates if chosen is not None else ():
            taken[each.text].append(each.source_id)
    assert [len(sources) for sources in taken.values()] == [2] * 10
    assert taken["text 0"] == ["i20", "i40"]


def test_sets_are_ranked_by_length_diversity_and_five_times_by_plausibility() -> None:
    def made(url: str, words: int, similarity: float, plausibility: float) -> CandidateSet:
        texts = (Candidate(source_id="s", text="word " * words, plausibility=plausibility),)
        return CandidateSet(instance=instance(1, "own", url=url), candidates=texts, similarity=similarity)

    dull = made("a", 3, 0.9, 0.5)
    long, diverse, plausible = made("b", 9, 0.9, 0.5), made("c", 3, 0.1, 0.5), made("d", 3, 0.9, 0.6)
    both = made("e", 9, 0.1, 0.5)
    order = [each.instance.url for each in ranked([dull, long, diverse, plausible, both])]
    assert order == ["d", "e", "b", "c", "a"]
    again = made("d", 3, 0.9, 0.7)
    assert ranked([plausible, again]) == [again]
