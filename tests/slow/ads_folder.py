"""A data folder of ads, laid out as release B: the demo's pictures with their statements, and real records."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from typing import Any

from askance.demo import FOLDER
from scripts.make_example_pack import lay_out
from tests.evals.pittads.files import row, write_json

RECORDS = "QA_Combined_Action_Reason_train.sample.json"
"""File with some real records of the ads."""
PUBLISHED = "hard_negatives_fig7.json"
"""File with the hard negatives that the paper prints."""

ANNOTATIONS = "final_csv.csv"
STATEMENTS = "train/QA_Combined_Action_Reason_train.json"
HARD = "large_combined_hard_QA_Combined_Action_Reason_train.json"
"""Where the published negatives go."""

OPTIONS = 15
"""Options of an ad."""


def ads_folder(folder: Path, real: Path | None = None) -> Path:
    """Writes the demo, and what is in `real`: records and published negatives, which get pictures of the demo."""
    folder.mkdir(parents=True)
    lay_out(folder)
    if real is not None:
        pictures = cycle(sorted(FOLDER.glob("pictures/*.jpg")))
        records: dict[str, Any] = json.loads((real / RECORDS).read_text("utf-8"))
        hard = published(real / PUBLISHED)
        others = [text for true, _ in records.values() for text in true]
        records |= {key: [true, [*true, *others[: OPTIONS - len(true)]]] for key, (true, _) in hard.items()}
        for key in records:
            place = folder / "train_images" / key
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(next(pictures).read_bytes())
        with (folder / ANNOTATIONS).open("a", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(row(key, "1", "bottle", "feather") for key in records)
        path = folder / STATEMENTS
        write_json(path, {**json.loads(path.read_text("utf-8")), **records})
        write_json(folder / "train" / HARD, hard)
    return folder


def published(path: Path) -> Mapping[str, list[list[str]]]:
    """The published negatives as records: one ad for each true statement, its negatives as wrong options."""
    found: dict[str, list[list[str]]] = {}
    for number, texts in enumerate(json.loads(path.read_text("utf-8"))["hard_negatives"], start=90_001):
        true = texts.pop("correct")
        found[f"{number % 10}/{number}.jpg"] = [[true], [true, *filter(None, texts.values())]]
    return found
