"""Two toy families, so that engines are tested as generic: they know no family's word.

A job of length L and demand d runs on one server without pause, from a slot of its choice on.
``toymax`` maximises ``value / completion`` (formulations: ``optional``; ``mandatory``), ``toymin``
minimises ``weight x completion``, every job must finish (``modes``). Layouts of the rows:
``groups`` of identical servers (the block's floor ``floor(c / d)`` holds per server, so a group
behaves like its servers' sum), ``servers``.
"""

from __future__ import annotations

import itertools
import math
import sys
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import coo_array

from hindsched.errors import InputError
from hindsched.instances import base as instances_base
from hindsched.instances.base import Instance, Name, NonNegative, Positive, PositiveCount, Record
from hindsched.kernel import Violation
from hindsched.solutions.base import Assignments, Solution
from hindsched.solvers.base import FamilySolvers
from hindsched.solvers.oracles.base import BranchingOracle, PlacingOracle, Response
from hindsched.solvers.oracles.decisions import COMPLETES, Feature
from hindsched.solvers.oracles.rows import Rows, RowSet


class ToyServer(Record):
    name: Name
    capacity: NonNegative


class ToyJob(Record):
    name: Name
    arrival: PositiveCount
    length: PositiveCount
    demand: Positive
    value: NonNegative


class ToyInstance(Instance):
    servers: tuple[ToyServer, ...]
    jobs: tuple[ToyJob, ...] = ()

    def objective_of(self, job: ToyJob, start: int) -> float:
        completion = start + job.length - 1
        return job.value / completion if self.sense == "max" else job.value * completion

    def starts(self, job: ToyJob) -> range:
        return range(job.arrival, self.horizon - job.length + 2)


class ToyMaxInstance(ToyInstance):
    sense: ClassVar[str] = "max"
    formulations: ClassVar[tuple[str, ...]] = ("optional", "mandatory")


class ToyMinInstance(ToyInstance):
    sense: ClassVar[str] = "min"
    formulations: ClassVar[tuple[str, ...]] = ("modes",)


class ToySolution(Solution):
    family = "toy"

    def __init__(self, instance, formulation, place):
        self.instance, self.formulation, self.place = instance, formulation, place

    @classmethod
    def from_assignments(cls, instance: Any, assignments: Assignments, formulation=None):
        place = {}
        for name, rows in assignments.items():
            instance.job_index(name)
            if len(rows) > 1:
                raise InputError("assignments", rows, "must be one row a job")
            if rows:
                place[name] = (rows[0]["server"], rows[0]["from"])
        return cls(instance, instance.check_formulation(formulation), place)

    def assignments(self):
        lengths = {job.name: job.length for job in self.instance.jobs}
        return {
            name: [{"from": start, "to": start + lengths[name] - 1, "server": server}]
            for name, (server, start) in self.place.items()
        }

    def objective(self):
        return math.fsum(
            self.instance.objective_of(job, self.place[job.name][1])
            for job in self.instance.jobs
            if job.name in self.place
        )

    def violations(self):
        found = []
        used = {(s.name, t): 0.0 for s in self.instance.servers for t in self.slots()}
        for job in self.instance.jobs:
            if job.name not in self.place:
                if self.formulation != "optional":
                    found.append(Violation("(1)", job.name))
                continue
            server, start = self.place[job.name]
            if start not in self.instance.starts(job):
                found.append(Violation("(2)", job.name))
                continue
            for slot in range(start, start + job.length):
                used[server, slot] += job.demand
        for server in self.instance.servers:
            for slot in self.slots():
                over = used[server.name, slot] - server.capacity
                if over > 1e-9:
                    found.append(Violation("(3)", "", server.name, "", slot, slot, over))
        return found

    def slots(self):
        return range(1, self.instance.horizon + 1)

    def completion(self, job):
        if job not in self.place:
            return None
        return self.place[job][1] + self.instance.jobs[self.instance.job_index(job)].length - 1

    def job_facts(self, job):
        return {}

    def places(self):
        return [(server.name, "capacity") for server in self.instance.servers]

    def usage_rows(self):
        return []


