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
workers run patterns (`oasis_patterns`), whose linear relaxation almost decides; the others keep (4)
and (5) as printed. All variables are integer, so a point is a schedule on real servers, and no
point means that no schedule keeps these promises.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from hindsched.instances.oasis.instance import OasisInstance, how_many_fit
from hindsched.models.oasis.patterns import (
    PatternsBySlot,
    add_runs,
    held_by_runs,
    patterns_by_slot,
)
from hindsched.models.oasis.program import Pools
from hindsched.solutions.oasis.solution import OasisSolution

IntArray = NDArray[np.int64]
Ends = Mapping[int, int]
"""Latest end slot by the position of each job that is admitted."""


@dataclass(frozen=True)
class _Role:
    """Servers of one role, and which of them run patterns when."""

    variable: str
    counts: str
    pools: Pools
    demand: NDArray[np.float64]
    patterns: PatternsBySlot


def build_leaf(instance: OasisInstance, ends: Ends) -> Any:
    """Build the feasibility program of a leaf.

    Parameters
    ----------
    instance : OasisInstance
        The instance.
    ends : mapping
        Promises: each of these jobs runs and finishes by its end; no other job runs.

    Returns
    -------
    ConcreteModel
        Without an objective worth the name: any point will do.
    """
    model = pyo.ConcreteModel()
    model.instance = instance
    model.jobs = sorted(ends)
    open_slots = {i: range(instance.jobs[i].arrival, ends[i] + 1) for i in model.jobs}
    index = [(i, t) for i in model.jobs for t in open_slots[i]]
    most = {i: instance.most_workers(instance.jobs[i]) for i in model.jobs}
    integers = pyo.NonNegativeIntegers
    model.workers = pyo.Var(index, domain=integers, bounds=lambda _, i, t: (0, most[i]))
    model.ps = pyo.Var(index, domain=integers)
    work = instance.work.tolist()
    model.eq_2 = pyo.Constraint(
        model.jobs,
        rule=lambda m, i: pyo.quicksum(m.workers[i, t] for t in open_slots[i]) == work[i],
    )
    bandwidth = {i: instance.bandwidth_of(instance.jobs[i]) for i in model.jobs}
    served = [(i, t) for i, t in index if bandwidth[i][0] > 0]
    model.eq_6 = pyo.Constraint(
        served,
        rule=lambda m, i, t: bandwidth[i][0] / bandwidth[i][1] * m.workers[i, t] <= m.ps[i, t],
    )
    model.eq_7 = pyo.Constraint(index, rule=lambda m, i, t: m.ps[i, t] <= m.workers[i, t])
    model.roles = [
        _add_role(model, "y", "workers", instance.worker_capacity, instance.worker_demand),
        _add_role(model, "z", "ps", instance.ps_capacity, instance.ps_demand),
    ]
    model.eq_1 = pyo.Objective(expr=0.0 * model.workers[index[0]] if index else 0.0)
    return model


def _add_role(
    model: Any,
    variable: str,
    counts: str,
    capacity: NDArray[np.float64],
    demand: NDArray[np.float64],
) -> _Role:
    """Add where the units of one role run, and tie the counts to it."""
    instance: OasisInstance = model.instance
    asked = getattr(model, counts)
    nothing = np.zeros((instance.horizon + 1, *capacity.shape))
    pools = Pools.of(capacity, nothing, grouped=True)
    fits = {
        i: how_many_fit(pools.capacity, demand[i], instance.jobs[i].chunks).tolist()
        for i in model.jobs
    }

    def present(pool: int, slot: int) -> tuple[int, ...]:
        return tuple(i for i in model.jobs if (i, slot) in asked and fits[i][pool] > 0)

    patterns = patterns_by_slot(instance, pools, demand, present)
    runs = f"runs_{variable}"
    add_runs(model, runs, patterns, integer=True)
    group_of = {server: pool for pool, group in enumerate(pools.members) for server in group}
    alone = [
        (i, server, t)
        for i, t in asked
        for server, pool in group_of.items()
        if (pool, t) not in patterns and fits[i][pool] > 0
    ]
    units = pyo.Var(
        alone,
        domain=pyo.NonNegativeIntegers,
        bounds=lambda _, i, server, t: (0, fits[i][group_of[server]]),
    )
    setattr(model, f"on_{variable}", units)
    terms: dict[tuple[int, int, int], list[Any]] = {}
    held: dict[tuple[int, int], list[Any]] = {key: [] for key in asked}
    for i, server, t in alone:
        held[i, t].append(units[i, server, t])
        for r in np.flatnonzero(demand[i]).tolist():
            amount = float(demand[i, r] / capacity[server, r])
            terms.setdefault((server, r, t), []).append(amount * units[i, server, t])
    rows = pyo.Constraint(list(terms), rule=lambda _, *key: pyo.quicksum(terms[key]) <= 1)
    setattr(model, "eq_4" if variable == "y" else "eq_5", rows)
    for (pool, t), own in patterns.items():
        for i in own.jobs:
            held[i, t].append(held_by_runs(model, runs, own, pool, t, i))
    tied = pyo.Constraint(
        list(held), rule=lambda _, i, t: asked[i, t] <= pyo.quicksum(held[i, t]) + 0.0
    )
    setattr(model, f"held_{variable}", tied)
    return _Role(variable, counts, pools, demand, patterns)


def extract_leaf(model: Any) -> OasisSolution:
    """Read the schedule at the variables' values: patterns go to the servers of their group."""
    instance: OasisInstance = model.instance
    deployed = [_deployed(model, role) for role in model.roles]
    return OasisSolution(instance, deployed[0], deployed[1])


def _deployed(model: Any, role: _Role) -> dict[str, IntArray]:
    """Units by slot and server of each job: what the counts ask for, within what is held."""
    instance: OasisInstance = model.instance
    asked, runs = getattr(model, role.counts), getattr(model, f"runs_{role.variable}")
    shape = (instance.horizon, sum(len(group) for group in role.pools.members))
    held = {i: np.zeros(shape, dtype=np.int64) for i in model.jobs}
    for (i, server, t), units in getattr(model, f"on_{role.variable}").items():
        held[i][t - 1, server] = round(units.value)
    for (pool, t), own in role.patterns.items():
        server = iter(role.pools.members[pool])
        for number, pattern in enumerate(own.patterns):
            for _ in range(round(runs[pool, t, number].value)):
                place = next(server)
                for i, units in zip(own.jobs, pattern, strict=True):
                    held[i][t - 1, place] = units
    for i, counts in held.items():
        for t in range(1, instance.horizon + 1):
            wanted = round(asked[i, t].value) if (i, t) in asked else 0
            before = np.cumsum(counts[t - 1]) - counts[t - 1]
            counts[t - 1] = np.clip(wanted - before, 0, counts[t - 1])
    return {instance.jobs[i].name: counts for i, counts in held.items()}
