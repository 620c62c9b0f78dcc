"""Whether given jobs can all be finished by given ends, on the servers as they are: a leaf.

===============  =============================================================  ==================
symbol           meaning                                                        indices
===============  =============================================================  ==================
``workers``      workers of the job                                             job, slot
``ps``           parameter servers of the job                                   job, slot
``runs_y, _z``   servers of a group that run a packing pattern                  group, slot, no.
``on_y, on_z``   units on one server, where a group has too many patterns       job, server, slot
===============  =============================================================  ==================

With the admissions and ends given, the offline program is a packing problem. Servers that hold few
workers run patterns (`patterns.py`), whose linear relaxation almost decides; the others keep (4)
and (5) as printed. All variables are integer, so a point is a schedule on real servers, and no
point means that no schedule keeps these promises.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats, Ints
from hindsched.instances.decimals import how_many_fit
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.algebra import Expr, Model
from hindsched.models.oasis.patterns import (
    PatternsBySlot,
    add_runs,
    held_by_runs,
    patterns_by_slot,
)
from hindsched.models.oasis.program import Pools
from hindsched.models.oasis.rounding import lines_below
from hindsched.solutions.oasis.solution import OasisSolution

Fits = dict[int, list[int]]
"""How many units of a job (by position) fit on one server of each group."""
Ends = Mapping[int, int]
"""Latest end slot by the position of each job that is admitted."""


@dataclass(frozen=True)
class _Role:
    """Units of one role, and where they run.

    Parameters
    ----------
    asked : Var
        Units of a job in a slot: ``workers`` or ``ps``.
    pools : Pools
        Groups of identical servers.
    patterns : mapping
        Patterns by (group, slot), where there are few enough.
    runs : Var
        Servers of a group that run a pattern.
    alone : Var
        Units of a job on one server, elsewhere.
    """

    asked: pyo.Var
    pools: Pools
    patterns: PatternsBySlot
    runs: pyo.Var
    alone: pyo.Var


@dataclass(frozen=True)
class Leaf:
    """The feasibility program of a leaf.

    Parameters
    ----------
    instance : OasisInstance
        The instance.
    model : ConcreteModel
        Without an objective worth the name: any point will do.
    jobs : list of int
        Positions of the jobs that run.
    worker_role, ps_role : _Role
        Where workers and PSs run.
    """

    instance: OasisInstance
    model: Model
    jobs: list[int]
    worker_role: _Role
    ps_role: _Role

    def extract(self) -> OasisSolution:
        """Read the schedule at the variables' values: patterns go to the servers of their group."""
        workers = _deployed(self.instance, self.jobs, self.worker_role)
        return OasisSolution(
            self.instance, workers, _deployed(self.instance, self.jobs, self.ps_role)
        )


def build_leaf(instance: OasisInstance, ends: Ends) -> Leaf:
    """Build the feasibility program of a leaf.

    Parameters
    ----------
    instance : OasisInstance
        The instance.
    ends : mapping
        Promises: each of these jobs runs and finishes by its end; no other job runs.
    """
    model = pyo.ConcreteModel(name=f"leaf of {instance.name}")
    jobs = sorted(ends)
    open_slots = {i: range(instance.jobs[i].arrival, ends[i] + 1) for i in jobs}
    index = [(i, t) for i in jobs for t in open_slots[i]]
    most = {i: instance.most_workers(instance.jobs[i]) for i in jobs}
    ps_per_worker = {i: instance.ps_per_worker(instance.jobs[i]) for i in jobs}
    work = instance.work.tolist()
    model.workers = pyo.Var(
        index,
        domain=pyo.NonNegativeIntegers,
        bounds=lambda _, i, t: (0, most[i]),
        doc="(12) workers of a job",
    )
    model.ps = pyo.Var(index, domain=pyo.NonNegativeIntegers, doc="(13) PSs of a job")

    @model.Constraint(jobs, doc="(2) exactly the work is done by the end")
    def eq_2(m: Model, i: int) -> Expr:
        return pyo.quicksum(m.workers[i, t] for t in open_slots[i]) == work[i]

    served = [(i, t) for i, t in index if ps_per_worker[i] > 0]

    @model.Constraint(served, doc="(6) the PSs have bandwidth for all workers")
    def eq_6(m: Model, i: int, t: int) -> Expr:
        return ps_per_worker[i] * m.workers[i, t] <= m.ps[i, t]

    @model.Constraint(index, doc="(7) no more PSs than workers")
    def eq_7(m: Model, i: int, t: int) -> Expr:
        return m.ps[i, t] <= m.workers[i, t]

    lines = {i: lines_below(instance.ps_needed_up_to(instance.jobs[i], most[i])) for i in jobs}

    @model.Constraint(
        [(*key, n) for key in served for n in range(len(lines[key[0]]))],
        doc="(6) whole PSs serve whole workers",
    )
    def whole(m: Model, i: int, t: int, n: int) -> Expr:
        slope, at_none = lines[i][n]
        return slope * m.workers[i, t] + at_none <= m.ps[i, t]

    pools, patterns, fits = _groups(
        instance, jobs, model.workers, instance.worker_capacity, instance.worker_demand
    )
    model.runs_y, model.runs_y_limit = add_runs(patterns, integer=True)
    model.on_y = _alone(model.workers, pools, patterns, fits)
    model.eq_4 = _capacity(model.on_y, instance.worker_capacity, instance.worker_demand)
    workers = _Role(model.workers, pools, patterns, model.runs_y, model.on_y)
    model.held_y = _held(workers)
    pools, patterns, fits = _groups(
        instance, jobs, model.ps, instance.ps_capacity, instance.ps_demand
    )
    model.runs_z, model.runs_z_limit = add_runs(patterns, integer=True)
    model.on_z = _alone(model.ps, pools, patterns, fits)
    model.eq_5 = _capacity(model.on_z, instance.ps_capacity, instance.ps_demand)
    ps = _Role(model.ps, pools, patterns, model.runs_z, model.on_z)
    model.held_z = _held(ps)
    model.eq_1 = pyo.Objective(expr=0.0 * model.workers[index[0]] if index else 0.0)
    return Leaf(instance, model, jobs, workers, ps)


