from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from askance.errors import BadData
from askance.evals.label_studio import (
    CONFIG,
    TASKS,
    ChoiceField,
    TaskAnnotation,
    is_export,
    labelling_config,
    read_annotations,
    write_tasks,
)
from tests.label_studio import annotation, exported, result, shortened

HOSTILE = '<Choice value="x"/> & $image ]]> "quoted" \'s\' \u202e {{idx}} ünï\ncode'
FIELD = ChoiceField(name="vote", texts={"first": "1", "second": "2"}, choices=("First", "Second", "Tie"))
TASKS_OF_TWO = [
    {"pair": name, "question": HOSTILE, "first": HOSTILE, "second": f"{name} {HOSTILE}"} for name in ("a", "b")
]


def test_a_configuration_shows_fields_and_holds_no_text_of_a_task(tmp_path: Path) -> None:
    write_tasks(tmp_path, TASKS_OF_TWO, [FIELD])
    view = ElementTree.fromstring((tmp_path / CONFIG).read_text("utf-8"))

    assert [(each.tag, dict(each.attrib)) for each in view.iter()] == [
        ("View", {}),
        ("Header", {"value": "$question"}),
        ("Header", {"value": "1", "size": "5"}),
        ("Text", {"name": "first", "value": "$first", "valueType": "text"}),
        ("Header", {"value": "2", "size": "5"}),
        ("Text", {"name": "second", "value": "$second", "valueType": "text"}),
        ("Choices", {"name": "vote", "toName": "second", "choice": "single-radio", "showInline": "true"}),
        ("Choice", {"value": "First"}),
        ("Choice", {"value": "Second"}),
        ("Choice", {"value": "Tie"}),
    ]
    assert [each["data"] for each in json.loads((tmp_path / TASKS).read_text("utf-8"))] == TASKS_OF_TWO
    assert '<Image name="image" value="$image" />' in labelling_config([FIELD], image=True)


def both(export: list[dict[str, Any]]) -> list[Any]:
    return [export, shortened(export)]


def test_both_exports_say_the_same(tmp_path: Path) -> None:
    write_tasks(tmp_path, TASKS_OF_TWO, [FIELD])
    account = {"id": 5, "email": "ann@example.org"}
    export: list[dict[str, Any]] = [
        {
            "id": 1,
            "data": TASKS_OF_TWO[0],
            "annotations": [
                annotation(2, account, {"vote": "First"}),
                annotation(1, 9, {"vote": "Tie"}),
                annotation(0, 4, None),
            ],
        },
        {"id": 2, "data": TASKS_OF_TWO[1], "annotations": []},
    ]
    for form in both(export):
        found = read_annotations(form, "x.json", key="pair", names=["vote"])
        chosen = {each.annotator: each.choices for each in found["a"] if each.choices}

        assert is_export(form)
        assert chosen == {"ann@example.org": {"vote": "First"}, "9": {"vote": "Tie"}}
        assert found["b"] == []
        assert {each.task["second"] for each in found["a"]} == {f"a {HOSTILE}"}
    skipped = read_annotations(export, "x.json", key="pair", names=["vote"])["a"][2]
    assert skipped == TaskAnnotation(where="entry 1 of 'x.json'", annotator="4", task=TASKS_OF_TWO[0], choices={})


def test_who_skipped_first_and_answered_then_has_answered(tmp_path: Path) -> None:
    write_tasks(tmp_path, TASKS_OF_TWO[:1], [FIELD])
    export = exported(tmp_path, {3: lambda _: None})
    export[0]["annotations"].append(annotation(9, 3, {"vote": "Second"}))
    found = read_annotations(export, "x.json", key="pair", names=["vote"])["a"]

    assert [each.choices for each in found] == [{}, {"vote": "Second"}]


@pytest.mark.parametrize("other", [[], {}, [{"reference": "a", "candidate": "b"}], "text", [3]], ids=str)
def test_other_json_is_no_export(other: object) -> None:
    assert not is_export(other)


def twice(export: Any) -> None:
    export[0]["annotations"].append(annotation(77, 3, {"vote": "Tie"}))


def imported_twice(export: Any) -> None:
    export.append({**copy.deepcopy(export[0]), "id": 99})


def of_another_page(export: Any) -> None:
    export[0]["annotations"][0]["result"] = [result("mood", "Happy")]


def two_choices(export: Any) -> None:
    export[1]["annotations"][0]["result"] = [result("vote", "First", "Tie")]


def two_results(export: Any) -> None:
    export[1]["annotations"][0]["result"] = [result("vote", "First"), result("vote", "Tie")]


def no_choice(export: Any) -> None:
    export[1]["annotations"][0]["result"][0]["value"] = {"text": ["First"]}


def another_project(export: Any) -> None:
    export[1]["data"] = {"text": "of something else"}


def no_task(export: Any) -> None:
    export[1] = {"vote": "First"}


MEND = "Mend the annotation in Label Studio, and export again."
ONCE = "Delete one of the two annotations in Label Studio, and export again."
BAD: dict[str, tuple[Callable[[Any], None], str]] = {
    "two answers": (twice, f"The annotator '3' answered 'a' twice, also in entry 1 of 'x.json'. {ONCE}"),
    "imported twice": (imported_twice, f"The annotator '3' answered 'a' twice, also in entry 3 of 'x.json'. {ONCE}"),
    "another page": (
        of_another_page,
        (
            "An answer of '3' in entry 1 of 'x.json' is to 'mood', which the sheet does not ask. "
            "Export the project whose labelling interface is the one that askance wrote."
        ),
    ),
    "two choices": (
        two_choices,
        f"The answer of '3' in entry 2 of 'x.json' to 'vote' is not one choice, but ['First', 'Tie']. {MEND}",
    ),
    "two results": (
        two_results,
        f"The answer of '3' in entry 2 of 'x.json' to 'vote' is not one choice, but ['First', 'Tie']. {MEND}",
    ),
    "no choice": (no_choice, f"The answer of '3' in entry 2 of 'x.json' to 'vote' is not one choice, but []. {MEND}"),
    "another project": (
        another_project,
        (
            "There is no field 'pair' in entry 2 of 'x.json', so it is not of a sheet of askance. "
            "Import the tasks that askance wrote, and export that project."
        ),
    ),
    "no task": (
        no_task,
        "There are no annotations in entry 2 of 'x.json'. Export the project from Label Studio as JSON or JSON-MIN.",
    ),
}


@pytest.mark.parametrize(("spoil", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_read_is_named(spoil: Callable[[Any], None], message: str, tmp_path: Path) -> None:
    write_tasks(tmp_path, TASKS_OF_TWO, [FIELD])
    export = exported(tmp_path, {3: lambda _: {"vote": "First"}})
    spoil(export)

    with pytest.raises(BadData) as caught:
        read_annotations(export, "x.json", key="pair", names=["vote"])
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "words", [{"choices": ["First", "Tie"]}, [{"choices": ["First"]}, {"choices": ["Tie"]}], None, 3], ids=str
)
def test_a_short_export_with_no_single_choice_is_named(words: object) -> None:
    export = [{**TASKS_OF_TWO[0], "id": 1, "vote": words, "annotator": 3, "annotation_id": 8}]

    with pytest.raises(BadData, match=r"^The answer of '3' in entry 1 of 'x.json' to 'vote' is not one choice"):
        read_annotations(export, "x.json", key="pair", names=["vote"])
