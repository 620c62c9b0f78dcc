"""From an edgecloud program's variables to the runs of chunks, and the reverse."""

from __future__ import annotations

from collections.abc import Mapping

from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.models import algebra as pyo
from hindsched.models.algebra import Model, Variable
from hindsched.models.edgecloud.side_rows import may_wait_in_cloud
from hindsched.solutions.edgecloud.frozen_schedule import Past
from hindsched.solutions.edgecloud.runs import ChunkRun
from hindsched.solutions.edgecloud.solution import EdgecloudSolution


def _spans(slots: list[int]) -> list[tuple[int, int]]:
    """Slots as spans (first, last)."""
    spans: list[tuple[int, int]] = []
    for t in slots:
        if spans and spans[-1][1] == t - 1:
            spans[-1] = (spans[-1][0], t)
        else:
            spans.append((t, t))
    return spans


def read_no_migration(
    m: Model, instance: EdgecloudInstance, past: Past, last_slot: int, j: int
) -> list[ChunkRun] | None:
    """Runs of an open job in the program without migration; None if counts do not add up."""
    cloud = len(instance.worker_list)
    zeta = bool(round(pyo.value(m.zeta[j])))
    length = int((instance.cloud_slots if zeta else instance.edge_slots)[j])
    begun: dict[int, list[tuple[int, int]]] = {}
    for (i, chunk), (place, done) in past.started.items():
        if i == j:
            begun.setdefault(place, []).append((chunk, done))
    used = {chunk for chunks in begun.values() for chunk, _ in chunks}
    fresh = [c for c in range(1, instance.jobs[j].chunks + 1) if c not in used]
    fresh.reverse()
    rows: list[ChunkRun] = []
    for _, workers in instance.places(instance.jobs[j]):
        for w in workers:
            count = round(pyo.value(m.x[j, w]))
            mine = begun.get(w, [])
            if count - len(mine) > len(fresh):
                return None
            queue = [*mine, *((fresh.pop(), 0) for _ in range(count - len(mine)))]
            first, last = past.now, last_slot
            keys = ((j, w, t) for t in range(min(first, instance.jobs[j].arrival), last + 1))
            slots = [key[2] for key in keys if key in m.y and pyo.value(m.y[key]) > 0.5]
            for chunk, done in queue:
                left, slots = slots[: length - done], slots[length - done :]
                rows += [ChunkRun(j, chunk, w, *span) for span in _spans(left)]
            if slots:
                return None
    for chunk, done in begun.get(cloud, ()):
        if length > done:
            rows.append(ChunkRun(j, chunk, cloud, past.now, past.now + length - done - 1))
    count = instance.jobs[j].chunks if zeta else round(pyo.value(m.xc[j]))
    count -= len(begun.get(cloud, ()))
    starts = _cloud_starts(m, instance, past.now, j, int(zeta), count)
    if starts is None or len(starts) != len(fresh):
        return None
    rows += [ChunkRun(j, fresh.pop(), cloud, t, t + length - 1) for t in starts]
    return rows


def _cloud_starts(
    m: Model, instance: EdgecloudInstance, now: int, j: int, zeta: int, count: int
) -> list[int] | None:
    if not may_wait_in_cloud(instance, j):
        ready = int(instance.arrivals[j] + instance.cloud_upload[j])
        return [max(ready, now)] * count
    starts = [
        key[2] for key in m.s if key[:2] == (j, zeta) for _ in range(round(pyo.value(m.s[key])))
    ]
    return starts if len(starts) == count else None


