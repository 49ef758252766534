"""Few-shot: which rows are drawn as examples, what is refused, and what a task makes of them."""

from __future__ import annotations

import io
import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow
from typing_extensions import override

from askance.chains import ask
from askance.chains.planner import LinkPlan
from askance.errors import AskanceError, BadData, ReplayMiss, UsageError
from askance.evals import Evaluation, Sample, Scorer, Task, right_or_wrong
from askance.evals.run_plan import planning
from askance.evals.runner import run_job
from askance.evals.solver import ChainSolver, SolverLike
from askance.evals.suite import Examples, ShotFacts, ShotPool
from askance.evals.suite.shots import ShotCandidates, ShotScreen, ShotsDraw, ShotsFrom
from askance.images import Image
from askance.models import Engine, ScriptedEmbedder, ScriptedModel, cosine, get_model
from askance.nodes import Example
from askance.replay import MemoryStore

ROWS: dict[str | int, list[str]] = {
    contest: [f"{contest}.{n}" for n in range(1, contest % 4 + 2)] for contest in range(1, 31)
}
POOL = ShotPool(ROWS, fold=2, tested=range(100, 140), noun="contest")


def contest(row: str) -> int:
    return int(row.partition(".")[0])


def test_each_example_is_a_row_of_another_group() -> None:
    for key in map(str, range(200)):
        drawn = POOL.draw(key, 100, count=5, seed=0)

        assert len({contest(row) for row in drawn}) == 5
        assert all(row in ROWS[contest(row)] for row in drawn)


def test_the_draws_are_even_over_groups_and_rows() -> None:
    drawn = [POOL.draw(str(key), 100, count=5, seed=0) for key in range(3000)]
    groups = Counter(contest(row) for rows in drawn for row in rows)
    of_three = Counter(row for rows in drawn for row in rows if contest(row) == 2)

    assert min(groups.values()) > 400
    assert max(groups.values()) < 600
    assert len(of_three) == 3
    assert max(of_three.values()) < 1.5 * min(of_three.values())


@given(st.permutations(list(ROWS)), st.integers(0, 5))
def test_neither_the_order_of_the_groups_nor_other_samples_matter(order: list[int], count: int) -> None:
    pool = ShotPool({each: ROWS[each] for each in order}, fold=2)

    assert pool.draw("a", 100, count=count, seed=3) == POOL.draw("a", 100, count=5, seed=3)[:count]


def test_seed_fold_and_sample_decide() -> None:
    draws = {
        pool.draw(key, 100, count=5, seed=seed)
        for pool in (POOL, ShotPool(ROWS, fold=3))
        for key in ("a", "b")
        for seed in (0, 1)
    }

    assert len(draws) == 8


def test_what_is_drawn_stays_the_same_from_version_to_version() -> None:
    drawn = POOL.draw("21125bb8787b4e7e82aa3b0a1cba1571", 100, count=5, seed=0)

    assert drawn == ("1.2", "13.2", "28.1", "12.1", "17.1")


# --- leaks ---


def test_a_pool_with_the_samples_own_group_is_refused() -> None:
    with pytest.raises(BadData, match=r"The examples of 'a' would be drawn from its own contest 7 too\.") as caught:
        POOL.draw("a", 7, count=5, seed=0)
    assert caught.value.hint == "Draw them from the training part of the same fold."
    with pytest.raises(BadData, match="its own contest 7"):
        POOL.draw_official({"a": 100, "b": 7}, count=5)


def test_a_pool_with_a_group_of_the_test_part_is_refused() -> None:
    with pytest.raises(
        BadData, match=r"The examples of fold 2 .* test part, which holds 2 contests of them, such as 30\."
    ):
        ShotPool(ROWS, fold=2, tested=[30, 4, 31], noun="contest")


def test_what_cannot_be_drawn_is_told() -> None:
    with pytest.raises(BadData, match=r"31 examples cannot be drawn from 30 contests of fold 2\."):
        POOL.draw("a", 100, count=31, seed=0)
    with pytest.raises(BadData, match=r"The group 'b' has no rows to show\."):
        ShotPool({"a": ["x"], "b": []})


