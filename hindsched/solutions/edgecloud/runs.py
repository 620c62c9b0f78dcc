"""Rows of the edgecloud family as arrays: runs of chunks and holds of PSs.

Problem (2) lets a job's PS change from slot to slot, so that a placement exists exactly when in
each slot there are enough PSs: cloud PSs for the jobs with zeta = 1, any PSs for all others. The
placement here changes as little as it can: a job keeps its PS while it runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from hindsched.arrays import Ints
from hindsched.errors import InputError
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.solutions.base import Assignment, Assignments
from hindsched.solutions.rows import check_row_keys, read_span

EDGE_KEYS = {"chunk", "server", "worker", "from", "to"}
CLOUD_KEYS = {"chunk", "server", "from", "to"}
PS_KEYS = {"ps", "from", "to"}


class ChunkRun(NamedTuple):
    """One chunk on one place without interruption; chunk 0 is a PS, whose place is a server."""

    job: int
    chunk: int  # from 1
    place: int  # position in `worker_list`, of a PS in `servers`; their number means the cloud
    first: int
    last: int


@dataclass(frozen=True)
class Runs:
    """Runs of chunks, or holds of PSs: an array a field of `ChunkRun`, sorted by its first two."""

    job: Ints
    chunk: Ints
    place: Ints
    first: Ints
    last: Ints

    @classmethod
    def of(cls, rows: Sequence[ChunkRun]) -> Self:
        """Build from runs in any order; touching runs are merged."""
        return cls(*_merge(np.array(rows, dtype=np.int64).reshape(-1, 5)).T)

    def rows(self) -> Iterator[ChunkRun]:
        """The runs one by one."""
        columns = (column.tolist() for column in vars(self).values())
        return map(ChunkRun._make, zip(*columns, strict=True))


def _merge(table: Ints) -> Ints:
    """Sort rows (job, chunk, place, first, last) and join those of a place that touch."""
    table = table[np.lexsort((table[:, 3], table[:, 1], table[:, 0]))]
    if len(table) < 2:
        return table
    same = np.all(table[1:, :3] == table[:-1, :3], axis=1)
    joins = same & (table[1:, 3] == table[:-1, 4] + 1)
    starts = np.flatnonzero(np.concatenate(([True], ~joins)))
    ends = np.append(starts[1:], len(table)) - 1
    merged = table[starts]
    merged[:, 4] = table[ends, 4]
    return merged


def read_runs(instance: EdgecloudInstance, assignments: Assignments) -> tuple[Runs, Runs]:
    """What the rows of all jobs run and hold; `InputError` for what is no row of the instance."""
    runs: list[ChunkRun] = []
    holds: list[ChunkRun] = []
    for name, rows in assignments.items():
        j = instance.job_index(name)
        for number, row in enumerate(rows):
            where, chunks = f"{name}.assignments[{number}]", instance.jobs[j].chunks
            span = read_span(where, row)
            if "ps" in row:
                check_row_keys(where, row, PS_KEYS, PS_KEYS)
                holds.append(ChunkRun(j, 0, ps_place(instance, row, where), *span))
                continue
            chunk = row.get("chunk")
            if type(chunk) is not int or not 1 <= chunk <= chunks:
                raise InputError(f"{where}.chunk", chunk, f"must be in 1..{chunks}")
            runs.append(ChunkRun(j, chunk, worker_place(instance, row, where), *span))
    return Runs.of(runs), Runs.of(holds)


def worker_place(instance: EdgecloudInstance, row: Mapping[str, object], where: str) -> int:
    """Position of the worker that a row names, or the number of workers for the cloud."""
    server = row.get("server")
    if server == instance.cloud.name:
        check_row_keys(where, row, CLOUD_KEYS, CLOUD_KEYS)
        return len(instance.worker_list)
    check_row_keys(where, row, EDGE_KEYS, EDGE_KEYS)
    if not isinstance(server, str) or server not in instance.server_index:
        raise InputError(f"{where}.server", server, "must name a server or the cloud")
    number = row["worker"]
    place = instance.worker_index.get((server, number)) if type(number) is int else None
    if place is None:
        count = len(instance.servers[instance.server_index[server]].workers)
        raise InputError(f"{where}.worker", number, f"must be in 1..{count}")
    return place


def ps_place(instance: EdgecloudInstance, row: Mapping[str, object], where: str) -> int:
    """Position of the server whose PS a row names, or the number of servers for the cloud."""
    if row["ps"] == instance.cloud.name:
        return len(instance.servers)
    place = instance.server_index.get(row["ps"]) if isinstance(row["ps"], str) else None
    if place is None:
        raise InputError(f"{where}.ps", row["ps"], "must name a server or the cloud")
    return place


def place_name(instance: EdgecloudInstance, server: int) -> str:
    """Name of a server by position; their number means the cloud."""
    servers = instance.servers
    return servers[server].name if server < len(servers) else instance.cloud.name


def file_row(instance: EdgecloudInstance, run: ChunkRun) -> Assignment:
    """A run or a hold as a row of the file."""
    span: Assignment = {"from": run.first, "to": run.last}
    if run.chunk == 0:
        return {"ps": place_name(instance, run.place), **span}
    if run.place == len(instance.worker_list):
        return {"chunk": run.chunk, "server": instance.cloud.name, **span}
    server, number, _ = instance.worker_list[run.place]
    return {"chunk": run.chunk, "server": place_name(instance, server), "worker": number, **span}


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
    instance: EdgecloudInstance, runs: Runs, together: Collection[int] | None = None,
    kept: Sequence[ChunkRun] = (),
) -> Runs:  # fmt: skip
    """Give every running job one PS in every slot, where there are enough of them.

    A job that finds no free PS in a slot holds none then, which is a violation of (2e). Jobs
    `together` (None: all that run only there) must have theirs in the cloud (zeta = 1); those of
    `kept` hold these PSs for good and get no others.
    """
    if together is None:
        at_edge = runs.job[runs.place < len(instance.worker_list)]
        together = set(runs.job.tolist()) - set(at_edge.tolist())
    fixed = {held.job for held in kept}
    spans = [span for span in active_spans(runs) if span[0] not in fixed]
    rows = list(kept)
    for kind in sorted({job.ps_type for job in instance.jobs}):
        open_spans = [span for span in spans if instance.jobs[span[0]].ps_type == kind]
        held_of_type = [held for held in kept if instance.jobs[held.job].ps_type == kind]
        rows += _place_type(instance, kind, open_spans, set(together), held_of_type)
    return Runs.of(rows)


def _place_type(
    instance: EdgecloudInstance, kind: str, spans: list[tuple[int, int, int]], together: set[int],
    kept: list[ChunkRun],
) -> list[ChunkRun]:  # fmt: skip
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
    for _, _, server, first, last in kept:
        change[first].append((server, -1))
        change[last + 1].append((server, 1))
    active: set[int] = set()
    held: dict[int, int] = {}
    rows: list[ChunkRun] = []
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
                rows.append(ChunkRun(j, 0, place, slot, after - 1))
        held = now
    return rows
