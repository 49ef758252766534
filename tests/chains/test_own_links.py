"""A chain with links of its own goes wherever the chains that ship go: runs, plans, batches, lines, tasks, blame."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from jsonschema import Draft202012Validator
from pydantic import Field

from askance.agents import Verbalizations, combine
from askance.chains import (
    DESCRIPTION,
    STATEMENT,
    Chain,
    Link,
    Reading,
    Step,
    output_line,
    picture,
    plan,
    verbalize,
)
from askance.chains.batch_passes import read_in_batches
from askance.chains.output_line import link_values
from askance.cli.blame import blame_parts
from askance.cli.columns import text_of
from askance.cli.display import card_text
from askance.errors import BadData, UsageError
from askance.evals import Run, aevaluate, compare, find_task, rescore
from askance.evals.analysis.blame import ablame
from askance.evals.analysis.trial import from_run, from_truth
from askance.evals.controls import controlled
from askance.evals.report import build_report, report_page
from askance.evals.report.samples import detail_of
from askance.models import Engine, Model, get_model
from askance.replay import MemoryStore, open_records
from askance.tools import caption, narration, unusual
from tests.batch_client import QUICK, answer, lines_of
from tests.batch_server import BatchServer
from tests.cli.command import draw
from tests.distributions import install
from tests.scripted import PICTURE, model_of, name_of, scripted


@dataclass(frozen=True)
class Clue:
    text: str
    sure: bool = False

    def __post_init__(self) -> None:
        if not self.text:
            raise ValueError("a clue has words")


def read_clue(said: Any) -> Clue:
    return Clue(**said) if isinstance(said, dict) else Clue(text=str(said))  # pyright: ignore[reportUnknownArgumentType]


SCENE = Link("scene", str, label="where it is", short="S")
CLUE = Link("clue", Clue, read=read_clue, label="what stands out", short="C")
INFERENCE = Link("inference", str, typical_bytes=700)


def both(reading: Reading) -> Verbalizations:
    clue = reading.get(CLUE)
    said = None if clue is None or clue.value is None else clue.value.text
    return Verbalizations(narration=reading.require(SCENE), unusual=said)


def surprise(
    vlm: Any,
    llm: Any = None,
    *,
    scene: Annotated[Literal["caption", "narration"], Field(description="Which tool sees the scene.")] = "caption",
    prompts: Any = None,
    target: Link[str] = INFERENCE,
) -> Chain:
    """The steps stand in another order than that in which they are asked."""
    see = get_model(vlm)
    tool = caption if scene == "caption" else narration
    return Chain(
        "surprise",
        target=target,
        steps=[
            Step(link=target, node=combine(llm or see, prompts=prompts), needs=(SCENE, CLUE), subject=both),
            Step(link=SCENE, node=tool(see, prompts=prompts), subject=picture),
            Step(link=CLUE, node=unusual(see, prompts=prompts), subject=picture),
        ],
        mode=see.mode,
    )


@pytest.fixture
def installed(own_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that brings the chain."""
    there = own_place / "installed"
    chains = {
        "surprise": "tests.chains.test_own_links:surprise",
        "broken": "tests.nowhere:chain",
        "faulty": "faulty_chain:chain",
    }
    install(there, "surprise", {"askance.chains": chains}, {"faulty_chain": "1 / 0\n"})
    monkeypatch.setattr(sys, "path", [*sys.path, str(there)])


# --- read ---


async def test_links_are_asked_after_those_that_they_need_and_read_as_their_types() -> None:
    script = scripted()
    chain = surprise(model_of(script))

    reading = await chain.ainvoke(PICTURE)

    assert [step.link for step in chain.steps] == [SCENE, CLUE, INFERENCE]
    assert [name_of(request) for request in script.requests][2:] == ["combine"]
    assert [*reading.links] == ["scene", "clue", "inference"]
    assert reading.require(CLUE) == Clue("The cup is made of bricks.")
    assert (reading["scene"].value, reading.outcome) == ("A cup of bricks.", "answered")
    assert (reading.statement, reading.objects) == (None, None)


@pytest.mark.parametrize("clue", ["Wet shoes.", {"text": "Wet shoes.", "sure": True}, Clue("Wet shoes.")])
async def test_a_link_of_ones_own_may_be_given(clue: Any) -> None:
    script = scripted()

    reading = await surprise(model_of(script)).ainvoke({"image": PICTURE, "clue": clue, "narration": "Words."})

    assert sorted(name_of(request) for request in script.requests) == ["caption", "combine"]
    assert "Wet shoes." in script.requests[-1].messages[-1].text
    assert (reading["clue"].given, reading.require(CLUE).text) == (True, "Wet shoes.")


