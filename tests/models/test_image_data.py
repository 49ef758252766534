from __future__ import annotations

import asyncio
from base64 import b64decode

import pytest
from PIL import Image as Pillow

from askance.chat import ImagePart
from askance.errors import BadImage
from askance.images import CLEAN_POLICY, ORIGINAL_POLICY, Image, PreparedImage, Shown
from askance.models import image_data
from askance.models.image_data import ImageEncoder, encode


def part(colour: int = 0) -> ImagePart:
    return ImagePart(Shown(Image.from_pil(Pillow.new("RGB", (4, 4), (colour, 0, 0)))))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Digests of the pictures that were encoded."""
    digests: list[str] = []

    def counted(part: ImagePart) -> PreparedImage:
        digests.append(part.shown.image.sha256)
        return encode(part)

    monkeypatch.setattr(image_data, "encode", counted)
    return digests


def test_the_prepared_bytes_in_base64() -> None:
    picture = part()
    encoded = encode(picture)
    prepared = picture.shown.prepare()
    assert (b64decode(encoded.base64), encoded.media_type) == (prepared.data, prepared.media_type)
    assert encoded.data_uri == f"data:{prepared.media_type};base64,{encoded.base64}"


async def test_calls_side_by_side_share_the_work(made: list[str]) -> None:
    images, picture = ImageEncoder(), part()
    encoders = await asyncio.gather(*(images.encoder([picture]) for _ in range(4)))
    assert len({encoder(picture).base64 for encoder in encoders}) == 1
    assert len(made) == 1


async def test_another_policy_is_another_picture(made: list[str]) -> None:
    images, image = ImageEncoder(), part().shown.image
    await images.encoder([ImagePart(Shown(image, CLEAN_POLICY)), ImagePart(Shown(image, ORIGINAL_POLICY))])
    assert len(made) == 2


async def test_a_picture_is_encoded_once_while_somebody_holds_it(made: list[str]) -> None:
    images, picture = ImageEncoder(), part()
    for _ in range(3):
        await images.encoder([picture])
    assert len(made) == 1


async def test_a_caller_that_gives_up_leaves_the_work_to_the_others(made: list[str]) -> None:
    images, picture = ImageEncoder(), part()
    first, second = (asyncio.ensure_future(images.encoder([picture])) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second)(picture) == encode(picture)
    assert len(made) == 1


async def test_a_picture_that_cannot_be_used_fails_each_call() -> None:
    images, broken = ImageEncoder(), ImagePart(Shown(Image.from_bytes(b"no picture", name="odd.jpg")))
    for _ in range(2):
        with pytest.raises(BadImage):
            await images.encoder([broken])
