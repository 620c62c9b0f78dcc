"""Rows of a gang schedule as arrays: which job holds how many GPUs, when and where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hindsched.arrays import Ints
from hindsched.errors import InputError
from hindsched.instances.gang.instance import MOST_SLOTS, GangInstance
from hindsched.json_types import JsonObject
from hindsched.solutions.base import Assignment, Assignments
from hindsched.solutions.rows import check_row_keys, read_counts


@dataclass(frozen=True)
class GangRows:
    """Stretches of time in which a job's GPUs do not change.

    Parameters
    ----------
    job : ndarray of int, shape (rows,)
        Position of the job.
    start, end : ndarray of int, shape (rows,)
        The row holds slots ``start + 1 .. end``: it lasts from time `start` to time `end`.
    gpus : ndarray of int, shape (rows,)
        GPUs held.
    place_row, place_server, place_gpus : ndarray of int, shape (places,)
        GPUs held by a row on a server, sorted by row and server; empty if none is named.
    """

    job: Ints
    start: Ints
    end: Ints
    gpus: Ints
    place_row: Ints
    place_server: Ints
    place_gpus: Ints

    @property
    def size(self) -> int:
        """Number of rows."""
        return int(self.job.size)

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
        found: list[list[tuple[int, int]]] = [[] for _ in range(self.size)]
        columns = (self.place_row.tolist(), self.place_server.tolist(), self.place_gpus.tolist())
        for row, server, gpus in zip(*columns, strict=True):
            found[row].append((server, gpus))
        return [tuple(places) for places in found]


def pool_rows(job: Ints, start: Ints, end: Ints, gpus: Ints) -> GangRows:
    """Rows that name no server."""
    none = np.zeros(0, dtype=np.int64)
    return GangRows(job, start, end, gpus, none, none, none)


def read_gang_rows(instance: GangInstance, assignments: Assignments) -> GangRows:
    """Read rows in the file's form ``{from, to, gpus}`` or ``{from, to, servers: {name: n}}``.

    Raises
    ------
    InputError
        For an unknown job, server or key, or an amount that is no count.
    """
    servers = [server.name for server in instance.servers or ()]
    job: list[int] = []
    start: list[int] = []
    end: list[int] = []
    gpus: list[int] = []
    places: list[tuple[int, int, int]] = []
    for name, rows in assignments.items():
        if name not in instance.names:
            raise InputError("assignments", name, "must name a job of the instance")
        index = instance.names[name]
        for number, row in enumerate(rows):
            where = f"{name}.assignments[{number}]"
            held = read_gpus(instance, servers, where, row)
            first, last = read_span(where, row)
            if isinstance(held, int):
                gpus.append(held)
            else:
                at = np.flatnonzero(held)
                places += [(len(job), int(server), int(held[server])) for server in at]
                gpus.append(int(held.sum()))
            job.append(index)
            start.append(first - 1)
            end.append(last)
    columns = [job, start, end, gpus, *(list(zip(*places, strict=True)) or [(), (), ()])]
    return GangRows(*(np.array(column, dtype=np.int64) for column in columns)).sorted()


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
        if held.min() < 0 or not held.any():
            rule = "must be counts of at least 0 and hold a GPU"
            raise InputError(f"{where}.servers", row["servers"], rule)
        return held
    keys = span | {"servers" if instance.is_consolidated else "gpus"}
    check_row_keys(where, row, keys, keys)
    gpus = row["gpus"]
    if type(gpus) is not int or not 1 <= gpus <= MOST_SLOTS:
        raise InputError(f"{where}.gpus", gpus, "must be an integer of at least 1")
    return gpus


def read_span(where: str, row: Assignment) -> tuple[int, int]:
    """Read ``from`` and ``to``: slots up to `MOST_SLOTS`, both inclusive."""
    for key in ("from", "to"):
        slot = row[key]
        if type(slot) is not int or not 1 <= slot <= MOST_SLOTS:
            rule = f"must be a slot, an integer in 1..{MOST_SLOTS}"
            raise InputError(f"{where}.{key}", slot, rule)
    if row["from"] > row["to"]:
        raise InputError(f"{where}.to", row["to"], f"must not precede from = {row['from']}")
    return row["from"], row["to"]


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
