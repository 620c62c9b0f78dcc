"""Which PS each running job holds, once it is known what runs when.

Problem (2) lets a job's PS change from slot to slot, so that a placement exists exactly when in
each slot there are enough PSs: cloud PSs for the jobs with zeta = 1, any PSs for all others. The
placement here changes as little as it can: a job keeps its PS while it runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

import numpy as np

from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.solutions.edgecloud.runs import Holds, Runs

Held = tuple[int, int, int, int]
"""Job, server or the cloud, first and last slot of a PS."""


def active_spans(runs: Runs) -> list[tuple[int, int, int]]:
    """Maximal spans (job, first, last) in which a job runs, sorted by job and slot."""
    spans: list[tuple[int, int, int]] = []
    for j, first, last in sorted((run.job, run.first, run.last) for run in runs.rows()):
        if spans and spans[-1][0] == j and first <= spans[-1][2] + 1:
            spans[-1] = (j, spans[-1][1], max(last, spans[-1][2]))
        else:
            spans.append((j, first, last))
    return spans


def place_parameter_servers(
    instance: EdgecloudInstance,
    runs: Runs,
    together: Collection[int] | None = None,
    kept: Sequence[Held] = (),
) -> Holds:
    """Give every running job one PS in every slot, where there are enough of them.

    Parameters
    ----------
    instance : EdgecloudInstance
        The instance.
    runs : Runs
        What runs when.
    together : collection of int, optional
        Jobs whose PS must be in the cloud (zeta = 1); None for all that run only there.
    kept : sequence of Held
        PSs that jobs hold for good: all that these jobs get.

    Returns
    -------
    Holds
        A job that finds no free PS in a slot holds none then, which is a violation of (2e).
    """
    if together is None:
        at_edge = runs.job[runs.place < len(instance.worker_list)]
        together = set(runs.job.tolist()) - set(at_edge.tolist())
    fixed = {j for j, *_ in kept}
    spans = [span for span in active_spans(runs) if span[0] not in fixed]
    rows = list(kept)
    for kind in sorted({job.ps_type for job in instance.jobs}):
        mine = [span for span in spans if instance.jobs[span[0]].ps_type == kind]
        there = [held for held in kept if instance.jobs[held[0]].ps_type == kind]
        rows += _place_type(instance, kind, mine, set(together), there)
    return Holds.of(rows)


def _place_type(
    instance: EdgecloudInstance, kind: str, spans: list[tuple[int, int, int]], together: set[int],
    kept: list[Held],
) -> list[Held]:  # fmt: skip
    """Holds of the PSs of one type: slot by slot, where something begins or ends."""
    cloud = len(instance.servers)
    in_cloud = instance.cloud_ps(kind)
    free: dict[int, float] = {s: n for (s, k), n in instance.ps_counts.items() if k == kind}
    free[cloud] = np.inf if in_cloud is None else in_cloud
    begins, ends = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for j, first, last in spans:
        begins[first].append(j)
        ends[last + 1].append(j)
    taken, given = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for _, server, first, last in kept:
        taken[first].append(server)
        given[last + 1].append(server)
    held: dict[int, tuple[int, int]] = {}  # job -> (place, since)
    waiting: set[int] = set()
    rows: list[Held] = []

    def release(j: int, slot: int) -> None:
        place, since = held.pop(j)
        free[place] += 1
        if slot > since:
            rows.append((j, place, since, slot - 1))

    def hold(j: int, place: int, slot: int) -> None:
        held[j] = (place, slot)
        free[place] -= 1
        waiting.remove(j)

    def make_room(place: int, slot: int) -> None:
        movable = [i for i, (there, _) in held.items() if there == place and i not in together]
        if movable:
            release(max(movable), slot)
            waiting.add(max(movable))

    for slot in sorted({*begins, *ends, *taken, *given}):
        for j in ends.get(slot, ()):
            if j in held:
                release(j, slot)
            waiting.discard(j)
        for server in given.get(slot, ()):
            free[server] += 1
        waiting.update(begins.get(slot, ()))
        for server in taken.get(slot, ()):
            free[server] -= 1
            if free[server] < 0:
                make_room(server, slot)
        for j in sorted(waiting & together):
            if free[cloud] < 1:
                make_room(cloud, slot)
            if free[cloud] >= 1:
                hold(j, cloud, slot)
        for j in sorted(waiting - together):
            place = next((place for place in sorted(free) if free[place] >= 1), None)
            if place is not None:
                hold(j, place, slot)
    return rows
