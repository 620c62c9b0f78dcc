"""Packing patterns: how many units of each job one server holds at once.

A pattern is maximal if no further unit fits. In a slot the servers of a group of n_g identical ones
run at most n_g patterns, so that

    y_ig(t) <= sum over patterns l of l_i r_gl(t),    sum_l r_gl(t) <= n_g

holds with integer r for exactly those counts that the servers can hold, and with fractional r for
their convex hull: much tighter than (4) added up, where a 3-GPU and a 2-GPU worker share a 4-GPU
server once and a quarter times. A server that is large beside the workers has too many patterns,
and there (4) is nearly as tight anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.instances.decimals import loosened

MOST_PATTERNS = 120
"""Patterns of a group in a slot above which its packing rows are left out."""
SEARCH_STEPS = 5_000
"""Steps of the enumeration after which a group counts as having too many patterns."""
MOST_JOBS = 500
"""Jobs above which patterns count as too many: the enumeration calls itself once a job."""
REMEMBERED = 4096
"""Servers with jobs whose patterns are kept."""

Pattern = tuple[int, ...]


class _TooManyPatterns(Exception):
    pass


def maximal_patterns(
    capacity: Floats, demand: Floats, most: Sequence[int], limit: int = MOST_PATTERNS
) -> list[Pattern] | None:
    """Enumerate the maximal patterns of one server.

    Parameters
    ----------
    capacity : ndarray, shape (R,)
        What one server has free.
    demand : ndarray, shape (J, R)
        Demand of one unit of each job.
    most : sequence of int, length J
        Most units of each job that anybody would want.
    limit : int
        Most patterns.

    Returns
    -------
    list of tuple of int, or None
        None if there are more than `limit`, or finding them takes too long.
    """
    rows = tuple(tuple(row) for row in demand.tolist())
    found = _enumerated(tuple(capacity.tolist()), rows, tuple(most), limit)
    return None if found is None else list(found)


@lru_cache(maxsize=REMEMBERED)
def _enumerated(
    room: tuple[float, ...], rows: tuple[tuple[float, ...], ...], most: Pattern, limit: int
) -> tuple[Pattern, ...] | None:
    """`maximal_patterns`, remembered, and without arrays: these have a handful of entries."""
    if len(rows) > MOST_JOBS:
        return None
    capacity = np.array(room)
    needed = [[(r, amount) for r, amount in enumerate(row) if amount > 0] for row in rows]
    found: list[Pattern] = []
    chosen: list[int] = []
    steps = 0

    def extend(left: list[float]) -> None:
        nonlocal steps
        steps += 1
        if steps > SEARCH_STEPS or len(found) > limit:
            raise _TooManyPatterns
        job = len(chosen)
        if job == len(most):
            more = (
                own for own, count, top in zip(needed, chosen, most, strict=True) if count < top
            )
            if not any(all(amount <= left[r] for r, amount in own) for own in more):
                found.append(tuple(chosen))
            return
        own, count = needed[job], most[job]
        if own:  # as `how_many_left`
            count = min(count, max(0, math.floor(min(left[r] / amount for r, amount in own))))
        least = count if job == len(most) - 1 else 0  # with fewer of the last it is not maximal
        steps += least
        for units in range(count, least - 1, -1):
            chosen.append(units)
            extend([free - units * amount for free, amount in zip(left, rows[job], strict=True)])
            chosen.pop()

    try:
        extend(loosened(capacity, capacity).tolist())
    except _TooManyPatterns:
        return None
    return tuple(found) if len(found) <= limit else None


@dataclass(frozen=True)
class ServerGroups:
    """Identical servers of one role.

    Parameters
    ----------
    members : list of list of int
        Servers of each group.
    capacity : ndarray, shape (groups, R)
        Capacity of one server of each.
    """

    members: list[list[int]]
    capacity: Floats

    @classmethod
    def of(cls, capacity: Floats) -> ServerGroups:
        """Group servers of equal capacity, shape (servers, R)."""
        found: dict[bytes, list[int]] = {}
        for server, own in enumerate(np.ascontiguousarray(capacity)):
            found.setdefault(own.tobytes(), []).append(server)
        members = list(found.values())
        return cls(members, capacity[[group[0] for group in members]])


@dataclass(frozen=True)
class Patterns:
    """Patterns of a group of servers in one slot.

    Parameters
    ----------
    jobs : tuple of int
        Jobs that may run there, in the order of a pattern's entries.
    patterns : list of tuple of int
        Maximal patterns of one server.
    servers : int
        Number of servers of the group.
    """

    jobs: tuple[int, ...]
    patterns: list[Pattern]
    servers: int


PatternsBySlot = dict[tuple[int, int], Patterns]
"""Patterns by (group, slot); absent where there are too many, or fewer jobs than asked for."""


def patterns_by_slot(
    groups: ServerGroups,
    demand: Floats,
    chunks: Sequence[int],
    slots: range,
    present: Callable[[int, int], tuple[int, ...]],
    least_jobs: int = 1,
) -> PatternsBySlot:
    """Enumerate the patterns of each group in each slot.

    Parameters
    ----------
    groups : ServerGroups
        Servers of one role.
    demand : ndarray, shape (I, R)
        Demand of one worker, or of one PS, of each job.
    chunks : sequence of int
        Most units of each job.
    slots : range
        The slots.
    present : callable
        ``present(group, slot)``: the jobs that may run there, ascending.
    least_jobs : int
        Leave out where fewer jobs than this may run.
    """
    found: PatternsBySlot = {}
    for group, servers in enumerate(groups.members):
        known: dict[tuple[int, ...], list[Pattern] | None] = {}
        for slot in slots:
            jobs = present(group, slot)
            if len(jobs) < max(1, least_jobs):
                continue
            if jobs not in known:
                # Every pattern of some of the jobs is part of another one of all of them.
                too_many = any(known[fewer] is None and set(fewer) <= set(jobs) for fewer in known)
                most = [chunks[job] for job in jobs]
                known[jobs] = (
                    None
                    if too_many
                    else maximal_patterns(groups.capacity[group], demand[list(jobs)], most)
                )
            patterns = known[jobs]
            if patterns is not None:
                found[group, slot] = Patterns(jobs, patterns, len(servers))
    return found


def run_patterns(block: Any, patterns: PatternsBySlot, domain: Any) -> None:
    """Let the servers of groups run patterns in slots: ``runs``, and no more than servers.

    Parameters
    ----------
    block : pyomo Block
        Receives ``runs`` over (group, slot, pattern), ``limit`` over (group, slot) and the
        expressions ``held`` over (job, group, slot): units of a job that the patterns hold.
    patterns : dict
        See `patterns_by_slot`.
    domain : pyomo domain
        Of ``runs``.
    """
    index = [(*key, n) for key, own in patterns.items() for n in range(len(own.patterns))]
    block.runs = pyo.Var(index, domain=domain, doc="(ours) servers that run a pattern")

    @block.Constraint(list(patterns), doc="(ours) no more patterns than servers")
    def limit(b: Any, group: int, slot: int) -> Any:
        own = patterns[group, slot]
        return sum(b.runs[group, slot, n] for n in range(len(own.patterns))) <= own.servers

    place_of = {
        (job, *key): place for key, own in patterns.items() for place, job in enumerate(own.jobs)
    }

    @block.Expression(list(place_of), doc="(ours) units of a job that patterns hold")
    def held(b: Any, job: int, group: int, slot: int) -> Any:
        place = place_of[job, group, slot]
        own = patterns[group, slot].patterns
        return sum((p[place] * b.runs[group, slot, n] for n, p in enumerate(own) if p[place]), 0.0)
