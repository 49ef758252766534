from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from askance.atypicality import Relation, Statement
from askance.errors import BadData, UsageError
from askance.evals import Run, aevaluate
from askance.evals.analysis.rescore import rescored
from askance.evals.pittads.aor import Aor, asked_relation
from askance.evals.pittads.dataset import Ad
from askance.models import ScriptedEmbedder
from askance.replay import MemoryStore
from tests.evals.pittads.files import key_of, record, release_b, row, write, write_csv
from tests.scripted import PICTURES, model_of, scripted

ONE, TWO, THREE = map(key_of, (11, 12, 13))

TRUE = {
    ONE: [Statement("TR1", "bottle", "feather"), Statement("TR1", "beer", "feather")],
    TWO: [Statement("OIO", "cat", "tea cup")],
    THREE: [Statement("OR", "chips", "fire")],
}
FILLED: dict[Relation, tuple[str, str]] = {
    "TR1": ("beer glass", "down"),
    "OIO": ("tea", "cat"),
    "OR": ("chips", "fire"),
}
VECTORS = {
    Statement("TR1", "beer glass", "down").text: (1.0, 0.0),
    TRUE[ONE][0].text: (0.28, 0.96),
    TRUE[ONE][1].text: (0.8, 0.6),
    Statement("OIO", "tea", "cat").text: (0.0, 2.0),
    TRUE[TWO][0].text: (4.0, 3.0),
    TRUE[THREE][0].text: (0.5, 0.5),
}
"""By hand: image 1 has similarities 0.28 and 0.8, image 2 has 0.6, image 3 says what is true and has 1."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three ads with pictures: two annotators agree on the first's relation and a third sees another one."""
    folder = tmp_path / "pittads"
    release_b(folder, {key: record(key) for key in TRUE})
    write_csv(
        folder / "final_csv.csv",
        [
            *(row(ONE, "8", "bottle", "lamp"), row(ONE, "1", "bottle", "feather"), row(ONE, "1", "beer", "feather")),
            *(row(TWO, "3", "cat", "tea cup"), row(TWO, "Regular_Object", "", "")),
            row(THREE, "8", "chips", "fire"),
        ],
    )
    for key, name in {ONE: "brick-cup", TWO: "coin-horse", THREE: "brick-cup"}.items():
        # One byte more makes another picture of it.
        write(folder / "train_images" / key, (PICTURES / f"{name}.jpg").read_bytes() + key.encode())
    return folder


def relation_in(request: Any) -> Relation:
    text = "".join(message.text for message in request.messages)
    return next(relation for relation in FILLED if Statement(relation, "<object1>", "<object2>").text in text)


def answer(request: Any) -> dict[str, str]:
    primary, secondary = FILLED[relation_in(request)]
    return {"primary": primary, "secondary": secondary}


def embedder() -> ScriptedEmbedder:
    return ScriptedEmbedder(VECTORS.__getitem__, identity="by hand")


async def run_of(data: Path, records: MemoryStore | None = None, *, reply: Any = answer, **options: Any) -> Run:
    model = model_of(scripted(fill_from_picture=reply, fill_statement=reply), records)
    asked: dict[str, Any] = {"embedder": embedder(), **options}
    return await aevaluate(Aor(data=data, vlm=model, **asked), out=data.parent / "run")


async def test_every_figure_is_that_worked_out_by_hand(data: Path) -> None:
    run = await run_of(data)

    assert {figure.metric: figure.value for figure in run.figures} == {
        "similarity": pytest.approx((0.8 + 0.6 + 1) / 3),
        "> 0.7": pytest.approx(2 / 3),
        "> 0.6": pytest.approx(2 / 3),
        "> 0.5": 1,
        "mean similarity": pytest.approx(((0.28 + 0.8) / 2 + 0.6 + 1) / 3),
        "mean > 0.7": pytest.approx(1 / 3),
        "mean > 0.6": pytest.approx(1 / 3),
        "mean > 0.5": 1,
    }
    assert [answer.prediction.value for answer in run.answers] == [
        Statement("TR1", "beer glass", "down").canonical(),
        Statement("OIO", "tea", "cat").canonical(),
        Statement("OR", "chips", "fire").canonical(),
    ]
    nearest = [answer.score.notes["nearest"] for answer in run.answers if answer.score]
    assert nearest == [TRUE[ONE][1].text, TRUE[TWO][0].text, TRUE[THREE][0].text]


async def test_a_share_counts_what_is_above_and_not_what_is_there(data: Path) -> None:
    run = await run_of(data)

    # The similarity of image 2 is 0.6, as far as 32 bits say it.
    (second,) = (answer.score for answer in run.answers if answer.sample.id == TWO)
    assert second is not None
    assert second.values["> 0.6"] == float(second.values["similarity"] > 0.6)
    assert second.values["similarity"] == pytest.approx(0.6)


async def test_non_answers_are_counted_and_bounded(data: Path) -> None:
    def reply(request: Any) -> Any:
        return "I cannot tell." if relation_in(request) == "OR" else answer(request)

    run = await run_of(data, reply=reply)

    figure = run.figure("similarity")
    assert (figure.samples, figure.answered) == (3, 2)
    assert [figure.value, figure.among_answered, figure.if_wrong, figure.if_right] == pytest.approx(
        [1.4 / 3, 1.4 / 2, 1.4 / 3, 2.4 / 3]
    )
    assert [answer.prediction.outcome for answer in run.answers] == ["answered", "answered", "invalid"]


