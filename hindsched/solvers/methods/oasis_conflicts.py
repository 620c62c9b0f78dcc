"""Leaves and conflict cuts: what an aggregated point promises, decided on real servers.

An aggregated point says which jobs are admitted and when each ends. Whether the servers hold that
is a feasibility problem (a leaf): the same jobs, each finished by its end. If nothing fits, a
smallest set of promises that still cannot be kept gives a cut that every solution satisfies,

    sum over jobs i of S, ends e <= E_i of u_ie <= |S| - 1,

and the aggregated program goes on with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo

from hindsched.models import oasis as models
from hindsched.solutions.oasis import OasisSolution
from hindsched.solvers.options import SolveOptions
from hindsched.solvers.program import ProgramResult, solve_program
from hindsched.solvers.status import Status

Ends = dict[int, int]
"""Latest end slot by the position of each admitted job."""
SHRINK_SECONDS = 3.0
"""Limit of each leaf while a conflict is made smaller; undecided keeps the larger conflict."""
ANY_POINT = 0.9
"""Gap at which a leaf stops: it wants some point, not the best one."""


class Leaves:
    """The program on real servers, in which jobs are asked to finish by given ends.

    Parameters
    ----------
    model : ConcreteModel
        The aggregated program, from `build_offline` in a form with end binaries ``u``.
    options : SolveOptions
        Solver, threads and seed.
    """

    def __init__(self, model: Any, options: SolveOptions) -> None:
        self.instance = model.program.instance
        self.options = options
        self.count = 0
        self._model = models.build_offline(self.instance, form=model.program.form, aggregate=False)
        for job in self._model.job:
            block = self._model.job[job]
            block.asked = pyo.Constraint(expr=block.admitted >= 0)

    def decide(self, ends: Ends, seconds: float | None) -> ProgramResult:
        """Solve one leaf: the jobs of `ends` and no others, each finished by its end."""
        self.count += 1
        for job in self._model.job:
            block = self._model.job[job]
            latest = ends.get(job, 0)
            for end in block.u:
                if end <= latest:
                    block.u[end].unfix()
                else:
                    block.u[end].fix(0)
            block.asked.set_value(block.admitted >= (1 if job in ends else 0))
        options = SolveOptions(
            solver=self.options.solver,
            time_limit=seconds,
            gap=ANY_POINT,
            threads=self.options.threads,
            seed=self.options.seed,
        )
        return solve_program(self._model, options)

    def solution(self) -> OasisSolution | None:
        """The solution of the last leaf that had a point."""
        return models.extract(self._model, self.instance)

    def conflict(self, ends: Ends, out_of_time: Callable[[], bool]) -> Ends:
        """Make an infeasible leaf's promises fewer and later while nothing fits.

        Parameters
        ----------
        ends : dict
            Promises that were proven impossible.
        out_of_time : callable
            Whether to stop with the present conflict, which is valid at any time.
        """
        work = self.instance.work
        for job in sorted(ends, key=lambda i: work[i]):
            if out_of_time():
                return ends
            fewer = {i: end for i, end in ends.items() if i != job}
            if self.decide(fewer, SHRINK_SECONDS).status == Status.INFEASIBLE:
                ends = fewer
        for job in list(ends):
            if out_of_time():
                return ends
            later = {**ends, job: max(self._model.job[job].u)}
            if later == ends or self.decide(later, SHRINK_SECONDS).status == Status.INFEASIBLE:
                ends = later
        return ends


def promised_ends(model: Any) -> Ends:
    """Admitted jobs and their ends at the aggregated program's present point."""
    return {
        job: end
        for job in model.job
        for end, chosen in model.job[job].u.items()
        if round(chosen.value or 0.0) == 1
    }


def add_cut(model: Any, conflict: Ends) -> None:
    """Forbid the promises of a conflict together."""
    if not hasattr(model, "conflicts"):
        model.conflicts = pyo.ConstraintList()
    kept = pyo.quicksum(
        chosen
        for job, latest in conflict.items()
        for end, chosen in model.job[job].u.items()
        if end <= latest
    )
    model.conflicts.add(kept <= len(conflict) - 1)
