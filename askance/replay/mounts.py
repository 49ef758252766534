"""Which file system a folder is on: SQLite's locks cannot be trusted over a network."""

from __future__ import annotations

import re
from pathlib import Path

from askance.errors import StoreError

MOUNTS = Path("/proc/self/mountinfo")
"""What is mounted where, as Linux says it; elsewhere nothing is known and nothing refused."""

_FUSE = ("ceph", "ceph-fuse", "davfs2", "gcsfuse", "glusterfs", "juicefs", "rclone", "s3fs", "sshfs")
_SERVED = ("9p", "afs", "cifs", "coda", "davfs", "ncpfs", "nfs", "nfs3", "nfs4", "smb2", "smb3", "smbfs")
_CLUSTERS = ("beegfs", "ceph", "gfs2", "glusterfs", "gpfs", "lustre", "ocfs2", "orangefs", "panfs", "pvfs2", "wekafs")
NETWORKS = frozenset({*_SERVED, *_CLUSTERS, *(f"fuse.{name}" for name in _FUSE)})
"""Types of file systems that several machines may write at once."""

_ESCAPE = re.compile(r"\\([0-7]{3})")


def network_of(path: Path, mountinfo: str) -> str | None:
    """The type of the network file system that `path` is on; None where it is on a local one.

    Args:
        path: absolute, without links.
        mountinfo: text of `/proc/self/mountinfo`; lines of another shape are passed over.
    """
    best: tuple[int, str] = (-1, "")
    for line in mountinfo.split("\n"):
        before, dash, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")[0]
        if not dash or len(fields) < 5:
            continue
        point = Path(_ESCAPE.sub(lambda found: chr(int(found[1], 8)), fields[4]))
        # Of two mounts in one place the later one covers the other.
        if path.is_relative_to(point) and len(point.parts) >= best[0]:
            best = (len(point.parts), kind)
    return best[1] if best[1] in NETWORKS else None


def network_at(folder: Path) -> str | None:
    """The type of the network file system that `folder`, which need not exist, is or would be on."""
    try:
        text = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        return network_of(folder.resolve(), text)
    except OSError:
        return None


def refuse_network(folder: Path) -> None:
    """Refuse to write a store where SQLite's locks do not hold.

    Raises:
        StoreError: the folder is on a network file system.
    """
    if (kind := network_at(folder)) is not None:
        msg = f"The record store {str(folder)!r} is on a network file system ({kind}): two writers would spoil it."
        hint = (
            "Name a folder on a local disk with ASKANCE_STORE, and take what is here into it with"
            f" `askance cache merge {folder}`."
        )
        raise StoreError(msg, hint=hint)