# --- the official drawing ---


def test_the_official_drawing_is_the_one_of_the_authors_script() -> None:
    samples = {f"item {n}": 100 + n % 40 for n in range(80)}

    assert POOL.draw_official(samples, count=5) == of_the_script([*samples], count=5)


def of_the_script(keys: list[str], *, count: int) -> dict[str, tuple[str, ...]]:
    """The same by NumPy's global generator, over rows and samples that are mappings, as the data has them."""
    by_contest = {each: [{"row": row} for row in rows] for each, rows in ROWS.items()}
    state: Any = np.random.get_state()
    try:
        np.random.seed(2)
        order: Any = [{"instance_id": key} for key in keys]
        contests = sorted(by_contest, key=int)
        np.random.shuffle(order)
        drawn: dict[str, tuple[str, ...]] = {}
        choose: Any = np.random.choice
        for each in order:
            places: list[Any] = [contests[place] for place in choose(len(contests), size=count, replace=False)]
            rows: list[Any] = [choose(by_contest[place]) for place in places]
            drawn[each["instance_id"]] = tuple(row["row"] for row in rows)
        return drawn
    finally:
        np.random.set_state(state)


def test_the_official_drawing_leaves_numpys_own_generator_alone() -> None:
    np.random.seed(7)
    expected = np.random.random()
    np.random.seed(7)
    POOL.draw_official({"a": 100}, count=2)

    assert np.random.random() == expected


# --- tasks ---


class Few(Task):
    """Shows examples."""

    name = "few"

    ids: list[str] | None = None
    limit: int | None = None
    examples: Examples = Examples()

    @override
    def samples(self) -> list[Sample]:
        both = [
            Sample(
                id=f"{key}{'#2' if order == 2 else ''}", inputs={"question": "?"}, group=group, tags={"order": order}
            )
            for key, group in (("a", "100"), ("b", "101"))
            for order in (1, 2)
        ]
        return self.examples.shown_before(
            both,
            POOL,
            example=lambda row: Example(values={"question": row}, answer="yes"),
            facts=lambda row: ShotFacts(id=row, group=contest(row)),
            known=lambda sample: ShotFacts(id=sample.id, group=int(sample.group)),
            seed=0,
        )

    @override
    def solver(self) -> SolverLike:
        return how_many

    @override
    def scorer(self) -> Scorer:
        return right_or_wrong()


def how_many(sample: Sample) -> int:
    return len(sample.inputs.get("examples", ()))


def shown(sample: Sample) -> list[Any]:
    return [each["values"]["question"] for each in sample.form()["inputs"]["examples"]]


def test_a_task_shows_no_examples_by_default() -> None:
    assert [sample.inputs for sample in Few().samples()] == [{"question": "?"}] * 4


@pytest.mark.parametrize("draw", ["own", "official"])
def test_both_orders_of_a_question_have_the_same_examples(draw: ShotsDraw) -> None:
    one, again, other, _ = Few(shots=3, shots_draw=draw).samples()

    assert shown(one) == shown(again) != shown(other)
    assert len(shown(one)) == 3
    drawn = POOL.draw_official({"a": 100, "b": 101}, count=3)["a"]
    assert tuple(shown(one)) == (drawn if draw == "official" else POOL.draw("a", 100, count=3, seed=0))


@pytest.mark.parametrize("part", [{"limit": 3}, {"ids": ["a"]}])
def test_the_official_drawing_needs_the_whole_split(part: dict[str, Any]) -> None:
    assert Few(shots=3, **part)
    assert Few(shots_draw="official", **part)
    with pytest.raises(UsageError, match=f"goes through the whole split, and `{next(iter(part))}` takes") as caught:
        Few(shots=3, shots_draw="official", **part)
    assert caught.value.hint


