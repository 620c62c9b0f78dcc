"""``dorm`` and ``rrh``, as OASiS's paper words them.

After Sun et al., "Towards distributed machine learning in shared clusters: a dynamically-
partitioned approach" (2017), and Irwin, Grit and Chase, "Balancing risk and reward in a
market-based task service" (HPDC 2004). The program of Dorm:

==================  =====================================================
``y[j, g]``         workers of job j on worker servers of group g, which are identical
``z[j, g]``         parameter servers of job j on PS servers of group g
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

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.decimals import how_many_fit
from hindsched.instances.oasis.instance import OasisInstance, OasisJob
from hindsched.json_types import JsonObject
from hindsched.models.algebra import Model
from hindsched.online.baselines.baseline import Baseline, FixedWidth, progressive_filling
from hindsched.online.dynamics import Gangs, Placement
from hindsched.online.oasis.dynamics import OasisCluster
from hindsched.online.protocol import AtLeastZero, Count, Environment, Report
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program

UnitsByGroup = dict[str, list[int]]
"""Units of a job by group of identical servers, of workers and of parameter servers."""


def _alike(capacity: Floats) -> list[list[int]]:
    """Servers of equal capacity, in order."""
    groups: dict[tuple[float, ...], list[int]] = {}
    for server, own in enumerate(capacity.tolist()):
        groups.setdefault(tuple(own), []).append(server)
    return list(groups.values())


class Dorm(Baseline):
    """Dorm: a mixed-integer program at each arrival and completion.

    Every job is admitted. The program chooses workers and parameter servers per job and group of
    identical servers to maximise total resource utilisation, subject to a total fairness loss
    against the shares of dominant resource fairness of at most ``ceil(2 theta1 R)``, R the number
    of resources, and at most ``ceil(theta2 n)`` of the n running jobs changing their allocation: as
    Dorm rounds them, so that one job may always change. A job that DRF serves has at least one
    worker. A job's share is its workers times the dominant share of one worker with its part of a
    parameter server.

    The program starts from what the running jobs hold, the others filling what is free by
    progressive filling; where it has no point that is what they get. A job that changes is placed
    anew: units go to the fullest server of their group with room, and one that no server has room
    for is left out and counted.

    Parameters
    ----------
    theta1 : float
        Fairness loss allowed, a share of the most that is possible (2 a resource).
    theta2 : float
        Share of the running jobs whose allocation may change.
    nodes : int
        Nodes of branch and bound a program, 1 for the root alone: the result does not depend on the
        machine. A limit reached is counted.
    gap : float
        Relative gap within which a program is stopped.
    """

    cluster: OasisCluster

    def __init__(
        self, theta1: AtLeastZero = 0.1, theta2: AtLeastZero = 0.1, nodes: Count = 1,
        gap: float = 0.01,
    ) -> None:  # fmt: skip
        self.theta1, self.theta2, self.nodes = theta1, theta2, nodes
        self.options = SolveOptions(gap=gap, solver_options={"mip_max_nodes": nodes})

    def start(self, environment: Environment) -> None:
        """Begin with an empty cluster."""
        super().start(environment)
        instance: OasisInstance = environment.cluster
        self._groups = {
            "workers": _alike(instance.worker_capacity),
            "ps": _alike(instance.ps_capacity),
        }
        self._counts = {"programs": 0, "limits_reached": 0, "kept": 0, "units_without_room": 0}

    def reallocate(self) -> None:
        """Solve the program; without a point fill only what is free."""
        if not self.jobs:
            return
        before = dict(self.held)
        waiting = {name: job for name, job in self.jobs.items() if name not in before}
        kept = {**before, **progressive_filling(self.cluster, waiting)}
        self._release(kept)
        fair = progressive_filling(self.cluster, self.jobs)
        self._release(fair)
        chosen = self._solve({name: p.num_workers for name, p in fair.items()}, before, kept)
        if chosen is None:
            self._counts["kept"] += 1
            for name, placement in kept.items():
                self.cluster.book(self.jobs[name], placement)
        self.held = kept if chosen is None else self._placed(chosen, before)

    def _release(self, held: dict[str, Placement]) -> None:
        for name, placement in held.items():
            self.cluster.release(self.jobs[name], placement)

    def _counts_of(self, placement: Placement | None) -> UnitsByGroup:
        """Workers and PSs of a placement by group."""
        held = {} if placement is None else {"workers": placement.workers, "ps": placement.ps}
        return {
            role: [
                sum(held.get(role, {}).get(self.cluster.names[role][s], 0) for s in group)
                for group in groups
            ]
            for role, groups in self._groups.items()
        }

    def _solve(
        self, fair_workers: dict[str, int], before: dict[str, Placement],
        start: dict[str, Placement],
    ) -> dict[str, UnitsByGroup] | None:  # fmt: skip
        """Units of every job by group."""
        model = self._program(fair_workers, before)
        for name in self.jobs:
            counts = self._counts_of(start.get(name))
            for units, own in ((model.y, counts["workers"]), (model.z, counts["ps"])):
                for g, count in enumerate(own):
                    if (name, g) in units:
                        units[name, g].value = count
            model.drift[name].value = abs(sum(counts["workers"]) - fair_workers.get(name, 0))
        for name in before:
            model.changed[name].value = 0
        result = solve_program(model, self.options, start=True)
        self._counts["programs"] += 1
        self._counts["limits_reached"] += result.stopped_by == "iteration_limit"
        if not result.has_point:
            return None
        return {
            name: {
                role: [
                    round(units[name, g].value) if (name, g) in units else 0
                    for g in range(len(self._groups[role]))
                ]
                for role, units in (("workers", model.y), ("ps", model.z))
            }
            for name in self.jobs
        }

    def _placed(
        self, chosen: dict[str, UnitsByGroup], before: dict[str, Placement]
    ) -> dict[str, Placement]:
        """Book what was chosen: what did not change where it was, the rest by best fit."""
        same = [name for name in before if chosen[name] == self._counts_of(before[name])]
        held = {name: before[name] for name in same}
        for name in same:
            self.cluster.book(self.jobs[name], before[name])
        for name, counts in chosen.items():
            if name not in held and any(counts["workers"]):
                placement, missed = self.cluster.best_fit(self.jobs[name], counts, self._groups)
                self._counts["units_without_room"] += missed
                if placement.workers:
                    held[name] = placement
        return {name: held[name] for name in self.jobs if name in held}

    def _program(self, fair_workers: dict[str, int], before: dict[str, Placement]) -> Model:
        instance = self.cluster.instance
        jobs, names = self.jobs, list(self.jobs)
        pools = (("workers", instance.worker_capacity, 0), ("ps", instance.ps_capacity, 1))
        demand = {name: instance.demand_of(job) for name, job in jobs.items()}
        most = {name: self.cluster.max_workers(job) for name, job in jobs.items()}
        model = pyo.ConcreteModel()
        utilisation: list[Any] = []
        placed: list[Any] = []
        for role, capacity, pool in pools:
            groups = self._groups[role]
            fits = {
                (name, g): min(most[name], len(group) * own)
                for name in names
                for g, group in enumerate(groups)
                if (own := int(how_many_fit(capacity[group[0]], demand[name][pool], most[name])))
            }
            units = pyo.Var(list(fits), within=pyo.NonNegativeIntegers,
                            bounds=lambda _, j, g, f=fits: (0, f[j, g]))  # fmt: skip
            setattr(model, "y" if pool == 0 else "z", units)
            placed.append(units)
            rows = pyo.ConstraintList()
            setattr(model, f"capacity_{role}", rows)
            total = capacity.sum(axis=0)
            for g, group in enumerate(groups):
                here = [name for name in names if (name, g) in units]
                for r in range(len(instance.resources)):
                    needing = [name for name in here if demand[name][pool][r] > 0]
                    if not needing:
                        continue
                    used = pyo.quicksum(float(demand[j][pool][r]) * units[j, g] for j in needing)
                    rows.add(used <= len(group) * float(capacity[group[0], r]))
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
            counts = self._counts_of(placement)
            for units, held in ((y, counts["workers"]), (z, counts["ps"])):
                for key in units:
                    if key[0] == name:
                        was, upper = held[key[1]], units[key].ub
                        for side, most_moved in ((1, upper - was), (-1, was)):
                            moved = side * units[key]
                            if most_moved:
                                moved -= most_moved * model.changed[name]
                            add(moved <= side * was)
        loss = pyo.quicksum(self._unit_share(jobs[j]) * model.drift[j] for j in names)
        budget = math.ceil(2 * self.theta1 * len(instance.resources))
        model.fairness = pyo.Constraint(expr=loss <= budget)
        if before:
            changes = pyo.quicksum(model.changed[j] for j in before)
            model.churn = pyo.Constraint(expr=changes <= math.ceil(self.theta2 * len(before)))
        model.objective = pyo.Objective(expr=pyo.quicksum(utilisation), sense=pyo.maximize)
        return model

    def _unit_share(self, job: OasisJob) -> float:
        """Dominant share of one worker with its part of a parameter server."""
        instance = self.cluster.instance
        worker, ps = instance.demand_of(job)
        b, big_b = instance.bandwidth_of(job)
        part = b / big_b if big_b else 0.0
        shares = [0.0]
        pools = (worker, instance.worker_capacity), (part * ps, instance.ps_capacity)
        for demand, capacity in pools:
            total = capacity.sum(axis=0)
            shares.append(float(np.divide(demand, total, where=total > 0, out=0 * demand).max()))
        return max(shares)

    def report(self) -> Report:
        """Count programs, limits reached, allocations kept and units without room."""
        return dict(self._counts)


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
