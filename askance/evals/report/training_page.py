"""The page of a training: curves of its loss and of validation, what was chosen, and what decided it.

What it shows comes from a folder that anybody may have written: lines of a log that do not fit are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from askance.evals.report.elements import Curve, Curves, Plot, Scale, Sortable, drawn_across
from askance.evals.report.html import block, document

MOST_POINTS = 300
"""Most points of a line; more steps are drawn by their means."""


def training_page(record: Mapping[str, Any], log: Sequence[Mapping[str, Any]]) -> str:
    """The page; equal records and logs give equal pages.

    Args:
        record: what `train.json` says.
        log: the lines of `log.jsonl`.
    """
    return document(
        "training.html",
        title=str(_of(record, "recipe").get("name", "training")),
        blocks=[block("index", {"runs": [], "kind": "training", "words": {}, "sorts": []})],
        about=str(_of(record, "recipe").get("title", "")),
        state=str(record.get("state", "")),
        plots=[*training_plots(record, log)],
        rates=_rates(record),
        decided=Sortable(heads=("what", "value"), rows=[*_decided(record)], caption="What decided the result"),
        fields=Sortable(heads=("field", "value", "by", "where"), rows=[*_fields(record)], caption="The recipe"),
    )


def training_plots(record: Mapping[str, Any], log: Sequence[Mapping[str, Any]]) -> Iterator[Plot]:
    """The loss of training and that of validation, and the metric that chose, by step; a curve for each rate."""
    rates = [*dict.fromkeys(line["rate"] for line in log if _numbers(line, "rate", "step"))]
    metric = str(_of(record, "values").get("metric", "loss"))
    wanted: list[tuple[str, str | None]] = [("Loss of training", None), ("Loss of validation", "loss")]
    if metric != "loss":
        wanted.append((f"Validation: {metric}", metric))
    for title, name in wanted:
        lines = {rate: [*_places(log, rate, name)] for rate in rates}
        points = [place for line in lines.values() for place in line]
        if points:
            share = name not in {None, "loss"}
            yield Curves(
                title=title,
                curves=[Curve(name=f"rate {rate:g}", line=_thinned(line)) for rate, line in lines.items() if line],
                across="steps",
                upward="share, in %" if share else "mean cross-entropy of a token, an item or a pair",
                over=drawn_across(max(step for step, _ in points), percent=False),
                up=_upward([value for _, value in points], share=share),
            )


def _places(log: Iterable[Mapping[str, Any]], rate: float, name: str | None) -> Iterator[tuple[float, float]]:
    """Steps with the loss of training, or with one of validation's numbers."""
    for line in log:
        values = line if name is None else _of(line, "validation")
        key = name or "loss"
        if _numbers(line, "rate", "step") and line["rate"] == rate and _numbers(values, key):
            yield float(line["step"]), float(values[key])


def _thinned(line: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    size = math.ceil(len(line) / MOST_POINTS)
    parts = [line[start : start + size] for start in range(0, len(line), size)]
    return [(part[-1][0], sum(value for _, value in part) / len(part)) for part in parts]


def _upward(values: Sequence[float], *, share: bool) -> Scale:
    high = 1.0 if share else max(values) or 1.0
    marks = drawn_across(high, percent=False).marks
    return Scale(low=0.0, high=high, percent=share, marks=marks, start=88, length=-83)


def _rates(record: Mapping[str, Any]) -> Sortable | None:
    """What validation said of each rate; None before the end."""
    listed: Any = record.get("rates")
    if not isinstance(listed, list):
        return None
    rows = [
        [_shown(_entry(each, name)) for name in ("rate", "steps", "step", "value")]
        for each in cast("list[Any]", listed)
    ]
    return Sortable(heads=("rate", "steps", "best step", "validation there"), rows=rows, caption="Rates of learning")


def _decided(record: Mapping[str, Any]) -> Iterator[list[str]]:
    for name in ("base", "data", "selected", "parameters", "versions"):
        for field, value in _of(record, name).items():
            yield [f"{name}: {field}", _shown(value)]
    for name in ("control", "seed", "dtype", "device", "hours", "result"):
        yield [name, _shown(record.get(name))]


def _fields(record: Mapping[str, Any]) -> Iterator[list[str]]:
    for name, field in _of(_of(record, "recipe"), "fields").items():
        if isinstance(field, Mapping):
            source = cast("Mapping[str, Any]", field)
            where = " · ".join(str(source[key]) for key in ("at", "why") if source.get(key))
            yield [name, _shown(source.get("value")), str(source.get("by", "")), where]


def _entry(form: Any, name: str) -> Any:
    """What a mapping has under a name; None where it is none."""
    return cast("Mapping[str, Any]", form).get(name) if isinstance(form, Mapping) else None


def _of(form: Any, name: str) -> Mapping[str, Any]:
    """The mapping that a mapping has under a name; empty where there is none."""
    value = _entry(form, name)
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _numbers(form: Mapping[str, Any], *names: str) -> bool:
    return all(isinstance(form.get(name), (int, float)) and math.isfinite(form[name]) for name in names)


def _shown(value: Any) -> str:
    match value:
        case None:
            return "–"
        case float():
            return f"{value:.6g}"
        case list():
            return ", ".join(map(_shown, cast("list[Any]", value)))
        case dict():
            return ", ".join(f"{name} {_shown(each)}" for name, each in cast("dict[str, Any]", value).items())
        case _:
            return str(value)
