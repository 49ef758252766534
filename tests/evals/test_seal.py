"""Seals: what this machine's run folder wrote is not checked again, and nothing else is spared."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from askance.errors import CassetteError
from askance.evals import RunFolder
from askance.evals.run_folder import records_of
from askance.evals.seal import has_seal
from askance.replay import MemoryStore, Record, cassette

ASKED = Record.make(
    "chat", {"model": {"provider": "p", "model": "m"}, "messages": []}, {"text": "a cup", "finish": "stop"}
)


@pytest.fixture
def folder(own_place: Path) -> Path:
    """A finished run with one record."""
    run = RunFolder(own_place / "run", {"chain": "verbalize"})
    run.finish(MemoryStore([ASKED]), also=[ASKED.key])
    return own_place / "run"


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Keys of records that are held against the schema."""
    keys: list[str] = []
    held = cassette.check_schema

    def check(form: Mapping[str, Any]) -> None:
        keys.append(form["key"])
        held(form)

    monkeypatch.setattr(cassette, "check_schema", check)
    return keys


def test_what_the_run_folder_wrote_is_not_checked_again(folder: Path, checked: list[str]) -> None:
    assert list(records_of(folder)) == [ASKED]
    assert checked == []


def test_a_copy_is_known_as_well(folder: Path, checked: list[str]) -> None:
    shutil.copytree(folder, folder.with_name("copy"))

    assert list(records_of(folder.with_name("copy"))) == [ASKED]
    assert checked == []


def test_a_file_that_somebody_changed_is_checked(folder: Path) -> None:
    file = folder / "calls.jsonl"
    file.write_text(file.read_text("utf-8").replace("a cup", "a mug"), "utf-8")
    assert not has_seal(file, folder / ".seal")

    file.write_text(
        json.dumps({**ASKED.canonical(), "response": {"text": ["\x1b[2J"], "finish": "stop"}}) + "\n", "utf-8"
    )
    with pytest.raises(CassetteError, match="is not of type 'string'"):
        len(records_of(folder))


def by_another_user(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder.with_name("another")))


def without_a_seal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".seal").unlink()


def by_its_digest(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".seal").write_text(sha256((folder / "calls.jsonl").read_bytes()).hexdigest(), "ascii")


def by_a_key_that_is_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.parents[1] / "config" / "askance" / "seal.key").write_bytes(b"")
    by_its_digest(folder, monkeypatch)


@pytest.mark.parametrize("made", [by_another_user, without_a_seal, by_its_digest, by_a_key_that_is_none])
def test_what_was_written_elsewhere_is_checked(
    folder: Path, checked: list[str], made: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    made(folder, monkeypatch)

    assert list(records_of(folder)) == [ASKED]
    assert checked == [ASKED.key]


def test_where_no_key_can_be_kept_a_run_has_no_seal(own_place: Path, checked: list[str]) -> None:
    (own_place.parent / "config").write_text("a file where the folder would be")
    RunFolder(own_place / "run", {}).finish(MemoryStore([ASKED]), also=[ASKED.key])

    assert not (own_place / "run" / ".seal").exists()
    assert list(records_of(own_place / "run")) == [ASKED]
    assert checked == [ASKED.key]


def test_where_nobody_knows_of_a_home_a_run_has_no_seal(own_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME")

    def home() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", home)
    RunFolder(own_place / "run", {}).finish(MemoryStore([ASKED]), also=[ASKED.key])

    assert not (own_place / "run" / ".seal").exists()


def test_the_key_is_its_owners_alone(folder: Path) -> None:
    key = folder.parents[1] / "config" / "askance" / "seal.key"

    assert key.stat().st_mode & 0o077 == 0
    assert [file.name for file in key.parent.iterdir()] == ["seal.key"]
