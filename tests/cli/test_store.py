"""`askance store`: a store is copied into another and read back."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command import Command


def test_a_store_is_copied_by_its_address_or_as_a_cassette(askance: Command, own_place: Path) -> None:
    askance("demo", "--copy", "ads")
    askance("run", "ask", "What is odd here?", "ads/brick-cup.jpg", "--vlm", "demo", "--store", "one")
    copied = askance("store", "copy", "one", "two")
    askance("cache", "export", "all.jsonl", "--store", "two")
    back = askance("store", "copy", "all.jsonl", "three")

    assert copied.code == back.code == 0
    assert "copied to" in copied.out
    digest = copied.out.split("sha256 ")[1].split(",")[0]
    assert f"sha256 {digest}, equal to that of" in back.out
    assert askance("store", "copy", "one", "two").out.startswith("0 records copied to")


def test_what_cannot_be_copied_is_named(askance: Command, own_place: Path) -> None:
    (own_place / "all.jsonl").touch()
    nowhere = askance("store", "copy", "nowhere", "two")
    cassette = askance("store", "copy", "one", "all.jsonl")

    assert (nowhere.code, cassette.code) == (2, 2)
    assert "There is no store and no cassette 'nowhere'." in nowhere.err
    assert not (own_place / "two").exists()