class ToyOracle(BranchingOracle):
    def __init__(self, instance: ToyInstance, formulation: str, layout: str) -> None:
        self.instance, self.formulation, self.layout = instance, formulation, layout
        self.sense = instance.sense
        self.optional = formulation == "optional"
        groups: dict[Any, list[str]] = {}
        for server in instance.servers:
            key = server.name if layout == "servers" else float(server.capacity)
            groups.setdefault(key, []).append(server.name)
        self.members = list(groups.values())
        size = {server.name: float(server.capacity) for server in instance.servers}
        self.single = [size[names[0]] for names in self.members]
        slots = tuple(range(1, instance.horizon + 1))
        axis = "server" if layout == "servers" else "group"
        labels = tuple(names[0] for names in self.members)
        capacity = np.array([[sum(size[n] for n in names)] * len(slots) for names in self.members])
        sets = [RowSet("capacity", ((axis, labels), ("slot", slots)), capacity)]
        self.rows = Rows(sets)
        self.features = {"completion": (), "group": ()}

    def schedules(self, block):
        """All schedules of a block as responses without a value."""
        job = self.instance.jobs[block]
        horizon = self.instance.horizon
        for group, single in enumerate(self.single):
            if math.floor(single / job.demand + 1e-9) < 1:
                continue
            for start in self.instance.starts(job):
                rows = group * horizon + np.arange(start - 1, start - 1 + job.length)
                amounts = np.full(job.length, float(job.demand))
                yield group, start, self.instance.objective_of(job, start), rows, amounts

    def best_response(self, block, prices, residual=None):
        sign = 1 if self.sense == "max" else -1
        best = None
        for group, start, objective, rows, amounts in self.schedules(block):
            if residual is not None and np.any(amounts > residual[rows] + 1e-9):
                continue
            value = objective - sign * float(prices[rows] @ amounts)
            if best is None or sign * value > sign * best.value:
                best = Response(value, objective, rows, amounts, (group, start))
        return best

    def restricted_response(self, block, prices, limits):
        sign = 1 if self.sense == "max" else -1
        best = None
        for group, start, objective, rows, amounts in self.schedules(block):
            value = objective - sign * float(prices[rows] @ amounts)
            found = Response(value, objective, rows, amounts, (group, start))
            values = self.features_of(block, found)
            if any(not low <= values[f] <= high for f, (low, high) in limits.items()):
                continue
            if best is None or sign * value > sign * best.value:
                best = found
        return best

    def features_of(self, block, response):
        group, start = response.plan
        length = self.instance.jobs[block].length
        return {COMPLETES: start + length - 1, Feature("group"): group}

    def outside(self, block):
        empty = np.zeros(0, dtype=np.int64)
        return Response(0.0, 0.0, empty, np.zeros(0)) if self.optional else None

    def place(self, responses):
        return None

    def use_of(self, solution):
        group_of = {name: g for g, names in enumerate(self.members) for name in names}
        found: list[Response | None] = []
        for block, job in enumerate(self.instance.jobs):
            if job.name not in solution.place:
                found.append(None)
                continue
            server, start = solution.place[job.name]
            for group, first, objective, rows, amounts in self.schedules(block):
                if (group, first) == (group_of[server], start):
                    found.append(Response(objective, objective, rows, amounts, (group, first)))
        return found

    def prices_on_servers(self, prices):
        if self.layout == "servers":
            return prices
        arrays = self.rows.unpack(prices)
        order = [server.name for server in self.instance.servers]
        group_of = {name: g for g, names in enumerate(self.members) for name in names}
        parts = [arrays["capacity"][group_of[name]] for name in order]
        return np.concatenate(parts) if parts else np.zeros(0)


class ToyServerOracle(PlacingOracle, ToyOracle):
    best_response = ToyOracle.best_response

    def assignments(self, block, response):
        group, start = response.plan
        to = start + self.instance.jobs[block].length - 1
        return [{"from": start, "to": to, "server": self.members[group][0]}]


class ToySolvers(FamilySolvers):
    layouts = ("groups", "servers")

    def build_oracle(self, instance, formulation, layout):
        oracle = ToyServerOracle if layout == "servers" else ToyOracle
        return oracle(instance, formulation, layout)

    def tree_layouts(self, instance, formulation):
        return ("servers",)


def install(monkeypatch):
    """Make the toy families families for the length of a test."""
    monkeypatch.setattr(instances_base, "FAMILIES", (*instances_base.FAMILIES, *CLASSES))
    for family, cls in CLASSES.items():
        contents = {
            "instances.{}.instance": {"INSTANCE": cls},
            "solutions.{}.solution": {"SOLUTION": ToySolution},
            "solvers.families.{}.solvers": {"SOLVERS": ToySolvers()},
        }
        for path, names in contents.items():
            module = ModuleType(f"hindsched.{path.format(family)}")
            for name, value in names.items():
                setattr(module, name, value)
            monkeypatch.setitem(sys.modules, module.__name__, module)