def _groups(
    instance: OasisInstance, jobs: list[int], asked: pyo.Var, capacity: Floats, demand: Floats
) -> tuple[Pools, PatternsBySlot, Fits]:
    """Groups of identical servers, their patterns, and how many units of a job one server holds."""
    nothing = np.zeros((instance.horizon + 1, *capacity.shape))
    pools = Pools.of(capacity, nothing, grouped=True)
    fits: Fits = {
        i: how_many_fit(pools.capacity, demand[i], instance.jobs[i].chunks).tolist() for i in jobs
    }

    def present(pool: int, slot: int) -> tuple[int, ...]:
        return tuple(i for i in jobs if (i, slot) in asked and fits[i][pool] > 0)

    return pools, patterns_by_slot(instance, pools, demand, present), fits


def _alone(asked: pyo.Var, pools: Pools, patterns: PatternsBySlot, fits: Fits) -> pyo.Var:
    """Units by (job, server, slot) where a group has too many patterns."""
    group_of = {server: pool for pool, group in enumerate(pools.members) for server in group}
    index = [
        (i, server, t)
        for i, t in asked
        for server, pool in group_of.items()
        if (pool, t) not in patterns and fits[i][pool] > 0
    ]
    return pyo.Var(
        index,
        domain=pyo.NonNegativeIntegers,
        bounds=lambda _, i, server, t: (0, fits[i][group_of[server]]),
        doc="(ours) units of a job on one server",
    )


def _capacity(units: pyo.Var, capacity: Floats, demand: Floats) -> pyo.Constraint:
    """(4) or (5) as printed on the servers that run no patterns."""
    terms: dict[tuple[int, int, int], list[Expr]] = {}
    for i, server, t in units:
        for r in np.flatnonzero(demand[i]).tolist():
            amount = float(demand[i, r] / capacity[server, r])
            terms.setdefault((server, r, t), []).append(amount * units[i, server, t])
    return pyo.Constraint(
        list(terms),
        rule=lambda _, *key: pyo.quicksum(terms[key]) <= 1,
        doc="(4), (5) units within what a server has",
    )


def _held(role: _Role) -> pyo.Constraint:
    """No more units than the servers hold."""
    held: dict[tuple[int, int], list[Expr]] = {key: [] for key in role.asked}
    for (i, _, t), units in role.alone.items():
        held[i, t].append(units)
    for (pool, t), own in role.patterns.items():
        for i in own.jobs:
            held[i, t].append(held_by_runs(role.runs, own, pool, t, i))
    return pyo.Constraint(
        list(held),
        rule=lambda _, i, t: role.asked[i, t] <= pyo.quicksum(held[i, t]) + 0.0,
        doc="(ours) units that the servers hold",
    )


def _deployed(instance: OasisInstance, jobs: list[int], role: _Role) -> dict[str, Ints]:
    """Units by slot and server of each job: what the counts ask for, within what is held."""
    shape = (instance.horizon, int(role.pools.size.sum()))
    held = {i: np.zeros(shape, dtype=np.int64) for i in jobs}
    for (i, server, t), units in role.alone.items():
        held[i][t - 1, server] = round(units.value)
    for (pool, t), own in role.patterns.items():
        server = iter(role.pools.members[pool])
        for number, pattern in enumerate(own.patterns):
            for _ in range(round(role.runs[pool, t, number].value)):
                place = next(server)
                for i, units in zip(own.jobs, pattern, strict=True):
                    held[i][t - 1, place] = units
    for i, counts in held.items():
        for t in range(1, instance.horizon + 1):
            wanted = round(role.asked[i, t].value) if (i, t) in role.asked else 0
            before = np.cumsum(counts[t - 1]) - counts[t - 1]
            counts[t - 1] = np.clip(wanted - before, 0, counts[t - 1])
    return {instance.jobs[i].name: counts for i, counts in held.items()}
