"""Files of the shapes that the data set has, made up over the demo's pictures: all layouts, and pairs."""

from __future__ import annotations

import csv
import json
import shutil
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.scripted import PICTURES

NAMES = ("brick-cup", "cat-cup", "coin-horse", "grass-rocket", "starry-cup")
"""Pictures of the demo, one for each row."""
IDS = tuple(f"w{number:02}-{name}" for number, name in enumerate(NAMES))
CATEGORIES = ("Physical rules", "Nutrition mismatch", "Physical rules", "Biological rules", "Art knowledge")

COLUMNS = (
    "image_id",
    "image_designer",
    "designer_explanation",
    "selected_caption",
    "crowd_captions",
    "crowd_explanations",
    "crowd_underspecified_captions",
    "question_answering_pairs",
    "commonsense_category",
    "image_url",
)
LISTS = ("crowd_captions", "crowd_explanations", "crowd_underspecified_captions", "question_answering_pairs")

Row = dict[str, Any]


def rows() -> list[Row]:
    """The rows as they are meant, lists as lists."""
    return [_row(number, name) for number, name in enumerate(NAMES)]


def _row(number: int, name: str) -> Row:
    thing = name.replace("-", " ")
    captions = [f"A {thing} stands on a table, says person {place}" for place in range(5)]
    return {
        "image_id": IDS[number],
        "image_designer": f"designer {number % 2}",
        "designer_explanation": f"Nobody has seen a {thing} before.",
        "selected_caption": captions[2],
        "crowd_captions": captions,
        "crowd_explanations": [f"A {thing} breaks rule {place} of everyday life" for place in range(5)],
        "crowd_underspecified_captions": [f"Something stands there, says person {place}" for place in range(5)],
        "question_answering_pairs": [["What is shown?", f"a {thing}"], [f"How many are {number}?", "two"]],
        "commonsense_category": CATEGORIES[number],
        "image_url": f"http://127.0.0.1/{number}.png",
    }


def as_json(row: Row) -> Row:
    """The row as the CSV file of the first release has it."""
    return {name: json.dumps(value) if name in LISTS else value for name, value in row.items()}


def as_literals(row: Row) -> Row:
    """The row as a list written by `str` has it."""
    return {name: str(value) if name in LISTS else value for name, value in row.items()}


def write_table(path: Path, table: Sequence[Mapping[str, Any]], *, encoding: str = "utf-8") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)
    return path


def pictures(folder: Path, names: Mapping[str, str] | None = None) -> Path:
    """The demo's pictures as `FOLDER/ID.png`, or under other names; what a file is shows in its bytes alone."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(NAMES):
        wanted = IDS[number] if names is None else names.get(IDS[number], IDS[number])
        shutil.copy(PICTURES / f"{name}.jpg", folder / f"{wanted}.png")
    return folder


def first_release(folder: Path) -> Path:
    """`whoops_dataset.csv` with a byte order mark and the pictures in a folder."""
    write_table(folder / "whoops_dataset.csv", [as_json(row) for row in rows()], encoding="utf-8-sig")
    pictures(folder / "whoops_images")
    return folder


def archived(folder: Path) -> Path:
    """The same with the pictures in the archive that they come in."""
    write_table(folder / "whoops_dataset.csv", [as_json(row) for row in rows()])
    apart = pictures(folder.parent / f"{folder.name}-unpacked")
    with zipfile.ZipFile(folder / "whoops_images.zip", "w") as archive:
        for path in sorted(apart.iterdir()):
            archive.write(path, f"whoops_images/{path.name}")
            archive.writestr(f"__MACOSX/whoops_images/._{path.name}", b"no picture")
    return folder


def image_folder(folder: Path) -> Path:
    """`test/metadata.csv` with Python literals, and the pictures beside it."""
    table = [{"file_name": f"{row['image_id']}.png", **as_literals(row)} for row in rows()]
    write_table(folder / "test" / "metadata.csv", table)
    pictures(folder / "test")
    return folder


def arrow_rows() -> list[Row]:
    data = [(PICTURES / f"{name}.jpg").read_bytes() for name in NAMES]
    return [
        {"image": {"bytes": data[number], "path": f"{row['image_id']}.png"}, **row} for number, row in enumerate(rows())
    ]


def parquet(folder: Path) -> Path:
    """Two parquet files with lists as lists and the pictures within."""
    import pyarrow as pa  # pyright: ignore[reportMissingTypeStubs]
    import pyarrow.parquet as pq  # pyright: ignore[reportMissingTypeStubs]

    arrow: Any = pa
    write: Any = pq
    (folder / "data").mkdir(parents=True)
    for number, part in enumerate((arrow_rows()[:2], arrow_rows()[2:])):
        write.write_table(arrow.Table.from_pylist(part), folder / "data" / f"test-0000{number}-of-00002.parquet")
    return folder


def saved(folder: Path) -> Path:
    """What `datasets` keeps on disk: the stream format of Arrow, here with the list columns as texts."""
    import pyarrow as pa  # pyright: ignore[reportMissingTypeStubs]

    arrow: Any = pa
    (folder / "test").mkdir(parents=True)
    table = arrow.Table.from_pylist([as_json(row) for row in arrow_rows()])
    with arrow.ipc.new_stream(str(folder / "test" / "data-00000-of-00001.arrow"), table.schema) as stream:
        stream.write_table(table)
    (folder / "test" / "state.json").write_text("{}", encoding="utf-8")
    return folder


LAYOUTS: dict[str, Callable[[Path], Path]] = {
    "first release": first_release,
    "archive": archived,
    "image folder": image_folder,
    "parquet": parquet,
    "saved": saved,
}


def pairs(folder: Path, count: int = 3) -> Path:
    """`normal/ID.png` for the first images; the weird ones are those of the data set."""
    (folder / "normal").mkdir(parents=True)
    for number in range(count):
        data = (PICTURES / "plain-coffee.jpg").read_bytes() + bytes(number)  # what is behind the end is not looked at
        (folder / "normal" / f"{IDS[number]}.png").write_bytes(data)
    return folder


def triplets(folder: Path, labels: Mapping[str, tuple[str, bool]], *, names: Sequence[str] = ("t1", "t2")) -> Path:
    """Triplets of a weird, a normal and a natural picture, and what people say of captions, by sample."""
    number = 0
    for name in names:
        for kind in ("weird", "normal", "natural"):
            (folder / kind).mkdir(parents=True, exist_ok=True)
            number += 1
            data = (PICTURES / "plain-coffee.jpg").read_bytes() + bytes(number)
            (folder / kind / f"{name}.png").write_bytes(data)
    rows = [{"id": key, "caption": caption, "right": str(right).lower()} for key, (caption, right) in labels.items()]
    if rows:
        write_table(folder / "labels.csv", rows)
    return folder
