"""The verdict in words: how far a schedule is from the best possible, as an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

from hindsched.analysis.interval import Interval, rounded_up
from hindsched.json_types import JsonObject

ROUNDING = 1e-9
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
    best : Interval
        The best possible lies there.
    weighted : bool
        Whether jobs have different weights.
    out_of : float, optional
        All deadlines.
    """

    objective: str
    value: float
    best: Interval
    weighted: bool = False
    out_of: float | None = None

    @property
    def ratio(self) -> Interval:
        """Within which factors of the best possible the value lies."""
        low, high = self.best.lower, self.best.upper
        if self.objective == "deadlines-met":
            return Interval(_quotient(low, self.value), _quotient(high, self.value))
        return Interval(_quotient(self.value, high), _quotient(self.value, low))

    @property
    def word(self) -> str:
        """What is measured."""
        return WORDS[self.objective][self.weighted]

    def sentence(self, whose: str = "Your scheduler") -> str:
        """The verdict in one sentence."""
        low, high = self.best.lower, self.best.upper
        if self.objective == "deadlines-met":
            met = f"{whose} met {self.value:g} of {self.out_of:g} deadlines"
            met += " by weight" * self.weighted
            if low == high == self.value:
                return f"{met}: nobody could have met more."
            best = f"{high:g}" if low == high else f"between {low or 0:g} and {high:g}"
            return f"{met}; the best possible meets {best}."
        assert low is not None
        text, least = f"{whose}'s {self.word} is {seconds(self.value)} s", seconds(low, -1)
        if self.value < low * (1 - ROUNDING):
            return f"{text}; no schedule can be below {least} s."
        if Interval(low, self.value).is_point:
            return f"{text}: that is optimal (no schedule can be below {least} s)."
        if self.best.is_point and high is not None:
            factor = rounded_up(self.value / low)
            return f"{text}; the best possible is {seconds(high)} s: you take {factor} times that."
        most = "it" if high is None else f"{seconds(high, 1)} s"
        between = f"the best possible lies between {least} and {most}"
        return f"{text}; {between}: you are within {self.ratio} of optimal."

    def to_dict(self) -> JsonObject:
        """JSON data."""
        return {
            "objective": self.objective,
            "value": self.value,
            "best_possible": self.best.to_dict(),
            "ratio": self.ratio.to_dict(),
            "out_of": self.out_of,
        }


def seconds(value: float, outward: int = 0) -> str:
    """Seconds for people, four digits at least; rounded down (-1), up (1) or to the nearest."""
    places = 0 if abs(value) >= 1000 else max(0, 3 - int(math.log10(max(abs(value), 1e-3))))
    modes = {-1: ROUND_FLOOR, 0: ROUND_HALF_EVEN, 1: ROUND_CEILING}
    rounded = Decimal(repr(float(value))).scaleb(places).to_integral_value(modes[outward])
    return f"{rounded.scaleb(-places):,.{places}f}"


def _quotient(above: float | None, below: float | None) -> float | None:
    if above is None or below is None:
        return None
    if below == 0:
        return 1.0 if above == 0 else None
    return above / below
