"""Write the pages of `docs/api`: one for each public face, with the names that it has.

.venv/bin/python scripts/make_api_pages.py
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

PAGES = Path(__file__).resolve().parent.parent / "docs" / "api"
FACES = (
    *("askance", "askance.images", "askance.chains", "askance.tools", "askance.agents", "askance.models"),
    *("askance.prompts", "askance.replay", "askance.nodes", "askance.evals", "askance.evals.suite"),
    *(
        "askance.investigator",
        "askance.scale",
        "askance.otel",
        "askance.retrieval",
        "askance.statistics",
        "askance.testing",
    ),
    "askance.training",
)
"""Modules whose names are for users."""


def page_of(face: str) -> str:
    """The page of a face; a module without `__all__` shows all that it defines."""
    names = sorted(name for name in getattr(import_module(face), "__all__", ()) if not name.startswith("_"))
    members = "".join(f"        - {name}\n" for name in names)
    options = f"    options:\n      members:\n{members}" if names else ""
    return f"# `{face}`\n\n::: {face}\n{options}"


def main() -> None:
    """Write them all."""
    PAGES.mkdir(exist_ok=True)
    for face in FACES:
        (PAGES / f"{face.rpartition('.')[2]}.md").write_text(page_of(face), encoding="utf-8")


if __name__ == "__main__":
    main()
