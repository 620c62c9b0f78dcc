"""Ends of intervals for people, rounded outward: what is said of a proven end stays true."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

SIGNIFICANT = 4
LONG = Context(prec=400)
"""More digits than a double has before its point."""


def rounded_down(value: float) -> str:
    """Write a number of which "at least" holds: four significant digits, never more than it is.

    Just above 1, where ratios are best, as many digits as tell it from 1.

    Parameters
    ----------
    value : float
        A lower end; infinite ones are a word.

    Examples
    --------
    >>> rounded_down(1.19996), rounded_up(1.19996), rounded_up(1.00004)
    ('1.199', '1.2', '1.00004')
    """
    return _rounded(value, ROUND_FLOOR)


def rounded_up(value: float) -> str:
    """Write a number of which "at most" holds: like `rounded_down`, but never less than it is.

    Parameters
    ----------
    value : float
        An upper end; infinite ones are a word.
    """
    return _rounded(value, ROUND_CEILING)


def percent_rounded(share: float, rounding: str, decimals: int = 1) -> str:
    """Write a share in percent, rounded so that what is said of it still holds.

    Parameters
    ----------
    share : float
        1 is 100 %.
    rounding : str
        A way of `decimal`: ``ROUND_FLOOR`` or ``ROUND_CEILING``.
    decimals : int
        How many at least: as many more, up to four, as tell it from none and from all.
    """
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