async def test_what_a_chain_does_not_know_or_cannot_hold_is_refused() -> None:
    chain = surprise(model_of(scripted()))

    with pytest.raises(UsageError, match=r"'place' is no part of a reading\..* reply, scene, clue, inference\."):
        await chain.ainvoke({"image": PICTURE, "place": "A street."})
    with pytest.raises(UsageError, match=r"'' cannot stand for the link 'clue'\. a clue has words"):
        await chain.ainvoke({"image": PICTURE, "clue": ""})


def silent(_: object) -> str:
    return ""


async def test_a_node_whose_answer_the_link_cannot_hold_is_the_outcome_of_its_picture() -> None:
    chain = surprise(model_of(scripted())).with_nodes(clue=silent)

    reading = await chain.ainvoke(PICTURE)

    assert (reading["clue"].outcome, reading["inference"].outcome) == ("failed", "skipped")
    assert "cannot stand for the link 'clue'" in str(reading.reason)


async def test_a_reading_brings_its_links_to_the_next_chain() -> None:
    script = scripted()
    reading = await (surprise(model_of(script)) | verbalize(model_of(script), context="IN")).ainvoke(PICTURE)

    assert [*reading.links] == ["narration", "description", "scene", "clue", "inference"]
    assert reading.to_dict()["links"]["clue"]["value"] == {"text": "The cup is made of bricks.", "sure": False}
    assert (reading.target, reading.outcome) == (DESCRIPTION, "answered")


def nothing(_: Any) -> Any:
    raise AssertionError


BAD: dict[str, tuple[Sequence[Step], str]] = {
    "a ring": (
        [Step(link=SCENE, node=nothing, needs=(CLUE,), subject=picture),
         Step(link=CLUE, node=nothing, needs=(SCENE,), subject=picture)],
        "The links 'clue' and 'scene' need each other",
    ),
    "two of a name": (
        [Step(link=Link("statement", str), node=nothing, subject=picture)],
        "There are two links 'statement' that are declared otherwise",
    ),
    "no identifier": ([Step(link=Link("a clue", str), node=nothing, subject=picture)], "'a clue' cannot be the name"),
    "taken": ([Step(link=Link("options", str), node=nothing, subject=picture)], "'options' cannot be the name"),
}  # fmt: skip


