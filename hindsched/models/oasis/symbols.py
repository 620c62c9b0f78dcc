"""What the oasis family's components are called: their indices, units, and the servers' names."""

from __future__ import annotations

from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.declared import Face, Symbol
from hindsched.models.oasis.program import Parts, Pools

SHARE = "utility a server's whole capacity"
SYMBOLS = {
    "x": Symbol("", "jobs"),
    "y": Symbol("worker pool, slot", "workers"),
    "z": Symbol("PS pool, slot", "PSs"),
    "u": Symbol("end", "jobs"),
    "n": Symbol("end, slot", "workers"),
    "done": Symbol("slot", "worker-slots"),
    "ended": Symbol("slot", "jobs"),
    "eq_2": Symbol("slot | ", "utility a worker-slot"),
    "eq_2_sum": Symbol("slot", "utility a worker-slot"),
    "eq_2_all": Symbol("", "utility a worker-slot"),
    "eq_3": Symbol("end, slot | slot", "utility a worker"),
    "eq_4": Symbol("worker pool, resource, slot", SHARE),
    "eq_5": Symbol("PS pool, resource, slot", SHARE),
    "eq_6": Symbol("slot", "utility"),
    "eq_7": Symbol("slot", "utility a PS"),
    "eq_8": Symbol("slot", "utility a worker"),
    "eq_8_sum": Symbol("slot", "utility"),
    "eq_8_one": Symbol("", "utility"),
    "eq_8_none_after": Symbol("slot", "utility a worker"),
    "eq_8_busy": Symbol("end", "utility"),
    "eq_9": Symbol("worker pool, slot", "utility a worker"),
    "eq_10": Symbol("PS pool, slot", "utility a PS"),
    "eq_11": Symbol("", "utility a job"),
    "eq_30": Symbol("worker pool, slot", "utility a worker"),
    "eq_31": Symbol("PS pool, slot", "utility a PS"),
    "worker_history": Symbol("job, worker pool, slot", "utility a worker"),
    "ps_history": Symbol("job, PS pool, slot", "utility a PS"),
}
"""Indices and units by component; a slot of (2) is the end in the strong form."""


class OasisNames(Face):
    """Resources and pools read by name: the server, or the first and how many are like it."""

    instance: OasisInstance
    parts: Parts

    def name_of(self, index: str, place: int) -> str | None:
        """Name of what stands at a place; None for an index without names."""
        instance = self.instance
        if index == "resource":
            return instance.resources[place]
        if index == "worker pool":
            return _pool_name(
                self.parts.worker_pools, [s.name for s in instance.worker_servers], place
            )
        if index == "PS pool":
            return _pool_name(self.parts.ps_pools, [s.name for s in instance.ps_servers], place)
        return None


def _pool_name(pools: Pools, names: list[str], pool: int) -> str:
    members = pools.members[pool]
    more = f" and {len(members) - 1} like it" if len(members) > 1 else ""
    return names[members[0]] + more
