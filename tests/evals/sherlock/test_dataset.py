"""The corpus, the leaderboard and the pictures of Sherlock as people have them, and what may be wrong with them.

`ASKANCE_TEST_SHERLOCK` names a folder with the real validation corpus.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from askance.errors import BadData
from askance.evals.sherlock import InferenceComparison, Instance, Sherlock, check
from tests.evals.sherlock import corpus
from tests.evals.sherlock.corpus import CORPUS, DOG, PROPOSALS, SCENES, SEA, Row

REAL = Path(os.environ.get("ASKANCE_TEST_SHERLOCK", ""))
REAL_FILE = "sherlock_val_with_split_idxs_v1_1.json.zip"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus.write(tmp_path_factory.mktemp("sherlock"))


@pytest.fixture(scope="module")
def sherlock(data: Path) -> Sherlock:
    return Sherlock.open(data)


# --- the corpus ---


def test_an_instance_is_what_the_file_says(sherlock: Sherlock) -> None:
    row = corpus.rows()[0]

    assert sherlock.instances[0] == Instance(
        id=row["instance_id"],
        url=SCENES[0].url,
        width=60,
        height=40,
        boxes=((4, 4, 20, 16),),
        clue="a red bucket",
        inference=SEA,
        confidence=2,
        chunk=0,
    )
    assert [instance.id for instance in sherlock.instances] == [row["instance_id"] for row in corpus.rows()]


def test_a_box_that_runs_past_the_edge_stays_as_it_is(sherlock: Sherlock) -> None:
    chain = next(instance for instance in sherlock.instances if instance.clue == "a rusty chain")

    assert (chain.boxes, chain.width) == (((41, 21, 61, 37),), 60)


def test_chunks_and_images_keep_the_order_of_the_file(sherlock: Sherlock) -> None:
    assert sherlock.chunks == (0, 1)
    assert [len(sherlock.of_chunk(chunk)) for chunk in sherlock.chunks] == [7, 6]
    assert [instance.inference for instance in sherlock.of_image(SCENES[2].url)] == ["it is time for lunch", DOG, DOG]
    assert sherlock.urls == tuple(scene.url for scene in (SCENES[0], SCENES[1], SCENES[2], SCENES[3], SCENES[4]))
    assert [instance.source for instance in sherlock.instances].count("VCR") == 5
    assert sherlock.of_image("elsewhere") == ()


@pytest.mark.parametrize("name", [CORPUS, f"{CORPUS}.zip", "deep/down/here/sherlock_val_v1_1.json"])
def test_the_corpus_is_found_plain_packed_and_in_folders(name: str, tmp_path: Path) -> None:
    corpus.write_json(tmp_path / name, corpus.rows())

    assert len(Sherlock.open(tmp_path).instances) == 13


def test_the_newer_version_goes_first_and_the_older_is_named(tmp_path: Path) -> None:
    old = tmp_path / CORPUS.replace("_v1_1", "_v1")
    corpus.write_json(old, corpus.rows()[:5])
    alone = Sherlock.open(tmp_path)

    assert len(alone.instances) == 5
    assert alone.notes == [
        f"The corpus '{old}' is version 1, which the authors call deprecated; version 1.1 goes before it."
    ]

    corpus.write_json(tmp_path / CORPUS, corpus.rows())
    both = Sherlock.open(tmp_path)

    assert len(both.instances) == 13
    assert both.notes == []


def test_training_has_no_chunks(tmp_path: Path) -> None:
    rows = [{name: value for name, value in row.items() if name != "split_idx"} for row in corpus.rows()]
    corpus.write_json(tmp_path / "sherlock_train_v1_1.json", rows)
    trained = Sherlock.open(tmp_path, split="train")

    assert (len(trained.instances), trained.chunks) == (13, ())
    with pytest.raises(BadData, match=r"The corpus for train in '.*' has no chunk 0; it has no chunks"):
        trained.of_chunk(0)
    with pytest.raises(BadData, match=r"has no corpus for val; it has the corpus for train. Fetch sherlock_val_with_"):
        _ = Sherlock.open(tmp_path).instances


def changed(change: Callable[[Row], object], place: int = 3) -> list[Row]:
    """The rows of the corpus, of which one is another, with the id of its inputs."""
    rows = corpus.rows()
    row = json.loads(json.dumps(rows[place]))
    change(row)
    rows[place] = corpus.sealed(row["inputs"], row["targets"]["inference"], row.get("split_idx"))
    return rows


def unsealed(**values: Any) -> list[Row]:
    rows = corpus.rows()
    rows[3] = {**rows[3], **values}
    return rows


def box(**values: int) -> Callable[[Row], object]:
    return lambda row: row["inputs"]["bboxes"][0].update(values)


def inputs(**values: Any) -> Callable[[Row], object]:
    return lambda row: row["inputs"].update(values)


BAD: dict[str, tuple[list[Row], str]] = {
    "box beyond the right edge": (
        changed(box(left=60)),
        "box 1 of the region lies outside the image of 60×40 pixels, from (60, 21) to (80, 37).",
    ),
    "box above the image": (
        changed(box(top=-16)),
        "lies outside the image of 60×40 pixels, from (41, -16) to (61, 0).",
    ),
    "box without width": (changed(box(width=0)), "box 1 of the region has no area: 0×16 pixels."),
    "box without height": (changed(box(height=-2)), "box 1 of the region has no area: 20×-2 pixels."),
    "no box": (changed(inputs(bboxes=[])), "the region has no box."),
    "box that is a list": (changed(inputs(bboxes=[[1, 2, 3, 4]])), "inputs.bboxes[0] is [1, 2, 3, 4], not "),
    "side that is missing": (
        changed(lambda row: row["inputs"]["bboxes"][0].pop("width")),
        "inputs.bboxes[0].width is missing.",
    ),
    "image without width": (
        changed(inputs(image={"url": "VG_100K/9.jpg", "width": 0, "height": 40})),
        "inputs.image.width is 0, not greater than 0.",
    ),
    "confidence of four": (changed(inputs(confidence=4.0)), "inputs.confidence is 4.0, not less than or equal to 3."),
    "half a confidence": (changed(inputs(confidence=1.5)), "inputs.confidence is 1.5, not a multiple of 1."),
    "clue that is null": (changed(inputs(clue=None)), "inputs.clue is null, not a valid string."),
    "inference without words": (
        changed(lambda row: row["targets"].update(inference="")),
        "targets.inference: String should have at least 1 character.",
    ),
    "chunk beyond the last": (unsealed(split_idx=23), "split_idx is 23, not less than 23."),
    "id that is no MD5 of the inputs": (
        unsealed(instance_id="c344c9b7dbee3d5d5dfcfc66c245b737"),
        "its 'instance_id' is 'c344c9b7dbee3d5d5dfcfc66c245b737', and the MD5 of its 'inputs' is ",
    ),
    "instance that is there twice": (
        [*corpus.rows()[:3], *corpus.rows()],
        f"the instance {corpus.rows()[0]['instance_id']!r} stands there twice.",
    ),
    "image of two sizes": (
        changed(lambda row: row["inputs"]["image"].update(width=61)),
        "its image has 61×40 pixels, and before it had 60×40.",
    ),
}


@pytest.mark.parametrize(("rows", "why"), BAD.values(), ids=BAD)
def test_a_row_that_is_not_as_it_should_be_is_named_and_left_out(rows: list[Row], why: str, tmp_path: Path) -> None:
    file = corpus.write_json(tmp_path / CORPUS, rows)

    with pytest.raises(BadData) as caught:
        _ = Sherlock.open(tmp_path).instances
    assert caught.value.message.startswith(f"The file '{file}', item 3: ")
    assert why in caught.value.message
    assert "askance data check sherlock" in (caught.value.hint or "")

    problems: list[BadData] = []
    rest = Sherlock.open(tmp_path, problems=problems).instances
    assert problems[0].message == caught.value.message
    assert len(rest) == len(rows) - len(problems)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{}", "has no instance that can be used"),
        ("[]", "has no instance that can be used"),
        ('{"a": 1}', "holds a JSON object, not a list of instances"),
        ("[", "is no JSON (item 0: Expecting value)"),
        ('[{"inputs"', "is no JSON (item 0: "),
        ("\udcff[]", "is no UTF-8 text"),
    ],
)
def test_a_file_that_is_no_corpus_is_named(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / CORPUS).write_bytes(text.encode("utf-8", "surrogateescape"))

    with pytest.raises(BadData) as caught:
        _ = Sherlock.open(tmp_path).instances
    assert why in caught.value.message


def test_a_torn_archive_is_named(tmp_path: Path) -> None:
    file = corpus.write_json(tmp_path / f"{CORPUS}.zip", corpus.rows())
    whole = file.read_bytes()
    file.write_bytes(whole[:-40])
    with pytest.raises(BadData, match=r"The archive '.*' cannot be read"):
        Sherlock.open(tmp_path)

    file.write_bytes(whole[:60] + bytes(40) + whole[100:])
    with pytest.raises(BadData, match=r"The file '.*' cannot be read: .*Fetch it again"):
        _ = Sherlock.open(tmp_path).instances


def test_a_folder_without_any_of_it_says_what_is_expected(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text("[]", encoding="utf-8")

    with pytest.raises(BadData, match=r"holds nothing of the data set. Expected are sherlock_val_with_split_idxs_v1_1"):
        Sherlock.open(tmp_path)
    with pytest.raises(BadData, match=r"There is no data folder"):
        Sherlock.open(tmp_path / "elsewhere")


# --- pictures ---


def test_pictures_lie_where_visual_genome_and_vcr_are_unpacked(data: Path, sherlock: Sherlock) -> None:
    for scene in SCENES:
        picture = sherlock.picture(scene.url)
        assert picture is not None
        assert picture.path == data / "images" / scene.path
        assert picture.info.upright_size == scene.size


def test_pictures_may_lie_elsewhere(data: Path) -> None:
    clips = Sherlock.open(data, images=data / "images" / "vcr1images")

    assert clips.picture(SCENES[0].url) is None
    assert clips.picture(SCENES[3].url) is not None
    with pytest.raises(BadData, match="There is no folder of pictures"):
        Sherlock.open(data, images=data / "nowhere")


@pytest.mark.parametrize(
    "url",
    [
        "https://elsewhere/VG_100K/../../secret.jpg",
        "VG_100K/..",
        "VG_/secret.jpg\0",
        "file:///etc/./passwd",
        "a/b/..\\secret.jpg",
        "",
        "x.jpg",
    ],
)
def test_no_address_leads_out_of_the_folder(url: str, tmp_path: Path) -> None:
    corpus.write_json(tmp_path / CORPUS, corpus.rows())
    (tmp_path / "images" / "VG_100K").mkdir(parents=True)
    (tmp_path / "secret.jpg").write_bytes(b"")

    assert Sherlock.open(tmp_path).picture(url) is None


# --- the leaderboard ---


def test_rated_regions_have_their_candidates_in_the_order_of_the_answers(sherlock: Sherlock) -> None:
    regions = sherlock.comparison()
    known = {row["instance_id"]: row for row in corpus.rows()}
    instances, answers = corpus.comparison("val")
    texts = {row["test_id"]: row["inference"] for row in instances}

    assert [region.instance.id for region in regions] == [each["Input_iid"] for each in answers["annotations"]]
    for region, annotation in zip(regions, answers["annotations"], strict=True):
        assert [each.text for each in region.candidates] == [
            known[each["source_iid"]]["targets"]["inference"] for each in annotation["candidates"]
        ]
        assert [each.ratings for each in region.candidates] == list(corpus.RATINGS)
        assert [each.text for each in region.candidates] == [texts[each.test_id] for each in region.candidates]
        assert region.instance.confidence == known[region.instance.id]["inputs"]["confidence"]


def test_ratings_of_the_test_set_are_hidden_and_so_is_what_its_annotator_said(sherlock: Sherlock) -> None:
    regions = sherlock.comparison("test")
    ids = [row["test_id"] for row in corpus.comparison("test")[0]]

    assert [each.test_id for region in regions for each in region.candidates] == ids
    assert {each.ratings for region in regions for each in region.candidates} == {None}
    assert [region.instance.id for region in regions] == ids[::4]
    assert {region.instance.confidence for region in regions} == {None}


def test_the_leaderboard_is_read_without_a_corpus(tmp_path: Path) -> None:
    corpus.write_leaderboard(tmp_path, "val")
    alone = Sherlock.open(tmp_path)

    assert [len(region.candidates) for region in alone.comparison()] == [4, 4, 4]
    assert alone.comparison()[0].instance.confidence is None
    with pytest.raises(BadData, match=r"has no corpus for val; it has leaderboard files"):
        _ = alone.instances


def test_archives_of_the_leaderboard_are_read_as_they_are(tmp_path: Path) -> None:
    instances, answers = corpus.comparison("val")
    with zipfile.ZipFile(tmp_path / "val_comparison.zip", "w") as archive:
        archive.writestr("val_comparison/val_comparison_instances.json", json.dumps(instances))
        archive.writestr("val_comparison/val_comparison_answer_key.json", json.dumps(answers))
        archive.writestr("__MACOSX/val_comparison/._val_comparison_instances.json", "no JSON")

    assert [each.ratings for each in Sherlock.open(tmp_path).comparison()[0].candidates] == list(corpus.RATINGS)


@pytest.mark.parametrize(("task", "chunk"), [("comparison", None), ("localization", None), ("retrieval", 1)])
def test_every_pair_has_its_place_in_the_order_of_sorted_ids(task: Any, chunk: int | None, sherlock: Sherlock) -> None:
    made = {"comparison": corpus.comparison, "localization": corpus.localization}.get(task)
    rows = (made("val") if made else corpus.retrieval("val", 1))[0]
    leaderboard = sherlock.leaderboard(task, "val", chunk)
    wanted = {row["test_id"]: (row["image"]["url"], row["region"][0]["left"], row["inference"]) for row in rows}

    assert leaderboard.ids == tuple(sorted(wanted))
    seen = dict[str, object]()
    for group in leaderboard.groups:
        for row, column, place in group.pairs():
            region = group.regions[row]
            seen[leaderboard.ids[place]] = region.url, region.boxes[0][0], group.inferences[column]
    assert seen == wanted
    assert [len(group.rows) for group in leaderboard.groups] == {
        "comparison": [4, 4, 4],
        "localization": [24, 12, 24, 24, 12],
        "retrieval": [36],
    }[task]


def test_what_the_leaderboard_lacks_is_named(tmp_path: Path) -> None:
    corpus.write_json(tmp_path / CORPUS, corpus.rows())
    with pytest.raises(
        BadData, match=r"no val_comparison_instances.json; it has none of the leaderboard. Fetch val_co"
    ):
        Sherlock.open(tmp_path).comparison()

    corpus.write_leaderboard(tmp_path, "test")
    with pytest.raises(BadData, match=r"no test_retrieval_7_instances.json; it has test_comparison, test_localization"):
        Sherlock.open(tmp_path).leaderboard("retrieval", "test", 7)


def rewritten(folder: Path, part: str, change: Callable[[Any], object]) -> Sherlock:
    """The leaderboard's comparison, of which one file is another."""
    corpus.write_leaderboard(folder, "val")
    file = folder / "val_comparison" / f"val_comparison_{part}.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    change(content)
    file.write_text(json.dumps(content), encoding="utf-8")
    return Sherlock.open(folder)


