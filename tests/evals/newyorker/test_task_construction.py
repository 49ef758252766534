from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from askance.errors import BadData, UsageError
from askance.evals.newyorker import ConstructedTasks, NewYorker, RawContests, construct_tasks
from askance.evals.newyorker.data_check import check
from askance.evals.newyorker.task_construction import ranges, text_alone, wording_accuracy
from askance.models import ScriptedEmbedder
from tests.evals.newyorker.raw_files import (
    finalists,
    rated,
    raw_contests,
    record,
    write_annotations,
    write_ratings,
)
from tests.images.samples import png

Row = dict[str, Any]

OFFICIAL, RATED = range(1, 46), range(31, 55)
"""Contests with official finalists and contests that are rated; 31 to 45 have both."""
REAL = Path(os.environ.get("ASKANCE_TEST_NEWYORKER", ""))
"""A folder with the real annotations and real files of ratings."""
ANNOTATIONS = "all_newyorker_contest_annotations.json"


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> RawContests:
    """54 contests, 24 of them rated."""
    return raw_contests(tmp_path_factory.mktemp("raw"), official=OFFICIAL, rated_ones=RATED)


def written(tasks: ConstructedTasks, folder: Path) -> Path:
    tasks.write(folder)
    return folder


def content(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text("utf-8"))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def check_matching(splits: dict[str, list[Row]]) -> None:
    """In each split every caption is once right and four times wrong, and items are of five contests."""
    for rows in splits.values():
        right = Counter((row["contest_number"], row["choices"][row["correct_idx"]]["clean_caption"]) for row in rows)
        home = {text: contest for contest, text in right}
        wrong = Counter(
            choice["clean_caption"]
            for row in rows
            for place, choice in enumerate(row["choices"])
            if place != row["correct_idx"]
        )
        assert set(right.values()) == {1}
        if len(home) == len(right):  # no caption of two contests
            assert wrong == Counter(dict.fromkeys(home, 4))
            assert all(len({home[choice["clean_caption"]] for choice in row["choices"]}) == 5 for row in rows)
        assert sum(wrong.values()) == 4 * len(rows)


def check_folds(contests: list[dict[str, set[int]]]) -> None:
    """Splits of a fold share no contest, and each contest is tested by one fold."""
    for splits in contests:
        assert not splits["train"] & splits["val"]
        assert not splits["train"] & splits["test"]
        assert not splits["val"] & splits["test"]
    tested = Counter(contest for splits in contests for contest in splits["test"])
    assert set(tested.values()) == {1}
    assert set(tested) == {contest for found in contests[0].values() for contest in found}


@pytest.mark.parametrize("seed", [*range(10), -1, 2**70])
def test_every_seed_keeps_the_balance_and_the_splits(seed: int, raw: RawContests) -> None:
    tasks = construct_tasks(raw, seed=seed)

    for task in ("matching", "ranking", "explanation"):
        assert sum(tasks.counts("matching", 0).values()) == 3 * len(OFFICIAL) + 3 * len(RATED)
        for fold in range(5):
            parts = {split: [tasks.parts[number] for number in numbers] for split, numbers in splits_of(fold).items()}
            assert tasks.counts(task, fold) == {
                split: sum(len(part.forms(task)) for part in found) for split, found in parts.items()
            }
    folds = [
        {
            split: [row for number in numbers for row in tasks.parts[number].forms("matching")]
            for split, numbers in splits_of(fold).items()
        }
        for fold in range(5)
    ]
    for fold in folds:
        check_matching(fold)
    check_folds([{split: {row["contest_number"] for row in rows} for split, rows in fold.items()} for fold in folds])
    for part in tasks.parts:
        places = Counter(row["correct_idx"] for row in part.forms("matching"))
        letters = Counter(row["label"] for row in part.forms("ranking"))
        assert max(places.values()) - min(places[place] for place in range(5)) <= 1
        assert abs(letters["A"] - letters["B"]) <= 1


