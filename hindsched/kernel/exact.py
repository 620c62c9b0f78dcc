"""Numbers of a proof: rationals, and outward enclosures of exp, log, sigmoid and power.

Everything is a `Fraction` or an integer; nothing here or elsewhere in the kernel is a float, and
a `Decimal` only where a number is read or written. An `Interval` holds the true number between its
ends. The enclosures are fixed-point integers, units of 2^-192, every operation on a lower end
rounded down and on an upper end up, so their truth needs no error analysis; their width, below
2^-100 max(1, value), follows from the counts beside them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import ceil, floor, gcd, lcm
from typing import Any

BITS = 192
ONE = 1 << BITS
TERMS = 64
Data = Mapping[str, Any]  # what an object in a file holds
WIDEST = 1 << 14  # exponents beyond this in size: e^-x is 0 to 2^-192, e^x is refused


@dataclass(frozen=True)
class Interval:
    """A number between two rationals, both inclusive."""

    low: Fraction
    high: Fraction

    def __add__(self, other: "Interval") -> "Interval":
        return Interval(self.low + other.low, self.high + other.high)

    def __neg__(self) -> "Interval":
        return Interval(-self.high, -self.low)

    def times(self, factor: Fraction | int) -> "Interval":
        """Multiply by an exact number of either sign."""
        ends = self.low * factor, self.high * factor
        return Interval(Fraction(min(ends)), Fraction(max(ends)))


def point(number: Fraction | int) -> Interval:
    """Return the interval of one number."""
    return Interval(Fraction(number), Fraction(number))


def total(parts: Iterable[Interval]) -> Interval:
    """Sum of intervals, exact."""
    return sum(parts, point(0))


def ceiling(number: Fraction | int) -> int:
    """Least integer that is not below a number."""
    return -(-number.numerator // number.denominator)


def common_step(amounts: Iterable[Fraction | int]) -> Fraction:
    """Return the largest number that all amounts are whole multiples of; 0 of none."""
    listed = [Fraction(amount) for amount in amounts]
    below = lcm(*(amount.denominator for amount in listed))
    return Fraction(gcd(*(int(amount * below) for amount in listed)), below)


def outward(low: Fraction | int, high: Fraction | int) -> Interval:
    """Round an enclosure to multiples of 2^-192, away from what it holds."""
    return Interval(Fraction(low * ONE // 1, ONE), Fraction(-(-high * ONE // 1), ONE))


def exp(x: Fraction) -> Interval:
    """Enclose e^x.

    For x >= 0 take y = x / 2^k <= 1/8: e^y is its Taylor sum up to y^64/64! plus a rest below
    that last term (the terms fall eightfold), then k squarings. 2^k < 16 x, so the relative error
    is below 16 x (64 + 2) 2^-192. For x < 0 the reciprocal.
    """
    if x < 0:
        if x < -WIDEST:
            return Interval(Fraction(), Fraction(1, ONE))
        positive = exp(-x)
        return outward(1 / positive.high, 1 / positive.low)
    if x > WIDEST:
        raise ValueError(f"e^{float(x):.6g} is beyond what the kernel encloses")
    squarings = ceiling(x).bit_length() + 3
    y = x / 2**squarings
    low = high = low_term = high_term = ONE
    for i in range(1, TERMS + 1):
        low_term = low_term * y.numerator // (i * y.denominator)
        high_term = -(-high_term * y.numerator // (i * y.denominator))
        low, high = low + low_term, high + high_term
    high += high_term
    for _ in range(squarings):
        low, high = low * low >> BITS, -(-high * high >> BITS)
    return Interval(Fraction(low, ONE), Fraction(high, ONE))


def log(y: Fraction) -> Interval:
    """Enclose the natural logarithm of y > 0.

    y = 2^e m with 1 <= m < 2; log m = 2 atanh(u), u = (m - 1) / (m + 1) < 1/3, and
    log 2 = 2 atanh(1/3); atanh u = sum of u^(2i+1) / (2i+1), whose rest
    after i = 64 is below the last power of u.
    """
    shift = y.numerator.bit_length() - y.denominator.bit_length()
    shift -= y < Fraction(2) ** shift
    mantissa = y / Fraction(2) ** shift
    parts = []
    for u in ((mantissa - 1) / (mantissa + 1), Fraction(1, 3)):
        square = u * u
        low_power, high_power = floor(u * ONE), ceil(u * ONE)
        low = high = 0
        for i in range(TERMS + 1):
            low, high = low + low_power // (2 * i + 1), high - (-high_power // (2 * i + 1))
            low_power = low_power * square.numerator // square.denominator
            high_power = -(-high_power * square.numerator // square.denominator)
        parts.append(Interval(Fraction(2 * low, ONE), Fraction(2 * (high + high_power), ONE)))
    return parts[0] + parts[1].times(shift)


def sigmoid(z: Fraction) -> Interval:
    """Enclose 1 / (1 + e^z)."""
    if z > WIDEST:
        return Interval(Fraction(), Fraction(1, ONE))
    grown = exp(z)
    return outward(1 / (1 + grown.high), 1 / (1 + grown.low))


def power(base: Fraction, exponent: Fraction) -> Interval:
    """Enclose base^exponent for base > 0; exact for small whole exponents."""
    if exponent.denominator == 1 and abs(exponent) <= TERMS:
        return point(Fraction(base) ** exponent.numerator)
    inner = log(Fraction(base)).times(exponent)
    return Interval(exp(inner.low).low, exp(inner.high).high)


def utility(record: Data, x: Fraction | int) -> Interval:
    """f(x) of an instance's utility record, which never rises with x."""
    kind = record["kind"]
    if kind == "sigmoid" and record["priority"] >= 0 and record["decay"] >= 0:
        return sigmoid(Fraction(record["decay"] * (x - record["target"]))).times(record["priority"])
    if kind == "linear" and record["slope"] <= 0:
        return point(record["slope"] * x + record["intercept"])
    if kind == "power" and record["scale"] > 0 and record["exponent"] >= 0 and x > 0:
        return power(Fraction(record["scale"]) / x, Fraction(record["exponent"]))
    raise ValueError(f"utility {kind} must be known and must not rise")


def decimal(number: Fraction, up: bool, digits: int = 30) -> str:
    """Write a number with so many significant digits, rounded up or down, or exactly if they do."""
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    rounded = Context(digits, rounding, MIN_EMIN, MAX_EMAX).divide
    text = f"{rounded(Decimal(number.numerator), Decimal(number.denominator)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
