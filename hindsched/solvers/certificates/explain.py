"""The gap between a solution and a certified bound, split into terms that are never negative.

For a feasible x and prices p (maximising)

    bound - objective = sum over jobs of [best response - value of x's schedule at the prices]
                      + sum over linking rows of p x idle capacity,

where a best response is at least that of staying out for an optional job. Minimising, the job's
term is the cost of x's schedule at the prices minus that of the best response. The terms say which
jobs and which (server, slot) hold the gap: a large job term is a job served too late or wrongly
left out (or in), a large row term is capacity worth money that stands idle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import InputError, check_type
from hindsched.json_types import JsonObject
from hindsched.solutions.base import FEASIBILITY_TOLERANCE, Solution
from hindsched.solvers.certificates.certificate import Certificate, check_same_problem
from hindsched.solvers.certificates.file import oracle_of
from hindsched.solvers.oracles.base import PricingOracle

if TYPE_CHECKING:
    import pandas as pd

TOLERANCE = 1e-9
"""Relative to the bound: how far below 0 a term may be computed before it is refused."""


class GapTerm(TypedDict):
    """A part of the gap: whose it is, where and how large."""

    kind: str
    name: str
    slot: int | None
    term: float
    share: float


@dataclass(frozen=True)
class Explanation:
    """A gap, term by term."""

    instance: str
    formulation: str
    objective: float  # of the solution
    bound: float  # of the certificate
    gap: float  # their distance, in units of the objective
    # terms above 0, largest first: what a job's schedule loses against its best response at the
    # prices, the same of parts of the program that are no job's (a server's whole number of
    # workers in a slot), price x idle capacity of a linking row, and the outward rounding
    parts: list[GapTerm] = field(repr=False)
    note: str | None = None  # what of the certificate is not explained: the branching of a tree
    proven: float = math.nan  # the bound of the whole certificate, which that makes tighter

    def terms(self, *kinds: str) -> list[GapTerm]:
        """Terms above 0 of some kinds (``job``, ``part``, ``row``, ``rounding``), largest first."""
        return [term for term in self.parts if not kinds or term["kind"] in kinds]

    def total(self, *kinds: str) -> float:
        """Sum of their terms."""
        return math.fsum(term["term"] for term in self.terms(*kinds))

    def to_frame(self) -> pd.DataFrame:
        """`terms` as a pandas frame."""
        import pandas as pd

        return pd.DataFrame(self.parts, columns=["kind", "name", "slot", "term", "share"])

    def to_dict(self) -> JsonObject:
        """The object that ``explain --json`` prints: totals, then terms by kind, largest first."""
        jobs, parts, rows = (
            [{key: value for key, value in term.items() if key != "kind" and value is not None}
             for term in self.terms(kind)]
            for kind in ("job", "part", "row")
        )  # fmt: skip
        return {
            "instance": self.instance,
            "formulation": self.formulation,
            "objective": self.objective,
            "bound": self.bound,
            "gap": self.gap,
            "proven": self.proven,
            "from_jobs": self.total("job"),
            "from_parts": self.total("part"),
            "from_idle_capacity": self.total("row"),
            "from_rounding": self.total("rounding"),
            "note": self.note,
            "jobs": jobs,
            "parts": parts,
            "rows": rows,
        }


def explain(solution: Solution, certificate: Certificate) -> Explanation:
    """Split the gap between a solution's objective and a certificate's bound.

    Parameters
    ----------
    solution : Solution
        A feasible solution.
    certificate : Certificate
        A bound on the same instance and formulation, in any row layout of the family. Of a tree
        the prices that prove the best bound without branching are explained, as ``note`` says.

    Returns
    -------
    Explanation
        Terms that are not negative and add up to the gap.

    Raises
    ------
    InputError
        If the two do not belong together, the solution is infeasible, or a term is negative
        beyond rounding (then the bound is not valid or the solution not feasible).

    Examples
    --------
    >>> import hindsched as hs
    >>> instance = hs.generate("oasis", seed=2)
    >>> proof = hs.solve(instance, "bound", time_limit=1).certificate
    >>> found = hs.explain(hs.simulate(instance, "oasis").solution, proof)
    >>> abs(sum(row["term"] for row in found.terms()) - found.gap) < 1e-6
    True
    """
    check_type("solution", solution, Solution, "a Solution, as of hs.solve")
    check_type("certificate", certificate, Certificate, "a Certificate, as of hs.solve")
    instance = solution.instance
    check_same_problem(solution, certificate)
    broken = solution.violations()
    if broken:
        raise InputError("solution", str(broken[0]), "must be feasible")
    proven = certificate.bound
    certificate, note = certificate.as_prices(instance)
    oracle = oracle_of(certificate, instance)
    prices = certificate.prices.copy()  # kernels are compiled for arrays that can be written
    values = oracle.values(prices)
    sign = 1.0 if oracle.sense == "max" else -1.0
    use, chosen = np.zeros(oracle.rows.size), np.zeros(oracle.num_blocks)
    schedules, objectives = oracle.use_of(solution), []
    for block, schedule in enumerate(schedules):
        if schedule is not None:
            np.add.at(use, schedule.rows, schedule.amounts)
            paid = float(prices[schedule.rows] @ schedule.amounts)
            chosen[block] = schedule.objective - sign * paid
            objectives.append(schedule.objective)
    objective = solution.objective()
    _check_reading(oracle, use, math.fsum(objectives), objective)
    job_terms = sign * (values - chosen)
    row_terms = sign * oracle.price_terms(prices) - prices * use
    size = 1.0 + abs(objective) + float(np.abs(oracle.price_terms(prices)).sum())
    # A use within the checker's tolerance of the capacity may exceed it by that much.
    least = -TOLERANCE * size - FEASIBILITY_TOLERANCE * np.abs(prices * oracle.rows.capacity)
    if np.any(job_terms < -TOLERANCE * size) or np.any(row_terms < least):
        raise InputError("prices", certificate.bound, "the bound does not hold for the solution")
    gap, jobs = sign * (certificate.bound - objective), {job.name for job in instance.jobs}
    terms: list[tuple[str, str, int | None, float]] = []
    for block, (schedule, term) in enumerate(zip(schedules, job_terms.tolist(), strict=True)):
        name, state = oracle.block_name(block), "left out" if schedule is None else "served"
        kind, shown = ("job", f"{name} ({state})") if name in jobs else ("part", name)
        terms.append((kind, shown, None, term))
    for index in np.flatnonzero(row_terms > 0).tolist():
        labels = oracle.rows.label(index)
        slot = labels.pop("slot", None)
        name = " ".join(map(str, labels.values()))
        terms.append(("row", name, None if slot is None else int(slot), float(row_terms[index])))
    rounding = gap - math.fsum(max(0.0, term) for *_, term in terms)
    terms.append(("rounding", "outward rounding", None, rounding))
    parts: list[GapTerm] = [
        {"kind": kind, "name": name, "slot": slot, "term": term,
         "share": term / gap if gap > 0 else 0.0}
        for kind, name, slot, term in sorted(terms, key=lambda each: -each[-1]) if term > 0
    ]  # fmt: skip
    return Explanation(
        certificate.instance, certificate.formulation, objective, certificate.bound, abs(gap),
        parts, note, proven,
    )  # fmt: skip


def _check_reading(oracle: PricingOracle, use: Floats, total: float, objective: float) -> None:
    """Refuse a reading of the solution that is not the solution: objective or use differ."""
    if abs(total - objective) > 1e-9 * max(1.0, abs(objective)):
        raise InputError("solution", objective, f"its schedules have objective {total!r}")
    capacity = oracle.rows.capacity
    slack = FEASIBILITY_TOLERANCE * np.maximum(1.0, np.abs(capacity))
    wrong = use > capacity + slack
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        rule = f"{oracle.rows.label(first)} must not use more than {capacity[first]:g}"
        raise InputError("solution", float(use[first]), rule)
