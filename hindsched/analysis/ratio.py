"""The empirical competitive ratio, as an interval that follows from what is proven.

``OPT / ALG`` when maximising and ``ALG / OPT`` when minimising, so that 1 is perfect and larger is
worse in either sense. Papers that report the inverse are converted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from hindsched.errors import SolveFailed
from hindsched.solvers.options import DEFAULT_GAP
from hindsched.solvers.result import relative_gap

Sense = Literal["max", "min"]

CONTRADICTION = 1e-6
"""Relative excess of a solution over a proven bound that is more than rounding."""

INVERSE_NOTE = (
    "Ratios are OPT/ALG when maximising and ALG/OPT when minimising, so 1 is perfect and larger is "
    "worse; figures of papers that report the inverse were converted."
)


@dataclass(frozen=True)
class Interval:
    """A closed interval; an end that is not known is None."""

    lower: float | None = None
    upper: float | None = None

    def to_dict(self) -> dict[str, float | None]:
        """JSON data."""
        return {"lower": self.lower, "upper": self.upper}

    def __str__(self) -> str:
        if self.lower is None and self.upper is None:
            return "unknown"
        return f"[{_show(self.lower)}, {_show(self.upper)}]"


@dataclass(frozen=True)
class Optimum:
    """What is known of an offline optimum.

    Parameters
    ----------
    sense : {"max", "min"}
        Of the objective.
    interval : Interval
        The optimum lies in it.
    status : str
        Status of the offline solve: ``optimal``, ``feasible``, ...
    best : str
        Who found the best solution: ``offline`` or an online algorithm's name.
    proof : str
        How the bound is proven: ``certificate`` (anyone can recompute it from prices),
        ``solver`` (the solver's word) or ``none``.
    """

    sense: Sense
    interval: Interval
    status: str
    best: str = "offline"
    proof: str = "none"

    @property
    def gap(self) -> float | None:
        """Relative gap between the best solution and the bound; None if one is absent."""
        known, bound = self.interval.lower, self.interval.upper
        if self.sense == "min":
            known, bound = bound, known
        return relative_gap(known, bound)

    @property
    def is_proven(self) -> bool:
        """Whether a solution was proven optimal."""
        return self.status == "optimal"

    def improved(self, objective: float, algorithm: str) -> Optimum:
        """Return the optimum known once a feasible online solution of this objective is known.

        An online schedule inside the feasible set is an offline solution, so the optimum is at
        least as good.
        """
        known, bound = self.interval.lower, self.interval.upper
        if self.sense == "min":
            known, bound = bound, known
        sign = 1.0 if self.sense == "max" else -1.0
        if bound is not None and sign * (objective - bound) > CONTRADICTION * max(1.0, abs(bound)):
            raise SolveFailed(
                f"{algorithm} reaches {objective!r}, beyond the proven bound {bound!r}: "
                "one of the two is wrong"
            )
        if known is not None and sign * (objective - known) <= 0:
            return self
        bound = None if bound is None else sign * max(sign * bound, sign * objective)
        gap = relative_gap(objective, bound)
        ends = (objective, bound) if self.sense == "max" else (bound, objective)
        status = "optimal" if gap is not None and gap <= DEFAULT_GAP else "feasible"
        return Optimum(self.sense, Interval(*ends), status, algorithm, self.proof)

    def to_dict(self) -> dict[str, Any]:
        """JSON data: ``lower, upper, status, best, proof``."""
        return {
            **self.interval.to_dict(),
            "status": self.status,
            "best": self.best,
            "proof": self.proof,
        }


@dataclass(frozen=True)
class Ratio:
    """An algorithm's competitive ratio on one instance.

    Parameters
    ----------
    interval : Interval
        The ratio lies in it; both ends None when there is no ratio.
    difference : Interval
        OPT - ALG lies in it; negative when minimising.
    reason : str, optional
        Why there is no ratio, or why an end is not known.
    """

    interval: Interval
    difference: Interval
    reason: str | None = None

    @property
    def exists(self) -> bool:
        """Whether at least one end is known."""
        return self.interval != Interval()

    def to_dict(self) -> dict[str, Any]:
        """JSON data: ``ratio`` (None when there is none), ``difference``, ``reason``."""
        return {
            "ratio": self.interval.to_dict() if self.exists else None,
            "difference": self.difference.to_dict(),
            "reason": self.reason,
        }


def optimum_of(
    sense: Sense, objective: float | None, bound: float | None, status: str, *, certified: bool
) -> Optimum:
    """What a solve says of the optimum: its best solution on one side, its bound on the other."""
    if sense == "max":
        interval = Interval(objective, bound)
    else:
        interval = Interval(bound, objective)
    proof = "none" if bound is None else ("certificate" if certified else "solver")
    return Optimum(sense, interval, status, proof=proof)


def competitive_ratio(
    optimum: Optimum,
    objective: float | None,
    *,
    in_feasible_set: bool = True,
    violations: int = 0,
) -> Ratio:
    """Ratio of one run.

    Parameters
    ----------
    optimum : Optimum
        What is known of the optimum.
    objective : float or None
        What the algorithm reached; None if the run failed.
    in_feasible_set : bool
        False for a baseline that may do what the offline problem forbids: it has no ratio.
    violations : int
        Number of broken constraints of the run; with any there is no ratio.
    """
    if objective is None:
        return Ratio(Interval(), Interval(), "the run failed")
    known = optimum.interval
    difference = Interval(
        None if known.lower is None else known.lower - objective,
        None if known.upper is None else known.upper - objective,
    )
    if not in_feasible_set:
        return Ratio(Interval(), difference, "may do what the offline problem forbids")
    if violations:
        return Ratio(Interval(), difference, f"breaks {violations} constraints")
    if optimum.sense == "max":
        return _ratio_of_values(known, objective, difference)
    return _ratio_of_costs(known, objective, difference)


def _ratio_of_values(known: Interval, objective: float, difference: Interval) -> Ratio:
    if objective <= 0:
        return Ratio(Interval(), difference, "earns nothing or less")
    interval = Interval(_divide(known.lower, objective), _divide(known.upper, objective))
    reason = None if known.upper is not None else "the optimum has no upper bound"
    return Ratio(interval, difference, reason)


def _ratio_of_costs(known: Interval, objective: float, difference: Interval) -> Ratio:
    if known.upper is not None and known.upper <= 0:
        return Ratio(Interval(), difference, "the optimum costs nothing or less")
    lower = None if known.upper is None else objective / known.upper
    if known.lower is None or known.lower <= 0:
        return Ratio(Interval(lower, None), difference, "the optimum has no positive lower bound")
    return Ratio(Interval(lower, objective / known.lower), difference)


def mean_ratio(ratios: Sequence[Ratio]) -> tuple[Interval, Interval, Interval]:
    """Mean over seeds and the spread of both ends.

    Returns
    -------
    mean, lower_spread, upper_spread : Interval
        Mean of the lower and of the upper ends over the seeds that have them all; smallest and
        largest lower end; smallest and largest upper end. An end that a seed lacks is None.
    """
    lowers = [ratio.interval.lower for ratio in ratios]
    uppers = [ratio.interval.upper for ratio in ratios]
    mean = Interval(_mean(lowers), _mean(uppers))
    return mean, _spread(lowers), _spread(uppers)


def _mean(ends: Sequence[float | None]) -> float | None:
    known = [end for end in ends if end is not None]
    return fmean(known) if known and len(known) == len(ends) else None


def _spread(ends: Sequence[float | None]) -> Interval:
    known = [end for end in ends if end is not None]
    if not known or len(known) < len(ends):
        return Interval()
    return Interval(min(known), max(known))


def _divide(value: float | None, by: float) -> float | None:
    return None if value is None else value / by


def _show(end: float | None) -> str:
    return "?" if end is None else f"{end:.4g}"