def test_the_options_are_kept_and_checked() -> None:
    assert Few(shots=5).kept()["shots"] == 5
    with pytest.raises(UsageError, match="The option 'shots' of the task 'few' cannot be -1"):
        Few(shots=-1)
    with pytest.raises(UsageError, match=r"cannot be 'mine'\. It takes one of `own`, `official`"):
        Few(shots_draw=cast("Any", "mine"))


# --- by what is like the question ---

SAID = {
    "1": (1.0, 0.0, 0.0),
    "2": (0.9, 0.4, 0.0),
    "3": (0.9, 0.4, 0.0),
    "4": (0.9, 0.0, 0.436),
    "5": (0.0, 1.0, 0.0),
    "6": (-1.0, 0.1, 0.0),
}
"""By contest, the vector of what is said of its rows."""
LABELS = {"1": "yes", "2": "yes", "3": "yes", "4": "no", "5": "no", "6": "maybe"}
ASKED = {"q": (1.0, 0.05, 0.0), "r": (0.1, 1.0, 0.0)}


def by_letters(text: str) -> tuple[float, ...]:
    return {**SAID, **ASKED}[text]


def facts_of(row: str, **more: Any) -> ShotFacts:
    return ShotFacts(id=row, group=contest(row), text=row[0], label=LABELS[row[0]], **more)


class Like(Few):
    """Shows examples that are like the question."""

    pool: ClassVar[ShotPool[str]] = ShotPool({int(each): [f"{each}.2", f"{each}.1"] for each in SAID}, noun="contest")

    @override
    def samples(self) -> list[Sample]:
        asked = [
            Sample(id=key if order == 1 else f"{key}#2", inputs={"question": "?"}, group=key, tags={"order": order})
            for key in ASKED
            for order in (1, 2)
        ]
        return self.examples.shown_before(
            asked,
            self.pool,
            example=lambda row: Example(values={"question": row}, answer="yes"),
            facts=self.facts,
            known=self.known,
            seed=0,
        )

    def facts(self, row: str) -> ShotFacts:
        return facts_of(row)

    def known(self, sample: Sample) -> ShotFacts:
        return ShotFacts(id=sample.group, group=99, text=sample.group)


def like(how: ShotsFrom, task: type[Like] = Like, engine: Engine | None = None, **options: Any) -> Like:
    given: dict[str, Any] = {"shots": 3, "embedder": ScriptedEmbedder(by_letters, identity="letters"), **options}
    return task(shots_from=how, engine=engine or Engine(records=MemoryStore()), **given)


def test_the_nearest_are_shown_the_nearest_of_all_last_and_ties_go_by_id() -> None:
    one, again, other, _ = like("knn").samples()

    assert shown(one) == shown(again) == ["3.1", "2.1", "1.1"]
    assert shown(other) == ["3.1", "2.1", "5.1"]


def test_the_trace_says_which_were_chosen_and_how() -> None:
    sample = like("knn", shots=2).samples()[0]
    cosines = [cosine(ASKED["q"], SAID[each]) for each in "21"]

    assert sample.trace["shots"] == {
        "from": "knn",
        "embedder": "letters",
        "compared": "descriptions",
        "chosen": [
            {"id": "2.1", "group": 2, "similarity": round(cosines[0], 4)},
            {"id": "1.1", "group": 1, "similarity": round(cosines[1], 4)},
        ],
    }
    assert Sample.from_form(json.loads(json.dumps(sample.form()))).trace == sample.trace
    assert Few(shots=1).samples()[0].trace["shots"]["chosen"][0].keys() == {"id", "group"}


