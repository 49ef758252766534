from __future__ import annotations

from pathlib import Path

import pytest

from askance.errors import UsageError
from askance.evals.published_figures import (
    PublishedRow,
    PublishedTable,
    find_published_table,
    read_published,
    read_published_file,
)

TABLES = read_published("pittads").tables
ROUNDING = 0.0101
"""A hundredth: half of one for the figures of a row, half of one for their mean."""

SHAPES = {1: (13, 7), 2: (5, 4), 3: (13, 6), 4: (3, 5), 5: (4, 4), 6: (8, 4), 7: (11, 6)} | {
    8: (5, 4),
    9: (5, 4),
    10: (4, 4),
    11: (5, 6),
    12: (22, 7),
    13: (2, 3),
    14: (2, 2),
}


def test_every_table_is_there_with_its_rows_and_columns() -> None:
    assert {number: (len(table.rows), len(table.columns)) for number, table in TABLES.items()} == SHAPES
    assert [len({row.names for row in table.rows}) for table in TABLES.values()] == [
        rows for rows, _ in SHAPES.values()
    ]


def test_a_printed_average_is_that_of_its_row_or_said_not_to_be() -> None:
    differing = {
        (table.key, row.names): (printed, round(mean, 2))
        for table in TABLES.values()
        for row in table.rows
        for printed, mean in averages(table, row)
        if abs(printed - mean) > ROUNDING
    }

    assert differing == {
        (3, ("InternVL-V1", "I")): (30.07, 34.07),
        (12, ("Vicuna", "V+T")): (34.62, 40.62),
        (12, ("GPT-3.5", "UH")): (61.10, 61.50),
        (12, ("GPT-4", "UH")): (64.85, 65.85),
    }
    assert {
        (table.key, row.names): row.average_differs
        for table in TABLES.values()
        for row in table.rows
        if row.average_differs is not None
    } == {place: mean for place, (_, mean) in differing.items()}


def averages(table: PublishedTable, row: PublishedRow) -> list[tuple[float, float]]:
    """The average of a row with what it should be, where the whole row is known."""
    known = {**table.figures(row), **row.inferred}
    if not table.average:
        return []
    ((average, of),) = table.average.items()
    figures = [known[column] for column in of]
    printed = known[average]
    whole = [figure for figure in figures if figure is not None]
    return [] if printed is None or len(whole) < len(figures) else [(printed, sum(whole) / len(whole))]


def test_retrieval_figures_are_in_the_order_that_their_definitions_give() -> None:
    """More of three are found at 1 than at 3; and what is found first is among the first two, and those among three."""
    orders = [("precision@3", "precision@2", "precision@1"), ("top-1", "top-2", "precision@1")]
    checked = [
        [value for column in order if (value := table.figures(row).get(column)) is not None]
        for table in TABLES.values()
        for row in table.rows
        for order in orders
    ]

    assert [values for values in checked if values != sorted(values)] == []
    assert sum(len(values) == 3 for values in checked) == 93
    figures = {row.names: TABLES[11].figures(row) for row in TABLES[11].rows}
    assert [name for name, each in figures.items() if each["top-3"] not in {each["precision@1"], None}] == []


REPEATED = {
    "LLaVA, small set": [(4, ("LLaVA", "I")), (9, ("LLaVA", "I")), (6, ("18 Hard Neg.", "LLaVA (I)"))],
    "GPT-4 (T_V)": [(12, ("GPT-4", "T_V")), (6, ("18 Hard Neg.", "GPT-4 (T_V)"))],
    "GPT-4 (T_V + ŝ_IN)": [(9, ("GPT-4", "T_V + ŝ_IN")), (12, ("GPT-4", "T_V + ŝ_IN"))],
    "Vicuna (T_V + ŝ_IN)": [(9, ("Vicuna", "T_V + ŝ_IN")), (12, ("Vicuna", "T_V + ŝ_IN"))],
    "CLIP (I)": [(3, ("CLIP", "I")), (11, ("I",))],
}


@pytest.mark.parametrize("places", REPEATED.values(), ids=REPEATED)
def test_what_is_printed_twice_is_the_same(places: list[tuple[int, tuple[str, ...]]]) -> None:
    columns = ("precision@1", "precision@2", "precision@3")
    printed = {tuple(TABLES[table].value(*row, column=column) for column in columns) for table, row in places}

    assert len(printed) == 1
    assert None not in printed.pop()


def test_the_tables_of_whoops_are_there() -> None:
    reference = read_published("whoops")
    judged, other = reference.tables[1], reference.tables[2]

    assert {number: (len(table.rows), len(table.columns)) for number, table in reference.tables.items()} == {
        1: (15, 4),
        2: (8, 5),
        3: (1, 8),
    }
    assert sum(value or 0 for value in reference.tables[3].rows[0].values) == 100
    assert judged.value("ground-truth caption", "GPT3", column="judge") == 70
    assert judged.value("people", "people", column="judge") is None
    assert [other.value("fine-tuned", "BLIP2 FlanT5-XXL", column=column) for column in other.columns] == [
        *(42, 177, 21, 57, 84)
    ]
    assert (reference.sets["questions"].n, len(reference.in_text)) == (3374, 10)
    assert len({row.names for table in reference.tables.values() for row in table.rows}) == 24


