"""What real servers do in one slot: the jobs' workers and PSs that are worth most together.

An integer program over the servers as they are. Up to what the fluid program wants of a job a
worker counts in full, beyond it less; a job that must run so many workers now to end in time brings
what that is worth only if it does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from threading import Event

import numpy as np

from hindsched.arrays import Ints
from hindsched.instances.decimals import Whole, how_many_fit
from hindsched.solvers.methods.oasis.sparse_program import SparseProgram
from hindsched.solvers.pricing.oasis.resources import OasisOracle
from hindsched.solvers.work import spend

AHEAD = 0.8
"""Worth of a worker beyond what is wanted, relative to one before."""
IDLE_PS = 1e-3
"""Cost of a PS relative to the worth of a worker: none is placed in vain."""
GAP, MOST_NODES, MOST_SECONDS = 0.005, 10, 6.0
"""Where the solver stops."""


@dataclass(frozen=True)
class Wish:
    """What a job should do in a slot.

    Parameters
    ----------
    job : int
        Its position.
    workers : float
        What the fluid program gives it.
    most : int
        The most workers that it can use.
    worth : float
        Of one worker.
    due, due_worth : int, float
        Workers without which it ends later, and what that would lose.
    """

    job: int
    workers: float
    most: int
    worth: float
    due: int
    due_worth: float


def pack_slot(
    oracle: OasisOracle, wishes: list[Wish], seconds: float, interrupted: Event
) -> dict[int, tuple[Ints, Ints]]:
    """Place workers and PSs of one slot on real servers.

    Parameters
    ----------
    oracle : OasisOracle
        Oracle of the instance.
    wishes : list of Wish
        Jobs that may run.
    seconds : float
        Limit; what was found by then counts.
    interrupted : Event
        Set by Ctrl-C.

    Returns
    -------
    dict
        Workers and PSs by server, by job that runs.
    """
    instance = oracle.instance
    program = SparseProgram()
    capacity = (instance.worker_capacity, instance.ps_capacity)
    demands = (instance.worker_demand, instance.ps_demand)
    placed: tuple[dict[int, list[tuple[int, int]]], ...] = ({}, {})
    used: dict[tuple[int, int, int], list[tuple[int, float]]] = {}
    for wish in wishes:
        ps_each = float(instance.ps_per_worker(instance.jobs[wish.job]))
        wanted = min(wish.most, math.ceil(wish.workers - 1e-6))
        parts = [
            program.column(wish.worth, wanted),
            program.column(AHEAD * wish.worth, wish.most - wanted),
        ]
        for side in (0, 1):
            demand = demands[side][wish.job]
            room = how_many_fit(capacity[side], demand, wish.most)
            value = -IDLE_PS * wish.worth if side else 0.0
            own = placed[side][wish.job] = []
            for server in np.flatnonzero(room > 0).tolist():
                column = program.column(value, float(room[server]), whole=True)
                own.append((server, column))
                for resource in np.flatnonzero(demand).tolist():
                    entry = (column, float(demand[resource]))
                    used.setdefault((side, server, resource), []).append(entry)
            if side == 0 and 0 < wish.due <= min(wish.most, room.sum()):
                in_time = program.column(wish.due_worth, 1.0, whole=True)
                terms = [(part, 1.0) for part in parts]
                program.row([*terms, (in_time, -float(wish.due))], 0.0, math.inf)
            units = [(column, 1.0) for _, column in own]
            if side == 0:
                program.row([*units, *((part, -1.0) for part in parts)], 0.0, 0.0)
            elif ps_each:
                program.row([*units, *((part, -ps_each) for part in parts)], 0.0, math.inf)
    for (side, server, resource), terms in used.items():
        total = float(capacity[side][server, resource])
        if sum(program.most[column] * amount for column, amount in terms) > total:
            program.row(terms, -math.inf, total)
    loaded = program.load(
        interrupted, mip_rel_gap=GAP, mip_max_nodes=MOST_NODES, mip_allow_restart=False
    )
    found = loaded.solve(min(seconds, MOST_SECONDS))
    spend(1 + loaded.nodes)
    if not found:
        return {}
    values = np.rint(loaded.values()).astype(np.int64)
    jobs = [wish.job for wish in wishes]
    held = [_held(oracle, side, jobs, placed[side], values) for side in (0, 1)]
    for job, workers, ps in zip(jobs, *held, strict=True):
        _serve(oracle.block(job).task.needed, workers, ps)
    return {
        job: (workers, ps) for job, workers, ps in zip(jobs, *held, strict=True) if workers.any()
    }


def _held(
    oracle: OasisOracle,
    side: int,
    jobs: list[int],
    placed: dict[int, list[tuple[int, int]]],
    values: Ints,
) -> Ints:
    """Units of the jobs on each server at a point, shape (J, servers), as servers hold them."""
    instance = oracle.instance
    capacity, demand = (instance.worker_units, instance.ps_units)[side].tables
    counts = np.zeros((len(jobs), len(capacity)), dtype=np.int64)
    for own, job in zip(counts, jobs, strict=True):
        for server, column in placed[job]:
            own[server] = values[column]
    drop_overload(counts, capacity, demand[jobs])
    return counts


def drop_overload(counts: Ints, capacity: Whole, demand: Whole) -> None:
    """Take away, in place, units that only a solver's tolerance lets into a server.

    Parameters
    ----------
    counts : ndarray of int, shape (J, servers)
        Units of each job on each server.
    capacity, demand : ndarray, shapes (servers, R), (J, R)
        In whole numbers.
    """
    used = counts.T.astype(demand.dtype) @ demand
    for server in np.flatnonzero((used > capacity).any(axis=1)).tolist():
        while (over := used[server] > capacity[server]).any():
            guilty = (counts[:, server] > 0) & (demand[:, over] > 0).any(axis=1)
            last = int(np.flatnonzero(guilty)[-1])
            counts[last, server] -= 1
            used[server] -= demand[last]


def _serve(needed: Ints, workers: Ints, ps: Ints) -> None:
    """Leave a job, in place, as many PSs as its workers need, or as many workers as are served."""
    trim_to(ps, int(needed[workers.sum()]))
    while needed[workers.sum()] > ps.sum():
        trim_to(workers, int(workers.sum()) - 1)
    trim_to(ps, int(needed[workers.sum()]))


def trim_to(counts: Ints, total: int) -> None:
    """Take units from the last servers until so many are left."""
    surplus = int(counts.sum()) - total
    for server in np.flatnonzero(counts)[::-1].tolist():
        if surplus <= 0:
            break
        taken = min(surplus, int(counts[server]))
        counts[server] -= taken
        surplus -= taken
