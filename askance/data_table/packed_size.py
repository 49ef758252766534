"""How many bytes a packed file (gzip, bzip2, xz, zstandard, LZ4, zip) unpacks to; what is unpacked is not kept."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

_PIECE = 1 << 20


def packed_size(path: Path, *, most: int) -> int:
    """The bytes that a file unpacks to; of a file that is not packed its own.

    Args:
        path: the file; how it is packed is known by its first bytes.
        most: bytes after which nothing more is unpacked.

    Raises:
        Exception: the file is damaged, or cannot be read; the unpackers raise errors of their own.
    """
    with path.open("rb") as file:
        start = file.read(6)
    if start.startswith(b"PK"):
        with zipfile.ZipFile(path) as archive:
            return sum(member.file_size for member in archive.infolist())
    opened = next((opened for mark, opened in _OPENED.items() if start.startswith(mark)), None)
    if opened is None:
        return path.stat().st_size
    size = 0
    with opened(str(path)) as content:
        while size <= most and (piece := content.read(_PIECE)):
            size += len(piece)
    return size


def _by_arrow(path: str, *, compression: str) -> Any:
    return import_module("pyarrow").input_stream(path, compression=compression)


_OPENED: Mapping[bytes, Callable[[str], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
    b"\x28\xb5\x2f\xfd": partial(_by_arrow, compression="zstd"),
    b"\x04\x22\x4d\x18": partial(_by_arrow, compression="lz4"),
}
"""By the first bytes of a file, what reads its content."""
