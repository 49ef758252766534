"""A made-up data set of the shapes that the New Yorker's has: fifteen contests, five folds, three tasks, all layouts.

`LAYOUTS` writes it in each layout. What is true of it: each caption is right once and wrong four times in a split of
matching; each contest is tested by one fold; the last contest has no ranking items; every third caption is the crowd's.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import md5
from importlib import import_module
from pathlib import Path
from typing import Any

from PIL import Image as Pillow
from PIL import ImageDraw

from askance.evals.newyorker.layout import Split, TaskName

Row = dict[str, Any]

CONTESTS = (5, 49, 81, 137, 322, 332, 467, 509, 543, 592, 607, 615, 660, 749, 763)
UNRANKED = CONTESTS[-1]
FOLDS = range(5)
TASKS: tuple[TaskName, ...] = ("matching", "ranking", "explanation")
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
CAPTIONS = 3
TUPLES = [(description, place) for description in range(3) for place in range(2)]
"""The valid descriptions of a cartoon: which of three texts, and which of two places."""

PLACES = ("a bar", "a castle", "an office", "a desert island", "a courtroom")
ANIMALS = (
    "bear",
    "duck",
    "fish",
    "horse",
    "whale",
    "cat",
    "owl",
    "mouse",
    "wolf",
    "hen",
    "goat",
    "pig",
    "fox",
    "yak",
    "ant",
)
LINKS = (
    "https://en.wikipedia.org/wiki/Duck",
    "https://en.wikipedia.org/wiki/Camping#Equipment",
    "https://en.wikipedia.org/?title=Office_worker&redirect=no",
    "https://en.wikipedia.org/wiki/Chef%27s_uniform",
    "https://en.wikipedia.org/wiki/Cowboy_(disambiguation)",
    "https://en.wiktionary.org/wiki/colleague",
)
NAMES = ("Duck", "Camping", "Office worker", "Chef's uniform", "Cowboy", "colleague")
"""What `LINKS` are called."""
FINALISTS: Mapping[int, Any] = {CONTESTS[3]: "UNKNOWN", CONTESTS[9]: ["Sitting ducks.", float("nan")], CONTESTS[13]: []}
"""Contests whose finalists are not given as three texts."""


def animal(contest: int) -> str:
    """The animal of a cartoon, which tells it apart in every text and in no other."""
    return ANIMALS[CONTESTS.index(contest)]


def caption(contest: int, number: int) -> str:
    """One of the good captions of a contest."""
    return f"The {animal(contest)} has heard joke {number} before."


def split_of(contest: int, fold: int) -> str:
    """The split of a fold in which a contest is."""
    place = (CONTESTS.index(contest) - fold) % len(FOLDS)
    return {0: "test", 1: "validation"}.get(place, "train")


def contests_of(fold: int, split: str) -> list[int]:
    """The contests of a split of a fold."""
    return [contest for contest in CONTESTS if split_of(contest, fold) == split]


def hits(contest: int) -> tuple[list[Row], list[Row]]:
    """The three descriptions and the two places of a cartoon, as the file of descriptions has them."""
    place = CONTESTS.index(contest)
    texts: list[Row] = [
        {
            "image_description": f"A {animal(contest)} talks to a man, says person {number}.",
            "image_uncanny_description": f"A {animal(contest)} cannot talk, says person {number}.",
            "question_1": f"What does the {animal(contest)} say?",
            "question_2": "Why?" if number == 1 else None,
            "hash_worker_id": md5(f"d{number}".encode()).hexdigest(),
        }
        for number in range(3)
    ]
    places: list[Row] = [
        {
            "image_location": PLACES[(place + number) % len(PLACES)],
            "link_1": LINKS[place % len(LINKS)],
            "link_2": LINKS[(place + number + 1) % len(LINKS)],
            "link_3": LINKS[(place + 3) % len(LINKS)] if number else None,
            "hash_worker_id": md5(f"l{number}".encode()).hexdigest(),
        }
        for number in range(2)
    ]
    return texts, places


def fixed_tuple(contest: int, fold: int) -> tuple[int, int]:
    """The description that a contest has outside training."""
    return TUPLES[(contest + fold) % len(TUPLES)]


def annotation_file(fold: int | None = None) -> Row:
    """The file of all descriptions, or that of a fold."""
    found: Row = {}
    for contest in CONTESTS:
        texts, places = hits(contest)
        if fold is not None and split_of(contest, fold) != "train":
            one, other = fixed_tuple(contest, fold)
            texts, places = texts[one : one + 1], places[other : other + 1]
        finalists = [f"“{caption(contest, number)}”" for number in range(CAPTIONS)]
        found[str(contest)] = {
            "contest_number": contest,
            "contest_source": "bob" if contest < 508 else "nextml_1",
            "contest_type": "bob_okay" if contest < 508 else "new_yorker_nextml_images",
            "official_newyorker_finalists": FINALISTS.get(contest, finalists),
            "mturk_annotations": {"description_hit": texts, "link_hit": places},
        }
    return found


# --- tasks in the shape of the repository ----------------------------------------------------------------------------


def repository_rows(task: str, fold: int, split: str) -> list[Row]:
    """The items of a split, each once."""
    contests = contests_of(fold, split)
    return list({"matching": _matching, "ranking": _ranking, "explanation": _explanation}[task](contests, fold))


def _source(number: int) -> str:
    return "crowd_winner" if number == CAPTIONS - 1 else "official_winner"


def _matching(contests: Sequence[int], fold: int) -> Iterator[Row]:
    """A caption is wrong for the two contests before its own, twice each."""
    for place, contest in enumerate(contests):
        for number in range(CAPTIONS):
            wrong = [
                (contests[(place + step) % len(contests)], (number + more) % CAPTIONS)
                for step in (1, 2)
                for more in (0, 1)
            ]
            correct = (contest + number + fold) % 5
            shown = [*wrong[:correct], (contest, number), *wrong[correct:]]
            yield {
                "choices": [{"clean_caption": caption(*each), "source": _source(each[1])} for each in shown],
                "contest_number": contest,
                "correct_idx": correct,
                "split_idx_for_neg_match": fold,
            }


def _ranking(contests: Sequence[int], fold: int) -> Iterator[Row]:
    for contest in contests:
        for number in range(CAPTIONS if contest != UNRANKED else 0):
            good, okay = caption(contest, number), f"I am a {animal(contest)}, number {number}."
            label = "AB"[(contest + number + fold) % 2]
            shown = (good, okay) if label == "A" else (okay, good)
            yield {
                "A": shown[0],
                "B": shown[1],
                "contest_number": contest,
                "label": label,
                "winner_source": _source(number),
            }


def _explanation(contests: Sequence[int], _: int) -> Iterator[Row]:
    for contest in contests:
        text = f"Real {animal(contest)}s do not talk, and this one is bored by jokes."
        yield {
            "caption": caption(contest, 0),
            "contest_number": contest,
            "explanation": text,
            "n_expl_toks": len(text.split()) + 3,
        }


# --- tasks in the shape of the hub -----------------------------------------------------------------------------------


def hub_rows(task: str, fold: int, split: str, *, described: bool = True) -> list[Row]:
    """The rows of a config without the picture; those of training once for every description of the cartoon."""
    found = list[Row]()
    for row in repository_rows(task, fold, split):
        contest = row["contest_number"]
        one = [fixed_tuple(contest, fold)]
        for place in (TUPLES if split == "train" else one) if described else [None]:
            plain = _hub_row(task, row)
            if place is not None:
                plain |= _described(contest, *place)
            key = json.dumps([task, described, fold, plain], sort_keys=True)
            found.append({**plain, "instance_id": md5(key.encode()).hexdigest()})
    return found


def _hub_row(task: str, row: Row) -> Row:
    plain: Row = {"contest_number": row["contest_number"], "n_tokens_label": 1}
    if task == "matching":
        choices = [choice["clean_caption"] for choice in row["choices"]]
        return {**plain, "caption_choices": choices, "label": "ABCDE"[row["correct_idx"]]}
    if task == "ranking":
        choices = [row["A"], row["B"]]
        return {**plain, "caption_choices": choices, "label": row["label"], "winner_source": row["winner_source"]}
    tokens = {"n_tokens_label": row["n_expl_toks"]}
    return {**plain, "caption_choices": row["caption"], "label": row["explanation"], **tokens}


def _described(contest: int, text: int, place: int) -> Row:
    texts, places = hits(contest)
    one, other = texts[text], places[place]
    entities = [other[name] for name in ("link_1", "link_2", "link_3") if other[name]]
    return {
        "image_location": other["image_location"],
        "image_description": one["image_description"],
        "image_uncanny_description": one["image_uncanny_description"],
        "entities": entities,
        "questions": [one[name] for name in ("question_1", "question_2") if one[name]],
        "from_description": f"scene: {other['image_location']} description: {one['image_description']}",
    }


def config(task: str, fold: int, *, described: bool = True) -> str:
    """The name of a config."""
    return f"{task}{'' if described else '_from_pixels'}{f'_{fold}' if fold else ''}"


@cache
def picture(contest: int) -> bytes:
    """The cartoon of a contest: a greyscale JPEG that no other contest has."""
    drawn = Pillow.new("L", (96, 64), 255)
    pen = ImageDraw.Draw(drawn)
    pen.rectangle((4, 4, 91, 59), outline=0)
    for bit in range(10):
        if contest >> bit & 1:
            pen.rectangle((8 + bit * 8, 12, 13 + bit * 8, 52), fill=40 + 10 * bit)
    data = io.BytesIO()
    drawn.save(data, "JPEG", quality=90)
    return data.getvalue()


# --- layouts ---------------------------------------------------------------------------------------------------------


def write(path: Path, content: Any) -> Path:
    """A file of bytes, or of JSON as the authors write it, with NaN."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def _arrow_table(rows: Sequence[Row]) -> Any:
    images = [{"bytes": picture(row["contest_number"]), "path": f"{row['contest_number']}.jpeg"} for row in rows]
    return import_module("pyarrow").Table.from_pylist(
        [{"image": image, **row} for image, row in zip(images, rows, strict=True)]
    )


