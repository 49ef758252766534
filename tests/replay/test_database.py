from __future__ import annotations

import os
import pickle
import re
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from askance.errors import DamagedRecord, StoreError
from askance.replay import ImportCounts, database, find_address, merge, open_records
from askance.replay.database import DATABASE, MIGRATION_HINT, NETWORK_FILE_SYSTEMS, json_disk, network_mount
from askance.replay.store import Store
from tests.replay.samples import record

KEY = record().key


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with open_records() as store:
        store.put(record())
        return Path(find_address())


@pytest.fixture
def treasure(tmp_path: Path) -> Path:
    """A file outside the store that a row may point at."""
    path = tmp_path / "treasure"
    path.write_text(record().to_json(), encoding="utf-8")
    return path


def tamper(folder: Path, *statements: str, values: tuple[Any, ...] = ()) -> None:
    with closing(sqlite3.connect(folder / DATABASE, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement, values)


@pytest.fixture
def cache(folder: Path) -> Iterator[Any]:
    """diskcache's own face on the same file."""
    import diskcache  # pyright: ignore[reportMissingTypeStubs]

    with diskcache.Cache(str(folder), disk=json_disk(), eviction_policy="none") as cache:
        yield cache


def test_a_pickle_in_a_row_is_never_run(folder: Path, tmp_path: Path, cache: Any) -> None:
    bomb = pickle.dumps(Bomb(tmp_path / "touched"))
    tamper(folder, "UPDATE Cache SET mode = 4, value = ?", values=(bomb,))
    with open_records() as store, pytest.raises(StoreError) as caught:
        store.get(KEY)
    assert str(caught.value) == (
        f"The row {KEY[:12]!r} of the store is damaged: It does not hold JSON text (mode 4); it was not read."
        " No version of askance writes such a row: do not trust the file that it came from. `askance cache verify` "
        "finds all such records; `askance cache prune --damaged` takes them out, and they are asked anew."
    )
    with pytest.raises(StoreError):
        cache.get(KEY)
    assert not (tmp_path / "touched").exists()


def test_a_pickle_as_a_key_is_never_run(folder: Path, tmp_path: Path, cache: Any) -> None:
    bomb = pickle.dumps(Bomb(tmp_path / "touched"))
    tamper(folder, "INSERT INTO Cache (key, raw, mode, tag, value) VALUES (?, 0, 1, 'chat', 'x')", values=(bomb,))
    with open_records() as store:
        assert list(store) == [record()]
        assert list(store.of_kind("chat")) == [record()]
        assert list(store.damages()) == ["1 row has a key that is no text; it is never read"]
    with pytest.raises(StoreError):
        list(cache)
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize("mode", [1, 2, 3, 4])
def test_a_file_named_in_a_row_is_not_read(folder: Path, treasure: Path, cache: Any, mode: int) -> None:
    tamper(folder, "UPDATE Cache SET mode = ?, filename = '../treasure', value = NULL", values=(mode,))
    with open_records() as store, pytest.raises(StoreError, match=r"It does not hold JSON text"):
        store.get(KEY)
    with pytest.raises(StoreError):
        cache.get(KEY)


def test_a_file_named_in_a_row_is_not_deleted(folder: Path, treasure: Path, cache: Any) -> None:
    tamper(folder, "UPDATE Cache SET filename = '../treasure'")
    with open_records() as store:
        store.put(record(answer="a brick"))
        assert store.get(KEY) == record(answer="a brick")
    tamper(folder, "UPDATE Cache SET filename = ?", values=(str(treasure),))
    assert cache.delete(KEY)
    assert treasure.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", f"The row {KEY[:12]!r} of the store is damaged: "),
        ("[" * 100_000, f"The row {KEY[:12]!r} of the store is damaged: "),
        ("1" * 10_000, f"The row {KEY[:12]!r} of the store is damaged: "),
        ("[]", f"The row {KEY[:12]!r} of the store is damaged: These values are no record: "),
        (record("another").to_json(), f"The row {KEY[:12]!r} of the store holds the record "),
        (b"{}", f"The row {KEY[:12]!r} of the store is damaged: It does not hold JSON text (mode 1); it was not read."),
        (7, f"The row {KEY[:12]!r} of the store is damaged: It does not hold JSON text (mode 1); it was not read."),
    ],
    ids=["broken", "deep", "huge-number", "list", "other-record", "bytes", "number"],
)
def test_a_row_that_is_no_record_is_refused(folder: Path, text: object, message: str) -> None:
    tamper(folder, "UPDATE Cache SET value = ?", values=(text,))
    with open_records() as store, pytest.raises(DamagedRecord) as caught:
        store.get(KEY)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("value", "message"),
    [("x'ff'", "Could not decode"), ("zeroblob(70000000)", "string or blob")],
    ids=["no UTF-8", "beyond the limit"],
)
def test_a_value_that_sqlite_cannot_give_is_refused(folder: Path, value: str, message: str) -> None:
    tamper(folder, f"UPDATE Cache SET value = CAST({value} AS TEXT)")
    with open_records() as store, pytest.raises(StoreError, match=rf"^The record store '.*' cannot be read: {message}"):
        store.get(KEY)


