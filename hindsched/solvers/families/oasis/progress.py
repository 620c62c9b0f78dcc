"""What a dive has decided, and the windows of a schedule that one decides anew.

A window is some slots of a schedule. What jobs do before and behind it stands: they begin it with
what they have done, and a job that goes on behind it owes so much less if it still ends there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from hindsched.arrays import Ints
from hindsched.solutions.oasis.solution import OasisSolution
from hindsched.solvers.families.oasis.resources import OasisOracle

LONG = 200
"""Slots from which on a horizon is long: dives do without what windows mend, and end sooner."""

Placed = dict[int, tuple[Ints, Ints]]
"""Workers and PSs by server, by job that runs, in one slot."""


class Later(NamedTuple):
    """What a job does behind the last slot that is decided, and its utility if it ends there."""

    work: int
    utility: float


@dataclass
class Progress:
    """What a dive has decided: the program is built on it.

    Parameters
    ----------
    done : ndarray of int, shape (jobs,)
        Worker-slots of each job in closed slots.
    alive : set of int
        Jobs that are not refused.
    until : int
        Last slot that is decided.
    slot : int
        First slot that is open.
    begun : set of int
        Jobs that are admitted.
    latest : dict
        Last slot in which it may be worth to end a job, as far as that is known.
    later : dict
        What jobs do behind the last slot.
    """

    done: Ints
    alive: set[int]
    until: int
    slot: int = 1
    begun: set[int] = field(default_factory=set[int])
    latest: dict[int, int] = field(default_factory=dict[int, int])
    later: dict[int, Later] = field(default_factory=dict[int, Later])


class Window(NamedTuple):
    """Slots of a schedule, both inclusive."""

    solution: OasisSolution
    first: int
    last: int

    def placed(self) -> dict[int, Placed]:
        """What runs in each slot."""
        instance, workers, ps = self.solution.instance, self.solution.workers, self.solution.ps
        numbers = {name: instance.job_index(name) for name in workers}
        return {
            slot: {
                number: (workers[name][slot - 1], ps[name][slot - 1])
                for name, number in numbers.items() if workers[name][slot - 1].any()
            }
            for slot in range(self.first, self.last + 1)
        }  # fmt: skip

    def progress(self, oracle: OasisOracle) -> Progress:
        """What is decided outside of it, as a dive from its first to its last slot needs it."""
        horizon = oracle.instance.horizon
        found = Progress(np.zeros(oracle.num_blocks, dtype=np.int64), set(), self.last, self.first)
        for number, job in enumerate(oracle.instance.jobs):
            if job.arrival > self.last:
                continue
            found.latest[number] = horizon
            if job.name in self.solution.workers:
                counts = self.solution.workers[job.name].sum(axis=1)
                end = int(np.flatnonzero(counts)[-1]) + 1
                if end < self.first:
                    continue
                found.done[number] = counts[: self.first - 1].sum()
                if end > self.last:
                    utility = float(oracle.block(number).task.utilities[end])
                    found.later[number] = Later(int(counts[self.last :].sum()), utility)
            found.alive.add(number)
        return found

    def value(self, oracle: OasisOracle, jobs: set[int]) -> float:
        """What jobs earn in the schedule."""
        names = [oracle.instance.jobs[job].name for job in sorted(jobs)]
        return float(sum(self.solution.value(name) for name in names))


def is_long(oracle: OasisOracle) -> bool:
    """Whether the horizon is one where the time of a dive counts more than its first schedule."""
    return bool(oracle.instance.horizon >= LONG)


def with_slots(
    oracle: OasisOracle, solution: OasisSolution | None, slots: dict[int, Placed]
) -> OasisSolution:
    """A schedule with other slots; who does not end is left out, who ends sooner stops there."""
    instance = oracle.instance
    widths = len(instance.worker_servers), len(instance.ps_servers)
    known = ({}, {}) if solution is None else (solution.workers, solution.ps)
    changed = {job for placed in slots.values() for job in placed}
    deployed = dict(known[0]), dict(known[1])
    replaced = np.array(sorted(slots), dtype=np.int64) - 1
    for number, job in enumerate(instance.jobs):
        if job.name not in known[0] and number not in changed:
            continue
        both = [
            given[job.name].copy() if job.name in given
            else np.zeros((instance.horizon, width), dtype=np.int64)
            for given, width in zip(known, widths, strict=True)
        ]  # fmt: skip
        for counts in both:
            counts[replaced] = 0
        for slot, placed in slots.items():
            if number in placed:
                both[0][slot - 1], both[1][slot - 1] = placed[number]
        done = np.cumsum(both[0].sum(axis=1))
        ended = np.flatnonzero(done >= oracle.block(number).task.total)
        for given, counts in zip(deployed, both, strict=True):
            if ended.size:
                counts[ended[0] + 1 :] = 0
                given[job.name] = counts
            else:
                given.pop(job.name, None)
    return OasisSolution(instance, *deployed, formulation=oracle.formulation)