def test_what_is_like_another_example_is_worth_less_by_marginal_relevance() -> None:
    """By hand: behind 1 and 2, contest 3 is worth .7 · .933 − .3 · 1 = .353, and 4 .7 · .899 − .3 · .9 = .359."""
    assert shown(like("mmr").samples()[0]) == ["4.1", "2.1", "1.1"]
    assert shown(like("knn").samples()[0]) == ["3.1", "2.1", "1.1"]


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_marginal_relevance_is_that_of_its_definition(seed: int, count: int) -> None:
    random = np.random.RandomState(seed)
    vectors = random.normal(size=(12, 4))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = [ShotFacts(id=f"{n:02}", group=n) for n in range(11)]
    found = ShotCandidates.of(rows, vectors[:11]).choose(
        vectors[11], how="mmr", count=count, screen=ShotScreen(question=ShotFacts(id="q", group=99), leaks="refuse")
    )

    taken: list[int] = []
    while len(taken) < count:
        worth = {
            n: 0.7 * vectors[n] @ vectors[11] - 0.3 * max((vectors[n] @ vectors[m] for m in taken), default=0.0)
            for n in range(11)
            if n not in taken
        }
        taken.append(max(worth, key=lambda n: worth[n]))
    assert {place for place, _ in found} == {*taken}


def test_labels_take_turns_and_each_gives_its_nearest() -> None:
    assert shown(like("balanced").samples()[0]) == ["6.1", "4.1", "1.1"]
    assert shown(like("balanced", shots=4).samples()[0]) == ["6.1", "4.1", "2.1", "1.1"]
    assert shown(like("balanced", shots=2).samples()[2]) == ["2.1", "5.1"]


class Words(Like):
    """Descriptions in words."""

    texts: ClassVar[Mapping[str, str]] = {
        "1": "a cup of bricks on a wooden table",
        "2": "a rocket above a table",
        "3": "a cat that sleeps on a table",
        "4": "a bricklayer and a wall of bricks",
        "5": "a horse of coins",
        "6": "the sea at night",
        "q": "a table on which stands a cup, built of bricks",
        "r": "the coin",
    }

    @override
    def facts(self, row: str) -> ShotFacts:
        return replace(facts_of(row), text=self.texts[row[0]])

    @override
    def known(self, sample: Sample) -> ShotFacts:
        return replace(super().known(sample), text=self.texts[sample.group])


def test_those_with_the_words_of_the_question_are_shown_by_bm25() -> None:
    one, again, other, _ = like("bm25", Words, embedder=None).samples()

    assert shown(one) == shown(again)
    assert shown(one)[1:] == ["4.1", "1.1"], "bricks are rarer than tables"
    assert shown(other)[-1] == "5.1", "coin and coins have one stem"
    chosen = other.trace["shots"]["chosen"]
    assert [each["id"] for each in chosen[:2]] == ["2.1", "1.1"], "without a common word they go by id"
    assert [each["similarity"] > 0 for each in chosen] == [False, False, True]
    assert (other.trace["shots"]["from"], other.trace["shots"]["compared"]) == ("bm25", "descriptions")
    task = like("bm25", Words, embedder=None)
    assert (task.kept()["shots_from"], task.evaluation().computed) == ("bm25", ())


@pytest.mark.parametrize("how", ["knn", "mmr", "balanced"])
def test_a_choice_is_the_same_again_and_replays_without_the_embedder(how: ShotsFrom) -> None:
    records = MemoryStore()
    first = like(how, engine=Engine(records=records)).samples()

    def refuse(_: str) -> Any:
        raise AssertionError("a vector on record was asked for")

    gone = ScriptedEmbedder(refuse, identity="letters")
    assert like(how, engine=Engine(records=records, mode="replay"), embedder=gone).samples() == first
    assert like(how).samples() == first
    with pytest.raises(ReplayMiss):
        like(how, engine=Engine(records=MemoryStore(), mode="replay"), embedder=gone).samples()


async def test_a_plan_counts_the_vectors_and_makes_none() -> None:
    records = MemoryStore()
    engine = Engine(records=records)
    embedder = ScriptedEmbedder(by_letters, identity="letters")
    with planning():
        planned = like("knn", engine=engine, embedder=embedder).evaluation()
    before = await _planned(planned, engine)

    made = like("knn", engine=engine, embedder=embedder).evaluation()
    after = await _planned(made, engine)

    assert (before.link, before.known, before.hits, before.computed) == ("vectors", 8, 0, True)
    assert (after.known, after.hits) == (0, 8)
    assert sum(map(len, embedder.asked)) == 8
    assert [how_many(sample) for sample in planned.samples] == [3] * 4
    with planning():
        assert like("knn", engine=engine, embedder=embedder).evaluation().samples == made.samples


