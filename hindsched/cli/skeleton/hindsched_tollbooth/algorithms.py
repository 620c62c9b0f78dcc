"""Posted prices; any other `OnlineAlgorithm` stands beside them in `ONLINE`."""

from __future__ import annotations

from typing import Any

from hindsched.online.base import FamilyOnline
from hindsched.online.cluster_state import ClusterState, whole_window
from hindsched.online.engines.primal_dual import PrimalDual
from hindsched.online.protocol import Environment


class Posted(PrimalDual):
    """A price that rises with what is taken."""

    def price_function(self, environment: Environment, rows: Any) -> Any:
        """Price of a booth in a slot, of the share of booths that is taken then."""
        return lambda index, used: used / rows.capacity[index]


ONLINE = FamilyOnline(
    algorithms={"tollbooth": Posted},
    state=ClusterState,
    committed_rows=whole_window,
)
