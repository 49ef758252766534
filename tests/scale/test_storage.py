"""A corpus at an address of storage: shards are read on the disk of a worker, and uploaded from there."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from errno import ENOSPC
from multiprocessing import Pipe
from multiprocessing.connection import wait
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir
from typing import Any

import pytest

from askance.chains import action_reason
from askance.errors import AuthError, MissingExtra, StoreError, UsageError
from askance.evals import Run
from askance.evals.listed_picture import ListedPicture
from askance.models import Engine, get_model
from askance.replay import Budget, MemoryStore
from askance.scale import ShardedCorpus, ShardReader, cut_corpus, merge_corpus, status_of
from askance.scale import storage as places
from askance.scale.storage import LOCK, Storage
from tests import batch_client
from tests.batch_server import BatchServer, Step, When
from tests.faults.run import CALLS, QUICK, answer, asked_twice, picture
from tests.scale.corpus import Corpus, Here, same_answers
from tests.servers import FakeEndpoint, Reply, error


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "SETTLED", 0.02)
    monkeypatch.setattr(places, "BEAT", 0.05)
    monkeypatch.setattr(places, "EXPIRED", 0.5)


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint(lambda seen: answer(seen.json)) as endpoint:
        yield endpoint


def at_address(endpoint: FakeEndpoint, home: Path) -> Corpus:
    return Corpus(url=endpoint.url, home=home, pictures=6, shards=3, place=(home / "bucket" / "ads").as_uri())


def test_shards_at_an_address_are_the_run_of_one_process(endpoint: FakeEndpoint, tmp_path: Path) -> None:
    corpus = at_address(endpoint, tmp_path)
    assert corpus.read(Here()).failed == ()
    shards = ShardedCorpus(str(corpus.place))
    status = status_of(shards)
    assert (status.read, status.done, status.outcomes, status.calls) == (6, 3, {"answered": 6}, 6 * CALLS)
    assert status.bytes_per_picture is not None
    assert status.bytes_per_picture > 1000
    assert not [*(tmp_path / "store").rglob("samples.jsonl")], "what is done takes no room on the disk of a worker"
    assert shards.storage.read(LOCK) is None

    merge_corpus(shards, tmp_path / "merged")
    assert same_answers(tmp_path / "merged", corpus.alone())
    ours, theirs = Run.open(tmp_path / "merged"), Run.open(corpus.alone())
    assert [*ours.records.keys()] == [*theirs.records.keys()]
    asked = len(endpoint.requests)
    assert corpus.read(Here()).waiting == 0, "all of it has receipts"
    assert len(endpoint.requests) == asked


@pytest.mark.parametrize("place", ["address", "folder"])
def test_a_machine_that_is_lost_with_its_disk(endpoint: FakeEndpoint, tmp_path: Path, place: str) -> None:
    """What it uploaded, or copied into the folder of the shard, is not asked again on the next machine."""
    corpus = replace(at_address(endpoint, tmp_path), shards=1)
    if place == "folder":
        corpus = replace(corpus, place=None)
    replace(corpus, budget=Budget(calls=5 * CALLS), concurrency=1).read(Here())
    status = status_of(ShardedCorpus(corpus.place or corpus.out))
    assert 1 <= status.read < 6
    assert [each.shard for each in status.under_way] == [0]
    before = len(endpoint.requests)
    rmtree(tmp_path / "store")
    assert replace(corpus, store=tmp_path / "elsewhere").read(Here()).failed == ()
    assert asked_twice(endpoint) <= before - status.read * CALLS
    merge_corpus(ShardedCorpus(corpus.place or corpus.out), tmp_path / "merged")
    assert same_answers(tmp_path / "merged", corpus.alone())


def test_a_batch_is_not_sent_again_by_another_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first machine is lost while it waits for its first batch."""
    monkeypatch.setattr("askance.models.batch.batches.BatchPolicy", lambda: batch_client.QUICK)
    lost = [error(401, "no key")]

    def fault(step: Step, _when: When) -> Reply | None:
        return lost.pop() if step == "poll" and lost else None

    with BatchServer(tmp_path / "endpoint", answer=batch_client.answer, fault=fault) as server:
        place = (tmp_path / "bucket").as_uri()
        corpus = Corpus(url=server.url, home=tmp_path, pictures=2, shards=1, place=place)
        with pytest.raises(AuthError):
            corpus.read(Here(), batch=True)
        assert len(server.batches) == 1
        assert replace(corpus, store=tmp_path / "elsewhere").read(Here(), batch=True).failed == ()
        assert (len(server.batches), set(server.made.values())) == (3, {1})
    assert not [*(tmp_path / "bucket").glob("shards/*/batches")], "what has ended is not fetched by a third machine"