def splits_of(fold: int) -> dict[str, tuple[int, ...]]:
    order = [(fold + step) % 5 for step in range(5)]
    return {"train": tuple(order[2:]), "val": (order[1],), "test": (order[0],)}


def test_no_text_of_a_task_stands_in_quotes(raw: RawContests) -> None:
    tasks = construct_tasks(raw)
    texts = [
        choice["clean_caption"] for part in tasks.parts for row in part.forms("matching") for choice in row["choices"]
    ]
    texts += [row[letter] for part in tasks.parts for row in part.forms("ranking") for letter in "AB"]

    assert texts
    assert not [text for text in texts if {text[0], text[-1]} & {*'"“”'}]


def ord_of(text: str) -> int:
    """The first letter as a number."""
    return ord(text[0])


def test_any_measure_of_the_text_alone_finds_the_right_caption_in_a_fifth_of_the_items(raw: RawContests) -> None:
    """In the mean over seeds; each caption has the same chance to be the most extreme of five wherever it is right."""
    measures: dict[str, Callable[[str], int]] = {
        "longest": len,
        "commas": lambda text: text.count(","),
        "first": ord_of,
    }
    found = {name: list[bool]() for name in measures}
    for seed in range(8):
        for part in construct_tasks(raw, seed=seed).parts:
            for item in part.matching:
                for name, measure in measures.items():
                    keys = [(measure(each.text), each.text) for each in item.choices]
                    found[name].append(item.choices[keys.index(max(keys))] == item.right)

    shares = {name: sum(right) / len(right) for name, right in found.items()}
    assert len(found["longest"]) == 8 * 207
    assert all(abs(share - 0.2) < 0.04 for share in shares.values()), shares


def test_wording_says_nothing_of_matching_and_is_seen_where_it_tells(tmp_path: Path) -> None:
    """Each of the crowd's best speaks of a zebra: that tells them from okay captions, and not from each other."""
    contests = range(1, 31)
    raw = raw_contests(tmp_path, official=(), rated_ones=contests)
    for contest in contests:
        best, rest = rated(contest)[:3], rated(contest)[3:]
        rows = [*((f"A zebra: {text}", votes) for text, votes in best), *rest]
        write_ratings(tmp_path / "captions" / f"{contest}_summary.csv", contest, rows)
    tasks = construct_tasks(raw)
    found = text_alone(tasks, train=True)
    matching, ranking = (wording_accuracy(tasks.option_sets(task), found[task]) for task in ("matching", "ranking"))

    assert not found["matching"].found
    assert matching is not None
    assert abs(matching - 0.2) < 0.1
    assert ranking == 1.0
    assert found["ranking"].found
    assert "zebra" in found["ranking"].true_words
    assert wording_accuracy(tasks.option_sets("matching"), text_alone(tasks)["matching"]) is None


def test_ranking_sets_each_good_caption_of_a_rated_contest_against_one_of_the_middle_third(raw: RawContests) -> None:
    rows = [row for part in construct_tasks(raw).parts for row in part.forms("ranking")]
    middle = {contest: {text for text, _ in rated(contest)[20:40]} for contest in RATED}
    best = {contest: {text for text, _ in rated(contest)[:3]} for contest in RATED}

    assert Counter(row["winner_source"] for row in rows) == {"official_winner": 3 * 15, "crowd_winner": 3 * 24}
    for row in rows:
        winner, okay = (row["A"], row["B"]) if row["label"] == "A" else (row["B"], row["A"])
        assert okay in middle[row["contest_number"]]
        assert (winner in best[row["contest_number"]]) == (row["winner_source"] == "crowd_winner")


