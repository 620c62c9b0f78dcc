"""Which load every slot takes: as a program, as a list that is made better, as a schedule."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from threading import Event

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solutions.oasis.solution import OasisSolution
from hindsched.solvers.door.highs import UNSOUND_PRESOLVE_RULES
from hindsched.solvers.families.oasis.loads import Loads
from hindsched.solvers.families.oasis.priced_loads import PricedLoads
from hindsched.solvers.families.oasis.sparse_program import LoadedProgram, SparseProgram

Spans = dict[tuple[int, ...], list[int]]
"""Slots by the jobs that may run in them."""
Work = Mapping[int, int]
"""Worker-slots that a job needs, by its position."""


class Goal(Enum):
    """What a program of loads is after.

    ``SHARE``: the largest share of all work, loads being divisible; ``ALL``: all work, by whole
    loads; ``MISSING``: the least work missing, relative to each job's, by whole loads.
    """

    SHARE = auto()
    ALL = auto()
    MISSING = auto()


def program_of_loads(
    work: Work, spans: Spans, source: Loads | PricedLoads, goal: Goal, interrupted: Event
) -> LoadedProgram:
    """How often each span's slots take each of its loads; first rows of spans, then of jobs."""
    program = SparseProgram()
    done: dict[int, list[tuple[int, float]]] = {job: [] for job in work}
    for jobs, slots in spans.items():
        loads, number = source.known(jobs), float(len(slots))
        taken = [program.column(0.0, number, whole=goal is not Goal.SHARE) for _ in loads]
        program.row([(column, 1.0) for column in taken], -math.inf, number)
        for job, units in zip(jobs, loads.T, strict=True):
            done[job] += zip(taken, units.tolist(), strict=True)
    share = program.column(1.0, math.inf) if goal is Goal.SHARE else None
    for job, own in done.items():
        terms, needed = [(column, units) for column, units in own if units], float(work[job])
        if goal is Goal.MISSING:
            terms.append((program.column(-1.0 / needed, math.inf), 1.0))
        if share is not None:
            terms.append((share, -needed))
        program.row(terms, 0.0 if goal is Goal.SHARE else needed, math.inf)
    rules = 0 if goal is Goal.SHARE else UNSOUND_PRESOLVE_RULES
    return program.load(interrupted, presolve_rule_off=rules)


@dataclass
class Taken:
    """The load that a slot takes.

    Parameters
    ----------
    slot : int
        The slot.
    jobs : tuple of int
        Who may run in it.
    workers : ndarray of int, shape (J,)
        Their workers.
    """

    slot: int
    jobs: tuple[int, ...]
    workers: Ints


def taken_at(spans: Spans, source: Loads | PricedLoads, values: Floats) -> list[Taken]:
    """What the slots take at a point of a program of whole loads."""
    times, first = np.rint(values).astype(np.int64), 0
    found = []
    for jobs, slots in spans.items():
        loads = source.known(jobs)
        chosen = loads.repeat(times[first : first + len(loads)], axis=0)
        first += len(loads)
        for place, slot in enumerate(slots):  # some slots may stay empty
            own = chosen[place] if place < len(chosen) else np.zeros(len(jobs), dtype=np.int64)
            found.append(Taken(slot, jobs, own))
    return found


def missing(work: Work, taken: list[Taken]) -> dict[int, int]:
    """Work of each job that slots leave undone; negative where they do more."""
    left = dict(work)
    for own in taken:
        for job, workers in zip(own.jobs, own.workers.tolist(), strict=True):
            left[job] -= workers
    return left


def mend(
    work: Work, taken: list[Taken], loads: PricedLoads, seconds_left: Callable[[], float]
) -> bool:
    """Take other loads in one slot after the other, in place, where less is missing then.

    Returns
    -------
    bool
        Whether nothing is missing any more.
    """
    left = missing(work, taken)
    for own in taken:
        if max(left.values()) <= 0:
            break
        seconds = seconds_left()
        if seconds <= 0:
            return False
        if all(left[job] <= 0 for job in own.jobs):
            continue
        here = zip(own.jobs, own.workers.tolist(), strict=True)
        wanted = np.array([max(0, left[job] + workers) for job, workers in here])
        weights = np.array([1.0 / work[job] for job in own.jobs])
        found = loads.wanted(own.jobs, weights, wanted, seconds)
        if found is None:
            continue
        gain = np.minimum(found, wanted) - np.minimum(own.workers, wanted)
        if gain @ weights > 0:
            for job, more in zip(own.jobs, (found - own.workers).tolist(), strict=True):
                left[job] -= more
            own.workers = found
    return max(left.values()) <= 0


def schedule(
    instance: OasisInstance, work: Work, taken: list[Taken], source: Loads | PricedLoads
) -> OasisSolution | None:
    """Put loads on servers; what a job does not need is left out. None where one is not held."""
    names = {job: instance.jobs[job].name for job in work}
    left = dict(work)
    sides = instance.worker_servers, instance.ps_servers
    counts = [
        {name: np.zeros((instance.horizon, len(side)), dtype=np.int64) for name in names.values()}
        for side in sides
    ]
    for own in sorted(taken, key=lambda each: each.slot):
        workers = np.minimum(own.workers, [left[job] for job in own.jobs])
        placed = source.on_servers(own.jobs, workers)
        if placed is None:
            return None
        for at, job in enumerate(own.jobs):
            left[job] -= int(workers[at])
            for rows, units in zip(counts, placed, strict=True):
                rows[names[job]][own.slot - 1] = units[:, at]
    return OasisSolution(instance, counts[0], counts[1])
