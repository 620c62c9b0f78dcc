"""An interval, and how it and its ends are written for people: rounded outward.

What is said of a proven end stays true. Where the two ends agree to the tolerance to which optima
are proven, one number is written: ``1``, ``45``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from hindsched.solvers.door.options import DEFAULT_GAP

SIGNIFICANT, DECIMALS = 4, 4
LONG = Context(prec=400)  # more digits than a double has before its point


@dataclass(frozen=True)
class Interval:
    """A closed interval; an end that is not known is None, one that is infinite ``math.inf``.

    Examples
    --------
    >>> print(Interval(1.19996, 1.20004), Interval(1.0, 1.0000000007), Interval(44.99999, 45.0))
    [1.199, 1.201] 1 45
    >>> Interval(1.0141, 1.0141).as_ratio(), Interval(1.776321, 2).as_ratio()
    ('1.0141', '[1.7763, 2.0000]')
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
        return {
            name: "inf" if end == math.inf else end
            for name, end in (("lower", self.lower), ("upper", self.upper))
        }

    def ends_as_ratio(self) -> tuple[str, str]:
        """Write the ends of a ratio for a column of them: four decimals each, rounded outward."""
        return _decimals(self.lower, ROUND_FLOOR), _decimals(self.upper, ROUND_CEILING)

    def as_ratio(self) -> str:
        """Write a ratio for a column of them; one number where the ends agree."""
        lower, upper = self.ends_as_ratio()
        if lower == upper or self.is_point:
            return "none" if self.lower is None else upper.replace("?", lower)
        return f"[{lower}, {upper}]"

    def __str__(self) -> str:
        if self.lower is None and self.upper is None:
            return "unknown"
        if self.is_point:
            return f"{self.lower:.6g}"
        lower = "?" if self.lower is None else rounded_down(self.lower)
        upper = "?" if self.upper is None else rounded_up(self.upper)
        return f"[{lower}, {upper}]"


def rounded_down(value: float) -> str:
    """Write a number of which "at least" holds: four significant digits, never more than it is.

    Just above 1, where ratios are best, as many digits as tell it from 1.
    """
    return _rounded(value, ROUND_FLOOR)


def rounded_up(value: float) -> str:
    """Write a number of which "at most" holds: like `rounded_down`, but never less than it is."""
    return _rounded(value, ROUND_CEILING)


def percent_rounded(share: float, rounding: str, decimals: int = 1) -> str:
    """Write a share in percent, rounded so that what is said of it still holds."""
    if not math.isfinite(share):
        return f"{share}%"
    for places in range(decimals, 5):
        step = Decimal(1).scaleb(-places)
        text = f"{(plain(share) * 100).quantize(step, rounding, LONG)}%"
        if not {float(text[:-1]), float(f"{share * 100:.{places}f}")} & {0.0, 100.0}:
            return text
    return text


def plain(value: float) -> Decimal:
    """A quotient without the last bits of its division, which would tip 10% over to 10.1%."""
    return Context(prec=12).create_decimal_from_float(value)


def _rounded(value: float, rounding: str) -> str:
    if not math.isfinite(value):
        return f"{value}"
    exact = plain(value)
    above = exact - 1
    digits = max(SIGNIFICANT, 1 - above.adjusted()) if 0 < above < 1 else SIGNIFICANT
    return f"{float(Context(prec=digits, rounding=rounding).create_decimal(exact)):.{digits}g}"


def _decimals(value: float | None, rounding: str) -> str:
    if value is None:
        return "?"
    if not math.isfinite(value):
        return f"{value}"
    return f"{plain(value).quantize(Decimal(1).scaleb(-DECIMALS), rounding, LONG):f}"
