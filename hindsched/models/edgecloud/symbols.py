"""What edgecloud's components are called: their indices, units and names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.models.declared import Face, Symbol

JOB_SLOTS = "slots of job time"
PER_WORKER = f"{JOB_SLOTS} a worker-slot"
PER_CHUNK = f"{JOB_SLOTS} a chunk"
_UNITS = {
    "job": ("chunks", "xc"), "job, worker": ("chunks", "x"), "job, place, slot": ("workers", "y"),
    "job, slot": ("workers", "k k0 k1"), "job, all in cloud, slot": ("chunks", "s"),
    "job, server": ("chunks", "N"), "job, server, slot": ("chunks", "S"),
}  # fmt: skip
"""By indices: what is counted, and by which variables."""
SYMBOLS = {
    **{
        n: Symbol(indices, unit) for indices, (unit, names) in _UNITS.items() for n in names.split()
    },
    "zeta": Symbol("job", "jobs"),
    "C": Symbol("job, slot", "jobs"),
    "a": Symbol("job, slot", "PSs"),
    "a_cloud": Symbol("job, slot", "PSs"),
    "eq_2b": Symbol("job, worker | job", PER_WORKER),
    "eq_2b_cloud": Symbol("job, all in cloud | job"),
    "eq_2c": Symbol("job, slot | job", PER_CHUNK),
    "eq_2c_cloud": Symbol("job, slot", PER_CHUNK),
    "eq_2d": Symbol("place, slot", PER_WORKER),
    "eq_2d_cloud": Symbol("worker type, slot", PER_WORKER),
    "eq_2e": Symbol("job, slot, part"),
    "eq_2e_cloud": Symbol("job, slot"),
    "eq_2f": Symbol("PS type, slot"),
    "eq_2f_cloud": Symbol("PS type, slot"),
    "eq_2g": Symbol("job, slot"),
    "eq_2h": Symbol("job, slot"),
    "eq_2j": Symbol("job, place, slot"),
    "eq_2j_order": Symbol("job, slot"),
    "eq_2j_cloud": Symbol("job, all in cloud | job"),
    "eq_2j_running": Symbol("job, all in cloud, slots done"),
    "eq_2j_start": Symbol("job, all in cloud, slot"),
    "no_migration": Symbol("job"),
    "cut_mean_busy_time": Symbol("job", "share"),
    "eq_4a": Symbol("job", PER_CHUNK),
    "eq_4b": Symbol("group, slot", PER_WORKER),
    "eq_4b_cloud": Symbol("worker type, slot", PER_WORKER),
    "eq_4e": Symbol("job, slot", PER_WORKER),
    "eq_7a": Symbol("job, server, slot", PER_CHUNK),
    "eq_7a_peak": Symbol("job, group, slot", PER_CHUNK),
    "eq_7b": Symbol("server, slot", f"{JOB_SLOTS} a GB"),
    "residual_capacity": Symbol("job, place, slot", PER_WORKER),
    "alpha": Symbol("job", PER_CHUNK),
    "beta": Symbol("group, slot", PER_WORKER),
    "beta_cloud": Symbol("worker type, slot", PER_WORKER),
    "pi": Symbol("job, slot"),
    "eta": Symbol("server, slot", f"{JOB_SLOTS} a GB"),
    "eq_6a": Symbol("job, group, slot", "workers"),
    "eq_6a_cloud": Symbol("job, slot", "workers"),
}
"""Indices and units; a place is a worker, or a group of identical ones in ``literal``."""


class EdgecloudNames(Face):
    """Servers, workers and groups read by their names."""

    SYMBOLS: ClassVar[Mapping[str, Symbol]] = SYMBOLS
    OBJECTIVE_UNIT = JOB_SLOTS
    instance: EdgecloudInstance

    def workers_of(self, place: int) -> list[int]:
        """Workers of a place of problem (2)."""
        groups = list(self.instance.groups.values())
        return list(groups[place]) if self.formulation == "literal" else [place]

    def name_of(self, index: str, place: int) -> str | None:
        """Name of what stands at a place; None for an index without names."""
        instance = self.instance
        if index == "place":
            index = "group" if self.formulation == "literal" else "worker"
        if index == "server":
            return instance.servers[place].name
        if index == "worker":
            server, number, _ = instance.worker_list[place]
            return f"{instance.servers[server].name}/{number}"
        if index == "group":
            server, kind = list(instance.groups)[place]
            return f"{instance.servers[server].name}/{kind}"
        return None
