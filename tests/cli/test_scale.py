"""The commands that read a corpus by many workers: what they refuse before any worker begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from askance.cli.scale import workers_named
from askance.errors import UsageError
from askance.replay import Budget, Cost, SqliteLedger
from askance.scale import LocalWorkers, RayWorkers
from tests.cli.command import Command
from tests.faults.run import picture
from tests.scale.corpus import Corpus


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--address", "auto"), "`--address` and `--gpus` are for workers of Ray.\n  → Add `--ray`"),
        (("--mode", "live"), "so shards could not keep what was answered."),
        (("--options", "options.txt"), "`askance run verbalize` takes no --options."),
        (("--goal", "choose"), "`askance scale run verbalize` takes no --goal."),
    ],
    ids=["address", "live", "options", "goal"],
)
def test_options_that_go_with_no_others(words: tuple[str, ...], message: str, askance: Command, tmp_path: Path) -> None:
    ran = askance("scale", "run", "verbalize", "photo.jpg", "--out", str(tmp_path / "corpus"), "--vlm", "demo", *words)
    assert ran.code == 2
    assert message in ran.err
    assert not (tmp_path / "corpus").exists()


def test_a_table_without_the_column(askance: Command, tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"path": ["a.jpg"]}), tmp_path / "list.parquet")
    ran = askance(
        "scale", "run", "verbalize", str(tmp_path / "list.parquet"), "--out", str(tmp_path / "corpus"), "--vlm", "demo"
    )
    assert ran.code == 2
    assert (
        "has no column 'image'.\n  → Say which column has the pictures: --column image=NAME. It has 'path'" in ran.err
    )
    assert not (tmp_path / "corpus").exists()


@pytest.mark.parametrize("table", ["s3://pics/list.parquet", "https://example.org/list.csv"])
def test_a_table_at_an_address(table: str, askance: Command, tmp_path: Path) -> None:
    ran = askance("scale", "run", "verbalize", table, "--out", str(tmp_path / "corpus"), "--vlm", "demo")
    assert ran.code == 2
    assert f"The table '{table}' is not on this disk.\n  → Download it first." in ran.err


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:9", "There is no Ray cluster at '127.0.0.1:9': [Errno 111] Connection refused.\n  → `ray start"),
        ("ray://head:10001", "by which Ray Data does not run.\n  → Run the command on a machine of the cluster"),
    ],
)
def test_a_cluster_that_is_not_there(address: str, message: str, askance: Command, tmp_path: Path) -> None:
    (tmp_path / "cup.png").write_bytes(picture(0).data)
    words = ("--vlm", "demo", "--out", str(tmp_path / "corpus"), "--ray", "--address", address)
    ran = askance("scale", "run", "verbalize", str(tmp_path / "cup.png"), *words)
    assert ran.code == 2
    assert message in ran.err


def test_a_folder_that_is_no_corpus(askance: Command, tmp_path: Path) -> None:
    for words in (("watch", str(tmp_path), "--once"), ("merge", str(tmp_path), "--out", str(tmp_path / "run"))):
        ran = askance("scale", *words)
        assert (ran.code, "holds no corpus that was cut into shards" in ran.err) == (2, True)


def test_a_ledger_in_which_nothing_stands(askance: Command, tmp_path: Path) -> None:
    corpus = Corpus(url="http://127.0.0.1:9/v1", home=tmp_path).cut()
    assert corpus.ledger is not None
    corpus.ledger.touch()
    ran = askance("scale", "watch", corpus.place, "--once")
    assert (ran.code, "lost" in ran.out) == (0, False)


@pytest.mark.parametrize("ended", ["close", "kill"])
def test_calls_that_were_lost_are_said(ended: str, askance: Command, tmp_path: Path) -> None:
    """Two were under way when their worker ended."""
    corpus = Corpus(url="http://127.0.0.1:9/v1", home=tmp_path).cut()
    assert corpus.ledger is not None
    ledger = SqliteLedger(corpus.ledger, Budget(calls=10))
    ledger.reserve(Cost(calls=2))
    if ended == "close":
        ledger.close()
    else:  # as by a kill, without a word in the ledger
        (alive,) = corpus.ledger.parent.glob("*.alive")
        alive.unlink()
    ran = askance("scale", "watch", corpus.place, "--once")
    assert "\n2 calls lost with workers that died; so many may be paid twice.\n" in ran.out


@pytest.mark.parametrize("workers", ["many", "0", "ray:0", "ray:", "4:ray", "-1", ""])
def test_workers_that_nobody_knows(workers: str) -> None:
    with pytest.raises(UsageError, match=r"names no workers\. Write 4, ray or ray:4"):
        workers_named(workers)


def test_workers_by_name() -> None:
    assert workers_named("ray:4") == RayWorkers(count=4)
    local = workers_named("4")
    assert isinstance(local, LocalWorkers)
    assert local.count == 4
