"""A run read from its folder: whole, half written, of another version, or something else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from askance.errors import Refused, UsageError
from askance.evals import Run, task_of
from tests.evals.numbers import run_of
from tests.evals.pictures import OPTIONS, chain_of, picture_run


def change(name: str, change_: dict[str, Any]) -> None:
    file = Path("run", name)
    form = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**form, **change_}), encoding="utf-8")


def test_a_run_is_what_its_folder_says() -> None:
    made = run_of()

    found = Run.open("run")

    assert (found.task, found.name, found.models, found.left) == ("numbers", "run", (), 0)
    assert (found.figures, found.notes, found.totals["samples"]) == (made.figures, made.notes, 6)
    assert [answer.sample.id for answer in found.answers] == ["00", "01", "02", "03", "04", "05"]
    assert [answer.score.values["accuracy"] for answer in found.answers if answer.score] == [0, 1, 0, 1, 0, 1]
    assert repr(found) == "Run('numbers', 'run', 6 samples)"


def test_a_figure_that_is_not_there_is_told() -> None:
    run_of()

    with pytest.raises(UsageError, match=r"The run 'run' has no figure 'f1'\. It has accuracy\."):
        Run.open("run").figure("f1")


def test_a_line_that_a_kill_tore_is_none() -> None:
    run_of()
    with Path("run/samples.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "06", "epo')

    assert len(Run.open("run").answers) == 6


MADE: dict[str, Any] = {"task": "x", "options": {}, "models": {}, "solver": {}, "epochs": 1}
"""The configuration of a run, without its samples."""
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "older": (
        {"format": 0, "askance": "0.0.1"},
        "has the format 0, of an older version, .* Open it with askance 0.0.1,",
    ),
    "newer": ({"format": 99, "askance": None}, "has the format 99, of a newer version, .* with the version of askance"),
    "no format": ({"format": None}, "describes no run: it has no format"),
    "pictures": ({"configuration": {"samples": []}}, r"configuration.samples is \[\], not a valid dictionary"),
    "models of pictures": ({"configuration": {"models": ["gpt"]}}, r'configuration.models\[0\] is "gpt", not'),
    "roles of pictures": ({"configuration": {"models": {"a": 3}}}, r"configuration.models\[0\] is 3, not a valid"),
    "configuration": ({"configuration": []}, r"'run/run.json' describes no run: configuration is \[\], not a valid"),
    "task": ({"configuration": {"task": 3}}, "describes no run: configuration.task is 3, not a valid string"),
    "models": (
        {"configuration": {"task": "x", "options": {}, "models": {"vlm": "gpt"}}},
        'configuration.models.vlm is "gpt", not a valid dictionary',
    ),
    "samples": ({"configuration": MADE}, "configuration.samples is missing"),
    "digest": ({"configuration": {**MADE, "samples": {"count": 6}}}, "configuration.samples.digest is missing"),
    "readers": ({"readers": None}, "describes no run: readers is null, not"),
    "figures": ({"figures": [{"metric": "x"}]}, r"figures\[0\].value is missing"),
    "counts": ({"totals": {"outcomes": {"answered": -1}}}, "totals.outcomes.answered is -1, not greater"),
    "huge": ({"left": 10**30}, "describes no run: it holds 100000000000000000…, a number of 31 digits"),
    "deep": (
        {"label": json.loads("[" * 200 + "]" * 200)},
        "it is nested deeper than 100 levels",
    ),
}


@pytest.mark.parametrize(("changes", "message"), WRONG.values(), ids=WRONG)
def test_what_is_no_run_of_today_is_told(changes: dict[str, Any], message: str) -> None:
    run_of()
    change("run.json", changes)

    with pytest.raises(UsageError, match=message) as caught:
        Run.open("run")
    assert caught.value.hint


NONE: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "it is no JSON (Expecting value, column 1)"),
    "half": (b'{"format": 1, "conf', "it is no JSON (Unterminated string starting at, column 15)"),
    "list": (b"[]", "it is not a JSON object"),
    "bottomless": (b"[" * 100_000, "it is nested deeper than 100 levels"),
    "endless": (b"1" * 5000, "it holds 111111111111111111…, a number of 5,000 digits"),
    "bytes": (b"\xff\xfe", "is no text in UTF-8"),
}


@pytest.mark.parametrize(("data", "message"), NONE.values(), ids=NONE)
def test_a_description_that_is_none_is_told(data: bytes, message: str) -> None:
    run_of()
    Path("run/run.json").write_bytes(data)

    with pytest.raises(UsageError, match=re.escape(message)):
        Run.open("run")


LINE: dict[str, Any] = {
    "id": "x", "epoch": 0, "outcome": "answered", "reason": None, "value": 1, "links": {}, "trace": {},
    "sample": {"id": "x", "group": "x", "image": None, "inputs": {}, "target": None, "tags": {}},
}  # fmt: skip
BROKEN: dict[str, tuple[Any, str]] = {
    "no JSON": ("{", "is no JSON (Expecting property name enclosed in double quotes, column 2)"),
    "no map": ([], "it is [], not a valid dictionary"),
    "no sample": ({**LINE, "sample": {"id": "x"}}, "sample.group is missing"),
    "epoch": ({**LINE, "epoch": "one"}, 'epoch is "one", not a valid integer'),
    "outcome": (
        {**LINE, "outcome": "great"},
        "outcome is \"great\", not 'answered'",
    ),
    "links": (
        {**LINE, "links": {"V": {"outcome": "answered", "calls": [1]}}},
        "links.V.calls[0] is 1, not a valid string",
    ),
    "cost": ({**LINE, "meta": {"cost": "much"}}, 'meta.cost is "much", not a valid number'),
    "tries": (
        {**LINE, "meta": {"tries": {"k": [{"at": 1}]}}},
        "meta.tries.k[0].seconds is missing",
    ),
}


@pytest.mark.parametrize(("line", "message"), BROKEN.values(), ids=BROKEN)
def test_a_line_that_is_none_is_told(line: Any, message: str) -> None:
    run_of()
    with Path("run/samples.jsonl").open("a", encoding="utf-8") as file:
        file.write((line if isinstance(line, str) else json.dumps(line)) + "\n")

    with pytest.raises(UsageError, match=rf"^Line 7 of 'run/samples.jsonl' .*{re.escape(message)}") as caught:
        _ = Run.open("run").answers
    assert caught.value.hint


def test_a_score_that_is_none_is_told() -> None:
    run_of()
    Path("run/scores.jsonl").write_text('{"id": "00", "epoch": 0, "values": [1]}\n', encoding="utf-8")

    with pytest.raises(
        UsageError, match=r"Line 1 of 'run/scores.jsonl' is no line of a run: values is \[1\], not a valid dictionary"
    ):
        _ = Run.open("run").answers


def test_a_run_over_pictures_is_a_run_without_scores(tmp_path: Path) -> None:
    run = picture_run(tmp_path / "run", tmp_path / "pictures", narration=Refused("not this one"))

    assert (run.of_pictures, run.noun, run.task, run.models) == (True, "picture", "action_reason", ("scripted",))
    assert (run.figures, run.finished is not None, run.totals["samples"]) == ((), True, 3)
    first = run.answers[0]
    name = (tmp_path / "pictures" / "00.png").as_posix()
    assert (first.sample.id, first.sample.inputs, first.score) == (name, {"options": list(OPTIONS)}, None)
    assert first.prediction.links["narration"]["outcome"] == "refused"
    assert len(run.unanswered()) == 3
    assert all(run.records.get(key) is not None for key in first.keys)


def test_prompts_are_read_from_the_folder_and_from_nowhere_else(tmp_path: Path) -> None:
    run = picture_run(tmp_path / "run", tmp_path / "pictures", count=1)
    secret = tmp_path / "secret.prompt"
    secret.write_text("secret", encoding="utf-8")
    (run.path / "prompts").mkdir(exist_ok=True)
    (run.path / "prompts" / "objects.json.prompt").unlink(missing_ok=True)
    (run.path / "prompts" / "objects.json.prompt").symlink_to(secret)
    form = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    form["configuration"]["prompts"]["../../secret.prompt"] = "0" * 64
    (run.path / "run.json").write_text(json.dumps(form), encoding="utf-8")

    assert "secret" not in Run.open(run.path).prompts.values()


def test_a_run_over_pictures_has_no_task(tmp_path: Path) -> None:
    run = picture_run(tmp_path / "run", tmp_path / "pictures", count=1)

    with pytest.raises(UsageError, match="is of pictures that nobody scores: it has no task") as caught:
        task_of(run)
    assert "askance eval run" in (caught.value.hint or "")


def test_readings_become_a_run_that_lies_nowhere(tmp_path: Path) -> None:
    run = picture_run(tmp_path / "run", tmp_path / "pictures", count=2)
    paths = [Path(answer.sample.id) for answer in run.answers]

    read = Run.of_readings(
        chain_of().invoke({"image": path, "name": path.as_posix(), "options": OPTIONS}) for path in paths
    )

    assert [(each.sample, each.prediction) for each in read.answers] == [
        (each.sample, each.prediction) for each in run.answers
    ]
