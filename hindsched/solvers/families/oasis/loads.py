"""What jobs can run together in one slot: all maximal loads of the servers as they are.

A load is a number of workers by job that servers hold together with the PSs that these workers
need. What worker servers hold is a sum of one pattern a server, what PS servers hold another one,
and a load lies below one of each. The hull of the loads is much smaller than the two hulls of
patterns taken together, for it knows that workers and PSs are whole at the same time. Every slot
has the same loads, so that they are worked out once for each set of jobs.
"""

from __future__ import annotations

import math

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solvers.families.oasis.patterns import server_patterns
from hindsched.solvers.kernels.oasis.maximal_vectors import maximal_sums

MOST_PATTERNS, MOST_LOADS = 2_000, 5_000
"""Patterns of one server, and loads or other sums of them, above which these are too many: with
2,000 loads a hard plateau of ten jobs (seed 36 of `benchmarks/tight.py`) stays open."""
MOST_SUMS = 500_000
"""Sums of patterns that are compared at once."""
MOST_COMPARISONS, COMPARISONS_A_SUM = 100_000_000, 50
"""Effort for one set of jobs, a tenth of a second: comparisons of two sums, and as how many of
them making a sum counts. The sets whose loads decided anything needed three quarters at most."""
MOST_FAILED = 2
"""By how many more sets of jobs may have too many loads than have not."""


class _TooMany(Exception):
    pass


class _Effort:
    """What finding the loads of one set of jobs took."""

    def __init__(self) -> None:
        self._left = MOST_COMPARISONS

    def maximal(self, first: Ints, second: Ints, most: Ints) -> Ints:
        """Sums of two vectors, cut off at `most`, that no other one is at least as large as."""
        number = len(first) * len(second)
        self._left -= COMPARISONS_A_SUM * number
        if number > MOST_SUMS or self._left < 0:
            raise _TooMany
        found, compared = maximal_sums(first, second, most, MOST_LOADS, self._left)
        self._left -= compared
        if not len(found):
            raise _TooMany
        return found


class _Side:
    """Worker servers or PS servers.

    Parameters
    ----------
    capacity, demand : ndarray, shapes (servers, R), (I, R)
        What a server has and a unit of a job needs.
    """

    def __init__(self, capacity: Floats, demand: Floats) -> None:
        self._capacity, self._demand = capacity, demand

    def levels(
        self, jobs: tuple[int, ...], most: Ints, effort: _Effort
    ) -> tuple[list[Ints], list[Ints]]:
        """Patterns of each server up to `most`, and maximal sums of those of the first servers."""
        patterns, levels = [], [np.zeros((1, len(jobs)), dtype=np.int64)]
        known: dict[bytes, Ints] = {}
        for server in self._capacity:
            key = server.tobytes()
            if key not in known:
                known[key] = self._patterns(server, jobs, most)
            patterns.append(known[key])
            levels.append(effort.maximal(levels[-1], patterns[-1], most))
        return patterns, levels

    def _patterns(self, server: Floats, jobs: tuple[int, ...], most: Ints) -> Ints:
        """Maximal patterns of one server."""
        found = server_patterns(server, self._demand[list(jobs)], most, MOST_PATTERNS)
        if found is None:
            raise _TooMany
        return found

    def on_servers(self, jobs: tuple[int, ...], units: Ints) -> Ints | None:
        """Units by server, shape (servers, J); None if the servers do not hold them."""
        patterns, levels = self.levels(jobs, units, _Effort())
        if not (levels[-1] == units).all(axis=1).any():
            return None
        placed = np.zeros((len(self._capacity), len(jobs)), dtype=np.int64)
        left = units
        for server in reversed(range(len(self._capacity))):
            rests = np.maximum(left - patterns[server], 0)
            held = (levels[server] >= rests[:, None]).all(axis=2).any(axis=1)
            rest = rests[np.flatnonzero(held)[0]]
            placed[server] = left - rest
            left = rest
        return placed


class Loads:
    """The maximal loads of an instance's servers.

    Parameters
    ----------
    instance : OasisInstance
        The instance.

    Attributes
    ----------
    needed : list of ndarray
        PSs by number of workers, of every job.
    """

    def __init__(self, instance: OasisInstance) -> None:
        self.instance = instance
        self._sides = (
            _Side(instance.worker_capacity, instance.worker_demand),
            _Side(instance.ps_capacity, instance.ps_demand),
        )
        self.needed = [
            instance.ps_needed_up_to(job, instance.most_workers(job)) for job in instance.jobs
        ]
        self._known: dict[tuple[int, ...], Ints | None] = {}

    def of(self, jobs: tuple[int, ...]) -> Ints | None:
        """Maximal loads of some jobs, shape (loads, J); None if there are too many of them."""
        if jobs not in self._known:
            failed = [fewer for fewer, found in self._known.items() if found is None]
            # Every load of some of the jobs is part of another one of all of them.
            too_many = any(set(fewer) <= set(jobs) for fewer in failed)
            if 2 * len(failed) > len(self._known) + MOST_FAILED or too_many:
                return None
            self._known[jobs] = self._find(jobs)
        return self._known[jobs]

    def _find(self, jobs: tuple[int, ...]) -> Ints | None:
        most = np.array([self.needed[job].size - 1 for job in jobs])
        most_ps = np.array([self.needed[job][-1] for job in jobs])
        workers, ps = self._sides
        effort = _Effort()
        try:
            units = ps.levels(jobs, most_ps, effort)[1][-1]
            served = [
                np.searchsorted(self.needed[job], own, side="right") - 1
                for job, own in zip(jobs, units.T, strict=True)
            ]
            nothing = np.zeros((1, len(jobs)), dtype=np.int64)
            limits = effort.maximal(nothing, np.stack(served, axis=1), most)
            found = [workers.levels(jobs, each, effort)[1][-1] for each in limits]
            return effort.maximal(nothing, np.concatenate(found), most)
        except _TooMany:
            return None

    def known(self, jobs: tuple[int, ...]) -> Ints:
        """The same where there are not too many."""
        found = self.of(jobs)
        assert found is not None
        return found

    def most(
        self,
        jobs: tuple[int, ...],
        weights: Floats,
        seconds: float,
        enough: tuple[float, float] = (0.0, math.inf),
    ) -> float:
        """The most that a load of some jobs is worth, a worker of each having a weight.

        Known at once, whatever is enough: see `PricedLoads.most`.
        """
        return float((self.known(jobs) @ weights).max(initial=0.0))

    def at_most(self, jobs: tuple[int, ...], weights: Floats) -> float:
        """The same: see `PricedLoads.at_most`."""
        return self.most(jobs, weights, math.inf)

    def on_servers(self, jobs: tuple[int, ...], workers: Ints) -> tuple[Ints, Ints] | None:
        """Workers and PSs by server, shape (servers, J), of what lies below a load."""
        needed = [self.needed[job][n] for job, n in zip(jobs, workers.tolist(), strict=True)]
        sides = zip(self._sides, (workers, np.array(needed)), strict=True)
        try:
            placed = [side.on_servers(jobs, units) for side, units in sides]
        except _TooMany:
            return None
        return None if placed[0] is None or placed[1] is None else (placed[0], placed[1])
