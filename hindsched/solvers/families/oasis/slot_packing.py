"""What real servers do in one slot: the jobs' workers and PSs that are worth most together.

An integer program over the servers as they are. Up to what the fluid program wants of a job a
worker counts in full, beyond it less; a job that must run so many workers now to end in time brings
what that is worth only if it does. Servers that are alike and hold few patterns are taken together:
that leaves nothing to tell apart, and the relaxation is nearly whole.
"""

from __future__ import annotations

import math
from threading import Event
from typing import NamedTuple

import numpy as np

from hindsched.arrays import Ints
from hindsched.instances.decimals import Whole, how_many_fit
from hindsched.solvers.door.work import spend
from hindsched.solvers.families.oasis.resources import OasisOracle
from hindsched.solvers.families.oasis.sparse_program import SparseProgram
from hindsched.solvers.kernels.oasis.maximal_patterns import server_patterns

AHEAD = 0.8
"""Worth of a worker beyond what is wanted, relative to one before."""
IDLE_PS = 1e-3
"""Cost of a PS relative to the worth of a worker: none is placed in vain. Patterns are maximal and
cost nothing: what is not needed of them is taken away."""
MOST_SECONDS = 6.0
"""Seconds after which what was found of a slot counts."""
SOLVER = {
    "mip_rel_gap": 0.005,
    "mip_max_nodes": 10,
    "mip_allow_restart": False,
    "mip_heuristic_run_feasibility_jump": False,
    "mip_heuristic_run_root_reduced_cost": False,
    "mip_heuristic_run_shifting": True,
    "mip_heuristic_run_zi_round": True,
}
"""Options of HiGHS: where it stops, and the heuristics that gain more here than they take."""
MOST_PATTERNS = 100
"""Patterns of one server up to which those that are alike are packed by patterns."""


class Wish(NamedTuple):
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
    instance, program = oracle.instance, SparseProgram()
    ps_each = [float(instance.ps_per_worker(instance.jobs[wish.job])) for wish in wishes]
    workers = _Side(oracle, 0, wishes, [wish.most for wish in wishes], program)
    most_ps = [wish.most if each else 0 for wish, each in zip(wishes, ps_each, strict=True)]
    ps = _Side(oracle, 1, wishes, most_ps, program)
    for number, wish in enumerate(wishes):
        wanted = min(wish.most, math.ceil(wish.workers - 1e-6))
        parts = (
            program.column(wish.worth, wanted),
            program.column(AHEAD * wish.worth, wish.most - wanted),
        )
        program.row([*workers.units[number], *((p, -1.0) for p in parts)], 0.0, math.inf)
        if ps_each[number]:
            served = [(part, -ps_each[number]) for part in parts]
            program.row([*ps.units[number], *served], 0.0, math.inf)
        if 0 < wish.due <= min(wish.most, workers.room[number]):
            in_time = program.column(wish.due_worth, 1.0, whole=True)
            program.row([*((p, 1.0) for p in parts), (in_time, -float(wish.due))], 0.0, math.inf)
    program.load(interrupted, **SOLVER)
    found = program.solve(min(seconds, MOST_SECONDS))
    spend(1 + max(0, int(program.highs.getInfo().mip_node_count)))
    if not found:
        return {}
    values = np.rint(program.values()).astype(np.int64)
    placed = {}
    for wish, own, served in zip(wishes, workers.held(values), ps.held(values), strict=True):
        needed = oracle.block(wish.job).task.needed
        trim_to(own, wish.most)
        while needed[own.sum()] > served.sum():
            trim_to(own, int(own.sum()) - 1)
        trim_to(served, int(needed[own.sum()]))
        if own.any():
            placed[wish.job] = own, served
    return placed


class _Side:
    """What worker servers (0) or PS servers (1) hold of each job, in columns of a program.

    Servers that are alike take patterns, each so many of them, where these are few; else every
    server has a column for each job's units.

    Attributes
    ----------
    room : list of int
        Units that all servers hold of each job alone.
    units : list of list
        Terms that add up to the units of each job.
    """

    def __init__(
        self, oracle: OasisOracle, side: int, wishes: list[Wish], most: list[int],
        program: SparseProgram,
    ) -> None:  # fmt: skip
        instance, jobs = oracle.instance, [wish.job for wish in wishes]
        capacity = (instance.worker_capacity, instance.ps_capacity)[side]
        demand = (instance.worker_demand, instance.ps_demand)[side][jobs]
        groups = (oracle.worker_groups, oracle.ps_groups)[side]
        whole, units = (instance.worker_units, instance.ps_units)[side].tables
        self._exact = whole, units[jobs]
        self.units: list[list[tuple[int, float]]] = [[] for _ in wishes]
        self._alike: list[tuple[list[int], list[int], Ints]] = []  # servers, columns, patterns
        self._single: list[tuple[int, int, int]] = []  # server, job, column
        fit = [how_many_fit(capacity[groups.first], *of) for of in zip(demand, most, strict=True)]
        self.room = [int(own @ groups.size) for own in fit]
        for group, room in enumerate(np.array(fit).T):
            able, servers = np.flatnonzero(room), np.flatnonzero(groups.member == group).tolist()
            if not able.size:
                continue
            first = capacity[servers[0]]
            patterns = server_patterns(first, demand[able], room[able], MOST_PATTERNS)
            if patterns is not None:
                columns = [program.column(0.0, len(servers), whole=True) for _ in patterns]
                program.row([(column, 1.0) for column in columns], -math.inf, len(servers))
                for column, pattern in zip(columns, patterns, strict=True):
                    for number, count in zip(able.tolist(), pattern.tolist(), strict=True):
                        self.units[number] += [(column, float(count))] if count else []
                wide = np.zeros((len(patterns), len(wishes)), dtype=np.int64)
                wide[:, able] = patterns
                self._alike.append((servers, columns, wide))
                continue
            for server in servers:
                columns = []
                for number in able.tolist():
                    cost = IDLE_PS * wishes[number].worth if side else 0.0
                    columns.append(program.column(-cost, float(room[number]), whole=True))
                    self.units[number].append((columns[-1], 1.0))
                    self._single.append((server, number, columns[-1]))
                for resource, total in enumerate(capacity[server].tolist()):
                    amounts = demand[able, resource].tolist()
                    terms = [(c, a) for c, a in zip(columns, amounts, strict=True) if a]
                    if sum(program.most[column] * amount for column, amount in terms) > total:
                        program.row(terms, -math.inf, total)

    def held(self, values: Ints) -> Ints:
        """Units of the jobs on each server at a point, shape (J, servers), as servers hold them."""
        counts = np.zeros((len(self.units), len(self._exact[0])), dtype=np.int64)
        for server, number, column in self._single:
            counts[number, server] = values[column]
        for servers, columns, patterns in self._alike:
            taken = np.repeat(patterns, values[columns], axis=0)
            for server, pattern in zip(servers, taken, strict=False):
                counts[:, server] = pattern
        drop_overload(counts, *self._exact)
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


def trim_to(counts: Ints, total: int) -> None:
    """Take units from the last servers, in place, until so many are left."""
    surplus = int(counts.sum()) - total
    for server in np.flatnonzero(counts)[::-1].tolist():
        if surplus <= 0:
            break
        taken = min(surplus, int(counts[server]))
        counts[server] -= taken
        surplus -= taken
