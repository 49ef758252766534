"""Rows of tables: CSV, JSON lines, Parquet, Arrow, folders that `datasets` saved, and data sets of the hub."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from askance.data_table import (
    ArrowFiles,
    arrow_table,
    as_list,
    hub_table,
    names_data_table,
    open_data_table,
    picture_in,
)
from askance.data_table import (
    row as table_row,
)
from askance.errors import BadData, MissingExtra, UsageError

PICTURE = b"\x89PNG and so on"
ROWS: Sequence[Mapping[str, Any]] = (
    {"path": "a.jpg", "choices": ["yes", "no"], "year": 1999},
    {"path": "b.jpg", "choices": ["left", "right"], "year": None},
)


def _arrow() -> Any:
    import pyarrow as pa  # pyright: ignore[reportMissingTypeStubs]
    import pyarrow.parquet  # pyright: ignore[reportMissingTypeStubs, reportUnusedImport]

    return pa


def _parquet(path: Path, rows: Sequence[Mapping[str, Any]] = ROWS, *, group: int | None = None) -> Path:
    _arrow().parquet.write_table(
        _arrow().Table.from_pylist([*rows]), path, row_group_size=group, use_dictionary=not group
    )
    return path


def _stream(path: Path, rows: Sequence[Mapping[str, Any]] = ROWS) -> Path:
    table = _arrow().Table.from_pylist([*rows])
    with _arrow().ipc.new_stream(str(path), table.schema) as stream:
        stream.write_table(table)
    return path


def _arrow_file(path: Path) -> Path:
    table = _arrow().Table.from_pylist([*ROWS])
    with _arrow().ipc.new_file(str(path), table.schema) as file:
        file.write_table(table)
    return path


def _saved(folder: Path, parts: Sequence[Sequence[Mapping[str, Any]]] = (ROWS[:1], ROWS[1:])) -> Path:
    """A folder as `Dataset.save_to_disk` writes it."""
    folder.mkdir(parents=True)
    names = [f"data-{number:05}-of-{len(parts):05}.arrow" for number in range(len(parts))]
    for name, rows in zip(names, parts, strict=True):
        table = _arrow().Table.from_pylist([*rows], schema=_arrow().Table.from_pylist([*ROWS]).schema)
        with _arrow().ipc.new_stream(str(folder / name), table.schema) as stream:
            stream.write_table(table)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    return folder


def _csv(path: Path) -> Path:
    lines = ("path,choices,year", 'a.jpg,"[""yes"", ""no""]",1999', 'b.jpg,"[""left"", ""right""]",', "")
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def _jsonl(path: Path) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n\n" for row in ROWS), encoding="utf-8")
    return path


def _rows(source: str | Path, columns: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    return [dict(row) for row in open_data_table(source).rows(columns)]


KINDS: Mapping[str, Callable[[Path], Path]] = {
    "t.csv": _csv,
    "t.jsonl": _jsonl,
    "t.parquet": _parquet,
    "stream.arrow": _stream,
    "file.arrow": _arrow_file,
    "saved": _saved,
}


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_gives_the_same_rows(name: str, tmp_path: Path) -> None:
    source = KINDS[name](tmp_path / name)
    table = open_data_table(source)
    rows = list(table.rows({"image": "path", "options": "choices", "when": "year"}))
    assert table.columns == ("path", "choices", "year")
    assert table.home == (source if source.is_dir() else tmp_path)
    assert [(row["image"], as_list(row["options"])) for row in rows] == [
        ("a.jpg", ["yes", "no"]),
        ("b.jpg", ["left", "right"]),
    ]
    assert str(rows[0]["when"]) == "1999"
    assert "when" not in rows[1], "what a row leaves empty it does not have"
    assert [row.number for row in rows] == [1, 2]
    assert all(repr(str(source)) in row.where for row in rows)
    assert rows == list(table.rows({"image": "path", "options": "choices", "when": "year"})), "it can be read again"


@pytest.mark.parametrize("name", KINDS)
def test_without_a_mapping_all_columns_are_read(name: str, tmp_path: Path) -> None:
    source = KINDS[name](tmp_path / name)
    assert names_data_table(str(source))
    assert [sorted(row) for row in _rows(source)] == [["choices", "path", "year"], ["choices", "path"]]


@pytest.mark.parametrize("name", KINDS)
def test_a_column_that_is_not_there_is_named_with_those_that_are(name: str, tmp_path: Path) -> None:
    source = KINDS[name](tmp_path / name)
    with pytest.raises(BadData, match=r"'picture'.*'path', 'choices', 'year'"):
        _rows(source, {"image": "picture"})


def test_rows_are_read_as_they_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n1,2,3\n")
    rows = open_data_table(path).rows()
    assert dict(next(rows)) == {"a": "1", "b": "2"}
    with pytest.raises(BadData, match=r"line 3: 3 fields, and the first line names 2"):
        next(rows)


def test_tabs_byte_order_marks_and_line_breaks_in_fields(tmp_path: Path) -> None:
    tabs, wide = tmp_path / "t.tsv", tmp_path / "wide.csv"
    tabs.write_text("a\tb\r\n1,5\tx\r\n")
    wide.write_bytes('a,b\n"über\nzwei",2\n\n'.encode("utf-16"))
    assert _rows(tabs) == [{"a": "1,5", "b": "x"}]
    assert _rows(wide) == [{"a": "über\nzwei", "b": "2"}]


def test_a_short_row_lacks_its_last_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1\n2,3")
    assert _rows(path) == [{"a": "1"}, {"a": "2", "b": "3"}]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", "", "is empty"),
        ("t.csv", "a,b\n", "has no row"),
        ("t.csv", "a,a\n1,2\n", "has the column 'a' 2 times"),
        ("t.csv", 'a,b\n"1,2\n', "ends within a quoted field"),
        ("t.csv", f"a\n{'x' * 1_000_001}\n", "line 2: it is longer than 1,000,000 characters"),
        ("t.csv", f'a\n"{"x" * 200_000}"\n', "line 2: no CSV"),
        ("t.jsonl", "", "has no row"),
        ("t.jsonl", "[1]\n", "line 1 is no JSON object"),
        ("t.jsonl", '{"a": 1}\n{"a": 1\n', "line 2 is no JSON"),
        ("t.jsonl", '{"a": 1, "a": 2}\n', "gives a name twice"),
        ("t.jsonl", f'{{"a": {"[" * 200}{"]" * 200}}}\n', "is nested deeper than 100 levels"),
        ("t.parquet", "no parquet", "cannot be read as Arrow"),
        ("t.arrow", "no arrow", "cannot be read as Arrow"),
        ("t.txt", "a\n", "is no table. A table ends in .arrow, .csv"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BadData) as caught:
        _rows(tmp_path / name)
    assert message in str(caught.value)
    assert name in str(caught.value)
    assert caught.value.hint


def test_text_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("a\nü\n".encode("latin-1"))
    with pytest.raises(BadData, match="is no text in UTF-8"):
        _rows(tmp_path / "t.csv")


def test_a_file_that_is_not_there_and_a_folder_that_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(BadData, match=r"There is no file .*none.csv"):
        open_data_table(tmp_path / "none.csv")
    with pytest.raises(BadData, match=r"is no data set that `datasets` saved. `hf:"):
        open_data_table(tmp_path)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_more_rows_than_the_limit_are_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = KINDS[name](tmp_path / name)
    monkeypatch.setattr(table_row, "MOST_ROWS", 1)
    monkeypatch.setattr(arrow_table, "MOST_ROWS", 1)
    rows = open_data_table(source).rows()
    next(rows)
    with pytest.raises(BadData, match="has more than 1 rows"):
        next(rows)


def test_a_row_group_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = _parquet(tmp_path / "t.parquet", [{"text": "x" * 100_000, "id": number} for number in range(20)])
    assert source.stat().st_size < 50_000
    monkeypatch.setattr(arrow_table, "MOST_GROUP", 90_000)
    assert len(_rows(source, {"id": "id"})) == 20, "only what is read counts"
    with pytest.raises(BadData, match=r"has a row group of .* GB. Write it with smaller row groups"):
        _rows(source)


@pytest.mark.parametrize("write", [_parquet, _stream])
def test_columns_nested_without_end_are_refused(write: Callable[[Path, Any], Path], tmp_path: Path) -> None:
    value: Any = 1
    for _ in range(30):
        value = [value]
    with pytest.raises(BadData, match="the column 'a' is nested deeper than 20 levels"):
        open_data_table(write(tmp_path / ("t.parquet" if write is _parquet else "t.arrow"), [{"a": value}]))


def test_an_arrow_file_with_offsets_beyond_its_data_is_refused(tmp_path: Path) -> None:
    """Offsets of texts are numbers in the file; followed as they stand they would lead into foreign memory."""
    path = _stream(tmp_path / "t.arrow", [{"text": "abcd"}, {"text": "efgh"}])
    data = path.read_bytes()
    offsets = b"".join(number.to_bytes(4, "little") for number in (0, 4, 8))
    assert data.count(offsets) == 1
    path.write_bytes(data.replace(offsets, b"".join(number.to_bytes(4, "little") for number in (0, 4, 1_000_000))))
    with pytest.raises(BadData, match="cannot be read as Arrow"):
        _rows(path)
    with pytest.raises(BadData, match="cannot be read as Arrow"):
        ArrowFiles([path]).cell("text", 1)


@pytest.mark.parametrize("write", [_parquet, _stream])
def test_a_cell_is_found_in_whichever_file_it_is(write: Callable[[Path, Any], Path], tmp_path: Path) -> None:
    suffix = "parquet" if write is _parquet else "arrow"
    rows = [{"id": number, "picture": {"bytes": bytes([number]), "path": None}} for number in range(7)]
    files = [write(tmp_path / f"{start}.{suffix}", rows[start : start + 3]) for start in (0, 3, 6)]
    table = ArrowFiles(files)

    for row in (6, 0, 1, 5, 2, 3, 4):
        assert table.cell("picture", row)["bytes"] == bytes([row])
    assert table.rows(["id"]) == [{"id": number} for number in range(7)]
    with pytest.raises(IndexError):
        table.cell("id", 7)


def test_a_cell_is_read_with_its_row_group_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"id": number, "text": f"{number}" * 60_000} for number in range(4)]
    table = ArrowFiles([_parquet(tmp_path / "t.parquet", rows, group=1)])
    monkeypatch.setattr(arrow_table, "MOST_GROUP", 90_000)

    assert [table.cell("text", row)[0] for row in (3, 1)] == ["3", "1"]
    monkeypatch.setattr(arrow_table, "MOST_GROUP", 50_000)
    assert table.cell("text", 1)[0] == "1", "it is held"
    with pytest.raises(BadData, match=r"has a row group of .* GB. Write it with smaller row groups"):
        table.cell("text", 2)


def test_files_of_two_tables_are_refused(tmp_path: Path) -> None:
    files = [_parquet(tmp_path / f"{name}.parquet", [{name: 1}]) for name in ("a", "b")]

    with pytest.raises(BadData, match=r"b\.parquet' has other columns than .*a\.parquet'"):
        ArrowFiles(files)


def test_rows_and_items_without_end_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ArrowFiles([_parquet(tmp_path / "t.parquet", [{"id": number, "many": [1] * 9} for number in range(200)])])
    monkeypatch.setattr(arrow_table, "MOST_ITEMS", 500)
    assert len(table.rows(["id"])) == 200
    with pytest.raises(BadData, match="or lists of too many items"):
        table.rows(["many"])
    monkeypatch.setattr(table_row, "MOST_ROWS", 100)
    monkeypatch.setattr(arrow_table, "MOST_ROWS", 100)
    with pytest.raises(BadData, match="has more than 100 rows"):
        table.rows(["id"])


def test_values_of_arrow_become_those_of_json(tmp_path: Path) -> None:
    from datetime import UTC, datetime
    from decimal import Decimal

    row = {
        "day": datetime(2024, 5, 1, tzinfo=UTC),
        "price": Decimal("1.50"),
        "nan": float("nan"),
        "image": {"bytes": PICTURE, "path": "a.png"},
        "tags": [{"n": 1}],
    }
    found = _rows(_parquet(tmp_path / "t.parquet", [row]))[0]
    assert found == {
        "day": "2024-05-01T00:00:00+00:00",
        "price": "1.50",
        "image": {"bytes": PICTURE, "path": "a.png"},
        "tags": [{"n": 1}],
    }


def test_what_a_picture_and_a_list_may_be() -> None:
    assert picture_in("a.jpg") == "a.jpg"
    assert picture_in(PICTURE) == PICTURE
    assert picture_in({"bytes": PICTURE, "path": "a.jpg"}) == PICTURE
    assert picture_in({"bytes": None, "path": "a.jpg"}) == "a.jpg"
    assert picture_in({"bytes": None, "path": None}) is None
    assert picture_in(3) is None
    assert as_list(["a"]) == ["a"]
    assert as_list(' ["a", "b"]') == ["a", "b"]
    assert as_list("[a, b") is None
    assert as_list("a") is None


def test_splits_of_a_saved_folder_are_named(tmp_path: Path) -> None:
    (tmp_path / "ads").mkdir()
    (tmp_path / "ads" / "dataset_dict.json").write_text('{"splits": ["test"]}')
    _saved(tmp_path / "ads" / "test")
    assert len(_rows(tmp_path / "ads")) == 2
    _saved(tmp_path / "ads" / "train")
    with pytest.raises(BadData, match=r"holds the splits test, train. Name one: '.*ads/test'"):
        _rows(tmp_path / "ads")
    assert len(_rows(f"hf:{tmp_path}/ads?split=train")) == 2, "no library is asked for what pyarrow reads"


@pytest.mark.parametrize(
    "state",
    [
        "{}",
        "no",
        '{"_data_files": []}',
        '{"_data_files": [{"filename": "../t.arrow"}]}',
        '{"_data_files": [{"filename": "ABOVE/t.arrow"}]}',
    ],
)
def test_a_saved_folder_leads_nowhere_else(state: str, tmp_path: Path) -> None:
    _stream(tmp_path / "t.arrow")
    folder = _saved(tmp_path / "saved")
    (folder / "state.json").write_text(state.replace("ABOVE", str(tmp_path)))
    with pytest.raises(BadData, match=r"names no files|lacks"):
        _rows(folder)


def test_a_selection_by_row_numbers_is_refused(tmp_path: Path) -> None:
    folder = _saved(tmp_path / "saved")
    state = json.loads((folder / "state.json").read_text())
    (folder / "state.json").write_text(json.dumps({**state, "_indices_data_files": [{"filename": "i.arrow"}]}))
    with pytest.raises(BadData, match="flatten_indices"):
        _rows(folder)


def test_without_the_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"datasets is not installed. pip install 'askance\[hf\]'"):
        open_data_table("hf:somebody/ads")
    source = _parquet(tmp_path / "t.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtra, match=r"pyarrow is not installed. pip install 'askance\[arrow\]'"):
        open_data_table(source)


@pytest.mark.parametrize(
    "name",
    [
        "hf:",
        "hf:a/b?spilt=test",
        "hf:a/b?split",
        "hf:a/b?split=x&split=y",
        "hf:pandas?split=train",
        "hf:csv",
        "hf:../x",
        "hf:a/..",
        "hf:hf://datasets/a/b",
        "hf:buckets/a/b",
    ],
)
def test_a_name_of_the_hub_that_cannot_be_read(name: str) -> None:
    with pytest.raises(BadData, match=r"is no name of a data set. Write hf:OWNER/NAME"):
        open_data_table(name)


class Hub(SimpleNamespace):
    """Stands for the library `datasets`: what is asked of it, and data sets of one or two splits."""

    def __init__(self, cache: Path) -> None:
        config = SimpleNamespace(HF_HUB_OFFLINE=False, HF_DATASETS_CACHE=str(cache))
        super().__init__(config=config, asked=[], builder="parquet", files={}, rows=[*ROWS], ArrowBasedBuilder=object)
        self.card, self.cards, self.cache_dir = "", cache / "cards", ""

    def disable_progress_bars(self) -> None:
        pass

    def snapshot_download(self, name: str, *, revision: str | None, **_: object) -> str:
        """The folder of a commit, with its settings."""
        folder = self.cards / f"commit of {revision or 'main'}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".huggingface.yaml").write_text(self.card or "a: b", encoding="utf-8")
        return str(folder)

    def DownloadManager(self, **_: object) -> Any:  # noqa: N802  # as the library calls it
        def download(named: Sequence[str]) -> list[str]:
            return [name.rpartition("@1/")[2] for name in named]

        return SimpleNamespace(download=download)

    def HfFileSystem(self) -> Any:  # noqa: N802  # as the library calls it
        def info(file: str) -> Mapping[str, int]:
            return {"size": Path(file.rpartition("@1/")[2]).stat().st_size}

        return SimpleNamespace(info=info)

    def get_dataset_split_names(self, path: str, config: str | None, *, revision: str | None) -> list[str]:
        return ["test"] if path == "a/one" else ["train", "test"]

    def stream(self, *, split: str) -> Streamed:
        assert split == "test"
        return Streamed(self.rows, self.asked)

    def load_dataset_builder(self, path: str, config: str | None, *, revision: str | None) -> Any:
        if path == "nobody/none" or (self.config.HF_HUB_OFFLINE and path == "a/large"):
            raise FileNotFoundError("Dataset 'nobody/none' doesn't exist on the Hub.\nOr not.")

        def load(*, split: str) -> Loaded:
            self.asked.append((path, config, split, revision))
            return Loaded([*self.rows])

        kind = type("Builder", (), {"__module__": f"datasets.packaged_modules.{self.builder}.{self.builder}"})
        builder: Any = kind()
        builder.config = SimpleNamespace(data_files=self.files)
        builder.info = SimpleNamespace(splits=["test"])
        builder.download_and_prepare = lambda: self.asked.append("prepared")
        builder.as_dataset = load
        builder.as_streaming_dataset = self.stream
        builder.cache_dir, builder.hash = self.cache_dir or f"{self.config.HF_DATASETS_CACHE}/{path}", "1"
        return builder


class Loaded:
    """A data set as the library gives it."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = rows
        self.column_names = list(rows[0])

    def __len__(self) -> int:
        return len(self.rows)

    def select_columns(self, names: Sequence[str]) -> Loaded:
        return Loaded([{name: row[name] for name in names} for row in self.rows])

    def with_format(self, kind: str) -> Loaded:
        assert kind == "arrow", "in any other form it would decode pictures"
        return self

    def iter(self, *, batch_size: int) -> Any:
        for start in range(0, len(self.rows), batch_size):
            yield _arrow().Table.from_pylist([*self.rows[start : start + batch_size]])


