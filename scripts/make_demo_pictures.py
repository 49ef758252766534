r"""Compose the demo's pictures from public-domain and CC0 photographs.

    uv venv /tmp/pictures --python 3.11
    uv pip install --python /tmp/pictures/bin/python scikit-image==0.26.0 scipy==1.17.1 numpy==2.4.6 pillow==13.0.0 \
        font-source-serif-pro==0.0.1 font-hanken-grotesk==0.0.2
    /tmp/pictures/bin/python scripts/make_demo_pictures.py [NAME …]

The photographs come with scikit-image, the two typefaces with their packages. With these versions every run writes the
same bytes. Sources and licences: `askance/demo/SOURCES.md`.
"""

# pyright: basic, reportMissingImports=false
# What it needs stands in an environment of its own.

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from scipy import ndimage

Array = NDArray[np.float64]
Point = tuple[float, float]

OUT = Path(__file__).resolve().parent.parent / "askance" / "demo" / "pictures"
PHOTOS = Path(str(files("skimage") / "data"))
SERIF = Path(str(files("font_source_serif_pro") / "files"))
SANS = Path(str(files("font_hanken_grotesk") / "files"))
SEMIBOLD = SERIF / "SourceSerifPro-Semibold.otf"
BOLD = SANS / "HankenGrotesk-SemiBold.otf"
OVERSAMPLE = 4
MOST_BYTES = 62_000


@dataclass(frozen=True)
class Ellipse:
    """An ellipse in a picture; lengths in pixels, tilt in degrees clockwise."""

    x: float
    y: float
    a: float
    b: float
    tilt: float = 0.0

    def scaled(self, k: float, dx: float = 0.0, dy: float = 0.0) -> Ellipse:
        return Ellipse(self.x * k + dx, self.y * k + dy, self.a * k, self.b * k, self.tilt)

    def radius(self, height: int, width: int) -> Array:
        """How far out each pixel lies: 0 at the centre, 1 on the ellipse."""
        u, v = self.axes(height, width)
        return np.hypot(u, v)

    def axes(self, height: int, width: int) -> tuple[Array, Array]:
        """Each pixel's place along the two axes, in units of the half axes."""
        ys, xs = np.mgrid[0:height, 0:width] + 0.5
        turn = np.radians(self.tilt)
        dx, dy = xs - self.x, ys - self.y
        return (dx * np.cos(turn) + dy * np.sin(turn)) / self.a, (-dx * np.sin(turn) + dy * np.cos(turn)) / self.b

    def mask(self, height: int, width: int, feather: float = 1.0) -> Array:
        """1 inside, 0 outside, `feather` pixels between."""
        distance = (self.radius(height, width) - 1) * min(self.a, self.b)
        return np.clip(0.5 - distance / feather, 0, 1)


# Outlines traced on the coffee photograph, in its own pixels (600 × 400).
SAUCER = Ellipse(278, 220.5, 201, 169.5, 5.8)
RIM = Ellipse(291, 112, 118.5, 95, 5)
MOUTH = Ellipse(293, 112, 99.5, 81, 5)
COFFEE = Ellipse(287, 151, 84, 55.5, 7)
FOOT = Ellipse(288, 240, 62, 46, 5)
# fmt: off
BODY: list[Point] = [
    (173, 112), (174, 135), (178, 162), (185, 190), (194, 211), (207, 226), (222, 236), (238, 254), (255, 281),
    (275, 285), (300, 284), (322, 279), (330, 266), (345, 252), (357, 241), (370, 232), (382, 214), (395, 190),
    (403, 165), (408, 140), (409, 112),
]
HANDLE: list[Point] = [
    (220, 226), (232, 226), (246, 233), (258, 242), (250, 252), (244, 264), (237, 282), (229, 300), (222, 307),
    (210, 305), (200, 299), (196, 288), (199, 270), (206, 252), (213, 240),
]
SPOON: list[Point] = [
    (396, 75), (403, 69), (411, 67), (420, 70), (424, 77), (422, 90), (415, 115), (408, 133), (399, 165), (388, 205),
    (384, 222), (386, 238), (397, 249), (405, 264), (406, 280), (399, 301), (386, 316), (367, 325), (351, 325),
    (338, 317), (328, 303), (326, 287), (330, 270), (342, 253), (355, 243), (370, 234), (376, 222), (380, 211),
    (390, 192), (401, 165), (405, 140),
]
ROCKET: list[Point] = [
    (322, 127), (327, 132), (331, 140), (333.5, 150), (333.5, 176), (331.5, 181), (331.5, 405), (312.5, 405),
    (312.5, 181), (311, 176), (311, 150), (313, 140), (317, 132),
]
# Centre and radius of each coin on the photograph of coins (384 × 303).
COINS: list[tuple[int, int, int]] = [
    (335, 44, 28), (155, 51, 22), (215, 51, 22), (276, 52, 19), (44, 54, 20), (100, 56, 18), (271, 119, 24),
    (45, 124, 20), (205, 124, 19), (336, 125, 19), (102, 126, 18), (154, 127, 18), (347, 187, 31), (212, 193, 23),
    (274, 194, 21), (102, 196, 21), (44, 197, 18), (154, 198, 19), (46, 260, 27), (172, 261, 27), (301, 263, 24),
    (244, 263, 23), (114, 266, 21), (358, 268, 21),
]
# fmt: on


