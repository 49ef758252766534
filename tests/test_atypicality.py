"""Tests of `askance.atypicality`."""

from __future__ import annotations

import pickle
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.atypicality import (
    DEFINITIONS,
    NAMES,
    RELATIONS,
    TEMPLATES,
    Relation,
    Statement,
    all_statements,
    distinct,
    statement_at,
    statement_texts,
)
from askance.errors import UsageError

FRAGMENTS = [word for template in TEMPLATES.values() for word in template.replace("{", " {").split("{")]
NAMES_OF_ALL_KINDS = st.one_of(
    st.text(min_size=1),
    st.lists(
        st.sampled_from([*FRAGMENTS, "cup", "the cat", ",", ".", " ", "\n", "{primary}", '"', "}"]), min_size=1
    ).map("".join),
).filter(str.strip)


@pytest.mark.parametrize(
    ("relation", "text"),
    [
        ("TR1", "The surface of a beer mimics the texture of feather, while retaining its original structure."),
        ("TR2", "a beer appears to be composed of numerous, smaller instances of feather, altering its texture."),
        ("OIO", "a beer is visibly located within feather, in an unconventional manner."),
        ("OR", "a beer completely replaces feather in its usual context, assuming its function or position."),
    ],
    ids=RELATIONS,
)
def test_statement_renders_the_printed_template(relation: Relation, text: str) -> None:
    statement = Statement(relation, "a beer", "feather")
    assert str(statement) == statement.text == text
    assert statement.canonical() == {"relation": relation, "primary": "a beer", "secondary": "feather", "text": text}
    assert Statement.parse(text) == statement


def test_every_relation_has_code_name_definition_and_template() -> None:
    assert RELATIONS == ("TR1", "TR2", "OIO", "OR") == tuple(NAMES) == tuple(DEFINITIONS) == tuple(TEMPLATES)
    assert NAMES["OIO"] == "Object Inside Object"


def ways_to_split(statement: Statement) -> int:
    """At how many places the text of `statement` can be cut into two names, by trying each."""
    template, text = TEMPLATES[statement.relation], statement.text
    head, middle, tail = template.replace("{secondary}", "{primary}").split("{primary}")
    body = text[len(head) : len(text) - len(tail)]
    cuts = [(body[:at], body[at + len(middle) :]) for at in range(len(body)) if body.startswith(middle, at)]
    return sum(all(name and name == name.strip() for name in names) for names in cuts)


@given(st.sampled_from(RELATIONS), NAMES_OF_ALL_KINDS, NAMES_OF_ALL_KINDS)
def test_round_trip_holds_or_parse_says_the_text_is_ambiguous(relation: Relation, primary: str, secondary: str) -> None:
    statement = Statement(relation, primary, secondary)
    assert (statement.primary, statement.secondary) == (primary.strip(), secondary.strip())
    with pytest.raises(UsageError, match="can be read in") if ways_to_split(statement) > 1 else nullcontext():
        assert Statement.parse(statement.text) == statement


@pytest.mark.parametrize(
    "name",
    [
        "The cup, of tea,",
        'a "quoted" cup',
        "{primary}",
        "{0}{",
        "two\nlines",
        "قطة",
        "猫",
        "cup.",
        ", altering its texture.",
        "the surface of a cup",
    ],
)
@pytest.mark.parametrize("relation", RELATIONS)
def test_round_trip_of_awkward_names(relation: Relation, name: str) -> None:
    for statement in (
        Statement(relation, name, "hat"),
        Statement(relation, "hat", name),
        Statement(relation, name, name),
    ):
        assert Statement.parse(statement.text) == statement


@pytest.mark.parametrize(
    "text",
    [
        "The surface of the bottle mimics the texture of feather while retaining its original structure.",
        "the SURFACE of the bottle Mimics The Texture Of feather, while retaining its original structure",
        "\n The  surface of the bottle mimics the texture of feather , while\nretaining its original structure . ",
    ],
    ids=["no comma", "case and no period", "blanks"],
)
def test_parse_forgives_case_commas_blanks_and_the_period(text: str) -> None:
    assert Statement.parse(text) == Statement("TR1", "the bottle", "feather")


def test_parse_forgives_the_inner_comma() -> None:
    text = "cup appears to be composed of numerous smaller instances of coin altering its texture"
    assert Statement.parse(text) == Statement("TR2", "cup", "coin")


