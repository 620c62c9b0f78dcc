"""The empirical competitive ratio, as an interval that follows from what is proven.

``OPT / ALG`` when maximising and ``ALG / OPT`` when minimising, so that 1 is perfect and larger is
worse in either sense. Papers that report the inverse are converted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any, Literal

from hindsched.analysis.bounds import Bounds
from hindsched.analysis.tasks import Record
from hindsched.errors import SolveFailed
from hindsched.json_types import JsonObject, Keywords
from hindsched.online.protocol import Theorem
from hindsched.solvers.door.options import DEFAULT_GAP
from hindsched.solvers.door.result import relative_gap

Sense = Literal["max", "min"]

CONTRADICTION = 1e-6  # relative excess over a solver's bound, beyond the solver's tolerances
CERTIFIED_CONTRADICTION = 1e-9  # over a certificate's, rounded outward: only sums may be off
INVERSE_NOTE = (
    "Ratios are OPT/ALG when maximising and ALG/OPT when minimising, so 1 is perfect and larger is "
    "worse; figures of papers that report the inverse were converted."
)
FORBIDDEN = "may do what the offline problem forbids"
STAR_NOTE = f"* {FORBIDDEN}: the plain quotient to its optimum, which may be below 1."
FASTER = "on faster machines than the optimum's:"
SPEED_NOTE = (
    "A run on faster machines is no schedule of the instance, and no kernel judges it: checked, in "
    "floating point, is that machines of this speed can end each chunk when it ends."
)
RUN_FACTS = (
    "jobs_completed", "jobs_rejected", "decision_ms_median", "decision_ms_max", "seconds",
)  # fmt: skip


@dataclass(frozen=True)
class Optimum:
    """What is known of an offline optimum."""

    sense: Sense
    interval: Bounds  # the optimum lies in it
    status: str  # of the offline solve: optimal, feasible, ...
    best: str = "offline"  # who found the best solution: offline or an online algorithm
    # Who vouches for the bound: certificate (the exact kernel), checked fast (prices in floating
    # point that rounds outward), solver or none.
    proof: str = "none"

    @property
    def known_and_bound(self) -> tuple[float | None, float | None]:
        """Objective of the best solution known, and the bound."""
        ends = self.interval.lower, self.interval.upper
        return ends if self.sense == "max" else ends[::-1]

    @property
    def gap(self) -> float | None:
        """Relative gap between the best solution and the bound; None if one is absent."""
        return relative_gap(*self.known_and_bound)

    @property
    def is_proven(self) -> bool:
        """Whether a solution was proven optimal."""
        return self.status == "optimal"

    def improved(self, objective: float, algorithm: str) -> Optimum:
        """What is known once an online schedule, which is an offline solution too, is known.

        `SolveFailed` if it is better than the bound.
        """
        known, bound = self.known_and_bound
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
        status = "optimal" if gap is not None and gap <= DEFAULT_GAP else "feasible"
        optimum = optimum_of(self.sense, objective, bound, status, proof=self.proof)
        return replace(optimum, best=algorithm)

    def to_dict(self) -> JsonObject:
        """JSON data: ``lower, upper, status, best, proof``."""
        facts = {"status": self.status, "best": self.best, "proof": self.proof}
        return {**self.interval.to_dict(), **facts}


def optimum_of(
    sense: Sense, objective: float | None, bound: float | None, status: str, *, proof: str
) -> Optimum:
    """What a solve says of the optimum: its best solution on one side, its bound on the other."""
    ends = (objective, bound) if sense == "max" else (bound, objective)
    return Optimum(sense, Bounds(*ends), status, proof="none" if bound is None else proof)


@dataclass(frozen=True)
class Ratio:
    """An algorithm's competitive ratio on one instance.

    An algorithm that earns nothing where something can be earned, or less than nothing, has ratio
    infinity.
    """

    interval: Bounds  # the ratio lies in it; both ends None where there is none
    difference: Bounds  # OPT - ALG lies in it; negative when minimising
    reason: str | None = None  # why there is no ratio, why it is infinite or an end is not known
    starred: bool = False  # a plain quotient, which may be below 1: the algorithm may break rules

    @property
    def exists(self) -> bool:
        """Whether at least one end is known."""
        return self.interval != Bounds()

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


def competitive_ratio(
    optimum: Optimum, objective: float | None, *, in_feasible_set: bool = True, violations: int = 0
) -> Ratio:
    """Ratio of one run, or of the expected objective of a randomised algorithm.

    The objective is None if the run failed. The quotient of a baseline outside the feasible set is
    starred.
    """
    if objective is None:
        return Ratio(Bounds(), Bounds(), "the run failed")
    known = optimum.interval
    ends = (None if end is None else end - objective for end in (known.lower, known.upper))
    difference = Bounds(*ends)
    if violations and in_feasible_set:
        return Ratio(Bounds(), difference, f"breaks {violations} constraints")
    quotient = _ratio_of_values if optimum.sense == "max" else _ratio_of_costs
    interval, reason = quotient(known, objective)
    if in_feasible_set:
        return Ratio(interval, difference, reason)
    reason = "; ".join(filter(None, (FORBIDDEN, reason)))
    return Ratio(interval, difference, reason, starred=True)


def _ratio_of_values(known: Bounds, earned: float) -> tuple[Bounds, str | None]:
    """OPT / ALG; 0 / 0 is 1, for nothing was to be earned; below 0 is no better than 0."""
    if known.upper is not None and known.upper < 0:
        return Bounds(), "less than nothing can be earned"
    if earned < 0:
        return Bounds(math.inf, math.inf), "earns less than nothing"
    if earned == 0:
        if known.upper == 0:
            return Bounds(1.0, 1.0), None
        if known.lower is None or known.lower <= 0:
            return Bounds(1.0, math.inf), "earns nothing, and perhaps nothing can be earned"
        return Bounds(math.inf, math.inf), "earns nothing"
    lower, upper = (None if end is None else end / earned for end in (known.lower, known.upper))
    return Bounds(lower, upper), None if upper is not None else "the optimum has no upper bound"


def _ratio_of_costs(known: Bounds, cost: float) -> tuple[Bounds, str | None]:
    """ALG / OPT; 0 / 0 is 1."""
    if known.upper is not None and known.upper < 0:
        return Bounds(), "the optimum costs less than nothing"
    if known.upper == 0:
        ratio = 1.0 if cost == 0 else math.inf
        return Bounds(ratio, ratio), None if cost == 0 else "the optimum costs nothing"
    lower = None if known.upper is None else cost / known.upper
    if known.lower is None or known.lower <= 0:
        return Bounds(lower, None), "the optimum has no positive lower bound"
    return Bounds(lower, cost / known.lower), None


def ratio_spread(ratios: Sequence[Ratio]) -> tuple[Bounds, Bounds]:
    """Smallest and largest lower end, smallest and largest upper end, over seeds or instances.

    An end that one of them lacks is None.
    """

    def of(ends: Sequence[float | None]) -> Bounds:
        known = [end for end in ends if end is not None]
        complete = known and len(known) == len(ends)
        return Bounds(min(known), max(known)) if complete else Bounds()

    lowers, uppers = ([getattr(r.interval, end) for r in ratios] for end in ("lower", "upper"))
    return of(lowers), of(uppers)


@dataclass(frozen=True)
class AlgorithmRatio:
    """An algorithm on one instance, over its seeds."""

    instance: str
    family: str
    algorithm: str
    settings: Keywords
    runs: Sequence[tuple[Record, Ratio]]  # a seed each; one for a deterministic algorithm
    optimum: Optimum  # what is known of the instance's
    objective: float | None  # mean over the seeds; None if a run failed
    # OPT / E[ALG] (E[ALG] / OPT minimising), E being the mean over the seeds. Their own ratios are
    # not averaged: where an algorithm is near nothing on one seed, that mean says nothing.
    ratio: Ratio
    theorem: Theorem | None  # of the paper's own algorithm
    mark: str  # stands behind its name where it knows more than an online algorithm does
    commitment: str  # when it is bound by what it decides; empty where no run says it
    in_feasible_set: bool  # False for a baseline that may do what the offline problem forbids

    @classmethod
    def of(
        cls, instance: str, family: str, records: Sequence[Record], optimum: Optimum
    ) -> AlgorithmRatio:
        """An algorithm's ratio from the records of its runs on an instance."""

        def first(name: str, default: Any) -> Any:
            return next((record[name] for record in records if record.get(name)), default)

        objectives = [record.get("objective") for record in records]
        known = [value for value in objectives if value is not None]
        mean = fmean(known) if known and len(known) == len(objectives) else None
        keeps_rules = [record.get("in_feasible_set", True) for record in records]
        ratios = [
            competitive_ratio(optimum, record.get("objective"), in_feasible_set=inside,
                              violations=len(record.get("violations", ())))
            for record, inside in zip(records, keeps_rules, strict=True)
        ]  # fmt: skip
        if len(ratios) == 1:
            ratio = ratios[0]
        elif mean is None:
            failed = len(objectives) - len(known)
            ratio = Ratio(Bounds(), Bounds(), f"{failed} of {len(ratios)} runs failed")
        else:
            ratio = competitive_ratio(optimum, mean, in_feasible_set=all(keeps_rules))
            reasons = dict.fromkeys(str(each.reason) for each in ratios if not each.exists)
            if reasons:
                ratio = Ratio(Bounds(), ratio.difference, "; ".join(reasons))
        return cls(
            instance, family, str(records[0]["algorithm"]), records[0]["settings"],
            list(zip(records, ratios, strict=True)), optimum, mean, ratio, first("theorem", None),
            str(first("mark", "")), str(first("commitment", "")), all(keeps_rules),
        )  # fmt: skip

    @property
    def label(self) -> str:
        """Its name and mark."""
        return self.algorithm + self.mark

    @property
    def errors(self) -> list[str]:
        """Why runs failed."""
        return [str(record["error"]) for record, _ in self.runs if record["status"] != "ok"]

    def to_dict(self) -> JsonObject:
        """One entry of ``algorithms`` that ``ratio --json`` prints."""
        lower_spread, upper_spread = ratio_spread([ratio for _, ratio in self.runs])
        facts: JsonObject = {}
        for name in RUN_FACTS:
            known = [record[name] for record, _ in self.runs if record.get(name) is not None]
            facts[name] = median(known) if known else None
        return {
            "algorithm": self.algorithm,
            "settings": dict(self.settings),
            "objective": self.objective,
            **self.ratio.to_dict(),
            "in_feasible_set": self.in_feasible_set,
            "spread": {"lower": lower_spread.to_dict(), "upper": upper_spread.to_dict()},
            "seeds": [
                {"seed": record["seed"], "objective": record.get("objective"), **ratio.to_dict(),
                 "error": record["error"]}
                for record, ratio in self.runs
            ],
            "theorem": self.theorem,
            "optimum": self.optimum.to_dict(),
            **facts,
        }  # fmt: skip

    def rows(self) -> list[JsonObject]:
        """Rows of `Comparison.to_frame`: a run and its ratio each."""
        return [
            {
                "family": self.family, "instance": self.instance, "algorithm": self.algorithm,
                "seed": record["seed"],
                "settings": ", ".join(f"{key}={v}" for key, v in record["settings"].items()),
                "objective": record.get("objective"),
                "ratio_lower": ratio.interval.lower, "ratio_upper": ratio.interval.upper,
                "difference_lower": ratio.difference.lower,
                "difference_upper": ratio.difference.upper,
                "starred": ratio.starred, "reason": ratio.reason,
                "commitment": record.get("commitment"), "mark": self.mark.strip(),
                "optimum_lower": self.optimum.interval.lower,
                "optimum_upper": self.optimum.interval.upper,
                "optimum_status": self.optimum.status,
                "theorem": theorem["value"] if (theorem := record.get("theorem")) else None,
                "in_feasible_set": record.get("in_feasible_set"),
                "violations": len(record.get("violations", ())),
                **{name: record.get(name) for name in RUN_FACTS}, "error": record["error"],
            }
            for record, ratio in self.runs
        ]  # fmt: skip
