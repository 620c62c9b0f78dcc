"""Booths that are taken stay taken."""

from __future__ import annotations

from typing import Any

import numpy as np

from hindsched.errors import Refused
from hindsched.instances.base import Instance
from hindsched.online.cluster_state import ClusterState, whole_window
from hindsched.online.protocol import Environment
from hindsched.solutions.base import Assignment

committed_rows = whole_window


class State(ClusterState):
    """Counts the booths that are free."""

    def __init__(self, instance: Instance, environment: Environment) -> None:
        super().__init__(instance, environment)
        self._free = np.full(instance.horizon + 1, instance.booths)

    def check_row(self, slot: int, job: Any, row: Assignment) -> None:
        held = slice(row["from"], row["to"] + 1)
        if row["to"] > self.instance.horizon or not (self._free[held] > 0).all():
            raise Refused("(2)", f"job {job.name}", "no booth is free")
        self._free[held] -= 1
