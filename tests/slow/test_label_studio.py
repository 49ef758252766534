"""What goes to Label Studio and what the tests take for its exports is held against Label Studio's own package."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from askance.evals import SampleQuestion
from askance.evals.judges import AnswerPair, AnswerPairs, write_label_sheet
from askance.evals.judges.label_sheet import SheetPurpose
from askance.evals.negatives import draw_sheet, write_sheet
from askance.images import Image
from tests import label_studio
from tests.evals.negatives.sets import hostile_set, symmetrical
from tests.scripted import PICTURE
from tests.slow import environments

pytestmark = pytest.mark.slow(group="wheel")

READ = """\
import json, sys
from pathlib import Path
from label_studio_sdk.converter import Converter
from label_studio_sdk.label_interface import LabelInterface

config = Path("label-studio.xml").read_text("utf-8")
interface = LabelInterface(config)
interface.validate()
export = json.loads(Path("export.json").read_text("utf-8"))
tasks = json.loads(Path("label-studio.json").read_text("utf-8"))
Converter(config, ".", download_resources=False).convert("export.json", "short", "JSON_MIN", is_dir=False)
wrong = {"result": [{**export[0]["annotations"][0]["result"][0], "value": {"choices": ["Other"]}}]}
print(json.dumps({
    "tasks": [interface.validate_task(each) for each in tasks],
    "lacking": interface.validate_task({"data": {}}),
    "annotations": [interface.validate_annotation(made) for task in export for made in task["annotations"]],
    "wrong": interface.validate_annotation(wrong),
    "short": json.loads(Path("short/result.json").read_text("utf-8")),
}))
"""
HOSTILE = '<Choice value="Yes"/> & $candidate {{idx}} ]]> \u202e'


@pytest.fixture(scope="module")
def labelling_python() -> Path:
    return environments.environment("labelling", environments.LABELLING)


def held_against(python: Path, folder: Path, export: list[dict[str, Any]]) -> None:
    """Tasks, page, answers and both exports are what Label Studio's package takes them for."""
    label_studio.write(folder / "export.json", export)
    done = subprocess.run([python, "-c", READ], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])

    assert {*found["tasks"]} == {*found["annotations"]} == {True}
    assert (found["lacking"], found["wrong"]) == (False, False)
    assert found["short"] == label_studio.shortened(export)


def test_a_sheet_of_negatives(labelling_python: Path, tmp_path: Path) -> None:
    sheet = draw_sheet([*symmetrical(4), *hostile_set(HOSTILE)])
    write_sheet(sheet, tmp_path, images=lambda _: Image.from_path(PICTURE), to="label-studio")
    account = {"id": 1, "email": "ann@example.org"}
    export = label_studio.exported(
        tmp_path,
        {7: lambda task: {"answer_s01": "Right", "answer_s02": "Cannot tell"}, 8: lambda task: {"answer_s02": "Wrong"}},
    )
    export[0]["annotations"] += [
        label_studio.annotation(55, account, {"answer_s01": "Wrong"}),
        label_studio.annotation(56, 9, None),
    ]
    export[1]["annotations"] = []

    held_against(labelling_python, tmp_path, export)


@pytest.mark.parametrize(("purpose", "words"), [("card", {"verdict": "Yes"}), ("prefer", {"vote": "Tie"})])
def test_a_sheet_of_pairs(labelling_python: Path, tmp_path: Path, purpose: SheetPurpose, words: dict[str, str]) -> None:
    pairs = tuple(
        AnswerPair(id=f"s{number}", group="g", a=f"a {HOSTILE}", b=f"b {HOSTILE}", question=SampleQuestion(HOSTILE, ""))
        for number in range(3)
    )
    write_label_sheet(AnswerPairs(task="t", names=("a", "b"), pairs=pairs), tmp_path, purpose=purpose)

    held_against(labelling_python, tmp_path, label_studio.exported(tmp_path, {1: lambda _: words}))
