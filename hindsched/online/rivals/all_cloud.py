"""``all-cloud``: every job to the cloud as a whole, as soon as it is uploaded."""

from __future__ import annotations

from typing import Any

from hindsched.instances.edgecloud import EdgecloudInstance
from hindsched.online.protocol import NOTHING, Decision, Environment, OnlineAlgorithm
from hindsched.online.rivals.gang import all_cloud_rows


class AllCloud(OnlineAlgorithm):
    """The simplest schedule there is; at the paper's own parameters it beats A_online."""

    def start(self, environment: Environment) -> None:
        """Remember the cluster."""
        assert isinstance(environment.cluster, EdgecloudInstance)
        self.cluster = environment.cluster

    def step(self, slot: int, arrivals: tuple[Any, ...]) -> Decision:
        """Send what arrives to the cloud."""
        if not arrivals:
            return NOTHING
        rows = {job.name: all_cloud_rows(self.cluster, job, slot) for job in arrivals}
        return Decision(rows, tuple(rows))
