from __future__ import annotations

from pathlib import Path

import pytest

from askance.replay import find_store


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("ASKANCE_STORE")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ([], "a/b/.askance"),
        (["a/.git/"], "a/.askance"),
        (["a/pyproject.toml"], "a/.askance"),
        (["a/askance.toml"], "a/.askance"),
        ([".git/", "a/b/pyproject.toml"], "a/b/.askance"),
        ([".askance/", "a/.git/"], ".askance"),
        ([".askance/", "a/.askance/"], "a/.askance"),
        (["a/.askance"], "a/b/.askance"),
    ],
    ids=["here", "git", "pyproject", "askance-toml", "nearest-root", "store-first", "nearest-store", "file-no-store"],
)
def test_the_store_is_found_upwards(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch, made: list[str], expected: str
) -> None:
    here = nowhere / "a" / "b"
    here.mkdir(parents=True)
    for name in made:
        (nowhere / name).mkdir() if name.endswith("/") else (nowhere / name).write_text("", encoding="utf-8")
    monkeypatch.chdir(here)
    assert find_store() == nowhere / expected


def test_the_environment_wins_over_what_is_found(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (nowhere / ".askance").mkdir()
    monkeypatch.setenv("ASKANCE_STORE", "elsewhere")
    assert find_store() == nowhere / "elsewhere"


def test_an_empty_variable_says_nothing(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASKANCE_STORE", "")
    assert find_store() == nowhere / ".askance"


def test_a_path_wins_over_the_environment(tmp_path: Path) -> None:
    assert find_store(tmp_path / "named") == tmp_path / "named"
