"""What Label Studio makes of tasks: its two exports, after people have answered.

tests/slow/test_label_studio.py holds both against Label Studio's own package.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from askance.evals.label_studio import TASKS

Answer: TypeAlias = Callable[[Mapping[str, str]], Mapping[str, str] | None]
"""From the fields of a task to the words that are chosen, by the name of the field; None skips the task."""


def exported(folder: Path, annotators: Mapping[Any, Answer]) -> list[dict[str, Any]]:
    """The export to JSON of the tasks in `folder`, each answered by all `annotators` (numbers, or accounts)."""
    tasks = json.loads((folder / TASKS).read_text("utf-8"))
    return [
        {
            "id": 40 + number,
            "data": task["data"],
            "annotations": [
                annotation(100 * number + place, who, answer(task["data"]))
                for place, (who, answer) in enumerate(annotators.items())
            ],
            "drafts": [],
            "predictions": [],
            "project": 7,
        }
        for number, task in enumerate(tasks)
    ]


def annotation(number: int, who: Any, words: Mapping[str, str] | None) -> dict[str, Any]:
    """One annotation as an export to JSON has it."""
    return {
        "id": number,
        "completed_by": who,
        "result": [result(field, word) for field, word in (words or {}).items()],
        "was_cancelled": words is None,
        "created_at": f"2026-01-01T00:00:{number % 60:02}.000000Z",
        "updated_at": "2026-01-01T00:01:00.000000Z",
        "lead_time": 3.5,
    }


def result(field: str, *words: str) -> dict[str, Any]:
    """One choice as an export to JSON has it."""
    shown = {"verdict": "candidate", "vote": "second"}.get(field, field.removeprefix("answer_"))
    return {"id": field, "from_name": field, "to_name": shown, "type": "choices", "value": {"choices": [*words]}}


def shortened(export: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The export to JSON-MIN of the same answers, the newest annotation of a task first."""
    nobody: dict[str, Any] = {"completed_by": {"email": None}, "result": [], "created_at": None}
    return [
        {
            **task["data"],
            "id": task["id"],
            **{each["from_name"]: each["value"]["choices"][0] for each in made["result"]},
            "annotator": made["completed_by"]["email"]
            if isinstance(made["completed_by"], dict)
            else made["completed_by"],
            "annotation_id": made.get("id"),
            "created_at": made["created_at"],
            "updated_at": made.get("updated_at"),
            "lead_time": made.get("lead_time"),
        }
        for task in export
        for made in sorted(task["annotations"], key=lambda each: each["created_at"], reverse=True) or [nobody]
        if not made.get("was_cancelled")
    ]


def write(path: Path, export: object) -> Path:
    """The file of an export."""
    path.write_text(json.dumps(export, ensure_ascii=False), "utf-8")
    return path
