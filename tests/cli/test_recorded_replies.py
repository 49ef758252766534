"""`askance eval run -T answers=FILE`: a run over replies that others recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import Command
from tests.evals.newyorker.recorded import IDS, LABELS, as_json, right

TASK = '''"""A task of the tests."""

from tests.evals.newyorker.recorded import Captions


class Mine(Captions):
    """Which of five captions was written for a cartoon."""

    name = "mine/captions"
'''


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a task and a file of replies, of which one cannot be read, and with a model in its settings."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(TASK, encoding="utf-8")
    Path("askance.toml").write_text('vlm = "openai:gpt-4o"\n', encoding="utf-8")
    as_json(Path("r.json"), {name: right(n) if n else "It could be B or D." for n, name in enumerate(IDS)})
    return tmp_path


@pytest.mark.usefixtures("place")
def test_a_run_needs_no_model_and_no_key(askance: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    words = ("eval", "run", "mine.py@mine/captions", "-T", "answers=r.json", "--out", "run")
    planned = askance(*words, "--plan")
    assert planned.code == 0
    assert "0 calls: 0 on record, 0 to be made" in planned.out
    done = askance(*words)
    assert done.code == 1
    assert "0 calls made" in done.err
    assert "-T reading=" in done.err
    assert "--retry" not in done.err
    again = askance("eval", "score", "run", "--task", "mine.py@mine/captions")
    assert again.out.splitlines()[1].split()[:2] == ["accuracy", "80.00"]


@pytest.mark.usefixtures("place")
def test_what_cannot_be_is_said(askance: Command) -> None:
    words = ("eval", "run", "mine.py@mine/captions", "--out", "run")
    done = askance(*words, "-T", "answers=none.json")
    assert (done.code, "There is no file" in done.err) == (2, True)
    done = askance(*words, "-T", "answers=r.json", "--vlm", "openai:gpt-4o")
    assert (done.code, "Recorded replies take the place of models" in done.err) == (2, True)
    done = askance(*words, "-T", "reading=official")
    assert (done.code, "a model is asked" in done.err) == (2, True)
    assert not Path("run").exists()


@pytest.mark.usefixtures("place")
def test_a_reading_of_its_own_makes_a_run_of_its_own(askance: Command) -> None:
    as_json(Path("r.json"), {name: f"Therefore, the answer is {LABELS[n]}" for n, name in enumerate(IDS)})
    for reading, value in (("ours", "100.00"), ("official", "0.00"), ("leaderboard", "100.00")):
        done = askance("eval", "run", "mine.py@mine/captions", "-T", "answers=r.json", "-T", f"reading={reading}")
        assert done.out.splitlines()[1].split()[:2] == ["accuracy", value]
    assert len([*Path("runs").iterdir()]) == 3