def test_people_and_the_judge_differ_most_about_the_weakest_model() -> None:
    """Section 5.2 of the WHOOPS! paper says by nine at most; its Table 1 has twelve."""
    table = find_published_table("whoops/1")
    every = [(row, table.figures(row)) for row in table.rows]
    rows = [(row.names[1], figures["people"], figures["judge"]) for row, figures in every]
    apart = {name: abs(said - judged) for name, said, judged in rows if said is not None and judged is not None}

    assert max(apart.values()) == apart["BLIP2 FlanT5-XXL (zero-shot)"] == 12


def test_the_tables_of_the_new_yorker_are_there() -> None:
    reference = read_published("newyorker")

    assert {number: (len(table.rows), len(table.columns)) for number, table in reference.tables.items()} == {
        1: (3, 3),
        2: (16, 3),
        3: (7, 3),
        4: (7, 6),
        5: (12, 3),
    }
    assert [len({row.names for row in table.rows}) for table in reference.tables.values()] == [3, 16, 7, 7, 12]
    assert reference.tables[2].value("FD", "GPT-4 (5-shot)", column="matching") == 84.5
    assert reference.tables[2].value("people", "FP", column="NYAcc") == 64.6
    assert reference.tables[5].value("FD", "GPT-4 (CoT)", column="PPL") is None
    assert [reference.tables[4].unit(column) for column in ("matching", "PPL")] == ["percent", "perplexity"]
    empty = [
        (table.key, row.names[-1]) for table in reference.tables.values() for row in table.rows if None in row.values
    ]
    assert empty == [
        (4, "Random"),
        *((5, f"{model} ({way})") for model in ("GPT-3.5", "GPT-4") for way in ("5-shot", "CoT")),
    ]
    assert len(reference.in_text) == 24


SAME_OF_THE_NEW_YORKER = {
    "caption only, choices": [(2, ("baseline", "Caption only (T5-11B)")), (4, ("Caption only (T5-11B)",))],
    "five shots, choices": [(2, ("FD", "GPT-3 (5-shot)")), (4, ("text-davinci-002",))],
    "chance": [(2, ("baseline", "Random")), (4, ("Random",))],
    "caption only, explanations": [(4, ("Caption only (T5-11B)",)), (5, ("baseline", "Caption only (T5-11B)"))],
    "five shots, explanations": [(4, ("text-davinci-002",)), (5, ("FD", "GPT-3 (5-shot)"))],
}


@pytest.mark.parametrize("places", SAME_OF_THE_NEW_YORKER.values(), ids=SAME_OF_THE_NEW_YORKER)
def test_what_the_new_yorker_paper_prints_twice_is_the_same(places: list[tuple[int, tuple[str, ...]]]) -> None:
    tables = read_published("newyorker").tables
    shared = [column for column in tables[4].columns if all(column in tables[number].columns for number, _ in places)]
    printed = {tuple(tables[number].value(*row, column=column) for column in shared) for number, row in places}

    assert len(shared) == 3
    assert len(printed) == 1
    assert None not in printed.pop()


