"""The verdict in words: how far a schedule is from the best possible, as an interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
        between = f"the best possible lies between {seconds(self.lower)}"
        if self.upper is None or low is None:
            return f"{text}; {between} s and it: you are within {factor(high)} of optimal."
        if high is not None and factor(high) == "1":
            return f"{text}: that is optimal (the bound is {seconds(self.lower)} s)."
        return (
            f"{text}; {between} and {seconds(self.upper)} s: "
            f"you are within [{factor(low)}, {factor(high)}] of optimal."
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON data."""
        low, high = self.ratio
        return {
            "objective": self.objective,
            "value": self.value,
            "best_possible": {"lower": self.lower, "upper": self.upper},
            "ratio": {"lower": low, "upper": high},
            "out_of": self.out_of,
        }


def seconds(value: float) -> str:
    """Seconds for people: whole from a thousand on, else four digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def factor(value: float | None) -> str:
    """A ratio for people: three decimals."""
    if value is None:
        return "an unknown factor"
    text = f"{value:.3f}" if value < 100 else f"{value:.4g}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _count(value: float | None) -> str:
    return "an unknown number" if value is None else f"{value:g}"


def _quotient(above: float | None, below: float | None) -> float | None:
    if above is None or below is None:
        return None
    if below == 0:
        return 1.0 if above == 0 else None
    return above / below
