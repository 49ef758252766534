"""The plots of `docs/performance.md`, drawn from the tables that stand in it: `python benchmarks/plots.py`.

Needs the extra `plots`. They are written to `docs/images`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "performance.md"
BASELINES = re.compile(r"bare script|same script|numpy|import openai")
"""Rows that others are a ratio to."""
COLOURS = ("#0072b2", "#d55e00")
"""Told apart with any colour vision (Okabe and Ito, 2008)."""

Table = list[dict[str, str]]


def main() -> None:
    """Draw them."""
    tables = dict(sections(PAGE.read_text(encoding="utf-8")))
    save(ratios(tables), "performance-ratios.svg")
    save(growth(tables["Growth"]), "performance-growth.svg")


def sections(page: str) -> Iterator[tuple[str, Table]]:
    """The first table below each heading, as rows by the heads of its columns; of equal heads the first counts."""
    for part in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        title, _, text = part.partition("\n")
        found = re.search(r"(^\|.*\n)+", text, re.MULTILINE)
        if found:
            lines = found[0].splitlines()
            heads = cells(lines[0])
            yield title, [dict(reversed([*zip(heads, cells(line), strict=True)])) for line in lines[2:]]


def cells(line: str) -> list[str]:
    """The cells of a row of a Markdown table."""
    return [cell.strip(" `") for cell in line[1:-1].split("|")]


def ratios(tables: dict[str, Table]) -> Any:
    """Time of askance as a multiple of the bare program's, a row a measurement."""
    found = [
        (f"{title}: {' '.join(name.split())}", float(value.partition(" ")[0]))
        for title, table in tables.items()
        if any(BASELINES.search(" ".join(row.values())) for row in table)
        for row in table
        if (value := row.get("to the script") or row.get("ratio")) and not BASELINES.search(" ".join(row.values()))
        if (name := f"{row.get('at once', '')} {row.get('', '')}")
    ]
    figure: Any = Figure(figsize=(7, 0.35 * len(found) + 0.9), layout="constrained")
    axes = figure.subplots()
    places = range(len(found))
    axes.hlines(places, 1, [value for _, value in found], color=COLOURS[0], linewidth=2)
    axes.plot([value for _, value in found], places, "o", color=COLOURS[0])
    for place, (_, value) in zip(places, found, strict=True):
        axes.annotate(f"{value:.2f}", (value, place), (0, 6), textcoords="offset points", ha="center", fontsize=8)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(places, [name for name, _ in found])
    axes.invert_yaxis()
    axes.set_xlabel("seconds, as a multiple of the bare program's")
    return figure


def growth(table: Table) -> Any:
    """Milliseconds a picture by the number of pictures."""
    figure: Any = Figure(figsize=(5, 2.4), layout="constrained")
    axes = figure.subplots()
    for how, colour, marker in zip(("asked", "replayed"), COLOURS, "os", strict=True):
        rows = [row for row in table if row[""] == how]
        sizes = [int(row["pictures"].replace(",", "")) for row in rows]
        axes.plot(sizes, [float(row["ms a picture"]) for row in rows], f"{marker}-", color=colour, label=how)
    axes.set_xscale("log")
    axes.set_ylim(0)
    axes.set_xlabel("pictures")
    axes.set_ylabel("ms a picture")
    axes.legend(frameon=False)
    return figure


def save(figure: Any, name: str) -> None:
    """Write a figure; equal figures make equal files."""
    figure.savefig(DOCS / "images" / name, metadata={"Date": None})


if __name__ == "__main__":
    import matplotlib as mpl

    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "askance", "font.size": 9})
    main()
