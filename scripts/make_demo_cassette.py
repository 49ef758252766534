"""Turn the demo's hand-written table into what `askance demo` replays.

    .venv/bin/python scripts/make_demo_cassette.py

The real chains ask a scripted model, which looks each request up in `askance/demo/demo.yaml`; what was asked and what
the table says become the records of `askance/demo/cassette.jsonl`. So a changed prompt needs no new typing, only one
more run of this script. `demo.json`, beside it, is the table without the answers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from askance.atypicality import Statement, all_statements
from askance.chains import Given, action_reason, end_to_end
from askance.demo import CASSETTE, ENTRIES, FOLDER, MODEL, TABLE
from askance.models import Capabilities, Engine, Model, ScriptedModel, get_model
from askance.prompts import PromptLibrary
from askance.replay import MemoryStore, export_cassette
from askance.tools import caption

if TYPE_CHECKING:
    from askance.chat import ChatRequest

Row = dict[str, Any]


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
    }


def statement_number(answers: Row) -> int:
    statements = all_statements(answers["objects"])
    return statements.index(Statement(**answers["detect_statement"])) + 1


REPLIES: Mapping[str, Callable[[Row], Row]] = {
    "objects": lambda said: {"objects": said["objects"]},
    "scene_text": lambda said: {"lines": said["scene_text"]},
    "narration": lambda said: {"description": said["narration"]},
    "unusual": lambda said: {"unusual": said["unusual"]},
    "caption": lambda said: {"description": said["caption"]},
    "combine": lambda said: {"description": said["combine"]},
    "detect_statement": lambda said: {"statement": statement_number(said)},
    "choose_action_reasons": lambda said: {"answers": said["choose_action_reasons"]},
    "end_to_end": lambda said: {"answers": said["end_to_end_multi"]},
}
"""The JSON that each node asks for, by the name of the schema that it sends along."""


def row_asked_about(request: ChatRequest, rows: list[Row]) -> Row:
    """The row of the picture that is sent along, or whose words are."""
    digests = {part.image.sha256 for part in request.images}
    words = "\n".join(message.text for message in request.messages)
    about = [
        row
        for row in rows
        if row["sha256"] in digests
        or (not digests and any(row["answers"][link] in words for link in ("narration", "combine")))
    ]
    if len(about) != 1:
        sys.exit(f"A request is about {len(about)} pictures of the table, not one:\n{words}")
    return about[0]


def scripted(rows: list[Row]) -> ScriptedModel:
    """The model that knows the table by heart."""

    def reply(request: ChatRequest) -> str:
        node = request.response.name if request.response else None
        if node is None or node not in REPLIES:
            sys.exit(f"The table answers no node {node!r}; it knows {', '.join(REPLIES)}.")
        return json.dumps(REPLIES[node](row_asked_about(request, rows)["answers"]), ensure_ascii=False)

    return ScriptedModel(reply, identity=MODEL, capabilities=Capabilities(schema="enforced"))


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
    records = MemoryStore()
    ask_everything(get_model(scripted(rows), engine=Engine(mode="refresh", records=records)), rows)
    # Without dates, equal tables and prompts make equal files.
    count = export_cassette((replace(record, at="") for record in records), cassette)
    entries.write_text(
        json.dumps([entry_of(row) for row in rows], indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    print(f"{count} records of {len(rows)} pictures in {cassette}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
