"""``reoptimise``: the practitioner's rolling horizon, in every family.

At each arrival the family's offline program over the known jobs is solved again, with everything
fixed that the family's rules make irrevocable, and its plan is followed until the next arrival.
Where that program is too large for a step (`MOST_COLUMNS`), the plan is the best of the schedules
that prices over whole schedules find (`schedule_prices`), and the prices prove how far it is from
the best. Where those leave out a job that must run, the program moves the others: at its root node,
with all heuristics of HiGHS, as its start is poor.

The program is built anew, from the present plan as a start; it takes 14 to 44 % of a step's time to
build and compile. Appending jobs one by one to a `KeptProgram` would take longer: CPU seconds of
five runs on small instances 3.8 in place of 0.53 (batchsched), 0.59 for 0.33 (astraea), 0.21 for
0.14 (edgecloud), 0.15 for 0.09 (gang), 0.32 for 0.39 (mlbroker). Jobs that arrive together share a
program, most jobs are in one or two of them, and a part that stays has columns in all slots up to
the last, where the present plan rules most of them out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import InputError, SolveFailed
from hindsched.instances.base import Instance, JobRecord
from hindsched.json_types import JsonObject
from hindsched.online.base import family_online
from hindsched.online.protocol import (
    Count,
    Decision,
    Environment,
    OnlineAlgorithm,
    Positive,
    Report,
)
from hindsched.solutions.base import Assignment, Solution, build_solution
from hindsched.solvers.base import placing_oracle, row_layouts
from hindsched.solvers.bounds.schedule_prices import best_schedules
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import within_gap
from hindsched.solvers.door.result import Status
from hindsched.solvers.door.rolling import RollingProgram
from hindsched.solvers.oracles.base import PlacingOracle, Response

MOST_COLUMNS = 10_000  # up to which a step's program is built; it then takes a second or so
ROUNDS = 8  # times that prices look for further schedules in a step
FEW_HEURISTICS = {
    "mip_allow_cut_separation_at_nodes": False,
    "mip_allow_restart": False,
    "mip_detect_symmetry": False,
    "mip_heuristic_effort": 0.0,
    "mip_heuristic_run_feasibility_jump": False,
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_rins": False,
    "mip_heuristic_run_root_reduced_cost": False,
}
"""Options of HiGHS: a small program that has a good start takes its time in heuristics."""


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
    time_limit : float, optional
        Seconds that a solve may take, beside building its program; the result then depends on the
        machine.
    """

    solver_options: ClassVar[Mapping[str, object]] = {}  # further ones, for a family's programs

    def __init__(
        self, nodes: Count = 200, gap: float = 1e-4, time_limit: Positive | None = None
    ) -> None:
        self.nodes, self.gap, self.time_limit = nodes, gap, time_limit
        solver_options = {"mip_max_nodes": nodes, **self.solver_options}
        self.options = SolveOptions(gap=gap, time_limit=time_limit, solver_options=solver_options)
        self._of_large = replace(self.options, solver_options={"mip_max_nodes": 1})

    def start(self, environment: Environment) -> None:
        """Begin with no jobs and no plan."""
        self._environment = environment
        self._committed_rows = family_online(environment.cluster.family).committed_rows
        self._rolling = RollingProgram(
            environment.cluster, environment.formulation, options=self.options
        )
        self._now = 0
        self._locked: set[str] = set()
        self._plan: dict[str, list[Assignment]] = {}
        self._considered: set[str] = set()
        self._counts = {"solves": 0, "limits_reached": 0, "solves_without_plan": 0}
        self._gaps: list[JsonObject] = []

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
            promised, whole_job = self._committed_rows(rows, slot)
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
        is_large = self.num_columns(slot) > MOST_COLUMNS
        if is_large and self._plan_whole_schedules(slot):
            return
        options = self._of_large if is_large else self.options
        step = rolling.solve(lambda: self._extended_plan(rolling.instance), options)
        if step.result.status == Status.INFEASIBLE:
            rule = "no plan serves all known jobs with what is done and given out"
            name = self._environment.cluster.name
            raise SolveFailed(f"reoptimise in slot {slot} of {name}: {rule}")
        solution = step.plan
        if solution is None:
            self._counts["solves_without_plan"] += 1
            solution = step.started_from
        if solution is not None:
            self._plan = solution.assignments()
        limited = step.result.stopped_by in ("iteration_limit", "time_limit")
        self._count(slot, step.result.objective, step.result.bound, limited)

    def _count(
        self, slot: int, objective: float | None, bound: float | None, limited: bool
    ) -> None:
        """Say how a step's solve ended."""
        gap = None
        if objective is not None and bound is not None and math.isfinite(bound):
            gap = abs(bound - objective) / abs(bound) if bound else float(objective != 0)
        self._gaps.append({"slot": slot, "gap": gap})
        self._counts["solves"] += 1
        self._counts["limits_reached"] += limited

    def num_columns(self, slot: int) -> int:
        """Columns of this step's program, where an oracle can plan in its place; else 0."""
        return 0

    def oracle_of(self, jobs: Sequence[JobRecord]) -> PlacingOracle:
        """Oracle over some known jobs with one linking row a server; all have the same rows."""
        cluster = self._environment.cluster.with_jobs(tuple(jobs))
        return placing_oracle(cluster, self._environment.formulation)

    def waiting(self, job: JobRecord, slot: int) -> JobRecord:
        """A job that has not begun, as the oracle plans it from `slot` on."""
        return job

    def _plan_whole_schedules(self, slot: int) -> bool:
        """Plan the jobs that have not begun beside those that keep their windows.

        False where a job that must be served finds no room beside them: the program moves them.
        """
        jobs, assignments = self._rolling.instance.jobs, self._rolling.commitments().assignments
        begun = [job for job in jobs if assignments.get(job.name)]
        left = [self.waiting(job, slot) for job in jobs if not assignments.get(job.name)]
        oracle = self.oracle_of(left)
        residual = oracle.rows.capacity.copy()
        for rows in oracle.rows.sets:  # slots are the last axis; what is past is over
            span = residual[oracle.rows.slices[rows.name]].reshape(rows.shape)
            span[..., : slot - 1] = 0.0
        for response in self._used(self.oracle_of(begun), begun):
            np.subtract.at(residual, response.rows, response.amounts)
        residual = np.maximum(residual, 0.0)
        known = [job for job in left if job.name in self._plan]
        kept = {
            job.name: response
            for job, response in zip(known, self._used(self.oracle_of(known), known), strict=True)
        }
        start = inserted(oracle, residual, [kept.get(job.name) for job in left])
        options = replace(self.options, threads=1)
        schedules = best_schedules(oracle, residual, start, most_rounds=ROUNDS, options=options)
        if not oracle.optional and any(chosen is None for chosen in schedules.responses):
            return False
        before, self._plan = self._plan, {job.name: self._plan[job.name] for job in begun}
        for block, chosen in enumerate(schedules.responses):
            name = left[block].name
            if chosen is not None:
                stays = chosen is kept.get(name)
                self._plan[name] = before[name] if stays else oracle.assignments(block, chosen)
        limited = not within_gap(schedules.objective, schedules.bound, self.gap)
        self._count(slot, schedules.objective, schedules.bound, limited)
        return True

    def _used(self, oracle: PlacingOracle, jobs: Sequence[JobRecord]) -> list[Response]:
        """What the plan gives some jobs, on the rows of their oracle."""
        if not jobs:
            return []
        plan = {job.name: self._plan[job.name] for job in jobs}
        solution = build_solution(oracle.instance, plan, self._environment.formulation)
        return [response for response in oracle.use_of(solution) if response is not None]

    def _extended_plan(self, known: Instance) -> Solution | None:
        """Present plan with each new job's best schedule on what it leaves free.

        None where the family's oracle does not place schedules on servers, or a job that must be
        served finds no room.
        """
        formulation = self._environment.formulation
        if "servers" not in row_layouts(known.family):
            return None
        oracle = placing_oracle(known, formulation)
        names = {job.name for job in known.jobs}
        plan = {name: rows for name, rows in self._plan.items() if name in names}
        used: list[Response | None] = [None] * oracle.num_decided
        if plan:
            try:
                used = oracle.use_of(build_solution(known, plan, formulation))
            except InputError:  # a family whose oracle only reads solutions that serve every job
                return None
        new = [job.name not in plan and job.name not in self._considered for job in known.jobs]
        responses = inserted(oracle, oracle.rows.capacity, used, new)
        for block, job in enumerate(known.jobs):
            response = responses[block]
            if new[block]:
                self._considered.add(job.name)
                if response is not None:
                    plan[job.name] = oracle.assignments(block, response)
                elif not oracle.optional:
                    return None
        return build_solution(known, plan, formulation)

    def report(self) -> Report:
        """Count solves, limits reached and solves without a plan; each step's gap, if known."""
        limits = {"nodes_a_solve": self.nodes, "seconds_a_solve": self.time_limit}
        return {**self._counts, **limits, "gaps": list(self._gaps)}


def inserted(
    oracle: PlacingOracle, residual: Floats, plan: Sequence[Response | None],
    new: Sequence[bool] | None = None,
) -> list[Response | None]:  # fmt: skip
    """A plan in which each new job (all without a schedule) has its best on what others leave."""
    left, responses = residual.copy(), list(plan)
    for response in plan:
        if response is not None:
            np.subtract.at(left, response.rows, response.amounts)
    free = np.zeros(oracle.rows.size)
    for block, is_new in enumerate(new or [response is None for response in plan]):
        if is_new:
            best = oracle.best_response(block, free, np.maximum(left, 0.0))
            if best is None or best.plan is None or (oracle.optional and best.value <= 0):
                responses[block] = None  # also where a solution without it was read
                continue
            responses[block] = best
            np.subtract.at(left, best.rows, best.amounts)
    return responses
