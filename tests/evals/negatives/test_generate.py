from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatResponse
from askance.errors import StoreError, UsageError
from askance.evals.negatives import HardNegative, Recipe, TrueStatements, agenerate, generate, read_negatives
from askance.evals.suite import read_qa
from askance.replay import MemoryStore, read_cassette
from tests.evals.negatives.samples import SOURCES, negative, writer
from tests.scripted import model_of


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


BOTH = Recipe(kinds=("action", "reason"))
NAME = "{}_hard_QA_Combined_Action_Reason_train.json"


async def test_files_are_in_the_authors_shape(out: Path) -> None:
    written = await agenerate(SOURCES, model_of(writer()), out=out, recipe=BOTH)

    assert (written.total, written.done, written.negatives, written.left) == (6, 6, 6, 0)
    assert written.complete
    assert written.files == {NAME.format(kind): 2 for kind in ("action", "reason", "large_combined")}
    content = json.loads((out / NAME.format("action")).read_text("utf-8"))
    true, options = content["0/10.jpg"]
    assert true == [*SOURCES[0].true]
    assert sorted(options) == sorted([*true, *(negative("action", text) for text in true)])
    assert read_qa(out / NAME.format("large_combined")).option_counts == {3: 1, 6: 1}
    assert read_qa(out / NAME.format("action")).hard == "action"


async def test_the_sidecar_says_where_each_negative_comes_from(out: Path) -> None:
    await agenerate(SOURCES[1:], model_of(writer()), out=out, recipe=BOTH)

    (options,) = read_negatives(out / NAME.format("reason"))
    (found,) = options.negatives
    (record,) = (each for each in read_cassette(out / "calls.jsonl") if each.key in found.calls)
    assert found == HardNegative(
        key="1/21.jpg",
        text="I should fly Because it is fast reasonwise",
        kind="reason",
        source="I should fly Because it is fast",
        replaced="",
        replacement="reasonwise",
        calls=(record.key,),
    )


async def test_the_order_is_the_seeds_alone(out: Path) -> None:
    def content(folder: Path) -> dict[str, str]:
        return {path.name: path.read_text("utf-8") for path in folder.glob("*_hard_QA*")}

    for name, seed, concurrency in (("one", 0, 1), ("two", 0, 8), ("three", 5, 8)):
        model = model_of(writer(), concurrency=concurrency)
        await agenerate(SOURCES, model, out=out / name, recipe=replace(BOTH, seed=seed))

    assert content(out / "one") == content(out / "two") != content(out / "three")


async def test_what_was_begun_is_finished_and_nothing_is_asked_twice(out: Path) -> None:
    first = writer(reason=ChatResponse(refusal="no"))
    begun = await agenerate(SOURCES, model_of(first), out=out, recipe=BOTH)
    second = writer()
    done = await agenerate(SOURCES, model_of(second), out=out, recipe=BOTH)

    assert (dict(begun.outcomes), begun.negatives) == ({"answered": 3, "refused": 3}, 3)
    assert begun.files[NAME.format("reason")] == 0
    assert (dict(done.outcomes), done.negatives) == ({"answered": 6}, 6)
    assert len(second.requests) == 3


async def test_halves_make_the_whole(out: Path) -> None:
    records = MemoryStore()
    await agenerate(SOURCES, model_of(writer(), records), out=out / "whole", recipe=BOTH)
    stopped = out / "halves"
    await agenerate(SOURCES, model_of(writer(), records), out=stopped, recipe=BOTH)
    lines = (stopped / "samples.jsonl").read_text("utf-8").splitlines(keepends=True)
    (stopped / "samples.jsonl").write_text("".join(lines[:2]) + lines[2][:40], "utf-8")
    silent = writer(action=UsageError("asked"), reason=UsageError("asked"))
    await agenerate(SOURCES, model_of(silent, records), out=stopped, recipe=BOTH)

    for path in (out / "whole").glob("*.json*"):
        if path.name != "run.json":
            assert (stopped / path.name).read_text("utf-8") == path.read_text("utf-8")


