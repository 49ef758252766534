"""Names that a stranger gives lead to pictures of the shared folders, and to nothing else."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.errors import BadImage, UsageError
from askance.mcp import SharedFolders
from askance.mcp.shared_folders import MOST_BYTES
from tests.scripted import PICTURE

DATA = PICTURE.read_bytes()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two shared folders, and beside them what nobody may see."""
    place = tmp_path_factory.mktemp("disk")
    for name in ("photos/a.jpg", "photos/b/c.jpg", "photos/b.jpg", "photos/.git/d.jpg", "more/a.jpg", "private/e.jpg"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PICTURE, place / name)
    (place / "photos/notes.txt").write_text("no picture")
    (place / "photos/notes.jpg").write_text("no picture")
    (place / "photos/link.jpg").symlink_to(place / "private/e.jpg")
    (place / "photos/inside.jpg").symlink_to(place / "photos/a.jpg")
    (place / "photos/way").symlink_to(place / "private")
    os.mkfifo(place / "photos/pipe.jpg")
    with (place / "photos/huge.jpg").open("wb") as huge:
        huge.truncate(MOST_BYTES + 1)
    return place


@pytest.fixture(scope="module")
def folders(place: Path) -> SharedFolders:
    return SharedFolders([place / "photos", place / "more"])


def test_pictures_are_listed_in_pages_by_the_names_of_their_folders(folders: SharedFolders) -> None:
    every = ["more/a.jpg", "photos/a.jpg", "photos/b/c.jpg", "photos/b.jpg", "photos/huge.jpg", "photos/notes.jpg"]

    pages = [folders.names(most=4), folders.names(after="photos/b.jpg"), folders.names(after="photos/zz.jpg")]

    assert folders.names() == every
    assert pages == [every[:4], every[4:], []]


def test_a_name_that_cannot_be_said_breaks_no_list_and_is_not_in_it(tmp_path: Path) -> None:
    deep = tmp_path / "photos" / "/".join(["d" * 250] * 4)
    deep.mkdir(parents=True)
    for path in (tmp_path / "photos/a.jpg", tmp_path / "photos/a\\b.jpg", deep / "c.jpg"):
        shutil.copy(PICTURE, path)
    with contextlib.suppress(OSError):  # a system whose names are UTF-8 has no such file
        shutil.copy(PICTURE, tmp_path / "photos" / os.fsdecode(b"caf\xe9.jpg"))

    assert SharedFolders([tmp_path / "photos"]).names() == ["photos/a.jpg"]


@pytest.mark.parametrize("name", ["photos/a.jpg", "photos/b/c.jpg", "more/a.jpg"])
def test_a_listed_name_leads_to_its_picture(name: str, folders: SharedFolders) -> None:
    image = folders.picture(name)

    assert (image.name, image.data, image.path) == (name, DATA, None)


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "{place}/photos/a.jpg",
        "{place}/private/e.jpg",
        "../private/e.jpg",
        "photos/../private/e.jpg",
        "photos/b/../../private/e.jpg",
        "photos/./a.jpg",
        "photos//a.jpg",
        "photos\\a.jpg",
        "photos/..\\private\\e.jpg",
        "private/e.jpg",
        "photos/link.jpg",
        "photos/inside.jpg",
        "photos/way/e.jpg",
        "photos/.git/d.jpg",
        "photos/notes.txt",
        "photos/missing.jpg",
        "photos/b",
        "photos",
        "",
        "photos/a.jpg\0.txt",
        "photos/a.jpg/",
        "photos/\ud800.jpg",
        f"photos/{'x' * 2000}.jpg",
        "https://example.com/a.jpg",
        "file://{place}/photos/a.jpg",
        "data:image/png;base64,AAAA",
    ],
)
def test_any_other_name_leads_nowhere(name: str, place: Path, folders: SharedFolders) -> None:
    with pytest.raises(BadImage, match="There is no picture"):
        folders.picture(name.replace("{place}", str(place)))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("photos/pipe.jpg", "is no file"),
        ("photos/huge.jpg", "has more than 50 MB"),
        ("photos/notes.jpg", "'photos/notes.jpg'"),
    ],
)
def test_what_is_no_picture_is_refused_by_its_name_alone(name: str, message: str, folders: SharedFolders) -> None:
    with pytest.raises(BadImage, match=message) as refused:
        folders.picture(name)

    assert "/disk" not in str(refused.value)


@given(st.lists(st.sampled_from(["photos", "more", "b", "..", ".", "", "way", "private", "e.jpg", "a.jpg", "/"])))
def test_no_way_leads_out(place: Path, folders: SharedFolders, parts: list[str]) -> None:
    name = "/".join(parts)
    inside = {"photos/a.jpg", "photos/b/c.jpg", "more/a.jpg"}

    try:
        folders.picture(name)
    except BadImage:
        assert name not in inside
    else:
        assert name in inside


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ([], "No folder of pictures is named. Name one: askance mcp photos"),
        (["missing"], "There is no folder 'missing'. Name a folder of pictures."),
        (["a/photos", "b/photos"], "Two folders are called 'photos'. Rename one, or name the one above both."),
    ],
)
def test_folders_that_cannot_be_shared_are_refused(
    named: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("a/photos", "b/photos"):
        Path(folder).mkdir(parents=True)

    with pytest.raises(UsageError) as refused:
        SharedFolders(map(Path, named))

    assert str(refused.value) == message