def test_a_line_whose_records_are_lost_is_asked_again(endpoint: FakeEndpoint, tmp_path: Path) -> None:
    """As on a machine that was lost between two copies of its records."""
    corpus = Corpus(url=endpoint.url, home=tmp_path, pictures=6, shards=1)
    replace(corpus, budget=Budget(calls=5 * CALLS), concurrency=1).read(Here())
    rmtree(tmp_path / "store")
    (shard,) = status_of(ShardedCorpus(corpus.out)).under_way
    assert shard.read
    (ShardedCorpus(corpus.out).folder(0) / "calls.jsonl").unlink()
    corpus.read(Here())
    merge_corpus(ShardedCorpus(corpus.out), tmp_path / "merged")
    assert [*Run.open(tmp_path / "merged").records.keys()] == [*Run.open(corpus.alone()).records.keys()]


def test_records_are_kept_while_a_shard_is_read(tmp_path: Path) -> None:
    kept = list[int]()

    def look() -> str | None:
        shards = ShardedCorpus(str(corpus.place))
        kept.extend(read for _, read, _ in shards.under_way())
        return None

    with FakeEndpoint(lambda seen: look() or answer(seen.json), delay=0.05) as endpoint:
        corpus = replace(at_address(endpoint, tmp_path), shards=1, concurrency=2)
        corpus.read(Here(), kept_every=0.05)
    assert any(0 < read < 6 for read in kept)


def test_two_commands_on_one_address(tmp_path: Path) -> None:
    """The second is refused while the first lives, and goes on where that has ended without a word."""
    storage = Storage((tmp_path / "bucket").as_uri())
    with storage.locked(), pytest.raises(StoreError, match="Another process is reading the corpus"), storage.locked():
        pass
    storage.write(LOCK, "somebody who was killed")
    started = time.monotonic()
    with storage.locked():
        assert time.monotonic() - started > 0.5


def test_a_command_that_was_taken_for_dead_ends(tmp_path: Path) -> None:
    """Also while it waits for a worker."""
    storage, (pipe, _other) = Storage((tmp_path / "bucket").as_uri()), Pipe()

    def overtaken() -> None:
        with storage.locked():
            storage.write(LOCK, "another")
            wait([pipe], 5)

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        overtaken()
    assert time.monotonic() - started < 3
    assert storage.read(LOCK) == b"another", "what is of others stays"


def test_pictures_within_a_table_go_with_the_list(tmp_path: Path) -> None:
    place, data = (tmp_path / "bucket").as_uri(), picture(1).data
    cut_corpus(place, [ListedPicture("t#1", data)], configuration={}, listing={}, shards=1)
    corpus = ShardedCorpus(place, disk=tmp_path / "disk")
    (row,) = corpus.rows(0)
    file = corpus.file(row)
    assert file is not None
    assert file.is_relative_to(tmp_path / "disk")
    assert file.read_bytes() == data


def small(home: Path) -> ShardedCorpus:
    """A corpus of one picture at an address."""
    place = (home / "bucket").as_uri()
    return cut_corpus(place, [ListedPicture("a", Path("a.png"))], configuration={}, listing={}, shards=1)


def test_what_is_fetched_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage((tmp_path / "bucket").as_uri())
    for name in ("shard/a", "shard/b"):
        storage.write(name, "new")
    disk = tmp_path / "disk" / "shard"
    storage.fetch("shard/none", disk)
    assert not disk.exists()
    disk.mkdir(parents=True)
    (disk / "a").write_text("old", encoding="ascii")
    whole = storage._files.get_file  # pyright: ignore[reportPrivateUsage]

    def torn(source: str, target: str, **more: Any) -> None:
        if source.endswith("b"):
            raise OSError(ENOSPC, "No space left on device")
        whole(source, target, **more)

    monkeypatch.setattr(storage._files, "get_file", torn)  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(StoreError, match=rf"'{disk.parent}' cannot be written: No space left"):
        storage.fetch("shard", disk)
    assert [(file.name, file.read_text("ascii")) for file in disk.parent.rglob("*") if file.is_file()] == [("a", "old")]
    monkeypatch.undo()
    storage.fetch("shard", disk)
    assert [file.read_text("ascii") for file in disk.iterdir()] == ["new", "new"]
    assert [*disk.parent.iterdir()] == [disk]


