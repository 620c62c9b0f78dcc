"""``dorm`` and ``rrh``, as OASiS's paper words them.

After Sun et al., "Towards distributed machine learning in shared clusters: a dynamically-
partitioned approach" (2017), and Irwin, Grit and Chase, "Balancing risk and reward in a
market-based task service" (HPDC 2004).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.errors import InputError
from hindsched.instances.decimals import how_many_fit
from hindsched.instances.oasis.instance import OasisInstance, OasisJob
from hindsched.json_types import JsonObject
from hindsched.models.algebra import Model
from hindsched.online.baselines.baseline import Baseline, FixedWidth, progressive_filling
from hindsched.online.baselines.cluster import Gangs, Placement
from hindsched.online.oasis.dynamics import OasisCluster, Units
from hindsched.online.protocol import AtLeastZero, Count, Environment, Report
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program


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
        self._capacity = {"workers": instance.worker_capacity, "ps": instance.ps_capacity}
        self._groups: dict[tuple[str, int], list[int]] = {}
        for role, capacity in self._capacity.items():
            alike: dict[bytes, int] = {}
            for server, row in enumerate(capacity):
                group = alike.setdefault(row.tobytes(), len(alike))
                self._groups.setdefault((role, group), []).append(server)
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

    def _units_of(self, placement: Placement | None) -> Units:
        """Workers and PSs of a placement by role and group."""
        held = {} if placement is None else {"workers": placement.workers, "ps": placement.ps}
        return {
            (role, g): sum(held.get(role, {}).get(self.cluster.names[role][s], 0) for s in group)
            for (role, g), group in self._groups.items()
        }

    def _solve(
        self, fair: dict[str, int], before: dict[str, Placement], start: dict[str, Placement]
    ) -> dict[str, Units] | None:
        """Units of every job by role and group."""
        model = self._program(fair, before)
        begun = {name: self._units_of(start.get(name)) for name in self.jobs}
        for (name, *place), units in model.units.items():
            units.value = begun[name][tuple(place)]
        for name in self.jobs:
            workers = start[name].num_workers if name in start else 0
            model.drift[name].value = abs(workers - fair.get(name, 0))
        for name in before:
            model.changed[name].value = 0
        result = solve_program(model, self.options, start=True)
        self._counts["programs"] += 1
        self._counts["limits_reached"] += result.stopped_by == "iteration_limit"
        if not result.has_point:
            return None
        chosen = {name: dict.fromkeys(self._groups, 0) for name in self.jobs}
        for (name, *place), units in model.units.items():
            chosen[name][tuple(place)] = round(units.value)
        return chosen

    def _placed(
        self, chosen: dict[str, Units], before: dict[str, Placement]
    ) -> dict[str, Placement]:
        """Book what was chosen: what did not change where it was, the rest by best fit."""
        held = {
            name: former
            for name, former in before.items()
            if chosen[name] == self._units_of(former)
        }
        for name, placement in held.items():
            self.cluster.book(self.jobs[name], placement)
        for name, units in chosen.items():
            if name not in held and any(n for (role, _), n in units.items() if role == "workers"):
                placement, missed = self.cluster.best_fit(self.jobs[name], units, self._groups)
                self._counts["units_without_room"] += missed
                if placement.workers:
                    held[name] = placement
        return {name: held[name] for name in self.jobs if name in held}

    def _program(self, fair: dict[str, int], before: dict[str, Placement]) -> Model:
        instance, jobs, groups = self.cluster.instance, self.jobs, self._groups
        most = {name: self.cluster.max_workers(job) for name, job in jobs.items()}
        demand = {
            (name, role): self.cluster.unit(job, role)
            for name, job in jobs.items() for role in self._capacity
        }  # fmt: skip
        room: dict[tuple[str, str, int], int] = {}
        for (role, g), group in groups.items():
            capacity = self._capacity[role][group[0]]
            for name in jobs:
                amount = int(how_many_fit(capacity, demand[name, role], most[name]))
                if amount:
                    room[name, role, g] = min(most[name], len(group) * amount)
        # units: workers or PSs of a job on a group of identical servers; drift: distance of a job's
        # workers from its DRF number; changed: whether a running job's allocation changes
        m = pyo.ConcreteModel()
        m.units = pyo.Var(
            list(room), within=pyo.NonNegativeIntegers, bounds=lambda _, *key: (0, room[key])
        )
        m.drift = pyo.Var(list(jobs), within=pyo.NonNegativeReals)
        m.changed = pyo.Var(list(before), within=pyo.Binary)
        m.capacity = pyo.ConstraintList()
        utilisation: list[Any] = []
        for (role, g), group in groups.items():
            capacity, everywhere = self._capacity[role][group[0]], self._capacity[role].sum(axis=0)
            for r in range(capacity.size):
                needed = {
                    name: float(demand[name, role][r])
                    for name in jobs if (name, role, g) in room and demand[name, role][r] > 0
                }  # fmt: skip
                if needed:
                    used = total(amount * m.units[name, role, g] for name, amount in needed.items())
                    m.capacity.add(used <= len(group) * float(capacity[r]))
                    utilisation.append(used / float(everywhere[r]))
        m.job_rows = pyo.ConstraintList()
        for name, job in jobs.items():
            workers, ps = (
                total(m.units[name, amount, g] for amount, g in groups
                      if amount == role and (name, amount, g) in room)
                for role in self._capacity
            )  # fmt: skip
            m.job_rows.add((1 if fair.get(name) else 0, workers, most[name]))
            if ratio := instance.ps_per_worker(job):
                m.job_rows.add(ratio * workers <= ps)
            m.job_rows.add(ps <= workers)
            m.job_rows.add(workers - m.drift[name] <= fair.get(name, 0))
            m.job_rows.add(-workers - m.drift[name] <= -fair.get(name, 0))
        for name, placement in before.items():
            for place, was in self._units_of(placement).items():
                if key_room := room.get((name, *place)):
                    units, changed = m.units[name, *place], m.changed[name]
                    m.job_rows.add(units - (key_room - was) * changed <= was)
                    m.job_rows.add(-units - was * changed <= -was)
        loss = total(self._unit_share(job) * m.drift[name] for name, job in jobs.items())
        m.fairness = pyo.Constraint(
            expr=loss <= math.ceil(2 * self.theta1 * len(instance.resources))
        )
        if before:
            changes = total(m.changed[name] for name in before)
            m.churn = pyo.Constraint(expr=changes <= math.ceil(self.theta2 * len(before)))
        m.objective = pyo.Objective(expr=total(utilisation), sense=pyo.maximize)
        return m

    def _unit_share(self, job: OasisJob) -> float:
        """Dominant share of one worker with its part of a parameter server."""
        b, big_b = self.cluster.instance.bandwidth_of(job)
        shares = []
        for role, units in (("workers", 1.0), ("ps", b / big_b if big_b else 0.0)):
            everywhere = self._capacity[role].sum(axis=0)
            needed = units * self.cluster.unit(job, role)
            shares += (needed[everywhere > 0] / everywhere[everywhere > 0]).tolist()
        return max(shares, default=0.0)

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
    gangs : {"drawn", "half", "ideal"}
        Width of the gangs, see `hindsched.online.baselines.cluster.Gangs`.
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
