"""Groups of tests: each slow test is of one, and none runs longer than it may; the quick ones go by rooms."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.slow import groups
from tests.slow.groups import GROUPS, ROOT, groups_in, held, main, selection

SLOW = "pytest.mark" + ".slow"  # in pieces, or this file would be taken for a slow one


def astray(text: str) -> set[str | None]:
    """What the marks of a file name, unless it is one group that there is."""
    named = set(groups_in(text))
    return named if named - GROUPS.keys() or len(named) > 1 else set()


def test_each_slow_test_is_of_one_group() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")}
    marked = {path for path, text in texts.items() if groups_in(text) and path != Path(groups.__file__)}

    assert {str(path): astray(texts[path]) for path in marked if astray(texts[path])} == {}
    assert {path for path in marked if not path.name.startswith("test_")} == set()


@pytest.mark.parametrize(
    "text",
    [SLOW, f"@{SLOW}()", f'{SLOW}(group="nobody")', f'{SLOW}(group="pages")\n{SLOW}(group="vllm")'],
    ids=["none", "empty", "unknown", "two"],
)
def test_a_mark_without_one_group_is_seen(text: str) -> None:
    assert astray(text)


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_has_tests_and_loads_their_files_alone(group: str) -> None:
    files = [word for word in selection(group) if word.endswith(".py")]

    assert files
    assert [file for file in files if not Path(file).is_file()] == []


def test_all_groups_leave_time_for_the_rest_of_the_gate() -> None:
    assert sum(group.cap for group in GROUPS.values()) <= 82 * 60


def test_what_takes_longer_than_its_cap_is_stopped_with_all_that_it_started(tmp_path: Path) -> None:
    mark = tmp_path / "child"
    child = f"import os, pathlib, time; pathlib.Path({str(mark)!r}).write_text(str(os.getpid())); time.sleep(60)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    begun = time.monotonic()

    ended, seconds = held([sys.executable, "-c", parent], cap=1)

    assert ended == "stopped: over the cap of 1 s"
    assert 1 <= seconds <= time.monotonic() - begun < 20
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


def test_the_end_names_what_did_not_pass_and_the_cap(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = {"pages": (f"stopped: over the cap of {GROUPS['pages'].cap} s", 181.0), "wheel": ("passed", 30.0)}
    monkeypatch.setattr(groups, "run", said.__getitem__)

    with pytest.raises(SystemExit) as raised:
        main(["pages", "wheel"])

    assert str(raised.value) == (
        f"Not passed: pages (stopped: over the cap of {GROUPS['pages'].cap} s). "
        "One of them alone: make test-slow GROUP=pages"
    )
    assert "wheel          30 s of " in capsys.readouterr().out


def test_an_unknown_group_is_told_the_others() -> None:
    with pytest.raises(SystemExit, match=r"There is no group 'page' of slow tests\. Choose from pages, "):
        main(["page"])


@pytest.mark.parametrize(
    ("room", "tests"),
    [
        ("replay", "tests/replay"),
        ("evals/whoops", "tests/evals/whoops"),
        ("documents", "tests/test_documents.py"),
        ("replays", "tests/replays"),
    ],
)
def test_a_room_is_a_folder_of_tests_or_a_file(room: str, tests: str) -> None:
    # Under `make test` it would also print which folder it leaves.
    command = ["make", "--no-print-directory", "-n", "test", f"ROOM={room}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.splitlines()[-1].split()[-1] == tests


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="one process runs all of it")
def test_a_file_stays_on_one_core() -> None:
    # pytest-xdist hands tests out by what stands behind the `@`; where it is lost, groups are ignored without a word.
    assert os.environ["PYTEST_CURRENT_TEST"].endswith("@tests/test_groups.py (call)")