CLASSES = {"toymax": ToyMaxInstance, "toymin": ToyMinInstance}
PROBLEMS = (
    ("toymax", "optional"), ("toymax", "mandatory"), ("toymin", "modes"),
)  # fmt: skip
"""Every kind of problem that engines must handle: (family, formulation)."""


def make(family, jobs, capacities, horizon, name="toy"):
    """Build an instance from tuples (arrival, length, demand, value) and server capacities."""
    servers = [{"name": f"s{i}", "capacity": c} for i, c in enumerate(capacities)]
    records = [
        {"name": f"j{i}", "arrival": a, "length": n, "demand": d, "value": v}
        for i, (a, n, d, v) in enumerate(jobs)
    ]
    data = {"format": "hindsched/1", "family": family, "name": name, "horizon": horizon}
    data |= {"slot_seconds": 1, "servers": servers, "jobs": records}
    return CLASSES[family].model_validate(data)


def random_instance(family, rng, *, jobs, servers, horizon):
    """Draw an instance; ``toymin`` and ``mandatory`` have a schedule for all jobs in a row."""
    capacities = [int(c) for c in rng.choice([3, 4, 6], size=servers)]
    rows = [
        (
            int(rng.integers(1, max(2, horizon // 3))),
            int(rng.integers(1, 4)),
            round(float(rng.uniform(0.5, 3.0)), 3),
            round(float(rng.uniform(1, 20)), 3),
        )
        for _ in range(jobs)
    ]
    return make(family, rows, capacities, horizon)


@st.composite
def tiny_instances(draw, family):
    """Tiny instances that a brute force can enumerate; every job fits alone."""
    number = draw(st.integers(0, 3))
    horizon = draw(st.integers(3, 6))
    capacities = draw(st.lists(st.sampled_from([1.5, 2, 2, 3]), min_size=1, max_size=2))
    job = st.tuples(
        st.integers(1, 2), st.integers(1, 2), st.sampled_from([0.3, 0.7, 1, 1.1, 1.5]),
        st.sampled_from([0, 0.1, 1, 2.5, 7]),
    )  # fmt: skip
    jobs = draw(st.lists(job, min_size=number, max_size=number))
    return make(family, jobs, capacities, horizon)


def brute_force(instance, formulation):
    """Optimum by trying every server and start of every job, judged by the checker alone."""
    choices = []
    for job in instance.jobs:
        places = [(s.name, t) for s in instance.servers for t in instance.starts(job)]
        choices.append([*([None] if formulation == "optional" else []), *places])
    best = None
    for pick in itertools.product(*choices):
        place = {j.name: p for j, p in zip(instance.jobs, pick, strict=True) if p is not None}
        solution = ToySolution(instance, formulation, place)
        if not solution.violations():
            value = solution.objective()
            better = best is None or (value > best if instance.sense == "max" else value < best)
            best = value if better else best
    return best


def lagrangian_dual(oracle):
    """Best bound that any prices can give: the linear program over all schedules."""
    cost, used, chosen = [], [], []
    for block in range(oracle.num_blocks):
        for _, _, objective, rows, amounts in oracle.schedules(block):
            column = len(cost)
            cost.append(objective)
            used += [(row, column, amount) for row, amount in zip(rows, amounts, strict=True)]
            chosen.append((block, column, 1.0))
    row, column, value = zip(*used, strict=True)
    a = coo_array((value, (row, column)), shape=(oracle.rows.size, len(cost))).tocsr()
    block, column, value = zip(*chosen, strict=True)
    one = (
        coo_array((value, (block, column)), shape=(oracle.num_blocks, len(cost))).tocsr().toarray()
    )
    ones, upper, right = np.ones(oracle.num_blocks), a.toarray(), oracle.rows.capacity
    sign = -1 if oracle.sense == "max" else 1
    if oracle.optional:
        upper, right = np.vstack([upper, one]), np.concatenate([right, ones])
        answer = linprog(sign * np.array(cost), upper, right)
    else:
        answer = linprog(sign * np.array(cost), upper, right, one, ones)
    return sign * answer.fun


def toy(family, formulation, layout="groups", seed=0):
    horizon = 20 if formulation == "optional" else 40
    rng = np.random.default_rng(seed)
    instance = random_instance(family, rng, jobs=15, servers=2, horizon=horizon)
    return ToyOracle(instance, formulation, layout)