def test_what_is_written_has_the_shape_of_the_repository(raw: RawContests, tmp_path: Path) -> None:
    folder = written(construct_tasks(raw, seed=3), tmp_path / "mine")
    row = content(folder, "tasks/contest_matching_split=0_cleaned.json")["val"][0]
    pair = content(folder, "tasks/quality_ranking_split=4_cleaned.json")["train"][0]

    assert {*row} == {"choices", "contest_number", "correct_idx", "split_idx_for_neg_match"}
    assert {*row["choices"][0]} == {"clean_caption", "source"}
    assert {*pair} == {"A", "B", "contest_number", "label", "winner_source"}
    assert not (folder / "tasks" / "explanation_generation_split=0_cleaned.json").exists()
    assert sum(path.endswith(".json") for path in files(folder)) == 5 + 5 + 5 + 1


def test_the_suite_reads_what_is_written(raw: RawContests, tmp_path: Path) -> None:
    tasks = construct_tasks(raw)
    data = NewYorker.open(written(tasks, tmp_path / "mine"))

    assert data.folds == (0, 1, 2, 3, 4)
    for task in ("matching", "ranking"):
        for fold in range(5):
            counts = tasks.counts(task, fold)
            assert len(data.items(task, fold=fold)) == counts["test"]
            assert len(data.items(task, fold=fold, split="validation")) == counts["val"]
            assert len(data.items(task, fold=fold, split="train")) == 6 * counts["train"]
    item = data.items("matching", fold=0)[0]
    report = check(tmp_path / "mine")
    assert report.sound, report.problems
    assert (report.captions, report.unbalanced) == (5 * 207, 0)
    assert not item.official_id
    assert item.annotation is not None
    assert f"cartoon {item.contest}" in item.annotation.description


def test_a_cartoon_has_one_description_outside_training_and_it_is_the_same_in_every_fold(
    raw: RawContests, tmp_path: Path
) -> None:
    folder = written(construct_tasks(raw), tmp_path / "mine")
    fixed: dict[str, set[str]] = {}
    for fold in range(5):
        records = content(folder, f"annotations_per_split/split={fold}_newyorker_contest_annotations.json")
        splits = content(folder, f"tasks/contest_matching_split={fold}_cleaned.json")
        for split, rows in splits.items():
            for contest in {str(row["contest_number"]) for row in rows}:
                notes = records[contest]["mturk_annotations"]
                if split == "train":
                    assert notes == record(int(contest), [])["mturk_annotations"]
                else:
                    fixed.setdefault(contest, set()).add(json.dumps(notes))
    assert len(fixed) == 54
    assert {len(each) for each in fixed.values()} == {1}
    notes = [json.loads(each) for found in fixed.values() for each in found]
    assert {(len(each["description_hit"]), len(each["link_hit"])) for each in notes} == {(1, 1)}
    workers = Counter(
        (each["description_hit"][0]["hash_worker_id"], each["link_hit"][0]["hash_worker_id"]) for each in notes
    )
    assert len(workers) == 6


def test_equal_inputs_and_an_equal_seed_give_equal_bytes_in_any_order(raw: RawContests, tmp_path: Path) -> None:
    one = files(written(construct_tasks(raw, seed=5), tmp_path / "one"))
    moved = tmp_path / "moved"
    moved.mkdir()
    for contest in sorted(RATED, reverse=True):  # each file into a folder of its own, its rows backwards
        path = raw.captions.files[contest][0]
        lines = path.read_text("utf-8").splitlines()
        (moved / f"x{-contest}").mkdir()
        (moved / f"x{-contest}" / path.name).write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n", "utf-8")
    (moved / "900.txt").write_bytes((raw.captions.folder / "900.txt").read_bytes())
    annotations = json.loads((raw.captions.folder.parent / "annotations.json").read_text("utf-8"))
    shuffled = tmp_path / "annotations.json"
    shuffled.write_text(json.dumps(dict(reversed(annotations.items()))), "utf-8")
    again = construct_tasks(RawContests.open(annotations=shuffled, captions=moved), seed=5)
    other = files(written(again, tmp_path / "other"))
    another_seed = files(written(construct_tasks(raw, seed=6), tmp_path / "third"))

    assert one["manifest.json"] != other["manifest.json"]  # which has the digests of the files
    assert {**one, "manifest.json": b""} == {**other, "manifest.json": b""}
    assert (
        one["tasks/contest_matching_split=0_cleaned.json"]
        != another_seed["tasks/contest_matching_split=0_cleaned.json"]
    )


