"""Pictures of a data set: which file counts, what an archive may hold, cells of tables."""

from __future__ import annotations

import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from askance.errors import BadData, BadImage
from askance.evals.suite import pictures
from askance.evals.suite.pictures import PictureFiles, load_cell, load_picture, picture_cell
from tests.evals.pittads.files import write
from tests.scripted import PICTURE

DATA = PICTURE.read_bytes()


def packed(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"all/{name}.jpeg", data)
        archive.writestr("all/readme.txt", b"no picture")
        archive.writestr("__MACOSX/all/._1.jpeg", b"no picture")
    return path


def test_a_file_counts_before_one_of_its_name_in_the_archive(tmp_path: Path) -> None:
    archive = packed(tmp_path / "all.zip", one=DATA + b"packed", two=DATA)
    write(tmp_path / "other" / "one.png", DATA + b"other")
    write(tmp_path / "first" / "deep" / "one.png", DATA + b"deep")
    write(tmp_path / "pairs" / "three.png", DATA)

    found = PictureFiles.scan(tmp_path, archive=archive, first="deep", apart={"pairs"})

    assert sorted(found.by_stem) == ["one", "two"]
    assert ("three" in found, found.load("three")) == (False, None)
    one, two = found.load("one"), found.load("two")
    assert one is not None
    assert two is not None
    assert (one.data, two.data) == (DATA + b"deep", DATA)


def test_a_picture_of_an_archive_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = packed(tmp_path / "all.zip", one=bytes(3_000_000))
    monkeypatch.setattr(pictures, "MOST_BYTES", 2_000_000)

    with pytest.raises(BadImage, match=r"'all/one\.jpeg' in .*all\.zip' has more than 2 MB"):
        load_picture(PictureFiles.scan(tmp_path, archive=archive).by_stem["one"])


def test_an_archive_that_is_none_is_named(tmp_path: Path) -> None:
    write(tmp_path / "all.zip", b"PK, and no archive")

    with pytest.raises(BadData, match=r"The archive .*all\.zip' cannot be read"):
        PictureFiles.scan(tmp_path, archive=tmp_path / "all.zip")


CELLS: dict[str, tuple[Any, tuple[bytes | None, str]]] = {
    "bytes and path": ({"bytes": DATA, "path": "cartoons/1.jpeg"}, (DATA, "cartoons/1.jpeg")),
    "bytes alone": (DATA, (DATA, "")),
    "a path alone": ({"bytes": None, "path": "1.jpeg"}, (None, "1.jpeg")),
    "nothing": (None, (None, "")),
}


@pytest.mark.parametrize(("cell", "expected"), CELLS.values(), ids=CELLS)
def test_a_cell_gives_bytes_and_name(cell: Any, expected: tuple[bytes | None, str]) -> None:
    def given(column: str, row: int) -> Any:
        return cell

    table: Any = SimpleNamespace(columns=("image",), cell=given)

    assert picture_cell(table, 0) == expected
    image = load_cell(table, 0)
    assert (None if image is None else image.data) == expected[0]


def test_a_table_without_the_column_has_no_pictures() -> None:
    table: Any = SimpleNamespace(columns=("caption",))

    assert load_cell(table, 0) is None