@pytest.mark.parametrize(
    "setting",
    [("fetch", "x"), ("disk_fetch", "x"), ("sqlite_locking_mode", "exclusive"), ("size_limit", "x")],
    ids=["attribute", "disk", "pragma", "type"],
)
def test_settings_of_somebody_elses_are_not_applied(folder: Path, setting: tuple[str, str]) -> None:
    tamper(folder, "INSERT OR REPLACE INTO Settings VALUES (?, ?)", values=setting)
    with pytest.raises(StoreError) as caught:
        open_records()
    assert str(caught.value) == (
        f"The record store {str(folder)!r} carries settings that askance did not write."
        " Do not trust the file; name another folder with ASKANCE_STORE."
    )


def test_a_setting_that_evicts_is_overruled(folder: Path) -> None:
    tamper(
        folder,
        "UPDATE Settings SET value = 'least-recently-stored' WHERE key = 'eviction_policy'",
        "UPDATE Settings SET value = 10 WHERE key = 'cull_limit'",
        "UPDATE Settings SET value = 1 WHERE key = 'size_limit'",
        "UPDATE Cache SET expire_time = 1.0",
    )
    with open_records() as store:
        for number in range(20):
            store.put(record(f"question {number}"))
        assert len(list(store)) == 21


@pytest.mark.parametrize(("version", "hint"), [(0, ""), (2, "Update askance, or carry it over: ")])
def test_a_store_of_another_version_is_refused(folder: Path, version: int, hint: str) -> None:
    tamper(folder, f"PRAGMA user_version = {version}")
    before = (folder / DATABASE).read_bytes()
    for read_only in (False, True):
        with pytest.raises(StoreError) as caught:
            open_records(read_only=read_only)
        assert str(caught.value) == (
            f"The record store {str(folder)!r} has format {version}, and this askance reads format 1. "
            f"{hint}{MIGRATION_HINT}"
        )
    assert (folder / DATABASE).read_bytes() == before


def test_a_foreign_diskcache_is_not_opened(tmp_path: Path) -> None:
    import diskcache  # pyright: ignore[reportMissingTypeStubs]

    with diskcache.Cache(str(tmp_path / "store")) as foreign:
        foreign["key"] = object
    before = (tmp_path / "store" / DATABASE).read_bytes()
    message = rf"^'{tmp_path / 'store' / DATABASE}' is no record store of askance's\. Name another folder"
    with pytest.raises(StoreError, match=message):
        open_records()
    with pytest.raises(StoreError, match=message):
        Store(tmp_path / "store").put(record())
    assert (tmp_path / "store" / DATABASE).read_bytes() == before


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / DATABASE).write_bytes(b"no database" * 100)
    with pytest.raises(StoreError, match=r"^The record store '.*' cannot be read: file is not a database\."):
        open_records()


def test_a_torn_database_is_refused(folder: Path) -> None:
    file = folder / DATABASE
    file.write_bytes(file.read_bytes()[:9000])
    with pytest.raises(StoreError, match=r"^The record store '.*' cannot be read: .*malformed"):
        open_records()


def test_a_store_that_is_being_made_is_empty(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / DATABASE).touch()
    with open_records() as store:
        assert list(store) == []
        store.put(record())
        assert list(store) == [record()]


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"