def test_parse_prefers_the_reading_that_renders_to_the_very_text() -> None:
    text = "A COMPLETELY REPLACES B completely replaces C in its usual context, assuming its function or position."
    assert Statement.parse(text) == Statement("OR", "A COMPLETELY REPLACES B", "C")


def test_ambiguous_text_is_an_error_that_shows_the_readings() -> None:
    statement = Statement("OR", "a", "b completely replaces c")
    with pytest.raises(UsageError) as caught:
        Statement.parse(statement.text)
    assert str(caught.value) == (
        f"{statement.text!r} can be read in 2 ways: "
        "as 'a' and 'b completely replaces c' or 'a completely replaces b' and 'c'. "
        "Say which objects there are, or rename one whose name holds words of the template."
    )


def test_expected_objects_settle_an_ambiguous_text() -> None:
    statement = Statement("OR", "a", "b completely replaces c")
    assert Statement.parse(statement.text, objects=["The A", "B completely replaces C"]) == statement


@pytest.mark.parametrize("text", ["", "cup", TEMPLATES["OR"].replace("{primary}", " "), "OR", "cup is in bowl."])
def test_text_of_no_template_is_an_error(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        Statement.parse(text)
    assert caught.value.message == f"{text.strip()!r} is no statement of atypicality."
    assert caught.value.hint == (
        "A statement reads like: cat is visibly located within cup, in an unconventional manner."
    )


@given(st.text())
def test_parse_of_any_text_ends_in_a_statement_or_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        Statement.parse(text)


def test_parse_of_long_blanks_takes_linear_time() -> None:
    with pytest.raises(UsageError):
        Statement.parse("x" + " " * 300_000 + "x, , , while retaining")


@pytest.mark.parametrize(
    ("relation", "primary", "message"),
    [
        ("TR3", "cup", "'TR3' is no relation. The four are: TR1, TR2, OIO, OR."),
        ("TR1", " \n", "The primary object of a statement has no name. Name both objects."),
    ],
    ids=["relation", "name"],
)
def test_a_statement_that_cannot_be_is_an_error(relation: Relation, primary: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Statement(relation, primary, "hat")
    assert str(caught.value) == message


def test_all_statements_of_two_objects_in_order() -> None:
    assert all_statements(["cup", "hat"]) == (
        *(Statement(relation, "cup", "hat") for relation in RELATIONS),
        *(Statement(relation, "hat", "cup") for relation in RELATIONS),
    )


@pytest.mark.parametrize(
    ("objects", "count"),
    [([], 0), (["cup"], 0), (["cup", "The  CUP "], 0), (["cup", " ", "hat"], 8), (list("ABCDE"), 80)],
    ids=["none", "one", "same", "blank", "five"],
)
def test_all_statements_counts_distinct_objects(objects: list[str], count: int) -> None:
    assert len(all_statements(objects)) == count


def test_duplicates_fold_and_keep_the_first_spelling() -> None:
    statements = all_statements(["The  Big Cup", "an ape", "big cup", "Ape", "Cafe\u0301", "caf\u00e9", "a"])
    names = list(dict.fromkeys(statement.primary for statement in statements))
    assert names == ["The  Big Cup", "an ape", "Cafe\u0301", "a"]


def test_distinct_names_keep_order_and_first_spelling() -> None:
    assert distinct(["The Cup", "hat", " ", "cup", "A Hat", "Cup"]) == ("The Cup", "hat")


def test_all_statements_of_one_text_is_an_error() -> None:
    with pytest.raises(UsageError) as caught:
        all_statements("cup, hat")
    assert str(caught.value) == "'cup, hat' is one text, not a list of objects. Put the names into a list."


@given(st.lists(NAMES_OF_ALL_KINDS, max_size=5))
def test_all_statements_are_distinct_and_stable(objects: list[str]) -> None:
    statements = all_statements(objects)
    assert len(set(statements)) == len(statements)
    assert statements == all_statements(objects)


@given(st.lists(NAMES_OF_ALL_KINDS, max_size=4).map(tuple))
def test_texts_and_single_statements_are_those_of_all(objects: tuple[str, ...]) -> None:
    statements = all_statements(objects)
    assert statement_texts(objects) == tuple(statement.text for statement in statements)
    assert tuple(statement_at(objects, place) for place in range(len(statements))) == statements


def test_statements_can_be_pickled() -> None:
    statement = Statement("OIO", "cat", "cup")
    assert pickle.loads(pickle.dumps(statement)) == statement
