"""What real servers do in one slot: the jobs' workers and PSs that are worth most together.

An integer program over the servers as they are. Up to what the fluid program wants of a job a
worker counts in full, beyond it less; a job that must run so many workers now to end in time brings
what that is worth only if it does. Servers that are alike and hold few patterns are taken together:
that leaves nothing to tell apart, and the relaxation is nearly whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from threading import Event

import numpy as np

from hindsched.arrays import Ints
from hindsched.instances.decimals import Whole, how_many_fit
from hindsched.solvers.door.work import spend
from hindsched.solvers.families.oasis.patterns import server_patterns
from hindsched.solvers.families.oasis.resources import OasisOracle
from hindsched.solvers.families.oasis.sparse_program import SparseProgram

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
    instance, program = oracle.instance, SparseProgram()
    parts = []
    for wish in wishes:
        wanted = min(wish.most, math.ceil(wish.workers - 1e-6))
        parts.append([
            program.column(wish.worth, wanted),
            program.column(AHEAD * wish.worth, wish.most - wanted),
        ])  # fmt: skip
    workers, ps = (_Side(oracle, side, wishes, program) for side in (0, 1))
    for number, wish in enumerate(wishes):
        ps_each = float(instance.ps_per_worker(instance.jobs[wish.job]))
        if 0 < wish.due <= min(wish.most, workers.room[number]):
            in_time = program.column(wish.due_worth, 1.0, whole=True)
            terms = [(part, 1.0) for part in parts[number]]
            program.row([*terms, (in_time, -float(wish.due))], 0.0, math.inf)
        served = [(part, -1.0) for part in parts[number]]
        program.row([*workers.units[number], *served], 0.0, math.inf)
        if ps_each:
            served = [(part, -ps_each) for part in parts[number]]
            program.row([*ps.units[number], *served], 0.0, math.inf)
    loaded = program.load(interrupted, **SOLVER)
    found = loaded.solve(min(seconds, MOST_SECONDS))
    spend(1 + loaded.nodes)
    if not found:
        return {}
    values = np.rint(loaded.values()).astype(np.int64)
    placed = {}
    for wish, *held in zip(wishes, workers.held(values), ps.held(values), strict=True):
        trim_to(held[0], wish.most)
        _serve(oracle.block(wish.job).task.needed, *held)
        if held[0].any():
            placed[wish.job] = held[0], held[1]
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
        self, oracle: OasisOracle, side: int, wishes: list[Wish], program: SparseProgram
    ) -> None:
        instance = oracle.instance
        jobs = [wish.job for wish in wishes]
        self._program = program
        self._capacity = (instance.worker_capacity, instance.ps_capacity)[side]
        self._demand = (instance.worker_demand, instance.ps_demand)[side][jobs]
        exact = (instance.worker_units, instance.ps_units)[side].tables
        self._exact = exact[0], exact[1][jobs]
        self._values = [-IDLE_PS * wish.worth if side else 0.0 for wish in wishes]
        self.units: list[list[tuple[int, float]]] = [[] for _ in wishes]
        self._alike: list[tuple[Ints, list[tuple[int, Ints]]]] = []
        self._single: list[tuple[int, int, int]] = []
        groups = (oracle.worker_groups, oracle.ps_groups)[side]
        most = [
            wish.most if side == 0 or instance.ps_per_worker(instance.jobs[wish.job]) else 0
            for wish in wishes
        ]
        room = [how_many_fit(self._capacity[groups.first], *each)
                for each in zip(self._demand, most, strict=True)]  # fmt: skip
        self.room = [int(each @ groups.size) for each in room]
        for group, each in enumerate(np.array(room).T):
            able, servers = np.flatnonzero(each), np.flatnonzero(groups.member == group)
            if not able.size:
                continue
            capacity, demand = self._capacity[servers[0]], self._demand[able]
            patterns = server_patterns(capacity, demand, each[able], MOST_PATTERNS)
            if patterns is None:
                for server in servers.tolist():
                    self._add_server(server, able.tolist(), each)
            else:
                whole = np.zeros((len(patterns), len(wishes)), dtype=np.int64)
                whole[:, able] = patterns
                self._add_patterns(servers, whole)

    def _add_patterns(self, servers: Ints, patterns: Ints) -> None:
        columns = []
        for pattern in patterns:
            columns.append(self._program.column(0.0, float(servers.size), whole=True))
            for number in np.flatnonzero(pattern).tolist():
                self.units[number].append((columns[-1], float(pattern[number])))
        terms = [(column, 1.0) for column in columns]
        self._program.row(terms, -math.inf, float(servers.size))
        self._alike.append((servers, list(zip(columns, patterns, strict=True))))

    def _add_server(self, server: int, able: list[int], room: Ints) -> None:
        program, used = self._program, dict[int, list[tuple[int, float]]]()
        for number in able:
            column = program.column(self._values[number], float(room[number]), whole=True)
            self.units[number].append((column, 1.0))
            self._single.append((server, number, column))
            for resource in np.flatnonzero(self._demand[number]).tolist():
                entry = (column, float(self._demand[number, resource]))
                used.setdefault(resource, []).append(entry)
        for resource, terms in used.items():
            total = float(self._capacity[server, resource])
            if sum(program.most[column] * amount for column, amount in terms) > total:
                program.row(terms, -math.inf, total)

    def held(self, values: Ints) -> Ints:
        """Units of the jobs on each server at a point, shape (J, servers), as servers hold them."""
        counts = np.zeros((len(self.units), len(self._capacity)), dtype=np.int64)
        for server, number, column in self._single:
            counts[number, server] = values[column]
        for servers, patterns in self._alike:
            taken = [pattern for column, pattern in patterns for _ in range(values[column])]
            for server, pattern in zip(servers.tolist(), taken, strict=False):
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
