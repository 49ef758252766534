"""Tables: cells of every kind in every form, and nothing in a name that means anything."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from askance.errors import Refused, UsageError
from askance.evals import Figure, Run, Sample, Table, rendered, table_of_runs
from askance.evals.tables import Cell, spreadsheet_cell
from askance.statistics import Interval
from tests.evals.numbers import run_of

FIGURE = Figure(
    metric="accuracy",
    value=0.625,
    interval=Interval(low=0.5, high=0.75, method="wilson"),
    convention="wrong",
    samples=8,
    clusters=8,
    answered=7,
    among_answered=5 / 7,
    if_wrong=0.625,
    if_right=0.75,
)
TABLE = Table(
    columns=("run", "n", "accuracy"),
    rows=(("first", 8, FIGURE), ("second", None, None)),
    notes=("Only a note.",),
    title="A task",
)

MARKDOWN = """\
**A task**

| run | n | accuracy |
| --- | ---: | ---: |
| first | 8 | 62.50 [50.00, 75.00] |
| second | – | – |

- Only a note.
"""
LATEX = r"""% A task
% Only a note.
\begin{tabular}{lrr}
\toprule
run & n & accuracy \\
\midrule
first & 8 & 62.50 [50.00, 75.00] \\
second & -- & -- \\
\bottomrule
\end{tabular}
"""
CSV = """\
run,n,accuracy,accuracy low,accuracy high,accuracy samples,accuracy answered,accuracy if_wrong,accuracy if_right
first,8,0.625,0.5,0.75,8,7,0.625,0.75
second,,,,,,,,
"""


@pytest.mark.parametrize(
    ("form", "text"),
    [("markdown", MARKDOWN), ("latex", LATEX), ("csv", CSV)],
    ids=["markdown", "latex", "csv"],
)
def test_a_table_in_every_form(form: str, text: str) -> None:
    assert rendered(TABLE, form) == text  # pyright: ignore[reportArgumentType]


def test_as_json_figures_keep_all_that_they_hold() -> None:
    form = json.loads(rendered(TABLE, "json"))

    assert (form["title"], form["columns"], form["notes"]) == ("A task", ["run", "n", "accuracy"], ["Only a note."])
    assert Figure.from_form(form["rows"][0][2]) == FIGURE


HOSTILE = {
    "pipe": ("a|b", r"a\|b", r"a\textbar{}b", "a|b"),
    "markup": ("*_`<[~", r"\*\_\`\<\[\~", r"{}*\_\textasciigrave{}\textless{}[\textasciitilde{}", "*_`<[~"),
    "TeX": (
        r"\input{x} 5% $a_1^2 #&",
        r"\\input{x} 5% \$a\_1^2 #\&",
        r"\textbackslash{}input\{x\} 5\% \$a\_1\textasciicircum{}2 \#\&",
        r"\input{x} 5% $a_1^2 #&",
    ),
    "dashes": ("a--b", "a--b", "a-{}-b", "a--b"),
    "terminal": ("\x1b[31mred", r"\\x1b\[31mred", r"\textbackslash{}x1b[31mred", r"\x1b[31mred"),
    "lines": ("two\nlines", "two lines", "two lines", "two\nlines"),
    "formula": ("=1+1", "=1+1", "=1+1", "'=1+1"),
}


@pytest.mark.parametrize(("name", "markdown", "latex", "field"), HOSTILE.values(), ids=HOSTILE)
def test_what_stands_in_a_name_means_nothing(name: str, markdown: str, latex: str, field: str) -> None:
    table = Table(columns=("run",), rows=((name,),))

    assert rendered(table, "markdown").splitlines()[2] == f"| {markdown} |"
    assert rendered(table, "latex").splitlines()[4] == rf"{latex} \\"
    assert next(csv.reader(io.StringIO(rendered(table, "csv").partition("\n")[2]))) == [field]


def test_a_comment_of_latex_ends_with_its_line() -> None:
    table = Table(columns=("a",), rows=(), notes=("one\n\\input{x}",))

    assert rendered(table, "latex").startswith("% one \\input{x}\n\\begin{tabular}")


@pytest.mark.parametrize("row", [(), ("a", "b")], ids=["short", "long"])
def test_a_row_that_does_not_fit_is_refused(row: tuple[Cell, ...]) -> None:
    with pytest.raises(UsageError, match="does not fit a table of 1 columns"):
        Table(columns=("run",), rows=(row,))


# --- of runs ---


def refusing(sample: Sample) -> bool:
    if sample.id < "02":
        raise Refused("no")
    return True


def test_runs_are_rows_and_metrics_columns() -> None:
    runs = [run_of(out="one"), run_of(refusing, out="two")]

    table = table_of_runs(runs)

    assert table.columns == ("run", "samples", "answered", "accuracy")
    assert table.rows == (("one", 6, 6, runs[0].figures[0]), ("two", 6, 4, runs[1].figures[0]))
    assert table.notes == (
        "Convention: samples without an answer count as wrong.",
        "In brackets: 95 % intervals.",
    )


def test_runs_of_one_name_are_told_apart_by_their_folders() -> None:
    runs = [Run(path=Path(f"runs/{name}"), configuration={"task": "t"}, label="same") for name in ("a", "b")]

    assert [row[0] for row in table_of_runs(runs).rows] == ["same (a)", "same (b)"]
    assert table_of_runs(runs).notes == ("a is not finished.", "b is not finished.")


def test_columns_can_be_chosen() -> None:
    run = run_of()

    assert table_of_runs([run], metrics=["accuracy"]).columns[-1] == "accuracy"
    with pytest.raises(UsageError, match=r"None of the runs has a metric 'f1'\. They have accuracy"):
        table_of_runs([run], metrics=["f1"])


MARKUP = [
    "![a](https://x.example/a.png)",
    "see https://x.example and www.x.example",
    "&lt;b&gt; &#124; &amp;",
    r"$\href{https://x.example}{y}$ $$z$$",
    "# heading",
    "> quoted",
    "- item",
    "+ item",
    "12. item",
    "3) item",
    "***",
    "---",
    "<b onclick=x>",
    "`code` ~~gone~~ __bold__",
    "a\n\n# b",
    "[x]: https://x.example",
]


@pytest.mark.parametrize("label", MARKUP)
def test_no_markup_of_a_label_counts(label: str) -> None:
    table = Table(columns=("run",), rows=((label,),), notes=(label,), title=label)

    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(rendered(table, "markdown"))

    inline = [token for token in tokens if token.type == "inline"]
    said = ["".join(part.content for part in token.children or ()) for token in inline]
    assert said == [" ".join(label.split()), "run", " ".join(label.split()), " ".join(label.split())]
    assert {part.type for token in inline for part in token.children or ()} <= {
        "text",
        "text_special",
        "strong_open",
        "strong_close",
    }
    assert not re.search(r"https?://|www\.", rendered(table, "markdown"))
    assert [token.tag for token in tokens if token.nesting == 1] == [
        *("p", "table", "thead", "tr", "th", "tbody", "tr", "td", "ul", "li", "p"),
    ]


@pytest.mark.parametrize(
    "blank", ["\ufeff", " \u200b", "\u2060 ", "\u202e", "\x01", "\u00ad", "\ufe0f", "\u2800", "\U0001bca0"]
)
def test_a_formula_behind_characters_that_nobody_sees_is_dead(blank: str) -> None:
    assert spreadsheet_cell(f"{blank}=1+1") == f"'{blank}=1+1"
    assert spreadsheet_cell(f"a;{blank}=1+1") == f"a;{blank}'=1+1"
