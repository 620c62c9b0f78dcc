"""The verdict in words: how far a schedule is from the best possible, as an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

from hindsched.json_types import JsonObject

SAME = 1e-9
"""Relative difference below which a value that meets its bound is called optimal."""
WORDS = {
    "mean-jct": ("mean JCT", "weighted mean JCT"),
    "makespan": ("makespan", "makespan"),
    "deadlines-met": ("deadlines met", "weight of deadlines met"),
}


@dataclass(frozen=True)
class Verdict:
    """A schedule's value and the interval of the best possible, in the units people use.

    Parameters
    ----------
    objective : str
        ``mean-jct``, ``makespan`` or ``deadlines-met``.
    value : float
        Of the schedule judged: seconds, or deadlines (their weight, if weights differ).
    lower, upper : float, optional
        The best possible lies between them; None where nothing is known.
    weighted : bool
        Whether jobs have different weights.
    out_of : float, optional
        All deadlines.
    """

    objective: str
    value: float
    lower: float | None
    upper: float | None
    weighted: bool = False
    out_of: float | None = None

    @property
    def ratio(self) -> tuple[float | None, float | None]:
        """Within which factors of the best possible the value lies; None where not known."""
        if self.objective == "deadlines-met":
            return _quotient(self.lower, self.value), _quotient(self.upper, self.value)
        return _quotient(self.value, self.upper), _quotient(self.value, self.lower)

    @property
    def word(self) -> str:
        """What is measured."""
        return WORDS[self.objective][self.weighted]

    def sentence(self, whose: str = "Your scheduler") -> str:
        """The verdict in one sentence."""
        low, high = self.ratio
        if self.objective == "deadlines-met":
            met = f"{whose} met {_count(self.value)} of {_count(self.out_of)} deadlines"
            if self.weighted:
                met += " by weight"
            if self.lower is None or self.upper is None:
                return f"{met}; how many the best possible meets is not known."
            if self.lower == self.upper == self.value:
                return f"{met}: nobody could have met more."
            if self.lower == self.upper:
                return f"{met}; the best possible meets {_count(self.upper)}."
            most = f"between {_count(self.lower)} and {_count(self.upper)}"
            return f"{met}; the best possible meets {most}."
        text = f"{whose}'s {self.word} is {seconds(self.value)} s"
        if self.lower is None:
            return f"{text}; no bound on the best possible is known."
        least = seconds(self.lower, -1)
        if self.value < self.lower * (1 - SAME):
            return f"{text}; no schedule can be below {least} s."
        if self.upper is None or low is None:
            between = f"the best possible lies between {least} s and it"
            return f"{text}; {between}: you are within {factor(high, 1)} of optimal."
        if self.lower >= self.value * (1 - SAME):
            return f"{text}: that is optimal (no schedule can be below {least} s)."
        if self.upper - self.lower <= SAME * self.upper:
            return f"{text}; the best possible is {least} s: you take {factor(high, 1)} times that."
        return (
            f"{text}; the best possible lies between {least} and {seconds(self.upper, 1)} s: "
            f"you are within [{factor(low, -1)}, {factor(high, 1)}] of optimal."
        )

    def to_dict(self) -> JsonObject:
        """JSON data."""
        low, high = self.ratio
        return {
            "objective": self.objective,
            "value": self.value,
            "best_possible": {"lower": self.lower, "upper": self.upper},
            "ratio": {"lower": low, "upper": high},
            "out_of": self.out_of,
        }


def seconds(value: float, outward: int = 0) -> str:
    """Seconds for people, four digits at least; rounded down (-1), up (1) or to the nearest."""
    places = 0 if abs(value) >= 1000 else max(0, 3 - int(math.log10(max(abs(value), 1e-3))))
    return f"{_rounded(value, places, outward):,.{places}f}"


def factor(value: float | None, outward: int = 0) -> str:
    """A ratio for people: three decimals, rounded down (-1), up (1) or to the nearest."""
    if value is None:
        return "an unknown factor"
    return f"{_rounded(value, 3, outward):,.3f}"


def _rounded(value: float, places: int, outward: int) -> float:
    """Rounded to so many places; outward, so that what is said of a proven end stays true."""
    scaled = Decimal(repr(float(value))).scaleb(places)
    modes = {-1: ROUND_FLOOR, 0: ROUND_HALF_EVEN, 1: ROUND_CEILING}
    return float(scaled.to_integral_value(modes[outward]).scaleb(-places))


def _count(value: float | None) -> str:
    return "an unknown number" if value is None else f"{value:g}"


def _quotient(above: float | None, below: float | None) -> float | None:
    if above is None or below is None:
        return None
    if below == 0:
        return 1.0 if above == 0 else None
    return above / below