def test_pairs_that_the_answers_do_not_rate_are_named(tmp_path: Path) -> None:
    def fewer(key: Any) -> None:
        del key["annotations"][0]
        del key["annotations"][0]["candidates"][3]

    data = rewritten(tmp_path, "answer_key", fewer)

    assert [len(region.candidates) for region in data.comparison()] == [3, 4]
    note = "The answers rate 7 of the 12 pairs of val_comparison; the other pairs are left out."
    assert data.notes == [note]
    assert note in check(tmp_path).notes
    assert note in InferenceComparison(data=tmp_path, solver="random").evaluation().notes


def _turn(key: Any) -> None:
    """Gives each id the next one's region and candidate."""
    ids = key["test_id_map"]
    names, origins = [*ids], [*ids.values()]
    ids.update(zip(names, [*origins[1:], origins[0]], strict=True))


BAD_FILES: dict[str, tuple[str, Callable[[Any], object], str]] = {
    "an id twice": ("instances", lambda rows: rows[1].update(test_id=rows[0]["test_id"]), "has the 'test_id' "),
    "no instances": ("instances", lambda rows: rows.clear(), "holds no instances."),
    "a box outside": (
        "instances",
        lambda rows: rows[2]["region"][0].update(left=900),
        "item 2: box 1 of the region lies outside the image of 60×40 pixels, from (900, 4) to (916, 16).",
    ),
    "a region without boxes": ("instances", lambda rows: rows[2].update(region=[]), "item 2: the region has no box."),
    "no inference": ("instances", lambda rows: rows[2].pop("inference"), "item 2: inference is missing."),
    "ids out of order": ("instance_ids", lambda ids: ids.reverse(), ", item 0 is "),
    "an id of another kind": ("instance_ids", lambda ids: ids.insert(3, ids.pop() and 7), ", item 3 is '7', and"),
    "an id too few": ("instance_ids", lambda ids: ids.pop(), "has 11 ids, and there are 12 instances."),
    "an answer that is missing": (
        "answer_key",
        lambda key: key["test_id_map"].popitem(),
        "lacks the 'test_id' ",
    ),
    "a candidate without an instance": (
        "answer_key",
        lambda key: key["annotations"][0]["candidates"].append({"source_iid": "x", "annot1": 1, "annot2": 2}),
        "has no instance.",
    ),
    "no candidates": ("answer_key", lambda key: key["annotations"][0]["candidates"].clear(), "has no candidates."),
    "a rating of four": (
        "answer_key",
        lambda key: key["annotations"][0]["candidates"][0].update(annot1=4),
        "annotations[0].candidates[0].annot1 is 4, not less than or equal to 3.",
    ),
    "candidates of several regions": (
        "answer_key",
        _turn,
        "are shown with several regions.",
    ),
}


