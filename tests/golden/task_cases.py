"""Which options the packaged tasks are made with: each at each of its values, and those that interact two by two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from askance.evals.task import Task

Options = Mapping[str, Any]
"""Options of a task. A text that begins with `@` names something of the suite's world; None takes an option away."""

CONTROL = "control"
"""Stands among the options of a case for the control that its task is put under."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    """The cases of a task."""

    base: Options
    """What the task is made with where a case does not say otherwise."""
    alone: Mapping[str, Sequence[Any]] = field(default_factory=dict[str, Sequence[Any]])
    """By option its values, each of which is a case."""
    more: Sequence[Options] = ()
    """Further cases."""
    pairs: Sequence[Options] = ()
    """Settings of which each is a case, and each two that have no option in common."""

    def named(self) -> dict[str, Options]:
        """The cases by their names; each is whole."""
        return {_name(case): {**self.base, **case} for case in self._all()}

    def _all(self) -> Iterator[Options]:
        yield {}
        yield from ({option: value} for option, values in self.alone.items() for value in values)
        yield from self.more
        yield from self.pairs
        for one, other in combinations(self.pairs, 2):
            if not one.keys() & other.keys():
                yield {**one, **other}


def _name(case: Options) -> str:
    return ", ".join(f"{option}={value}" for option, value in case.items()) or "as it is"


def contexts(task: type[Task], *more: str) -> list[str]:
    """The contexts that a task lists, and further ones."""
    return [*getattr(task.prototypes()["model"], "contexts"), *more]  # noqa: B009  # of the tasks that have contexts


EYE: Options = {"vlm": "@eye"}
MODELS: tuple[Options, ...] = (
    {"vlm": None},
    {"vlm": None, "llm": "@mind"},
    {"llm": "@mind"},
    {"llm": "@mind", "combiner": "@joiner"},
)
"""Other models than one that sees the picture."""

SHOTS: tuple[Options, ...] = (
    {"shots": 1},
    {"shots": 2, "seed": 3},
    {"shots": 9},
    {"shots": -1},
    {"shots": 2, "shots_draw": "official"},
    {"shots": 2, "shots_leaks": "leave-out"},
    {"shots": 2, "shots_from": "knn"},
    {"shots": 2, "shots_from": "knn", "shots_draw": "official", "embedder": "@pixels"},
    *({"shots": 2, "shots_from": how, "embedder": "@pixels"} for how in ("knn", "mmr", "balanced")),
    {"shots_from": "knn", "embedder": "@pixels"},
    {"embedder": "@letters"},
)
"""Examples, however they are chosen."""

SOLVERS: tuple[Options, ...] = (
    *({"vlm": None, "solver": name} for name in ("random", "longest", "majority", "none")),
    {"solver": "random"},
    {"vlm": None, "solver": "random", "shots": 2},
)
"""Solvers in the place of a model."""

LOOKING: tuple[Options, ...] = (
    {"solver": "investigator", "calls": 4},
    {"solver": "investigator", "tools": "ask,unusual", "eyes": True, "abstain": True},
    {"solver": "investigator", "similar_index": "nowhere"},
    {"calls": 4},
)
"""An investigator, where a task takes one."""

CONTROLLED: Options = {CONTROL: "swapped-image"}
SHOWN: Options = {"shots": 2}
ALIKE: Options = {"shots": 2, "shots_from": "knn", "embedder": "@pixels"}
ALIKE_IN_WORDS: Options = {"shots": 2, "shots_from": "knn", "embedder": "@letters"}
SPLIT: Options = {"vlm": "@eye", "llm": "@mind", "combiner": "@joiner"}
BLIND: Options = {"vlm": None, "llm": "@mind"}
BOTH_ORDERS: Options = {"orders": 2}
STEPS: Options = {"step_by_step": True}


def _context(*names: str) -> list[Options]:
    return [{"context": name} for name in names]


# --- suites ---


def newyorker(tasks: Mapping[str, type[Task]]) -> dict[str, Cases]:
    """The cases of tasks over cartoons."""
    base = {"data": "@data", "limit": 3, **EYE}
    folds: Sequence[Any] = (0, 3, 5, "leaderboard")
    leaderboard = {"data": "@leaderboard", "fold": "leaderboard"}
    found: dict[str, Cases] = {}
    for name in ("matching", "ranking"):
        task = tasks[f"newyorker/{name}"]
        replies, ranker = {"answers": f"@{name} replies"}, {"scorer": "@fit"}
        nobody = {"vlm": None}
        found[task.name] = Cases(
            base=base,
            alone={
                "context": [*contexts(task), "I+T_V", "caption"],
                "fold": folds,
                "limit": [2],
                "seed": [1],
                "ids": ["@ids"],
                "orders": [2, 3],
                "reading": ["official", "leaderboard"],
                "prefix": ["A cartoon: "],
                "step_by_step": [True],
            },
            more=[
                *MODELS,
                *SHOTS,
                leaderboard,
                {**leaderboard, "shots": 2},
                *({**replies, **nobody, "reading": reading} for reading in ("ours", "official", "leaderboard")),
                {"answers": f"@some {name} replies", **nobody},
                {**replies, **nobody, "reading": "official", "orders": 2},
                {**ranker, **nobody, "prefix": "A cartoon: "},
                {**ranker, **nobody, "orders": 2, CONTROL: "swapped-image"},
                *({**ranker, **nobody, **other} for other in (SHOWN, STEPS, BOTH_ORDERS, CONTROLLED, replies)),
                *({**replies, **nobody, **other} for other in (SHOWN, STEPS, BOTH_ORDERS, CONTROLLED, {"fold": 1})),
                {**replies, **nobody, "context": "description"},
                {**ranker, **nobody, "context": "description"},
                {**replies, **nobody, "limit": 50},
                {"context": "description", **ALIKE_IN_WORDS},
                {"context": "socratic", **SPLIT},
                *({"context": each, **BLIND} for each in ("description", "socratic")),
            ],
            pairs=[*_context("description", "T_V"), SHOWN, ALIKE, STEPS, BOTH_ORDERS, replies, ranker, CONTROLLED]
            if name == "matching"  # the other one is made of the same classes
            else [*_context("description"), SHOWN, BOTH_ORDERS, CONTROLLED],
        )
    task = tasks["newyorker/explanation"]
    replies, perplexity = {"answers": "@explanation replies"}, {"perplexity": True}
    found[task.name] = Cases(
        base=base,
        alone={
            "context": [*contexts(task), "caption"],
            "fold": folds,
            "limit": [2],
            "seed": [1],
            "ids": ["@ids"],
            "step_by_step": [True],
        },
        more=[
            *MODELS,
            *SHOTS,
            leaderboard,
            *({**replies, "vlm": None, **other} for other in ({}, SHOWN, STEPS, perplexity, CONTROLLED, {"fold": 1})),
            {"context": "description", **ALIKE_IN_WORDS},
            {"context": "socratic", **SPLIT},
            *({"context": each, **BLIND, **more} for each in ("description", "socratic") for more in ({}, perplexity)),
        ],
        pairs=[*_context("description", "T_V"), SHOWN, ALIKE, STEPS, perplexity, replies, CONTROLLED],
    )
    return found


def whoops(tasks: Mapping[str, type[Task]]) -> dict[str, Cases]:
    """The cases of tasks over WHOOPS!."""
    found: dict[str, Cases] = {}
    judged = [
        {"judge": "@judge"},
        {"judge": "@judge", "judge_form": "rubric"},
        {"judge": "@judge", "judge_form": "short", "card": "@card"},
        {"judge": "@judge", "judge_form": "rubric", "card": "@card"},
        {"judge_form": "short"},
    ]
    own: Mapping[str, tuple[Options, Options, Sequence[Options], Sequence[Options]]] = {
        "captioning": ({}, {}, [], []),
        "explain": (
            {"judge": "@judge", "limit": 2},
            {},
            [{"judge": None}, *judged, {"labels": "@labels"}],
            [{"judge_form": "rubric"}],
        ),
        "explain-choice": (
            {"count": 3},
            {"true": ["all", "two"], "count": [4, 1], "negatives": ["hard"], "qa": ["@hard file"]},
            [{"negatives": "hard", "qa": "@hard file"}, {"negatives": "hard", "qa": "@hard file", "true": "all"}],
            [{"negatives": "hard", "qa": "@hard file"}, BOTH_ORDERS],
        ),
        "identify": ({}, {"pairs": ["@pairs"]}, [], []),
        "matching": (
            {"pairs": "selected", "limit": 2},
            {"pairs": ["all", "same-place"], "orders": [1]},
            [
                {"vlm": None, "scorer": "@fit"},
                {"vlm": None, "scorer": "@fit", "orders": 2},
                *(
                    {"vlm": None, "scorer": "@fit", "limit": 3, **more}
                    for more in (SHOWN, {"context": "T_V"}, CONTROLLED)
                ),
            ],
            [{"scorer": "@fit"}, {"orders": 1}],
        ),
        "vqa": ({}, {"scorer": ["@classifier"]}, [*judged, {"judge": "@judge", "scorer": "@classifier"}], [judged[0]]),
    }
    for name, (given, alone, more, further) in own.items():
        task = tasks[f"whoops/{name}"]
        pair = name == "identify"
        described = "gold-caption" if "gold-caption" in contexts(task) else "IN"
        pairs = [*_context(described, "text-only"), SHOWN, CONTROLLED]
        if name in {"explain", "matching"}:  # the others are made of the same classes
            pairs += [*_context("T_V"), ALIKE]
        found[task.name] = Cases(
            base={"data": "@data", "limit": 3, **EYE, **given},
            alone={
                "context": [*contexts(task), "gold-caption", "caption", "V+T+s_IN"],
                "fold": [0, 4, 5],
                "limit": [1, 0],
                "seed": [1],
                "ids": ["@pair ids" if pair else "@ids"],
                **({"orders": [2]} if "orders" in task.takes() else {}),
                **alone,
            },
            more=[
                *MODELS,
                *SHOTS,
                *more,
                {"fold": 1, "shots": 2, "seed": 2},
                {"context": "T_V", **SPLIT},
                {"context": "T_V", **SHOWN},
                *({"context": each, **ALIKE_IN_WORDS} for each in ("I", "gold-caption")),
                *({"context": each, **BLIND} for each in ("T_V", "gold-caption", "text-only")),
            ],
            pairs=[*pairs, *further],
        )
    errors = tasks["whoops/caption-errors"]
    found[errors.name] = Cases(
        base={"data": "@triplets", **EYE},
        alone={"context": [*contexts(errors), "T_V"], "labels": ["@caption labels"], "limit": [1, 0]},
        more=MODELS,
        pairs=[CONTROLLED],
    )
    return found


def pittads(tasks: Mapping[str, type[Task]]) -> dict[str, Cases]:
    """The cases of tasks over ads."""
    base = {"data": "@data", "limit": 3, **EYE}
    which = ["labelled", "typical"]
    data = {"seed": [1], "ids": ["@ids"], "small": [True], "which": which, "limit": [1], "fold": [0, 5]}
    statements = {"negatives": ["hard"], "qa": ["@action file"]}
    said = {"descriptions": "@said"}
    beside = (
        "I+T_V",
        "I+V+T",
        "T_V+s_IN",
        "T_V+s_TV",
        "UH+s_TV",
        "IN+s_true",
        "I+s_wrong",
        "I+T_V+s_IN",
        "I+UH+s_true",
    )
    own: Mapping[str, tuple[Options, Options, Sequence[Options]]] = {
        "mac": ({}, {}, []),
        "asr": ({}, {"orders": [2]}, [BOTH_ORDERS]),
        "aor": ({"embedder": "@letters"}, {"per": ["relation"], "embedder": ["@pixels"]}, [{"per": "relation"}]),
        "arr-multi": ({}, {"orders": [2], **statements, STEP: [True]}, [STEPS, BOTH_ORDERS]),
        "arr-single": ({}, {"orders": [2], "true": ["one"], **statements, STEP: [True]}, [STEPS, {"true": "one"}]),
    }
    found: dict[str, Cases] = {}
    for name, (given, alone, further) in own.items():
        task = tasks[f"pittads/{name}"]
        stated = beside if name.startswith("arr") else ("I+T_V", "T_V+s_IN")
        pairs = [*_context("I", "V+T"), SHOWN, said, CONTROLLED]
        if name in {"mac", "arr-multi"}:  # the others are made of the same classes
            pairs += [*_context("T_V"), ALIKE]
        found[task.name] = Cases(
            base={**base, **given},
            alone={"context": contexts(task, "caption", *stated), **data, **alone},
            more=[
                *MODELS,
                *({"context": "I", **shots} for shots in SHOTS),
                {"context": "V+T", **said, **ALIKE_IN_WORDS},
                {"context": "T_V", **SPLIT},
                {"context": "T_V", **said, **SPLIT},
                {"context": "IN+s_true", **said, "shots": 2},
                *({"context": each, **said, **BLIND} for each in ("V+T", "T_V", "UH")),
            ],
            pairs=[*pairs, *further],
        )
    modes = {"mode": ["single"], "true": ["one"], "orders": [2]}
    single_one = {"mode": "single", "true": "one", "orders": 2}
    found["pittads/arr-baseline"] = Cases(
        base={"data": "@data", "limit": 3},
        alone={"baseline": ["longest", "majority", "best"], **data, **statements, **modes},
        more=[{"vlm": "@eye"}, {"control": "swapped-image"}, {"context": "I"}],
        pairs=[{"baseline": "longest"}, {"baseline": "majority"}, {"mode": "single"}, {"true": "one"}, BOTH_ORDERS],
    )
    clip = tasks["pittads/arr-clip"]
    fused = ["I", "I+T", "I+T+V", "I+T+V+IN+UH", "I+T_V", "I+V"]
    found[clip.name] = Cases(
        base={"data": "@data", "limit": 3, "scorer": "@fit"},
        alone={**data, **statements, **modes, "weight": [0.25, 2], "context": fused, "scorer": [None]},
        more=[
            single_one,
            CONTROLLED,
            *({"context": context, "embedder": "@letters", **EYE} for context in fused),
            *({"context": context, "embedder": "@letters", **said} for context in fused),
            *({"context": context, "embedder": "@letters", **BLIND} for context in ("I+T", "I+T_V")),
            {"context": "I+T+V", "embedder": "@letters", **said, "texts": "joined"},
            {"context": "I+T+V", "embedder": "@letters", **EYE, "texts": "joined", "weight": 1},
            {"context": "I+T", "embedder": "@letters", **EYE, **CONTROLLED},
            {"context": "I+T", "embedder": "@letters", **said, **CONTROLLED},
            {"context": "I+T", "embedder": "@letters", **said, **single_one},
            {"context": "I+T", **EYE},
            {"context": "I+T_V", "embedder": "@letters", **SPLIT},
            {"texts": "joined"},
        ],
    )
    open_arr = tasks["pittads/open-arr"]
    searching = [*_context("V+T", "T_V", "text-only", "I+T_V"), {"query": "parts"}, {"query": "guess"}]
    options = {"within": "options", "index": "@index with options"}
    vectors = {"index": "@index with vectors", "embedder": "@letters", "encoder": "@pixels"}
    found[open_arr.name] = Cases(
        base={**base, "index": "@index"},
        alone={
            "context": contexts(open_arr, *beside),
            **data,
            **statements,
            "query": ["parts", "guess"],
            "how": ["bm25", "dense", "image", "fast"],
            "rerank": [3, 999],
            "within": ["options"],
            "junk": [True],
            "leaks": ["noted"],
            "splits": ["any"],
            "baseline": ["frequent"],
            "index": [None, "@index of both splits"],
            "store": ["no store"],
            "retriever": ["@backwards"],
        },
        more=[
            *MODELS,
            {"judge": "@judge"},
            {"judge": "@judge", "judge_form": "short", "card": "@card"},
            {"judge_form": "short"},
            {"index": "@index of both splits", "splits": "any"},
            {"index": "@index with vectors"},
            *({**vectors, "context": "I+T_V", "how": how} for how in ("hybrid", "dense", "image", "bm25+image")),
            {**vectors, "context": "I"},
            {**vectors, "context": "I", **CONTROLLED},
            {"descriptions": "@leaking", "context": "T_V"},
            {"descriptions": "@leaking", "context": "T_V", "leaks": "noted"},
            {"descriptions": "@said", "context": "V+T", "vlm": None},
            {"descriptions": "@said", "context": "T_V", **BLIND, "query": "guess"},
            {"retriever": "@backwards", "how": "bm25"},
            {"retriever": "@backwards", "rerank": 2},
            {"baseline": "frequent", "vlm": None},
            {"baseline": "frequent", "rerank": 2},
            {"baseline": "frequent", "within": "options"},
            {"baseline": "frequent", "judge": "@judge"},
        ],
        pairs=[*searching, {"rerank": 3}, options, {"judge": "@judge"}, said, CONTROLLED],
    )
    return found


def sherlock(tasks: Mapping[str, type[Task]]) -> dict[str, Cases]:
    """The cases of tasks over regions."""
    fit: Options = {"vlm": None, "scorer": "@region fit"}
    described: Options = {"context": "region", "llm": "@mind"}
    swapped: Options = {CONTROL: "swapped-region"}
    regions = ["hide", "blackout", "position", "crop", "whole"]
    shared: Mapping[str, Sequence[Any]] = {
        "region": regions,
        "limit": [2, 0],
        "seed": [1],
        "ids": ["@ids"],
        "images": ["@images"],
    }
    ways: Sequence[Options] = (
        *({"by": way} for way in ("rating", "choice", "rating-of-words")),
        {"by": "rating", "top": 0},
        {"top": 0},
        {"draws": 2},
        {"by": "choice", "orders": 2},
        {"orders": 2},
        {"first": "@region fit", "keep": 2},
        {"vlm": None},
        {"llm": "@mind"},
        {"vlm": None, **described},
        {**described, "by": "yes-no"},
        {"context": "region"},
        {"context": "V+T"},
        {"scorer": "@region fit"},
        {"vlm": None, "scorer": "@fit"},
        {**fit, "context": "region"},
        {**fit, CONTROL: "swapped-image"},
    )
    own: Mapping[str, tuple[Mapping[str, Sequence[Any]], Sequence[Options]]] = {
        "comparison": ({"split": ["test"]}, []),
        "pool": (
            {"chunk": [1], "text": ["clue"], "count": [3, 20, 1], "by": ["rating"], "draws": [2], "top": [5]},
            [{"by": "choice", "orders": 2}],
        ),
        "localization": (
            {"boxes": ["auto"], "split": ["test"], "text": ["clue"]},
            [{**fit, "boxes": "auto", "limit": 5, **swapped}, {"boxes": "auto", "split": "test"}],
        ),
        "retrieval": (
            {"chunk": [0, 1, 9], "split": ["test"], "text": ["clue"]},
            [
                {"first": "@region fit"},
                {"keep": 2},
                {"limit": 7, **fit},
                {"first": "@region fit", "keep": 2, "limit": 5, **swapped},
            ],
        ),
    }
    found = {
        f"sherlock/{name}": Cases(
            base={"data": "@data", "limit": 3, **EYE, **({"count": 4} if name == "pool" else {})},
            alone={**shared, **alone},
            more=[*(() if name == "pool" else ways), *more],  # it is made of the same classes
            pairs=[fit, described, {"region": "hide"}, swapped],
        )
        for name, (alone, more) in own.items()
    }
    rated: Options = {"rater": "@eye"}
    found["sherlock/inference"] = Cases(
        base={"data": "@data", "limit": 3, **EYE, "judge": "@judge"},
        alone={**shared, "context": ["T_V"], "judge_form": ["short"], "card": ["@card"], "judge": [None]},
        more=[
            *MODELS,
            {"judge_form": "short", "card": "@card"},
            {"rater_card": "@card"},
            {**rated, "rater_card": "@card"},
        ],
        pairs=[{"region": "hide"}, swapped, rated],
    )
    return found


def injection(tasks: Mapping[str, type[Task]]) -> dict[str, Cases]:
    """The cases of the task over pictures whose text gives orders."""
    task = tasks["injection/orders"]
    return {
        task.name: Cases(
            base={"limit": 3, **EYE},
            alone={"context": ["T_V", "text-only"], "text": [False], "limit": [1, 0], "data": ["@data"]},
            more=[*MODELS, {"solver": "investigator", "calls": 4, "fenced": False}, {"fenced": False}],
            pairs=[],
        )
    }


STEP = "step_by_step"


def cases_of(tasks: Mapping[str, type[Task]]) -> dict[str, Cases]:
    """By name of a packaged task its cases."""
    found = {
        name: cases for make in (injection, newyorker, pittads, sherlock, whoops) for name, cases in make(tasks).items()
    }
    for name, each in found.items():
        takes = tasks[name].takes()
        more = [*(SOLVERS if "solver" in takes else ()), *(LOOKING if "tools" in takes else ())]
        found[name] = replace(each, more=[*each.more, *more])
    return found
