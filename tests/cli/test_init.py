from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import ROOT, Command


def test_what_it_says_to_type_runs_offline(askance: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    made = askance("init", "a project")
    commands = ("  cd ", "  askance ", "  python ")
    typed = [shlex.split(line) for line in made.out.splitlines() if line.startswith(commands)]
    assert [words[:2] for words in typed] == [
        ["cd", "a project"],
        ["askance", "run"],
        ["askance", "eval"],
        ["askance", "report"],
        ["python", "one_picture.py"],
    ]

    monkeypatch.chdir(typed[0][1])
    read, evaluated, report = (askance(*words[1:]) for words in typed[1:4])

    assert [done.code for done in (made, read, evaluated, report)] == [0, 0, 0, 0]
    assert "\n  argues for  2. I should drink Mason's Roast " in read.out
    assert "\n8 samples: 8 answered.\n" in evaluated.out
    assert "hand-written" in evaluated.err
    assert Path("report.html").is_file()
    assert script(typed[4][1]).startswith("The surface of cup mimics the texture of bricks")
    assert max(map(len, made.out.splitlines())) <= 80


def script(name: str) -> str:
    """What a Python file of the working directory prints."""
    done = subprocess.run(
        [sys.executable, "-c", f"import runpy, sys; sys.path.append({str(ROOT)!r}); runpy.run_path({name!r})"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout


def test_nothing_is_written_over(askance: Command, own_place: Path) -> None:
    first = askance("init")
    again = askance("init", ".")
    Path("askance.toml").write_text('vlm = "mine"\n', encoding="utf-8")
    differs = askance("init")
    Path("half").mkdir()
    Path("half/claims.yaml").symlink_to(own_place / "elsewhere")
    linked = askance("init", "half")

    assert (first.code, again.code, again.out) == (0, 0, first.out)
    assert "  cd " not in first.out
    assert (differs.code, differs.err) == (
        2,
        "askance: 'askance.toml' is there already and differs.\n  → Name another folder.\n",
    )
    assert Path("askance.toml").read_text(encoding="utf-8") == 'vlm = "mine"\n'
    assert (linked.code, [each.name for each in Path("half").iterdir()]) == (2, ["claims.yaml"])
    assert not Path("elsewhere").exists()


def test_a_file_is_no_place_for_a_project(askance: Command) -> None:
    Path("notes").write_text("", encoding="utf-8")

    done = askance("init", "notes")

    assert (done.code, done.err.splitlines()[0]) == (2, "askance: 'notes' is no folder.")


def test_nothing_is_written_through_a_link(askance: Command, own_place: Path) -> None:
    (own_place / "precious").mkdir()
    (own_place / "new").mkdir()
    (own_place / "new" / "pictures").symlink_to(own_place / "precious")
    done = askance("init", "new")

    assert done.code == 2
    assert done.err == (
        "askance: 'new/pictures' is a link, and nothing is written through it.\n"
        "  → Take it away, or name another folder.\n"
    )
    assert [*(own_place / "precious").iterdir()] == []
    assert [each.name for each in (own_place / "new").iterdir()] == ["pictures"]


def test_where_a_folder_below_is_a_file_nothing_is_written(askance: Command, own_place: Path) -> None:
    (own_place / "new").mkdir()
    (own_place / "new" / "pictures").write_text("x")
    done = askance("init", "new")

    assert (done.code, done.err) == (
        2,
        "askance: 'new/pictures' is no folder.\n  → Take it away, or name another folder.\n",
    )
    assert [each.name for each in (own_place / "new").iterdir()] == ["pictures"]
