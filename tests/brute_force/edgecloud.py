"""Optima of tiny edgecloud instances by trying raw decisions: homes, and who runs in each slot.

Shares nothing with the package but the instance's fields: processing times are computed here, PSs
are matched job by job, and no mode, window or order is assumed. Chunks of a job are told apart only
as far as they differ.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import combinations_with_replacement, product

CLOUD = "cloud"


def slots_a_chunk(job, slot_seconds, together):
    """Equation (1), rounded up to whole slots."""
    exchange = 0 if together else 2 * job.gradient_mb * 8 / job.bandwidth_mbps / slot_seconds
    exact = job.epochs * job.minibatches * (job.minibatch_slots + job.update_slots + exchange)
    return max(1, math.ceil(exact - 1e-9))


def workers_of(instance):
    """(server name, type) of every edge worker."""
    return [(server.name, kind) for server in instance.servers for kind in server.workers]


def ps_can_serve(instance, running):
    """Whether each running job can hold a PS of its own: (job, zeta) pairs, tried one by one."""
    pool = [(server.name, kind) for server in instance.servers for kind in server.ps]
    limits = instance.cloud.ps or {}
    if not limits:
        return True  # the cloud has one for everybody

    def place(rest, edge, cloud):
        if not rest:
            return True
        (job, together), *others = rest
        kind = job.ps_type
        room = kind not in limits or cloud.get(kind, 0) < limits[kind]
        if room and place(others, edge, {**cloud, kind: cloud.get(kind, 0) + 1}):
            return True
        if together:
            return False
        return any(
            place(others, edge[:i] + edge[i + 1 :], cloud)
            for i, (_, have) in enumerate(edge)
            if have == kind
        )

    return place(list(running), pool, {})


def last_slot(instance):
    """A slot by which some optimal schedule has ended: everything one after the other."""
    ready = max(j.arrival + max(j.upload_slots.values()) for j in instance.jobs)
    work = sum(j.chunks * slots_a_chunk(j, instance.slot_seconds, False) for j in instance.jobs)
    return ready + work


def optimum(instance, formulation="no-migration"):
    """Smallest total job completion time, inf if nothing is feasible."""
    if formulation == "literal":
        return literal_optimum(instance)
    return no_migration_optimum(instance)


def no_migration_optimum(instance):
    """Every chunk has a home; in the cloud it runs without a break."""
    jobs, workers = instance.jobs, workers_of(instance)
    seconds = instance.slot_seconds
    limits = instance.cloud.workers or {}
    options = []
    for job in jobs:
        places = [w for w, (_, kind) in enumerate(workers) if kind == job.worker_type]
        if limits.get(job.worker_type, 1) > 0:
            places.append(CLOUD)
        mine = [(homes, 0) for homes in combinations_with_replacement(places, job.chunks)]
        if CLOUD in places:
            mine.append(((CLOUD,) * job.chunks, 1))
        options.append(mine)

    def ready(job, home):
        name = instance.cloud.name if home == CLOUD else workers[home][0]
        return job.arrival + job.upload_slots[name]

    def least(choice):
        """Time of each job if it never waited."""
        times = []
        for job, (homes, zeta) in zip(jobs, choice, strict=True):
            p = slots_a_chunk(job, seconds, zeta)
            times.append(max(ready(job, home) + p for home in homes) - job.arrival)
        return times

    best = math.inf
    for choice in sorted(product(*options), key=lambda choice: sum(least(choice))):
        if sum(least(choice)) >= best:
            break
        found = schedule_homes(instance, workers, choice, ready, best, least(choice))
        best = min(best, found)
    return best


def schedule_homes(instance, workers, choice, ready, best, least):
    """Best schedule for given homes, by all decisions of every slot.

    A state whose unfinished jobs already make the total `best` or more is left.
    """
    jobs, seconds = instance.jobs, instance.slot_seconds
    chunks = [(j, home, zeta) for j, (homes, zeta) in enumerate(choice) for home in homes]
    work = [slots_a_chunk(jobs[j], seconds, zeta) for j, _, zeta in chunks]
    limits = instance.cloud.workers or {}
    end = last_slot(instance)
    stores = {server.name: server.storage_gb for server in instance.servers}

    def stored_fits(t, left):
        for name, limit in stores.items():
            if limit is None:
                continue
            used = 0.0
            for j, home, _ in chunks:
                unfinished = any(left[d] for d, (i, _, _) in enumerate(chunks) if i == j)
                here = home != CLOUD and workers[home][0] == name
                if here and jobs[j].arrival <= t and unfinished:
                    used += jobs[j].chunk_gb or 0.0
            if used > limit + 1e-9:
                return False
        return True

    @cache
    def cost_from(t, left):
        if not any(left):
            return 0
        unfinished = {j for c, (j, _, _) in enumerate(chunks) if left[c]}
        total = sum(max(least[j], t - jobs[j].arrival + 1) for j in unfinished)
        total += sum(least[j] for j in range(len(jobs)) if j not in unfinished)
        if t > end or total >= best or not stored_fits(t, left):
            return math.inf
        now = sum(jobs[j].arrival <= t for j in unfinished)
        found = math.inf
        for runs in slot_choices(t, left):
            running = {(chunks[c][0], chunks[c][2]) for c in runs}
            if not ps_can_serve(instance, [(jobs[j], zeta) for j, zeta in running]):
                continue
            after = tuple(n - (c in runs) for c, n in enumerate(left))
            found = min(found, now + cost_from(t + 1, after))
        return found

    def slot_choices(t, left):
        by_home = {}
        must, may = [], []
        for c, (j, home, _) in enumerate(chunks):
            if not left[c] or ready(jobs[j], home) > t:
                continue
            if home == CLOUD:
                (must if left[c] < work[c] else may).append(c)
            else:
                by_home.setdefault(home, []).append(c)
        for picks in product(*([None, *mine] for mine in by_home.values())):
            for starts in product(*([False, True] for _ in may)):
                runs = {c for c in picks if c is not None} | set(must)
                runs |= {c for c, start in zip(may, starts, strict=True) if start}
                in_cloud = [jobs[chunks[c][0]].worker_type for c in runs if chunks[c][1] == CLOUD]
                if all(in_cloud.count(kind) <= n for kind, n in limits.items()):
                    yield runs

    return cost_from(1, tuple(work))


def literal_optimum(instance):
    """Problem (2) as printed: only the number of workers of each job in each slot counts."""
    jobs, workers = instance.jobs, workers_of(instance)
    limits = instance.cloud.workers or {}
    best = math.inf
    for zetas in product((0, 1), repeat=len(jobs)):
        if any(z and limits.get(j.worker_type, 1) == 0 for z, j in zip(zetas, jobs, strict=True)):
            continue
        best = min(best, literal_schedule(instance, jobs, workers, zetas, best))
    return best


def literal_schedule(instance, jobs, workers, zetas, best):
    """Best schedule for given zetas, by all decisions of every slot; storage is not known here."""
    seconds = instance.slot_seconds
    work = tuple(j.chunks * slots_a_chunk(j, seconds, z) for j, z in zip(jobs, zetas, strict=True))
    limits = instance.cloud.workers or {}
    end = last_slot(instance)

    def ready(job, name):
        return job.arrival + job.upload_slots[name]

    @cache
    def cost_from(t, left):
        if not any(left):
            return 0
        total = sum(max(0, t - jobs[j].arrival + 1) for j in range(len(jobs)) if left[j])
        if t > end or total >= best:
            return math.inf
        now = sum(jobs[j].arrival <= t for j in range(len(jobs)) if left[j])
        edge = []
        for name, kind in workers:
            users = [
                j
                for j, job in enumerate(jobs)
                if left[j] and not zetas[j] and job.worker_type == kind and ready(job, name) <= t
            ]
            edge.append([None, *users])
        cloud = []
        for j, job in enumerate(jobs):
            open_ = left[j] and limits.get(job.worker_type, 1) > 0
            open_ = open_ and ready(job, instance.cloud.name) <= t
            most = min(job.chunks, limits.get(job.worker_type, job.chunks)) if open_ else 0
            cloud.append(range(most + 1))
        found = math.inf
        seen = set()
        for picks in product(*edge):
            for more in product(*cloud):
                counts = tuple(picks.count(j) + more[j] for j in range(len(jobs)))
                if counts in seen or any(counts[j] > jobs[j].chunks for j in range(len(jobs))):
                    continue
                by_type = {}
                for j, n in enumerate(more):
                    kind = jobs[j].worker_type
                    by_type[kind] = by_type.get(kind, 0) + n
                if any(by_type.get(kind, 0) > n for kind, n in limits.items()):
                    continue
                seen.add(counts)
                running = [(jobs[j], zetas[j]) for j, n in enumerate(counts) if n]
                if not ps_can_serve(instance, running):
                    continue
                after = tuple(max(0, n - c) for n, c in zip(left, counts, strict=True))
                found = min(found, now + cost_from(t + 1, after))
        return found

    return cost_from(1, work)
