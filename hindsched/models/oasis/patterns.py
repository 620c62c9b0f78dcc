"""Packing patterns of a server, and the oasis family's program whose only integers are the ends.

A pattern says how many workers (or PSs) of each job one server holds; it is maximal if no further
unit fits. In a slot the servers of a group of n_g identical ones run at most n_g patterns, so that

    y_ig(t) <= sum over patterns l of l_i r_gl(t),    sum_l r_gl(t) <= n_g

holds with integer r for exactly those counts that the servers can hold, and with fractional r for
their convex hull: much tighter than (4) added up, where a 3-GPU and a 2-GPU worker share a 4-GPU
server once and a quarter times. A server that is large beside the workers has too many patterns,
and there (4) is nearly as tight anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.decimals import loosened
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models import algebra as pyo
from hindsched.models.algebra import Expr, Model, Row, Variable
from hindsched.models.oasis.block import Domains
from hindsched.models.oasis.offline import OasisProgram, build_offline
from hindsched.models.oasis.program import Pools
from hindsched.models.oasis.rounding import lines_below

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
    """`maximal_patterns`, remembered: the leaves of a program ask for the same ones again.

    Written without arrays: these have a handful of entries.
    """
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
    instance: OasisInstance,
    pools: Pools,
    demand: Floats,
    present: Callable[[int, int], tuple[int, ...]],
    least_jobs: int = 1,
) -> PatternsBySlot:
    """Enumerate the patterns of each group in each slot.

    Parameters
    ----------
    instance : OasisInstance
        The instance.
    pools : Pools
        Groups of identical servers of one role.
    demand : ndarray, shape (I, R)
        Demand of one worker, or of one PS, of each job.
    present : callable
        ``present(group, slot)``: the jobs that may run there, ascending.
    least_jobs : int
        Leave out where fewer jobs than this may run.
    """
    found: PatternsBySlot = {}
    for pool, servers in enumerate(pools.members):
        known: dict[tuple[int, ...], list[Pattern] | None] = {}
        for slot in range(1, instance.horizon + 1):
            jobs = present(pool, slot)
            if len(jobs) < max(1, least_jobs):
                continue
            if jobs not in known:
                most = [instance.jobs[job].chunks for job in jobs]
                # Every pattern of some of the jobs is part of another one of all of them.
                too_many = any(known[fewer] is None and set(fewer) <= set(jobs) for fewer in known)
                known[jobs] = (
                    None
                    if too_many
                    else maximal_patterns(pools.capacity[pool], demand[list(jobs)], most)
                )
            patterns = known[jobs]
            if patterns is not None:
                found[pool, slot] = Patterns(jobs, patterns, len(servers))
    return found


def add_runs(patterns: PatternsBySlot, *, integer: bool) -> tuple[Variable, Row]:
    """How many servers of a group run each pattern in a slot: the variables and their limit.

    Both are unattached; the caller names them on its model, the variables first. Indices are
    (group, slot, pattern) and (group, slot).
    """
    index = [(*key, n) for key, own in patterns.items() for n in range(len(own.patterns))]
    domain = pyo.NonNegativeIntegers if integer else pyo.NonNegativeReals
    runs = pyo.Var(index, domain=domain, doc="(ours) servers of a group that run a pattern")

    def limit(_: Model, pool: int, slot: int) -> Expr:
        own = patterns[pool, slot]
        used = (runs[pool, slot, n] for n in range(len(own.patterns)))
        return pyo.quicksum(used) <= own.servers

    doc = "(ours) no more patterns than servers"
    return runs, pyo.Constraint(list(patterns), rule=limit, doc=doc)


def held_by_runs(runs: Variable, own: Patterns, pool: int, slot: int, job: int) -> Expr:
    """Units of a job that the patterns run by a group in a slot hold."""
    place = own.jobs.index(job)
    held = (p[place] * runs[pool, slot, n] for n, p in enumerate(own.patterns) if p[place])
    return pyo.quicksum(held)


def build_ends_program(instance: OasisInstance, formulation: str | None = None) -> OasisProgram:
    """Build the program that decides who is admitted and when each job ends, and nothing else.

    Its integers are the binaries ``u`` of admissions and ends; workers and PSs are fractional, in
    the convex hull of what each small server can hold (``packed_y``, ``packed_z``). Its optimum is
    an upper bound, far below the relaxation's, and mostly attained: `leaf.py` decides whether.
    That PSs are whole counts as far as a convex function can say it (``served``).

    Parameters
    ----------
    instance : OasisInstance
        The instance.
    formulation : str, optional
        The family has one.

    Returns
    -------
    OasisProgram
        As from `build_offline` in the cumulative form, with an empty list ``conflicts`` for cuts.
    """
    program = build_offline(instance, formulation, form="cumulative", domains=Domains(counts=False))
    model, parts = program.model, program.parts
    workers = {i: model.job[i].y for i in model.job}
    ps = {i: model.job[i].z for i in model.job}
    patterns = _shared_slots(instance, parts.worker_pools, instance.worker_demand, workers)
    model.runs_y, model.runs_y_limit = add_runs(patterns, integer=False)
    model.packed_y = _packed(workers, model.runs_y, patterns)
    patterns = _shared_slots(instance, parts.ps_pools, instance.ps_demand, ps)
    model.runs_z, model.runs_z_limit = add_runs(patterns, integer=False)
    model.packed_z = _packed(ps, model.runs_z, patterns)
    model.served = _served_by_whole_ps(program)
    model.conflicts = pyo.ConstraintList(doc="(ours) promises that no schedule keeps together")
    return program


def _served_by_whole_ps(program: OasisProgram) -> Row:
    """(6) as whole PSs have it; in a slot after its end a job needs none."""
    instance, rows = program.instance, []
    for index, facts in program.parts.open_jobs.items():
        block, job = program.block(index), instance.jobs[index]
        lines = lines_below(instance.ps_needed_up_to(job, int(facts.most.max())))
        ps: dict[int, list[Expr]] = {}
        for (_, slot), count in block.z.items():
            ps.setdefault(slot, []).append(count)
        done_before, ended_before = 0.0, 0.0
        for slot in block.done:
            workers, runs = block.done[slot] - done_before, block.admitted - ended_before
            served = pyo.quicksum(ps.get(slot, []))
            rows += [served >= slope * workers + at_none * runs for slope, at_none in lines]
            done_before, ended_before = block.done[slot], block.ended[slot]
    return pyo.Constraint(
        range(len(rows)), rule=lambda _, n: rows[n], doc="(6) whole PSs serve whole workers"
    )


def _shared_slots(
    instance: OasisInstance, pools: Pools, demand: Floats, counts: Mapping[int, Variable]
) -> PatternsBySlot:
    """Patterns where several jobs may run; for a single one its bound says as much."""

    def present(pool: int, slot: int) -> tuple[int, ...]:
        return tuple(job for job, own in counts.items() if (pool, slot) in own)

    return patterns_by_slot(instance, pools, demand, present, least_jobs=2)


def _packed(counts: Mapping[int, Variable], runs: Variable, patterns: PatternsBySlot) -> Row:
    """Keep the counts of one role within the hull of the patterns."""
    return pyo.Constraint(
        [(job, *key) for key, own in patterns.items() for job in own.jobs],
        rule=lambda _, job, pool, slot: (
            counts[job][pool, slot] <= held_by_runs(runs, patterns[pool, slot], pool, slot, job)
        ),
        doc="(ours) counts that the servers of a group can hold",
    )