def test_the_manifest_says_what_was_used_and_what_was_left_out(raw: RawContests, tmp_path: Path) -> None:
    tasks = construct_tasks(raw, seed=2)
    said = content(written(tasks, tmp_path / "mine"), "manifest.json")

    assert (said["seed"], said["embedder"], said["unrated"]) == (2, None, False)
    assert {*said["inputs"]} == {"annotations.json", *(f"{contest}_summary.csv" for contest in RATED)}
    assert said["contests"] == {"annotated": 54, "used": 54}
    assert said["good_captions"] == {"crowd_winner": 72, "official_winner": 135}
    assert said["contests_left_out"] == {"captions without annotations": {"count": 1, "contests": "900"}}
    assert said["contests_without_ranking"] == {"no captions": {"count": 30, "contests": "1-30"}}
    assert said["contests_with_other_than_three_official_finalists"] == {"0": {"count": 9, "contests": "46-54"}}
    assert said["items"]["matching"] == [dict(tasks.counts("matching", fold)) for fold in range(5)]
    assert said["pictures"] == {"copied": 0, "missing": "1-54"}


def test_an_embedder_is_asked_once_a_contest_and_named(raw: RawContests, tmp_path: Path) -> None:
    def vector(text: str) -> list[float]:
        return [float(text.count(letter)) + 0.1 for letter in "aeioutnshr"]

    embedder = ScriptedEmbedder(vector, identity="letters")
    tasks = construct_tasks(raw, embedder=embedder)

    assert len(embedder.asked) == len(RATED)
    assert tasks.manifest["embedder"]["model"]
    assert tasks.manifest["submitted_captions"]["left out as like another in meaning"] == 24 * (20 - 14)
    plain = construct_tasks(raw)
    assert tasks.parts[0].ranking != plain.parts[0].ranking


def test_explanations_become_items_of_their_contests(raw: RawContests, tmp_path: Path) -> None:
    rows = [
        {
            "caption": f"“Joke {contest}.”",
            "contest_number": contest,
            "explanation": f"Because of {contest}.",
            "n_expl_toks": 4,
        }
        for contest in (*OFFICIAL, 900)
    ]
    del rows[0]["n_expl_toks"]
    path = tmp_path / "joke_explanations_flat.json"
    path.write_text(json.dumps(rows), "utf-8")
    annotations = raw.captions.folder.parent / "annotations.json"
    raw = RawContests.open(annotations=annotations, captions=raw.captions.folder, explanations=path)
    folder = written(construct_tasks(raw), tmp_path / "mine")
    splits = [content(folder, f"tasks/explanation_generation_split={fold}_cleaned.json") for fold in range(5)]

    check_folds([{split: {row["contest_number"] for row in rows} for split, rows in each.items()} for each in splits])
    found = {row["contest_number"]: row for each in splits for row in each["test"]}
    assert found[7] == {"caption": "Joke 7.", "contest_number": 7, "explanation": "Because of 7.", "n_expl_toks": 4}
    assert "n_expl_toks" not in found[1]
    left = content(folder, "manifest.json")["contests_left_out"]
    assert left["an explanation, and no good caption"] == {"count": 1, "contests": "900"}


