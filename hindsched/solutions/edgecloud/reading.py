"""Reading an edgecloud schedule: rows of the file as runs of chunks and holds of PSs."""

from __future__ import annotations

from collections.abc import Mapping

from hindsched.errors import InputError
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.solutions.base import Assignments
from hindsched.solutions.edgecloud.runs import ChunkRun, Holds, Runs
from hindsched.solutions.rows import read_span

EDGE_KEYS = {"chunk", "server", "worker", "from", "to"}
CLOUD_KEYS = {"chunk", "server", "from", "to"}
PS_KEYS = {"ps", "from", "to"}


def read_rows(instance: EdgecloudInstance, assignments: Assignments) -> tuple[Runs, Holds]:
    """What the rows of all jobs run and hold.

    Raises
    ------
    InputError
        If a row names what the instance does not have, or is no row.
    """
    runs: list[ChunkRun] = []
    holds: list[tuple[int, int, int, int]] = []
    position = {job.name: index for index, job in enumerate(instance.jobs)}
    for name, rows in assignments.items():
        if name not in position:
            raise InputError("jobs", name, "must name a job of the instance")
        j, chunks = position[name], instance.jobs[position[name]].chunks
        for number, row in enumerate(rows):
            where = f"{name}.assignments[{number}]"
            first, last = read_span(where, row)
            if "ps" in row:
                _check_keys(row, PS_KEYS, where)
                holds.append((j, ps_place(instance, row, where), first, last))
                continue
            chunk = row.get("chunk")
            if type(chunk) is not int or not 1 <= chunk <= chunks:
                raise InputError(f"{where}.chunk", chunk, f"must be in 1..{chunks}")
            runs.append(ChunkRun(j, chunk, worker_place(instance, row, where), first, last))
    return Runs.of(runs), Holds.of(holds)


def worker_place(instance: EdgecloudInstance, row: Mapping[str, object], where: str) -> int:
    """Position of the worker that a row names, or the number of workers for the cloud."""
    server = row.get("server")
    if server == instance.cloud.name:
        _check_keys(row, CLOUD_KEYS, where)
        return len(instance.worker_list)
    _check_keys(row, EDGE_KEYS, where)
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


def _check_keys(row: Mapping[str, object], keys: set[str], where: str) -> None:
    if set(row) != keys:
        raise InputError(where, row, f"must have exactly the keys {', '.join(sorted(keys))}")