SHAPES = {
    "view": (["ALTER TABLE Cache RENAME TO Hidden", "CREATE VIEW Cache AS SELECT * FROM Hidden"], "a table 'Hidden'"),
    "trigger": (
        [f"CREATE TRIGGER late AFTER INSERT ON Cache BEGIN SELECT ({ENDLESS}); END"],
        "a trigger 'late'",
    ),
    "changed trigger": (
        [
            "DROP TRIGGER Settings_count_insert",
            "CREATE TRIGGER Settings_count_insert AFTER INSERT ON Cache BEGIN DELETE FROM Cache; END",
        ],
        "a trigger 'Settings_count_insert'",
    ),
    "computed column": (
        ["ALTER TABLE Cache ADD COLUMN huge AS (zeroblob(1000000000))"],
        "a table 'Cache'",
    ),
    "computed index": (
        ["CREATE INDEX huge ON Cache (hex(zeroblob(100000)))"],
        "an index 'huge'",
    ),
    "another table": (["CREATE TABLE Notes (text)"], "a table 'Notes'"),
}


@pytest.mark.parametrize(("statements", "found"), SHAPES.values(), ids=SHAPES)
def test_what_else_a_file_holds_is_never_run(folder: Path, statements: list[str], found: str) -> None:
    tamper(folder, *statements)
    message = (
        f"The record store {str(folder)!r} holds {found} that askance did not make."
        " Do not trust the file; name another folder with ASKANCE_STORE."
    )
    for use in (open_records, lambda: Store(folder).put(record("another"))):
        with pytest.raises(StoreError) as caught:
            use()
        assert str(caught.value) == message


def test_a_record_beyond_the_limit_is_not_kept(folder: Path) -> None:
    huge = record(answer="x" * (64 << 20))
    with open_records() as store, pytest.raises(StoreError, match=r"^The record '.*' is longer than 67108864 bytes\. "):
        store.put(huge)


def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.touch()
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / DATABASE).symlink_to(elsewhere)
    for use in (open_records, lambda: Store(tmp_path / "store").put(record())):
        with pytest.raises(StoreError, match=r"^'.*' is a link to another file; it is not followed\. Link the folder"):
            use()
    assert elsewhere.read_bytes() == b""


@pytest.mark.parametrize("value", [b"bytes", 1, None, {"a": 1}], ids=["bytes", "number", "none", "object"])
def test_the_disk_takes_text_alone(cache: Any, value: object) -> None:
    with pytest.raises(StoreError, match=r"^A \w+ is no JSON text\.$"):
        cache[KEY] = value
    with pytest.raises(StoreError, match=r"^The key .* is no text\.$"):
        cache[value] = "{}"


TABLE = r"""
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
31 27 0:41 / /home rw,relatime shared:1 master:2 - nfs4 server:/home rw,vers=4.2
32 31 0:42 / /home/ann/my\040disk rw - ext4 /dev/sdb rw
33 27 0:43 / /mnt/share rw - cifs //server/share rw
34 27 0:44 / /mnt/share rw - ext4 /dev/sdc rw
35 27 0:45 / /mnt/ssh rw - fuse.sshfs host:/ rw
36 27 0:46 / /mnt/drive rw - fuse.ntfs /dev/sdd rw
a broken line
37 27 0:47 / - nfs
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/projects/.askance", None),
        ("/home/ann/ads/.askance", "nfs4"),
        ("/home", "nfs4"),
        ("/homestead/.askance", None),
        ("/home/ann/my disk/.askance", None),
        ("/mnt/share/.askance", None),
        ("/mnt/ssh/a/b", "fuse.sshfs"),
        ("/mnt/drive/.askance", None),
    ],
)
def test_the_file_system_of_a_folder_is_that_of_the_nearest_mount(path: str, kind: str | None) -> None:
    assert network_mount(Path(path), TABLE) == kind


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "lustre", "gpfs", "ceph"])
def test_network_file_systems_are_known(kind: str) -> None:
    assert kind in NETWORK_FILE_SYSTEMS


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a closed store that the system says is on a server."""
    folder = tmp_path / "far"
    with open_records(folder) as store:
        store.put(record())
    table = tmp_path / "mountinfo"
    table.write_text(f"27 1 254:0 / / rw - ext4 /dev/vda rw\n31 27 0:41 / {folder} rw - nfs4 server:/x rw\n", "utf-8")
    monkeypatch.setattr(database, "MOUNTS", table)
    return folder


