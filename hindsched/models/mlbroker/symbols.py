"""What mlbroker's components are called: their indices, and the units of values and duals.

Costs are weighted USD, here "USD" throughout.
"""

from __future__ import annotations

from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.models.declared import Face, Symbol

PLACE = "slot, datacenter"
TIER = "slot, datacenter, resource"
PAIR = "slot, from, to"
OWN = "job, slot, datacenter"
SYMBOLS = {
    "workers": Symbol(PLACE, "workers"),
    "server": Symbol(PLACE, "PSs"),
    "present": Symbol(PLACE, "deployments"),
    "launched": Symbol(PLACE, "launches"),
    "flow": Symbol(PAIR, "GB"),
    "link": Symbol(PAIR, "connections"),
    "discounted": Symbol(TIER, "units"),
    "tier": Symbol(TIER, "tiers"),
    "bill": Symbol(TIER, "USD"),
    "below": Symbol(TIER, "tiers"),
    "beyond": Symbol(TIER, "tiers"),
    "eq_2_rented": Symbol(TIER, "USD a unit"),
    "eq_2_tier": Symbol(f"{TIER}, job", "USD a unit"),
    "eq_8a": Symbol(PLACE, "USD a GB"),
    "eq_8b": Symbol(PLACE, "USD a GB"),
    "eq_8c": Symbol(TIER, "USD a USD"),
    "eq_8d": Symbol(TIER, "USD a USD"),
    "eq_8e": Symbol(TIER, "USD"),
    "eq_8f": Symbol("slot", "USD"),
    "eq_8g": Symbol(PLACE, "USD a deployment"),
    "eq_8g_ps": Symbol(PLACE, "USD a deployment"),
    "eq_8g_empty": Symbol(PLACE, "USD a deployment"),
    "eq_8h": Symbol(OWN, "USD a launch"),
    "eq_8i": Symbol(PLACE, "USD a connection"),
    "eq_8j": Symbol(PLACE, "USD a connection"),
    "eq_8j_needed": Symbol(PLACE, "USD a connection"),
    "workers_needed": Symbol("slot", "USD a worker"),
}
"""Indices and units by component; blocks are jobs."""
DUAL_SYMBOLS = {
    "alpha": Symbol(OWN, "USD a GB"),
    "beta": Symbol(OWN, "USD a GB"),
    "gamma": Symbol("job, slot", "USD"),
    "theta": Symbol(TIER, "USD a USD"),
    "rho": Symbol(TIER, "USD a USD"),
    "xi": Symbol(TIER, "USD"),
    "phi": Symbol(OWN, "USD a deployment"),
    "mu": Symbol(OWN, "USD a launch"),
    "psi": Symbol(OWN, "USD a connection"),
    "eta": Symbol(OWN, "USD a connection"),
    "eq_11a": Symbol(TIER, "bills"),
    "eq_11b": Symbol("job, slot, from, to", "GB"),
    "eq_11c": Symbol(f"{OWN}, resource", "workers"),
    "eq_11d": Symbol(f"{OWN}, resource", "PSs"),
    "eq_11e": Symbol("job, slot, from, to", "connections"),
    "eq_11f": Symbol(OWN, "deployments"),
    "eq_11g": Symbol(OWN, "launches"),
    "eq_11h": Symbol(TIER, "tiers"),
    "eq_11i": Symbol(TIER, "tiers"),
}
"""The same of the dual (11)."""


class MlbrokerNames(Face):
    """Data centres and resources read by their names."""

    instance: MlbrokerInstance

    def name_of(self, index: str, place: int) -> str | None:
        """Name of what stands at a place; None for an index without names."""
        instance = self.instance
        if index in ("datacenter", "from", "to"):
            return instance.datacenters[place].name
        if index == "resource":
            return instance.resources[place]
        return None
