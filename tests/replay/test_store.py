from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from askance.errors import StoreError
from askance.replay import Record, find_address, open_records, select
from askance.replay.reader import StoreReader, StoreRow
from askance.replay.record import BLOCK
from askance.replay.store import Store
from tests.replay.samples import record

ROOT = Path(__file__).parents[2]
NOBODY = 65534

WRITE = """
import sys
from askance.replay import Record, open_records
with open_records(sys.argv[1]) as store:
    for number in range(int(sys.argv[3])):
        store.put(Record.make("score", {"by": sys.argv[2], "number": number}, {"text": "x" * 20_000}))
        print(number, flush=True)
"""


def writer(folder: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITE, str(folder), name, str(count)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def store() -> Iterator[Store]:
    with Store.open(Path(find_address())) as store:
        yield store


def test_an_open_writer_keeps_a_log_ahead_of_the_file(store: Store) -> None:
    store.put(record())
    with closing(sqlite3.connect(store.folder / "cache.db")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert (store.folder / "cache.db-wal").exists()


def test_one_query_reads_a_block_of_keys(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [record(f"{number}") for number in range(BLOCK + 1)]
    store.put_all(records)
    queries, ask = list[str](), StoreReader.all

    def noted(self: StoreReader, query: str, values: StoreRow = ()) -> list[StoreRow]:
        queries.append(query)
        return ask(self, query, values)

    monkeypatch.setattr(StoreReader, "all", noted)
    monkeypatch.setattr(StoreReader, "one", None)
    keys = [each.key for each in records]

    assert [*store.get_all(keys[::-1]).items()] == [*zip(keys[::-1], records[::-1], strict=True)]
    assert [each.key for each in select(store, keys=keys)] == sorted(keys)
    assert len(queries) == 4


def test_reading_makes_no_folder(store: Store) -> None:
    assert (store.get("0" * 64), list(store), len(store), list(store.of_kind("chat"))) == (None, [], 0, [])
    assert not store.folder.exists()


def test_the_folder_hides_itself_from_git(store: Store) -> None:
    store.put(record())
    assert (store.folder / ".gitignore").read_text(encoding="utf-8") == "*\n"


def test_a_folder_that_was_there_keeps_its_own_rules(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with open_records(tmp_path / "mine") as store:
        store.put(record())
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["cache.db"]


def test_a_closed_store_is_one_file(store: Store) -> None:
    store.put(record())
    threading.Thread(target=store.get, args=(record().key,)).start()
    store.close()
    assert sorted(path.name for path in store.folder.iterdir()) == [".gitignore", "cache.db"]


def test_two_processes_write_at_once(store: Store) -> None:
    processes = [writer(store.folder, name, 40) for name in ("one", "two")]
    for process in processes:
        process.communicate(timeout=60)
    assert [process.returncode for process in processes] == [0, 0]
    assert len(list(store)) == 80


def test_a_process_killed_in_mid_write_leaves_what_it_had_written(store: Store) -> None:
    process = writer(store.folder, "victim", 100_000)
    assert process.stdout is not None
    last = [int(process.stdout.readline()) for _ in range(30)][-1]
    os.kill(process.pid, signal.SIGKILL)
    # Not `communicate`, which overlooks what `readline` has read ahead.
    last = max([last, *map(int, process.stdout.read().split())])
    process.wait(timeout=60)
    process.stdout.close()
    assert len(list(store)) in {last + 1, last + 2}
    store.put(record())
    assert list(store.damages()) == []


def test_a_forked_process_reads_on_its_own(store: Store) -> None:
    store.put(record())
    assert store.get(record().key) == record()
    child = os.fork()
    if child == 0:
        found = store.get(record().key) == record()
        os._exit(0 if found else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert store.get(record().key) == record()


def test_a_write_waits_for_another_process(store: Store) -> None:
    store.put(record())
    other = sqlite3.connect(store.folder / "cache.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.3, lambda: other.execute("COMMIT")).start()
    start = time.monotonic()
    store.put(record("another"))
    assert time.monotonic() - start > 0.2
    other.close()


def test_a_store_opened_for_reading_is_not_written(store: Store) -> None:
    store.put(record())
    with open_records(read_only=True) as reading:
        assert list(reading) == [record()]
        assert not reading.writable
        with pytest.raises(StoreError) as caught:
            reading.put(record("another"))
    assert str(caught.value) == (
        f"The record store {store.name!r} is open for reading only. Open it for writing, or replay what it holds."
    )


@pytest.fixture
def sealed() -> Iterator[Path]:
    """A folder with a store that this process, whoever runs the tests, may read and not write."""
    with TemporaryDirectory() as name:
        folder = Path(name) / "store"
        with open_records(folder) as store:
            store.put(record())
        Path(name).chmod(0o755)
        (folder / "cache.db").chmod(0o444)
        folder.chmod(0o555)
        user = os.geteuid()
        if user == 0:
            os.seteuid(NOBODY)
        yield folder
        os.seteuid(user)
        folder.chmod(0o755)


def test_a_store_on_a_read_only_disk_is_read(sealed: Path) -> None:
    with open_records(sealed) as store:
        assert list(store) == [record()]
        assert not store.writable
        with pytest.raises(StoreError) as caught:
            store.put(record("another"))
    assert str(caught.value) == (
        f"The record store {str(sealed)!r} cannot be written: attempt to write a readonly database."
        " Name a folder that can be written with ASKANCE_STORE, or replay with --replay."
    )


def test_a_store_that_cannot_be_made_says_so(sealed: Path) -> None:
    store = open_records(sealed / "new")
    assert not store.writable
    with pytest.raises(StoreError, match=r"^The record store '.*new' cannot be written: .*Permission denied"):
        store.put(record())


def test_a_new_store_is_writable_before_it_exists(store: Store) -> None:
    assert store.writable
    assert not store.folder.exists()


def test_a_file_in_the_place_of_the_folder_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    store = open_records(tmp_path / "file")
    assert not store.writable
    with pytest.raises(StoreError, match=r"^The record store '.*file' cannot be written: .*File exists"):
        store.put(record())


@pytest.fixture
def no_room() -> Iterator[None]:
    """No file may grow beyond 200 kB, as on a disk that is full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_leaves_the_store_readable(store: Store, no_room: None) -> None:
    store.put(record())
    with pytest.raises(StoreError) as caught:
        store.put(record(answer="long " * 100_000))
    assert str(caught.value) == (
        f"The record store {store.name!r} cannot be written: disk I/O error."
        " Name a folder that can be written with ASKANCE_STORE, or replay with --replay."
    )
    assert list(store) == [record()]
    store.put(record("another"))
    assert len(store) == 2


LEAN = """
import sys
from askance.replay import open_records
with open_records(sys.argv[1]) as store:
    vendors = {"PIL", "diskcache", "jsonschema", "langchain_core", "openai"}
    print(len(list(store)), *(vendors & sys.modules.keys()))
"""


def test_reading_loads_no_vendor(store: Store) -> None:
    store.put(record())
    run = subprocess.run([sys.executable, "-c", LEAN, store.name], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == "1\n"


def test_several_are_kept_together_or_not_at_all() -> None:
    good, other = record("one"), record("two")
    bad = Record(kind="chat", key=good.key, request=other.request, response=good.response)
    with open_records() as store:
        with pytest.raises(StoreError, match=r"^The key '.*' is not that of the request beside it"):
            store.put_all([other, bad])
        assert list(store) == []
        store.put_all([good, other, record("one", "another answer")])
        assert {each.key: each.response["text"] for each in store} == {good.key: "another answer", other.key: "a cup"}
