"""The folder that keeps pictures from the web and from tables."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from askance.cli.inputs import find_pictures
from askance.errors import BadImage, UsageError
from askance.images import Image
from askance.images.picture_folder import PictureFolder
from tests.cli.command import draw

URL = "https://example.org/a.png"


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Addresses that were fetched; each gives bytes of its own, every time others."""
    asked: list[str] = []

    def from_url(url: str) -> Image:
        asked.append(url)
        if "gone" in url:
            raise BadImage("The picture is gone.", hint="Mend the address.")
        return Image.from_bytes(f"{url} {len(asked)}".encode())

    monkeypatch.setattr(Image, "from_url", from_url)
    return asked


def test_a_picture_is_fetched_once(tmp_path: Path, fetched: list[str]) -> None:
    folder = PictureFolder(tmp_path / "pictures")
    file = folder.of_address(URL)
    assert file.read_bytes() == f"{URL} 1".encode()
    assert folder.of_address(URL) == file
    assert folder.of_address(URL, fetch="never") == file
    assert fetched == [URL]
    assert {each.name for each in folder.path.iterdir()} == {".gitignore", sha256(URL.encode()).hexdigest()}


def test_always_fetches_anew(tmp_path: Path, fetched: list[str]) -> None:
    folder = PictureFolder(tmp_path)
    folder.of_address(URL)
    assert folder.of_address(URL, fetch="always").read_bytes() == f"{URL} 2".encode()


def test_never_says_what_is_missing_and_where(tmp_path: Path, fetched: list[str]) -> None:
    with pytest.raises(BadImage, match=r"is not kept in .*, and a replay fetches nothing. Run it once without"):
        PictureFolder(tmp_path).of_address(URL, fetch="never")
    assert fetched == []


def test_what_cannot_be_fetched_leaves_nothing(tmp_path: Path, fetched: list[str]) -> None:
    folder = PictureFolder(tmp_path / "pictures")
    with pytest.raises(BadImage, match="is gone"):
        folder.of_address("https://example.org/gone")
    assert not folder.path.exists()


def test_bytes_are_kept_under_their_digest(tmp_path: Path) -> None:
    folder = PictureFolder(tmp_path / "pictures")
    file = folder.of_bytes(b"picture")
    assert (file.name, file.read_bytes()) == (sha256(b"picture").hexdigest(), b"picture")
    assert folder.of_bytes(b"picture") == file
    assert {each.name for each in folder.path.iterdir()} == {".gitignore", file.name}


def test_a_file_has_the_ending_of_its_format(tmp_path: Path) -> None:
    folder, files = PictureFolder(tmp_path / "pictures"), draw(tmp_path / "drawn", "a.png", "b.jpg")
    kept = [folder.of_bytes(Path(file).read_bytes()) for file in files]
    assert [file.suffix for file in kept] == [".png", ".jpeg"]
    assert {*find_pictures([str(folder.path)])} == {*kept}, "a folder like any other: `--images .askance/pictures`"


def test_a_picture_that_was_fetched_anew_takes_the_place_of_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, files = PictureFolder(tmp_path / "pictures"), draw(tmp_path / "drawn", "a.png", "b.jpg")
    sources = iter(files)

    def from_url(_: str) -> Image:
        return Image.from_path(next(sources))

    monkeypatch.setattr(Image, "from_url", from_url)
    first, second = folder.of_address(URL), folder.of_address(URL, fetch="always")
    assert (first.exists(), second.suffix) == (False, ".jpeg")
    assert folder.of_address(URL) == second


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "pictures").write_text("a file", encoding="utf-8")
    with pytest.raises(UsageError, match=r"cannot be kept in .*: File exists. Name another folder"):
        PictureFolder(tmp_path / "pictures").of_bytes(b"picture")


def test_pictures_that_are_kept_are_listed_and_taken_out(tmp_path: Path, fetched: list[str]) -> None:
    folder = PictureFolder(tmp_path / "pictures")
    assert [*folder.kept()] == []
    files = {folder.of_address(f"https://example.org/{name}") for name in "abc"}
    (folder.path / "elsewhere").symlink_to(tmp_path / "outside")
    kept = [*folder.kept()]

    assert {each.file for each in kept} == files  # and neither the link nor `.gitignore`
    assert {each.size for each in kept} == {each.file.stat().st_size for each in kept}
    folder.remove(kept[:2])
    folder.remove(kept[:2])
    assert [each.file for each in folder.kept()] == [kept[2].file]


def test_a_file_with_other_bytes_than_its_name_says_is_written_anew(tmp_path: Path) -> None:
    """As in a folder that came from a stranger."""
    folder = PictureFolder(tmp_path)
    folder.of_bytes(b"picture").write_bytes(b"forged!")

    assert folder.of_bytes(b"picture").read_bytes() == b"picture"


def test_a_file_of_another_name_is_none_of_its_pictures(tmp_path: Path) -> None:
    folder = PictureFolder(tmp_path)
    draw(tmp_path, "mine.png")
    kept = folder.of_bytes(b"picture")

    assert [each.file for each in folder.kept()] == [kept]
    folder.remove(folder.kept())
    assert (tmp_path / "mine.png").is_file()
