"""``reoptimise``: the practitioner's rolling horizon, in every family.

At each arrival the family's offline program over the known jobs is solved again, with everything
fixed that the family's rules make irrevocable, and its plan is followed until the next arrival.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from hindsched.errors import InputError, SolveFailed
from hindsched.instances.base import Instance, JobRecord, family_module
from hindsched.online.protocol import Decision, Environment, OnlineAlgorithm, Report
from hindsched.solutions.base import Assignment, Solution, build_solution
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.rolling import RollingProgram
from hindsched.solvers.door.status import Status
from hindsched.solvers.oracles.base import build_oracle, row_layouts


class Reoptimise(OnlineAlgorithm):
    """Solve the offline program over the known jobs at each arrival and follow its plan.

    Parameters
    ----------
    nodes : int
        Nodes of branch and bound a solve: the result does not depend on the machine. A limit
        reached keeps the best plan found and is counted in the report; a solve that ends without a
        plan is counted apart, and what it started from is the plan.
    gap : float
        Relative gap at which a solve stops.
    """

    solver_options: ClassVar[Mapping[str, object]] = {}
    """Further options of the solver that suit a family's programs."""

    def __init__(self, nodes: int = 200, gap: float = 1e-4) -> None:
        if nodes < 1:
            raise InputError("set.nodes", nodes, "must be at least 1")
        self.nodes, self.gap = nodes, gap
        own = {"mip_max_nodes": nodes, **self.solver_options}
        self.options = SolveOptions(gap=gap, solver_options=own)

    def start(self, environment: Environment) -> None:
        """Begin with no jobs and no plan."""
        self._environment = environment
        self._dynamics = family_module("online", environment.cluster.family, "dynamics")
        self._rolling = RollingProgram(
            environment.cluster, environment.formulation, options=self.options
        )
        self._now = 0
        self._locked: set[str] = set()
        self._plan: dict[str, list[Assignment]] = {}
        self._considered: set[str] = set()
        self._counts = {"solves": 0, "limits_reached": 0, "solves_without_plan": 0}

    def step(self, slot: int, arrivals: tuple[JobRecord, ...]) -> Decision:
        """Plan again if jobs arrived; give out what the plan promises from this slot on."""
        self._now = slot
        if arrivals:
            self._rolling.add(arrivals)
            self._plan_again(slot)
        new: dict[str, list[Assignment]] = {}
        for name, rows in self._plan.items():
            if name in self._locked:
                continue
            promised, whole_job = self._dynamics.committed_rows(rows, slot)
            if promised:
                new[name] = promised
            if whole_job:
                self._locked.add(name)
        self._rolling.commit(new, whole=self._locked & set(new))
        return Decision(new, tuple(new))

    def wake_up(self) -> int | None:
        """The slot in which the plan's next row begins."""
        rows = (row for name in self._plan.keys() - self._locked for row in self._plan[name])
        return min((row["from"] for row in rows if row.get("from", 0) > self._now), default=None)

    def _plan_again(self, slot: int) -> None:
        """Solve over the known jobs; the start keeps the present plan and adds the new jobs."""
        rolling = self._rolling
        rolling.advance(slot)
        step = rolling.solve(lambda: self._extended_plan(rolling.instance))
        if step.result.status == Status.INFEASIBLE:
            rule = "no plan serves all known jobs with what is done and given out"
            name = self._environment.cluster.name
            raise SolveFailed(f"reoptimise in slot {slot} of {name}: {rule}")
        self._counts["solves"] += 1
        self._counts["limits_reached"] += step.result.stopped_by == "iteration_limit"
        solution = step.plan
        if solution is None:
            self._counts["solves_without_plan"] += 1
            solution = step.started_from
        if solution is not None:
            self._plan = solution.assignments()

    def _extended_plan(self, known: Instance) -> Solution | None:
        """Present plan with each new job's best schedule on what it leaves free.

        None where the family's oracle does not place schedules on servers, or a job that must be
        served finds no room.
        """
        formulation = self._environment.formulation
        if "servers" not in row_layouts(known.family):
            return None
        oracle = build_oracle(known, formulation, rows="servers")
        if not oracle.places:
            return None
        names = {job.name for job in known.jobs}
        plan = {name: rows for name, rows in self._plan.items() if name in names}
        residual = oracle.rows.capacity.copy()
        try:
            used = oracle.use_of(build_solution(known, plan, formulation)) if plan else []
        except InputError:  # a family whose oracle only reads solutions that serve every job
            return None
        for response in used:
            if response is not None:
                np.subtract.at(residual, response.rows, response.amounts)
        free = np.zeros(oracle.rows.size)
        for block, job in enumerate(known.jobs):
            if job.name in plan or job.name in self._considered:
                continue
            self._considered.add(job.name)
            response = oracle.best_response(block, free, residual)
            if response is None or response.plan is None:
                if not oracle.optional:
                    return None
                continue
            if oracle.optional and response.value <= 0:
                continue
            plan[job.name] = oracle.assignments(block, response)
            np.subtract.at(residual, response.rows, response.amounts)
        return build_solution(known, plan, formulation)

    def report(self) -> Report:
        """Count solves, limits reached and solves that gave no plan, and state the limit."""
        return {**self._counts, "nodes_a_solve": self.nodes}
