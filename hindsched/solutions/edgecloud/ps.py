"""Which PS each running job holds, once it is known what runs when.

Problem (2) lets a job's PS change from slot to slot, so that a placement exists exactly when in
each slot there are enough PSs: cloud PSs for the jobs with zeta = 1, any PSs for all others. The
placement here changes as little as it can: a job keeps its PS while it runs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.solutions.edgecloud.runs import Holds, Runs

Held = tuple[int, int, int, int]
"""Job, server or the cloud, first and last slot of a PS."""


def active_spans(runs: Runs) -> list[tuple[int, int, int]]:
    """Maximal spans (job, first, last) in which a job runs, sorted by job and slot."""
    order = np.lexsort((runs.first, runs.job))
    spans: list[tuple[int, int, int]] = []
    table = zip(
        runs.job[order].tolist(), runs.first[order].tolist(), runs.last[order].tolist(), strict=True
    )
    for j, first, last in table:
        if spans and spans[-1][0] == j and first <= spans[-1][2] + 1:
            spans[-1] = (j, spans[-1][1], max(last, spans[-1][2]))
        else:
            spans.append((j, first, last))
    return spans


def wholly_in_cloud(instance: EdgecloudInstance, runs: Runs) -> set[int]:
    """Jobs that run, and only in the cloud."""
    on_edge = runs.place < len(instance.worker_list)
    return set(runs.job.tolist()) - set(runs.job[on_edge].tolist())


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
    must_be_cloud = wholly_in_cloud(instance, runs) if together is None else set(together)
    fixed = {j for j, *_ in kept}
    spans = [span for span in active_spans(runs) if span[0] not in fixed]
    rows = list(kept)
    for kind in sorted({job.ps_type for job in instance.jobs}):
        mine = [span for span in spans if instance.jobs[span[0]].ps_type == kind]
        there = [held for held in kept if instance.jobs[held[0]].ps_type == kind]
        rows += _place_type(instance, kind, mine, must_be_cloud, there)
    return Holds.of(rows)


def _place_type(
    instance: EdgecloudInstance,
    kind: str,
    spans: list[tuple[int, int, int]],
    together: set[int],
    kept: list[Held],
) -> list[Held]:
    cloud = len(instance.servers)
    in_cloud = instance.cloud_ps(kind)
    free: dict[int, float] = {s: n for (s, k), n in instance.ps_counts.items() if k == kind}
    free[cloud] = np.inf if in_cloud is None else in_cloud
    begins: dict[int, list[int]] = {}
    ends: dict[int, list[int]] = {}
    for j, first, last in spans:
        begins.setdefault(first, []).append(j)
        ends.setdefault(last + 1, []).append(j)
    taken: dict[int, list[int]] = {}  # slot -> servers of PSs that are kept from then on
    given: dict[int, list[int]] = {}
    for _, server, first, last in kept:
        taken.setdefault(first, []).append(server)
        given.setdefault(last + 1, []).append(server)
    held: dict[int, tuple[int, int]] = {}  # job -> (place, since)
    waiting: set[int] = set()
    rows: list[Held] = []

    def release(j: int, slot: int) -> None:
        place, since = held.pop(j)
        free[place] += 1
        if slot > since:
            rows.append((j, place, since, slot - 1))

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
                held[j] = (cloud, slot)
                free[cloud] -= 1
                waiting.remove(j)
        for j in sorted(waiting - together):
            place = next((place for place in sorted(free) if free[place] >= 1), None)
            if place is not None:
                held[j] = (place, slot)
                free[place] -= 1
                waiting.remove(j)
    return rows
