"""Tables for a paper, as LaTeX sets them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from askance.evals import rendered
from askance.evals.analysis.marked_table import marked_table
from askance.evals.tables import TableLayout
from tests.evals.report.plotted import runs_of

TASK = str(Path(__file__).parents[1] / "evals" / "report" / "plotted.py")
PAPER = r"\documentclass{article}\usepackage{booktabs}\begin{document}\input{table}\end{document}"


@pytest.mark.slow(group="wheel")
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex")
@pytest.mark.parametrize("layout", [TableLayout(), TableLayout(caption="50 % & _more_ #1", label="tab:one")])
def test_a_table_needs_booktabs_alone_whatever_runs_are_called(layout: TableLayout, tmp_path: Path) -> None:
    runs = runs_of(tmp_path / "runs")  # with names in which LaTeX would find a meaning
    table = marked_table(runs, metrics=["accuracy"], bold=True, against=runs[0], costs=True, task=TASK)
    (tmp_path / "table.tex").write_text(rendered(table, "latex", layout), encoding="utf-8")
    (tmp_path / "paper.tex").write_text(PAPER, encoding="utf-8")

    ran = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout.decode(errors="replace")[-2000:]
    assert (tmp_path / "paper.pdf").stat().st_size > 0
