"""What batchsched's components are called: their indices, units and names."""

from __future__ import annotations

from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.models.batchsched.printed import PRINTED_SYMBOLS
from hindsched.models.declared import Face, Symbol
from hindsched.models.slots import slot_symbols
from hindsched.models.windows import WINDOW_SYMBOLS

PER_CAPACITY = "weighted slots a unit"
SYMBOLS = {
    **PRINTED_SYMBOLS,
    "u": WINDOW_SYMBOLS["u"],
    "y": Symbol("worker type, duration, slot, server | job, server, worker type", "workers"),
    "eq_2a": Symbol("job", "weighted slots"),
    "eq_2h": Symbol("server, resource, slot", PER_CAPACITY),
    "eq_15b": Symbol("server, resource, slot", PER_CAPACITY),
    "eq_2k": Symbol("worker type, duration, slot, server", "weighted slots a worker"),
    "eq_13c": Symbol("worker type, duration, slot", "weighted slots a worker"),
    "eq_7a": Symbol("job", "weight"),
    "eq_12a": Symbol("", "weighted slots"),
    "eq_20a": Symbol("", "weighted slots"),
    **slot_symbols("weighted slots"),
}


class BatchschedNames(Face):
    """Servers, resources and types read by their names."""

    instance: BatchschedInstance

    def name_of(self, index: str, place: int) -> str | None:
        """Name of what stands at a place; None for an index without names."""
        instance = self.instance
        if index == "server":
            return instance.servers[place].name
        if index == "resource":
            return instance.resources[place]
        if index == "worker type":
            return instance.worker_types[place].name
        if index == "PS type" and instance.ps_types is not None:
            return instance.ps_types[place].name
        return None
