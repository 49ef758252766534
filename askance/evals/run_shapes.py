"""What the files of a run's folder have to look like; somebody may have edited them, or made them up."""

from __future__ import annotations

from typing import get_args

from askance.chat import Outcome
from askance.evals.shapes import (
    COUNT,
    FLAG,
    MAP,
    NUMBER,
    TEXT,
    WHOLE,
    anything,
    form,
    maybe,
    named,
    one_of,
    several,
)

_MODEL = form({"id": MAP}, {"sampling": maybe(MAP)})
_INTERVAL = form({"low": NUMBER, "high": NUMBER, "level": NUMBER, "method": TEXT}, {"undefined": COUNT})
_FIGURE = form(
    {
        "metric": TEXT,
        "value": maybe(NUMBER),
        "interval": maybe(_INTERVAL),
        "convention": one_of("wrong", "answered"),
        "samples": COUNT,
        "clusters": COUNT,
        "answered": COUNT,
        "among_answered": maybe(NUMBER),
        "if_wrong": maybe(NUMBER),
        "if_right": maybe(NUMBER),
    },
    {"percent": FLAG},
)
CONFIGURATION = form(
    {
        "task": TEXT,
        "options": MAP,
        "models": named(_MODEL),
        "solver": form({}, {"models": named(_MODEL), "prompts": named(TEXT)}),
        "epochs": COUNT,
    },
    {"samples": form({}, {"count": COUNT, "digest": TEXT})},
)
"""Of an evaluation; there may be more."""

DESCRIPTION = form(
    {"configuration": CONFIGURATION},
    {
        "askance": TEXT,
        "prices": TEXT,
        "readers": COUNT,
        "hash": TEXT,
        "started": TEXT,
        "finished": TEXT,
        "figures": several(_FIGURE),
        "notes": several(TEXT),
        "data_notes": several(TEXT),
        "totals": form({}, {"samples": COUNT, "outcomes": named(COUNT), "records": COUNT}),
        "left": COUNT,
        "seed": WHOLE,
        "counters": named(MAP),
        "label": TEXT,
        "origin": form({}, {"task": TEXT}),
    },
)
"""`run.json` of an evaluation."""

OF_PICTURES = form({"configuration": MAP}, {"finished": TEXT, "left": COUNT})
"""`run.json` of single pictures."""

_LINK = form({"outcome": TEXT, "calls": several(TEXT)}, {"reason": maybe(TEXT), "error": maybe(TEXT)})
_TRY = form({"at": NUMBER, "seconds": NUMBER}, {"error": maybe(TEXT)})
_META = form(
    {},
    {
        "calls": COUNT,
        "replayed": COUNT,
        "shared": COUNT,
        "failed": named(TEXT),
        "seconds": NUMBER,
        "tokens": named(COUNT),
        "cost": maybe(NUMBER),
        "tries": named(several(_TRY)),
    },
)
_ANSWERED = {"outcome": one_of(*get_args(Outcome)), "links": named(_LINK)}

_PICTURE = form({"name": TEXT, "sha256": maybe(TEXT)})
LINE = form(
    {
        "id": TEXT,
        "epoch": COUNT,
        "sample": form(
            {"id": TEXT, "group": TEXT, "image": maybe(_PICTURE), "inputs": MAP, "target": anything, "tags": MAP}
        ),
        **_ANSWERED,
        "reason": maybe(TEXT),
        "value": anything,
        "trace": form({}, {"verbalization": maybe(MAP), "statement": maybe(MAP)}),
    },
    {"meta": _META},
)
"""A line of `samples.jsonl`."""

LINE_OF_PICTURES = form({"image": TEXT, **_ANSWERED}, {"reason": maybe(TEXT), "meta": _META})
"""A line of `samples.jsonl` where single pictures were asked about."""

SCORE = form({"id": TEXT, "epoch": COUNT, "values": named(NUMBER), "notes": MAP, "calls": several(TEXT)})
"""A line of `scores.jsonl`."""
