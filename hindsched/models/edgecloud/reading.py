"""From an edgecloud program's variables to the runs of chunks, and the reverse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pyomo.environ as pyo

from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.models.algebra import Model
from hindsched.models.edgecloud.sets import may_wait_in_cloud
from hindsched.solutions.edgecloud.list_schedule import Past
from hindsched.solutions.edgecloud.runs import ChunkRun, Runs, place_parameter_servers
from hindsched.solutions.edgecloud.solution import EdgecloudSolution


def read_program(
    m: Model, instance: EdgecloudInstance, past: Past, last: Mapping[int, int], formulation: str
) -> EdgecloudSolution | None:
    """The solution at the variables' values; None if their counts do not add up."""
    rows = list(past.rows)
    taken: dict[tuple[int, int], set[int]] = {}
    for j in past.open_jobs:
        if formulation == "literal":
            found = _literal(m, instance, past, last[j], j, taken)
        else:
            found = _no_migration(m, instance, past, last[j], j)
        if found is None:
            return None
        rows += found
    runs = Runs.of(rows)
    together = {j for j in past.open_jobs if round(m.zeta[j].value)}
    locked = {run.job for run in rows} - set(past.open_jobs)
    in_cloud = locked - {run.job for run in rows if run.place < len(instance.worker_list)}
    holds = place_parameter_servers(instance, runs, together | in_cloud, past.ps_busy)
    return EdgecloudSolution(instance, runs, holds, formulation)


def _no_migration(
    m: Model, instance: EdgecloudInstance, past: Past, last: int, j: int
) -> list[ChunkRun] | None:
    """Runs of an open job in the program without migration."""
    cloud, zeta = len(instance.worker_list), bool(round(m.zeta[j].value))
    length = int((instance.cloud_slots if zeta else instance.edge_slots)[j])
    begun: dict[int, list[tuple[int, int]]] = {}
    for (i, chunk), (place, done) in past.started.items():
        if i == j:
            begun.setdefault(place, []).append((chunk, done))
    used = {chunk for chunks in begun.values() for chunk, _ in chunks}
    fresh = [c for c in range(instance.jobs[j].chunks, 0, -1) if c not in used]
    rows: list[ChunkRun] = []
    for w in (w for _, workers in instance.places(instance.jobs[j]) for w in workers):
        mine = begun.get(w, [])
        count = round(m.x[j, w].value) - len(mine)
        if count > len(fresh):
            return None
        queue = [*mine, *((fresh.pop(), 0) for _ in range(count))]
        first = min(past.now, instance.jobs[j].arrival)
        slots = [t for t in range(first, last + 1) if (j, w, t) in m.y and m.y[j, w, t].value > 0.5]
        for chunk, done in queue:
            own, slots = slots[: length - done], slots[length - done :]
            rows += [ChunkRun(j, chunk, w, t, t) for t in own]
        if slots:
            return None
    running = [(c, length - done) for c, done in begun.get(cloud, ()) if done < length]
    rows += [ChunkRun(j, c, cloud, past.now, past.now + left - 1) for c, left in running]
    if may_wait_in_cloud(instance, j):
        keys = [key for key in m.s if key[:2] == (j, int(zeta))]
        starts = [key[2] for key in keys for _ in range(round(m.s[key].value))]
    else:
        count = instance.jobs[j].chunks if zeta else round(m.xc[j].value)
        ready = max(past.now, int(instance.arrivals[j] + instance.cloud_upload[j]))
        starts = [ready] * (count - len(begun.get(cloud, ())))
    if len(starts) != len(fresh):
        return None
    return rows + [ChunkRun(j, fresh.pop(), cloud, t, t + length - 1) for t in starts]


def _literal(
    m: Model, instance: EdgecloudInstance, past: Past, last: int, j: int,
    taken: dict[tuple[int, int], set[int]],
) -> list[ChunkRun] | None:  # fmt: skip
    """Runs of an open job in the printed program, dealt out to its chunks slot by slot."""
    cloud, chunks = len(instance.worker_list), instance.jobs[j].chunks
    zeta = bool(round(m.zeta[j].value))
    left = chunks * int((instance.cloud_slots if zeta else instance.edge_slots)[j])
    left -= sum(run.last - run.first + 1 for run in past.rows if run.job == j)
    if zeta and not may_wait_in_cloud(instance, j):
        ready = max(past.now, int(instance.arrivals[j] + instance.cloud_upload[j]))
        full, rest = divmod(left, chunks)
        ends = [ready + full - 1 + (c < rest) for c in range(chunks)]
        return [ChunkRun(j, c + 1, cloud, ready, end) for c, end in enumerate(ends) if end >= ready]
    lanes: dict[tuple[int, int], int] = {}  # chunk of each (place, which) in the slot before
    in_cloud = m.k1 if zeta else m.k
    rows: list[ChunkRun] = []
    for t in range(min(past.now, instance.jobs[j].arrival), last + 1):
        units: list[tuple[int, int]] = []
        for g, workers in enumerate(instance.groups.values()):
            if (j, g, t) in m.y:
                busy = {w for w in workers if t in past.busy.get(w, ())}
                blocked = taken.setdefault((g, t), busy)
                free = [w for w in workers if w not in blocked]
                free.sort(key=lambda w: ((w, 0) not in lanes, w))
                count = round(m.y[j, g, t].value)
                if count > len(free):
                    return None
                blocked.update(free[:count])
                units += [(w, 0) for w in free[:count]]
        if (j, t) in in_cloud:
            count = min(chunks - len(units), round(in_cloud[j, t].value))
            units += [(cloud, i) for i in range(count)]
        units = units[:left]
        left -= len(units)
        kept = {unit: lanes[unit] for unit in units if unit in lanes}
        free = [c for c in range(chunks, 0, -1) if c not in kept.values()]
        lanes = {unit: kept.get(unit) or free.pop() for unit in units}
        rows += [ChunkRun(j, lane, place, t, t) for (place, _), lane in lanes.items()]
    return None if left > 0 else rows


def load_solution(m: Model, past: Past, solution: EdgecloudSolution, *, literal: bool) -> None:
    """Set the variables' values from a solution of the whole instance, as a start."""
    instance, cloud = solution.instance, len(solution.instance.worker_list)
    last = [solution.completion(job.name) or 0 for job in instance.jobs]
    group = {w: g for g, ws in enumerate(instance.groups.values()) for w in ws}
    counts: Counter[tuple[str, object]] = Counter()
    seen: set[tuple[int, int]] = set()
    for j, chunk, place, first, end in solution.runs.rows():
        zeta = int(solution.all_cloud[j])
        counts["s", (j, zeta, first)] += place == cloud
        if (j, chunk) not in seen and place == cloud:
            counts["xc", j] += 1 - zeta
        elif (j, chunk) not in seen:
            counts["x", (j, place)] += 1
        seen.add((j, chunk))
        for t in range(first, end + 1):
            if place < cloud:
                counts["y", (j, group[place] if literal else place, t)] += 1
            else:
                counts["k1" if zeta else "k", (j, t)] += 1
    counts.update({("C", (j, t)): t <= last[j] for j, t in m.C})
    counts.update({("zeta", j): int(solution.all_cloud[j]) for j in past.open_jobs})
    for variable in m.component_objects(pyo.Var):
        for key, each in variable.items():
            if not each.fixed:
                each.set_value(int(counts[variable.local_name, key]), skip_validation=True)
