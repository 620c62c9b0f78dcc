"""The empirical competitive ratio, as an interval that follows from what is proven.

``OPT / ALG`` when maximising and ``ALG / OPT`` when minimising, so that 1 is perfect and larger is
worse in either sense. Papers that report the inverse are converted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hindsched.analysis.interval import Interval
from hindsched.errors import SolveFailed
from hindsched.json_types import JsonObject
from hindsched.solvers.door.options import DEFAULT_GAP
from hindsched.solvers.door.result import relative_gap

Sense = Literal["max", "min"]

CONTRADICTION = 1e-6
"""Relative excess of a solution over a solver's bound that is more than the solver's tolerances."""
CERTIFIED_CONTRADICTION = 1e-9
"""The same over a certificate's bound, which is rounded outward: only the objective's sum may be
off."""

INVERSE_NOTE = (
    "Ratios are OPT/ALG when maximising and ALG/OPT when minimising, so 1 is perfect and larger is "
    "worse; figures of papers that report the inverse were converted."
)

STAR_NOTE = (
    "* may do what the offline problem forbids: the plain quotient to its optimum, which may be "
    "below 1."
)


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
        How the bound is proven: ``certificate`` (the exact kernel accepts the written prices),
        ``checked fast`` (the prices, in floating point that rounds outward), ``solver`` (the
        solver's word) or ``none``.
    for_rivals : bool
        The optimum is that of the larger problem which rivals outside the feasible set solve.
    """

    sense: Sense
    interval: Interval
    status: str
    best: str = "offline"
    proof: str = "none"
    for_rivals: bool = False

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
        rounding = CONTRADICTION if self.proof == "solver" else CERTIFIED_CONTRADICTION
        if bound is not None and sign * (objective - bound) > rounding * abs(bound):
            raise SolveFailed(
                f"{algorithm} reaches {objective!r}, beyond the proven bound {bound!r} "
                f"({self.proof}): one of the two is wrong"
            )
        if known is not None and sign * (objective - known) <= 0:
            return self
        bound = None if bound is None else sign * max(sign * bound, sign * objective)
        gap = relative_gap(objective, bound)
        ends = (objective, bound) if self.sense == "max" else (bound, objective)
        status = "optimal" if gap is not None and gap <= DEFAULT_GAP else "feasible"
        return Optimum(self.sense, Interval(*ends), status, algorithm, self.proof, self.for_rivals)

    def to_dict(self) -> JsonObject:
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
        The ratio lies in it; both ends None when there is no ratio. An algorithm that earns nothing
        where something can be earned, or less than nothing, has ratio infinity.
    difference : Interval
        OPT - ALG lies in it; negative when minimising.
    reason : str, optional
        Why there is no ratio, why it is infinite or why an end is not known.
    starred : bool
        True for a plain quotient: the algorithm may do what the offline problem forbids, so that it
        may be below 1.
    """

    interval: Interval
    difference: Interval
    reason: str | None = None
    starred: bool = False

    @property
    def exists(self) -> bool:
        """Whether at least one end is known."""
        return self.interval != Interval()

    @property
    def is_infinite(self) -> bool:
        """Whether the algorithm earns nothing where something can be earned, or less."""
        return self.interval.lower == math.inf

    def to_dict(self) -> JsonObject:
        """JSON data: ``ratio`` (None if there is none), ``difference, reason, starred``."""
        return {
            "ratio": self.interval.to_dict() if self.exists else None,
            "difference": self.difference.to_dict(),
            "reason": self.reason,
            "starred": self.starred,
        }


def optimum_of(
    sense: Sense, objective: float | None, bound: float | None, status: str, *, proof: str
) -> Optimum:
    """What a solve says of the optimum: its best solution on one side, its bound on the other."""
    if sense == "max":
        interval = Interval(objective, bound)
    else:
        interval = Interval(bound, objective)
    return Optimum(sense, interval, status, proof="none" if bound is None else proof)


def competitive_ratio(
    optimum: Optimum,
    objective: float | None,
    *,
    in_feasible_set: bool = True,
    violations: int = 0,
) -> Ratio:
    """Ratio of one run, or of the expected objective of a randomised algorithm.

    Parameters
    ----------
    optimum : Optimum
        What is known of the optimum.
    objective : float or None
        What the algorithm reached; None if the run failed.
    in_feasible_set : bool
        False for a baseline that may do what the offline problem forbids: its quotient is starred,
        unless the optimum is that of the problem without these rules.
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
    if violations and in_feasible_set:
        return Ratio(Interval(), difference, f"breaks {violations} constraints")
    if optimum.sense == "max":
        interval, reason = _ratio_of_values(known, objective)
    else:
        interval, reason = _ratio_of_costs(known, objective)
    if not in_feasible_set:
        against = "against the bound of the problem without these rules"
        forbidden = "may do what the offline problem forbids"
        words = (forbidden, against if optimum.for_rivals else None, reason)
        reason = "; ".join(filter(None, words))
    return Ratio(interval, difference, reason, starred=not (in_feasible_set or optimum.for_rivals))


def _ratio_of_values(known: Interval, earned: float) -> tuple[Interval, str | None]:
    """OPT / ALG; 0 / 0 is 1, for nothing was to be earned; below 0 is no better than 0."""
    if known.upper is not None and known.upper < 0:
        return Interval(), "less than nothing can be earned"
    if earned < 0:
        return Interval(math.inf, math.inf), "earns less than nothing"
    if earned == 0:
        if known.upper == 0:
            return Interval(1.0, 1.0), None
        if known.lower is None or known.lower <= 0:
            return Interval(1.0, math.inf), "earns nothing, and perhaps nothing can be earned"
        return Interval(math.inf, math.inf), "earns nothing"
    reason = None if known.upper is not None else "the optimum has no upper bound"
    return Interval(_divide(known.lower, earned), _divide(known.upper, earned)), reason


def _ratio_of_costs(known: Interval, cost: float) -> tuple[Interval, str | None]:
    """ALG / OPT; 0 / 0 is 1."""
    if known.upper is not None and known.upper < 0:
        return Interval(), "the optimum costs less than nothing"
    if known.upper == 0:
        ratio = 1.0 if cost == 0 else math.inf
        return Interval(ratio, ratio), None if cost == 0 else "the optimum costs nothing"
    lower = None if known.upper is None else cost / known.upper
    if known.lower is None or known.lower <= 0:
        return Interval(lower, None), "the optimum has no positive lower bound"
    return Interval(lower, cost / known.lower), None


def spread(ratios: Sequence[Ratio]) -> tuple[Interval, Interval]:
    """Smallest and largest lower end, smallest and largest upper end, over seeds or instances.

    An end that one of them lacks is None.
    """
    lowers = [ratio.interval.lower for ratio in ratios]
    uppers = [ratio.interval.upper for ratio in ratios]
    return _spread(lowers), _spread(uppers)


def _spread(ends: Sequence[float | None]) -> Interval:
    known = [end for end in ends if end is not None]
    if not known or len(known) < len(ends):
        return Interval()
    return Interval(min(known), max(known))


def _divide(value: float | None, by: float) -> float | None:
    return None if value is None else value / by
