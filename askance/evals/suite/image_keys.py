"""Keys of images, `"{shard}/{name}"`, as PittAds and every file of statements have them: checked, completed, sorted.

Images numbered up to 166,908 are JPEG files in the shard of their last digit. Those numbered 170,001 to 178,000 are PNG
files in shard 10. This holds for all 64,340 images of `Topics.json`. Base names are unique in the data set.
"""

from __future__ import annotations

import re
from pathlib import Path

from askance.errors import BadData

LAST_JPEG = 166_908
PNGS = range(170_001, 178_001)

LONGEST = 255
"""Characters of a key."""

_NAME = re.compile(r"0*(\d{1,12})\.(jpg|png)")
_OUTSIDE = re.compile(r"[/\\~]|[A-Za-z]:|(?:.*[/\\])?\.\.(?:[/\\]|\Z)", re.DOTALL)
_NO_NAME = re.compile(r"[\x00-\x1f\x7f\\:]")


def check_key(key: str, *, where: str) -> str:
    """The key itself, if it can be the path of a file inside a folder.

    Args:
        key: such as `9/142269.jpg`, `142269.jpg` or `17`.
        where: the file and the place in it, for messages.

    Raises:
        BadData: it leads out of the folder, or is no name of a file.
    """
    if _OUTSIDE.match(key):
        raise BadData(f"{where}: the key {key[:80]!r} leads out of the data folder.", hint=_EXPECTED)
    if len(key) > LONGEST or _NO_NAME.search(key) or not all(part.strip(" .") for part in key.split("/")):
        raise BadData(f"{where}: {key[:80]!r} is no path of an image.", hint=_EXPECTED)
    return key


_EXPECTED = "A key reads like '9/142269.jpg'."


def base_name(key: str) -> str:
    """The last part of a key."""
    return key.rpartition("/")[2]


def shard_of(name: str) -> str | None:
    """The shard of an image by its base name, `0` to `10`; None if no image of the data set has such a name."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    number = int(match[1])
    if match[2] == "jpg":
        return str(number % 10) if number <= LAST_JPEG else None
    return "10" if number in PNGS else None


def full_key(key: str) -> str:
    """The key with its shard: `142269.jpg` is `9/142269.jpg`; one that has a folder, or no shard, stays as it is."""
    shard = None if "/" in key else shard_of(key)
    return key if shard is None else f"{shard}/{key}"


def key_order(key: str) -> tuple[object, ...]:
    """The key to sort by: shards and numbers as numbers, then the text itself."""
    return (*(_part(part) for part in key.split("/")), ("", key))


def _part(part: str) -> tuple[str, int, str]:
    number = Path(part).stem
    return ("0", int(number), "") if number.isdecimal() and len(number) <= 12 else ("1", 0, part)