def test_a_store_on_a_network_is_not_written(far: Path) -> None:
    with pytest.raises(StoreError) as caught:
        open_records(far)
    assert str(caught.value) == (
        f"The record store {str(far)!r} is on a network file system (nfs4): two writers would spoil it."
        " Name a folder on a local disk with ASKANCE_STORE, and take what is here into it with"
        f" `askance cache merge {far}`."
    )


def test_the_way_out_of_a_network_works(far: Path) -> None:
    with open_records() as near, open_records(far, read_only=True) as other:
        merge(other, near)
        assert list(near) == [record()]
    assert (
        sorted(path.name for path in far.iterdir()) == [".gitignore", "cache.db"] or not (far / ".gitignore").exists()
    )


def test_what_is_sound_in_a_damaged_store_on_a_network_comes_out(far: Path) -> None:
    with closing(sqlite3.connect(far / "cache.db", isolation_level=None)) as file:
        for key in ("1" * 64, "2" * 64):
            file.execute(
                "INSERT INTO Cache (key, raw, store_time, size, mode, value, tag) VALUES (?, 1, 0, 0, 1, ?, 'chat')",
                (key, "[]" if key[0] == "1" else record("other").to_json().replace(record("other").key, key)),
            )
    with open_records() as near, open_records(far, read_only=True) as other:
        with pytest.raises(DamagedRecord, match=r"`askance cache merge --skip-damaged` takes the others in"):
            merge(other, near)
        assert len(near) == 0
        assert merge(other, near, skip_damaged=True) == ImportCounts(new=1, damaged=2)
        assert list(near) == [record()]


def test_a_store_on_a_network_that_was_not_closed_is_not_guessed_at(far: Path) -> None:
    (far / "cache.db-wal").write_bytes(b"something")
    with pytest.raises(StoreError, match=r"^The record store '.*' is on a network file system and was not closed\."):
        open_records(far, read_only=True)


def test_where_nothing_is_known_of_mounts_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "MOUNTS", tmp_path / "nothing")
    with open_records() as store:
        store.put(record())
        assert len(store) == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can mount a file system")
def test_a_disk_that_is_full_leaves_the_store_readable(small_disk: Path) -> None:
    kept = 0
    with open_records(small_disk / "store") as store:
        try:
            for kept in range(1000):
                store.put(record(f"question {kept}", "x" * 20_000))
        except StoreError as error:
            assert re.search(r"cannot be written: .*(full|disk I/O error)", str(error))  # noqa: PT017
        assert 5 < kept < 60
        assert len(list(store)) == kept
        assert list(store.damages()) == []
    with open_records(small_disk / "store", read_only=True) as again:
        assert len(list(again)) == kept


@pytest.mark.parametrize("opened", [True, False], ids=["while it is used", "from the beginning"])
def test_a_file_that_another_process_holds_is_waited_for_once(
    folder: Path, opened: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each write would wait as long, and a run would not end; as soon as the file is free all is as before."""
    monkeypatch.setattr(database, "BUSY_TIMEOUT", 0.1)
    seconds, errors = list[float](), set[str]()
    with open_records(folder) as store, closing(sqlite3.connect(folder / DATABASE, isolation_level=None)) as other:
        if opened:
            store.put(record("before"))
        other.execute("BEGIN IMMEDIATE")
        for number in range(20):
            began = time.monotonic()
            with pytest.raises(StoreError) as caught:
                store.put(record(f"{number}"))
            seconds.append(time.monotonic() - began)
            errors.add(str(caught.value))
        other.execute("ROLLBACK")
        store.put(record("after"))
        assert store.get(record("after").key) == record("after")

    assert sum(seconds[1:]) < 5 * max(seconds[0], 0.1), "19 waits of 0.1 s"
    (error,) = errors
    assert error == (
        f"The record store {str(folder)!r} cannot be written: another process has held the file "
        f"{str(folder / DATABASE)!r} for 0.1 s. End that process (on most systems `fuser FILE` names it), or name "
        "another folder with ASKANCE_STORE."
    )


def test_a_file_that_another_process_lets_nobody_read_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT", 0.1)
    with closing(sqlite3.connect(folder / DATABASE, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError) as caught:
            Store.open(folder, read_only=True)

    assert str(caught.value) == (
        f"The record store {str(folder)!r} cannot be read: another process has held the file "
        f"{str(folder / DATABASE)!r} for 0.1 s. End that process (on most systems `fuser FILE` names it), or name "
        "another folder with ASKANCE_STORE, or bring the records in from a cassette."
    )