@pytest.mark.parametrize(("steps", "message"), BAD.values(), ids=BAD)
def test_links_that_cannot_be_wired_are_refused(steps: Sequence[Step], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Chain("bad", target=INFERENCE, steps=steps)


# --- lines, cards, plans, batches ---


async def test_a_line_has_the_values_of_own_links_where_their_outcomes_are() -> None:
    made = (await surprise(model_of(scripted())).ainvoke(PICTURE)).to_dict()
    schema = json.loads((Path(output_line.__file__).parent / output_line.SCHEMA).read_text(encoding="utf-8"))

    valid: Any = Draft202012Validator(schema)
    valid.validate(made)
    assert made["links"]["clue"]["value"] == {"text": "The cup is made of bricks.", "sure": False}
    assert link_values(made) == {
        "scene": "A cup of bricks.",
        "clue": {"text": "The cup is made of bricks.", "sure": False},
        "inference": "A cup made of bricks, with a slogan.",
    }
    rows = """
  scene       A cup of bricks.
  clue        text: The cup is made of bricks.
              sure: false
"""
    assert rows in card_text(made, None)


async def test_a_plan_counts_own_links_and_says_how_long_their_texts_are() -> None:
    chain = surprise(model_of(scripted()))

    planned = await plan(chain, [PICTURE])

    assert [(each.link, each.known, each.dependent) for each in planned.links] == [
        ("scene", 1, 0),
        ("clue", 1, 0),
        ("inference", 0, 1),
    ]
    longer = surprise(model_of(scripted()), target=Link("inference", str, typical_bytes=7000))
    assert (await plan(longer, [PICTURE])).input.expected > planned.input.expected + 1000


async def test_batches_give_the_lines_of_an_online_run(tmp_path: Path) -> None:
    with BatchServer(tmp_path / "endpoint", answer=answer) as server:
        found: list[Any] = []
        for place in ("online", "batched"):
            engine = Engine(records=open_records(tmp_path / place))
            chain = surprise(get_model(f"openai:gpt-4o@{server.url}", engine=engine))
            readings = (
                chain.read_all([PICTURE])
                if place == "online"
                else read_in_batches(chain, [PICTURE], folder=tmp_path / "batches", policy=QUICK)
            )
            found.append(await lines_of(chain, engine, readings))
        assert len(server.batches) == 2

    assert found[0] == found[1]
    assert found[0][0]["links"]["inference"]["value"].startswith("A cup made of bricks")


# --- tasks, reports, blame ---

TASK = "name: rooms\nchain: surprise\ndata: rooms.jsonl\nscore: exact\n"


def write(*rows: dict[str, Any], text: str = TASK) -> str:
    draw(Path(), *(row["image"] for row in rows if "image" in row))
    Path("rooms.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    Path("rooms.yaml").write_text(text, encoding="utf-8")
    return "rooms.yaml"


def by_clue(clues: dict[str, str]) -> Model:
    """Says what the clue of each picture is, and infers `right` from a clue that is."""

    def infer(request: Any) -> dict[str, str]:
        return {"description": "right" if "good" in request.messages[-1].text else "wrong"}

    def clue(request: Any) -> dict[str, str]:
        (image,) = request.images
        return {"unusual": clues[image.shown.image.sha256]}

    return model_of(scripted(unusual=clue, combine=infer), MemoryStore())


def clues_of(task: str, *said: str) -> dict[str, str]:
    samples = find_task(task)(vlm=model_of(scripted())).samples()
    return {sample.image.sha256: clue for sample, clue in zip(samples, said, strict=True) if sample.image}


@pytest.mark.usefixtures("installed")
async def test_a_yaml_task_is_run_scored_again_blamed_compared_and_reported() -> None:
    name = write({"image": "a.png", "target": "right", "tags": {"clue": "good"}}, {"image": "b.png", "target": "right"})
    task = find_task(name)
    bad, good = (by_clue(clues_of(name, first, "good")) for first in ("bad", "good"))

    wrong, right = [await aevaluate(task(vlm=model), out=out) for model, out in ((bad, "bad"), (good, "good"))]
    again = await rescore(wrong, task, reread=True)
    by_run, by_truth = [
        await ablame(wrong, task, engine=bad.engine, models={"vlm": bad}, replacement=how, links=["C"])
        for how in (from_run(right), from_truth())
    ]
    dropped = await ablame(wrong, task, engine=bad.engine, models={"vlm": bad})
    detail = detail_of(Run.open("bad").answers[0])

    assert (wrong.figure("accuracy").value, right.figure("accuracy").value) == (0.5, 1.0)
    assert (again.changed, again.kept) == ((), ())
    assert [trial.flips for trial in (*by_run.trials, *by_truth.trials)] == [True, True]
    assert [each.link for each in dropped.sums] == ["scene", "clue", "none"]
    assert "a.png: C" in text_of(blame_parts(by_run))
    assert compare(wrong, right).metrics[0].comparison.difference == -0.5
    assert wrong.columns()["link.scene"] == ["A cup of bricks.", "A cup of bricks."]
    assert detail["verbalization"] == {
        "scene": "A cup of bricks.",
        "clue": {"text": "bad", "sure": False},
        "inference": "wrong",
    }
    assert "wrong answers" in report_page(build_report([Run.open("bad")]))


@pytest.mark.usefixtures("installed")
def test_a_row_may_bring_own_links_and_a_control_drops_them() -> None:
    name = write({"image": "a.png", "target": "x", "clue": "Given."}, {"image": "b.png", "target": "x"})
    made = find_task(name)(vlm=model_of(scripted()))

    assert [sample.inputs for sample in made.samples()] == [{"clue": "Given."}, {}]
    assert [sample.inputs for sample in controlled(made.evaluation(), "swapped-image").samples] == [{}, {}]
    with pytest.raises(BadData, match=r"rooms\.jsonl', line 1: '' cannot stand for the link 'clue'\."):
        find_task(write({"image": "a.png", "target": "x", "clue": ""}))(vlm=model_of(scripted())).samples()


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TASK.replace("exact", "choice"), "`choice` does not score what the chain `surprise` gives"),
        (TASK + "context: IN\n", "the chain `surprise` takes no `context`"),
        (
            TASK.replace("surprise", "broken"),
            "The chain 'broken' of the package 'surprise' cannot be loaded from 'tests.nowhere:chain'",
        ),
        (TASK.replace("surprise", "faulty"), "'faulty_chain:chain': ZeroDivisionError: division by zero"),
        (TASK.replace("surprise", "riddle"), "or a chain that an installed package brings, not 'riddle'"),
    ],
    ids=["scoring", "key", "broken", "faulty", "unknown"],
)
def test_a_task_that_an_installed_chain_does_not_fit_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_task(write({"image": "a.png", "target": "x"}, text=text))(vlm=model_of(scripted())).evaluation()


def test_a_paper_s_link_stays_what_it_is() -> None:
    chain = surprise(model_of(scripted()))

    assert chain.links["statement"] is STATEMENT
    assert [*chain.links][-3:] == ["scene", "clue", "inference"]
