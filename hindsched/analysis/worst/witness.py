"""The witness: an instance, what the algorithm does on it, and a checked schedule that is better.

Any feasible schedule proves a ratio, so that the claim needs nobody's word: the instance is parsed,
both schedules are judged by the family's definition, and the ratio is their quotient.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hindsched.analysis.ratio import (
    CONTRADICTION,
    Interval,
    Optimum,
    optimum_of,
)
from hindsched.analysis.worst.evaluate import mean_objective
from hindsched.analysis.worst.facts import Facts
from hindsched.analysis.worst.folder import write_witness
from hindsched.analysis.worst.pictures import plot_both
from hindsched.analysis.worst.problem import Problem
from hindsched.analysis.worst.words import explain
from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance
from hindsched.json_types import Draft
from hindsched.limits import counted_time
from hindsched.solutions.base import Solution
from hindsched.solvers.certificates.certificate import Certificate
from hindsched.solvers.door.api import solve
from hindsched.solvers.tree.method import certify_optimum

PROOF_SECONDS = 5.0
"""Longest solve of the witness itself, whose bound gives the ratio's upper end."""
FRESH_RUNS = 20
"""Runs of a randomised algorithm on its witness, with seeds that the search did not see."""


@dataclass(frozen=True, repr=False)
class Witness(Facts):
    """An instance on which an algorithm is bad, with what proves it: told, drawn and written.

    Its parameters are those of `Facts`.
    """

    def explain(self) -> str:
        """What goes wrong, in words."""
        return explain(self)

    def plot(self) -> Any:
        """Gantt charts of both schedules, one above the other; returns the figure."""
        return plot_both(self)

    def write(self, folder: Any) -> None:
        """Write the witness as a folder, see `folder.write_witness`."""
        write_witness(self, folder)


def make_witness(
    problem: Problem, data: Draft, search: Mapping[str, object], seconds: float = math.inf
) -> Witness:
    """Run everything once more on a candidate, and prove in some seconds what can be proven.

    Raises
    ------
    SolveFailed
        If no schedule was found.
    """
    instance = problem.space.instance(data, f"{problem.space.family}-worst-{search['digest']}")
    seeds = range(1)
    if problem.algorithm.is_randomised:
        seeds = range(problem.seeds, problem.seeds + FRESH_RUNS)
    runs = problem.runs(problem.algorithm, instance, seeds)
    if all(run.solution.assignments() == runs[0].solution.assignments() for run in runs):
        runs = runs[:1]  # no seed changes anything here
    mean_objective(runs)
    certificate, offline, bound = None, None, None
    reference_by = "offline"
    if problem.against is not None:
        others = problem.runs(problem.against, instance, seeds)
        mean_objective(others)
        middle = sorted(others, key=lambda run: run.objective)[(len(others) - 1) // 2]
        offline, reference_by = middle.solution, problem.against.name
        level = middle.objective
        optimum = Optimum(instance.sense, Interval(level, level), "compared", reference_by)
    else:
        offline, certificate, bound = _best(problem, instance, counted_time() + seconds)
        sense = instance.sense
        for run in runs:
            better = offline is None or (
                (run.objective - offline.objective()) * (1 if sense == "max" else -1) > 0
            )
            if not run.violations and better:
                offline, reference_by = run.solution, run.algorithm
        if offline is None:
            raise SolveFailed(f"{instance.name}: no schedule was found")
        proven = None if certificate is None else certificate.bound
        value = offline.objective()
        closed = bound is not None and abs(bound - value) <= CONTRADICTION * max(1.0, abs(value))
        same = (
            proven is not None
            and bound is not None
            and abs(proven - bound) <= (CONTRADICTION * abs(bound))
        )
        optimum = optimum_of(
            sense,
            value,
            bound,
            "optimal" if closed else "feasible",
            proof="checked fast" if same else "solver",
        )
    return Witness(
        instance=instance,
        algorithm=problem.algorithm.name,
        settings=problem.algorithm.settings,
        against=None if problem.against is None else problem.against.name,
        runs=runs,
        reference=offline,
        reference_by=reference_by,
        certificate=certificate,
        optimum=optimum,
        search=search,
    )


def _best(
    problem: Problem, instance: Instance, ends: float
) -> tuple[Solution | None, Certificate | None, float | None]:
    """The best schedule known by some time of the clock, a certificate and the bound."""
    methods = dict.fromkeys((problem.space.exact, "auto"))
    best: Solution | None = None
    certificate, bound = None, None
    sign = 1 if instance.sense == "max" else -1
    for left, method in zip(range(len(methods), 0, -1), methods, strict=True):
        seconds = min(PROOF_SECONDS, max(0.0, ends - counted_time()) / (2 * left))
        options = {"time_limit": seconds, "threads": 1}
        found = solve(instance, method, formulation=problem.formulation, options=options)
        if str(found.status) == "optimal" and method != "orders":
            found = certify_optimum(found)
        solution = found.solution
        if solution is not None and (
            best is None or sign * (solution.objective() - best.objective()) > 0
        ):
            best = solution
        if found.bound is not None and (bound is None or sign * (found.bound - bound) < 0):
            bound = found.bound
        if found.certificate is not None and (
            certificate is None or sign * (found.certificate.bound - certificate.bound) < 0
        ):
            certificate = found.certificate
        if str(found.status) == "optimal" and found.proof == "certificate":
            break
    return best, certificate, bound
