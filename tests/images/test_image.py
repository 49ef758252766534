"""Tests of where a picture may come from, and of its identity."""

from __future__ import annotations

import copy
import errno
import os
import pickle
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

import pytest
from PIL import Image as Pillow

from askance.errors import BadImage, UsageError
from askance.images import CLEAN_POLICY, ORIGINAL_POLICY, Image, ImagePolicy, Shown, image_policy, view_policy
from tests.images import samples

PNG = samples.png()
DIGEST = sha256(PNG).hexdigest()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ad.jpg"
    path.write_bytes(PNG)
    return path


def test_a_file_is_known_by_its_content_not_its_suffix(file: Path) -> None:
    image = Image.load(file)
    assert (image.name, image.path, image.sha256, image.data) == ("ad.jpg", file, DIGEST, PNG)
    assert image.info.format == "png"
    assert repr(image) == f"Image('ad.jpg', {DIGEST[:12]})"


def test_every_source_of_the_same_bytes_is_the_same_picture(file: Path) -> None:
    uri = f"data:image/gif;base64,{b64encode(PNG).decode()}"
    sources = [str(file), file, PNG, bytearray(PNG), memoryview(PNG), uri, f"DATA:,{quote(PNG)}", Image.load(file)]
    assert {Image.load(source) for source in sources} == {Image.from_bytes(PNG)}
    assert [Image.load(source, name="mine").name for source in sources[:-1]] == ["mine"] * 7


def test_names_without_a_file_tell_pictures_apart() -> None:
    assert Image.from_bytes(PNG).name == f"image {DIGEST[:12]}"


def test_different_bytes_are_different_pictures() -> None:
    assert Image.from_bytes(PNG) != Image.from_bytes(PNG + b" ")
    assert Image.from_bytes(PNG) != PNG


def test_base64_may_be_broken_into_lines_and_percent_encoded() -> None:
    body = quote(b64encode(PNG).decode()[:40] + "\n" + b64encode(PNG).decode()[40:])
    assert Image.load(f"data:;base64,{body}").data == PNG


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "F"])
def test_pillow_images_are_known_by_their_pixels(mode: str) -> None:
    picture = samples.photo(mode=mode)
    image, again = Image.load(picture, name="mine"), Image.from_pil(picture.copy())
    assert (image, image.name) == (again, "mine")
    assert image.sha256 == sha256(image.data).hexdigest()
    shown = "RGBA" if mode == "LA" else "RGB"
    if mode not in {"I;16", "F"}:
        assert image.open().convert(shown).tobytes() == picture.convert(shown).tobytes()


def test_pillow_images_are_sent_packed_with_their_pixels_and_profile() -> None:
    picture = samples.photo((300, 200))
    picture.info["icc_profile"] = bytes(128) + b"a colour profile"
    sent = Shown(Image.from_pil(picture)).prepare()
    back = Pillow.open(BytesIO(sent.data))
    assert (sent.media_type, back.tobytes()) == ("image/png", picture.tobytes())
    assert back.info["icc_profile"] == picture.info["icc_profile"]
    assert len(sent.data) < len(picture.tobytes())


def test_the_digest_of_pixels_depends_on_no_compressor() -> None:
    picture = Pillow.new("RGB", (2, 1), (1, 2, 3))
    assert Image.from_pil(picture).sha256 == "b5b035f5d71afa41a4e7de9ba70e307f2d67da740590d86540c5e011394b5e71"


def test_large_pillow_images_span_many_blocks() -> None:
    picture = samples.photo((400, 200))
    assert samples.pixels(Image.from_pil(picture).data) == ((400, 200), picture.convert("RGBA").tobytes())


BROKEN = {
    "data uri without comma": ("data:image/png", "The picture 'data:image/png' is no data URI."),
    "data uri of no base64": (
        "data:;base64,@",
        "The picture 'data:;base64,@' is not well formed base64: Only base64 data is allowed.",
    ),
    "web address": (
        "HTTPS://example.com/ad.png",
        "The picture 'HTTPS://example.com/ad.png' is an address on the web, and those are fetched only when asked for.",
    ),
    "other address": (
        "file:///etc/passwd",
        "The picture 'file:///etc/passwd' has an address of the kind 'file', which is not fetched.",
    ),
    "number": (7, "An object of the type 'int' is no picture."),
    "pillow without pixels": (Pillow.new("RGB", (0, 4)), "The picture 'in memory' has no pixels (0×4)."),
}


@pytest.mark.parametrize(("source", "message"), BROKEN.values(), ids=BROKEN)
def test_what_holds_no_picture_is_bad_at_once(source: str, message: str) -> None:
    with pytest.raises(BadImage) as caught:
        Image.load(source)
    assert caught.value.message == message
    assert caught.value.hint


def test_files_that_cannot_be_read_are_bad_when_they_are_needed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "note.png").write_text("some words", encoding="utf-8")
    expected = {
        "none.png": "does not exist",
        ".": "is a folder",
        "pipe.png": "is not a regular file",
        "a\0b.png": "cannot be read: embedded null byte",
        "x" * 300: "cannot be read: File name too long",
    }
    for name, reason in expected.items():
        image = Image.load(f"{tmp_path}/{name}")
        with pytest.raises(BadImage) as caught:
            _ = image.sha256
        assert caught.value.message.endswith(f" {reason}.")
        assert repr(image) == f"Image({image.name!r}, unreadable)"


