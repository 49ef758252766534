"""Packages that are installed for a test: their metadata and modules in a folder, which the test puts on the path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(
    place: Path, package: str, groups: Mapping[str, Mapping[str, str]], modules: Mapping[str, str] | None = None
) -> None:
    """Puts a package into a folder.

    Args:
        place: the folder.
        package: its name.
        groups: its entry points, by group and name.
        modules: the texts of its modules, by their names.
    """
    about = place / f"{package}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8")
    lines = [
        line
        for group, entries in groups.items()
        for line in (f"[{group}]", *(f"{n} = {v}" for n, v in entries.items()))
    ]
    (about / "entry_points.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")
    for name, text in (modules or {}).items():
        (place / f"{name}.py").write_text(text, encoding="utf-8")
