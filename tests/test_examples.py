"""The examples run as their first lines say."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from askance.cli import main
from askance.evals import compare
from askance.evals.analysis.pack import open_pack
from tests.scripted import PICTURE

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def run(name: str, *arguments: str) -> str:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_a_backend_of_ones_own_answers() -> None:
    assert run("own_backend.py", str(PICTURE)) == "A dark picture.\n"


def test_nodes_and_chains_are_wired_with_langchain() -> None:
    printed = run("ask_for_more.py", "demo", str(PICTURE))

    assert "The surface of cup mimics the texture of bricks, while retaining its original structure." in printed


@pytest.mark.parametrize("name", ["claims.yaml", "odd_or_not.py"])
def test_a_task_of_ones_own_is_run_as_its_first_lines_say(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("examples").symlink_to(EXAMPLES)
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    typed = [shlex.split(line)[1:] for line in re.findall(r"^[# ]*(askance .*)$", text, re.MULTILINE)]

    for words in typed:
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0

    assert [words[:2] for words in typed] == [["demo", "--copy"], ["eval", "run"]]
    assert re.search(r"^accuracy +100\.00 .*\n\n8 samples: 8 answered\.$", capsys.readouterr().out, re.MULTILINE)


def test_the_pack_is_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["replay", str(EXAMPLES / "demo.pack"), "--rerun", "--json"])
    found = json.loads(capsys.readouterr().out)

    assert (ended.value.code, found["sound"], found["differing_tables"]) == (0, True, [])
    assert [run["differences"] for run in found["runs"]] == [[]] * 7
    assert [run["again"] for run in found["runs"]] == [{"same": 7}] * 7


def test_the_pack_of_captions_is_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["replay", str(EXAMPLES / "newyorker.pack"), "--rerun", "--json"])
    found = json.loads(capsys.readouterr().out)

    assert (ended.value.code, found["sound"], found["differing_tables"]) == (0, True, [])
    assert [run["differences"] for run in found["runs"]] == [[]] * 6
    assert [run["again"] for run in found["runs"]] == [{"same": 8}] * 4 + [{"same": 16}, {"same": 8}]


def test_the_pack_of_regions_is_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["replay", str(EXAMPLES / "sherlock.pack"), "--rerun", "--json"])
    found = json.loads(capsys.readouterr().out)

    assert (ended.value.code, found["sound"], found["differing_tables"]) == (0, True, [])
    assert [run["differences"] for run in found["runs"]] == [[]] * 8
    assert [run["again"] for run in found["runs"]] == [{"same": 8}] * 5 + [{"same": 24}] + [{"same": 8}] * 2


def test_a_blind_model_says_the_same_of_another_picture() -> None:
    with open_pack(EXAMPLES / "demo.pack") as pack:
        runs = {run.path.name: run for run in pack.runs}
        for seen, swapped in (("arr-multi-image", "arr-multi-swapped"), ("mac-image", "mac-swapped")):
            (headline, *_) = compare(runs[seen], runs[swapped])
            assert headline.comparison.verdict == "tied"
    with open_pack(EXAMPLES / "newyorker.pack") as pack:
        runs = {run.path.name: run for run in pack.runs}
        (headline, *_) = compare(runs["matching-image"], runs["matching-swapped"])
        assert headline.comparison.verdict == "tied"
    with open_pack(EXAMPLES / "sherlock.pack") as pack:
        runs = {run.path.name: run for run in pack.runs}
        (headline, *_) = compare(runs["comparison-yes-no"], runs["comparison-swapped"])
        assert headline.comparison.verdict == "tied"
        interval = runs["comparison-yes-no"].figure("human accuracy").interval
        assert interval is not None
        assert interval.low < 0 < interval.high
