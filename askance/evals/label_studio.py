"""Label Studio: tasks and a page for its annotators, and what they answered.

What people are asked goes out as tasks and a labelling configuration, and comes back as either of the two exports that
say who answered: JSON and JSON-MIN. The formats are those of Label Studio's guide, "Get data into Label Studio" and
"Export annotations". All texts stand in the tasks, none in the configuration, so they may hold markup or `$`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, cast
from xml.etree import ElementTree

from askance.errors import BadData
from askance.evals.run_folder import write_whole

TASKS, CONFIG = "label-studio.json", "label-studio.xml"
QUESTION, IMAGE = "question", "image"
"""Fields of a task: what is asked, as its heading; the address of the picture, where there is one."""
_HINT = "Export the project from Label Studio as JSON or JSON-MIN."


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceField:
    """Some texts of a task, and the words of which an annotator chooses one for them."""

    name: str
    """What the answer is called in exports."""
    texts: Mapping[str, str]
    """Fields of the task that are shown, each with its heading; an empty heading is left out."""
    choices: Sequence[str]


def labelling_config(fields: Sequence[ChoiceField], *, image: bool = False) -> str:
    """The page on which annotators answer, as XML.

    Args:
        fields: what is asked, from top to bottom.
        image: whether each task shows a picture.
    """
    view = ElementTree.Element("View")
    ElementTree.SubElement(view, "Header", value=f"${QUESTION}")
    if image:
        ElementTree.SubElement(view, "Image", name=IMAGE, value=f"${IMAGE}")
    for field in fields:
        for name, heading in field.texts.items():
            if heading:
                ElementTree.SubElement(view, "Header", value=heading, size="5")
            ElementTree.SubElement(view, "Text", name=name, value=f"${name}", valueType="text")
        choices = ElementTree.SubElement(
            view, "Choices", name=field.name, toName=[*field.texts][-1], choice="single-radio", showInline="true"
        )
        for word in field.choices:
            ElementTree.SubElement(choices, "Choice", value=word)
    ElementTree.indent(view)
    return ElementTree.tostring(view, encoding="unicode") + "\n"


def write_tasks(
    out: Path, tasks: Sequence[Mapping[str, str]], fields: Sequence[ChoiceField], *, image: bool = False
) -> None:
    """Writes `label-studio.json`, which is imported, and `label-studio.xml`, the labelling interface of the project.

    Args:
        out: folder for both.
        tasks: the fields of each task by name; none is called `id`, which Label Studio takes for its own.
        fields: what is asked of each.
        image: whether each task shows a picture.
    """
    write_whole(out / TASKS, json.dumps([{"data": dict(task)} for task in tasks], indent=1) + "\n")
    write_whole(out / CONFIG, labelling_config(fields, image=image))


# --- what annotators answered ---


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAnnotation:
    """What one annotator made of one task."""

    where: str
    """The place in the export, in words."""
    annotator: str
    """The address of an account or its number, as the export has it."""
    task: Mapping[str, Any]
    """The fields of the task, as they were imported."""
    choices: Mapping[str, str]
    """The word that was chosen, by the name of the field; empty where the task was skipped."""


def is_export(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether the content of a JSON file is an export of Label Studio."""
    return any(_is_whole(entry) or _is_short(entry) for entry in map(_object, _list(value)))


