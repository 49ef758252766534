"""Tables for a paper: the best in bold, marks of paired tests, what was left out, in every form."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from askance.errors import UsageError
from askance.evals import Run, Table, compare, evaluate, rendered
from askance.evals.analysis.marked_table import marked_table, table_of_comparison
from askance.evals.tables import TableLayout
from tests.evals.report.plotted import NAMES, Relations, runs_of
from tests.golden.commands import askance

TASK = str(Path(__file__).parents[1] / "report" / "plotted.py")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Three runs that are tied, and one that is nearly always wrong."""
    folder = tmp_path_factory.mktemp("marked")
    return [*runs_of(folder), evaluate(Relations(which="worst", wrong=1), out=folder / "worst")]


def limits_of(run: Run) -> tuple[float, float]:
    interval = run.figure("accuracy").interval
    assert interval is not None
    return interval.low, interval.high


class Cells(HTMLParser):
    """The texts of a table's cells, and those in bold."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.inside = ""
        self.texts: list[str] = []
        self.bold: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.inside = tag

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        (self.bold if self.inside == "strong" else self.texts).append(data)


def test_only_figures_of_the_task_are_tested_where_answers_may_be_withheld(runs: list[Run]) -> None:
    table = marked_table(runs, bold=True, against=runs[0], task=TASK)

    assert {"accuracy among answered", "risk-coverage area"} <= {*table.columns}
    assert {table.columns[column] for _, column in table.marks} <= {
        name for name in table.columns if name.startswith("accuracy") and name != "accuracy among answered"
    }


def test_latex_says_which_letters_it_may_have_no_glyphs_for() -> None:
    def text(name: str) -> str:
        return rendered(Table(columns=("run",), rows=((name,),), notes=(), title=""), "latex")

    assert text("日本 T_V+ŝ – é").startswith("% pdfLaTeX has no glyphs for 日本: take LuaLaTeX")
    assert text("T_V+ŝ – é").startswith(r"\begin{tabular}")


def test_the_best_value_is_bold_and_so_is_what_is_shown_alike(runs: list[Run]) -> None:
    assert marked_table(runs, metrics=["accuracy"], bold=True, task=TASK).bold == {(1, 3), (2, 3)}  # 78.33 both
    assert marked_table(runs, metrics=["accuracy"], bold=True, digits=0, task=TASK).bold == {(1, 3), (2, 3)}
    assert marked_table(runs[:1], bold=True, task=TASK).bold == frozenset()


def test_marks_are_the_verdicts_of_paired_tests_with_holm(runs: list[Run]) -> None:
    metrics = ["accuracy", "accuracy: fold 3"]
    table = marked_table(runs[1:], metrics=metrics, against=runs[0], task=TASK)

    verdicts = {(each.b, each.metric): each.verdict for each in compare(*runs, metric=metrics, task=TASK)}
    worse = {(row, 3 + metrics.index(name)) for (row, name), verdict in verdicts.items() if verdict == "better"}
    assert table.marks == dict.fromkeys(worse, "†")
    assert (3, 3) in worse
    assert [row[0] for row in table.rows] == [*NAMES, "worst"]
    assert table.notes[0] == (
        f"* better, † worse than {NAMES[0]}: p < 0.05 by paired tests on the 60 samples that all runs have, by Holm's "
        "method over 6 tests."
    )
    better = marked_table(runs, metrics=["accuracy"], against=runs[3], task=TASK)
    assert better.marks == {(row, 3): "*" for row in range(3)}


def test_what_has_no_answer_is_a_footnote(runs: list[Run]) -> None:
    assert f"{NAMES[1]}: 3 of 60 samples without an answer (3 refused)." in marked_table(runs).notes


def test_in_latex_a_caption_makes_a_table_with_notes_below(runs: list[Run]) -> None:
    table = marked_table(runs, metrics=["accuracy"], bold=True, against=runs[0], task=TASK)
    text = rendered(table, "latex", TableLayout(digits=1, caption="100% of $x_1$", label="tab:main"))

    low, high = (f"{100 * end:.1f}" for end in limits_of(runs[2]))
    lines = text.splitlines()
    assert lines[:4] == [r"\begin{table}", r"\centering", r"\caption{100\% of \$x\_1\$}", r"\label{tab:main}"]
    assert lines[8].startswith(r"Gemma\_3 \$\textbackslash{}alpha\$ \& 100\% & 60 & 57 & 68.3 [")
    assert lines[10] == (
        rf"x\textasciicircum{{}}2 \textless{{}}b\textgreater{{}} & 60 & 57 & \textbf{{78.3}} [{low}, {high}] \\"
    )
    assert r"$^{\dagger}$ [" in lines[11]
    assert r"* better, $\dagger$ worse than Gemma\_3" in text
    assert lines[-1] == r"\end{table}"


def test_html_and_markdown_say_the_same(runs: list[Run]) -> None:
    table = marked_table(runs, metrics=["accuracy"], bold=True, against=runs[0], task=TASK)
    cells = Cells(rendered(table, "html", TableLayout(caption="<b>", label="tab:main")))
    read = Cells(MarkdownIt().enable("table").render(rendered(table, "markdown")))

    assert cells.bold == ["78.33", "78.33"] == read.bold[1:]  # before it the title
    assert "b" not in cells.tags
    for name in NAMES:
        assert name in cells.texts
        assert name in read.texts
    assert "†" in cells.texts


def test_json_has_marks_and_bold_by_place() -> None:
    table = Table(columns=("a",), rows=((1,), (2,)), bold=frozenset({(1, 0)}), marks={(0, 0): "†"})

    form = json.loads(rendered(table, "json"))
    assert (form["bold"], form["marks"]) == ([[1, 0]], [{"row": 0, "column": 0, "mark": "†"}])


def test_a_comparison_is_a_table_too(runs: list[Run]) -> None:
    table = table_of_comparison(compare(runs[0], runs[1], metric="accuracy", task=TASK), digits=1)

    assert table.rows[0][:5] == ("accuracy", "A – B", "68.3", "78.3", "−10.0")
    assert table.notes[:2] == (f"A: {NAMES[0]}.", f"B: {NAMES[1]}.")
    assert r"accuracy & A -- B & 68.3 & 78.3 & $-$10.0 &" in rendered(table, "latex")


def test_the_commands_lay_out_what_the_form_has_room_for(runs: list[Run]) -> None:
    folders = [str(run.path) for run in runs]
    task = ["--task", TASK]

    done = askance("eval", "table", *folders, "--metric", "accuracy", "--bold", "--against", folders[0], *task)
    assert "**78.33** [" in done.out
    done = askance("compare", *folders[:2], "--metric", "accuracy", "--format", "html", "--label", "t", *task)
    assert done.out.startswith('<table id="t">\n<caption>tests/plotted</caption>')
    done = askance("eval", "table", *folders, "--format", "csv", "--bold")
    assert (done.code, done.err.splitlines()[0]) == (2, "askance: `--bold` does not go with `--format csv`.")
    done = askance("compare", *folders, "--digits", "1")
    assert (done.code, done.err.splitlines()[0]) == (2, "askance: `--digits` is for a table.")
    with pytest.raises(UsageError, match=r"^The label 'a}b' would not stand in every document\."):
        TableLayout(label="a}b")
