"""Files of the shapes that the data set has, made up: both releases, annotations, lists, images."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

HEADER = ("image_url", "category", "first_explaination", "second_explanation", "bounding_box")

Row = tuple[str, str, str, str, str]


def key_of(number: int) -> str:
    """The key of the image with this number, by the rule of shards."""
    return f"10/{number}.png" if number > 170_000 else f"{number % 10}/{number}.jpg"


def true_of(key: str, count: int = 3) -> list[str]:
    """True statements as people wrote them: blanks, entities and all."""
    return [f" I should buy {key} Because reason {place} is  GOOD &amp; cheap " for place in range(count)]


def record(key: str, count: int = 3, options: int = 15) -> list[list[str]]:
    """A record of release B's training set; the true statements are spread among the options."""
    true = true_of(key, count)
    wrong = [f"I should not mind {key}, option {place}" for place in range(options - count)]
    return [true, [*wrong[:2], *true[::-1], *wrong[2:]]]


def row(key: str, category: str = "3", first: str = "cat", second: str = "tea cup", boxes: str = "[]") -> Row:
    return key, category, first, second, boxes


def write_json(path: Path, content: Any) -> Path:
    return write(path, json.dumps(content))


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def write_csv(path: Path, rows: Iterable[Sequence[str]], header: Sequence[str] = HEADER) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def draw(folder: Path, *keys: str) -> None:
    """Files with the names of images; nothing here looks into one."""
    for key in keys:
        write(folder / key, b"")


def id_lists(folder: Path) -> None:
    """The three lists in their three encodings."""
    topics = '1\t"Cafés, fast food" (ABBREVIATION: "restaurant")\r\n2\t"Pet food" (ABBREVIATION: "petfood")\r\n'
    topics += '3\t"Unclear"\r\n'
    sentiments = '1. "Active\xa0(vibrant)" (ABBREVIATION: "active")\n2. "Blasé (bored)" (ABBREVIATION: "blase")\n'
    write(folder / "Topics_List.txt", b"\xff\xfe" + topics.encode("utf-16-le"))
    write(folder / "Sentiments_List.txt", sentiments.encode("latin-1"))
    write(folder / "Strategies_List.txt", "1, Process\n2, Symbol\n3, Atypical\n")


def release_b(folder: Path, records: Mapping[str, Any]) -> Path:
    return write_json(folder / "train" / "QA_Combined_Action_Reason_train.json", records)


NUMBERS = (11, 12, 13, 170_001)
KEYS = tuple(map(key_of, NUMBERS))


def small_folder(folder: Path) -> Path:
    """Four images of release B: two labels, a plurality, a tie and a typical one; one lacks its picture."""
    one, two, three, four = KEYS
    release_b(folder, {key: record(key) for key in KEYS})
    write_csv(
        folder / "final_csv.csv",
        [
            *(row(one, "1", "bottle", "feather"), row(one, "8", "bottle", "lamp"), row(one, "1", "beer", "feather")),
            *(row(two, "3"), row(two, "2", "", "x"), row(two, "Regular_Object", "", "")),
            *(row(three, "8", "", "lamp"), row(three, "5"), row(three, "")),
            *(row(four, "Regular_Object", "", ""), row(four, "Regular_Object", "", "")),
        ],
    )
    draw(folder / "train_images", one, three, four)
    id_lists(folder)
    return folder
