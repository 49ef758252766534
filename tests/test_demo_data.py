"""Tests of the data in `askance.demo`: pictures, table, sources."""

from __future__ import annotations

import runpy
from collections import Counter
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

from askance.atypicality import RELATIONS, Statement, all_statements
from askance.chains import Context, Given, action_reason
from askance.demo import CASSETTE, ENTRIES, FOLDER, NAME, PICTURES, TABLE, read_table
from askance.images import Image
from askance.models import Engine, get_model
from askance.prompts import PromptLibrary
from askance.replay import Cassette, MemoryStore, read_cassette
from askance.tools import objects
from tests.images.samples import png

NAMES = [
    "brick-cup",
    "grass-rocket",
    "coin-horse",
    "cat-cup",
    "cup-launch",
    "coin-rocket-cup",
    "starry-cup",
    "plain-coffee",
]
ANSWERS = {
    "objects",
    "scene_text",
    "narration",
    "unusual",
    "combine",
    "detect_statement",
    "choose_action_reasons",
    "choose_from_unusual",
    "end_to_end_multi",
    "caption",
    "investigate",
}
every_picture = pytest.mark.parametrize("name", NAMES, ids=NAMES)


@cache
def table() -> dict[str, Any]:
    pictures = yaml.safe_load(TABLE.read_text(encoding="utf-8"))["pictures"]
    return {picture["name"]: picture for picture in pictures}


def false_choices(picture: dict[str, Any], node: str) -> list[int]:
    kinds = [kind for kind, _ in picture["options"]]
    return [number for number in picture["answers"][node] if kinds[number - 1] != "right"]


def test_every_picture_is_in_the_table() -> None:
    assert list(table()) == NAMES
    assert {path.name for path in PICTURES.iterdir()} == {f"{name}.jpg" for name in NAMES}


def test_the_answers_carry_the_name_handwritten() -> None:
    assert {record.model for record in read_cassette(CASSETTE)} == {NAME} == {str(get_model("demo").id)}
    assert "hand-written" in (FOLDER / "SOURCES.md").read_text(encoding="utf-8")


def test_each_relation_one_with_two_and_one_plain() -> None:
    relations = [tuple(statement["relation"] for statement in picture["truth"]) for picture in table().values()]
    assert {relation for found in relations for relation in found} == set(RELATIONS)
    assert () in relations
    assert max(map(len, relations)) == 2


@every_picture
def test_file(name: str) -> None:
    picture = table()[name]
    data = (FOLDER / picture["file"]).read_bytes()
    assert sha256(data).hexdigest() == picture["sha256"]
    assert len(data) < 80_000
    info = Image.from_bytes(data).info
    assert (info.format, info.frames) == ("jpeg", 1)
    assert 500 < min(info.width, info.height) <= max(info.width, info.height) <= 800


def test_all_files_together_are_small() -> None:
    assert sum(path.stat().st_size for path in PICTURES.iterdir()) < 500_000


@every_picture
def test_options(name: str) -> None:
    kinds, texts = zip(*table()[name]["options"], strict=True)
    assert 15 <= len(texts) <= 18
    assert len(set(texts)) == len(texts)
    assert [text for text in texts if not text.startswith("I should ") or " because " not in text] == []
    assert [text for text in texts if not text.endswith(".")] == []
    count = Counter(kinds)
    assert set(count) == {"right", "action", "reason", "adjective", "object", "statement"}
    assert count["right"] == 3


@every_picture
def test_every_node_has_an_answer_of_its_form(name: str) -> None:
    picture = table()[name]
    answers = picture["answers"]
    assert set(answers) == ANSWERS
    assert 2 <= len(set(answers["objects"])) == len(answers["objects"]) <= 5
    assert all(isinstance(line, str) for line in answers["scene_text"])
    assert all("\n" not in answers[node] for node in ("narration", "unusual", "combine", "caption"))
    for node in ("choose_action_reasons", "end_to_end_multi"):
        numbers = answers[node]
        assert len(set(numbers)) == len(numbers) == 3
        assert set(numbers) <= set(range(1, len(picture["options"]) + 1))


@every_picture
def test_statements_can_be_chosen(name: str) -> None:
    picture = table()[name]
    options = all_statements(picture["answers"]["objects"])
    assert Statement(**picture["answers"]["detect_statement"]) in options
    truth = [Statement(**statement) for statement in picture["truth"]]
    assert not truth or set(truth) & set(options)