async def test_a_repeated_statement_is_invalid_and_left_out(out: Path) -> None:
    same = json.dumps(
        {"negatives": [{"replaced": "", "replacement": "", "statement": "i should FLY because it is fast."}]}
    )
    written = await agenerate(SOURCES[1:], model_of(writer(action=same)), out=out, recipe=BOTH)
    lines = [json.loads(line) for line in (out / "samples.jsonl").read_text("utf-8").splitlines()]

    assert dict(written.outcomes) == {"invalid": 1, "answered": 1}
    assert [(line["kind"], line["outcome"], line["raw"]) for line in lines] == [
        ("action", "invalid", same),
        ("reason", "answered", None),
    ]


async def test_a_fourth_true_statement_is_shown_to_nobody_and_no_negative(out: Path) -> None:
    fourth = "I should drink tea because it is hot actionwise"
    source = TrueStatements(key="0/10.jpg", true=("I should drink tea because it is hot", "b", "c", fourth))
    written = await agenerate([source], model_of(writer()), out=out, recipe=replace(BOTH, kinds=("action",)))

    assert dict(written.outcomes) == {"invalid": 1, "answered": 2}
    true, options = json.loads((out / NAME.format("action")).read_text("utf-8"))["0/10.jpg"]
    assert (len(true), len(options), fourth in options) == (3, 5, False)


async def test_another_draw_is_asked_anew(out: Path) -> None:
    records = MemoryStore()
    for draw in (0, 1):
        script = writer()
        recipe = Recipe(kinds=("action",), draw=draw)
        await agenerate(SOURCES, model_of(script, records), out=out / str(draw), recipe=recipe)
        assert len(script.requests) == 3


def explained(count: int) -> list[TrueStatements]:
    return [TrueStatements(key=str(place), true=(f"Reason {place}", f"Cause {place}")) for place in range(count)]


def test_random_explanations_ask_nobody(out: Path) -> None:
    sources = explained(6)
    recipe = Recipe(domain="explanations", kinds=("random",), seed=3)
    written = generate(sources, None, out=out, recipe=recipe)
    file = out / "random_hard_QA_Explanation.json"
    drawn = {each.key: [negative.text for negative in each.negatives] for each in read_negatives(file)}

    assert written.complete
    assert {key: len({*texts}) for key, texts in drawn.items()} == {str(place): 2 for place in range(6)}
    assert not any(text.endswith(key) for key, texts in drawn.items() for text in texts)


def test_where_there_is_nothing_to_draw_from_it_is_said(out: Path) -> None:
    recipe = Recipe(domain="explanations", kinds=("random",))
    written = generate(explained(1), None, out=out, recipe=recipe)

    assert dict(written.outcomes) == {"skipped": 2}


@pytest.mark.parametrize(
    ("sources", "options", "message"),
    [
        ((), {}, "There are no true statements"),
        (SOURCES, {"llm": None}, "No model is named that writes the negatives"),
    ],
    ids=["no sources", "no model"],
)
def test_what_cannot_be_written_is_said_at_once(
    out: Path, sources: tuple[TrueStatements, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        generate(sources, **{"llm": model_of(writer()), **options}, out=out)


def test_a_folder_of_another_recipe_is_left_alone(out: Path) -> None:
    generate(SOURCES, model_of(writer()), out=out, recipe=BOTH)

    with pytest.raises(UsageError, match="another configuration"):
        generate(SOURCES, model_of(writer()), out=out, recipe=replace(BOTH, count=2))


def test_a_folder_that_is_being_written_is_left_alone(out: Path) -> None:
    from askance.evals import RunFolder

    other = RunFolder(out, {})
    with pytest.raises(StoreError, match="Another process"):
        generate(SOURCES, model_of(writer()), out=out)
    other.close()


def test_a_recipe_takes_all_kinds_of_its_domain_and_no_others() -> None:
    assert Recipe().kinds == ("action", "reason", "adjective", "object", "statement")
    with pytest.raises(UsageError, match="'verb' is no kind of negative for ads"):
        Recipe(kinds=("verb",))
    with pytest.raises(UsageError, match="At least one negative"):
        Recipe(most=0)
