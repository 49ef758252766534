"""Pictures in a cell of a table: their bytes, or the name of a file below the folder of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from askance.errors import BadData


def picture_in(value: Any) -> bytes | str | None:
    """A picture that stands in a table: its bytes, or the path or address of it.

    Args:
        value: a text, bytes, or the map of bytes and path that `datasets` keeps.

    Returns:
        None where it is none of these.
    """
    if isinstance(value, Mapping):
        parts = cast("Mapping[str, Any]", value)
        value = parts.get("bytes") or parts.get("path")
    return value if isinstance(value, (bytes, str)) and value else None


def is_below(file: Path, folder: Path) -> bool:
    """Whether a file that a stranger names lies below a folder, links resolved; no for what can be no file."""
    try:
        return file.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # RuntimeError: symbolic links that lead to each other
        return False


def picture_file(name: str, home: Path | None, where: str, *, allowed: Sequence[Path] = ()) -> Path:
    """The file of a picture that a row names: below the folder of its table, or below one that the user allows.

    Args:
        name: as it stands in the row.
        home: the folder that names are meant from; None where the table has none.
        where: the row, for messages.
        allowed: further folders.

    Raises:
        BadData: it lies elsewhere, also by a link, or can be no file.
    """
    if home is None and not (allowed and Path(name).is_absolute()):
        raise BadData(
            f"{where}: `image` is the name of a file, {name[:200]!r}, and the data have no folder.",
            hint="Name the column that holds the pictures themselves: `columns: {image: …}`, or --column image=NAME.",
        )
    file = (home or Path()) / name
    if not any(is_below(file, folder) for folder in (*([home] if home else ()), *allowed)):
        raise BadData(
            f"{where}: `image` leads out of the folder of its file: {name[:200]!r}.",
            hint="Mend the name, put the images beside it, or allow their folder: --allow-folder FOLDER.",
        )
    return file