@pytest.mark.parametrize(("part", "change", "why"), BAD_FILES.values(), ids=BAD_FILES)
def test_leaderboard_files_that_do_not_fit_are_named(
    part: str, change: Callable[[Any], object], why: str, tmp_path: Path
) -> None:
    with pytest.raises(BadData) as caught:
        rewritten(tmp_path, part, change).comparison()

    assert f"val_comparison_{part}.json'" in caught.value.message
    assert why in caught.value.message
    assert caught.value.hint


def test_ids_that_are_no_list_are_named(tmp_path: Path) -> None:
    corpus.write_leaderboard(tmp_path, "val")
    corpus.write_json(tmp_path / "val_comparison" / "val_comparison_instance_ids.json", {"a": 1})

    with pytest.raises(BadData, match="holds no list of ids"):
        Sherlock.open(tmp_path).comparison()


def test_ratings_may_be_texts_as_the_official_scorer_takes_them(tmp_path: Path) -> None:
    def as_text(key: Any) -> None:
        for candidate in key["annotations"][0]["candidates"]:
            candidate.update(annot1=str(candidate["annot1"]), annot2=float(candidate["annot2"]))

    assert [each.ratings for each in rewritten(tmp_path, "answer_key", as_text).comparison()[0].candidates] == list(
        corpus.RATINGS
    )