@every_picture
def test_what_is_wrong_is_marked_as_wrong(name: str) -> None:
    picture = table()[name]
    wrong: dict[str, Any] = {
        node: false for node in ("choose_action_reasons", "end_to_end_multi") if (false := false_choices(picture, node))
    }
    if picture["answers"]["detect_statement"] not in picture["truth"]:
        wrong["detect_statement"] = True
    assert picture["wrong"] == wrong


def test_something_is_wrong_on_purpose() -> None:
    wrong = {name: set(picture["wrong"]) for name, picture in table().items()}
    assert "choose_action_reasons" in wrong["coin-horse"]
    assert {name for name, nodes in wrong.items() if "detect_statement" in nodes} == {"starry-cup", "plain-coffee"}
    assert wrong["cat-cup"] == set()


@every_picture
def test_sources_name_every_picture(name: str) -> None:
    sources = (FOLDER / "SOURCES.md").read_text(encoding="utf-8")
    assert f"`{name}`" in sources


def test_cassette_and_entries_are_made_from_the_table_and_the_prompts(tmp_path: Path) -> None:
    make = runpy.run_path(str(Path(__file__).parent.parent / "scripts" / "make_demo_cassette.py"))["main"]
    make(tmp_path / "cassette.jsonl", tmp_path / "demo.json")
    how = "run `python scripts/make_demo_cassette.py`"
    assert (tmp_path / "cassette.jsonl").read_bytes() == CASSETTE.read_bytes(), how
    assert (tmp_path / "demo.json").read_bytes() == ENTRIES.read_bytes(), how


def test_the_cassette_replays_seven_calls_a_picture() -> None:
    engine = Engine(mode="replay", records=Cassette(CASSETTE))
    chain = action_reason(get_model("demo", engine=engine), prompts=PromptLibrary([]))
    readings = chain.batch([{"image": entry.path, "options": entry.options} for entry in read_table()])
    assert [len(reading.calls) for reading in readings] == [7] * len(NAMES)
    chosen = [reading.answers.value.numbers for reading in readings if reading.answers and reading.answers.value]
    assert chosen == [tuple(picture["answers"]["choose_action_reasons"]) for picture in table().values()]


@every_picture
def test_entry(name: str) -> None:
    entry = next(entry for entry in read_table() if entry.name == name)
    picture = table()[name]
    assert entry.path.is_file()
    assert entry.title == picture["title"]
    assert entry.options == tuple(text for _, text in picture["options"])
    assert [picture["options"][number - 1][0] for number in sorted(entry.right)] == ["right"] * 3
    assert entry.statements == tuple(Statement(**statement).text for statement in picture["truth"])


@pytest.mark.parametrize(
    ("context", "node"),
    [("UH", "choose_from_unusual"), ("IN", "choose_action_reasons"), ("T_V", "choose_action_reasons")],
)
async def test_the_model_demo_chooses_by_what_it_is_told(context: Context, node: str) -> None:
    model = get_model("demo", engine=Engine(mode="live", records=MemoryStore()))
    chain = action_reason(model, context=context, prompts=PromptLibrary([]))
    inputs: list[Given] = [{"image": entry.path, "options": entry.options} for entry in read_table()]
    readings = await chain.abatch(inputs)
    chosen = [reading.answers.unwrap().numbers for reading in readings if reading.answers]
    assert chosen == [tuple(picture["answers"][node]) for picture in table().values()]


async def test_the_model_demo_answers_the_demo_in_any_order_of_options_and_nothing_else() -> None:
    entry = read_table()[0]
    model = get_model("demo", engine=Engine(mode="live", records=MemoryStore()))
    chain = action_reason(model, prompts=PromptLibrary([]))
    whole, turned = [
        await chain.ainvoke({"image": entry.path, "options": options})
        for options in (entry.options, entry.options[::-1])
    ]
    chosen = [
        [options[number - 1] for number in reading.answers.value.numbers]  # pyright: ignore[reportOptionalMemberAccess]
        for reading, options in ((whole, entry.options), (turned, entry.options[::-1]))
    ]
    assert chosen[0] == chosen[1]

    other = await objects(model).ask(Image.from_bytes(png()))
    assert other.outcome == "failed"
    assert str(other.reason).startswith(
        "The model 'demo (hand-written)' has no answer to 'objects' about this. It knows"
    )
