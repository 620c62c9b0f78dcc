"""``sia``: assignment of numbers of workers by goodput, as an integer program.

After Jayaram Subramanya et al., "Sia: Heterogeneity-aware, goodput-optimized ML-cluster scheduling"
(SOSP 2023), the successor of Pollux (Qiao et al., OSDI 2021). From the papers' published formulas;
the full texts were not at hand.

====================  ==========================================================
``x[j, n]``           job j runs on n workers
``value[j, n]``       ``idle - (speed(n) / speed(1)) ** power``
====================  ==========================================================
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import pyomo.environ as pyo
from pydantic import Field

from hindsched.errors import SolveFailed
from hindsched.json_types import JsonObject
from hindsched.models.algebra import Model
from hindsched.online.baselines.baseline import Baseline
from hindsched.online.protocol import Count, Environment, Report
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program


class Sia(Baseline):
    """At every arrival and completion each job gets one of a few numbers of workers, or none.

    The numbers are 1, 2, 4, ... and the most that the job can use. The program minimises the sum
    over the jobs of ``(speed(n) / speed(1)) ** power`` where a job runs and of `idle` where it does
    not, within the cluster's totals; the jobs are then placed, the widest first, on as many of
    their workers as fit. What it is not: a job's speed is the throughput that it tells (batch size
    and learning rate do not change, so that goodput is throughput), there are no types of
    accelerators to choose from, a change costs nothing, and the totals know no fragmentation.

    Parameters
    ----------
    power : float
        Exponent of the speed-up, below 0: the smaller, the more it favours the slow.
    idle : float
        What a job without workers adds; above 1, so that every job is better off with one.
    nodes : int
        Nodes of branch and bound a program: the result does not depend on the machine. A limit
        reached is counted.
    """

    def __init__(
        self,
        power: Annotated[float, Field(lt=0, allow_inf_nan=False)] = -0.5,
        idle: Annotated[float, Field(gt=1, allow_inf_nan=False)] = 1.1,
        nodes: Count = 200,
    ) -> None:
        self.power, self.idle, self.nodes = power, idle, nodes
        # at a few dozen binaries this heuristic alone takes longer than all the rest
        limits: JsonObject = {
            "mip_max_nodes": nodes,
            "mip_heuristic_run_feasibility_jump": False,
        }
        self.options = SolveOptions(gap=1e-3, solver_options=limits)

    def start(self, environment: Environment) -> None:
        """Begin with an empty cluster."""
        super().start(environment)
        self._counts = {"programs": 0, "limits_reached": 0}

    def reallocate(self) -> None:
        """Solve, then place the widest first."""
        before = self.release_all()
        widths = self.widths()
        for name in sorted(widths, key=lambda name: -widths[name]):
            if not self.resume(name, before, widths[name]):
                self.hold(name, widths[name], fewer=True)

    def widths(self) -> dict[str, int]:
        """Workers of each job that is to run, by the integer program."""
        options = {name: self._options(name) for name in self.jobs}
        keys = [(name, n) for name, numbers in options.items() for n in numbers]
        if not keys:
            return {}
        model = self._program(options, keys)
        result = solve_program(model, self.options)
        self._counts["programs"] += 1
        self._counts["limits_reached"] += result.stopped_by == "iteration_limit"
        if not result.has_point:
            raise SolveFailed(f"sia in slot {self.slot}: {result.status}, {result.stopped_by}")
        return {name: n for name, n in keys if model.x[name, n].value > 0.5}

    def _program(self, options: dict[str, list[int]], keys: list[tuple[str, int]]) -> Model:
        """The integer program over the numbers of workers that each job may get."""
        # beside each other a job's parts may need less, never more than there is
        use = {key: np.minimum(1.0, self.cluster.shares(self.jobs[key[0]], key[1])) for key in keys}
        model = pyo.ConcreteModel()
        model.x = pyo.Var(keys, within=pyo.Binary)
        model.once = pyo.ConstraintList()
        for name, numbers in options.items():
            if numbers:
                model.once.add(pyo.quicksum(model.x[name, n] for n in numbers) <= 1)
        model.capacity = pyo.ConstraintList()
        for r in range(len(use[keys[0]])):
            needing = [key for key in keys if use[key][r] > 0]
            if needing:
                used = pyo.quicksum(float(use[key][r]) * model.x[key] for key in needing)
                model.capacity.add(used <= 1)
        value = {key: self.idle - self._speed_up(*key) ** self.power for key in keys}
        worth = pyo.quicksum(value[key] * model.x[key] for key in keys)
        model.objective = pyo.Objective(expr=worth, sense=pyo.maximize)
        return model

    def _options(self, name: str) -> list[int]:
        """1, 2, 4, ... and the most, as far as they are faster than fewer."""
        most = self.cluster.max_workers(self.jobs[name])
        numbers = sorted({min(most, 2**k) for k in range(max(0, most).bit_length() + 1)} - {0})
        return [n for n in numbers if n == 1 or self._speed_up(name, n) > 1]

    def _speed_up(self, name: str, workers: int) -> float:
        job = self.jobs[name]
        return self.cluster.speed(job, workers) / self.cluster.speed(job, 1)

    def report(self) -> Report:
        """Count programs and limits reached."""
        return dict(self._counts)
