"""Random draws that are the same on every machine and with every release of NumPy.

NumPy keeps the raw output of a bit generator fixed (NEP 19), but not what `Generator` makes of it. So raw words are
drawn and turned into places and signs here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Places = npt.NDArray[np.int32]

_CHUNK = 250_000
"""Numbers drawn at once: 2 MB of words, 1 MB of places."""
_MOST_KEPT = 2_500_000
"""Places that are kept for the next figure: 10 MB."""


def resamples(seed: int, *, draws: int, size: int) -> Iterator[Places]:
    """Places below `size` with replacement, in chunks of shape (some draws, `size`), `draws` rows in all."""
    if draws * size <= _MOST_KEPT:
        yield _kept(seed, draws, size)
        return
    yield from _chunks(seed, draws=draws, size=size)


def coins(seed: int, *, draws: int, size: int) -> Iterator[npt.NDArray[np.bool_]]:
    """Tosses of a fair coin in chunks of shape (some draws, `size`), `draws` rows in all."""
    import numpy as np

    source = np.random.PCG64(seed)
    for rows in _rows(draws, size):
        words = source.random_raw(rows * -(-size // 64)).astype("<u8")
        bits = np.unpackbits(words.view(np.uint8)).reshape(rows, -1)
        yield bits[:, :size].astype(np.bool_)


@lru_cache(maxsize=2)
def _kept(seed: int, draws: int, size: int) -> Places:
    """The figures of one run are resampled alike, and drawing costs more than the figures."""
    import numpy as np

    places = np.concatenate([*_chunks(seed, draws=draws, size=size)])
    places.setflags(write=False)
    return places


def _chunks(seed: int, *, draws: int, size: int) -> Iterator[Places]:
    import numpy as np

    source, half = np.random.PCG64(seed), np.uint64(32)
    for rows in _rows(draws, size):
        words = source.random_raw(rows * size)
        # The upper half of each word as a share of `size`: no place is likelier than another by more than size / 2³².
        words >>= half
        words *= np.uint64(size)
        words >>= half
        yield words.astype(np.int32).reshape(rows, size)


def _rows(draws: int, size: int) -> Iterator[int]:
    rows = max(1, _CHUNK // max(1, size))
    for start in range(0, draws, rows):
        yield min(rows, draws - start)
