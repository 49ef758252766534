from __future__ import annotations

import os
import re
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from askance.errors import DamagedRecord, StoreError
from askance.replay import ImportCounts, Store, merge, mounts
from askance.replay.mounts import NETWORKS, network_of
from tests.replay.samples import record

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
    assert network_of(Path(path), TABLE) == kind


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "lustre", "gpfs", "ceph"])
def test_network_file_systems_are_known(kind: str) -> None:
    assert kind in NETWORKS


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a closed store that the system says is on a server."""
    folder = tmp_path / "far"
    with Store.open(folder) as store:
        store.put(record())
    table = tmp_path / "mountinfo"
    table.write_text(f"27 1 254:0 / / rw - ext4 /dev/vda rw\n31 27 0:41 / {folder} rw - nfs4 server:/x rw\n", "utf-8")
    monkeypatch.setattr(mounts, "MOUNTS", table)
    return folder


def test_a_store_on_a_network_is_not_written(far: Path) -> None:
    with pytest.raises(StoreError) as caught:
        Store.open(far)
    assert str(caught.value) == (
        f"The record store {str(far)!r} is on a network file system (nfs4): two writers would spoil it."
        " Name a folder on a local disk with ASKANCE_STORE, and take what is here into it with"
        f" `askance cache merge {far}`."
    )


def test_the_way_out_of_a_network_works(far: Path) -> None:
    with Store.open() as near, Store.open(far, read_only=True) as other:
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
    with Store.open() as near, Store.open(far, read_only=True) as other:
        with pytest.raises(DamagedRecord, match=r"`askance cache merge --skip-damaged` takes the others in"):
            merge(other, near)
        assert len(near) == 0
        assert merge(other, near, skip_damaged=True) == ImportCounts(new=1, damaged=2)
        assert list(near) == [record()]


def test_a_store_on_a_network_that_was_not_closed_is_not_guessed_at(far: Path) -> None:
    (far / "cache.db-wal").write_bytes(b"something")
    with pytest.raises(StoreError, match=r"^The record store '.*' is on a network file system and was not closed\."):
        Store.open(far, read_only=True)


def test_where_nothing_is_known_of_mounts_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "MOUNTS", tmp_path / "nothing")
    with Store.open() as store:
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
    with Store.open(small_disk / "store") as store:
        try:
            for kept in range(1000):
                store.put(record(f"question {kept}", "x" * 20_000))
        except StoreError as error:
            assert re.search(r"cannot be written: .*(full|disk I/O error)", str(error))  # noqa: PT017
        assert 5 < kept < 60
        assert len(list(store)) == kept
        assert list(store.damages()) == []
    with Store.open(small_disk / "store", read_only=True) as again:
        assert len(list(again)) == kept