async def _planned(task: Evaluation, engine: Engine) -> LinkPlan:
    model = ScriptedModel(lambda _: "1")
    chain = ask(get_model(model, engine=engine), "Which?")
    plan = await run_job(replace(task, solver=ChainSolver(chain, given=lambda _: {"image": None})), (), engine).plan()
    (line,) = [line for line in plan.links if line.link == "vectors"]
    return line


# --- leaks that only the data shows ---


def picture(color: int) -> Image:
    file = io.BytesIO()
    Pillow.new("RGB", (4, 4), (color, 0, 0)).save(file, "PNG")
    return Image.from_bytes(file.getvalue(), name=f"{color}.png")


class SamePicture(Like):
    """The nearest row has the picture of the question."""

    @override
    def facts(self, row: str) -> ShotFacts:
        return facts_of(row, picture=lambda: picture(int(row[0])))

    @override
    def known(self, sample: Sample) -> ShotFacts:
        return replace(super().known(sample), picture=lambda: picture(1))


class Pictured(SamePicture):
    """Every question and row has a picture of its own."""

    @override
    def known(self, sample: Sample) -> ShotFacts:
        return replace(super().known(sample), text="", picture=lambda: picture({"q": 30, "r": 200}[sample.group]))


def by_color(near: float) -> ScriptedEmbedder:
    """Sees pictures: that of row 1 is near that of the question q, by a cosine of `near`, and the others far off."""
    beside = math.sqrt(1 - near * near)
    vectors = {1: (near, beside, 0.0), 30: (1.0, 0.0, 0.0), 200: (0.0, 0.0, 1.0)}

    def vector(image: Image) -> tuple[float, ...]:
        color = int(image.name.removesuffix(".png"))
        return vectors.get(color, (0.1 * color, 1.0, 0.2))

    return ScriptedEmbedder(refuse_text, identity="colors", image=vector)


def refuse_text(_: str) -> Any:
    raise AssertionError("a text was embedded")


def test_an_embedder_that_sees_pictures_compares_pictures() -> None:
    embedder, engine = by_color(0.97), Engine(records=MemoryStore())
    sample = like("knn", Pictured, engine=engine, embedder=embedder).evaluation().samples[0]
    plan = like("knn", Pictured, engine=engine, embedder=embedder)

    assert sample.trace["shots"]["compared"] == "pictures"
    assert sample.trace["shots"]["chosen"][-1] == {"id": "1.1", "group": 1, "similarity": 0.97}
    assert sorted({*embedder.shown}) == sorted(f"{each}.png" for each in (1, 2, 3, 4, 5, 6, 30, 200))
    with planning():
        (needed,) = plan.evaluation().computed
    assert (len({*needed.keys}), needed.lacking) == (8, ())


@pytest.mark.parametrize("how", ["knn", "mmr", "balanced"])
def test_a_planted_near_twin_is_refused_by_name_or_left_out(how: ShotsFrom) -> None:
    embedder = by_color(0.98)
    with pytest.raises(BadData, match=r"'1\.1', which has a near-twin of its picture \(cosine 0\.980, above 0\.97"):
        like(how, Pictured, embedder=embedder).samples()

    told = like(how, Pictured, embedder=embedder, shots_leaks="leave-out").samples()[0].trace["shots"]
    assert {each["id"] for each in told["left_out"]} == {"1.1", "1.2"}
    assert 1 not in {each["group"] for each in told["chosen"]}


def test_a_question_without_a_picture_is_named() -> None:
    with pytest.raises(BadData, match=r"'colors' cannot compare '1\.1' with other questions: it has no picture"):
        like("knn", embedder=by_color(0.5)).samples()


class SameWords(Like):
    """A row is described as the question is, but for blanks, case, punctuation, and characters that are not seen."""

    @override
    def facts(self, row: str) -> ShotFacts:
        found = facts_of(row)
        return replace(found, text=" \u200bQ.") if row[0] == "1" else found