# --- proposals ---


def test_proposals_are_boxes_of_their_image(sherlock: Sherlock) -> None:
    assert sherlock.proposals(SCENES[1].url) == ((3, 2, 23, 22), (42, 21, 60, 37), (0, 0, 3, 3), (0, 0, 60, 40))


def test_proposals_that_are_missing_are_named(tmp_path: Path) -> None:
    corpus.write_json(tmp_path / CORPUS, corpus.rows())
    with pytest.raises(BadData, match=r"has no boxes of a detector. Fetch image_url2auto_bboxes"):
        Sherlock.open(tmp_path).proposals(SCENES[0].url)

    corpus.write_json(tmp_path / PROPOSALS, {SCENES[0].url: corpus.proposals()[SCENES[0].url]})
    with pytest.raises(BadData, match=r"has no boxes for the image '.*103.jpg'"):
        Sherlock.open(tmp_path).proposals(SCENES[2].url)


@pytest.mark.parametrize(
    ("boxes", "why"),
    [
        ([[1, 2, 3, 4]], r"VG_100K/101.jpg': \[0\] is \[1, 2, 3, 4\], not"),
        ([], "there is no box in the image"),
        (3, "not"),
    ],
)
def test_proposals_of_another_form_are_named(boxes: object, why: str, tmp_path: Path) -> None:
    corpus.write_json(tmp_path / CORPUS, corpus.rows())
    corpus.write_json(tmp_path / PROPOSALS, {SCENES[0].url: boxes})

    with pytest.raises(BadData, match=why):
        Sherlock.open(tmp_path).proposals(SCENES[0].url)


