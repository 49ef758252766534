"""Turn the demo's hand-written table into what `askance demo` replays.

    .venv/bin/python scripts/make_demo_cassette.py

`askance/demo/demo.json`, made from `demo.yaml`, is what the model `demo` knows. The real chains ask it, and what was
asked and answered become the records of `cassette.jsonl`. So a changed prompt needs no new typing, only one more run.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from askance.atypicality import Statement
from askance.chains import Given, action_reason, end_to_end
from askance.demo import CASSETTE, ENTRIES, FOLDER, TABLE
from askance.models import Config, Engine, Model, get_model
from askance.prompts import PromptLibrary
from askance.replay import MemoryStore, export_cassette
from askance.tools import caption

Row = dict[str, Any]

CHOICES = ("choose_action_reasons", "choose_from_unusual", "end_to_end_multi")


def read_rows() -> list[Row]:
    return yaml.safe_load(TABLE.read_text(encoding="utf-8"))["pictures"]


def entry_of(row: Row) -> Row:
    """The row as `askance.demo.read_table` reads it."""
    return {
        "name": row["name"],
        "title": row["title"],
        "file": row["file"],
        "options": [text for _, text in row["options"]],
        "right": [number for number, (kind, _) in enumerate(row["options"], start=1) if kind == "right"],
        "statements": [Statement(**statement).text for statement in row["truth"]],
        "sha256": row["sha256"],
        "answers": answers_of(row),
    }


def answers_of(row: Row) -> Row:
    """The answers as the model `demo` gives them: what is chosen is said by its text, not by its number."""
    answers, texts = row["answers"], [text for _, text in row["options"]]
    chosen = {node: [texts[number - 1] for number in answers[node]] for node in CHOICES}
    return {**answers, **chosen, "detect_statement": Statement(**answers["detect_statement"]).text}


def ask_everything(model: Model, rows: list[Row]) -> None:
    """The chains and the caption over all pictures; ends where the chains read other answers than the table's."""
    prompts = PromptLibrary([])
    inputs: list[Given] = [{"image": FOLDER / row["file"], "options": entry_of(row)["options"]} for row in rows]
    chains = {
        "choose_action_reasons": action_reason(model, prompts=prompts),
        "end_to_end_multi": end_to_end(model, prompts=prompts),
    }
    for node, chain in chains.items():
        for row, reading in zip(rows, chain.batch(inputs), strict=True):
            found = list(reading.answers.value.numbers) if reading.answers and reading.answers.value else None
            if found != row["answers"][node]:
                sys.exit(f"{row['name']}: {node} was read as {found}: {reading.reason}")
    caption(model, prompts=prompts).batch([FOLDER / row["file"] for row in rows])


def main(cassette: Path = CASSETTE, entries: Path = ENTRIES) -> None:
    rows = read_rows()
    entries.write_text(
        json.dumps([entry_of(row) for row in rows], indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    records = MemoryStore()
    ask_everything(get_model("demo", engine=Engine(mode="refresh", records=records), config=Config()), rows)
    # Without dates, equal tables and prompts make equal files.
    count = export_cassette((replace(record, at="") for record in records), cassette)
    print(f"{count} records of {len(rows)} pictures in {cassette}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
