"""Tables and sentences on a terminal: no line is longer than it is wide, and no word is broken."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from askance.cli import columns, prompts
from askance.cli.columns import Columns, Line, Report, Section, aligned, filled, shortened, text_of
from tests.cli.command import Command, Workplace
from tests.cli.test_compare import OWN
from tests.cli.test_terminal import text
from tests.cli.test_terminal import watch as on_a_terminal
from tests.evals.numbers import run_of

ROWS = [
    ("figure", "first", "second", "verdict"),
    ("accuracy", "95.00", "5.00", "A is better"),
    ("f1", "1", "2", "tied"),
]


def test_numbers_stand_to_the_right_two_blanks_apart() -> None:
    assert [*aligned(ROWS)] == [
        "figure    first  second      verdict",
        "accuracy  95.00    5.00  A is better",
        "f1            1       2         tied",
    ]


def test_columns_that_have_no_room_stand_below_with_the_first_ones() -> None:
    assert [*aligned(ROWS, width=30)] == [
        "figure    first  second",
        "accuracy  95.00    5.00",
        "f1            1       2",
        "",
        "figure        verdict",
        "accuracy  A is better",
        "f1               tied",
    ]
    assert [*aligned(ROWS, width=34, keys=2)][4:] == [
        "figure    first      verdict",
        "accuracy  95.00  A is better",
        "f1            1         tied",
    ]


@pytest.mark.parametrize("width", [20, 33, 80])
def test_no_line_is_too_long(width: int) -> None:
    rows = [("a name that is very long indeed, and longer", *(f"{number:,}" for number in range(1000, 1009)))] * 2

    assert max(map(len, aligned(rows, width=width))) <= width


def test_lines_break_between_words_and_are_indented_alike() -> None:
    lines = filled("· one two three four five\n    six seven eight nine ten", width=20).split("\n")

    assert lines == ["· one two three four", "  five", "    six seven eight", "    nine ten"]
    assert filled("x" * 50, width=20) == "x" * 50
    assert filled("as long as it is, where no terminal is") == "as long as it is, where no terminal is"


def test_a_name_that_is_too_long_keeps_both_its_ends() -> None:
    assert shortened("openai:some-long-model-2024", 15) == "openai:…el-2024"
    assert shortened("short", 15) == "short"


COMMANDS = {
    "two runs": ("compare", "a", "b"),
    "three runs": ("compare", "a", "b", "c"),
    "table of runs": ("eval", "table", "a", "b", "c"),
    "tasks": ("eval", "list"),
    "options of a task": ("eval", "list", "whoops/captioning"),
    "prompts": ("prompts", "list"),
}


@pytest.fixture(scope="module")
def runs(workplace: Workplace) -> Workplace:
    with workplace.entered() as work:
        (work / "own.py").write_text(OWN, encoding="utf-8")
    for name, right in (("a", 19), ("b", 3), ("c", 11)):
        workplace.run("eval", "run", "own.py", "-T", f"right={right}", "--out", name)
    return workplace


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_what_commands_print_fits_the_terminal(
    runs: Workplace, own_place: Path, askance: Command, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    runs.copy_to(own_place)
    for module in (columns, prompts):
        monkeypatch.setattr(module, "terminal_width", lambda: 80)
    done = askance(*arguments)
    lines = done.out.splitlines()

    assert (done.code, [line for line in lines if len(line) > 80]) == (0, [])
    assert len(lines) > 3


def test_a_table_is_markdown_in_a_pipe_and_where_it_is_asked_for(own_place: Path) -> None:
    run_of(count=4, out="a")
    _, _, piped = on_a_terminal("eval", "table", "a", piped=True)
    _, asked, _ = on_a_terminal("eval", "table", "a", "--format", "markdown")
    _, drawn, _ = on_a_terminal("eval", "table", "a")

    assert re.search(r"\| run \| samples \|", piped)
    assert re.search(r"\| run \| samples \|", text(asked))
    assert "|" not in text(drawn)


def test_a_report_is_one_json_object_or_its_parts_below_each_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(columns, "terminal_width", lambda: 20)
    long = "A line of more than twenty columns."
    report = Report(lambda: {"n": 1}, lambda: [long, Line(long, 4), Columns(ROWS[::2]), ""], [long])

    report.print(as_json=True)
    as_json = capsys.readouterr()
    report.print(as_json=False)
    for_people = capsys.readouterr()

    assert as_json.out == '{"n": 1}\n'
    assert for_people.err == as_json.err == "· A line of more\n  than twenty\n  columns.\n"
    assert for_people.out == (
        "A line of more than\ntwenty columns.\n"
        "A line of more than\n    twenty columns.\n"
        "figure  first\nf1          1\n\nfigure  second\nf1           2\n\nfigure  verdict\nf1         tied\n\n"
    )


def test_a_report_without_parts_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Report(dict, list).print(as_json=False)

    assert capsys.readouterr() == ("", "")


def test_lines_that_do_not_break_are_left_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "terminal_width", lambda: 20)

    assert text_of(["one two three four five six"], breaks=False) == "one two three four five six"


def test_cells_of_a_section_break_where_a_line_would_be_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("cartoons", "705", "of 704 that are published"), ("pictures that are missing", "1", "5.jpeg")]
    monkeypatch.setattr(columns, "terminal_width", lambda: 40)

    assert text_of([Section("Found", rows)]).split("\n") == [
        "",
        "Found",
        "  cartoons         705  of 704 that are",
        "                        published",
        "  pictures that      1  5.jpeg",
        "  are missing",
    ]


def test_a_section_shows_its_first_rows() -> None:
    lines = text_of([Section("To mend", [(f"Row {number}.",) for number in range(20)])]).split("\n")

    assert (lines[2], lines[-2:]) == ("  Row 0.", ["  Row 11.", "  … and 8 more"])
