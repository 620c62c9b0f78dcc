"""Whether given jobs can all be finished by given ends, on the servers as they are.

=====================  ===================================================  ==================
symbol                 meaning                                              indices
=====================  ===================================================  ==================
``workers``            workers of the job                                   job, slot
``ps``                 parameter servers (PSs) of the job                   job, slot
``on_workers/ps.runs`` servers of a group that run a packing pattern        group, slot, no.
``on_.....alone``      units on one server, of a group of many patterns     job, server, slot
=====================  ===================================================  ==================

With the admissions and ends given, the offline program is a packing problem. Servers that hold few
units run patterns (`patterns.py`), whose linear relaxation almost decides; the others keep (4) and
(5) as printed. All variables are integer, so a point is a schedule on real servers, and no point
means that no schedule keeps these promises.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats, Ints
from hindsched.instances.decimals import how_many_fit
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.oasis.patterns import (
    PatternsBySlot,
    ServerGroups,
    patterns_by_slot,
    run_patterns,
)
from hindsched.models.oasis.rounding import lines_below
from hindsched.solutions.oasis.solution import OasisSolution


@dataclass(frozen=True)
class _Role:
    """Units of one role by (job, slot), and where they run."""

    asked: Any
    groups: ServerGroups
    patterns: PatternsBySlot
    placed: Any


@dataclass(frozen=True)
class Leaf:
    """The feasibility program of given ends.

    Parameters
    ----------
    instance : OasisInstance
        The instance.
    model : ConcreteModel
        Without an objective worth the name: any point will do.
    jobs : list of int
        Positions of the jobs that run.
    roles : tuple of _Role
        Where workers and PSs run.
    """

    instance: OasisInstance
    model: Any
    jobs: list[int]
    roles: tuple[_Role, ...]

    def extract(self) -> OasisSolution:
        """Read the schedule at the variables' values: patterns go to the servers of their group."""
        workers, ps = (_deployed(self.instance, self.jobs, role) for role in self.roles)
        return OasisSolution(self.instance, workers, ps)


def build_leaf(instance: OasisInstance, ends: Mapping[int, int]) -> Leaf:
    """Build the feasibility program of given ends.

    Parameters
    ----------
    instance : OasisInstance
        The instance.
    ends : mapping
        Promises: each of these jobs runs and finishes by its end; no other job runs.
    """
    m = pyo.ConcreteModel(name=f"given ends of {instance.name}")
    jobs = sorted(ends)
    slots = {i: range(instance.jobs[i].arrival, ends[i] + 1) for i in jobs}
    cells = [(i, t) for i in jobs for t in slots[i]]
    most = {i: instance.most_workers(instance.jobs[i]) for i in jobs}
    ps_per_worker = {i: instance.ps_per_worker(instance.jobs[i]) for i in jobs}
    lines = {i: lines_below(instance.ps_needed_up_to(instance.jobs[i], most[i])) for i in jobs}
    work = instance.work.tolist()
    m.workers = pyo.Var(
        cells,
        domain=pyo.NonNegativeIntegers,
        bounds=lambda _, i, t: (0, most[i]),
        doc="(12) workers of a job",
    )
    m.ps = pyo.Var(cells, domain=pyo.NonNegativeIntegers, doc="(13) PSs of a job")
    m.eq_1 = pyo.Objective(expr=0.0 * m.workers[cells[0]] if cells else 0.0)

    @m.Constraint(jobs, doc="(2) exactly the work is done by the end")
    def eq_2(m: Any, i: int) -> Any:
        return sum(m.workers[i, t] for t in slots[i]) == work[i]

    served = [(i, t) for i, t in cells if ps_per_worker[i] > 0]

    @m.Constraint(served, doc="(6) the PSs have bandwidth for all workers")
    def eq_6(m: Any, i: int, t: int) -> Any:
        return ps_per_worker[i] * m.workers[i, t] <= m.ps[i, t]

    @m.Constraint(
        [(i, t, n) for i, t in served for n in range(len(lines[i]))],
        doc="(6) whole PSs serve whole workers",
    )
    def eq_6_whole(m: Any, i: int, t: int, n: int) -> Any:
        slope, at_none = lines[i][n]
        return slope * m.workers[i, t] + at_none <= m.ps[i, t]

    @m.Constraint(cells, doc="(7) no more PSs than workers")
    def eq_7(m: Any, i: int, t: int) -> Any:
        return m.ps[i, t] <= m.workers[i, t]

    m.on_workers, m.on_ps = pyo.Block(), pyo.Block()
    roles = (
        _place(
            m.on_workers, m.workers, jobs, instance, instance.worker_capacity,
            instance.worker_demand,
        ),
        _place(m.on_ps, m.ps, jobs, instance, instance.ps_capacity, instance.ps_demand),
    )  # fmt: skip
    return Leaf(instance, m, jobs, roles)


