"""What batchsched's components are called: their numbers, indices, units and names."""

from __future__ import annotations

from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.models.batchsched.printed import PRINTED_SYMBOLS
from hindsched.models.declared import Face, Symbol
from hindsched.models.windows.block import BlockRules, Rule, block_symbols

BLOCK = BlockRules(
    Rule("eq_2k", "(2k) no worker of a window that is not chosen"),
    Rule("eq_13c", "(13c) the chosen mode's workers beside no PS"),
)
PER_CAPACITY = "weighted slots a unit"
SYMBOLS = {
    **PRINTED_SYMBOLS,
    **block_symbols("weighted slots"),
    "y": Symbol("worker type, duration, slot, server | job, server, worker type", "workers"),
    "eq_2a": Symbol("job", "weighted slots"),
    "eq_2h": Symbol("server, resource, slot", PER_CAPACITY),
    "eq_15b": Symbol("server, resource, slot", PER_CAPACITY),
    "eq_2k": Symbol("worker type, duration, slot, server", "weighted slots a worker"),
    "eq_13c": Symbol("worker type, duration, slot", "weighted slots a worker"),
    "eq_7a": Symbol("job", "weight"),
    "eq_12a": Symbol("", "weighted slots"),
    "eq_20a": Symbol("", "weighted slots"),
}


class BatchschedNames(Face):
    """Servers, resources and types read by their names."""

    instance: BatchschedInstance

    def name_of(self, index: str, place: int) -> str | None:
        """Name of what stands at a place; None for an index without names."""
        instance = self.instance
        named = {
            "server": [server.name for server in instance.servers],
            "resource": instance.resources,
            "worker type": [kind.name for kind in instance.worker_types],
            "PS type": [kind.name for kind in instance.ps_types or ()],
        }
        return named[index][place] if place < len(named.get(index, ())) else None