def test_a_file_without_permission_is_bad(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", denied)  # the superuser may run this, who reads everything
    with pytest.raises(BadImage) as caught:
        _ = Image.load(file).data
    assert caught.value.message == f"The picture {str(file)!r} cannot be read: Permission denied."


def test_a_text_file_is_named_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "note.jpg"
    path.write_text("some words and more", encoding="utf-8")
    with pytest.raises(BadImage) as caught:
        Shown(Image.load(path)).prepare()
    assert caught.value.message == (f"The picture {str(path)!r} holds no picture that is known here.")


def test_a_file_that_changes_is_never_sent_under_the_old_digest(file: Path) -> None:
    image = Image.load(file)
    assert image.sha256 == DIGEST
    file.write_bytes(samples.png(mode="L"))
    with pytest.raises(BadImage) as caught:
        _ = image.data
    assert str(caught.value) == f"The picture {str(file)!r} has changed since its digest was taken. Load it again."
    assert Shown(Image.load(file)).prepare().media_type == "image/png"


def by_pickle(image: Image) -> Image:
    return pickle.loads(pickle.dumps(image))


@pytest.mark.parametrize("copied", [by_pickle, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
def test_images_survive_copying(file: Path, copied: Callable[[Image], Image]) -> None:
    for image in (Image.load(file), Image.from_bytes(PNG, name="mine")):
        back = copied(image)
        assert (back, back.name, back.path) == (image, image.name, image.path)


def test_images_are_frozen(file: Path) -> None:
    with pytest.raises(AttributeError):
        Image.load(file).name = "other"  # pyright: ignore[reportAttributeAccessIssue]


def test_open_and_thumbnail_are_upright() -> None:
    image = Image.from_bytes(samples.jpeg(6))
    assert (image.open().mode, image.open().size) == ("RGB", (32, 48))
    assert Pillow.open(BytesIO(image.thumbnail(12))).size == (8, 12)
    assert Image.from_bytes(samples.png(mode="P", transparency=1)).open().mode == "RGBA"


@pytest.mark.parametrize("turn", [1, 6])
def test_a_thumbnail_of_a_large_photograph_is_as_one_of_all_its_pixels(turn: int) -> None:
    photo = samples.photo().resize((1200, 800), Pillow.Resampling.BICUBIC)
    large = Image.from_bytes(samples.encoded(photo, "JPEG", exif=samples.exif(turn)))
    whole = Image.from_bytes(samples.encoded(large.open(), "PNG"))  # decoded at its full size
    made, wanted = (Pillow.open(BytesIO(each.thumbnail(96))).convert("RGB") for each in (large, whole))

    assert made.size == wanted.size == ((96, 64) if turn == 1 else (64, 96))
    assert samples.distance(made, wanted) < 2


def test_the_digest_of_a_file_loads_neither_pillow_nor_http(file: Path) -> None:
    code = (
        "import sys; from askance.chat import ImagePart; from askance.images import Image, Shown\n"
        f"print(ImagePart(Shown(Image.load({str(file)!r}))).canonical()['sha256'])\n"
        "print(sorted({'PIL', 'http', 'ssl', 'socket', 'email'} & {name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == [DIGEST, "[]"]


def test_policies_by_name() -> None:
    assert (image_policy("clean"), image_policy("original")) == (CLEAN_POLICY, ORIGINAL_POLICY)
    assert CLEAN_POLICY.canonical() == {"name": "clean", "version": 1}
    narrow = ImagePolicy("clean", max_side=1024, formats=("jpeg", "png"))
    assert narrow.canonical() == {"name": "clean", "version": 1, "max_side": 1024, "formats": ["jpeg", "png"]}
    assert {narrow, ImagePolicy("clean", max_side=1024, formats=("jpeg", "png"))} == {narrow}
    assert view_policy(narrow).canonical() == {**narrow.canonical(), "min_side": 448}
    assert view_policy(ORIGINAL_POLICY).canonical() == {
        "name": "clean",
        "version": 1,
        "min_side": 448,
        "max_side": 1568,
    }


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "raw"}, "No image policy is called 'raw'. Known ones: clean, original."),
        (
            {"name": "clean", "formats": ("bmp",)},
            "No picture is sent as 'bmp'. Formats that can be: gif, jpeg, png, webp.",
        ),
        (
            {"name": "clean", "max_side": 0},
            "The limits of an image policy are 1 or more. Mend `min_side`, `max_side` or `max_bytes`.",
        ),
        (
            {"name": "clean", "min_side": 20, "max_side": 10},
            "No picture has a longer side of 20 pixels at least and 10 at most. Lower `min_side` or raise `max_side`.",
        ),
    ],
    ids=["name", "format", "limit", "sides"],
)
def test_policies_that_cannot_be(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        ImagePolicy(**settings)  # pyright: ignore[reportArgumentType]
    assert str(caught.value) == message


def test_an_unknown_policy_name() -> None:
    with pytest.raises(UsageError, match=r"^No image policy is called 'raw'\. Known ones: clean, original\.$"):
        image_policy("raw")


def test_a_digest_stands_for_a_picture_that_is_not_at_hand() -> None:
    there = Image.from_bytes(PNG + b"never prepared before")
    known = Image.from_digest(there.sha256, name="ad.png")

    assert known == there
    assert (known.name, known.path) == ("ad.png", None)
    with pytest.raises(BadImage, match=r"^The picture 'ad.png' is not at hand: only its digest is known\."):
        Shown(known).prepare()
