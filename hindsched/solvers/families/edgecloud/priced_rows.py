"""The rows that an edgecloud oracle prices: which workers share one, and where each row stands."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from hindsched.arrays import Ints
from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.solutions.edgecloud.list_schedule import GreedySchedule
from hindsched.solutions.edgecloud.past import read_past
from hindsched.solvers.oracles.rows import Rows, RowSet, slot_labels

SET_NAMES = {"groups": "group_capacity", "types": "type_capacity", "servers": "worker_capacity"}
AXIS_NAMES = {"groups": "group", "types": "type", "servers": "worker"}


@dataclass(frozen=True)
class Places:
    """The rows of one layout: workers that share a price.

    Parameters
    ----------
    labels : tuple of str
        Name of each.
    kinds : tuple of str
        Worker type of each.
    members : tuple of tuple of int
        Workers of each, as positions in `EdgecloudInstance.worker_list`.
    """

    labels: tuple[str, ...]
    kinds: tuple[str, ...]
    members: tuple[tuple[int, ...], ...]

    @property
    def counts(self) -> Ints:
        """Number of workers of each."""
        return np.array([len(members) for members in self.members], dtype=np.int64)


def places_of(instance: EdgecloudInstance, layout: str) -> Places:
    """The rows of a layout, without slots."""
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
    last = instance.horizon
    unlimited = True
    for j, job in enumerate(instance.jobs):
        if instance.cloud_workers(job.worker_type) is None:
            end = job.arrival + int(instance.cloud_upload[j] + instance.cloud_slots[j]) - 1
            last = max(last, end)
        else:
            unlimited = False
    if not unlimited:
        schedule = GreedySchedule(instance, read_past(instance, None)).completion
        last = max([last, *(schedule or {}).values()])
    return last


class PricedRows:
    """Linking rows of an instance in one layout.

    Parameters
    ----------
    instance : EdgecloudInstance
        The instance.
    layout : str
        ``groups``, ``types`` or ``servers``; see the oracle.
    """

    def __init__(self, instance: EdgecloudInstance, layout: str) -> None:
        self.instance = instance
        self.layout = layout
        self.places = places_of(instance, layout)
        self.last = instance.horizon if layout == "servers" else last_priced_slot(instance)
        self.cloud_types = tuple(kind for kind, n in (instance.cloud.workers or {}).items() if n)
        self.rows = Rows(self._row_sets())
        self.storage_slice = self.rows.slices.get("storage")
        self.cloud_slice = self.rows.slices.get("cloud_capacity")

    def _row_sets(self) -> list[RowSet]:
        instance = self.instance
        slots = slot_labels(self.last, len(self.places.labels))
        counts = self.places.counts.astype(float)
        sets = [
            RowSet(
                SET_NAMES[self.layout],
                ((AXIS_NAMES[self.layout], self.places.labels), ("slot", slots)),
                np.repeat(counts[:, None], len(slots), axis=1),
            )
        ]
        if self.cloud_types:
            limits = [float(instance.cloud_workers(kind) or 0) for kind in self.cloud_types]
            capacity = np.repeat(np.array(limits)[:, None], len(slots), axis=1)
            axes = (("type", self.cloud_types), ("slot", slots))
            sets.append(RowSet("cloud_capacity", axes, capacity))
        limited = np.isfinite(instance.storage_gb)
        if limited.any() and self.layout != "types":
            names = tuple(s.name for s in instance.servers if s.storage_gb is not None)
            capacity = np.repeat(instance.storage_gb[limited][:, None], len(slots), axis=1)
            axes = (("server", names), ("slot", slots))
            sets.append(RowSet("storage", axes, capacity))
        if instance.cloud.ps and self.layout == "servers":
            kinds = tuple(instance.cloud.ps)
            everywhere = [
                n + sum(m for (_, k), m in instance.ps_counts.items() if k == kind)
                for kind, n in instance.cloud.ps.items()
            ]
            for name, counts_ in (
                ("parameter_servers", everywhere),
                ("cloud_parameter_servers", list(instance.cloud.ps.values())),
            ):
                capacity = np.repeat(np.array(counts_, dtype=float)[:, None], len(slots), axis=1)
                sets.append(RowSet(name, (("type", kinds), ("slot", slots)), capacity))
        return sets

    def ps_row(self, name: str, kind: str) -> int:
        """Flat index of the first row of a PS type in one of the layout's two sets of PSs."""
        position = list(self.instance.cloud.ps or {}).index(kind)
        return int(self.rows.slices[name].start) + position * self.last

    def rows_of(self, job: EdgecloudJob) -> list[int]:
        """Rows of the layout whose workers qualify."""
        return [row for row, kind in enumerate(self.places.kinds) if kind == job.worker_type]

    def places_of(self, j: int) -> list[tuple[int, int, int]]:
        """A job's rows, slots until a chunk is uploaded there, and how many workers it reaches so.

        In the layout ``types`` a row stands once for every delay.
        """
        found = []
        for row in self.rows_of(self.instance.jobs[j]):
            servers = (self.instance.worker_list[w][0] for w in self.places.members[row])
            delays = Counter(int(self.instance.upload[j, s]) for s in servers)
            found += [(row, delay, count) for delay, count in sorted(delays.items())]
        return found

    def cloud_row(self, kind: str) -> int | None:
        """Flat index of the first row of a worker type in the cloud, or None if it is unlimited."""
        if self.cloud_slice is None or kind not in self.cloud_types:
            return None
        return int(self.cloud_slice.start) + self.cloud_types.index(kind) * self.last

    def storage_row(self, server: int) -> int | None:
        """Flat index of a server's first storage row, or None if its storage is unlimited."""
        if self.storage_slice is None or not np.isfinite(self.instance.storage_gb[server]):
            return None
        before = int(np.isfinite(self.instance.storage_gb[:server]).sum())
        return int(self.storage_slice.start) + before * self.last
