"""`askance store`: a store is copied into another and read back."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command import Command


def test_a_store_is_copied_by_its_address_or_as_a_cassette(askance: Command, own_place: Path) -> None:
    askance("demo", "--copy", "ads")
    askance("run", "verbalize", "ads/brick-cup.jpg", "--vlm", "demo", "--store", "one")
    copied = askance("store", "copy", "one", "two")
    askance("cache", "export", "all.jsonl", "--store", "two")
    back = askance("store", "copy", "all.jsonl", "three")

    assert copied.code == back.code == 0
    assert copied.out.startswith("5 records copied to")
    digest = copied.out.split("sha256 ")[1].split(",")[0]
    assert f"sha256 {digest}, equal to that of" in back.out
    again = askance("store", "copy", "one", "two").out
    assert again.startswith("0 records copied to")
    assert "5 were there." in again


def test_what_cannot_be_copied_is_named(askance: Command, own_place: Path) -> None:
    (own_place / "all.jsonl").touch()
    (own_place / "run").mkdir()
    nowhere, no_store = (askance("store", "copy", name, "two") for name in ("nowhere", "run"))
    cassette = askance("store", "copy", "one", "all.jsonl")

    assert (nowhere.code, no_store.code, cassette.code) == (2, 2, 2)
    assert "nowhere' holds no records." in nowhere.err
    assert "run' holds no records." in no_store.err
    assert not (own_place / "two").exists()
