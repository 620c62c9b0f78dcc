"""What the oasis family's components are called: their indices, units, and the servers' names."""

from __future__ import annotations

from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.declared import Face, Symbol
from hindsched.models.oasis.sets import Plan

SHARE = "utility a server's whole capacity"
SYMBOLS = {
    "x": Symbol("", "jobs"),
    "y": Symbol("worker server, slot", "workers"),
    "z": Symbol("PS server, slot", "PSs"),
    "u": Symbol("end", "jobs"),
    "n": Symbol("end, slot", "workers"),
    "done": Symbol("slot", "worker-slots"),
    "ended": Symbol("slot", "jobs"),
    "eq_2": Symbol("slot | ", "utility a worker-slot"),
    "eq_2_sum": Symbol("slot", "utility a worker-slot"),
    "eq_2_all": Symbol("", "utility a worker-slot"),
    "eq_3": Symbol("end, slot | slot", "utility a worker"),
    "eq_4": Symbol("worker server, resource, slot", SHARE),
    "eq_5": Symbol("PS server, resource, slot", SHARE),
    "eq_6": Symbol("slot", "utility"),
    "eq_7": Symbol("slot", "utility a PS"),
    "eq_8": Symbol("slot", "utility a worker"),
    "eq_8_sum": Symbol("slot", "utility"),
    "eq_8_one": Symbol("", "utility"),
    "eq_8_none_after": Symbol("slot", "utility a worker"),
    "eq_8_busy": Symbol("end", "utility"),
    "eq_9": Symbol("worker server, slot", "utility a worker"),
    "eq_10": Symbol("PS server, slot", "utility a PS"),
    "eq_11": Symbol("", "utility a job"),
    "eq_30": Symbol("worker server, slot", "utility a worker"),
    "eq_31": Symbol("PS server, slot", "utility a PS"),
}
"""Indices and units by component; a slot of (2) is the end in the strong form."""


class OasisNames(Face):
    """Resources and servers read by name; a group by its first and how many are like it."""

    instance: OasisInstance
    plan: Plan

    def name_of(self, index: str, place: int) -> str | None:
        """Name of what stands at a place; None for an index without names."""
        if index == "resource":
            return self.instance.resources[place]
        for role, groups, servers in (
            ("worker server", self.plan.workers, self.instance.worker_servers),
            ("PS server", self.plan.ps, self.instance.ps_servers),
        ):
            if index == role:
                first, *others = groups.members[place]
                more = f" and {len(others)} like it" if others else ""
                return servers[first].name + more
        return None
