"""`NewYorker`: the same in every layout; what is wrong in a file is said with its place."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest

from askance.errors import BadData, BadImage
from askance.evals.newyorker import LEADERBOARD, Item, NewYorker
from askance.evals.newyorker.annotations import entity_name
from askance.evals.newyorker.layout import Split, TaskName
from tests.evals.newyorker import cartoons
from tests.evals.newyorker.cartoons import CONTESTS, FOLDS, LAYOUTS, SPLITS, TASKS, TUPLES

REAL = Path(os.environ.get("ASKANCE_TEST_NEWYORKER", ""))
ANNOTATIONS = "all_newyorker_contest_annotations.json"


def expected(task: str, fold: int, split: str, *, described: bool) -> list[tuple[object, ...]]:
    """What is known of the items without ids."""
    return [
        (
            row["contest_number"],
            [row["caption_choices"]] if task == "explanation" else row["caption_choices"],
            row["label"],
            row.get("winner_source"),
            (row["image_location"], row["image_description"], row["image_uncanny_description"]) if described else None,
        )
        for row in cartoons.hub_rows(task, fold, split, described=described)
    ]


def told(item: Item) -> tuple[object, ...]:
    note = item.annotation
    return (
        item.contest,
        list(item.choices),
        item.label,
        item.winner_source,
        None if note is None else (note.location, note.description, note.uncanny),
    )


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_holds_the_same(name: str, own_place: Path) -> None:
    data = NewYorker.open(LAYOUTS[name](own_place / "data"))
    described = name != "from pixels"

    assert data.folds == tuple(FOLDS)
    for task in TASKS:
        for fold in FOLDS:
            for split in SPLITS:
                items = data.items(task, fold=fold, split=split)
                assert [told(item) for item in items] == expected(task, fold, split, described=described)
                assert {(item.task, item.fold, item.split) for item in items} == {(task, fold, split)}
                assert {item.official_id for item in items} == {"repository" not in name}
    assert data.contests == CONTESTS
    for contest in CONTESTS:
        picture = data.cartoon(contest).load()
        assert picture is not None
        assert picture.data == cartoons.picture(contest)
        assert len(data.cartoon(contest).annotations) == len(TUPLES) * described


@pytest.mark.parametrize("write", [cartoons.parquet, cartoons.saved, cartoons.lines])
def test_ids_and_tokens_are_those_of_the_rows(write: Callable[[Path], Path], own_place: Path) -> None:
    items = NewYorker.open(write(own_place / "data")).items("explanation", fold=2)
    rows = cartoons.hub_rows("explanation", 2, "test")

    assert [(item.id, item.n_tokens) for item in items] == [(row["instance_id"], row["n_tokens_label"]) for row in rows]


def test_ids_of_our_own_are_those_of_the_content(own_place: Path) -> None:
    one = NewYorker.open(cartoons.repository(own_place / "one"))
    other = NewYorker.open(cartoons.packed_repository(own_place / "other"))

    every = [item.id for task in TASKS for split in SPLITS for item in one.items(task, fold=1, split=split)]
    assert len({*every}) == len(every)
    assert every == [item.id for task in TASKS for split in SPLITS for item in other.items(task, fold=1, split=split)]
    first = one.items("matching", fold=1)[0]
    content = json.dumps(["matching", first.contest, *first.choices])
    assert first.id == md5(content.encode()).hexdigest()


def test_a_description_is_read_with_names_of_articles_and_questions(own_place: Path) -> None:
    data = NewYorker.open(cartoons.raw(own_place / "data"))
    first, *_, last = data.cartoon(CONTESTS[0]).annotations

    assert (first.location, last.location) == ("a bar", "a castle")
    assert first.description == "A bear talks to a man, says person 0."
    assert last.uncanny == "A bear cannot talk, says person 2."
    assert (first.entities, last.entities) == (("Duck", "Camping"), ("Duck", "Office worker", "Chef's uniform"))
    assert first.questions == ("What does the bear say?",)
    assert data.cartoon(CONTESTS[0]).annotations[2].questions == ("What does the bear say?", "Why?")


def test_finalists_are_those_that_are_known(own_place: Path) -> None:
    data = NewYorker.open(cartoons.raw(own_place / "data"))
    known = {contest: data.cartoon(contest).finalists for contest in CONTESTS}

    assert known[CONTESTS[0]] == tuple(f"“The bear has heard joke {number} before.”" for number in range(3))
    assert [known[contest] for contest in cartoons.FINALISTS] == [(), ("Sitting ducks.",), ()]
    assert data.notes == (f"A finalist of contest {CONTESTS[9]} is NaN, and left out.",)


def test_the_key_of_places_may_be_as_the_documentation_says(own_place: Path) -> None:
    content = cartoons.annotation_file()
    for entry in content.values():
        entry["mturk_annotations"]["links_hit"] = entry["mturk_annotations"].pop("link_hit")
    cartoons.write(own_place / "data" / ANNOTATIONS, content)

    assert len(NewYorker.open(own_place / "data").cartoon(CONTESTS[0]).annotations) == len(TUPLES)


LINKS = {
    **dict(zip(cartoons.LINKS, cartoons.NAMES, strict=True)),
    "https://en.wikipedia.org/wiki/Tandem_bicycle#:~:text=A%20tandem,not%20the%20number.": "Tandem bicycle",
    "https://en.wikipedia.org/wiki/Bacon?wprov=srpw1_0": "Bacon",
    "https://en.wikipedia.org/wiki/Ma%C3%AEtre_d%27h%C3%B4tel": "Maître d'hôtel",
    "https://en.wikipedia.org/wiki/AC/DC": "AC/DC",
    "https://en.wikipedia.org/wiki/Bar_(establishment)": "Bar (establishment)",
    "https://example.org/Duck": "Duck",
    "  a  plain_name ": "a plain name",
    "http://[broken": "http://[broken",
    "https://en.wikipedia.org/wiki/": "",
}


@pytest.mark.parametrize(("link", "name"), LINKS.items())
def test_a_link_gives_the_name_of_the_article(link: str, name: str) -> None:
    assert entity_name(link) == name


def test_only_the_fold_that_is_asked_for_is_read(own_place: Path) -> None:
    folder = cartoons.lines(own_place / "data")
    for task, fold in (("matching", 1), ("ranking", 0)):
        (folder / cartoons.config(task, fold) / "train.jsonl").write_text("no JSON\n", encoding="utf-8")
    data = NewYorker.open(folder)

    assert len(data.items("matching", fold=0)) == 9
    with pytest.raises(BadData, match=r"matching_1/train.jsonl', line 1 is no JSON"):
        data.items("matching", fold=1)


def test_the_configs_with_descriptions_are_read_before_those_without(own_place: Path) -> None:
    folder = cartoons.from_pixels(cartoons.parquet(own_place / "data", folds=[0]))
    data = NewYorker.open(folder)

    assert all(item.annotation for item in data.items("matching", fold=0))
    assert not any(item.annotation for item in data.items("matching", fold=1))
    assert data.files.unread == tuple(str(folder / f"{task}_from_pixels") for task in sorted(TASKS))


def test_descriptions_beside_pixels_are_taken_one_for_an_item_that_is_tested(own_place: Path) -> None:
    folder = cartoons.raw(cartoons.from_pixels(own_place / "data"))
    data = NewYorker.open(folder)
    again = NewYorker.open(folder)

    for fold in FOLDS:
        for item in data.items("matching", fold=fold):
            assert item.annotation in data.cartoon(item.contest).annotations
    assert data.items("matching", fold=3) == again.items("matching", fold=3)
    by_contest = {(item.contest, item.annotation) for item in data.items("ranking", fold=3)}
    assert len(by_contest) == 3


def test_the_config_alone_may_be_named(own_place: Path) -> None:
    folder = cartoons.parquet(own_place / "data", tasks=["ranking"], folds=[3])

    data = NewYorker.open(folder / "ranking_3")

    assert data.folds == (3,)
    assert len(data.items("ranking", fold=3)) == 9 - 3 * (cartoons.UNRANKED in cartoons.contests_of(3, "test"))


@pytest.mark.parametrize("packed", [False, True])
def test_the_leaderboard_hides_labels_and_contests(packed: bool, own_place: Path) -> None:
    folder = cartoons.leaderboard(own_place / "data")
    if packed:
        for home in sorted(folder.iterdir()):
            cartoons.pack(home, folder / f"{home.name}.zip")
            shutil.rmtree(home)
    data = NewYorker.open(folder)
    items = data.items("matching", fold=LEADERBOARD)
    rows = cartoons.hub_rows("matching", 0, "test")

    assert data.folds == ()
    assert [item.choices for item in items] == [tuple(row["caption_choices"]) for row in rows[: len(items)]]
    assert {(item.label, item.official_id, item.annotation) for item in items} == {("", True, None)}
    assert all(item.contest < 0 for item in items)
    pictures = [data.cartoon(item.contest).load() for item in items]
    assert [picture and picture.data for picture in pictures] == [
        cartoons.picture(row["contest_number"]) for row in rows[: len(items)]
    ]
    assert len(data.items("ranking", fold=LEADERBOARD)[0].choices) == 2


def test_a_cartoon_without_a_picture_has_none(own_place: Path) -> None:
    data = NewYorker.open(cartoons.lines(own_place / "data", pictures=False))

    assert data.cartoon(CONTESTS[0]).load() is None


def test_a_broken_archive_of_pictures_is_named(own_place: Path) -> None:
    folder = cartoons.archives(own_place / "data")
    archive = folder / "all_contest_images.zip"
    content = bytearray(archive.read_bytes())
    at = content.index(b"all_contest_images/5.jpeg") + 40
    content[at : at + 20] = bytes(20)
    archive.write_bytes(content)

    with pytest.raises(BadImage, match=r"'all_contest_images/5\.jpeg' cannot be taken out of"):
        NewYorker.open(folder).cartoon(5).load()


# --- what is wrong ---------------------------------------------------------------------------------------------------


def changed(
    folder: Path, task: TaskName, change: Callable[[list[dict[str, Any]]], object], split: str = "test"
) -> Path:
    """JSON lines of one fold in which the rows of a split are changed."""
    cartoons.lines(folder, tasks=[task], folds=[0])
    file = folder / task / f"{split}.jsonl"
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    change(rows)
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return folder


BROKEN: dict[str, tuple[TaskName, dict[str, Any], str]] = {
    "four captions": ("matching", {"caption_choices": ["a", "b", "c", "d"]}, "4 captions, and matching has 5"),
    "one text": ("matching", {"caption_choices": "a caption"}, "'caption_choices' is 'a caption', not a list"),
    "three captions": ("ranking", {"caption_choices": ["a", "b", "c"]}, "3 captions, and ranking has 2"),
    "a list": ("explanation", {"caption_choices": ["a"]}, r"'caption_choices' is \['a'\], not a text"),
    "blank": ("matching", {"caption_choices": ["a", "b", " ", "c", "d"]}, "'caption_choices' is ' ', not a text"),
    "no such letter": ("ranking", {"label": "C"}, "the label is 'C', and the choices are AB"),
    "two letters": ("matching", {"label": "AB"}, "the label is 'AB', and the choices are ABCDE"),
    "no label": ("matching", {"label": None}, "'label' is missing, not a text"),
    "no explanation": ("explanation", {"label": "  "}, "'label' is '  ', not a text"),
    "nobody chose": ("ranking", {"winner_source": "me"}, "'winner_source' is 'me', and not official_winner or crowd_w"),
    "no contest": ("matching", {"contest_number": "5"}, "'contest_number' is '5', not a number"),
    "true": ("matching", {"contest_number": True}, "'contest_number' is True, not a number"),
    "no id": ("matching", {"instance_id": None}, "'instance_id' is missing"),
    "no description": ("matching", {"image_description": None}, "'image_description' is missing, not a text"),
    "no links": ("matching", {"entities": "Duck"}, "'entities' is 'Duck', not a list"),
    "odd count": ("explanation", {"n_tokens_label": 1.5}, "'n_tokens_label' is 1.5, not a number"),
}


@pytest.mark.parametrize(("task", "values", "message"), BROKEN.values(), ids=BROKEN)
def test_a_row_that_cannot_be_used_is_named(
    task: TaskName, values: dict[str, Any], message: str, own_place: Path
) -> None:
    folder = changed(own_place / "data", task, lambda rows: rows[1].update(values))
    problems: list[BadData] = []

    with pytest.raises(BadData, match=rf"{task}/test.jsonl', line 2.*{message}"):
        NewYorker.open(folder).items(task, fold=0)

    left = NewYorker.open(folder, problems=problems).items(task, fold=0)
    assert len(left) == len(cartoons.hub_rows(task, 0, "test")) - 1
    assert len(problems) == 1


def test_an_id_that_stands_there_twice_is_named(own_place: Path) -> None:
    folder = changed(own_place / "data", "matching", lambda rows: rows[3].update(instance_id=rows[0]["instance_id"]))

    with pytest.raises(BadData, match=r"line 4: the id '[0-9a-f]{32}' stands there twice"):
        NewYorker.open(folder).items("matching", fold=0)


def test_a_contest_in_two_splits_is_named(own_place: Path) -> None:
    trained = cartoons.contests_of(0, "train")[0]
    folder = changed(own_place / "data", "matching", lambda rows: rows[0].update(contest_number=trained))
    problems: list[BadData] = []

    with pytest.raises(BadData, match=rf"has 1 contest both in train and in test, such as {trained}"):
        NewYorker.open(folder).items("matching", fold=0, split="train")
    assert len(NewYorker.open(folder, problems=problems).items("matching", fold=0)) == 9
    assert len(problems) == 1


def test_a_contest_that_two_folds_test_is_named(own_place: Path) -> None:
    folder = cartoons.lines(own_place / "data", tasks=["ranking"])
    shutil.rmtree(folder / "ranking_3")
    shutil.copytree(folder / "ranking_1", folder / "ranking_3")
    data = NewYorker.open(folder)
    data.items("ranking", fold=1)
    data.items("ranking", fold=2)

    with pytest.raises(BadData, match="Folds 1 and 3 of ranking both test 3 contests, such as 49"):
        data.items("ranking", fold=3)


REPOSITORY: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "beyond": (lambda row: row.update(correct_idx=5), "'correct_idx' is 5, and there are 5 choices"),
    "before": (lambda row: row.update(correct_idx=-1), "'correct_idx' is -1"),
    "a truth": (lambda row: row.update(correct_idx=True), "'correct_idx' is True"),
    "no choices": (lambda row: row.pop("choices"), "'choices' is missing, not a list"),
    "plain choices": (lambda row: row.update(choices=["a"] * 5), "'a', not a JSON object"),
    "unknown": (lambda row: row.update(contest_number=4), "contest 4 is not in .*split=0_newyorker_contest_annot"),
}


@pytest.mark.parametrize(("change", "message"), REPOSITORY.values(), ids=REPOSITORY)
def test_an_item_of_the_repository_that_cannot_be_used_is_named(
    change: Callable[[dict[str, Any]], object], message: str, own_place: Path
) -> None:
    folder = cartoons.repository(own_place / "data")
    file = folder / "tasks" / "contest_matching_split=0_cleaned.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    change(content["val"][2])
    cartoons.write(file, content)
    problems: list[BadData] = []

    with pytest.raises(BadData, match=rf"'val', item 2.*{message}"):
        NewYorker.open(folder).items("matching", fold=0)
    assert len(NewYorker.open(folder, problems=problems).items("matching", fold=0, split="validation")) == 8
    assert len(problems) == 1


DESCRIBED: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another number": (lambda entry: entry.update(contest_number=6), "its 'contest_number' is 6"),
    "no people": (lambda entry: entry.pop("mturk_annotations"), "is missing, not a JSON object"),
    "no places": (lambda entry: entry["mturk_annotations"].update(link_hit=[]), "no description or no place"),
    "finalists": (lambda entry: entry.update(official_newyorker_finalists="none"), "is 'none', not a list"),
    "a finalist": (lambda entry: entry.update(official_newyorker_finalists=[3]), "is 3, not a text"),
}


@pytest.mark.parametrize(("change", "message"), DESCRIBED.values(), ids=DESCRIBED)
def test_a_description_that_cannot_be_used_is_named(
    change: Callable[[dict[str, Any]], object], message: str, own_place: Path
) -> None:
    content = cartoons.annotation_file()
    change(content["5"])
    cartoons.write(own_place / "data" / ANNOTATIONS, content)
    problems: list[BadData] = []

    with pytest.raises(BadData, match=rf"contest '5'.*{message}"):
        NewYorker.open(own_place / "data").cartoon(5)
    assert NewYorker.open(own_place / "data", problems=problems).contests == CONTESTS[1:]
    assert len(problems) == 1


def test_infinity_in_the_descriptions_is_refused(own_place: Path) -> None:
    content = cartoons.annotation_file()
    content["5"]["official_newyorker_finalists"] = [float("inf")]
    cartoons.write(own_place / "data" / ANNOTATIONS, content)

    with pytest.raises(BadData, match="it holds Infinity"):
        NewYorker.open(own_place / "data").cartoon(5)


HOMES: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing": (lambda folder: folder.mkdir(), "holds nothing of the data set"),
    "no folder": (lambda folder: None, "There is no data folder"),
    "a shard is missing": (
        lambda folder: (cartoons.parquet(folder, folds=[0]) / "matching" / "train-00001-of-00002.parquet").unlink(),
        "says that it is one of 2 files, and 1 are there",
    ),
    "a broken archive": (
        lambda folder: cartoons.write(folder / "tasks.zip", b"PK, but no archive"),
        "The archive .*tasks.zip' cannot be read",
    ),
}


@pytest.mark.parametrize(("make", "message"), HOMES.values(), ids=HOMES)
def test_a_folder_that_cannot_be_used_says_why(make: Callable[[Path], object], message: str, own_place: Path) -> None:
    make(own_place / "data")

    with pytest.raises(BadData, match=message):
        NewYorker.open(own_place / "data")


ABSENT: dict[str, tuple[Callable[[Path], Path], TaskName, int, Split, str]] = {
    "descriptions alone": (cartoons.raw, "matching", 0, "test", "has descriptions of cartoons and no tasks; `askance"),
    "another fold": (
        lambda folder: cartoons.lines(folder, folds=[0, 2]),
        "matching",
        1,
        "test",
        "has no fold 1 of matching; it has the folds 0, 2",
    ),
    "another task": (
        lambda folder: cartoons.lines(folder, tasks=["ranking"]),
        "matching",
        1,
        "test",
        "has no fold 1 of matching; it has none",
    ),
    "no leaderboard": (cartoons.lines, "matching", LEADERBOARD, "test", "has no leaderboard of matching"),
    "no training": (cartoons.leaderboard, "matching", LEADERBOARD, "train", "has no items for train"),
}


@pytest.mark.parametrize(("write", "task", "fold", "split", "message"), ABSENT.values(), ids=ABSENT)
def test_items_that_are_not_there_are_refused(
    write: Callable[[Path], Path], task: TaskName, fold: int, split: Split, message: str, own_place: Path
) -> None:
    data = NewYorker.open(write(own_place / "data"))

    with pytest.raises(BadData, match=message):
        data.items(task, fold=fold, split=split)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../secret.jpg", "a\\b.jpg", "a\0b", "\ud800", "a" * 256, None, "link.jpg"]
)
def test_a_picture_of_the_leaderboard_that_is_no_file_beside_it(name: str | None, own_place: Path) -> None:
    folder = cartoons.leaderboard(own_place / "data")
    (own_place / "secret.jpg").write_bytes(cartoons.picture(CONTESTS[0]))
    file = folder / "matching_test_set_public" / "instances.json"
    file.with_name("link.jpg").symlink_to(own_place / "secret.jpg")
    rows = json.loads(file.read_text(encoding="utf-8"))
    rows[1]["image"] = name
    file.write_text(json.dumps(rows), encoding="utf-8")

    with pytest.raises(BadData, match=r"item 1: .* is no name of a picture beside it"):
        NewYorker.open(folder).items("matching", fold=LEADERBOARD)


# --- the published file ----------------------------------------------------------------------------------------------


@pytest.mark.skipif(not (REAL / ANNOTATIONS).is_file(), reason="ASKANCE_TEST_NEWYORKER names no folder with real files")
def test_the_published_descriptions_are_read_whole() -> None:
    data = NewYorker.open(REAL)
    known = {contest: data.cartoon(contest) for contest in data.contests}
    names = [name for cartoon in known.values() for note in cartoon.annotations for name in note.entities]

    assert (len(known), min(known), max(known)) == (705, 1, 763)
    assert {len(cartoon.annotations) for cartoon in known.values()} == {6}
    assert sum(len(cartoon.finalists) == 3 for cartoon in known.values()) == 644
    assert data.notes == ("A finalist of contest 592 is NaN, and left out.",)
    assert not [name for name in names if not name or set("#?%_") & {*name} or "(disambiguation)" in name]
    assert {"Office worker", "Maître d'hôtel", "colleague", "Tandem bicycle", "Bacon", "Santa Claus's reindeer"} <= {
        *names
    }


def test_tasks_of_a_process_share_what_was_read_of_a_folder_until_it_changes(own_place: Path) -> None:
    folder = cartoons.repository(own_place / "data")
    first = NewYorker.open(folder)
    assert NewYorker.open(folder) is first

    file = next(folder.glob("tasks/contest_matching_split=0*"))
    file.write_text(f"{file.read_text(encoding='utf-8')}\n", encoding="utf-8")

    assert NewYorker.open(folder) is not first
