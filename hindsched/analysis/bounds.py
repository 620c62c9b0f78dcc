"""An interval, and how it and its ends are written for people: rounded outward.

What is said of a proven end stays true. Where the two ends agree to the tolerance to which optima
are proven, one number is written: ``1``, ``45``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context

from hindsched.solvers.door.options import DEFAULT_GAP

SIGNIFICANT, OF_A_RATIO = 4, 3


@dataclass(frozen=True)
class Bounds:
    """A closed interval; an end that is not known is None, one that is infinite ``math.inf``.

    Examples
    --------
    >>> print(Bounds(1.19996, 1.20004), Bounds(1.0, 1.0000000007), Bounds(44.99999, 45.0))
    [1.199, 1.201] 1 45
    """

    lower: float | None = None
    upper: float | None = None

    @property
    def is_point(self) -> bool:
        """Whether the ends agree to the tolerance to which optima are proven."""
        if self.lower is None or self.upper is None or math.inf in (self.lower, self.upper):
            return self.lower == math.inf
        return self.upper - self.lower <= DEFAULT_GAP * max(abs(self.lower), abs(self.upper))

    def to_dict(self) -> dict[str, float | str | None]:
        """JSON data; infinity, for which JSON has no number, is the word ``inf``."""
        return {name: "inf" if end == math.inf else end for name, end in vars(self).items()}

    def ends(self) -> tuple[str, str]:
        """Write both ends, rounded outward; a question mark is one that is not known."""
        return written_down(self.lower), written_up(self.upper)

    def __str__(self) -> str:
        if self.lower is None and self.upper is None:
            return "unknown"
        if self.is_point:
            return f"{self.lower:.6g}"
        return "[{}, {}]".format(*self.ends())


def ratio_text(interval: Bounds) -> str:
    """A ratio for people: three digits where it is one number, 1.78; an interval as any other.

    Examples
    --------
    >>> ratio_text(Bounds(1.776, 1.776)), ratio_text(Bounds(1.0, 1.0)), ratio_text(Bounds(0.9, 0.9))
    ('1.78', '1', '0.9')
    """
    if interval.is_point:
        is_unit = Bounds(*sorted((1.0, interval.lower or 0.0))).is_point
        return "1" if is_unit else _rounded(interval.lower, ROUND_HALF_EVEN, OF_A_RATIO)
    return str(interval)


def written_down(value: float | None) -> str:
    """Write a number of which "at least" holds: four significant digits, never more than it is.

    Just above 1, where ratios are best, as many digits as tell it from 1.
    """
    return _rounded(value, ROUND_FLOOR)


def written_up(value: float | None) -> str:
    """Write a number of which "at most" holds: like `written_down`, but never less than it is."""
    return _rounded(value, ROUND_CEILING)


def written_near(value: float | None) -> str:
    """Write a number that is known: like `written_down`, to the nearest."""
    return _rounded(value, ROUND_HALF_EVEN)


def _rounded(value: float | None, rounding: str, least: int = SIGNIFICANT) -> str:
    if value is None:
        return "?"
    if not math.isfinite(value):
        return f"{value}"
    # without the last bits of a division, which would tip 10 over to 10.01
    exact = Context(prec=12).create_decimal_from_float(value)
    above = exact - 1
    digits = max(least, 1 - above.adjusted()) if 0 < above < 1 else least
    return f"{float(Context(prec=digits, rounding=rounding).create_decimal(exact)):.{digits}g}"
