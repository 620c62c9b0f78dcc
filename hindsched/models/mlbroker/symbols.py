"""What mlbroker's components are called: their indices, and the units of values and duals.

Costs are weighted USD, here "USD" throughout.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.models.declared import Face, Symbol

PLACE, TIER, PAIR = "slot, datacenter", "slot, datacenter, resource", "slot, from, to"
OWN = "job, slot, datacenter"
UNITS = {
    PLACE: {
        "workers": "workers", "server": "PSs", "present": "deployments", "launched": "launches",
        "eq_8a": "USD a GB", "eq_8b": "USD a GB", "eq_8g": "USD a deployment",
        "eq_8g_ps": "USD a deployment", "eq_8g_empty": "USD a deployment",
        "eq_8i": "USD a connection", "eq_8j": "USD a connection",
        "eq_8j_needed": "USD a connection",
    },
    PAIR: {"flow": "GB", "link": "connections"},
    TIER: {
        "discounted": "units", "tier": "tiers", "bill": "USD", "below": "tiers", "beyond": "tiers",
        "eq_2_rented": "USD a unit", "eq_8c": "USD a USD", "eq_8d": "USD a USD", "eq_8e": "USD",
    },
    f"{TIER}, job": {"eq_2_tier": "USD a unit"},
    "slot": {"eq_8f": "USD", "workers_needed": "USD a worker"},
    OWN: {"eq_8h": "USD a launch"},
}  # fmt: skip
"""Units by index and component of the integer programs; blocks are jobs."""
DUAL_UNITS = {
    OWN: {
        "alpha": "USD a GB", "beta": "USD a GB", "phi": "USD a deployment", "mu": "USD a launch",
        "psi": "USD a connection", "eta": "USD a connection", "eq_11f": "deployments",
        "eq_11g": "launches",
    },
    "job, slot": {"gamma": "USD"},
    TIER: {
        "theta": "USD a USD", "rho": "USD a USD", "xi": "USD", "eq_11a": "bills",
        "eq_11h": "tiers", "eq_11i": "tiers",
    },
    "job, slot, from, to": {"eq_11b": "GB", "eq_11e": "connections"},
    f"{OWN}, resource": {"eq_11c": "workers", "eq_11d": "PSs"},
}  # fmt: skip
"""The same of the dual (11)."""
_PLACE, _TIER, _PAIR = "datacenter", "datacenter, resource", "from, to"
SLOT_PARTS = {
    "workers": ("(9k) y / N, workers", _PLACE, "shares of N"),
    "server": ("(9k) s, the PS", _PLACE, "PSs"),
    "present": ("(9k) v, deployment", _PLACE, "deployments"),
    "flow": ("(9k) q / (P N), data sent to another centre", _PAIR, "shares of P N GB"),
    "link": ("(9k) g / N, connections to a PS in another centre", _PAIR, "shares of N"),
    "launched": ("(9k) z, launches, or what the regulariser has there", _PLACE, "launches"),
    "used": ("(2) h / hmax, units that all jobs rent", _TIER, "shares of hmax"),
    "bill": ("(9k) x / (a hmax), what a resource costs", _TIER, "shares of a hmax"),
    "eq_8a": ("(8a) workers train what stays and what comes in", _PLACE, "USD a share of P N GB"),
    "eq_8b": ("(8b) no more data leaves than there is", _PLACE, "USD a share of P N GB"),
    "eq_8c": ("(8c) the full price, relaxed", _TIER, "USD a share of a hmax"),
    "eq_8d": ("(8d) the discounted price, relaxed", _TIER, "USD a share of a hmax"),
    "eq_8e": ("(8e) one of the two, added up", _TIER, "USD a share of a hmax"),
    "eq_8f": ("(8f) one PS", "", "USD"),
    "eq_8g": ("(8g) U v >= y + s with U = N + 1", _PLACE, "USD a deployment"),
    "eq_8h": ("(8h) a launch where the job was not deployed", _PLACE, "USD a launch"),
    "eq_8i": ("(8i) every worker has a connection", _PLACE, "USD a share of N"),
    "eq_8j": ("(8j) the PS has N connections", _PLACE, "USD a share of N"),
    "regulariser": ("(10) the regulariser", _PLACE, "USD a launch"),
    "closed_flow": ("(8b) no data where it may not go, or is not", _PAIR, ""),
    "closed_link": ("(ours) no connection that no optimum needs", _PAIR, ""),
    "rented": ("(2) what all jobs rent", _TIER, "USD a share of hmax"),
}
"""Sentence, indices after the job's, and unit, by component of (10) of one slot."""


def _symbols(units: Mapping[str, Mapping[str, str]]) -> dict[str, Symbol]:
    return {name: Symbol(at, unit) for at, own in units.items() for name, unit in own.items()}


DUAL_SYMBOLS = _symbols(DUAL_UNITS)
SLOT_SYMBOLS = {name: Symbol(indices, unit) for name, (_, indices, unit) in SLOT_PARTS.items()}


class MlbrokerNames(Face):
    """Data centres and resources read by their names."""

    SYMBOLS: ClassVar[Mapping[str, Symbol]] = _symbols(UNITS)
    OBJECTIVE_UNIT = "USD"
    instance: MlbrokerInstance

    def name_of(self, index: str, place: int) -> str | None:
        """Name of what stands at a place; None for an index without names."""
        if index in ("datacenter", "from", "to"):
            return self.instance.datacenters[place].name
        return self.instance.resources[place] if index == "resource" else None
