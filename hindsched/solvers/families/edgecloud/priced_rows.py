"""The linking rows of edgecloud's oracle, by layout, and what a schedule uses of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.models.edgecloud.sets import places_of
from hindsched.solutions.edgecloud.list_schedule import list_schedule, read_past
from hindsched.solvers.oracles.rows import Rows, RowSet, slot_labels

SET_NAMES = {"groups": "group_capacity", "types": "type_capacity", "servers": "worker_capacity"}
AXIS_NAMES = {"groups": "group", "types": "type", "servers": "worker"}
PS_SETS = ("parameter_servers", "cloud_parameter_servers")
"""Rows of all PSs of a type, and of those in the cloud."""


def last_priced_slot(instance: EdgecloudInstance) -> int:
    """Last slot of all layouts but ``servers``: no good schedule runs later."""
    ends = [instance.horizon]
    for j, job in enumerate(instance.jobs):
        if instance.cloud_workers(job.worker_type) is None:
            alone = int(instance.cloud_upload[j] + instance.cloud_slots[j])
            ends.append(job.arrival + alone - 1)
    if len(ends) <= len(instance.jobs):  # some cannot flee to an unlimited cloud
        ends += list_schedule(instance, read_past(instance, None))[0].values()
    return max(ends)


class PricedRows:
    """Linking rows of an instance in the layout ``groups``, ``types`` or ``servers``."""

    def __init__(self, instance: EdgecloudInstance, layout: str, last: int | None = None) -> None:
        self.instance, self.layout = instance, layout
        places = places_of(instance, layout)
        self.labels, self.members = tuple(places), tuple(places.values())
        self.last = instance.horizon if layout == "servers" else last_priced_slot(instance)
        self.last = self.last if last is None else last
        cloud, slots = instance.cloud, slot_labels(self.last, len(places))
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

        sizes = {i: (label, len(members)) for i, (label, members) in enumerate(places.items())}
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
            edge = Counter(kind for server in instance.servers for kind in server.ps)
            in_cloud = cloud.ps or {}
            add(PS_SETS[0], "type", {k: (k, n + edge[k]) for k, n in in_cloud.items()})
            add(PS_SETS[1], "type", {k: (k, n) for k, n in in_cloud.items()})
        self.rows = Rows(sets)

    def first(self, name: str, key: object) -> int | None:
        """Flat index of the first row of a type or server in a set; None if it is unlimited."""
        return self._first.get((name, key))

    def server_of(self, row: int) -> int:
        """Server of a place; the first one in the layout ``types``."""
        return self.instance.worker_list[self.members[row][0]][0]

    def places_of(self, j: int) -> list[tuple[int, int, int]]:
        """A job's places, slots until a chunk is uploaded there, how many workers it so reaches.

        In the layout ``types`` a place stands once for every delay.
        """
        reached = []
        for row, members in enumerate(self.members):
            if self.instance.worker_list[members[0]][2] == self.instance.jobs[j].worker_type:
                servers = (self.instance.worker_list[w][0] for w in members)
                delays = Counter(int(self.instance.upload[j, s]) for s in servers)
                reached += [(row, delay, count) for delay, count in sorted(delays.items())]
        return reached


class RowUse:
    """What a schedule uses of the rows: some amount in each of some slots of a place."""

    def __init__(self, priced: PricedRows) -> None:
        self.priced = priced
        self.rows: list[int] = []
        self.amounts: list[float] = []

    def add(self, name: str, key: object, slots: Iterable[int], amount: float) -> None:
        """Add an amount of a set's rows; what is not priced does not count."""
        base = self.priced.first(name, key)
        if base is not None and amount:
            kept = [base + t - 1 for t in slots if t <= self.priced.last]
            self.rows += kept
            self.amounts += [amount] * len(kept)
