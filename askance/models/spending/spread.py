"""A number that is not known yet: at least about this, expected this, at most about this."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """Low, expected and high; sums add up bound by bound, as if all errors had one cause."""

    low: float = 0.0
    expected: float = 0.0
    high: float = 0.0

    @classmethod
    def exactly(cls, value: float) -> Spread:
        """A number that is known."""
        return cls(value, value, value)

    @classmethod
    def around(cls, value: float) -> Spread:
        """A number of which only the size is known: half to twice `value`."""
        return cls(value / 2, value, value * 2)

    def __add__(self, other: Spread) -> Spread:
        return Spread(self.low + other.low, self.expected + other.expected, self.high + other.high)

    def __mul__(self, factor: float) -> Spread:
        return Spread(self.low * factor, self.expected * factor, self.high * factor)


NOTHING = Spread()
