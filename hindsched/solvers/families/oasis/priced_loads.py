"""Loads of one slot, found by asking which one is worth most, where there are too many to list.

A program of one slot over the servers as they are says what they do at most, if a worker of job i
is worth w_i:

    max sum_i w_i n_i,   n_i <= workers on all servers,   z_i <= PSs on all servers,
    z_i >= PSs of n_i workers,   a pattern on each server, or units within what it has.

Its dual bound holds for every load. The point found is a load, with the servers that hold it. Its
linear program takes a hundredth of the time and is nearly as good.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from threading import Event

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.decimals import how_many_fit
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.oasis.program import Pools
from hindsched.models.oasis.rounding import lines_below
from hindsched.solvers.door.highs import UNSOUND_PRESOLVE_RULES
from hindsched.solvers.door.interrupt import catch_interrupt
from hindsched.solvers.door.work import spend
from hindsched.solvers.families.oasis.patterns import server_patterns
from hindsched.solvers.families.oasis.slot_packing import trim_to
from hindsched.solvers.families.oasis.sparse_program import SparseProgram

MOST_PATTERNS = 120
"""Patterns of a server above which its units are counted job by job."""
MOST_UNITS = 2_000
"""Jobs x servers above which loads are not asked for."""

BEYOND = 0.01
"""Worth of a worker that is not wanted, relative to one that is."""
DEAREST, ALLOWED = 2.0**10, 1e-6
"""Worth of the dearest worker as the solver sees it, and what its tolerances leave out of a bound
for each unit that may be larger: below them it takes a worth for none, or two loads for equal."""
Enough = tuple[float, float]
"""A worth that no load reaches, and one that some load reaches: either is enough to know."""
Placed = tuple[Ints, Ints]
"""Workers and PSs of one slot, shapes (servers, I)."""


@dataclass(frozen=True)
class _Runs:
    """Columns that put units on identical servers.

    Parameters
    ----------
    first : int
        The first column.
    units : ndarray, shape (columns, J)
        What a server holds for each unit of a column.
    servers : ndarray of int
        The servers; a column is how many of them run its pattern, if there are patterns.
    is_pattern : bool
        Otherwise the columns count units on the one server that there is.
    """

    first: int
    units: Ints
    servers: Ints
    is_pattern: bool

    def place(self, values: Floats, held: Ints) -> None:
        """Write what a point puts on the servers, shape (servers, J)."""
        times = np.rint(values[self.first : self.first + len(self.units)]).astype(np.int64)
        rows = self.units.repeat(times, axis=0) if self.is_pattern else (times @ self.units)[None]
        held[self.servers[: len(rows)]] = rows[: len(self.servers)]


class _Slot:
    """The program of a slot in which some jobs may run; `needed` is PSs by number of workers."""

    def __init__(self, instance: OasisInstance, jobs: tuple[int, ...], needed: list[Ints]) -> None:
        self.jobs = np.array(jobs)
        program = SparseProgram()
        sides = []
        for capacity, demand, most in (
            (instance.worker_capacity, instance.worker_demand, [own.size - 1 for own in needed]),
            (instance.ps_capacity, instance.ps_demand, [int(own[-1]) for own in needed]),
        ):
            counts = [program.column(0.0, float(each), whole=True) for each in most]
            runs = list(_runs(program, capacity, demand[self.jobs], counts, np.array(most)))
            sides.append((counts, runs, len(capacity)))
        (workers, _, _), (ps, _, _) = self._sides = sides
        for job, own, n, z in zip(jobs, needed, workers, ps, strict=True):
            each = instance.ps_per_worker(instance.jobs[job])
            for slope, at_none in [*lines_below(own), (each, 0.0)]:
                program.row([(z, 1.0), (n, -slope)], min(0.0, at_none), math.inf)
        wanted = [program.column(0.0, float(own.size - 1)) for own in needed]
        for column, n in zip(wanted, workers, strict=True):
            program.row([(column, 1.0), (n, -1.0)], -math.inf, 0.0)
        self._workers = np.array(workers, dtype=np.int32)
        self._wanted = np.array(wanted, dtype=np.int32)
        self._allowed = ALLOWED * (1 + sum(own.size - 1 for own in needed))
        self._loaded = program.load(
            Event(), presolve_rule_off=UNSOUND_PRESOLVE_RULES, mip_allow_restart=False
        )
        program.whole = [False] * len(program.whole)
        self._linear = program.load(Event())

    def at_most(self, weights: Floats) -> float:
        """What no load is worth more than, by the linear program."""
        dearest = float(weights.max())
        if dearest <= 0:
            return 0.0
        scale, size = DEAREST / dearest, len(self.jobs)
        self._linear.highs.changeColsCost(size, self._workers, -weights * scale)
        if not (self._linear.solve(math.inf) and self._linear.is_optimal):
            return math.inf
        return (self._allowed - self._linear.objective) / scale

    def solve(
        self, weights: Floats, wanted: Ints | None, seconds: float, enough: Enough = (0.0, math.inf)
    ) -> tuple[float, Placed | None]:
        """The most that a load is worth, and one that is worth about as much, if one is found.

        Workers beyond what is wanted are worth next to nothing. It is enough to know that no load
        is worth as much as the first number says, or one that is worth the second.
        """
        highs, size = self._loaded.highs, len(self.jobs)
        dearest = float(weights.max())
        if dearest <= 0:
            return 0.0, None
        scale = DEAREST / dearest
        weights = weights * scale
        beyond = weights if wanted is None else BEYOND * weights
        highs.changeColsCost(size, self._workers, -beyond)
        highs.changeColsCost(size, self._wanted, -(weights - beyond))
        if wanted is not None:
            highs.changeColsBounds(size, self._wanted, np.zeros(size), wanted.astype(float))
        with catch_interrupt() as interrupted:
            self._loaded.listen_to(interrupted)
            below, found_one = (-scale * each for each in enough)
            found = self._loaded.solve(seconds, (below + self._allowed, found_one))
        spend(1 + self._loaded.nodes)
        bound = -float(highs.getInfo().mip_dual_bound) + self._allowed
        return bound / scale, self._placed() if found else None

    def _placed(self) -> Placed:
        values = self._loaded.values()
        held = []
        for counts, runs, servers in self._sides:
            units = np.zeros((servers, len(counts)), dtype=np.int64)
            for own in runs:
                own.place(values, units)
            held.append(units)
        return held[0], held[1]


def _runs(
    program: SparseProgram, capacity: Floats, demand: Floats, counts: list[int], most: Ints
) -> list[_Runs]:
    """Add what servers hold to a program, so that the counts are at most that."""
    held: list[list[tuple[int, float]]] = [[] for _ in counts]
    found: list[_Runs] = []
    pools = Pools.of(capacity, np.zeros((1, *capacity.shape)), grouped=True)
    for server, members in zip(pools.capacity, pools.members, strict=True):
        fits = np.array(
            [how_many_fit(server, own, int(n)) for own, n in zip(demand, most, strict=True)]
        )
        able = np.flatnonzero(fits > 0)
        if not able.size:
            continue
        patterns = server_patterns(server, demand[able], fits[able], MOST_PATTERNS)
        if patterns is None:
            alone = np.eye(len(counts), dtype=np.int64)[able]
            for one in members:
                first = len(program.value)
                columns = [program.column(0.0, float(fits[job]), whole=True) for job in able]
                for resource in np.flatnonzero(demand[able].any(axis=0)).tolist():
                    shares = (demand[able, resource] / server[resource]).tolist()
                    used = zip(columns, shares, strict=True)
                    program.row([(column, share) for column, share in used if share], -math.inf, 1)
                found.append(_Runs(first, alone, np.array([one]), is_pattern=False))
        else:
            units = np.zeros((len(patterns), len(counts)), dtype=np.int64)
            units[:, able] = patterns
            first = len(program.value)
            number = float(len(members))
            columns = [program.column(0.0, number, whole=True) for _ in patterns]
            program.row([(column, 1.0) for column in columns], -math.inf, number)
            found.append(_Runs(first, units, np.array(members), is_pattern=True))
    for own in found:
        for row, job in np.argwhere(own.units > 0).tolist():
            held[job].append((own.first + row, float(own.units[row, job])))
    for count, terms in zip(counts, held, strict=True):
        program.row([*terms, (count, -1.0)], 0.0, math.inf)
    return found


class PricedLoads:
    """The loads of an instance's servers that were asked for so far.

    Parameters
    ----------
    instance : OasisInstance
        The instance.
    needed : list of ndarray
        PSs by number of workers, of every job.
    """

    def __init__(self, instance: OasisInstance, needed: list[Ints]) -> None:
        self.instance, self._needed = instance, needed
        self._slots: dict[tuple[int, ...], _Slot] = {}
        self._placed: list[Placed] = []
        self._loads = np.zeros((0, len(needed)), dtype=np.int64)
        servers = len(instance.worker_servers) + len(instance.ps_servers)
        self.are_too_many = servers * len(needed) > MOST_UNITS

    def known(self, jobs: tuple[int, ...]) -> Ints:
        """Loads of some jobs, shape (loads, J)."""
        return np.unique(self._loads[:, jobs], axis=0)

    def most(
        self,
        jobs: tuple[int, ...],
        weights: Floats,
        seconds: float,
        enough: Enough = (0.0, math.inf),
    ) -> float:
        """The most that a load of some jobs is worth; a load that is worth it is known then.

        Parameters
        ----------
        jobs : tuple of int
            Who may run.
        weights : ndarray, shape (J,)
            Worth of a worker of each.
        seconds : float
            Time for it; the bound holds at any time.
        enough : tuple of float
            It is enough to know that no load is worth the first, or one that is worth the second.
        """
        bound, _ = self._ask(jobs, weights, None, seconds, enough)
        return bound

    def at_most(self, jobs: tuple[int, ...], weights: Floats) -> float:
        """What no load of some jobs is worth more than: quickly known, and mostly little more."""
        return self._slot(jobs).at_most(weights)

    def wanted(
        self, jobs: tuple[int, ...], weights: Floats, wanted: Ints, seconds: float
    ) -> Ints | None:
        """A load that does much of what is wanted, shape (J,), if one is found; known then."""
        _, found = self._ask(jobs, weights, wanted, seconds)
        return None if found is None else found[list(jobs)]

    def _ask(
        self,
        jobs: tuple[int, ...],
        weights: Floats,
        wanted: Ints | None,
        seconds: float,
        enough: Enough = (0.0, math.inf),
    ) -> tuple[float, Ints | None]:
        bound, placed = self._slot(jobs).solve(weights, wanted, seconds, enough)
        return bound, None if placed is None else self._take(jobs, placed)

    def _slot(self, jobs: tuple[int, ...]) -> _Slot:
        if jobs not in self._slots:
            self._slots[jobs] = _Slot(self.instance, jobs, [self._needed[job] for job in jobs])
        return self._slots[jobs]

    def _take(self, jobs: tuple[int, ...], placed: Placed) -> Ints:
        """Know a load from here on, shape (I,): as many workers as its PSs serve."""
        load = np.zeros(len(self._needed), dtype=np.int64)
        wide = []
        for units in placed:
            own = np.zeros((len(units), len(self._needed)), dtype=np.int64)
            own[:, jobs] = units
            wide.append(own)
        for job in jobs:
            served = int(np.searchsorted(self._needed[job], wide[1][:, job].sum(), side="right"))
            load[job] = min(int(wide[0][:, job].sum()), served - 1)
        if not (self._loads >= load).all(axis=1).any():
            self._loads = np.concatenate([self._loads, load[None]])
            self._placed.append((wide[0], wide[1]))
        return load

    def __len__(self) -> int:
        return len(self._placed)

    def on_servers(self, jobs: tuple[int, ...], workers: Ints) -> Placed | None:
        """Workers and PSs by server, shape (servers, J), of what lies below a known load."""
        above = np.flatnonzero((self._loads[:, jobs] >= workers).all(axis=1))
        if not above.size:
            return None
        held = [units[:, jobs] for units in self._placed[above[0]]]
        for at, (job, n) in enumerate(zip(jobs, workers.tolist(), strict=True)):
            trim_to(held[0][:, at], n)
            trim_to(held[1][:, at], int(self._needed[job][n]))
        return held[0], held[1]
