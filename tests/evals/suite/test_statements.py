from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from askance.errors import BadData
from askance.evals.suite import AdOptions, read_qa
from askance.evals.suite.files import Problems
from tests.evals.pittads.files import record, true_of, write, write_json

KEY = "9/142269.jpg"
TRUE, OPTIONS = record(KEY)

SHAPES: dict[str, tuple[Any, AdOptions]] = {
    "release A, three": (true_of(KEY), AdOptions(key=KEY, shape="true", true=tuple(true_of(KEY)))),
    "release A, five": (true_of(KEY, 5), AdOptions(key=KEY, shape="true", true=tuple(true_of(KEY, 5)))),
    "release B, train": (
        [TRUE, OPTIONS],
        AdOptions(key=KEY, shape="train", true=tuple(TRUE), options=tuple(OPTIONS)),
    ),
    "release B, test": (OPTIONS, AdOptions(key=KEY, shape="test", options=tuple(OPTIONS))),
    "re-cast, with a question": (
        ["Why is it odd?", TRUE, OPTIONS],
        AdOptions(key=KEY, shape="question", question="Why is it odd?", true=tuple(TRUE), options=tuple(OPTIONS)),
    ),
    "re-cast, one true text": (
        [TRUE[0], OPTIONS],
        AdOptions(key=KEY, shape="train", true=(TRUE[0],), options=tuple(OPTIONS)),
    ),
}


@pytest.mark.parametrize(("value", "expected"), SHAPES.values(), ids=SHAPES)
def test_a_value_is_known_by_its_shape(value: Any, expected: AdOptions, own_place: Path) -> None:
    file = read_qa(write_json(own_place / "qa.json", {KEY: value}))

    assert (file.shape, dict(file.records)) == (expected.shape, {KEY: expected})


def test_texts_stay_as_they_are(own_place: Path) -> None:
    texts = ["n/a", " I SHOULD  ", "i should ", "GNU&gt;", "caf\u00e9", "cafe\u0301"]

    file = read_qa(write_json(own_place / "qa.json", {"0/1.jpg": [texts[:3], texts]}))

    assert file.records["0/1.jpg"].options == tuple(texts)
    assert file.records["0/1.jpg"].negatives == tuple(texts[3:])


def test_hard_negatives_are_noted(own_place: Path) -> None:
    name = "large_combined_hard_QA_Combined_Action_Reason_train.json"
    records = {"0/10.jpg": record("a", options=18), "1/11.jpg": record("b", options=18), "2/12.jpg": record("c", 3, 17)}

    file = read_qa(write_json(own_place / name, records))

    assert (file.hard, file.option_counts, file.true_counts) == ("all", {17: 1, 18: 2}, {3: 3})


def test_a_semantic_file_alters_the_statement(own_place: Path) -> None:
    path = write_json(own_place / "semantic_hard_QA_Combined_Action_Reason_train.json", {KEY: [TRUE, OPTIONS]})

    assert read_qa(path).hard == "statement"
    assert read_qa(write_json(own_place / "qa.json", {KEY: [TRUE, OPTIONS]})).hard is None


def test_base_names_get_their_shard(own_place: Path) -> None:
    file = read_qa(write_json(own_place / "test_right.json", {"174225.png": ["a"], "142269.jpg": ["b", "c"]}))

    assert list(file.records) == ["10/174225.png", "9/142269.jpg"]


WRONG: dict[str, tuple[Any, str]] = {
    "no list": ("text", "the value is no list"),
    "empty": ([], r"a list of 0 texts"),
    "six texts": (["a"] * 6, r"a list of 6 texts"),
    "numbers": ([1, 2, 3], "a list of 3 items that is none of the known shapes"),
    "four items": ([TRUE, OPTIONS, TRUE, OPTIONS], "a list of 4 items"),
    "options that are no texts": ([TRUE, [1, 2]], "the options are no list of texts"),
    "no true one": ([[], OPTIONS], "there is no true statement"),
    "none among the options": ([["I should."], OPTIONS], "none of the options is true"),
    "one not among the options": ([[TRUE[0], TRUE[1].strip()], OPTIONS], "the true statement .* is not among the"),
    "more true ones than options": ([TRUE, TRUE[:2]], "there are 3 true statements and only 2 options"),
}


@pytest.mark.parametrize(("value", "message"), WRONG.values(), ids=WRONG)
def test_anything_else_is_refused_with_file_and_key(value: Any, message: str, own_place: Path) -> None:
    path = write_json(own_place / "qa.json", {KEY: value})

    with pytest.raises(BadData, match=rf"^The file '.*qa\.json', key '9/142269\.jpg': {message}") as caught:
        read_qa(path)
    assert caught.value.hint


FILES: dict[str, tuple[str | bytes, str]] = {
    "no JSON": ("{", "is no JSON"),
    "NaN": ('{"0/1.jpg": NaN}', "is no JSON: it holds NaN"),
    "a list": ("[]", "holds no JSON object"),
    "nothing": ("", "is no JSON"),
    "an empty object": ("{}", "is an empty object"),
    "a key twice": ('{"0/1.jpg": ["a"], "0/1.jpg": ["b"]}', r"has the key '0/1\.jpg' twice"),
    "a key twice, in two forms": ('{"0/10.jpg": ["a"], "10.jpg": ["b"]}', r"the image '0/10\.jpg' stands there twice"),
    "deep": ("[" * 200_000, "is nested too deeply"),
    "Latin-1": ('{"0/1.jpg": ["café"]}'.encode("latin-1"), r"is no UTF-8 text: byte 17 is 0xe9"),
    "out of the folder": ('{"../../etc/passwd.jpg": ["a"]}', r"the key '\.\./\.\./etc/passwd\.jpg' leads out of the"),
    "an absolute path": ('{"/etc/passwd.jpg": ["a"]}', "leads out of the data folder"),
    "a blank key": ('{" ": ["a"]}', "' ' is no path of an image"),
    "both releases": ('{"0/1.jpg": ["a"], "0/2.jpg": [["a"], ["a", "b"]]}', "true statements and options, and at"),
}


@pytest.mark.parametrize(("text", "message"), FILES.values(), ids=FILES)
def test_a_file_of_another_kind_is_refused(text: str | bytes, message: str, own_place: Path) -> None:
    with pytest.raises(BadData, match=rf"The file '.*qa\.json'.*{message}"):
        read_qa(write(own_place / "qa.json", text))


def test_a_bomb_is_refused(own_place: Path) -> None:
    with pytest.raises(BadData, match=r"holds more than 16,000,000 values\."):
        read_qa(write(own_place / "qa.json", '{"0/1.jpg": [' + "[]," * 8_000_001))


def test_a_file_without_end_is_refused(own_place: Path) -> None:
    with (own_place / "qa.json").open("wb") as file:
        file.truncate(1 << 30)

    with pytest.raises(BadData, match="has more than 256 MB"):
        read_qa(own_place / "qa.json")


def test_a_byte_order_mark_names_the_encoding(own_place: Path) -> None:
    path = write(own_place / "qa.json", '{"0/1.jpg": ["café"]}'.encode("utf-16"))

    assert read_qa(path).records["0/1.jpg"].true == ("café",)


def test_problems_are_collected_and_the_rest_is_read(own_place: Path) -> None:
    problems: Problems = []
    values = {"0/10.jpg": [TRUE, OPTIONS], "1/11.jpg": [[], OPTIONS], "../12.jpg": [TRUE, OPTIONS], "3/13.jpg": ["a"]}

    file = read_qa(write_json(own_place / "qa.json", values), problems)

    assert list(file.records) == ["0/10.jpg"]
    assert len(problems) == 3
