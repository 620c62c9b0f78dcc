"""What gang's components are called: their indices, and the units of values and duals.

Costs are weighted seconds, seconds or weight by the objective: here "cost" throughout.
"""

from __future__ import annotations

from hindsched.instances.gang.instance import GangInstance
from hindsched.models.declared import Face, Symbol

PER_GPU = "cost a GPU"
SYMBOLS = {
    "starts": Symbol("slot", "starts"),
    "completes": Symbol("slot", "completions"),
    "units": Symbol("completion, slot", "units of work"),
    "gpus": Symbol("slot", "GPUs"),
    "runs": Symbol("slot", "jobs"),
    "begins": Symbol("slot", "begins"),
    "done": Symbol("slot", "jobs"),
    "held": Symbol("slot, server", "GPUs"),
    "whole": Symbol("slot, server", "servers"),
    "part": Symbol("slot, server", "servers"),
    "wide": Symbol("slot", "jobs"),
    "stays": Symbol("server", "GPUs"),
    "span": Symbol("", "s"),
    "eq_0_span": Symbol("job", "seconds a second"),
    "eq_1": Symbol("slot | completion |", "cost a unit"),
    "eq_1_once": Symbol("", "cost"),
    "eq_1_last": Symbol("", "cost a job"),
    "eq_1_kept": Symbol("slot", "cost a job"),
    "eq_3": Symbol("slot | completion, slot", PER_GPU),
    "eq_3_over": Symbol("slot", PER_GPU),
    "eq_4": Symbol("slot", "cost a begin"),
    "eq_4_once": Symbol("", "cost a begin"),
    "eq_4_stays": Symbol("slot, server", PER_GPU),
    "eq_4_place": Symbol("", PER_GPU),
    "eq_5": Symbol("slot | slot, server", PER_GPU),
    "eq_6": Symbol("slot", PER_GPU),
    "eq_6_most": Symbol("slot, server", PER_GPU),
    "eq_6_whole": Symbol("slot, server", PER_GPU),
    "eq_6_part": Symbol("slot", "cost a server"),
    "eq_6_spread": Symbol("slot", "cost a server"),
    "eq_6_wide": Symbol("slot", PER_GPU),
}
"""Indices and units by component; blocks are jobs."""


class GangNames(Face):
    """Servers read by their names."""

    instance: GangInstance

    def name_of(self, index: str, place: int) -> str | None:
        """Name of what stands at a place; None for an index without names."""
        instance = self.instance
        if index == "server" and instance.servers is not None:
            return instance.servers[place].name
        return None
