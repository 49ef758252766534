"""The address of records: a folder, found where none is named; a kind that nobody brings is refused."""

from __future__ import annotations

import pickle  # what is looked through is written here
from pathlib import Path

import pytest

from askance.errors import ConfigError, StoreError
from askance.models import Config, Engine
from askance.replay import Budget, find_address, open_records, without_password
from askance.workspace import Workspace

KINDS = {
    "redis": "redis://me:secret@db/0",
    "s3": "s3://bucket/records",
    "mine": "mine:records",
}


@pytest.mark.parametrize(("kind", "address"), KINDS.items(), ids=KINDS)
def test_an_address_of_an_unknown_kind_is_refused(
    kind: str, address: str, own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASKANCE_STORE", address)
    ways = (lambda: open_records(address), open_records, lambda: Engine().recorder.records, lambda: Workspace().records)
    for way in ways:
        with pytest.raises(StoreError) as caught:
            way()
        assert str(caught.value) == (
            f"Records cannot be kept at an address of the kind {kind!r}: no installed package brings such a store."
            " Known: 'postgres', 'postgresql'. Name a folder, such as '.askance'; one that has a colon in its name"
            " begins with './'."
        )
    assert list(own_place.iterdir()) == []


def test_an_address_that_is_no_folder_is_refused_in_the_settings(own_place: Path) -> None:
    (own_place / "askance.toml").write_text(f'store = "{KINDS["redis"]}"')

    with pytest.raises(ConfigError, match=r"^'store' in 'askance\.toml' names an address of the kind 'redis', and"):
        Config.find()


def test_an_address_travels_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = {
        "postgres://me:a@secret@db:5433/ads?schema=x": "postgres://me@db:5433/ads?schema=x",
        "postgres://me@db/ads?password=secret&schema=x": "postgres://me@db/ads?schema=x",
        "./folder:of@mine": "./folder:of@mine",
    }
    assert {address: without_password(address) for address in shown} == shown
    monkeypatch.setenv("ASKANCE_STORE", next(iter(shown)))
    assert b"secret" not in pickle.dumps(Engine())


def test_a_folder_may_have_a_colon_in_its_name(own_place: Path) -> None:
    for address in (Path("mine:records"), "./mine:records", own_place / "mine:records"):
        with open_records(address) as records:
            assert records.folder == own_place / "mine:records"


def test_a_budget_is_kept_with_the_records_by_its_name(own_place: Path) -> None:
    with open_records(own_place) as records:
        ledger = records.ledger("mine", Budget(calls=1))
        ledger.balance()
        ledger.close()

    assert (own_place / "budgets" / "mine.db").is_file()


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
        ([".askance/", "a/askance.toml"], "a/.askance"),
        (["a/.askance"], "a/b/.askance"),
    ],
    ids=[
        "here",
        "git",
        "pyproject",
        "askance-toml",
        "nearest-root",
        "store-first",
        "nearest-store",
        "nearest-settings",
        "file-no-store",
    ],
)
def test_the_store_is_found_upwards(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch, made: list[str], expected: str
) -> None:
    here = nowhere / "a" / "b"
    here.mkdir(parents=True)
    for name in made:
        (nowhere / name).mkdir() if name.endswith("/") else (nowhere / name).write_text("", encoding="utf-8")
    monkeypatch.chdir(here)
    assert find_address() == nowhere / expected


def test_the_environment_wins_over_what_is_found(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (nowhere / ".askance").mkdir()
    monkeypatch.setenv("ASKANCE_STORE", "elsewhere")
    assert find_address() == nowhere / "elsewhere"


def test_an_empty_variable_says_nothing(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASKANCE_STORE", "")
    assert find_address() == nowhere / ".askance"


def test_a_path_wins_over_the_environment(tmp_path: Path) -> None:
    assert find_address(tmp_path / "named") == tmp_path / "named"