class OwnGroup(Like):
    """The question's own group is in the pool."""

    @override
    def known(self, sample: Sample) -> ShotFacts:
        return replace(super().known(sample), group=4)


def folded(text: str) -> tuple[float, ...]:
    return by_letters(text.strip(" \u200b.").lower())


@pytest.mark.parametrize("how", ["bm25", "knn", "mmr", "balanced"])
@pytest.mark.parametrize(("task", "why"), [(SamePicture, "the same picture"), (SameWords, "the same description")])
def test_a_planted_leak_is_refused_by_name_or_left_out(how: ShotsFrom, task: type[Like], why: str) -> None:
    embedder = ScriptedEmbedder(folded, identity="folded")
    with pytest.raises(BadData, match=f"The question 'q' would be shown the example '1.1', which has {why}") as caught:
        like(how, task, embedder=embedder).samples()
    assert "-T shots_leaks=leave-out" in str(caught.value.hint)

    found = like(how, task, embedder=embedder, shots_leaks="leave-out").evaluation()
    told = found.samples[0].trace["shots"]
    assert {each["id"] for each in told["left_out"]} == {"1.1", "1.2"}
    assert {each["why"] for each in told["left_out"]} == {why}
    assert not {"1.1", "1.2"} & {*shown(found.samples[0])}
    assert any("left out, which would give the answer away" in note for note in found.notes)


@pytest.mark.parametrize("draw", ["own", "official"])
def test_a_planted_leak_is_refused_in_a_random_drawing_too(draw: ShotsDraw) -> None:
    with pytest.raises(BadData, match="which has the same picture"):
        like("random", SamePicture, embedder=None, shots=6, shots_draw=draw).samples()


@pytest.mark.parametrize("how", ["random", "bm25", "knn", "mmr", "balanced"])
def test_a_row_of_the_questions_own_group_is_refused(how: ShotsFrom) -> None:
    given = {"embedder": None} if how == "random" else {}
    with pytest.raises(BadData, match="its own contest 4"):
        like(how, OwnGroup, **given).samples()


class Silent(Like):
    """Nothing is said of the pictures of the pool."""

    @override
    def facts(self, row: str) -> ShotFacts:
        return replace(facts_of(row), text=" ", label="")


@pytest.mark.parametrize(
    ("how", "task", "options", "message"),
    [
        ("knn", Silent, {}, "cannot compare '1.1' with other questions: nothing is said of its picture"),
        ("bm25", Silent, {}, "cannot compare '1.1' with other questions: nothing is said of its picture"),
        ("bm25", Like, {"shots": 7}, "7 examples cannot be drawn from 6 contests"),
        ("balanced", Silent, {}, "the answer of '1.1' has no label"),
        ("knn", Like, {"shots": 7}, "7 examples cannot be drawn from 6 contests"),
        ("knn", SamePicture, {"shots": 6, "shots_leaks": "leave-out"}, "6 examples cannot be drawn from 5 contests"),
        ("random", SamePicture, {"shots": 6, "shots_leaks": "leave-out", "embedder": None}, "from 5 contests"),
        ("knn", Like, {"embedder": None}, "which `shots_from=knn` needs"),
        ("knn", Like, {"shots_draw": "official"}, "The official drawing is one at random"),
    ],
)
def test_what_cannot_be_chosen_is_refused(
    how: ShotsFrom, task: type[Like], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(AskanceError, match=re.escape(message)) as caught:
        like(how, task, **options).samples()
    assert caught.value.hint


def test_how_examples_were_chosen_is_kept_with_a_run() -> None:
    kept = like("mmr", shots_leaks="leave-out").kept()

    assert kept["embedder"] == {"model": {"name": "letters"}}
    assert (kept["shots"], kept["shots_from"], kept["shots_leaks"]) == (3, "mmr", "leave-out")
    assert not {name for name in Few().kept() if name.startswith("shots") or name == "embedder"}
