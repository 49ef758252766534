from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.errors import StoreError, UsageError
from askance.retrieval import IndexEntry, entry_id, merge_entries
from askance.retrieval.entries import digest_of, entry_lines, marks_of, read_entries

INSTRUCTIONS = "uct, according to this ad?” (if it is a product ad) or “What should I do, according to this "
CUP, TEA = "I should buy this cup because it lasts.", "Drink tea, now!"


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        (CUP, ()),
        ("I SHOULD EAT THIS BECAUSE IT IS HEALTHY.", ()),
        (TEA, ("no because",)),
        ("n/a", ("junk", "no because")),
        (" N / A. ", ("junk", "no because")),
        ("", ("junk", "no because")),
        ("…", ("junk", "no because")),
        ("Because", ("junk",)),
        ("none", ("junk", "no because")),
        ("喝茶 因为好喝", ("no because",)),
        (INSTRUCTIONS, ("junk", "no because")),
        ("I should act according to this ad because it moves me", ()),
        ("I should use GNU&gt; Becasue I will dominate the competition ", ("no because",)),
    ],
)
def test_what_is_noticed_about_a_text(text: str, marks: tuple[str, ...]) -> None:
    assert marks_of(text) == IndexEntry.of(text).marks == marks


def test_equal_texts_are_one_entry_with_all_images() -> None:
    rows = [
        IndexEntry.of(CUP, ("2.jpg",), "train"),
        IndexEntry.of(f"{CUP} ", ("3.jpg",), "train"),
        IndexEntry.of(TEA, (), ""),
        IndexEntry.of(CUP, ("1.jpg", "2.jpg"), "test"),
    ]

    merged = merge_entries(rows)

    assert [entry.id for entry in merged] == sorted(entry_id(text) for text in (CUP, f"{CUP} ", TEA))
    assert entry_id(CUP) == sha256(CUP.encode()).hexdigest()[:16]
    (cup,) = [entry for entry in merged if entry.text == CUP]
    assert (cup.images, cup.split) == (("2.jpg", "1.jpg"), "test+train")
    assert merge_entries([*merged, *merged]) == merged  # nothing more comes of what is merged already


def test_the_digest_is_that_of_the_ids_in_order() -> None:
    assert digest_of(["ab", "cd"]) == sha256(b"ab\ncd").hexdigest()
    assert digest_of(["cd", "ab"]) != digest_of(["ab", "cd"]) != digest_of(["abcd"])


def test_an_id_is_that_of_its_text() -> None:
    with pytest.raises(
        UsageError, match=r"^The entry 'mine' has the id of another text than 'tea'\. Make entries with"
    ):
        merge_entries([IndexEntry("mine", "tea")])


@given(
    st.lists(
        st.builds(
            IndexEntry.of,
            st.text(st.characters()),  # half a surrogate pair too
            st.lists(st.text(max_size=5), max_size=3),
            st.sampled_from(["", "train", "test"]),
        ),
        max_size=8,
    )
)
def test_entries_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[IndexEntry]
) -> None:
    path, entries = tmp_path_factory.mktemp("entries") / "statements.jsonl", merge_entries(rows)
    path.write_bytes(b"".join(entry_lines(entries)))

    assert read_entries(path) == (entries, sha256(path.read_bytes()).hexdigest())


def line(**changed: Any) -> dict[str, Any]:
    text = changed.get("text", CUP)
    return {"id": entry_id(str(text)), "text": text, "images": [], "split": "", "marks": [], **changed}


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in line().items() if key != name}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([line(text="tea", id=entry_id(CUP))], f"line 1 has a text that is not that of the id '{entry_id(CUP)}'"),
        ([without("text")], "line 1 is no entry of an index"),
        ([line(images="1.jpg", text=7)], "line 1 is no entry of an index"),
        ([line(images=[1])], "line 1 is no entry of an index"),
        ([line(code="x")], "line 1 has an unknown field 'code'"),
        ([[1]], "line 1 is no entry of an index"),
        ([line(), line()], "line 2 does not stand where its id belongs"),
        (sorted((line(), line(text=TEA)), key=lambda row: row["id"], reverse=True), "line 2 does not stand where"),
        (["\0"], None),
    ],
)
def test_lines_that_are_no_entries(tmp_path: Path, lines: list[Any], message: str | None) -> None:
    path = tmp_path / "statements.jsonl"
    path.write_text("".join(each if each == "\0" else json.dumps(each) + "\n" for each in lines))

    with pytest.raises(StoreError) as error:
        read_entries(path)

    assert (message or "line 1 is no JSON") in str(error.value)
    assert str(error.value).endswith("Delete the folder, and build the index again.")


@pytest.mark.parametrize(
    ("limit", "value", "message"),
    [
        ("MOST_BYTES", 100, "it is larger than 100 bytes"),
        ("MOST_LINE", 50, "line 1 is longer than 50 bytes"),
        ("MOST_ENTRIES", 1, "it has more than 1 lines"),
    ],
)
def test_a_file_beyond_the_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, message: str
) -> None:
    path = tmp_path / "statements.jsonl"
    path.write_bytes(b"".join(entry_lines(merge_entries([IndexEntry.of(CUP), IndexEntry.of(TEA)]))))
    monkeypatch.setattr(f"askance.retrieval.entries.{limit}", value)

    with pytest.raises(StoreError, match=message):
        read_entries(path)


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"id": ' * 50_000, b'{"id": 1' + b"0" * 100 + b"}", b"\xff"])
def test_a_line_that_is_made_to_harm(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "statements.jsonl"
    path.write_bytes(content + b"\n")

    with pytest.raises(StoreError, match="line 1"):
        read_entries(path)


def test_a_file_that_is_not_there_or_no_file(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(StoreError, match=r"cannot be read: .*Delete the folder"):
            read_entries(path)
