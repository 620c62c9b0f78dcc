"""Inequalities of the packing on one server, which sums over a group of servers do not know.

What servers of a group hold on average lies in the hull of the patterns of one of them. A point
outside of it is cut off by weights of the jobs that add up to at most 1 in every pattern; they hold
in every slot, so that weights found in one are tried in the others first.
"""

from __future__ import annotations

import math
from threading import Event

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.solvers.families.oasis.patterns import server_patterns
from hindsched.solvers.families.oasis.resources import OasisOracle
from hindsched.solvers.families.oasis.sparse_program import SparseProgram

MOST_PATTERNS = 3000
"""Patterns of the jobs on one server above which no inequality is looked for."""
MOST_UNITS = 1000
"""Units of one job on a server from which on none is: patterns would be cut short."""
VIOLATED = 1e-3
"""How much more than its servers a point packs where an inequality is added."""

Weights = dict[int, float]
"""Weight of a unit by job; of other jobs it is 0."""


class PackingInequalities:
    """What was found for the groups of an instance's servers, and what is looked for.

    Parameters
    ----------
    oracle : OasisOracle
        In the layout of groups.
    interrupted : Event
        Set by Ctrl-C.
    """

    def __init__(self, oracle: OasisOracle, interrupted: Event) -> None:
        instance = oracle.instance
        self._capacity = (
            instance.worker_capacity[oracle.worker_groups.first],
            instance.ps_capacity[oracle.ps_groups.first],
        )
        self._demand = (instance.worker_demand, instance.ps_demand)
        self._interrupted = interrupted
        self._known: dict[tuple[int, int], list[Weights]] = {}
        self._patterns: dict[tuple[int, int, tuple[int, ...]], Ints | None] = {}

    def violated(self, side: int, group: int, units: dict[int, float]) -> Weights | None:
        """Weights that cut off these units of jobs on a server; None if none was found.

        Parameters
        ----------
        side, group : int
            Workers' (0) or PSs' servers, and which group of them.
        units : dict
            What a server of the group holds of each job, on average.
        """
        if len(units) < 2:
            return None
        known = self._known.setdefault((side, group), [])
        weights = max(known, key=lambda each: _packed(each, units), default={})
        if _packed(weights, units) > 1 + VIOLATED:
            return weights
        jobs = tuple(units)
        patterns = self._patterns_of(side, group, jobs)
        if patterns is None or _mixes_single_jobs(patterns, np.array([*units.values()])):
            return None
        found = separated(patterns, np.array([*units.values()]), self._interrupted)
        if found is None:
            return None
        known.append({job: float(each) for job, each in zip(jobs, found, strict=True) if each > 0})
        return known[-1]

    def _patterns_of(self, side: int, group: int, jobs: tuple[int, ...]) -> Ints | None:
        key = side, group, jobs
        if key not in self._patterns:
            demand = self._demand[side][list(jobs)]
            self._patterns[key] = _patterns(self._capacity[side][group], demand)
        return self._patterns[key]


def _packed(weights: Weights, units: dict[int, float]) -> float:
    return sum(weights.get(job, 0.0) * each for job, each in units.items())


def _mixes_single_jobs(patterns: Ints, units: Floats) -> bool:
    """Whether servers hold the units even if each is one job's alone."""
    return float((units / np.maximum(patterns.max(axis=0), 1e-9)).sum()) <= 1.0


def _patterns(capacity: Floats, demand: Floats) -> Ints | None:
    """Maximal patterns of one server; None if there are, or one holds, too many."""
    most = np.full(len(demand), MOST_UNITS, dtype=np.int64)
    found = server_patterns(capacity, demand, most, MOST_PATTERNS)
    return None if found is None or (found == MOST_UNITS).any() else found


def separated(patterns: Ints, units: Floats, interrupted: Event) -> Floats | None:
    """Weights with at most 1 in every pattern and more in `units`; None if a mix holds them."""
    program = SparseProgram()
    for _ in patterns:
        program.column(-1.0, math.inf)
    for job in range(patterns.shape[1]):
        terms = [(int(n), float(patterns[n, job])) for n in np.flatnonzero(patterns[:, job])]
        program.row(terms, float(units[job]), math.inf)
    loaded = program.load(interrupted, presolve="off")
    if not loaded.solve(math.inf) or loaded.objective < 1 + VIOLATED:
        return None
    weights = np.maximum(loaded.duals(), 0.0)
    found: Floats = weights / (patterns @ weights).max()
    return found
