"""What edgecloud's components are called: their indices, units and names."""

from __future__ import annotations

from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.models.declared import Face, Symbol

JOB_SLOTS = "slots of job time"
PER_WORKER = f"{JOB_SLOTS} a worker-slot"
SYMBOLS = {
    "x": Symbol("job, worker", "chunks"),
    "xc": Symbol("job", "chunks"),
    "y": Symbol("job, place, slot", "workers"),
    "k": Symbol("job, slot", "workers"),
    "k0": Symbol("job, slot", "workers"),
    "k1": Symbol("job, slot", "workers"),
    "zeta": Symbol("job", "jobs"),
    "C": Symbol("job, slot", "jobs"),
    "s": Symbol("job, all in cloud, slot", "chunks"),
    "a": Symbol("job, slot", "PSs"),
    "a_cloud": Symbol("job, slot", "PSs"),
    "a_edge": Symbol("job, slot", "PSs"),
    "N": Symbol("job, server", "chunks"),
    "S": Symbol("job, server, slot", "chunks"),
    "eq_2b": Symbol("job, worker | job", PER_WORKER),
    "eq_2b_cloud": Symbol("job, all in cloud | job", JOB_SLOTS),
    "eq_2c": Symbol("job, slot | job", f"{JOB_SLOTS} a chunk"),
    "eq_2c_cloud": Symbol("job, slot", f"{JOB_SLOTS} a chunk"),
    "eq_2d": Symbol("place, slot", PER_WORKER),
    "eq_2d_cloud": Symbol("worker type, slot", PER_WORKER),
    "eq_2e": Symbol("row", JOB_SLOTS),
    "eq_2f": Symbol("row", JOB_SLOTS),
    "eq_2g": Symbol("job, slot", JOB_SLOTS),
    "eq_2h": Symbol("job, slot", JOB_SLOTS),
    "eq_2j": Symbol("job, place, slot", JOB_SLOTS),
    "eq_2j_order": Symbol("job, slot", JOB_SLOTS),
    "eq_2j_cloud": Symbol("row", JOB_SLOTS),
    "eq_2j_start": Symbol("job, all in cloud, slot", JOB_SLOTS),
    "no_migration": Symbol("job", JOB_SLOTS),
    "cut_mean_busy_time": Symbol("job", "share"),
    "eq_7a": Symbol("job, server, slot", f"{JOB_SLOTS} a chunk"),
    "eq_7a_peak": Symbol("job, place, slot", f"{JOB_SLOTS} a chunk"),
    "eq_7b": Symbol("server, slot", f"{JOB_SLOTS} a GB"),
    "residual_capacity": Symbol("job, place, slot", PER_WORKER),
    "alpha": Symbol("job", f"{JOB_SLOTS} a chunk"),
    "beta": Symbol("place, slot", PER_WORKER),
    "beta_cloud": Symbol("worker type, slot", PER_WORKER),
    "pi": Symbol("job, slot", JOB_SLOTS),
    "eta": Symbol("server, slot", f"{JOB_SLOTS} a GB"),
    "eq_6a": Symbol("job, place, slot", "workers"),
    "eq_6a_cloud": Symbol("job, slot", "workers"),
}
"""Indices and units; a place is a worker, or a group of identical ones in ``literal`` and (6)."""


class EdgecloudNames(Face):
    """Servers and workers read by their names."""

    instance: EdgecloudInstance

    def name_of(self, index: str, place: int) -> str | None:
        """Name of what stands at a place; None for an index without names."""
        instance = self.instance
        if index == "server":
            return instance.servers[place].name
        if index == "worker":
            return worker_label(instance, place)
        return None


def worker_label(instance: EdgecloudInstance, worker: int) -> str:
    """Server and number of a worker."""
    server, number, _ = instance.worker_list[worker]
    return f"{instance.servers[server].name}/{number}"
