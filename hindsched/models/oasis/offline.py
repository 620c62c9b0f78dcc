"""The oasis family's programs: the offline problem (1)-(13) and the subproblem (27), in Pyomo.

The forms of the offline problem agree at integer points: ``printed`` has one constraint component
an equation number, server by server; ``strong`` and ``cumulative`` are aggregated over identical
servers and link the completion more tightly (`block.py`). A solution of an aggregated program
counts only once it is placed on real servers: until then its value is an upper bound.

==================  =====================================================  ======================
paper               here                                                   indices
==================  =====================================================  ======================
``x_i``             ``job[i].x`` (printed), ``job[i].admitted``            job
``y_ih(t)``         ``job[i].y``                                           pool, slot
``z_ik(t)``         ``job[i].z``                                           pool, slot
``t_i``             ``job[i].u``: 1 at the completion                      slot
(1)                 ``eq_1``                                               the objective
(2), (3), (6)-(10)  ``job[i].eq_2``, ..., ``job[i].eq_10``                 see `block.py`
(4), (5)            ``eq_4``, ``eq_5``, scaled by one server's capacity    pool, resource, slot
(11)-(13)           the variables' domains
(27), (30), (31)    ``eq_27``, ``eq_30``, ``eq_31``                        server, slot
==================  =====================================================  ======================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from hindsched.errors import InputError
from hindsched.instances.oasis.instance import OasisInstance, OasisJob, how_many_fit
from hindsched.models.base import Commitments
from hindsched.models.oasis.block import FORMS, Form, add_job
from hindsched.models.oasis.placing import place_slot
from hindsched.models.oasis.program import Pools, Program, ProgramJob, job_facts, plan_program
from hindsched.solutions.oasis.solution import OasisSolution

STRONG_SIZE = 60_000
RELAXED_STRONG_SIZE = 6_000
"""Triples (job, end, slot) up to which the strong form is the default, and in a relaxation: its
program takes the simplex method far longer than the cumulative one, whose bound is nearly as good.
"""

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]


ON_SERVERS = {"aggregate": False}


def build_offline(
    instance: OasisInstance,
    formulation: str | None = None,
    *,
    relax: bool = False,
    commitments: Commitments | None = None,
    incumbent: OasisSolution | None = None,
    form: Form | None = None,
    aggregate: bool = True,
) -> pyo.ConcreteModel:
    """Build the offline program (1)-(13).

    Parameters
    ----------
    instance : OasisInstance
        The instance.
    formulation : str, optional
        The family has one.
    relax : bool
        The linear relaxation.
    commitments : Commitments, optional
        What can no longer be changed. A job that is neither locked nor rejected keeps what ran
        before `now` if it is admitted, and may still be given up.
    incumbent : OasisSolution, optional
        Not used: the horizon is hard.
    form : {"strong", "cumulative", "printed"}, optional
        See `block.py`; all have the same optimum. By default the strong form, or the cumulative
        one where the strong one would have more (job, end, slot) triples than `STRONG_SIZE`, or
        `RELAXED_STRONG_SIZE` in a relaxation.
    aggregate : bool
        Whether the forms other than the printed one add up identical servers; without it the
        program is larger, but every optimum is a solution.

    Returns
    -------
    ConcreteModel
        Blocks ``job[i]``, linking rows ``eq_4`` and ``eq_5`` over (pool, resource, slot), each
        scaled by the capacity of one server, and the objective ``eq_1``.
    """
    instance.check_formulation(formulation)
    if form is not None and form not in FORMS:
        raise InputError("form", form, f"must be one of {', '.join(FORMS)}")
    program = plan_program(instance, commitments or Commitments(), form or "strong", aggregate)
    if form is None:
        size = sum(job.facts.size for job in program.jobs if job.facts is not None)
        limit = RELAXED_STRONG_SIZE if relax else STRONG_SIZE
        form = "strong" if size <= limit else "cumulative"
        program = replace(program, form=form)
    model = pyo.ConcreteModel()
    model.program = program
    open_jobs = [job.index for job in program.jobs if job.facts is not None]
    model.job = pyo.Block(open_jobs)
    for job in program.jobs:
        if job.facts is not None:
            add_job(model.job[job.index], job.facts, form, relax=relax, must_run=False)
    constant = float(sum(job.utility for job in program.jobs))
    model.eq_1 = pyo.Objective(
        expr=pyo.quicksum([model.job[i].utility for i in open_jobs]) + constant,
        sense=pyo.maximize,
    )
    _add_capacity(model, "eq_4", "y", program.worker_pools, instance.worker_demand)
    _add_capacity(model, "eq_5", "z", program.ps_pools, instance.ps_demand)
    if form == "printed":
        _add_history(model, program)
    return model


def _add_capacity(model: Any, name: str, variable: str, pools: Pools, demand: Array) -> None:
    """(4) or (5): one row a (pool, resource, slot) that some job can use."""
    terms: dict[tuple[int, int, int], list[Any]] = {}
    scale = np.where(pools.capacity > 0, pools.capacity, 1.0).tolist()
    amounts = demand.tolist()
    for index in model.job:
        used = [(r, amount) for r, amount in enumerate(amounts[index]) if amount > 0]
        for (pool, slot), var in getattr(model.job[index], variable).items():
            for r, amount in used:
                terms.setdefault((pool, r, slot), []).append((amount / scale[pool][r]) * var)
    free = (pools.free / np.array(scale)[:, None, :]).tolist()
    size = pools.size.tolist()
    rows = pyo.Constraint(
        sorted(terms),
        rule=lambda _, pool, r, slot: (
            pyo.quicksum(terms[pool, r, slot]) <= size[pool] * max(0.0, free[pool][slot][r])
        ),
    )
    setattr(model, name, rows)


def _add_history(model: Any, program: Program) -> None:
    """Printed form: before `now` an admitted job runs exactly what ran."""
    index, right = [], {}
    for job in program.jobs:
        if job.facts is None:
            continue
        for variable, past in zip("yz", job.history, strict=True):
            for (slot, server), count in np.ndenumerate(past):
                if slot + 1 >= job.facts.first:
                    key = (job.index, variable, server, slot + 1)
                    index.append(key)
                    right[key] = int(count)
    model.history = pyo.Constraint(
        index,
        rule=lambda m, i, variable, server, slot: (
            getattr(m.job[i], variable)[server, slot]
            == right[i, variable, server, slot] * m.job[i].admitted
        ),
    )


def load(model: pyo.ConcreteModel, solution: OasisSolution) -> None:
    """Set the variables from a feasible solution that keeps the model's commitments.

    The strong form does exactly the work of a job: workers beyond it are dropped from the end.
    """
    program: Program = model.program
    for job in program.jobs:
        if job.facts is None:
            continue
        record = program.instance.jobs[job.index]
        block = model.job[job.index]
        admitted = solution.completion(record.name) is not None
        shapes = [len(program.instance.worker_servers), len(program.instance.ps_servers)]
        y, z = (
            deployed[record.name].copy()
            if admitted
            else np.zeros((program.instance.horizon, width), dtype=np.int64)
            for deployed, width in zip((solution.workers, solution.ps), shapes, strict=True)
        )
        if program.form == "printed":
            end = solution.completion(record.name)
            block.x.set_value(int(admitted))
            for e in block.u:
                block.u[e].set_value(int(e == end))
        else:
            y[: job.facts.first - 1] = 0
            z[: job.facts.first - 1] = 0
            _trim(program.instance, record, y, z, job.facts.work if admitted else 0)
            _load_ends(block, y)
        for variable, counts, pools in (
            (block.y, y, program.worker_pools),
            (block.z, z, program.ps_pools),
        ):
            for (pool, slot), var in variable.items():
                var.set_value(int(counts[slot - 1, pools.members[pool]].sum()))


def _load_ends(block: Any, y: IntArray) -> None:
    per_slot = y.sum(axis=1)
    running = np.flatnonzero(per_slot)
    end = None
    if running.size:
        last = int(running[-1]) + 1
        end = min((e for e in block.u if e >= last), default=None)
    for e in block.u:
        block.u[e].set_value(int(e == end))
    if hasattr(block, "n"):
        for (e, slot), var in block.n.items():
            var.set_value(int(per_slot[slot - 1]) if e == end else 0)
        return
    done = np.cumsum(per_slot)
    for slot in block.done:
        block.done[slot].set_value(int(done[slot - 1]))
        block.ended[slot].set_value(int(end is not None and end <= slot))


def _trim(instance: OasisInstance, job: OasisJob, y: IntArray, z: IntArray, work: int) -> None:
    """Drop workers beyond `work` from the end, and PSs beyond what (6) needs."""
    surplus = int(y.sum()) - work
    for slot in range(y.shape[0] - 1, -1, -1):
        for server in range(y.shape[1] - 1, -1, -1):
            drop = min(surplus, int(y[slot, server]))
            if drop > 0:
                y[slot, server] -= drop
                surplus -= drop
        _trim_ps(instance, job, int(y[slot].sum()), z[slot])


def _trim_ps(instance: OasisInstance, job: OasisJob, workers: int, row: IntArray) -> None:
    """Drop PSs of one slot beyond what (6) needs."""
    surplus = int(row.sum()) - instance.ps_needed(job, workers)
    for server in range(row.size - 1, -1, -1):
        drop = min(surplus, int(row[server]))
        if drop > 0:
            row[server] -= drop
            surplus -= drop


def extract(
    model: pyo.ConcreteModel, instance: OasisInstance, formulation: str | None = None
) -> OasisSolution | None:
    """Read the solution at the variables' values; None if it could not be placed on the servers.

    Jobs whose ``admitted`` rounds to 0 are left out. The result is checked by the caller with
    ``violations()``.
    """
    program: Program = model.program
    horizon = instance.horizon
    workers, ps = {}, {}
    open_jobs = []
    for job in program.jobs:
        name = instance.jobs[job.index].name
        if job.facts is None:
            kept = job.utility != 0 or job.history[0].sum() >= instance.work[job.index]
            if kept:
                workers[name], ps[name] = job.history
        elif round(pyo.value(model.job[job.index].admitted, exception=False) or 0) == 1:
            open_jobs.append(job)
    if program.form == "printed":
        for job in open_jobs:
            block, name = model.job[job.index], instance.jobs[job.index].name
            workers[name] = _read(block.y, (len(instance.worker_servers), horizon)).T
            ps[name] = _read(block.z, (len(instance.ps_servers), horizon)).T
        return OasisSolution(instance, workers, ps, formulation=formulation)
    placed_workers = _place(model, program, open_jobs, "y")
    placed_ps = _place(model, program, open_jobs, "z")
    if placed_workers is None or placed_ps is None:
        return None
    for position, job in enumerate(open_jobs):
        name = instance.jobs[job.index].name
        workers[name] = placed_workers[position] + job.history[0]
        ps[name] = placed_ps[position] + job.history[1]
    return OasisSolution(instance, workers, ps, formulation=formulation)


def _read(variable: Any, shape: tuple[int, int]) -> IntArray:
    """Counts by pool and slot, shape (pools, T)."""
    counts = np.zeros(shape, dtype=np.int64)
    for (pool, slot), var in variable.items():
        counts[pool, slot - 1] = round(var.value or 0.0)
    return counts


def _place(
    model: Any, program: Program, jobs: list[ProgramJob], variable: str
) -> list[IntArray] | None:
    """Counts by slot and server of each job, shape (T, servers); None if a slot was not placed."""
    instance = program.instance
    roles = {
        "y": (program.worker_pools, instance.worker_demand, len(instance.worker_servers)),
        "z": (program.ps_pools, instance.ps_demand, len(instance.ps_servers)),
    }
    pools, demand, servers = roles[variable]
    horizon = instance.horizon
    counts = np.zeros((len(jobs), len(pools.members), horizon), dtype=np.int64)
    for position, job in enumerate(jobs):
        block = model.job[job.index]
        counts[position] = _read(getattr(block, variable), (len(pools.members), horizon))
        if variable == "z":
            per_slot = _read(block.y, (len(program.worker_pools.members), horizon)).sum(axis=0)
            for slot in range(horizon):
                _trim_ps(
                    instance,
                    instance.jobs[job.index],
                    int(per_slot[slot]),
                    counts[position, :, slot],
                )
    own = demand[[job.index for job in jobs]]
    placed = np.zeros((len(jobs), horizon, servers), dtype=np.int64)
    for slot in np.flatnonzero(counts.any(axis=(0, 1))).tolist():
        free = [
            np.repeat(pools.free[g][slot + 1][None], len(group), axis=0)
            for g, group in enumerate(pools.members)
        ]
        found = place_slot(list(counts[:, :, slot].T), own, free)
        if found is None:
            return None
        for group, one in zip(pools.members, found, strict=True):
            placed[:, slot, group] = one
    return list(placed)


def capacity_prices(model: pyo.ConcreteModel, duals: Mapping[Any, float]) -> dict[str, Array]:
    """Duals of (4) and (5) as prices of the oracle's rows with one row a server.

    Parameters
    ----------
    model : ConcreteModel
        From `build_offline` with ``relax=True``.
    duals : mapping
        Shadow price by constraint.

    Returns
    -------
    dict
        ``worker_capacity`` of shape (H, R, T), ``ps_capacity`` of shape (K, R, T).
    """
    program: Program = model.program
    instance = program.instance
    prices = {}
    for name, rows, pools, capacity in (
        ("worker_capacity", model.eq_4, program.worker_pools, instance.worker_capacity),
        ("ps_capacity", model.eq_5, program.ps_pools, instance.ps_capacity),
    ):
        array = np.zeros((*capacity.shape, instance.horizon))
        for (pool, resource, slot), row in rows.items():
            scale = pools.capacity[pool, resource] or 1.0
            price = max(0.0, duals.get(row, 0.0)) / scale
            array[pools.members[pool], resource, slot - 1] = price
        prices[name] = array
    return prices


def build_subproblem(
    instance: OasisInstance, job: str | int, formulation: str | None = None
) -> pyo.ConcreteModel:
    """Build subproblem (27) of one job on real servers: the best schedule at given prices.

    Parameters
    ----------
    instance : OasisInstance
        The instance.
    job : str or int
        Name or position of the job.
    formulation : str, optional
        The family has one.

    Returns
    -------
    ConcreteModel
        The strong block ``job[i]``, one pool a server; objective ``eq_27``; ``eq_30`` and
        ``eq_31`` limit what fits. Prices and room are mutable: see `set_subproblem`.
    """
    instance.check_formulation(formulation)
    index = instance.job_index(job) if isinstance(job, str) else job
    record = instance.jobs[index]
    horizon, num_resources = instance.horizon, len(instance.resources)
    nothing = [
        np.zeros((horizon + 1, capacity.shape[0], num_resources))
        for capacity in (instance.worker_capacity, instance.ps_capacity)
    ]
    worker_pools = Pools.of(instance.worker_capacity, nothing[0], grouped=False)
    ps_pools = Pools.of(instance.ps_capacity, nothing[1], grouped=False)
    facts = job_facts(instance, record, worker_pools, ps_pools, record.arrival, 0)
    no_workers, no_ps = (
        np.zeros((horizon, capacity.shape[0]), dtype=np.int64)
        for capacity in (instance.worker_capacity, instance.ps_capacity)
    )
    own = ProgramJob(index, (no_workers, no_ps), facts)
    model = pyo.ConcreteModel()
    model.program = Program(instance, "strong", worker_pools, ps_pools, [own])
    model.job = pyo.Block([index])
    block = model.job[index]
    add_job(block, facts, "strong", relax=False, must_run=True)
    _add_mutables(model, "worker", block.y, facts.worker_room, "eq_30")
    _add_mutables(model, "ps", block.z, facts.ps_room, "eq_31")
    cost = pyo.quicksum(model.worker_price[key] * var for key, var in block.y.items())
    cost += pyo.quicksum(model.ps_price[key] * var for key, var in block.z.items())
    model.eq_27 = pyo.Objective(expr=block.utility - cost, sense=pyo.maximize)
    return model


def _add_mutables(model: Any, role: str, variable: Any, room: IntArray, limit: str) -> None:
    keys = list(variable)
    full = {key: int(room[key]) for key in keys}
    price = pyo.Param(keys, initialize=0.0, mutable=True, domain=pyo.Reals)
    fits = pyo.Param(keys, initialize=full, mutable=True, domain=pyo.NonNegativeIntegers)
    setattr(model, f"{role}_price", price)
    setattr(model, f"{role}_room", fits)
    rows = pyo.Constraint(
        keys, rule=lambda _, server, slot: variable[server, slot] <= fits[server, slot]
    )
    setattr(model, limit, rows)


def set_subproblem(
    model: pyo.ConcreteModel,
    prices: Mapping[str, Array],
    residual: Mapping[str, Array] | None = None,
) -> None:
    """Set the prices and the residual capacities of a subproblem.

    Parameters
    ----------
    model : ConcreteModel
        From `build_subproblem`.
    prices : mapping
        ``worker_capacity`` of shape (H, R, T) and ``ps_capacity`` of shape (K, R, T).
    residual : mapping, optional
        What is left of the capacities, in the same shapes; None for all of it.
    """
    program: Program = model.program
    record = program.instance.jobs[program.jobs[0].index]
    demands = program.instance.demand_of(record)
    capacities = (program.instance.worker_capacity, program.instance.ps_capacity)
    most = (record.chunks, max(1, program.instance.ps_needed(record, record.chunks)))
    for role, demand, capacity, limit in zip(
        ("worker", "ps"), demands, capacities, most, strict=True
    ):
        name = f"{role}_capacity"
        unit = np.einsum("hrt,r->ht", prices[name], demand)
        left = np.repeat(capacity[:, :, None], program.instance.horizon, axis=2)
        if residual is not None:
            left = residual[name]
        room = how_many_fit(left.transpose(0, 2, 1), demand, limit)
        price_of, room_of = getattr(model, f"{role}_price"), getattr(model, f"{role}_room")
        for server, slot in price_of:
            price_of[server, slot].set_value(float(unit[server, slot - 1]))
            room_of[server, slot].set_value(int(room[server, slot - 1]))