async def test_a_run_is_scored_again_from_its_folder_alone(data: Path) -> None:
    run = await run_of(data)

    answers, figures = await rescored(Run.open(run.path), Aor)

    assert figures == run.figures
    assert [answer.score for answer in answers] == [answer.score for answer in run.answers]
    kept = {record.key for record in run.records if record.kind == "embed"}
    used = {key for answer in answers if answer.score for key in answer.score.calls}
    assert kept == used
    assert len(kept) == 6


async def test_each_relation_may_be_a_sample(data: Path) -> None:
    vectors = {**VECTORS, Statement("OR", "bottle", "lamp").text: (0.5, -0.5)}
    by_hand = ScriptedEmbedder(vectors.__getitem__, identity="by hand")

    run = await run_of(data, per="relation", embedder=by_hand)

    assert [answer.sample.id for answer in run.answers] == [f"{ONE}#OR", f"{ONE}#TR1", f"{TWO}#OIO", f"{THREE}#OR"]
    assert [answer.sample.cluster for answer in run.answers] == [ONE, ONE, TWO, THREE]
    assert run.figure("similarity").value == pytest.approx((0 + 0.8 + 0.6 + 1) / 4)


async def test_a_description_may_stand_for_the_picture(data: Path) -> None:
    script = scripted(fill_statement=answer)
    model = model_of(script)

    run = await aevaluate(Aor(data=data, vlm=model, context="IN", embedder=embedder()), out=data.parent / "run")

    assert run.figure("similarity").value == pytest.approx((0.8 + 0.6 + 1) / 3)
    asked = [request for request in script.requests if not request.images]
    assert (len(asked), len(script.requests)) == (3, 6)
    assert "A cup on a table." in asked[0].messages[-1].text


async def test_a_replay_asks_neither_model_nor_embedder(data: Path) -> None:
    records = MemoryStore()
    live = await run_of(data, records)
    script, silent = scripted(), ScriptedEmbedder(VECTORS.__getitem__, identity="by hand")
    model = model_of(script, records, mode="replay")

    replayed = await aevaluate(Aor(data=data, vlm=model, embedder=silent), out=data.parent / "replay")

    assert replayed.figures == live.figures
    assert (script.requests, silent.asked) == ([], [])


async def test_the_answer_that_is_true_gets_the_most_there_is(data: Path) -> None:
    def true(request: Any) -> dict[str, str]:
        relation = relation_in(request)
        (statement, *_) = next(true for true in TRUE.values() if true[0].relation == relation)
        return {"primary": statement.primary, "secondary": statement.secondary}

    run = await run_of(data, reply=true)

    assert [run.figure(name).value for name in ("similarity", "> 0.7")] == [pytest.approx(1), 1]
    assert run.figure("mean similarity").value == pytest.approx(((1 + 0.8) / 2 + 2) / 3)


ASKED: dict[str, tuple[Relation | None, tuple[Relation, ...], Relation]] = {
    "most annotators": ("TR1", ("OR", "TR1"), "TR1"),
    "a tie": (None, ("OR", "TR1"), "OR"),
    "most annotators, without usable objects": ("TR2", ("OR", "TR1"), "OR"),
}


@pytest.mark.parametrize(("plurality", "stated", "asked"), ASKED.values(), ids=ASKED)
def test_the_relation_that_is_asked_about(
    plurality: Relation | None, stated: tuple[Relation, ...], asked: Relation
) -> None:
    statements = tuple(Statement(relation, "cup", "brick") for relation in stated)

    assert asked_relation(Ad(id="1/1.jpg", plurality=plurality, statements=statements)) == asked


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"context": "I+T_V"}, "The task 'pittads/aor' has no context 'I+T_V'."),
        ({"context": "T_V+s_IN"}, "The task 'pittads/aor' has no context 'T_V+s_IN'."),
        (
            {"per": "ad"},
            "The option 'per' of the task 'pittads/aor' cannot be 'ad'. It takes one of `image`, `relation`.",
        ),
        ({"embedder": "nobody:x"}, "'nobody:x' names no embedder."),
    ],
    ids=["picture and description", "statement", "per", "embedder"],
)
def test_what_cannot_be_is_said_at_once(data: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Aor(data=data, vlm=model_of(scripted()), **dict[str, Any]({"embedder": embedder(), **options})).evaluation()
    assert str(caught.value).startswith(message)


def test_a_picture_needs_a_model_that_sees(data: Path) -> None:
    with pytest.raises(UsageError, match=r"^The context 'I' shows the picture\. Give a `vlm`\.$"):
        Aor(data=data, llm=model_of(scripted()), embedder=embedder()).evaluation()


def test_data_without_statements_is_refused(data: Path) -> None:
    write_csv(data / "final_csv.csv", [row(ONE, "3", "", ""), row(TWO, "3", "x", "y")])

    with pytest.raises(BadData):
        Aor(data=data, vlm=model_of(scripted()), embedder=embedder(), which="labelled").evaluation()


def test_the_default_is_the_papers_encoder_and_is_not_loaded(data: Path) -> None:
    task = Aor(data=data, vlm=model_of(scripted()))

    assert task.kept()["embedder"] == {
        "model": {"provider": "st", "model": "sentence-transformers/all-mpnet-base-v2@main"},
        "pooling": "mean",
        "normalized": True,
    }