def read_annotations(
    export: Sequence[Any], source: str, *, key: str, names: Collection[str]
) -> Mapping[str, Sequence[TaskAnnotation]]:
    """The annotations of each task; a task that nobody was at, or all skipped, has none with a choice.

    Args:
        export: the content of a file for which `is_export` holds.
        source: the name of the file, for messages.
        key: the field of a task that says which it is.
        names: what the answers are called.

    Returns:
        By the value of `key`, in the order of the export.

    Raises:
        BadData: an entry is no task of a sheet, an answer is of another page or is not one choice, or an annotator
            answered a task twice.
    """
    by_task: dict[str, list[TaskAnnotation]] = {}
    for number, entry in enumerate(map(_object, export), start=1):
        where, whole = f"entry {number} of {source!r}", _is_whole(entry)
        if not whole and not _is_short(entry):
            raise BadData(f"There are no annotations in {where}.", hint=_HINT)
        task = _object(entry["data"]) if whole else entry
        name = task.get(key)
        if not isinstance(name, str) or not name:
            raise BadData(
                f"There is no field {key!r} in {where}, so it is not of a sheet of askance.",
                hint="Import the tasks that askance wrote, and export that project.",
            )
        there = by_task.setdefault(name, [])
        for annotator, chosen in _whole_answers(entry) if whole else _short_answers(entry, names):
            words = {
                field: _choice(field, each, names=names, who=f"{annotator!r} in {where}")
                for field, each in chosen.items()
            }
            if words and any(each.annotator == annotator and each.choices for each in there):
                raise BadData(
                    f"The annotator {annotator!r} answered {name!r} twice, also in {where}.",
                    hint="Delete one of the two annotations in Label Studio, and export again.",
                )
            there.append(TaskAnnotation(where=where, annotator=annotator, task=task, choices=words))
    return by_task


def _choice(field: str, chosen: Sequence[Any], *, names: Collection[str], who: str) -> str:
    """The one word that was chosen."""
    if field not in names:
        raise BadData(
            f"An answer of {who} is to {field!r}, which the sheet does not ask.",
            hint="Export the project whose labelling interface is the one that askance wrote.",
        )
    if len(chosen) != 1 or not isinstance(chosen[0], str):
        raise BadData(
            f"The answer of {who} to {field!r} is not one choice, but {list(chosen)!r}.",
            hint="Mend the annotation in Label Studio, and export again.",
        )
    return chosen[0]


_Answers: TypeAlias = Iterator[tuple[str, Mapping[str, Sequence[Any]]]]
"""An annotator, and what was chosen by field."""


def _is_whole(entry: Mapping[str, Any]) -> bool:
    """Whether an entry is a task with its annotations, as in an export to JSON."""
    return isinstance(entry.get("data"), dict) and isinstance(entry.get("annotations"), list)


def _whole_answers(entry: Mapping[str, Any]) -> _Answers:
    """Those of all annotations; of one that was skipped, none."""
    for annotation in map(_object, entry["annotations"]):
        chosen: dict[str, list[Any]] = {}
        for result in map(_object, () if annotation.get("was_cancelled") else _list(annotation.get("result"))):
            words = _list(_object(result.get("value")).get("choices"))
            chosen.setdefault(str(result.get("from_name")), []).extend(words)
        yield _annotator(annotation.get("completed_by")), chosen


def _is_short(entry: Mapping[str, Any]) -> bool:
    """Whether an entry is a task with the answers of one annotator, as in an export to JSON-MIN."""
    return {"annotator", "annotation_id"} <= entry.keys()


def _short_answers(entry: Mapping[str, Any], names: Collection[str]) -> _Answers:
    """Those of the annotator; nobody's where the task has no annotation.

    A choice is a word there; several are a list in an object, and regions with a choice each a list.
    """
    if entry["annotation_id"] is not None:
        chosen = {name: entry[name] for name in names if name in entry}
        lists = {name: _list(_object(each).get("choices")) or _list(each) for name, each in chosen.items()}
        words = {name: [each] if isinstance(each, str) else lists[name] for name, each in chosen.items()}
        yield _annotator(entry["annotator"]), words


def _annotator(value: Any) -> str:
    """Who answered: an address of an account, or its number."""
    account = _object(value)
    who = account.get("email") or account.get("id") if account else value
    return str(who) if isinstance(who, (str, int)) else "unknown"


def _object(value: object) -> Mapping[str, Any]:
    """An object of JSON; an empty one in the place of anything else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: object) -> Sequence[Any]:
    """A list of JSON; an empty one in the place of anything else."""
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()
