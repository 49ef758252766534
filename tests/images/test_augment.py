from __future__ import annotations

from PIL import Image as Pillow
from PIL import ImageOps

from askance.images.augment import augmented


def striped() -> Pillow.Image:
    picture = Pillow.new("RGB", (12, 8), (200, 40, 40))
    picture.paste((30, 90, 220), (0, 0, 4, 8))
    return picture


def test_a_seed_decides() -> None:
    changes = ("flip", "jitter", "grey")

    drawn = [augmented(striped(), changes, seed=str(seed)).tobytes() for seed in (*range(40), *range(40))]

    assert drawn[:40] == drawn[40:]
    assert len(set(drawn)) > 30


def test_nothing_changes_without_changes() -> None:
    assert augmented(striped(), (), seed="1").tobytes() == striped().tobytes()


def test_half_are_flipped_and_a_tenth_is_grey() -> None:
    mirrored = ImageOps.mirror(striped()).tobytes()
    flipped = [augmented(striped(), ("flip",), seed=str(seed)).tobytes() == mirrored for seed in range(400)]
    grey = [_is_grey(augmented(striped(), ("grey",), seed=str(seed))) for seed in range(400)]

    assert 160 < sum(flipped) < 240
    assert 20 < sum(grey) < 65


def _is_grey(picture: Pillow.Image) -> bool:
    red, green, blue = picture.split()
    return red.tobytes() == green.tobytes() == blue.tobytes()


def test_jitter_turns_hues_and_keeps_shapes() -> None:
    drawn = [augmented(striped(), ("jitter",), seed=str(seed)) for seed in range(20)]

    assert len({each.getpixel((0, 0)) for each in drawn}) > 15
    for each in drawn:
        assert len(set(each.crop((0, 0, 4, 8)).get_flattened_data())) == 1