# -- pixels ------------------------------------------------------------------------------------------------------------


def photo(name: str, scale: float = 1.0, box: tuple[int, int, int, int] | None = None) -> Array:
    """A photograph of scikit-image's as RGB in 0…1, cut to `box` and enlarged."""
    image = Image.open(PHOTOS / name).convert("RGB")
    image = image.crop(box) if box else image
    size = (round(image.width * scale), round(image.height * scale))
    return np.asarray(image.resize(size, Image.Resampling.LANCZOS), dtype=np.float64) / 255


def luminance(picture: Array) -> Array:
    return picture @ np.array([0.299, 0.587, 0.114])


def blur(plane: Array, sigma: float | tuple[float, ...]) -> Array:
    return ndimage.gaussian_filter(plane, sigma)


def smooth(low: float, high: float, value: Array) -> Array:
    """0 at `low`, 1 at `high`, flat beyond and an S between; `high` may be the smaller one."""
    t = np.clip((value - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)


def over(base: Array, layer: Array, mask: Array) -> Array:
    """`layer` laid on `base` where `mask` is 1."""
    return base + (layer - base) * mask[..., None]


def ramp(value: Array, *stops: tuple[float, tuple[int, int, int]]) -> Array:
    """Colours for the numbers of `value`, between the colours (0…255) of the stops."""
    places = [place for place, _ in stops]
    return np.stack([np.interp(value, places, [colour[i] / 255 for _, colour in stops]) for i in range(3)], axis=-1)


def polygon(height: int, width: int, points: list[Point], feather: float = 0.8) -> Array:
    """1 inside the outline, 0 outside."""
    image = Image.new("L", (width * OVERSAMPLE, height * OVERSAMPLE))
    ImageDraw.Draw(image).polygon([(x * OVERSAMPLE, y * OVERSAMPLE) for x, y in points], fill=255)
    return blur(np.asarray(image.resize((width, height), Image.Resampling.BOX), dtype=np.float64) / 255, feather)


def placed(points: list[Point], k: float, dx: float = 0.0, dy: float = 0.0) -> list[Point]:
    return [(x * k + dx, y * k + dy) for x, y in points]


def noise(rng: np.random.Generator, height: int, width: int, size: float) -> Array:
    """Cloudy noise in about 0…1 with features of `size` pixels and finer."""
    plane = np.zeros((height, width))
    for octave in range(4):
        layer = blur(rng.standard_normal((height, width)), size / 2**octave)
        plane += layer / layer.std() / 2**octave
    return np.clip(0.5 + plane / 4, 0, 1)


def backdrop(
    height: int, width: int, centre: tuple[int, int, int], edge: tuple[int, int, int], at: Point = (0.5, 0.45)
) -> Array:
    """A studio wall lit from the front, with a grain that keeps the gradient from banding."""
    ys, xs = np.mgrid[0:height, 0:width]
    far = np.hypot((xs / width - at[0]) * 1.1, ys / height - at[1])
    grain = np.random.default_rng(1).normal(0, 0.004, (height, width, 1))
    return np.clip(ramp(smooth(0.05, 0.85, far), (0, centre), (1, edge)) + grain, 0, 1)


# -- the cup -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cup:
    """The coffee cup cut out of its photograph, on a canvas of its own, `k` times as large."""

    height: int
    width: int
    k: float
    dx: float = 0.0
    dy: float = 0.0

    @property
    def pixels(self) -> Array:
        image = Image.open(PHOTOS / "coffee.png").convert("RGB")
        box = (-self.dx / self.k, -self.dy / self.k, (self.width - self.dx) / self.k, (self.height - self.dy) / self.k)
        resample = Image.Resampling.BICUBIC
        scale = (box[2] - box[0]) / self.width
        big = image.transform(
            (self.width, self.height), Image.Transform.AFFINE, (scale, 0, box[0], 0, scale, box[1]), resample
        )
        return np.asarray(big.filter(ImageFilter.UnsharpMask(2, 60, 2)), dtype=np.float64) / 255

    def ellipse(self, shape: Ellipse, feather: float = 1.4) -> Array:
        return shape.scaled(self.k, self.dx, self.dy).mask(self.height, self.width, feather)

    def outline(self, points: list[Point]) -> Array:
        return polygon(self.height, self.width, placed(points, self.k, self.dx, self.dy))

    @property
    def alpha(self) -> Array:
        return np.maximum.reduce([self.ellipse(SAUCER), self.ellipse(RIM), self.outline(SPOON)])

    @property
    def mouth(self) -> Array:
        return self.ellipse(MOUTH, 3)

    @property
    def surface(self) -> Array:
        """The coffee that can be seen."""
        return self.ellipse(COFFEE, 3) * self.ellipse(MOUTH, 3)

    def shadow(self, drop: float, softness: float, strength: float) -> Array:
        """What the saucer takes of the light on the table below it, 0…1."""
        shape = SAUCER.scaled(self.k, self.dx + drop * 0.4, self.dy + drop).mask(self.height, self.width, 2)
        return strength * blur(shape, softness)

    def on(self, base: Array, *, drop: float = 16, softness: float = 14, strength: float = 0.55) -> Array:
        shaded = base * (1 - self.shadow(drop, softness, strength))[..., None]
        return over(shaded, self.pixels, self.alpha)


def bricks(along: Array, across: Array) -> Array:
    """Brickwork at `along` and `across` the courses, in pixels of the photograph of bricks."""
    plane = np.asarray(Image.open(PHOTOS / "brick.png").convert("L"), dtype=np.float64) / 255
    plane = plane[96:]  # the lower part, where the rows are nearly parallel
    rough = np.random.default_rng(5).normal(0, 1, plane.shape)
    plane += 0.02 * blur(rough, 0.8) + 0.07 * blur(rough, 9) / blur(rough, 9).std() * 0.35
    level = ndimage.map_coordinates(plane, [along, across], order=1, mode="mirror")
    clay = ramp(level, (0.24, (70, 22, 14)), (0.36, (158, 62, 38)), (0.46, (206, 100, 66)), (0.6, (224, 136, 100)))
    mortar = ramp(level, (0.3, (150, 138, 122)), (0.65, (214, 200, 178)))
    return over(clay, mortar, smooth(0.455, 0.54, level))


def brick_saucer(cup: Cup) -> Array:
    """Rings of bricks round the saucer."""
    x, y = SAUCER.scaled(cup.k, cup.dx, cup.dy).axes(cup.height, cup.width)
    return bricks(np.arctan2(y, x) * 390 + 1300, np.hypot(x, y) * 300 + 8)


def brick_body(cup: Cup) -> Array:
    """Courses of bricks round the outside of the cup."""
    angle, level = np.zeros((cup.height, cup.width)), np.zeros((cup.height, cup.width))
    before = np.full((cup.height, cup.width), np.inf)
    steps = np.linspace(0, 1.1, 89)
    for down in steps:
        sink, taper = down, down**2.8  # straight at the top, drawn in at the foot
        place = [(1 - sink) * a + sink * b for a, b in ((RIM.x, FOOT.x), (RIM.y, FOOT.y))]
        halves = [(1 - taper) * a + taper * b for a, b in ((RIM.a, FOOT.a), (RIM.b, FOOT.b))]
        shape = Ellipse(*place, *halves, tilt=RIM.tilt)
        x, y = shape.scaled(cup.k, cup.dx, cup.dy).axes(cup.height, cup.width)
        # Going down, the first ring that reaches a pixel is the side turned to the camera.
        far = np.hypot(x, y)
        closer = (before > 1) & (far < before)
        past = np.clip((1 - far) / np.where(np.isfinite(before), np.maximum(before - far, 1e-6), 1), 0, 1)
        level = np.where(closer, down - past * steps[1], level)
        angle = np.where(closer, np.arctan2(y, x), angle)
        before = np.where(closer, far, before)
    return bricks(angle * 250 + 700, level * 190 + 30)


def brick_handle(cup: Cup) -> Array:
    """Courses of bricks across the handle."""
    ys, xs = np.mgrid[0 : cup.height, 0 : cup.width] / cup.k
    return bricks((xs * 0.92 + ys * 0.38) * 2.1, (ys * 0.92 - xs * 0.38) * 2.1)


# -- coins -------------------------------------------------------------------------------------------------------------


def coin(which: int, radius: float) -> tuple[Array, Array]:
    """One golden coin of the photograph and its mask, on a square of 2 · `radius` pixels and a little."""
    x, y, r = COINS[which]
    side = 2 * int(np.ceil(radius)) + 3
    image = Image.open(PHOTOS / "coins.png").convert("L").crop((x - r, y - r, x + r + 1, y + r + 1))
    grey = np.asarray(image.resize((side, side), Image.Resampling.LANCZOS), dtype=np.float64) / 255
    far = Ellipse(side / 2, side / 2, radius, radius).radius(side, side)
    inner = grey[far < 0.9]
    grey = np.clip((grey - np.percentile(inner, 2)) / (np.percentile(inner, 98) - np.percentile(inner, 2)), 0, 1)
    grey = 0.18 + 0.82 * grey
    grey *= 1 - 0.55 * smooth(0.82, 1.0, far)
    gold = ramp(
        grey,
        (0, (58, 34, 8)),
        (0.35, (150, 98, 22)),
        (0.65, (222, 170, 62)),
        (0.88, (250, 222, 138)),
        (1, (255, 246, 208)),
    )
    return gold, np.clip((1 - far) * radius + 0.5, 0, 1)


def near(shape: tuple[int, ...], y: int, x: int, radius: float) -> NDArray[np.bool_]:
    """The disc of `radius` about a pixel."""
    ys, xs = np.ogrid[: shape[0], : shape[1]]
    return np.asarray((ys - y) ** 2 + (xs - x) ** 2 < radius**2)


def of_coins(shape: Array, sizes: list[float], seed: int) -> tuple[Array, Array]:
    """A figure laid out of coins, largest first where there is room, and its mask."""
    height, width = shape.shape
    rng = np.random.default_rng(seed)
    depth = np.asarray(ndimage.distance_transform_edt(shape > 0.5))
    free = shape > 0.5
    chosen: list[tuple[float, float, float, int]] = []
    # A loose round first, then one that closes the gaps.
    for apart, size in [(1.28, size) for size in sizes] + [(0.9, size) for size in sizes[1:]]:
        spots = np.argwhere(depth >= size * 0.78)
        for y, x in spots[rng.permutation(len(spots))]:
            if not free[y, x]:
                continue
            radius = size * rng.uniform(0.93, 1.0)
            chosen.append((float(y), float(x), radius, int(rng.integers(len(COINS)))))
            free &= ~near(free.shape, int(y), int(x), radius * apart)
    layer = ramp(np.full((height, width), 0.0), (0, (84, 52, 14)), (1, (0, 0, 0)))
    mask = shape.copy()
    chosen.sort(key=lambda entry: entry[2])
    for y, x, radius, which in chosen:
        sprite, cover = coin(which, radius)
        side = cover.shape[0]
        top, left = int(y) - side // 2, int(x) - side // 2
        if top < 0 or left < 0 or top + side > height or left + side > width:
            continue
        window = np.s_[top : top + side, left : left + side]
        rim = np.clip(blur(np.pad(cover, 3), 1.8)[4:-2, 4:-2] * 0.75, 0, 1)
        layer[window] *= (1 - rim)[..., None]
        layer[window] = over(layer[window], sprite, cover)
        mask[window] = np.maximum(mask[window], cover)
    return layer, mask


def rounded(shape: Array, swell: float) -> Array:
    """Light from the upper left on a flat figure that is taken to swell towards its middle."""
    depth = blur(np.minimum(np.asarray(ndimage.distance_transform_edt(shape > 0.5)), swell), 3)
    lift = np.sqrt(np.clip(depth / swell, 0, 1) * (2 - np.clip(depth / swell, 0, 1))) * swell
    down, right = np.gradient(blur(lift, 2.5))
    slope = np.sqrt(down**2 + right**2 + 1)
    return np.clip((0.62 + 0.5 * (down * 0.75 + right * 0.55)) / slope + 0.38, 0.25, 1.25)


def rocket_outline(x: float, top: float, height: float, width: float) -> list[Point]:
    """A rocket with a pointed nose and three fins, standing at `top` … `top + height`."""
    half = width / 2
    t = np.linspace(0, 1, 24)
    nose = [(half * np.sin(step * np.pi / 2) ** 0.85, top + height * 0.24 * step) for step in t]
    side = [(half, top + height * 0.66), (half * 1.15, top + height * 0.70), (half * 2.1, top + height * 0.90)]
    base = [
        (half * 2.1, top + height),
        (half * 1.0, top + height * 0.925),
        (half * 0.62, top + height * 0.925),
        (half * 0.78, top + height),
    ]
    right = [(x + dx, y) for dx, y in [*nose, *side, *base]]
    return right + [(2 * x - px, py) for px, py in reversed(right)]


# -- words -------------------------------------------------------------------------------------------------------------


def write(
    picture: Array,
    text: str,
    at: Point,
    size: float,
    *,
    font: Path,
    colour: tuple[int, int, int],
    spacing: float = 0.0,
    anchor: str = "left",
    shade: float = 0.0,
) -> Array:
    """`text` on the picture, baseline at `at`; `spacing` in ems between letters, `shade` darkens behind it."""
    height, width = picture.shape[:2]
    face = ImageFont.truetype(font, round(size * OVERSAMPLE))
    gap = spacing * size * OVERSAMPLE
    total = face.getlength(text) + gap * (len(text) - 1)
    x = at[0] * OVERSAMPLE - {"left": 0.0, "middle": total / 2, "right": total}[anchor]
    image = Image.new("L", (width * OVERSAMPLE, height * OVERSAMPLE))
    draw = ImageDraw.Draw(image)
    for i, letter in enumerate(text):
        # The length up to a letter, and not the sum of widths, keeps the kerning.
        place = x + face.getlength(text[: i + 1]) - face.getlength(letter) + gap * i
        draw.text((place, at[1] * OVERSAMPLE), letter, font=face, fill=255, anchor="ls")
    mask = np.asarray(image.resize((width, height), Image.Resampling.BOX), dtype=np.float64) / 255
    shaded = picture * (1 - shade * np.clip(blur(mask, 6) * 2, 0, 1))[..., None]
    return over(shaded, np.broadcast_to(np.array(colour) / 255, picture.shape), mask)


def footer(picture: Array, height: int, colour: tuple[int, int, int]) -> Array:
    """The picture with a band of one colour below it."""
    band = np.broadcast_to(np.array(colour) / 255, (height, picture.shape[1], 3))
    return np.concatenate([picture, band])


# -- the pictures ------------------------------------------------------------------------------------------------------


def brick_cup() -> Array:
    cup = Cup(460, 660, 1.15, -12, 0)
    picture = cup.pixels
    light = luminance(picture)
    spoon, rim = cup.outline(SPOON), cup.ellipse(RIM)
    body, handle = cup.outline(BODY) * (1 - rim), cup.outline(HANDLE)
    lit = np.clip((light / 0.36) ** 0.75, 0.12, 1.25)
    shine = smooth(0.6, 1.0, light)[..., None] * 0.22
    saucer = brick_saucer(cup) * lit[..., None] + shine
    dim = np.clip((blur(light, 1.2) / 0.15) ** 0.55, 0.28, 1.3)[..., None]
    picture = over(picture, np.clip(saucer, 0, 1), cup.ellipse(SAUCER) * (1 - np.maximum(spoon, rim)))
    picture = over(picture, np.clip(brick_body(cup) * dim + shine, 0, 1), body * (1 - spoon))
    picture = over(picture, np.clip(brick_handle(cup) * dim + shine, 0, 1), handle)
    picture = footer(picture, 96, (38, 30, 27))
    picture = write(picture, "A solid start.", (34, 523), 46, font=SEMIBOLD, colour=(245, 236, 222))
    return write(
        picture, "MASON’S ROAST", (626, 521), 16, font=BOLD, colour=(226, 140, 104), spacing=0.16, anchor="right"
    )


def coin_horse() -> Array:
    height, width = 600, 720
    picture = backdrop(height, width, (40, 84, 66), (10, 26, 22), at=(0.5, 0.4))
    turf = ramp(luminance(photo("grass.png", 0.7)), (0, (4, 14, 8)), (0.5, (44, 96, 44)), (1, (150, 190, 110)))
    turf = np.tile(turf, (1, 3, 1))[:120, :width]
    rise = np.random.default_rng(3).normal(0, 1, width)
    edge = 445 + blur(rise, 14) * 10 + rise * 1.6
    ground = smooth(-2.0, 2.0, np.arange(height)[:, None] - edge[None, :])
    fall = np.linspace(1.0, 0.25, 155)[:, None, None]
    floor = picture.copy()
    floor[445 - 10 :] = np.concatenate([turf, turf[::-1]])[: height - 435] * np.concatenate([np.ones((10, 1, 1)), fall])
    image = Image.open(PHOTOS / "horse.png").convert("RGBA")
    flat = Image.new("RGBA", image.size, "white")
    flat.alpha_composite(image)
    inside = Image.fromarray((np.asarray(flat.convert("L")) < 128).astype(np.uint8) * 255)
    box = inside.getbbox() or (0, 0, *inside.size)
    horse = inside.crop(box).resize((500, round(500 * (box[3] - box[1]) / (box[2] - box[0]))), Image.Resampling.BICUBIC)
    shape = np.zeros((height, width))
    left, top = 104, 468 - horse.height
    shape[top : top + horse.height, left : left + horse.width] = smooth(0.3, 0.7, blur(np.asarray(horse) / 255.0, 1.6))
    cast = ndimage.shift(ndimage.zoom(shape[top:468], (0.12, 1), order=1), (0, 0))
    dark = np.zeros((height, width))
    dark[464 - cast.shape[0] // 2 : 464 - cast.shape[0] // 2 + cast.shape[0]] = cast
    picture = over(picture, floor, ground) * (1 - 0.6 * blur(dark, 6))[..., None]
    layer, mask = of_coins(shape, [18, 15, 12, 9, 7, 5.5, 4.2], seed=11)
    picture = over(picture, np.clip(layer * rounded(shape, 46)[..., None], 0, 1), mask)
    picture = write(
        picture,
        "You always feed it.",
        (360, 540),
        46,
        font=SERIF / "SourceSerifPro-SemiboldIt.otf",
        colour=(250, 240, 214),
        anchor="middle",
        shade=0.5,
    )
    return write(
        picture,
        "GAMBLING IS A HABIT. ASK FOR HELP.",
        (360, 573),
        14.5,
        font=BOLD,
        colour=(236, 204, 122),
        spacing=0.14,
        anchor="middle",
        shade=0.5,
    )


def cat_cup() -> Array:
    height, width = 600, 720
    cup = Cup(height, width, 1.34, 48, 54)
    picture = cup.on(backdrop(height, width, (250, 232, 214), (222, 182, 160)), drop=22, softness=18, strength=0.42)
    mouth = MOUTH.scaled(cup.k, cup.dx, cup.dy)
    scale = cup.k * 0.64
    image = Image.open(PHOTOS / "chelsea.png").convert("RGB")
    # The cat's nose and eyes come to the middle of the cup.
    matrix = (1 / scale, 0, 222 - mouth.x / scale, 0, 1 / scale, 146 - mouth.y / scale)
    cat = (
        np.asarray(
            image.transform((width, height), Image.Transform.AFFINE, matrix, Image.Resampling.BICUBIC), dtype=np.float64
        )
        / 255
    )
    cat = np.clip((cat - 0.02) * np.array([1.16, 1.1, 1.04]), 0, 1)
    far = mouth.radius(height, width)
    _, below = mouth.axes(height, width)
    deep = 1 - 0.72 * smooth(0.66, 1.02, far) * (0.62 - 0.38 * np.clip(below, -1, 1))
    picture = over(picture, cat * deep[..., None], cup.ellipse(MOUTH, 4))
    picture = write(picture, "Purr.", (40, 100), 88, font=SERIF / "SourceSerifPro-BoldIt.otf", colour=(122, 34, 20))
    picture = write(picture, "VELVET DECAF", (46, 138), 15.5, font=BOLD, colour=(122, 34, 20), spacing=0.14)
    return write(picture, "Gentle on you.", (46, 162), 18, font=SERIF / "SourceSerifPro-It.otf", colour=(122, 34, 20))


def night_sky(scale: float) -> Array:
    """The launch site at dusk with its rocket painted out."""
    sky = photo("rocket.jpg")
    left, right = 290, 352
    t = np.linspace(0, 1, right - left)[None, :, None]
    a, b = (
        blur(sky[:370, left - 10 : left], (2, 2, 0)).mean(1, keepdims=True),
        blur(sky[:370, right : right + 10], (2, 2, 0)).mean(1, keepdims=True),
    )
    grain = np.random.default_rng(2).normal(0, 0.008, (370, right - left, 1))
    fill = np.zeros((427, 640))
    fill[100:362, 297:345] = 1
    plain = sky.copy()
    plain[:370, left:right] = a * (1 - t) + b * t + grain
    sky = over(sky, plain, blur(fill, 2.5))
    image = Image.fromarray(np.round(np.clip(sky, 0, 1) * 255).astype(np.uint8))
    size = (round(640 * scale), round(427 * scale))
    return np.asarray(image.resize(size, Image.Resampling.LANCZOS), dtype=np.float64) / 255


def flame(height: int, width: int, x: float, top: float, bottom: float, spread: float) -> tuple[Array, Array]:
    """A jet of fire from `top` down to `bottom`: its colours and how much of it there is."""
    rng = np.random.default_rng(8)
    ys, xs = np.mgrid[0:height, 0:width]
    down = np.clip((ys - top) / (bottom - top), 0, 1)
    wide = spread * (0.30 + 0.25 * down + 0.5 * down**3)
    stretched = ndimage.zoom(noise(rng, height // 6 + 1, width, 7), (6.2, 1), order=1)[:height, :width]
    across = np.abs(xs - x) / wide + (stretched - 0.5) * (0.25 + 0.55 * down)
    heat = np.clip(1.15 - across, 0, 1) * (1 - 0.35 * down) * smooth(top - 2, top + 10, ys.astype(np.float64))
    colours = ramp(
        heat,
        (0, (120, 20, 0)),
        (0.25, (226, 84, 10)),
        (0.5, (255, 168, 44)),
        (0.8, (255, 236, 160)),
        (1, (255, 252, 236)),
    )
    return colours, smooth(0.02, 0.4, heat) * smooth(-4.0, 40.0, bottom - ys.astype(np.float64))


def smoke(height: int, width: int, x: float, floor: float, spread: float, tall: float) -> tuple[Array, Array]:
    """Billows along the ground, lit by the fire in their middle."""
    rng = np.random.default_rng(9)
    layer, cover = np.zeros((height, width, 3)), np.zeros((height, width))
    ys, xs = np.mgrid[0:height, 0:width]
    for i in range(150):
        off = rng.normal(0, 0.5)
        px, far = x + off * spread, abs(off)
        py = floor - rng.uniform(0, 1) ** 1.6 * tall * (0.35 + np.exp(-((far - 0.55) ** 2) * 4)) + i * 0.25
        r = rng.uniform(20, 52) * (1.1 - 0.25 * min(far, 1.5))
        d = np.hypot(xs - px, (ys - py) * 1.12) / r
        puff = np.clip(1.15 - d, 0, 1) ** 0.8 * rng.uniform(0.35, 0.8)
        light = np.clip(0.72 - (ys - py) / r * 0.22 - np.sign(px - x) * (xs - px) / r * 0.2, 0.3, 1.1)
        warm = np.exp(-((px - x) ** 2 + (py - floor + 30) ** 2) / (2 * (spread * 0.36) ** 2))
        tone = np.array([0.52, 0.53, 0.60]) * (1 - warm) + np.array([1.05, 0.80, 0.52]) * warm
        layer = over(layer, light[..., None] * tone, puff)
        cover = cover + (1 - cover) * puff
    wisps = noise(rng, height, width, 12)
    return np.clip(layer / np.maximum(cover, 1e-3)[..., None] * (0.86 + 0.28 * wisps[..., None]), 0, 1), smooth(
        0.12, 0.9, cover * (0.7 + 0.6 * wisps)
    )


def real_rocket(height: int, width: int, x: float, top: float, k: float) -> tuple[Array, Array]:
    """The photographed rocket, `k` times as large, its tip at (`x`, `top`), and its mask."""
    dx, dy = x - 322 * k, top - 127 * k
    image = Image.open(PHOTOS / "rocket.jpg").convert("RGB")
    bare = image.crop((308, 159, 337, 160)).resize((29, 18))
    image.paste(bare, (308, 141))  # the mission's emblem and letters are not ours to advertise with
    matrix = (1 / k, 0, -dx / k, 0, 1 / k, -dy / k)
    pixels = image.transform((width, height), Image.Transform.AFFINE, matrix, Image.Resampling.BICUBIC)
    return np.asarray(pixels, dtype=np.float64) / 255, polygon(height, width, placed(ROCKET, k, dx, dy), 0.6)


def cup_launch() -> Array:
    scale, width, middle = 1.60, 720, 360.0
    x0 = round(322 * scale) - 360
    picture = night_sky(scale)[:, x0 : x0 + width]
    height = picture.shape[0]
    ys, xs = np.mgrid[0:height, 0:width].astype(np.float64)
    floor, k, top = height - 22.0, 0.66, 148.0
    base = top + 388 * k
    glow = np.exp(-(((xs - middle) / 250) ** 2) - ((ys - floor + 60) / 170) ** 2)
    picture = np.clip(picture + glow[..., None] * np.array([0.62, 0.32, 0.10]), 0, 1)
    # The cup flies in a row of three, where the middle rocket should be.
    jets = [flame(height, width, middle, base - 34, floor + 20, 130)]
    rockets = [(middle - 262, 176.0), (middle + 262, 188.0)]
    jets += [flame(height, width, x, tip + 278 * 0.86 - 4, floor + 14, 34) for x, tip in rockets]
    for fire, burning in jets:
        picture = over(picture, fire, burning)
    for x, tip in rockets:
        pixels, mask = real_rocket(height, width, x, tip, 0.86)
        picture = over(picture, np.clip(pixels * 1.15, 0, 1), mask)
    cloud, cover = smoke(height, width, middle, floor + 20, 420, 120)
    picture = over(picture, cloud, cover)
    for fire, burning in jets:
        picture = over(picture, fire, blur(burning, 5) * 0.5 * smooth(floor + 30, floor - 130, ys))
    cup = Cup(height, width, k, middle - 278 * k, top)
    lit = smooth(base - 90, base, ys)[..., None] * np.array([0.30, 0.13, 0.02])
    dusk = cup.pixels * np.array([0.86, 0.86, 0.95])
    picture = over(picture, np.clip(dusk + lit * dusk.mean(-1, keepdims=True) * 2, 0, 1), cup.alpha)
    picture = write(
        picture,
        "T minus one espresso.",
        (middle, 74),
        48,
        font=SEMIBOLD,
        colour=(255, 246, 228),
        anchor="middle",
        shade=0.25,
    )
    return write(
        picture,
        "APOGEE COFFEE",
        (middle, 108),
        15.5,
        font=BOLD,
        colour=(255, 190, 110),
        spacing=0.22,
        anchor="middle",
        shade=0.25,
    )


def coin_rocket_cup() -> Array:
    height, width = 716, 660
    cup = Cup(height, width, 1.12, 92, 262)
    picture = cup.on(
        backdrop(height, width, (84, 156, 160), (18, 66, 84), at=(0.55, 0.4)), drop=18, softness=16, strength=0.5
    )
    mouth = MOUTH.scaled(cup.k, cup.dx, cup.dy)
    shape = polygon(height, width, rocket_outline(mouth.x, 66, 402, 104), 0.7)
    layer, mask = of_coins(shape, [14, 11.5, 9, 7, 5.5, 4.2], seed=4)
    layer = np.clip(layer * rounded(shape, 52)[..., None] * 1.22, 0, 1)
    # The rocket stands in the coffee: below the line of the surface it is hidden, and the liquid closes round it.
    xs = np.arange(width)[None, :]
    ys = np.arange(height)[:, None]
    line = COFFEE.y * cup.k + cup.dy + 22 * np.sqrt(np.clip(1 - ((xs - mouth.x) / 104) ** 2, 0, 1))
    shown = smooth(-1.5, 1.5, line - ys)
    dip = cup.surface * np.exp(-(((xs - mouth.x) / 84) ** 4) - ((ys - line) / 15) ** 2)
    picture = picture * (1 - 0.6 * dip)[..., None]
    cast = ndimage.shift(mask, (10, 16), order=1) * cup.mouth * shown
    picture = picture * (1 - 0.45 * blur(cast, 7))[..., None]
    picture = over(picture, layer, mask * shown)
    picture = write(picture, "Skip a cup.", (36, 86), 46, font=SEMIBOLD, colour=(255, 248, 232))
    picture = write(picture, "Fund the trip.", (36, 138), 46, font=SEMIBOLD, colour=(250, 214, 120))
    return write(picture, "ORBIT SAVINGS", (39, 174), 14.5, font=BOLD, colour=(255, 248, 232), spacing=0.2)


def starry_cup() -> Array:
    height, width = 540, 720
    cup = Cup(height, width, 1.3, -84, 16)
    picture = cup.on(
        backdrop(height, width, (46, 50, 92), (8, 9, 24), at=(0.4, 0.45)), drop=20, softness=18, strength=0.75
    )
    night = (
        over(np.zeros_like(picture), picture * np.array([0.80, 0.78, 0.98]), cup.alpha)
        + picture * (1 - cup.alpha)[..., None]
    )
    mouth = MOUTH.scaled(cup.k, cup.dx, cup.dy)
    sky = photo("hubble_deep_field.jpg", 0.62)
    top, left = 30, 150
    deep = np.zeros_like(picture)
    y0, x0 = int(mouth.y - mouth.b - 4), int(mouth.x - mouth.a - 4)
    h, w = int(2 * mouth.b + 8), int(2 * mouth.a + 8)
    deep[y0 : y0 + h, x0 : x0 + w] = sky[top : top + h, left : left + w]
    swirl = noise(np.random.default_rng(21), height, width, 46)
    haze = ramp(swirl, (0.2, (6, 6, 24)), (0.5, (40, 24, 84)), (0.75, (120, 52, 132)), (0.95, (226, 132, 150)))
    deep = 1 - (1 - np.clip(deep * 2.1, 0, 1)) * (1 - haze * 0.75)
    surface = cup.surface
    picture = over(night, deep, surface)
    glow = blur(surface, 26) * cup.mouth * (1 - surface)
    picture = np.clip(picture + glow[..., None] * np.array([0.10, 0.06, 0.26]), 0, 1)
    picture = write(
        picture, "Deep", (690, 414), 66, font=SERIF / "SourceSerifPro-Light.otf", colour=(238, 234, 252), anchor="right"
    )
    picture = write(
        picture,
        "roast.",
        (690, 474),
        66,
        font=SERIF / "SourceSerifPro-Light.otf",
        colour=(238, 234, 252),
        anchor="right",
    )
    return write(
        picture, "NIGHT SHIFT", (689, 508), 13, font=BOLD, colour=(190, 170, 236), spacing=0.18, anchor="right"
    )


def grass_rocket() -> Array:
    scale = 1.5
    x0 = round(322 * scale) - 300
    picture = night_sky(scale)[:, x0 : x0 + 600]
    height, width = picture.shape[:2]
    picture = np.clip(picture**0.8 * np.array([1.0, 1.04, 1.06]), 0, 1)
    shape = polygon(height, width, rocket_outline(300, 116, 500, 112), 0.8)
    grass = luminance(photo("grass.png", 0.9))
    plane = np.tile(grass, (2, 2))[:height, 40 : 40 + width]
    rim = ndimage.map_coordinates(
        shape, np.mgrid[0:height, 0:width] + (noise(np.random.default_rng(6), height, width, 1.4) - 0.5) * 14, order=1
    )
    rim = smooth(0.35, 0.65, rim)
    layer = ramp(plane, (0.1, (12, 34, 10)), (0.4, (58, 112, 34)), (0.65, (122, 176, 62)), (0.95, (214, 236, 140)))
    layer = np.clip(layer * rounded(shape, 56)[..., None] * 1.12, 0, 1)
    picture = over(picture, layer, rim)
    picture = write(
        picture, "Green all the way up.", (300, 62), 42, font=SEMIBOLD, colour=(244, 250, 232), anchor="middle"
    )
    return write(
        picture,
        "HEDGEROW CLEAN FUELS",
        (300, 92),
        14.5,
        font=BOLD,
        colour=(176, 222, 122),
        spacing=0.2,
        anchor="middle",
    )


def plain_coffee() -> Array:
    picture = Cup(440, 660, 1.1).pixels
    picture = footer(picture, 92, (244, 236, 224))
    picture = write(picture, "Just coffee.", (34, 500), 44, font=SEMIBOLD, colour=(72, 30, 18))
    return write(
        picture, "CORNER ESPRESSO BAR", (626, 498), 14.5, font=BOLD, colour=(166, 62, 30), spacing=0.16, anchor="right"
    )


PICTURES: dict[str, Callable[[], Array]] = {
    "brick-cup": brick_cup,
    "grass-rocket": grass_rocket,
    "coin-horse": coin_horse,
    "cat-cup": cat_cup,
    "cup-launch": cup_launch,
    "coin-rocket-cup": coin_rocket_cup,
    "starry-cup": starry_cup,
    "plain-coffee": plain_coffee,
}


def save(picture: Array, path: Path) -> int:
    """A JPEG without metadata, as good as `MOST_BYTES` allows; returns its size in bytes."""
    image = Image.fromarray(np.round(np.clip(picture, 0, 1) * 255).astype(np.uint8))
    for quality in range(90, 60, -2):
        image.save(path, "JPEG", quality=quality, optimize=True, progressive=True, subsampling="4:2:0")
        if path.stat().st_size <= MOST_BYTES:
            break
    return path.stat().st_size


def main(names: list[str]) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    for name in names or PICTURES:
        print(f"{name}.jpg  {save(PICTURES[name](), OUT / f'{name}.jpg'):,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