def _place(
    block: Any,
    asked: Any,
    jobs: list[int],
    instance: OasisInstance,
    capacity: Floats,
    demand: Floats,
) -> _Role:
    """Put what is asked for on servers: by patterns where there are few enough, else one by one."""
    groups = ServerGroups.of(capacity)
    chunks = [job.chunks for job in instance.jobs]
    fits = {i: how_many_fit(groups.capacity, demand[i], chunks[i]).tolist() for i in jobs}
    group_of = {server: g for g, own in enumerate(groups.members) for server in own}

    def present(group: int, t: int) -> tuple[int, ...]:
        return tuple(i for i in jobs if (i, t) in asked and fits[i][group] > 0)

    slots = range(1, instance.horizon + 1)
    patterns = patterns_by_slot(groups, demand, chunks, slots, present)
    run_patterns(block, patterns, pyo.NonNegativeIntegers)
    block.alone = pyo.Var(
        [
            (i, server, t)
            for i, t in asked
            for server, g in group_of.items()
            if (g, t) not in patterns and fits[i][g] > 0
        ],
        domain=pyo.NonNegativeIntegers,
        bounds=lambda _, i, server, t: (0, fits[i][group_of[server]]),
        doc="(ours) units of a job on one server",
    )
    used: dict[tuple[int, int, int], list[Any]] = {}
    held: dict[tuple[int, int], list[Any]] = {cell: [] for cell in asked}
    for (i, server, t), units in block.alone.items():
        held[i, t].append(units)
        for r in np.flatnonzero(demand[i]).tolist():
            share = float(demand[i, r] / capacity[server, r])
            used.setdefault((server, r, t), []).append(share * units)
    for (i, _, t), units in block.held.items():
        held[i, t].append(units)

    @block.Constraint(list(used), doc="(4), (5) units within what a server has")
    def capacity_of(_: Any, server: int, r: int, t: int) -> Any:
        return sum(used[server, r, t]) <= 1

    @block.Constraint(list(held), doc="(ours) units that the servers hold")
    def placed(_: Any, i: int, t: int) -> Any:
        return asked[i, t] <= sum(held[i, t], 0.0)

    return _Role(asked, groups, patterns, block)


def _deployed(instance: OasisInstance, jobs: list[int], role: _Role) -> dict[str, Ints]:
    """Units by slot and server of each job: what the counts ask for, within what is held."""
    shape = (instance.horizon, sum(map(len, role.groups.members)))
    held = {i: np.zeros(shape, dtype=np.int64) for i in jobs}
    for (i, server, t), units in role.placed.alone.items():
        held[i][t - 1, server] = round(units.value)
    for (group, t), own in role.patterns.items():
        server = iter(role.groups.members[group])
        for number, pattern in enumerate(own.patterns):
            for _ in range(round(role.placed.runs[group, t, number].value)):
                place = next(server)
                for i, units in zip(own.jobs, pattern, strict=True):
                    held[i][t - 1, place] = units
    for i, counts in held.items():
        for t in range(1, instance.horizon + 1):
            wanted = round(role.asked[i, t].value) if (i, t) in role.asked else 0
            before = np.cumsum(counts[t - 1]) - counts[t - 1]
            counts[t - 1] = np.clip(wanted - before, 0, counts[t - 1])
    return {instance.jobs[i].name: counts for i, counts in held.items()}
