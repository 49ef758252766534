"""Transcripts on pages: the steps by which an agent looked around in a picture, each with the region that it looked at.

They stand in the trace of a link, or of a solver's prediction. Anybody may have written the folder: what is no
transcript is left out, and a view that cannot be drawn is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from askance.amounts import shortened
from askance.errors import UsageError
from askance.images import RegionView, Shown

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.sample import SampleResult

MOST_STEPS = 200
"""Most steps of a transcript that a page shows."""
MOST_REGIONS = 8
"""Most regions of one step that are drawn."""
_LONGEST = 4000
"""Characters of a text of a step."""
_TEXTS = ("thought", "tool", "outcome", "reply", "note", "reason", "left")
_FACTS = ("confidence", "enough", "evidence", "budget", "form", "malformed", "repeated", "ended")


def transcripts_of(answer: SampleResult) -> Iterator[tuple[str, Mapping[str, Any], list[Mapping[str, Any]]]]:
    """The transcripts of an answer: the link (empty for the solver itself), the whole trace, and its steps."""
    prediction = answer.prediction
    traces: list[tuple[str, Any]] = [("", prediction.trace)]
    traces += [(name, link.get("trace")) for name, link in prediction.links.items()]
    for name, trace in traces:
        if isinstance(trace, Mapping):
            form = cast("Mapping[str, Any]", trace)
            listed = form.get("steps")
            steps = [
                cast("Mapping[str, Any]", step)
                for step in (cast("list[Any]", listed) if isinstance(listed, list) else [])
                if isinstance(step, Mapping)
            ]
            if steps:
                yield name, form, steps[:MOST_STEPS]


def tools_of(answer: SampleResult) -> tuple[str, ...]:
    """The tools that were used for an answer, each once, but for that which gives it."""
    names = (step.get("tool") for _, _, steps in transcripts_of(answer) for step in steps)
    return tuple(sorted({name for name in names if isinstance(name, str) and name not in {"", "answer"}}))


def looked_at(answer: SampleResult) -> Iterator[Shown]:
    """What a page draws of the steps of an answer: the regions on the picture, and each of them cut out."""
    for _, _, steps in transcripts_of(answer):
        for step in steps:
            boxed, crops = _drawn(answer, step)
            yield from crops if boxed is None else (boxed, *crops)


def _drawn(answer: SampleResult, step: Mapping[str, Any]) -> tuple[Shown | None, list[Shown]]:
    """The picture with the regions of a step drawn on it, and each region cut out."""
    image, listed = answer.sample.image, step.get("views")
    if image is None or not isinstance(listed, list):
        return None, []
    views: list[RegionView] = []
    for form in islice(cast("list[Any]", listed), MOST_REGIONS):
        try:
            view = RegionView.from_form(form)
        except (UsageError, TypeError, AttributeError):
            continue
        views += [replace(view, show="crop", boxes=(box,)) for box in view.boxes[:MOST_REGIONS]]
    if not views:
        return None, []
    boxes = tuple(box for view in views if view.unit == views[0].unit for box in view.boxes)
    boxed = Shown(image, view=RegionView("highlight", boxes[:MOST_REGIONS], views[0].unit))
    return boxed, [Shown(image, view=view) for view in views[:MOST_REGIONS]]


def transcript_forms(answer: SampleResult, number: Callable[[str | None], int | None]) -> list[JsonObject]:
    """The transcripts of an answer for the script of a page.

    Args:
        answer: whose they are.
        number: gives the number of a thumbnail by its key; None where it has none.
    """
    return [
        {
            "link": name,
            "facts": {fact: trace[fact] for fact in _FACTS if fact in trace},
            "steps": [_step_form(answer, step, number) for step in steps],
        }
        for name, trace, steps in transcripts_of(answer)
    ]


def _step_form(answer: SampleResult, step: Mapping[str, Any], number: Callable[[str | None], int | None]) -> JsonObject:
    boxed, crops = _drawn(answer, step)
    texts = {name: shortened(value, _LONGEST) for name in _TEXTS if isinstance(value := step.get(name), str) and value}
    calls = step.get("calls")
    form: JsonObject = {
        "step": step.get("step"),
        **texts,
        "arguments": step.get("arguments"),
        "repeated": step.get("repeated") is True,
        "boxed": None if boxed is None else number(boxed.key),
        "crops": [found for each in crops if (found := number(each.key)) is not None],
        "calls": [str(key) for key in cast("list[Any]", calls)] if isinstance(calls, list) else [],
    }
    return {name: value for name, value in form.items() if value not in (None, [], {}, False)}