def test_two_shares_of_preferred_explanations_are_none_of_their_pairs() -> None:
    """Three ratings make a pair; a printed share is that of some number of pairs, to a tenth of a percent."""
    table = find_published_table("newyorker/3")
    figures = {row.names[0]: table.figures(row) for row in table.rows}
    pairs = {name: int(each["ratings"] or 0) // 3 for name, each in figures.items()}

    odd = [
        name
        for name, each in figures.items()
        if not any(round(100 * won / pairs[name], 1) == each["A wins"] for won in range(pairs[name] + 1))
    ]
    assert [*pairs.values()] == [131, 131, 130, 132, 132, 128, 130]
    assert odd == ["Q2", "Q5"]
    assert [row.names[0] for row in table.rows if row.note] == odd


def test_explanations_of_people_and_of_the_finetuned_model_make_a_whole() -> None:
    remarks = {remark.row: remark.value for remark in read_published("newyorker").in_text[:2]}

    assert remarks["people", "GPT-3 (finetuned)"] == round(
        100 * (131 - remarks["GPT-3 (finetuned)", "people"]) / 131, 1
    )


def test_the_tables_of_sherlock_are_there_each_with_its_source() -> None:
    reference = read_published("sherlock")
    tables = reference.tables

    assert {table.name: (len(table.rows), len(table.columns)) for table in tables.values()} == {
        "Table 2": (9, 7),
        "Table 3": (3, 4),
        "Fig. 5a": (9, 3),
        "RCA": (3, 6),
    }
    assert [len({row.names for row in table.rows}) for table in tables.values()] == [9, 3, 9, 3]
    assert [table.source == reference.source for table in tables.values()] == [True, True, True, False]
    assert find_published_table("sherlock/Fig. 5a").value("No Context", column="P@1") == 24.8
    assert [tables[2].unit(column) for column in ("im→txt", "P@1")] == ["mean rank", "percent"]
    assert [(table.key, row.names) for table in tables.values() for row in table.rows if None in row.values] == [
        (2, ("people",))
    ]
    assert len(reference.in_text) == 17


def test_what_the_sherlock_paper_prints_twice_differs_in_two_cells() -> None:
    twice = {"CLIP ViT-B/16": "CLIP ViT-B/16", "Bbox Position/Size": "Position only"}
    table, ablations = find_published_table("sherlock/2"), find_published_table("sherlock/Fig. 5a")
    pairs = {
        (name, column): (table.value(name, column=column), ablations.value(other, column=column))
        for name, other in twice.items()
        for column in ablations.columns
    }

    assert {place: printed for place, printed in pairs.items() if len({*printed}) > 1} == {
        ("CLIP ViT-B/16", "P@1"): (30.6, 30.5),
        ("CLIP ViT-B/16", "human accuracy"): (21.3, 21.2),
    }


def test_a_column_has_its_unit_and_a_row_its_set() -> None:
    table = find_published_table("pittads/2")
    last = table.rows[-1]

    assert (table.value("BLIP2", column="similarity"), table.unit("similarity")) == (0.45, "cosine")
    assert (last.names, last.set, table.set) == (("GPT-4V",), "small", "full")
    assert (table.figures(last)["> 0.5"], table.unit("> 0.5")) == (77.14, "percent")


def test_what_could_not_be_read_is_no_number() -> None:
    table = find_published_table("pittads/3")
    row = table.row("LLaVA", "I")

    assert table.value("LLaVA", "I", column="precision@1") is None
    assert row is not None
    assert row.inferred["precision@1"] == 59.67
    assert table.value("a new model", "I", column="top-1") is None
    assert sum(value is None for table in TABLES.values() for row in table.rows for value in row.values) == 34


def test_sets_and_remarks() -> None:
    reference = read_published("pittads")

    assert (reference.sets["full"].n, reference.sets["small"].n) == (1168, 250)
    assert [remark.value for remark in reference.in_text if remark.unit == "count"] == [1669, 12]


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(UsageError, match=r"^pittads has no published table 15\. It has 1, 2, 3"):
        find_published_table("pittads/15")
    with pytest.raises(UsageError, match=r"^Table 4 has no column 'F1'\. It has precision@1, "):
        find_published_table("pittads/4").value("LLaVA", "I", column="F1")
    with pytest.raises(UsageError, match=r"^No published table is called 'ads/3'\. Write suite and number, such as"):
        find_published_table("ads/3")
    with pytest.raises(UsageError, match=r"^No published table is called 'pittads'\."):
        find_published_table("pittads")
    with pytest.raises(UsageError, match=r"^No published figures are known of 'ads'\."):
        read_published("ads")


HEAD = "suite: x\nsource: y\nsets: {full: {n: 2, what: z}}\ntables:\n"
ROW = "  1: {title: t, set: full, rows_by: [m], columns: [a, b], rows: [{row: [M], values: [1, 2]}]}\n"
BROKEN = {
    "no YAML": ("a: [", r"x\.yaml', line 2: this is not YAML: "),
    "no tables": ("suite: x\nsource: y\nsets: {}\n", r"malformed: tables is missing\. Mend it there\.$"),
    "unknown field": (HEAD + ROW.replace("title", "tilte"), r"malformed: tables\[1\]\.title is missing"),
    "text for a number": (
        HEAD + ROW.replace("[1, 2]", "[1, two]"),
        r"tables.1.\.rows\[0\]\.values\[1\] is \"two\", not a valid number",
    ),
    "too few values": (
        HEAD + ROW.replace("[1, 2]", "[1]"),
        r": the row \('M',\) has not as many values as there are columns\. Mend it there\.$",
    ),
    "too many names": (HEAD + ROW.replace("[M]", "[M, N]"), r"the row \('M', 'N'\) has not as many names as `rows_by`"),
    "unknown set": (HEAD + ROW.replace("set: full", "set: half"), r"there is no set 'half', which table 1 names\."),
    "unknown column": (HEAD + ROW.replace("rows:", "units: {c: m}, rows:"), r": there is no column 'c'\."),
    "no name": (HEAD + ROW.replace("1:", "1.5:", 1), r"1\.5, not a valid "),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN)
def test_a_file_of_another_form_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(UsageError, match=message):
        read_published_file(path)
