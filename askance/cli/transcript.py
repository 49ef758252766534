"""The steps of an investigation on the terminal: one line each, then how sure the answer is and what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from askance.amounts import shortened
from askance.chat import canonical_json

_LINE = 84
"""Characters of a step at most, so that it stands on one line of a card."""
_SHORT = 30
"""Characters of a question, a box and a reason at most."""


def step_rows(trace: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Heading and text of each step in a trace, as a card has them; the answer itself is not among them.

    Args:
        trace: as a line has it at `links.<link>.trace`; one without steps has no rows.
    """
    for step in _steps(trace):
        if step["tool"] != "answer" or step["outcome"] != "answered":
            asked, left = f"{_asked(step)} → ", f" ({step.get('left', 'nothing')} left)"
            most = max(_SHORT // 2, _LINE - len(asked) - len(left))
            yield f"step {step['step']}", f"{asked}{shortened(_came_back(step), most)}{left}"


def confidence_row(trace: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """How sure the answer is, and which steps it rests on; none where there is no answer."""
    if trace.get("confidence") is None:
        return
    evidence = ", ".join(map(str, trace.get("evidence") or ()))
    rests = f", by step{'s' * (', ' in evidence)} {evidence}" if evidence else ""
    yield "confidence", f"{trace['confidence']} %{rests}{'' if trace.get('enough', True) else '; it saw too little'}"


def _steps(trace: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return cast("Sequence[Mapping[str, Any]]", trace.get("steps", ()))


def _asked(step: Mapping[str, Any]) -> str:
    """The tool, where it looked and what was asked."""
    arguments: Mapping[str, Any] = step.get("arguments", {})
    said = arguments.get("question") or arguments.get("text")
    question = f"“{shortened(str(said), _SHORT)}”" if said else ""
    return " ".join(part for part in (step["tool"] or "no tool", _where(step, arguments), question) if part)


def _where(step: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """The regions by their names or boxes in thousandths; where nothing was looked at, as the model gave them."""
    views = [view["boxes"][0] for view in step.get("views", ())]
    regions: object = arguments.get("regions") or [arguments.get("region")]
    names = [str(name) for name in cast("list[object]", regions) if name] if isinstance(regions, list) else []
    if names and len(names) >= len(views):
        return " and ".join(names)
    boxes = views or [value for name in ("box", "boxes") if (value := arguments.get(name))]
    return " and ".join(shortened(canonical_json(box).replace(",", ", "), _SHORT) for box in boxes)


def _came_back(step: Mapping[str, Any]) -> str:
    if step["outcome"] != "answered":
        reason = step.get("reason")
        return f"{step['outcome']}: {reason}" if reason else step["outcome"]
    reply = " ".join(str(step.get("reply") or step.get("note") or "nothing").split())
    return f"{'known already: ' if step.get('repeated') else ''}{reply}"
