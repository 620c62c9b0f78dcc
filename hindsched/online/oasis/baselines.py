"""``dorm`` and ``rrh``, as OASiS's paper words them.

After Sun et al., "Towards distributed machine learning in shared clusters: a dynamically-
partitioned approach" (2017), and Irwin, Grit and Chase, "Balancing risk and reward in a
market-based task service" (HPDC 2004). The program of Dorm:

==================  =====================================================
``y[j, h]``         workers of job j on worker server h
``z[j, k]``         parameter servers of job j on PS server k
``drift[j]``        distance of j's workers from its DRF number of workers
``changed[j]``      whether a running job's allocation changes
==================  =====================================================
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyomo.environ as pyo

from hindsched.errors import InputError
from hindsched.instances.decimals import how_many_fit
from hindsched.instances.oasis.instance import OasisJob
from hindsched.json_types import JsonObject
from hindsched.models.algebra import Model
from hindsched.online.baselines.baseline import Baseline, FixedWidth, progressive_filling
from hindsched.online.dynamics import Gangs, Placement
from hindsched.online.oasis.dynamics import OasisCluster
from hindsched.online.protocol import Environment, Report
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program


class Dorm(Baseline):
    """Dorm: a mixed-integer program at each arrival and completion.

    Every job is admitted. The program chooses workers and parameter servers per job and server to
    maximise total resource utilisation, subject to a total fairness loss against the shares of
    dominant resource fairness of at most ``ceil(2 theta1 R)``, R the number of resources, and at
    most ``ceil(theta2 n)`` of the n running jobs changing their allocation: as Dorm rounds them, so
    that one job may always change. A job that DRF serves has at least one worker. A job's share is
    its workers times the dominant share of one worker with its part of a parameter server. Where
    the program has no point the running jobs keep what they hold and the others get what is free,
    by progressive filling.

    Parameters
    ----------
    theta1 : float
        Fairness loss allowed, a share of the most that is possible (2 a resource).
    theta2 : float
        Share of the running jobs whose allocation may change.
    nodes : int
        Nodes of branch and bound a program: the result does not depend on the machine. A limit
        reached is counted.
    """

    def __init__(self, theta1: float = 0.1, theta2: float = 0.1, nodes: int = 200) -> None:
        for name, value in (("theta1", theta1), ("theta2", theta2)):
            if not 0 <= value < math.inf:
                raise InputError(f"set.{name}", value, "must be at least 0")
        if nodes < 1:
            raise InputError("set.nodes", nodes, "must be at least 1")
        self.theta1, self.theta2, self.nodes = theta1, theta2, nodes
        self.options = SolveOptions(gap=1e-3, solver_options={"mip_max_nodes": nodes})

    def start(self, environment: Environment) -> None:
        """Begin with an empty cluster."""
        super().start(environment)
        self._counts = {"programs": 0, "limits_reached": 0, "kept": 0}
        self._events: list[JsonObject] = []

    def reallocate(self) -> None:
        """Solve the program; without a point fill only what is free."""
        if not self.jobs:
            return
        before = dict(self.held)
        self.release_all()
        fair = progressive_filling(self.cluster, self.jobs)
        for name, placement in fair.items():
            self.cluster.release(self.jobs[name], placement)
        chosen = self._solve({name: p.num_workers for name, p in fair.items()}, before)
        self.held = before if chosen is None else chosen
        for name, placement in self.held.items():
            self.cluster.book(self.jobs[name], placement)
        if chosen is None:
            self._counts["kept"] += 1
            waiting = {name: job for name, job in self.jobs.items() if name not in before}
            self.held = {**before, **progressive_filling(self.cluster, waiting)}
        self._record(fair, before, kept=chosen is None)

    def _solve(
        self, fair_workers: dict[str, int], before: dict[str, Placement]
    ) -> dict[str, Placement] | None:
        model = self._program(fair_workers, before)
        result = solve_program(model, self.options)
        self._counts["programs"] += 1
        self._counts["limits_reached"] += result.stopped_by == "iteration_limit"
        if not result.has_point:
            return None
        chosen = {}
        for name in self.jobs:
            counts = [
                {h: round(own.value) for (j, h), own in units.items() if j == name}
                for units in (model.y, model.z)
            ]
            workers, ps = ({h: n for h, n in count.items() if n} for count in counts)
            if workers:
                chosen[name] = Placement(workers, ps)
        return chosen

    def _program(self, fair_workers: dict[str, int], before: dict[str, Placement]) -> Model:
        assert isinstance(self.cluster, OasisCluster)
        instance = self.cluster.instance
        jobs, names = self.jobs, list(self.jobs)
        pools = (
            ("H", instance.worker_servers, instance.worker_capacity, 0),
            ("K", instance.ps_servers, instance.ps_capacity, 1),
        )
        demand = {name: instance.demand_of(job) for name, job in jobs.items()}
        most = {name: self.cluster.max_workers(job) for name, job in jobs.items()}
        model = pyo.ConcreteModel()
        utilisation: list[Any] = []
        placed: list[Any] = []
        for label, servers, capacity, pool in pools:
            index = {server.name: i for i, server in enumerate(servers)}
            fits = {
                (name, h): int(how_many_fit(capacity[i], demand[name][pool], most[name]))
                for name in names
                for h, i in index.items()
            }
            keys = [key for key, count in fits.items() if count]
            units = pyo.Var(
                keys, within=pyo.NonNegativeIntegers, bounds=lambda _, j, h, f=fits: (0, f[j, h])
            )
            setattr(model, "y" if pool == 0 else "z", units)
            placed.append(units)
            rows = pyo.ConstraintList()
            setattr(model, f"capacity_{label}", rows)
            total = capacity.sum(axis=0)
            for h, i in index.items():
                here = [name for name in names if (name, h) in units]
                for r in range(len(instance.resources)):
                    needing = [name for name in here if demand[name][pool][r] > 0]
                    if not needing:
                        continue
                    used = pyo.quicksum(float(demand[j][pool][r]) * units[j, h] for j in needing)
                    rows.add(used <= float(capacity[i, r]))
                    utilisation.append(used / float(total[r]))
        y, z = placed

        model.drift = pyo.Var(names, within=pyo.NonNegativeReals)
        model.changed = pyo.Var(list(before), within=pyo.Binary)
        model.job_rows = pyo.ConstraintList()
        add = model.job_rows.add
        for name, job in jobs.items():
            workers = pyo.quicksum(own for (j, _), own in y.items() if j == name)
            ps = pyo.quicksum(own for (j, _), own in z.items() if j == name)
            ps_per_worker = instance.ps_per_worker(job)
            fair = fair_workers.get(name, 0)
            add(workers <= most[name])
            add(workers >= (1 if fair else 0))
            if ps_per_worker > 0:
                add(ps_per_worker * workers <= ps)
            add(ps <= workers)
            add(workers - model.drift[name] <= fair)
            add(-workers - model.drift[name] <= -fair)
        for name, placement in before.items():
            for units, held in ((y, placement.workers), (z, placement.ps)):
                for key in units:
                    if key[0] == name:
                        was, upper = held.get(key[1], 0), units[key].ub
                        for side, most_moved in ((1, upper - was), (-1, was)):
                            moved = side * units[key]
                            if most_moved:
                                moved -= most_moved * model.changed[name]
                            add(moved <= side * was)
        model.fairness = pyo.Constraint(
            expr=pyo.quicksum(self._unit_share(jobs[j]) * model.drift[j] for j in names)
            <= self.fairness_budget
        )
        if before:
            model.churn = pyo.Constraint(
                expr=pyo.quicksum(model.changed[j] for j in before)
                <= self.most_changes(len(before))
            )
        model.objective = pyo.Objective(expr=pyo.quicksum(utilisation), sense=pyo.maximize)
        return model

    @property
    def fairness_budget(self) -> int:
        """Largest summed fairness loss."""
        return math.ceil(2 * self.theta1 * len(self.environment.cluster.resources))  # type: ignore[attr-defined]

    def most_changes(self, running: int) -> int:
        """How many of the running jobs may change."""
        return math.ceil(self.theta2 * running)

    def _unit_share(self, job: OasisJob) -> float:
        """Dominant share of one worker with its part of a parameter server."""
        assert isinstance(self.cluster, OasisCluster)
        instance = self.cluster.instance
        worker, ps = instance.demand_of(job)
        b, big_b = instance.bandwidth_of(job)
        part = b / big_b if big_b else 0.0
        shares = [0.0]
        for demand, capacity in (
            (worker, instance.worker_capacity),
            (part * ps, instance.ps_capacity),
        ):
            total = capacity.sum(axis=0)
            shares.append(float(np.divide(demand, total, where=total > 0, out=0 * demand).max()))
        return max(shares)

    def _record(
        self, fair: dict[str, Placement], before: dict[str, Placement], *, kept: bool
    ) -> None:
        """Write down both sides of both constraints at this event."""
        loss = 0.0
        for name, job in self.jobs.items():
            held, wanted = (p[name].num_workers if name in p else 0 for p in (self.held, fair))
            loss += self._unit_share(job) * abs(held - wanted)
        changed = sum(self.held.get(name) != placement for name, placement in before.items())
        event = {"slot": self.slot, "fairness_loss": loss, "changed": changed}
        self._events.append({**event, "running": len(before), "kept": kept})

    def report(self) -> Report:
        """Count programs, limits reached and allocations kept; both constraints at every event."""
        return {**self._counts, "events": list(self._events)}


class Rrh(FixedWidth):
    """Risk-reward heuristic.

    A job has a fixed number of workers n and, with its remaining work, q remaining slots. Its
    reward is the utility at the completion it would have if run now; its delay cost is what the
    other admitted unfinished jobs would lose if delayed by q. It is admitted if reward minus cost
    exceeds the threshold. At each arrival and completion the admitted jobs are ranked by
    (utility - cost) / (n q) and run greedily as they fit; the rest pause, keeping progress and
    size. Utility past the horizon is 0.

    Parameters
    ----------
    threshold : float
        Admission threshold, in units of utility.
    gangs : {"drawn", "half", "ideal", "best"}
        Width of the gangs, see `hindsched.online.dynamics.Gangs`.
    """

    def __init__(self, threshold: float = 0.0, gangs: Gangs = "ideal") -> None:
        super().__init__(gangs)
        if math.isnan(threshold):
            raise InputError("set.threshold", threshold, "must be a number")
        self.threshold = threshold

    def start(self, environment: Environment) -> None:
        """Begin with an empty cluster."""
        super().start(environment)
        self._admissions: list[JsonObject] = []

    def admit(self, job: OasisJob) -> bool:
        """Admit if reward minus delay cost exceeds the threshold."""
        if not super().admit(job):
            return False
        net = self._net_reward(job, self.cluster.work(job))
        admitted = net > self.threshold
        self._admissions.append({"job": job.name, "net": net, "admitted": admitted})
        return admitted

    def reallocate(self) -> None:
        """Rank admitted jobs by net reward per worker-slot and run them greedily as they fit."""
        self.release_all()
        rank = {
            name: self._net_reward(job, self.remaining[name])
            / (self.cluster.fixed_workers(job) * self._slots_left(job, self.remaining[name]))
            for name, job in self.jobs.items()
        }
        for name in sorted(self.jobs, key=lambda name: -rank[name]):
            self.hold(name, self.cluster.fixed_workers(self.jobs[name]))

    def _slots_left(self, job: OasisJob, work: Fraction) -> int:
        return max(1, math.ceil(work / self.cluster.fixed_workers(job)))

    def _net_reward(self, job: OasisJob, work: Fraction) -> float:
        """Utility if run now, minus what the other admitted jobs lose by the delay."""
        delay = self._slots_left(job, work)
        reward = self._value(job, self.slot + delay - 1)
        cost = 0.0
        for name, other in self.jobs.items():
            if name != job.name:
                end = self.slot + self._slots_left(other, self.remaining[name]) - 1
                cost += self._value(other, end) - self._value(other, end + delay)
        return reward - cost

    def _value(self, job: OasisJob, completion: int) -> float:
        if completion > self.environment.cluster.horizon:
            return 0.0
        return float(job.utility.value(completion - job.arrival))

    def report(self) -> Report:
        """Net reward of each job at its admission."""
        return {"admissions": list(self._admissions)}