def _write_parquet(path: Path, rows: Sequence[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    import_module("pyarrow.parquet").write_table(_arrow_table(rows), path, row_group_size=4)


def _write_arrow(path: Path, rows: Sequence[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = _arrow_table(rows)
    with import_module("pyarrow").ipc.new_stream(str(path), table.schema) as stream:
        stream.write_table(table)


def parquet(
    folder: Path, *, tasks: Sequence[str] = TASKS, folds: Sequence[int] = FOLDS, described: bool = True
) -> Path:
    """What the hub holds; the rows of training in two files."""
    for task in tasks:
        for fold in folds:
            for split in SPLITS:
                rows = hub_rows(task, fold, split, described=described)
                half = len(rows) // 2 if split == "train" else 0
                parts = [rows[:half], rows[half:]] if half else [rows]
                for number, part in enumerate(parts):
                    name = f"{split}-0000{number}-of-0000{len(parts)}.parquet"
                    _write_parquet(folder / config(task, fold, described=described) / name, part)
    return folder


def converted(folder: Path) -> Path:
    """What the hub's converter makes: a file a split, or a folder with numbered files."""
    for task in TASKS:
        for fold in FOLDS:
            for split in SPLITS:
                home, name = folder / config(task, fold), f"newyorker_caption_contest-{split}.parquet"
                _write_parquet(home / (name if fold else f"{split}/0000.parquet"), hub_rows(task, fold, split))
    return folder


def from_pixels(folder: Path) -> Path:
    """The configs without descriptions, as parquet."""
    return parquet(folder, described=False)


def saved(folder: Path) -> Path:
    """What `datasets` keeps on disk: its cache for fold 0, and what it was told to save for the others."""
    for task in TASKS:
        for fold in FOLDS:
            for split in SPLITS:
                home = folder / config(task, fold)
                cached = home / "0.0.0" / "0a1b" / f"newyorker_caption_contest-{split}.arrow"
                _write_arrow(
                    cached if not fold else home / split / "data-00000-of-00001.arrow", hub_rows(task, fold, split)
                )
                write(cached.with_name("cache-77.arrow"), b"no table")
    return folder


def lines(folder: Path, *, tasks: Sequence[str] = TASKS, folds: Sequence[int] = FOLDS, pictures: bool = True) -> Path:
    """What the loading script unpacked, with the pictures in a folder."""
    for task in tasks:
        for fold in folds:
            for split in SPLITS:
                name = "val" if split == "validation" else split
                write(folder / config(task, fold) / f"{name}.jsonl", _lines(hub_rows(task, fold, split)))
    if pictures:
        draw(folder)
    return folder


def _lines(rows: Sequence[Row]) -> bytes:
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode()


def draw(folder: Path) -> Path:
    """The pictures of all contests."""
    for contest in CONTESTS:
        write(folder / "all_contest_images" / f"{contest}.jpeg", picture(contest))
    return folder


def archives(folder: Path) -> Path:
    """What the loading script downloads: an archive for each config, and one with the pictures."""
    apart = lines(folder.parent / f"{folder.name}-unpacked")
    folder.mkdir(parents=True)
    for each in sorted(apart.iterdir()):
        pack(each, folder / f"{each.name}.zip")
    return folder


def pack(source: Path, archive: Path) -> Path:
    """An archive of a folder or a file, with what macOS adds."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        for path in sorted(source.rglob("*")) if source.is_dir() else [source]:
            if path.is_file():
                name = path.relative_to(source.parent).as_posix()
                opened.write(path, name)
                opened.writestr(f"__MACOSX/{name}", b"nothing")
    return archive


REPOSITORY_NAMES = {
    "matching": "contest_matching",
    "ranking": "quality_ranking",
    "explanation": "explanation_generation",
}


def repository(folder: Path) -> Path:
    """The files of the repository: tasks, descriptions by fold, all descriptions, and the pictures."""
    for task in TASKS:
        for fold in FOLDS:
            name = f"{REPOSITORY_NAMES[task]}_split={fold}_cleaned.json"
            parts = {"val" if split == "validation" else split: repository_rows(task, fold, split) for split in SPLITS}
            write(folder / "tasks" / name, parts)
    for fold in FOLDS:
        write(
            folder / "annotations_per_split" / f"split={fold}_newyorker_contest_annotations.json", annotation_file(fold)
        )
    return draw(raw(folder))


def packed_repository(folder: Path) -> Path:
    """The same in the archives in which it is published."""
    apart = repository(folder.parent / f"{folder.name}-unpacked")
    folder.mkdir(parents=True)
    for each in sorted(apart.iterdir()):
        pack(each, folder / f"{each.name}.zip")
    return folder


def raw(folder: Path) -> Path:
    """The descriptions alone."""
    write(folder / "all_newyorker_contest_annotations.json", annotation_file())
    return folder


LEADERBOARD_ITEMS = 4


def leaderboard(folder: Path) -> Path:
    """The test sets of the leaderboard: pictures have names that say nothing, and labels are hidden."""
    for task, letters in (("matching", "ABCDE"), ("ranking", "AB")):
        home = folder / f"{task}_test_set_public"
        instances = list[Row]()
        for number, row in enumerate(hub_rows(task, 0, "test")[:LEADERBOARD_ITEMS]):
            contest = row["contest_number"]
            name = f"{md5(f'secret{contest}'.encode()).hexdigest()}.jpg"
            write(home / name, picture(contest))
            instances.append(
                {
                    "choices": dict(zip(letters, row["caption_choices"], strict=True)),
                    "image": name,
                    "instance_id": md5(f"{task}{number}".encode()).hexdigest(),
                }
            )
        write(home / "instances.json", instances)
    return folder


LAYOUTS: dict[str, Callable[[Path], Path]] = {
    "parquet": parquet,
    "converted": converted,
    "from pixels": from_pixels,
    "saved": saved,
    "lines": lines,
    "archives": archives,
    "repository": repository,
    "packed repository": packed_repository,
}
"""The layouts with all tasks in five folds."""
