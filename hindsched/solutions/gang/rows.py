"""Rows of a gang schedule as arrays: which job holds how many GPUs, when and where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hindsched.arrays import Ints
from hindsched.errors import InputError
from hindsched.instances.gang.instance import MOST_SLOTS, GangInstance
from hindsched.json_types import JsonObject
from hindsched.solutions.base import Assignment, Assignments
from hindsched.solutions.rows import check_row_keys, read_counts, read_rows, read_span


@dataclass(frozen=True)
class GangRows:
    """Stretches of time in which a job's GPUs do not change."""

    job: Ints  # positions of the jobs, (rows,)
    start: Ints  # the row holds slots start + 1 .. end
    end: Ints
    gpus: Ints
    place_row: Ints  # GPUs of a row on a server, by row and server, (places,); may be empty
    place_server: Ints
    place_gpus: Ints

    def sorted(self) -> GangRows:
        """The same rows by job, start and end."""
        order = np.lexsort((self.end, self.start, self.job))
        if np.array_equal(order, np.arange(order.size)):
            return self
        position = np.empty_like(order)
        position[order] = np.arange(order.size)
        at = position[self.place_row]
        places = np.lexsort((self.place_server, at))
        return GangRows(
            self.job[order], self.start[order], self.end[order], self.gpus[order],
            at[places], self.place_server[places], self.place_gpus[places],
        )  # fmt: skip

    def placements(self) -> list[tuple[tuple[int, int], ...]]:
        """(server, GPUs) pairs of each row."""
        found: list[list[tuple[int, int]]] = [[] for _ in range(self.job.size)]
        columns = (self.place_row.tolist(), self.place_server.tolist(), self.place_gpus.tolist())
        for row, server, gpus in zip(*columns, strict=True):
            found[row].append((server, gpus))
        return [tuple(places) for places in found]


def pool_rows(job: Ints, start: Ints, end: Ints, gpus: Ints) -> GangRows:
    """Rows that name no server."""
    none = np.zeros(0, dtype=np.int64)
    return GangRows(job, start, end, gpus, none, none, none)


def read_gang_rows(instance: GangInstance, assignments: Assignments) -> GangRows:
    """Read rows in the file's form ``{from, to, gpus}`` or ``{from, to, servers: {name: n}}``."""
    servers = [server.name for server in instance.servers or ()]

    def read(_: GangInstance, where: str, row: Assignment) -> tuple[int | Ints, int, int]:
        held = read_gpus(instance, servers, where, row)
        return held, *read_span(where, row, MOST_SLOTS)

    table: list[tuple[int, int, int, int]] = []
    places: list[tuple[int, int, int]] = []
    for name, rows in read_rows(instance, assignments, read).items():
        for held, first, last in rows:
            if not isinstance(held, int):
                at = np.flatnonzero(held).tolist()
                places += [(len(table), server, int(held[server])) for server in at]
            table.append((instance.job_index(name), first - 1, last, int(np.sum(held))))
    columns = np.array(table, dtype=np.int64).reshape(-1, 4).T
    return GangRows(*columns, *np.array(places, dtype=np.int64).reshape(-1, 3).T).sorted()


def read_gpus(
    instance: GangInstance,
    servers: list[str],
    where: str,
    row: Assignment,
    span: frozenset[str] = frozenset({"from", "to"}),
) -> int | Ints:
    """Read a row's GPUs, or GPUs by server; beside them it must have the keys `span`."""
    if "servers" in row and servers:
        check_row_keys(where, row, span | {"servers"}, span | {"servers"})
        held = read_counts(f"{where}.servers", row["servers"], servers)
        if not held.any():
            raise InputError(f"{where}.servers", row["servers"], "must hold a GPU")
        return held
    keys = span | {"servers" if instance.is_consolidated else "gpus"}
    check_row_keys(where, row, keys, keys)
    gpus = row["gpus"]
    if type(gpus) is not int or not 1 <= gpus <= MOST_SLOTS:
        raise InputError(f"{where}.gpus", gpus, "must be an integer of at least 1")
    return gpus


def write_gang_rows(instance: GangInstance, rows: GangRows) -> dict[str, list[Assignment]]:
    """Write rows in the file's form, by job name."""
    names = [job.name for job in instance.jobs]
    servers = [server.name for server in instance.servers or ()]
    placements = rows.placements()
    written: dict[str, list[Assignment]] = {}
    columns = (rows.job.tolist(), rows.start.tolist(), rows.end.tolist(), rows.gpus.tolist())
    for job, start, end, gpus, places in zip(*columns, placements, strict=True):
        row: JsonObject = {"from": start + 1, "to": end}
        if places:
            row["servers"] = {servers[server]: held for server, held in places}
        else:
            row["gpus"] = gpus
        written.setdefault(names[job], []).append(row)
    return written