class Streamed(Loaded):
    """A data set that is fetched as it is gone through."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], asked: list[Any]) -> None:
        super().__init__(rows or [{"path": ""}])
        self.rows, self.asked = rows, asked

    def skip(self, count: int) -> Streamed:
        return Streamed(self.rows[count:], self.asked)

    def iter(self, *, batch_size: int) -> Any:
        for table in super().iter(batch_size=batch_size):
            self.asked.append(table.num_rows)
            yield table


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Hub:
    return stand_in(monkeypatch, tmp_path / "cache")


def stand_in(monkeypatch: pytest.MonkeyPatch, cache: Path) -> Hub:
    """A hub in the place of the library; of its data sets every one is large enough to be streamed."""
    hub = Hub(cache)
    for name in ("datasets", "huggingface_hub", "huggingface_hub.utils"):
        monkeypatch.setitem(sys.modules, name, hub)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(hub_table, "STREAMED_FROM", 0)
    return hub


def test_a_data_set_of_the_hub(hub: Hub) -> None:
    table = open_data_table("hf:a/two?split=test&config=en&revision=abc")
    assert hub.asked == ["prepared", ("a/two", "en", "test", "commit of abc")]
    assert table.home is None
    assert [dict(row) for row in table.rows({"image": "path"})] == [{"image": "a.jpg"}, {"image": "b.jpg"}]
    assert next(table.rows()).where == "'hf:a/two?split=test&config=en&revision=abc', row 1"
    assert not hub.config.HF_HUB_OFFLINE


def test_the_only_split_needs_no_name_and_one_of_several_does(hub: Hub) -> None:
    open_data_table("hf:a/one")
    assert hub.asked == ["prepared", ("a/one", None, "test", "commit of main")]
    with pytest.raises(BadData, match=r"has the splits train, test. Name one: hf:a/two\?split=test"):
        open_data_table("hf:a/two")


def test_what_the_library_raises_becomes_a_message(hub: Hub) -> None:
    with pytest.raises(BadData, match=r"'hf:nobody/none' cannot be loaded: Dataset .* Hub. Or not. Check the name"):
        open_data_table("hf:nobody/none")


def test_offline_no_server_is_asked(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "")

    def asking(*_: object, **__: object) -> list[str]:
        pytest.fail("this asks the hub")

    monkeypatch.setattr(hub, "get_dataset_split_names", asking)
    open_data_table("hf:a/one", offline=True)
    assert hub.config.HF_HUB_OFFLINE


def test_of_a_data_set_whose_first_rows_are_wanted_no_more_is_fetched(hub: Hub) -> None:
    hub.rows = [{"path": f"{number}.jpg"} for number in range(200)]

    def first(count: int, *, offline: bool = False) -> list[str]:
        hub.config.HF_HUB_OFFLINE = False
        table = open_data_table("hf:a/large?split=test", offline=offline, stream=True)
        return [row["path"] for row in islice(table.rows(), count)]

    assert first(20) == [row["path"] for row in hub.rows[:20]]
    assert hub.asked == [64]
    assert first(100) == [row["path"] for row in hub.rows[:100]]
    assert hub.asked == [64, 64], "what was fetched is kept"
    assert first(100, offline=True) == first(100)
    with pytest.raises(
        BadData, match=r"^Of 'hf:a/large\?split=test' only 128 rows are kept, and a replay fetches none"
    ):
        first(129, offline=True)
    assert len(first(300)) == 200
    assert len(first(300, offline=True)) == 200


@pytest.mark.parametrize("rows", [64, 128])
def test_a_data_set_that_ends_with_its_file_ends(rows: int, hub: Hub) -> None:
    hub.rows = [{"path": f"{number}.jpg"} for number in range(rows)]
    for _ in range(2):
        table = open_data_table("hf:a/large?split=test", stream=True)
        assert len([*table.rows()]) == rows
    assert len([*open_data_table("hf:a/large?split=test", offline=True, stream=True).rows()]) == rows


def test_a_data_set_that_was_loaded_or_a_part_of_one_is_not_streamed(hub: Hub, tmp_path: Path) -> None:
    open_data_table("hf:a/large?split=test[:10]", stream=True)
    (tmp_path / "cache" / "a" / "large").mkdir(parents=True)
    (tmp_path / "cache" / "a" / "large" / "dataset_info.json").write_text("{}")
    open_data_table("hf:a/large?split=test", stream=True)
    assert hub.asked[::2] == ["prepared", "prepared"]


def test_a_small_data_set_is_not_streamed_so_that_what_it_unpacks_to_is_checked(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = _packed_text(tmp_path / "train.csv", "gzip")
    hub.files = {"test": [f"hf://datasets/a/large@1/{file}"]}
    monkeypatch.setattr(hub_table, "MOST_UNPACKED", 1_000_000)
    monkeypatch.setattr(hub_table, "STREAMED_FROM", 1_000_000)

    with pytest.raises(BadData, match="unpacks to more than 1,000,000 bytes"):
        open_data_table("hf:a/large?split=test", stream=True)


def test_a_row_with_endless_items_is_refused_before_it_is_made(own_place: Path) -> None:
    arrow = _arrow()
    values = arrow.ListArray.from_arrays(arrow.array([0, 2_000_000], arrow.int32()), arrow.nulls(2_000_000))
    arrow.parquet.write_table(arrow.table({"choices": values}), own_place / "bomb.parquet", compression="zstd")
    assert (own_place / "bomb.parquet").stat().st_size < 10_000

    with pytest.raises(BadData, match="row 1 has a list of too many items"):
        list(open_data_table(str(own_place / "bomb.parquet")).rows())


def test_a_text_that_is_too_long_for_a_path_is_no_table() -> None:
    assert not names_data_table("What is odd? " * 50)


def test_a_row_that_looks_like_the_end_ends_nothing(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text("id\na\n\x1eend\nb\n", encoding="utf-8")

    assert [row["id"] for row in open_data_table(file).rows()] == ["a", "\x1eend", "b"]


@pytest.mark.parametrize("name", ["pandas", "sql", "harbor", "a_new_one"])
def test_only_builders_that_are_known_to_read_data_alone_are_used(name: str, hub: Hub) -> None:
    hub.builder = name
    with pytest.raises(BadData, match=f"'hf:a/two[?]split=test' is read by the builder '{name}', which is not used"):
        open_data_table("hf:a/two?split=test")
    assert hub.asked == []


@pytest.mark.parametrize("file", ["http://127.0.0.1/x.csv", "hf://datasets/other/one@1/x.csv", "/etc/passwd"])
def test_a_data_set_of_the_hub_loads_its_own_files_alone(file: str, hub: Hub) -> None:
    hub.files = {"test": ["hf://datasets/a/two@1/x.csv", file]}
    with pytest.raises(BadData, match="leads out of the data set"):
        open_data_table("hf:a/two?split=test")
    assert hub.asked == []


def test_a_card_of_the_hub_is_read_before_the_files_that_it_names_are_looked_for(hub: Hub) -> None:
    hub.card = "configs:\n- config_name: default\n  data_files: http://127.0.0.1:9/x.csv\n"

    def looking(*_: object, **__: object) -> None:
        pytest.fail("this looks for the files")

    hub.load_dataset_builder = looking
    with pytest.raises(BadData, match="'hf:a/two' leads out of the data set: 'http:"):
        open_data_table("hf:a/two")


@pytest.mark.parametrize(
    ("card", "message"),
    [
        ("configs: default", "huggingface.yaml': `configs` is no list of maps. Mend the file"),
        ("configs: [default]", "huggingface.yaml': `configs` is no list of maps. Mend the file"),
        (f"configs: [{{data_files: [{'a, ' * 10_001}]}}]", "names more than 10,000 files. Name them by a pattern"),
        ("configs: [", "huggingface.yaml', line 2: this is not YAML"),
    ],
    ids=["text", "texts", "many", "broken"],
)
def test_a_card_of_another_form_is_refused_in_words(card: str, message: str, hub: Hub) -> None:
    hub.card = card
    with pytest.raises(UsageError, match=message):
        open_data_table("hf:a/two?split=test")


def _packed_text(path: Path, kind: str) -> Path:
    text = b"image\n" + b"x" * 2_000_000
    match kind:
        case "gzip":
            path.write_bytes(gzip.compress(text))
        case "bzip2":
            path.write_bytes(bz2.compress(text))
        case "xz":
            path.write_bytes(lzma.compress(text))
        case "zip":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("train.csv", text)
        case "parquet":
            path = path.with_suffix(".parquet")
            _arrow().parquet.write_table(_arrow().table({"a": [TEXT] * 200}), path, compression="zstd")
        case _:
            path.write_bytes(_arrow().Codec(kind).compress(text, asbytes=True))
    return path


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "xz", "zip", "zstd", "lz4", "parquet"])
def test_files_of_a_data_set_that_unpack_to_much_are_refused(
    kind: str, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _packed_text(tmp_path / "train.csv", kind)
    hub.files = {"test": [f"hf://datasets/a/two@1/{file}"]}
    open_data_table("hf:a/two?split=test")
    monkeypatch.setattr(arrow_table, "MOST_UNPACKED", 1_000_000)
    monkeypatch.setattr(hub_table, "MOST_UNPACKED", 1_000_000)
    with pytest.raises(BadData, match="unpacks to more than 1,000,000 bytes"):
        open_data_table("hf:a/two?split=test")
    assert hub.asked.count("prepared") == 1

    hub.cache_dir = str(tmp_path)  # it was loaded before
    open_data_table("hf:a/two?split=test")


CARDS = {
    "an address": "http://127.0.0.1:9/x.csv",
    "above": "../x.csv",
    "absolute": "/etc/passwd",
    "a chain": "zip://x.csv::http://127.0.0.1:9/x.zip",
    "home": "~/x.csv",
}


@pytest.mark.parametrize(
    "field", ["data_files: '{}'", "data_files: [{{split: a, path: ['x.csv', '{}']}}]", "data_dir: '{}'"]
)
@pytest.mark.parametrize("named", CARDS.values(), ids=CARDS)
@pytest.mark.parametrize("card", ["README.md", ".huggingface.yaml"])
def test_a_card_leads_not_out_of_its_folder(card: str, named: str, field: str, own_place: Path) -> None:
    pytest.importorskip("huggingface_hub")
    (own_place / "mine").mkdir()
    (own_place / "mine" / "x.csv").write_text("id\na\n", encoding="utf-8")
    told = f"configs:\n- config_name: default\n  {field.format(named)}\n"
    (own_place / "mine" / card).write_text(f"---\n{told}---\n" if card == "README.md" else told, encoding="utf-8")

    with pytest.raises(BadData, match="leads out of the data set"):
        open_data_table(f"hf:{own_place / 'mine'}")


def test_files_of_a_folder_are_no_links_to_elsewhere(hub: Hub, own_place: Path) -> None:
    (own_place / "mine").mkdir()
    (own_place / "x.csv").write_text("id\na\n", encoding="utf-8")
    (own_place / "mine" / "x.csv").symlink_to(own_place / "x.csv")
    hub.files = {"train": [str(own_place / "mine" / "x.csv")]}

    with pytest.raises(BadData, match="leads out of the data set"):
        open_data_table(f"hf:{own_place / 'mine'}?split=train")


# --- bombs -----------------------------------------------------------------------------------------------------------

TEXT = "x" * 10_000


def _packed(path: Path, table: Any, kind: str) -> Path:
    """A small file that holds much: repeated values in Parquet, compressed buffers in the formats of Arrow."""
    if kind == "parquet":
        _arrow().parquet.write_table(table, path.with_suffix(".parquet"), compression="zstd")
        return path.with_suffix(".parquet")
    options = _arrow().ipc.IpcWriteOptions(compression="lz4" if kind == "lz4" else "zstd")
    make = _arrow().ipc.new_stream if kind == "stream" else _arrow().ipc.new_file
    with make(str(path.with_suffix(".arrow")), table.schema, options=options) as file:
        file.write_table(table)
    return path.with_suffix(".arrow")


PACKED = ("parquet", "stream", "file", "lz4")


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize(
    "value", [TEXT, [TEXT], {"path": TEXT}, [{"path": [TEXT]}]], ids=["text", "list", "map", "nested"]
)
def test_a_small_file_that_unpacks_to_much_is_refused(
    value: Any, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_table, "MOST_UNPACKED", 1_000_000)
    monkeypatch.setattr(hub_table, "MOST_UNPACKED", 1_000_000)
    file = _packed(tmp_path / "bomb", _arrow().table({"a": [value] * 200}), kind)
    assert file.stat().st_size < 50_000

    with pytest.raises(BadData, match=r"bomb[.]\w+'.* unpacks to more than 1,000,000 bytes"):
        list(open_data_table(file).rows())
    with pytest.raises(BadData, match="unpacks to more than 1,000,000 bytes"):
        ArrowFiles([file]).rows(["a"])


@pytest.mark.parametrize("kind", PACKED)
def test_what_is_compressed_within_reason_is_read(kind: str, tmp_path: Path) -> None:
    rows = [{"a": [f"{number}"], "b": number, "c": {"d": None if number % 3 else "x"}} for number in range(300)]
    file = _packed(tmp_path / "table", _arrow().Table.from_pylist(rows), kind)

    found = [dict(row) for row in open_data_table(file).rows()]

    assert [row["a"] for row in found] == [row["a"] for row in rows]
    assert [row["c"] for row in found] == [row["c"] for row in rows]
    assert ArrowFiles([file]).cell("b", 299) == 299


@pytest.mark.parametrize("value", [TEXT, {"path": TEXT}, [TEXT]], ids=["text", "map", "list"])
def test_a_cell_of_a_small_file_that_unpacks_to_much_is_refused(
    value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_table, "MOST_UNPACKED", 1_000_000)
    monkeypatch.setattr(hub_table, "MOST_UNPACKED", 1_000_000)
    file = _packed(tmp_path / "bomb", _arrow().table({"a": [value] * 200}), "parquet")

    with pytest.raises(BadData, match="unpacks to more than 1,000,000 bytes"):
        ArrowFiles([file]).cell("a", 0)


def test_pictures_in_structs_are_read_across_batches(tmp_path: Path) -> None:
    """Of a hundred different pictures the first stand in the dictionary of the column, and the others behind it."""
    rows = [{"a": {"bytes": random.Random(number).randbytes(20_000), "path": f"{number}.jpg"}} for number in range(200)]
    file = tmp_path / "t.parquet"
    _arrow().parquet.write_table(_arrow().Table.from_pylist(rows), file, row_group_size=100)

    assert [row["a"] for row in open_data_table(file).rows()] == [row["a"] for row in rows]
    assert ArrowFiles([file]).cell("a", 150) == rows[150]["a"]


@pytest.mark.parametrize("kind", PACKED)
def test_the_cells_of_a_repeated_value_are_held_once(kind: str, tmp_path: Path) -> None:
    file = _packed(tmp_path / "table", _arrow().table({"a": [TEXT] * 200}), kind)

    assert ArrowFiles([file]).cell("a", 150) == TEXT


def _forged(kind: str) -> Any:
    """A column of 500 rows that each have the same text, or the same list, which is there once."""
    pa, rows = _arrow(), 500
    once, zeros = pa.array([TEXT]), pa.array([0] * rows, pa.int32())
    if kind == "fixed":
        return pa.array([TEXT.encode()] * rows, pa.binary(len(TEXT)))
    if kind == "view":
        _, view, text = pa.array([TEXT], pa.string_view()).buffers()
        return pa.Array.from_buffers(pa.string_view(), rows, [None, pa.py_buffer(view.to_pybytes()[:16] * rows), text])
    if kind == "extension":
        return pa.ExtensionArray.from_storage(pa.json_(pa.utf8()), pa.array([TEXT] * rows))
    if kind == "map":
        return pa.array([[("a", TEXT)]] * rows, pa.map_(pa.string(), pa.string()))
    if kind == "runs":
        return pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), once)
    if kind == "union":
        return pa.UnionArray.from_dense(pa.array([0] * rows, pa.int8()), zeros, [once])
    if kind == "list view":
        return pa.ListViewArray.from_arrays(zeros, pa.array([1] * rows, pa.int32()), once)
    return pa.DictionaryArray.from_arrays(zeros, pa.array([[TEXT]]))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("fixed", "unpacks to more than 1,000,000 bytes"),
        ("view", "unpacks to more than 1,000,000 bytes"),
        ("extension", "unpacks to more than 1,000,000 bytes"),
        ("map", "unpacks to more than 1,000,000 bytes"),
        ("runs", "the column 'a' is of the type 'run_end_encoded<.*', which is not read. Write it as a plain column"),
        ("union", "the column 'a' is of the type 'dense_union<.*', which is not read"),
        ("list view", "the column 'a' is of the type 'list_view<.*', which is not read"),
        ("named lists", "the column 'a' is of the type 'dictionary<values=list<.*', which is not read"),
    ],
)
def test_no_type_of_a_column_passes_the_limit(
    kind: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_table, "MOST_UNPACKED", 1_000_000)
    monkeypatch.setattr(hub_table, "MOST_UNPACKED", 1_000_000)
    monkeypatch.setattr(arrow_table, "MOST_RATIO", 0)
    monkeypatch.setattr(hub_table, "MOST_RATIO", 0)
    with pytest.raises(BadData, match=message):
        list(open_data_table(_packed(tmp_path / "bomb", _arrow().table({"a": _forged(kind)}), "file")).rows())


def test_maps_and_views_are_read(tmp_path: Path) -> None:
    pa = _arrow()
    columns = {
        "map": pa.array([[("a", 1)], [("b", 2)]], pa.map_(pa.string(), pa.int8())),
        "view": pa.array(["yes", None], pa.string_view()),
        "json": pa.ExtensionArray.from_storage(pa.json_(pa.utf8()), pa.array(["{}", "[]"])),
    }
    file = _packed(tmp_path / "table", pa.table(columns), "file")

    assert [dict(row) for row in open_data_table(file).rows()] == [
        {"map": [["a", 1]], "view": "yes", "json": "{}"},
        {"map": [["b", 2]], "json": "[]"},
    ]


def test_columns_of_text_without_end_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text(f"{','.join(f'c{number}' for number in range(20_000))}\n1\n", encoding="utf-8")

    with pytest.raises(BadData, match=r"table\.csv' has more than 10,000 columns"):
        list(open_data_table(file).rows())


def test_columns_without_end_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _packed(tmp_path / "table", _arrow().table({"a": [1] * 200, "b": [2] * 200}), "parquet")
    monkeypatch.setattr(table_row, "MOST_COLUMNS", 1)
    monkeypatch.setattr(arrow_table, "MOST_COLUMNS", 1)
    with pytest.raises(BadData, match="has more than 1 columns"):
        open_data_table(file)


@pytest.mark.parametrize(("names", "message"), [(2, "names 'data-00000-of-00002.arrow' 2 times"), (0, "lacks")])
def test_a_saved_data_set_names_each_file_once(names: int, message: str, tmp_path: Path) -> None:
    folder = _saved(tmp_path / "saved")
    state = {"_data_files": [{"filename": "data-00000-of-00002.arrow"}] * names}
    (folder / "state.json").write_text(json.dumps(state), encoding="utf-8")

    with pytest.raises(BadData, match=message):
        open_data_table(folder)


def test_a_saved_data_set_of_files_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_table, "MOST_FILES", 1)
    monkeypatch.setattr(hub_table, "MOST_FILES", 1)

    with pytest.raises(BadData, match="names 2 files, more than 1"):
        open_data_table(_saved(tmp_path / "saved"))