def read_literal(
    m: Model,
    instance: EdgecloudInstance,
    past: Past,
    last_slot: int,
    j: int,
    taken: dict[tuple[int, int], set[int]],
) -> list[ChunkRun] | None:
    """Runs of an open job in the printed program, dealt out to its chunks slot by slot."""
    cloud = len(instance.worker_list)
    zeta = bool(round(pyo.value(m.zeta[j])))
    members = list(instance.groups.values())
    chunks = instance.jobs[j].chunks
    done = sum(run.last - run.first + 1 for run in past.rows if run.job == j)
    if zeta and not may_wait_in_cloud(instance, j):
        left = chunks * int(instance.cloud_slots[j]) - done
        ready = max(past.now, int(instance.arrivals[j] + instance.cloud_upload[j]))
        full, rest = divmod(left, chunks)
        ends = [ready + full - 1 + (c < rest) for c in range(chunks)]
        return [ChunkRun(j, c + 1, cloud, ready, end) for c, end in enumerate(ends) if end >= ready]
    left = chunks * int((instance.cloud_slots if zeta else instance.edge_slots)[j]) - done
    lanes: dict[int, dict[tuple[int, int], int]] = {}  # slot -> {(place, which) -> lane}
    at_cloud = m.k1 if zeta else m.k
    rows: list[ChunkRun] = []
    for t in range(min(past.now, instance.jobs[j].arrival), last_slot + 1):
        if left <= 0:
            break
        units: list[tuple[int, int]] = []
        for g, workers in enumerate(members):
            if (j, g, t) in m.y:
                blocked = taken.setdefault((g, t), _busy(past, workers, t))
                free = [w for w in workers if w not in blocked]
                before = lanes.get(t - 1, {})
                free.sort(key=lambda w: ((w, 0) not in before, w))
                chosen = free[: round(pyo.value(m.y[j, g, t]))]
                if len(chosen) != round(pyo.value(m.y[j, g, t])):
                    return None
                blocked.update(chosen)
                units += [(w, 0) for w in chosen]
        if (j, t) in at_cloud:
            room = chunks - len(units)
            count = round(pyo.value(at_cloud[j, t]))
            units += [(cloud, i) for i in range(min(room, count))]
        units = units[:left]
        left -= len(units)
        lanes[t] = _lanes(units, lanes.get(t - 1, {}), chunks)
        rows += [ChunkRun(j, lane, place, t, t) for (place, _), lane in lanes[t].items()]
    return rows if left <= 0 else None


def _busy(past: Past, workers: tuple[int, ...], t: int) -> set[int]:
    return {w for w in workers if t in past.busy.get(w, ())}


def _lanes(
    units: list[tuple[int, int]], before: Mapping[tuple[int, int], int], chunks: int
) -> dict[tuple[int, int], int]:
    """Number the workers of a job in a slot; one that ran before keeps its number."""
    kept = {unit: before[unit] for unit in units if unit in before}
    free = [c for c in range(chunks, 0, -1) if c not in set(kept.values())]
    return {unit: kept.get(unit) or free.pop() for unit in units}


def load_solution(m: Model, past: Past, solution: EdgecloudSolution, *, printed: bool) -> None:
    """Set the variables' values from a solution of the whole instance, as a start."""
    instance, runs = solution.instance, solution.runs
    cloud = len(instance.worker_list)
    for variable in m.component_data_objects(pyo.Var):
        if not variable.fixed:
            variable.set_value(0, skip_validation=True)
    last = [solution.completion(job.name) or 0 for job in instance.jobs]
    for j, t in m.C:
        m.C[j, t].set_value(int(t <= last[j]), skip_validation=True)
    for j in past.open_jobs:
        if not m.zeta[j].fixed:
            m.zeta[j].set_value(int(solution.all_cloud[j]), skip_validation=True)
    group = {w: g for g, ws in enumerate(instance.groups.values()) for w in ws}
    counted: set[tuple[int, int]] = set()
    for j, chunk, place, first, end in zip(
        *(column.tolist() for column in vars(runs).values()), strict=True
    ):
        fresh = (j, chunk) not in counted
        counted.add((j, chunk))
        if place == cloud and not printed:
            if not solution.all_cloud[j]:
                m.xc[j].set_value(m.xc[j].value + fresh, skip_validation=True)
            key = (j, int(solution.all_cloud[j]), first)
            if key in m.s:
                m.s[key].set_value(m.s[key].value + 1, skip_validation=True)
        elif not printed:
            m.x[j, place].set_value(m.x[j, place].value + fresh, skip_validation=True)
        for t in range(first, end + 1):
            if place < cloud:
                _count_one(m.y, (j, group[place] if printed else place, t))
            elif printed:
                _count_one(m.k1 if solution.all_cloud[j] else m.k, (j, t))


def _count_one(variable: Variable, key: tuple[int, ...]) -> None:
    if key in variable:
        variable[key].set_value(variable[key].value + 1, skip_validation=True)
