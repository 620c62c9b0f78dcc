"""What a solver's answer is worth, as the exact kernel finds it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hindsched.analysis.verify import exact_check
from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance
from hindsched.solutions.base import Solution
from hindsched.solvers.certificates.certificate import Certificate
from hindsched.solvers.door.result import relative_gap


@dataclass(frozen=True)
class Answer:
    """What a solver returns.

    Parameters
    ----------
    solution : Solution, optional
        The best that it found.
    certificate : Certificate, optional
        Prices, or a tree of them, that prove a bound.
    claimed_bound : float, optional
        A bound on the solver's word alone.
    """

    solution: Solution | None = None
    certificate: Certificate | None = None
    claimed_bound: float | None = None


def judge(
    instance: Instance, answer: Answer, best_objective: float | None, best_bound: float | None
) -> dict[str, float]:
    """Measure an answer by the records of the library.

    Returns
    -------
    dict
        ``value``: relative gap between the solution and the best bound on file, infinite without a
        solution, 0 where it is optimal, in either sense; ``bound_gap``: the same between the best
        solution on file and the bound that the answer certifies; ``objective``,
        ``certified_bound``, ``claimed_bound``: not a number where there is none.

    Raises
    ------
    SolveFailed
        If the kernel finds a claim false.
    """
    claims = [each for each in (answer.certificate, answer.solution) if each is not None]
    found = exact_check(instance, *claims) if claims else None
    if found is not None and found.code:
        raise SolveFailed(f"{instance.name}: the exact kernel says {found.verdict}")
    objective = None if answer.solution is None else answer.solution.objective()
    bound = None if answer.certificate is None else answer.certificate.bound
    return {
        "value": _or(relative_gap(objective, best_bound), math.inf),
        "bound_gap": _or(relative_gap(best_objective, bound), math.inf),
        "objective": _or(objective, math.nan),
        "certified_bound": _or(bound, math.nan),
        "claimed_bound": _or(answer.claimed_bound, math.nan),
    }


def _or(value: float | None, absent: float) -> float:
    return absent if value is None else float(value)
