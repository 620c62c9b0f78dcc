"""Which PS each running job holds, once it is known what runs when.

Problem (2) lets a job's PS change from slot to slot, so that a placement exists exactly when in
each slot there are enough PSs: cloud PSs for the jobs with zeta = 1, any PSs for all others. The
placement here changes as little as it can: a job keeps its PS while it runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import pairwise

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
    """Holds of the PSs of one type: between two slots in which something begins or ends.

    The cloud's go to jobs that must have theirs there, then whoever holds a PS keeps it, then the
    first free one is taken.
    """
    cloud, in_cloud = len(instance.servers), instance.cloud_ps(kind)
    free: dict[int, float] = {s: n for (s, k), n in instance.ps_counts.items() if k == kind}
    free[cloud] = np.inf if in_cloud is None else in_cloud
    begins, ends = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for j, first, last in spans:
        begins[first].append(j)
        ends[last + 1].append(j)
    change: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for _, server, first, last in kept:
        change[first].append((server, -1))
        change[last + 1].append((server, 1))
    active: set[int] = set()
    held: dict[int, int] = {}
    rows: list[Held] = []
    for slot, after in pairwise(sorted({*begins, *ends, *change})):
        active = (active - set(ends[slot])) | set(begins[slot])
        for server, by in change[slot]:
            free[server] += by
        room, now = dict(free), dict[int, int]()
        for j in sorted(active, key=lambda j: (j not in together, j not in held, j)):
            places = sorted(free) if j not in together else [cloud]
            place = next((s for s in (held.get(j), *places) if s in room and room[s] >= 1), None)
            if place is not None:
                now[j] = place
                room[place] -= 1
                rows.append((j, place, slot, after - 1))
        held = now
    return rows