def test_pictures_are_copied_and_those_that_lack_are_named(raw: RawContests, tmp_path: Path) -> None:
    (tmp_path / "cartoons").mkdir()
    for name in ("1.png", "2.JPEG", "900.png", "cover.png"):
        (tmp_path / "cartoons" / name).write_bytes(png())
    (tmp_path / "cartoons" / "3.png").write_bytes(b"no picture")
    missing = construct_tasks(raw).write(tmp_path / "mine", pictures=tmp_path / "cartoons")

    assert sorted(path.name for path in (tmp_path / "mine" / "all_contest_images").iterdir()) == ["1.png", "2.jpeg"]
    assert missing == tuple(range(3, 55))


def test_contests_that_share_a_caption_are_never_set_against_each_other(tmp_path: Path) -> None:
    listed = {contest: finalists(contest) for contest in range(1, 61)}
    listed[2][0] = listed[9][1] = "“It's mostly water weight.”"
    listed[9][1] = "it's mostly water weight"
    annotations = write_annotations(tmp_path / "a.json", listed)
    (tmp_path / "900.txt").write_text("x\n", "utf-8")
    raw = RawContests.open(annotations=annotations, captions=tmp_path)
    for seed in range(10):
        tasks = construct_tasks(raw, seed=seed)
        assert tasks.manifest["contests_that_share_a_caption"] == ["2, 9"]
        assert sum({2, 9} <= {*part.contests} for part in tasks.parts) == 1
        for part in tasks.parts:
            for item in part.matching:
                assert len({each.contest for each in item.choices} & {2, 9}) <= 1


def test_too_few_contests_are_refused(tmp_path: Path) -> None:
    raw = raw_contests(tmp_path, official=range(1, 25))
    with pytest.raises(UsageError, match=r"12 captions is too small.* need 15"):
        construct_tasks(raw)


def test_a_folder_that_holds_something_is_not_written_to(raw: RawContests, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", "utf-8")
    with pytest.raises(UsageError, match="is no empty folder"):
        construct_tasks(raw).write(tmp_path)
    assert files(tmp_path) == {"notes.txt": b"mine"}


def wrong_annotations() -> Iterator[tuple[str, str]]:
    yield "[]", "has another shape"
    yield "{", "is no JSON"
    yield json.dumps({"1": {"contest_number": 1}}), "mturk_annotations"
    yield json.dumps({"1": record(2, [])}), "contest 2 under the key '1'"
    form = record(1, [])
    form["mturk_annotations"]["description_hit"] = []
    yield json.dumps({"1": form}), "description_hit"


@pytest.mark.parametrize(("text", "message"), [*wrong_annotations()])
def test_annotations_of_another_shape_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text, "utf-8")
    (tmp_path / "1.txt").write_text("x\n", "utf-8")
    with pytest.raises(BadData, match=message):
        RawContests.open(annotations=tmp_path / "a.json", captions=tmp_path)


def test_ranges() -> None:
    assert ranges([7, 3, 1, 2, 2]) == "1-3, 7"
    assert ranges([]) == ""


@pytest.mark.skipif(not (REAL / ANNOTATIONS).is_file(), reason="ASKANCE_TEST_NEWYORKER names no folder with real files")
@pytest.mark.parametrize("seed", range(10))
def test_real_annotations_and_ratings(seed: int, tmp_path: Path) -> None:
    raw = RawContests.open(annotations=REAL / ANNOTATIONS, captions=REAL)
    tasks = construct_tasks(raw, seed=seed)
    folds = [
        {
            split: [row for number in numbers for row in tasks.parts[number].forms("matching")]
            for split, numbers in splits_of(fold).items()
        }
        for fold in range(5)
    ]
    for fold in folds:
        check_matching(fold)
    check_folds([{split: {row["contest_number"] for row in rows} for split, rows in fold.items()} for fold in folds])
    assert tasks.manifest["contests"] == {"annotated": 705, "used": 645}
    assert tasks.manifest["good_captions"] == {"crowd_winner": 6, "official_winner": 1934}
    lengths = text_alone(tasks)["matching"].lengths
    assert lengths.difference.value == 0.0
    assert lengths.longest_true.value == pytest.approx(0.2, abs=0.03)