def test_proposals_of_no_area_are_left_out_and_parts_of_pixels_stay(tmp_path: Path) -> None:
    rows = corpus.rows()
    rows[-1] = corpus.sealed(
        {**rows[-1]["inputs"], "bboxes": [{"left": 2.25, "top": 4.0, "width": 9, "height": 5}]}, "so", 1
    )
    corpus.write_json(tmp_path / CORPUS, rows)
    flat, beside = corpus.forms([(1, 1, 0, 5), (70, 1, 5, 5)])
    parts = {"left": 1.2, "top": 2.7, "width": 3.1, "height": 4.0}
    corpus.write_json(tmp_path / PROPOSALS, {SCENES[0].url: [flat, parts, beside]})
    found = Sherlock.open(tmp_path)

    ((left, *others),) = found.proposals(SCENES[0].url)
    assert (left, others) == (1.2, pytest.approx([2.7, 4.3, 6.7]))
    assert repr(found.instances[-1].boxes) == "((2.25, 4, 11.25, 9),)"
    assert found.notes == ["2 proposed boxes have no area in the image, and so are left out."]


# --- the real file ---


@pytest.mark.skipif(
    not (REAL / REAL_FILE).is_file(), reason="ASKANCE_TEST_SHERLOCK names no folder with the real corpus"
)
def test_the_real_corpus_is_read_whole() -> None:
    real = Sherlock.open(REAL)

    assert (len(real.instances), len(real.urls), real.notes) == (22_737, 6_656, [])
    assert real.chunks == tuple(range(23))
    assert sum(len(real.of_chunk(chunk)) ** 2 for chunk in real.chunks) == 22_477_515
    assert sum(len(real.of_image(url)) ** 2 for url in real.urls) == 83_219
