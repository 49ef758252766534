from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from askance.errors import BadData
from askance.evals.judges import Label, read_labels
from askance.evals.judges.labels import group_of

HEAD = "reference,candidate,verdict"


def write(text: str, name: str = "labels.csv") -> Path:
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_csv_file_is_read_whole() -> None:
    head = "\ufeffID, Reference,candidate,votes,verdict,group,question,note\n"
    rows = 's1,"a, b","x\ny",true;;FALSE;yes,,g,Why?,?\n\ns1,a,z,,no,,,\n,b,z,"[true, null]",,,,\n'

    labels = read_labels(write(f"{head}{rows}"))

    assert labels.rows == (
        Label(
            reference="a, b",
            candidate="x\ny",
            verdict=True,
            votes=(True, None, False, True),
            question="Why?",
            group="g",
            id="s1",
        ),
        Label(reference="a", candidate="z", verdict=False, group="s1", id="s1"),
        Label(reference="b", candidate="z", verdict=True, votes=(True, None), group=group_of("b")),
    )
    assert (labels.name, labels.digest) == ("labels.csv", sha256(Path("labels.csv").read_bytes()).hexdigest())
    assert labels.notes == ("Columns of the labels that are not read: note.",)


def test_a_jsonl_file_is_read_whole() -> None:
    lines = '{"reference": "a", "candidate": "b", "votes": [true, false, null], "verdict": true, "group": 7}\n\n'
    lines += '{"reference": "a", "candidate": "c", "verdict": 0}\n'

    assert read_labels(write(lines, "labels.jsonl")).rows == (
        Label(reference="a", candidate="b", verdict=True, votes=(True, False, None), group="7"),
        Label(reference="a", candidate="c", verdict=False, group=group_of("a")),
    )


def test_votes_that_tie_are_no_verdict() -> None:
    labels = read_labels(write('reference,candidate,votes\na,b,true|false\na,c,"true,true"\na,d,no\n'))

    assert [row.verdict for row in labels.rows] == [None, True, False]
    assert labels.notes == ("Pairs whose votes tie: 1; they count among people alone, and the judge is not asked.",)


@pytest.mark.parametrize(
    ("verdict", "note"),
    [
        ("true", "All labels are true: there is no specificity, and neither κ nor a corrected rate says anything."),
        ("false", "All labels are false: there is no sensitivity, and neither κ nor a corrected rate says anything."),
    ],
)
def test_one_class_is_said(verdict: str, note: str) -> None:
    assert read_labels(write(f"{HEAD}\na,b,{verdict}\na,c,{verdict}\n")).notes == (note,)


COLUMNS = "Columns: reference, candidate, verdict (true or false) or votes (true;false;true); question, group and id."
QUOTES = "A field with a comma or a line break in it stands in double quotes."
BROKEN = {
    "empty": ("", f"The label file 'labels.csv' holds no pairs. {COLUMNS}"),
    "header alone": (f"{HEAD}\n\n", f"The label file 'labels.csv' holds no pairs. {COLUMNS}"),
    "no candidate": (
        "reference,answer,verdict\na,b,true\n",
        f"The label file 'labels.csv' lacks candidate; it has 'reference', 'answer', 'verdict'. {COLUMNS}",
    ),
    "neither": (
        "reference,group\na,b\n",
        "The label file 'labels.csv' lacks candidate and verdict or votes; it has 'reference', 'group'. " + COLUMNS,
    ),
    "blank reference": (
        f"{HEAD}\na,b,true\n , b,true\n",
        "The reference in line 3 of 'labels.csv' is empty. Leave out pairs that there is nothing to judge of.",
    ),
    "another word": (
        f"{HEAD}\na,b,maybe\n",
        "'maybe' in line 2 of 'labels.csv' is no verdict. Verdicts: true, yes, 1, false, no, 0.",
    ),
    "no verdict": (
        f"{HEAD}\na,b,\n",
        f"There is neither a verdict nor a vote in line 2 of 'labels.csv'. {COLUMNS}",
    ),
    "too many cells": (
        f"{HEAD}\na,b,c,true\n",
        "The file 'labels.csv', line 2: 4 fields, and the first line names 3. " + QUOTES,
    ),
    "quote left open": (
        f'{HEAD}\n"a,b,true\n',
        "The file 'labels.csv' ends within a quoted field. It is cut off, or a quotation mark is missing.",
    ),
    "all tied": (
        "reference,candidate,votes\na,b,true;false\n",
        (
            "The votes of all pairs tie, so there is no label to hold a judge against. "
            "Ask one more person about them, or give a `verdict`."
        ),
    ),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN)
def test_what_cannot_be_used_is_named(text: str, message: str) -> None:
    with pytest.raises(BadData) as caught:
        read_labels(write(text))

    assert str(caught.value) == message


LINES = {
    "no JSON": ("{", "Line 1 of 'labels.jsonl' is no JSON. Give one object a line."),
    "no object": ("[]", f"Line 1 of 'labels.jsonl' is no JSON object. {COLUMNS}"),
    "votes of another kind": (
        '{"reference": "a", "candidate": "b", "votes": {"x": 1}}',
        "The votes in line 1 of 'labels.jsonl' are no list: {'x': 1}. Such as true;false;true.",
    ),
    "number": (
        '{"reference": "a", "candidate": "b", "verdict": 1.0}',
        "1.0 in line 1 of 'labels.jsonl' is no verdict. Verdicts: true, yes, 1, false, no, 0.",
    ),
    "list of references": (
        '{"reference": ["a"], "candidate": "b", "verdict": 1}',
        "The reference in line 1 of 'labels.jsonl' is no text: ['a']. Make it a text.",
    ),
}


@pytest.mark.parametrize(("text", "message"), LINES.values(), ids=LINES)
def test_a_line_that_cannot_be_used_is_named(text: str, message: str) -> None:
    with pytest.raises(BadData) as caught:
        read_labels(write(text, "labels.jsonl"))

    assert str(caught.value) == message


def test_what_is_no_text_or_not_there_is_named() -> None:
    Path("labels.csv").write_bytes(b"\xff\xfe")

    with pytest.raises(BadData, match=r"^The label file 'labels\.csv' is not UTF-8 text\."):
        read_labels("labels.csv")
    with pytest.raises(BadData, match=r"^There is no file 'none\.csv'"):
        read_labels("none.csv")


def test_a_group_holds_no_words_of_its_reference() -> None:
    assert group_of("Fish live in water.") == "reference 553df762154a"
