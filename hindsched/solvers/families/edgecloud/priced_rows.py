"""The rows that an edgecloud oracle prices: which workers share one, and where each row stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.solutions.edgecloud.list_schedule import GreedySchedule, read_past
from hindsched.solvers.oracles.rows import Rows, RowSet, slot_labels

SET_NAMES = {"groups": "group_capacity", "types": "type_capacity", "servers": "worker_capacity"}
AXIS_NAMES = {"groups": "group", "types": "type", "servers": "worker"}
PS_SETS = ("parameter_servers", "cloud_parameter_servers")
"""Rows of all PSs of a type, and of those in the cloud."""


@dataclass(frozen=True)
class Places:
    """The rows of one layout, without slots: workers that share a price."""

    labels: tuple[str, ...]
    kinds: tuple[str, ...]  # worker type of each
    members: tuple[tuple[int, ...], ...]  # as positions in `EdgecloudInstance.worker_list`


def places_of(instance: EdgecloudInstance, layout: str) -> Places:
    """The places of a layout."""
    names = [server.name for server in instance.servers]
    if layout == "servers":
        found = instance.worker_list
        labels = tuple(f"{names[s]}/{number}" for s, number, _ in found)
        return Places(labels, tuple(k for *_, k in found), tuple((w,) for w in range(len(found))))
    if layout == "groups":
        groups = instance.groups
        labels = tuple(f"{names[s]}/{kind}" for s, kind in groups)
        return Places(labels, tuple(kind for _, kind in groups), tuple(groups.values()))
    types = instance.workers_by_type
    return Places(tuple(types), tuple(types), tuple(types.values()))


def last_priced_slot(instance: EdgecloudInstance) -> int:
    """Last slot of all layouts but ``servers``: no good schedule runs later."""
    ends = [instance.horizon]
    for j, job in enumerate(instance.jobs):
        if instance.cloud_workers(job.worker_type) is None:
            alone = int(instance.cloud_upload[j] + instance.cloud_slots[j])
            ends.append(job.arrival + alone - 1)
    if len(ends) <= len(instance.jobs):  # some cannot flee to an unlimited cloud
        schedule = GreedySchedule(instance, read_past(instance, None)).completion
        ends += (schedule or {}).values()
    return max(ends)


class PricedRows:
    """Linking rows of an instance in the layout ``groups``, ``types`` or ``servers``."""

    def __init__(self, instance: EdgecloudInstance, layout: str) -> None:
        self.instance, self.layout = instance, layout
        self.places = places_of(instance, layout)
        self.last = instance.horizon if layout == "servers" else last_priced_slot(instance)
        labels, cloud = self.places.labels, instance.cloud
        slots = slot_labels(self.last, len(labels))
        sets: list[RowSet] = []
        self._first: dict[tuple[str, object], int] = {}
        start = 0

        def add(name: str, axis: str, named: Mapping[Any, tuple[str, float]]) -> None:
            """A set of rows by key, each with its label and capacity; none if there is no key."""
            nonlocal start
            if not named and sets:
                return
            capacity = np.array([amount for _, amount in named.values()], dtype=float)
            axes = ((axis, tuple(label for label, _ in named.values())), ("slot", slots))
            sets.append(RowSet(name, axes, np.repeat(capacity[:, None], len(slots), axis=1)))
            for key in named:
                self._first[name, key] = start
                start += len(slots)

        members = self.places.members
        sizes = {i: (label, len(members[i])) for i, label in enumerate(labels)}
        add(SET_NAMES[layout], AXIS_NAMES[layout], sizes)
        add("cloud_capacity", "type", {k: (k, n) for k, n in (cloud.workers or {}).items() if n})
        if layout != "types":
            limits = instance.storage_gb.tolist()
            add("storage", "server", {
                s: (server.name, limits[s])
                for s, server in enumerate(instance.servers)
                if server.storage_gb is not None
            })  # fmt: skip
        if layout == "servers":
            edge = Counter[str]()
            for (_, kind), number in instance.ps_counts.items():
                edge[kind] += number
            in_cloud = cloud.ps or {}
            add(PS_SETS[0], "type", {k: (k, n + edge[k]) for k, n in in_cloud.items()})
            add(PS_SETS[1], "type", {k: (k, n) for k, n in in_cloud.items()})
        self.rows = Rows(sets)

    def first(self, name: str, key: object) -> int | None:
        """Flat index of the first row of a type or server in a set; None if it is unlimited."""
        return self._first.get((name, key))

    def ps_row(self, name: str, kind: str) -> int:
        """Flat index of the first row of a PS type in one of `PS_SETS`."""
        return self._first[name, kind]

    def server_of(self, row: int) -> int:
        """Server of a place; the first one in the layout ``types``."""
        return self.instance.worker_list[self.places.members[row][0]][0]

    def rows_of(self, job: EdgecloudJob) -> list[int]:
        """Places of the layout whose workers qualify."""
        return [row for row, kind in enumerate(self.places.kinds) if kind == job.worker_type]

    def places_of(self, j: int) -> list[tuple[int, int, int]]:
        """A job's places, slots until a chunk is uploaded there, how many workers it so reaches.

        In the layout ``types`` a place stands once for every delay.
        """
        found = []
        for row in self.rows_of(self.instance.jobs[j]):
            servers = (self.instance.worker_list[w][0] for w in self.places.members[row])
            delays = Counter(int(self.instance.upload[j, s]) for s in servers)
            found += [(row, delay, count) for delay, count in sorted(delays.items())]
        return found
