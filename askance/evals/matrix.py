"""`Matrix`: an array of scores, such as how well each of a thousand texts fits each of a thousand pictures.

Its file is a `.npy` of numpy, which `numpy.load` reads. For a shape and a type, which stand in the line, one header is
valid; so the header is compared, never parsed, and no file can name another size or hold an object.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from typing_extensions import override

from askance.errors import UsageError
from askance.evals.attachment import AGAIN, Attachment
from askance.evals.run_format import MATRICES, MOST_NUMBERS, MatrixForm

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    _Array: TypeAlias = npt.NDArray[np.float32 | np.float64]

_CODES: Final = {"float32": "<f4", "float64": "<f8"}
"""By type of the numbers, its name in the file."""
_HEADER_BYTES: Final = 128


class Matrix(Attachment):
    """Finite numbers in rows and columns, as float32 or float64.

    Args:
        array: with two dimensions; it is copied.

    Raises:
        UsageError: it has other dimensions or another type, is empty, has more than `MOST_NUMBERS` numbers, or one that
            is not finite.
    """

    kind: ClassVar[str] = "matrix"
    folder: ClassVar[str] = MATRICES
    suffix: ClassVar[str] = ".npy"
    line_form: ClassVar[type] = MatrixForm

    __slots__ = ()

    def __init__(self, array: npt.ArrayLike) -> None:
        import numpy as np

        values = np.asarray(array)
        dtype = values.dtype.name
        if values.ndim != 2 or not values.size or dtype not in _CODES:
            raise UsageError(
                f"A matrix cannot have the shape {values.shape} and numbers of the type {dtype}.",
                hint="Give rows and columns, at least one of each, of float32 or float64: `array.astype('float64')`.",
            )
        if values.size > MOST_NUMBERS:
            raise UsageError(
                f"This matrix has {values.size:,} numbers, more than {MOST_NUMBERS:,}.",
                hint="Make a sample of each part of it.",
            )
        if not _is_finite(values):
            raise UsageError("This matrix has a number that is not finite.", hint="Leave out what has no score.")
        rows, columns = values.shape
        numbers = np.ascontiguousarray(values, dtype=_CODES[dtype])
        content = b"".join((_header((rows, columns), dtype), numbers.data.cast("B")))
        super().__init__(content, {"shape": [rows, columns], "dtype": dtype})

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns it has."""
        rows, columns = self._form["shape"]
        return rows, columns

    @property
    def dtype(self) -> str:
        """The type of its numbers: `float32` or `float64`."""
        return self._form["dtype"]

    @property
    def array(self) -> _Array:
        """The numbers, which cannot be written to; keep them while they are used, since its file is read each time.

        Raises:
            UsageError: its file is missing, was changed, or holds no such matrix.
        """
        import numpy as np

        content = self.content
        if len(content) != self._most_bytes or not content.startswith(_header(self.shape, self.dtype)):
            raise UsageError(
                f"{self._where} is no file of {self.dtype} with the shape {self.shape}, as its line says.", hint=AGAIN
            )
        values: _Array = np.frombuffer(content, dtype=_CODES[self.dtype], offset=_HEADER_BYTES).reshape(self.shape)
        if not _is_finite(values):
            raise UsageError(f"{self._where} has a number that is not finite.", hint=AGAIN)
        return values

    @override
    def check(self) -> None:
        _ = self.array

    @property
    @override
    def _most_bytes(self) -> int:
        rows, columns = self.shape
        return _HEADER_BYTES + rows * columns * int(_CODES[self.dtype][-1])

    @override
    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"Matrix({rows:,} × {columns:,} {self.dtype}, {self.digest[:12]})"


def _is_finite(array: npt.NDArray[Any]) -> bool:
    return math.isfinite(array.min()) and math.isfinite(array.max())  # both are NaN where one is there


def _header(shape: tuple[int, int], dtype: str) -> bytes:
    """The header of a `.npy` file in version 1.0 of its format, as numpy writes it."""
    text = f"{{'descr': '{_CODES[dtype]}', 'fortran_order': False, 'shape': {shape}, }}"
    length = _HEADER_BYTES - 10
    return b"\x93NUMPY\1\0" + length.to_bytes(2, "little") + text.ljust(length - 1).encode() + b"\n"