def test_a_full_temporary_folder_is_named(tmp_path: Path) -> None:
    lists = Storage((tmp_path / "bucket").as_uri()).new_folder("lists")
    with pytest.raises(StoreError, match=rf"'{gettempdir()}' cannot be written: No space left"), lists:
        raise OSError(ENOSPC, "No space left on device")


def test_a_worker_whose_records_have_no_folder(
    endpoint: FakeEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads shards in one place, whatever process it is."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = at_address(endpoint, tmp_path).cut().place
    engine = Engine(records=MemoryStore(), policy=QUICK)
    chain = action_reason(get_model(f"openai:fake-model@{endpoint.url}", identity="fake", engine=engine))
    assert ShardReader(chain=chain, corpus=place)(0).done
    assert (tmp_path / "cache" / "askance" / "shards").is_dir()


def test_what_else_lies_there_is_passed_over(tmp_path: Path) -> None:
    corpus = small(tmp_path)
    for name in (".DS_Store", "00000.jsonl.part", "00001.jsonl"):
        for folder in ("begun", "receipts"):
            corpus.storage.write(f"{folder}/{name}", "{")
    status = status_of(corpus)
    assert (status.done, status.under_way) == (0, ())


def test_files_that_cannot_be_read_are_not_taken_for_removed(tmp_path: Path) -> None:
    corpus = small(tmp_path)
    (tmp_path / "bucket" / "receipts" / "00000.jsonl").mkdir(parents=True)
    with pytest.raises(StoreError, match="cannot be read: IsADirectoryError"):
        corpus.receipts()


def test_an_upload_that_fails_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(_storage: Storage, name: str, folder: Path) -> None:
        raise StoreError(f"{name} of {folder} cannot be written.", hint="Check the rights.")

    with FakeEndpoint(lambda seen: answer(seen.json), delay=0.05) as endpoint:
        corpus = replace(at_address(endpoint, tmp_path), shards=1, concurrency=2)
        corpus.cut()
        monkeypatch.setattr("askance.scale.shard_worker._AFTER_FAULT", 0.0)
        monkeypatch.setattr(Storage, "send", fails)
        corpus.read(Here(), kept_every=0.05)
    assert caplog.text.count("Shard 00000 is read on, without a copy of its records: ") == 1


def test_a_password_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "paramiko", None)
    with pytest.raises(MissingExtra, match="sftp://me@host/ads") as raised:
        ShardedCorpus("sftp://me:hunter2@host/ads")
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("place", ["s3://", "/", Path("s3://runs/ads"), "s3://runs/*", "memory://a[1]"], ids=str)
def test_what_is_no_place_of_files(place: str | Path) -> None:
    with pytest.raises(UsageError, match=r"is neither a folder for a corpus nor an address of one\. Name a folder"):
        Storage(place)


def test_a_bucket_that_lists_its_folders_as_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = small(tmp_path).storage

    def ls(path: str, **_: Any) -> list[dict[str, Any]]:
        return [{"name": f"{path}/"}, {"name": f"{path}/a"}]

    monkeypatch.setattr(storage._files, "ls", ls)  # pyright: ignore[reportPrivateUsage]
    assert storage.names("lists") == ["a"]


def test_what_is_no_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"'nowhere://a/b' is no address of storage"):
        ShardedCorpus("nowhere://a/b")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(
        MissingExtra, match=r"'s3://a/b' need another package: Install s3fs .*\. pip install 'askance\[s3\]'"
    ):
        ShardedCorpus("s3://a/b")
    (tmp_path / "bucket").mkdir()
    (tmp_path / "bucket" / "thesis.tex").touch()
    with pytest.raises(UsageError, match="holds something that is no corpus"):
        cut_corpus((tmp_path / "bucket").as_uri(), iter(()), configuration={}, listing={})
