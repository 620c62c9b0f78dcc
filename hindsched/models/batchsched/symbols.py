"""What batchsched's components are called: their indices, units and names."""

from __future__ import annotations

from typing import Any

from hindsched.instances.batchsched.instance import BatchschedInstance
from hindsched.models.batchsched.printed import PRINTED_SYMBOLS
from hindsched.models.declared import Symbol
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


def index_label(instance: BatchschedInstance, index: str, value: Any) -> Any:
    """Name behind an index value; None where the value is its own name."""
    if index == "server":
        return instance.servers[value].name
    if index == "resource":
        return instance.resources[value]
    if index == "worker type":
        return instance.worker_types[value].name
    if index == "PS type" and instance.ps_types is not None:
        return instance.ps_types[value].name
    return None
