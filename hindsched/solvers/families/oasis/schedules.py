"""Oasis schedules: where they run, what decisions limit of them, and placing them on servers.

Features of a schedule: its ``completion``, the ``slot_workers`` it runs in a slot, the ``workers``
and ``ps`` on a server (or a group of identical servers) in a slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hindsched.arrays import Floats, Ints
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.memory import check_memory
from hindsched.solutions.base import Solution
from hindsched.solutions.oasis.placing import place_slot
from hindsched.solutions.oasis.solution import OasisSolution, run_length
from hindsched.solvers.kernels.limited_servers import no_limits
from hindsched.solvers.kernels.oasis.restricted_worker_slot import best_limited_schedule
from hindsched.solvers.kernels.oasis.worker_slot import Side, Task
from hindsched.solvers.oracles.base import Response
from hindsched.solvers.oracles.decisions import (
    COMPLETES,
    COMPLETION,
    Axes,
    Feature,
    Limits,
    window_of,
)
from hindsched.solvers.oracles.rows import Rows

IN_SLOT, WORKERS, PS = "slot_workers", "workers", "ps"


@dataclass(frozen=True)
class Placements:
    """Counts of workers or PSs at (slot, server), one entry each.

    Parameters
    ----------
    slots, servers, counts : ndarray of int
        Slot (1-based), index of the server or group, and how many.
    """

    slots: Ints
    servers: Ints
    counts: Ints

    def matrix(self, horizon: int, servers: int) -> Ints:
        """Counts by slot and server, shape (horizon, servers)."""
        counts = np.zeros((horizon, servers), dtype=np.int64)
        np.add.at(counts, (self.slots - 1, self.servers), self.counts)
        return counts

    @classmethod
    def of(cls, counts: NDArray[Any]) -> Placements:
        """Non-zero counts, shape (horizon, servers)."""
        slots, servers = np.nonzero(counts)
        return cls(slots + 1, servers, counts[slots, servers].astype(np.int64))


@dataclass(frozen=True)
class Groups:
    """Servers of equal capacity.

    Parameters
    ----------
    first, size : ndarray of int, shape (G,)
        First server of each group and the number of its servers.
    member : ndarray of int, shape (servers,)
        Group of each server.
    """

    first: Ints
    size: Ints
    member: Ints

    def placements(self, counts: NDArray[Any]) -> Placements:
        """Add up counts by slot and server over the groups."""
        found = Placements.of(counts)
        return Placements(found.slots, self.member[found.servers], found.counts)


def group_servers(capacity: Floats, layout: str) -> Groups:
    """Groups of identical servers; in the layout ``"servers"`` each server is one."""
    if layout == "servers":
        every = np.arange(capacity.shape[0])
        return Groups(every, np.ones_like(every), every)
    index: dict[bytes, int] = {}
    member = np.array([index.setdefault(row.tobytes(), len(index)) for row in capacity])
    _, first, size = np.unique(member, return_index=True, return_counts=True)
    return Groups(first, size, member)


@dataclass(frozen=True)
class OasisPlan:
    """A job's schedule.

    Parameters
    ----------
    end : int
        Completion slot.
    workers, ps : Placements
        Where its workers and PSs run.
    """

    end: int
    workers: Placements
    ps: Placements


def features_of_rows(rows: Rows) -> dict[str, Axes]:
    """Features of a layout: those on servers have the axes of its row sets."""
    workers, ps = rows.sets
    slots = workers.axes[-1]
    return {
        COMPLETION: (),
        IN_SLOT: (slots,),
        WORKERS: (workers.axes[0], slots),
        PS: (ps.axes[0], slots),
    }


def plan_features(plan: OasisPlan) -> dict[Feature, int]:
    """Value of every feature of a schedule that is not 0."""
    found = {COMPLETES: plan.end}
    for name, placed in ((WORKERS, plan.workers), (PS, plan.ps)):
        for slot, server, count in zip(
            placed.slots.tolist(), placed.servers.tolist(), placed.counts.tolist(), strict=True
        ):
            if name == WORKERS:
                in_slot = Feature(IN_SLOT, (slot - 1,))
                found[in_slot] = found.get(in_slot, 0) + count
            here = Feature(name, (server, slot - 1))
            found[here] = found.get(here, 0) + count
    return found


_no_limits = cache(no_limits)
"""Of one shape once, to be read only: most schedules are limited by their completion alone."""


def best_within(
    workers: Side, ps: Side, task: Task, limits: Limits
) -> tuple[float, int, Ints, Ints] | None:
    """Best schedule of a job within limits, at full capacity.

    Returns
    -------
    value, end, workers, ps : float, int, ndarray, ndarray
        With counts of shape (T, servers or groups); None if there is no schedule.
    """
    horizon = task.utilities.size - 1
    first_end, last_end = window_of(limits, COMPLETES)
    first_end, last_end = max(first_end, task.arrival), min(last_end, horizon)
    if task.total > (task.needed.size - 1) * last_end:  # not in all slots from the first on
        return None
    check_memory("the schedules of a job", 8.0 * (last_end + 1) * (task.total + 1))
    shapes = {IN_SLOT: (horizon,), WORKERS: (horizon, workers.room.size)}
    shapes[PS] = (horizon, ps.room.size)
    ranges = {name: _no_limits(*shape) for name, shape in shapes.items()}
    own: set[str] = set()
    for feature, (low, high) in limits.items():
        if low > high:
            return None
        if feature.name == COMPLETION:
            continue
        if feature.name not in own:
            own.add(feature.name)
            ranges[feature.name] = no_limits(*shapes[feature.name])
        ranges[feature.name].low[feature.index[::-1]] = low
        ranges[feature.name].high[feature.index[::-1]] = high
        if low:  # something must run in this slot
            slot = feature.index[-1] + 1
            first_end = max(first_end, slot)
            if slot < task.arrival:
                return None
    if first_end > last_end:
        return None
    placed = [np.zeros_like(ranges[name].low) for name in (WORKERS, PS)]
    value, end = best_limited_schedule(
        workers, ps, task, first_end, last_end, *ranges.values(), *placed
    )
    return (float(value), int(end), placed[0], placed[1]) if end else None


def place_on_servers(
    instance: OasisInstance,
    worker_groups: Groups,
    ps_groups: Groups,
    responses: Sequence[Response | None],
) -> Solution | None:
    """Put the schedules of all jobs on real servers, slot by slot; None if the packing gives up."""
    chosen = [(block, found) for block, found in enumerate(responses) if found is not None]
    blocks = np.array([block for block, _ in chosen], dtype=np.int64)
    plans: list[OasisPlan] = [found.plan for _, found in chosen]
    placed = []
    for demand, capacity, member, placements in (
        (instance.worker_demand, instance.worker_capacity, worker_groups.member,
         [plan.workers for plan in plans]),
        (instance.ps_demand, instance.ps_capacity, ps_groups.member,
         [plan.ps for plan in plans]),
    ):  # fmt: skip
        counts = _place_all(demand[blocks], capacity, member, placements, instance.horizon)
        if counts is None:
            return None
        placed.append(counts)
    rows = {
        instance.jobs[block].name: run_length(
            placed[0][number],
            placed[1][number],
            [server.name for server in instance.worker_servers],
            [server.name for server in instance.ps_servers],
        )
        for number, block in enumerate(blocks.tolist())
    }
    return OasisSolution.from_assignments(instance, rows)


def _place_all(
    demand: Floats,
    capacity: Floats,
    member: Ints,
    placements: Sequence[Placements],
    horizon: int,
) -> Ints | None:
    """Counts by job, slot and server, shape (J, T, servers)."""
    groups = int(member.max(initial=-1)) + 1
    wanted = np.array([placed.matrix(horizon, groups) for placed in placements])
    wanted = wanted.reshape(len(placements), horizon, groups)
    counts = np.zeros((len(placements), horizon, member.size), dtype=np.int64)
    for slot in range(horizon):
        if not wanted[:, slot].any():
            continue
        free = [capacity[member == group] for group in range(groups)]
        found = place_slot([wanted[:, slot, group] for group in range(groups)], demand, free)
        if found is None:
            return None
        for group, placed in enumerate(found):
            counts[:, slot, member == group] = placed
    return counts
