"""``all-cloud``: every job to the cloud as a whole, as soon as it can begin there."""

from __future__ import annotations

from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.online.edgecloud.cloud_site import CloudSite
from hindsched.online.edgecloud.ps import ParameterServers
from hindsched.online.protocol import NOTHING, Decision, Environment, OnlineAlgorithm


class AllCloud(OnlineAlgorithm):
    """The simplest schedule there is; at the paper's own parameters it beats A_online."""

    def start(self, environment: Environment) -> None:
        """Begin with an empty cloud."""
        cluster = environment.cluster
        assert isinstance(cluster, EdgecloudInstance)
        self.site = CloudSite(cluster, ParameterServers(cluster))

    def step(self, slot: int, arrivals: tuple[EdgecloudJob, ...]) -> Decision:
        """Send what arrives to the cloud; begin what waits there."""
        for job in arrivals:
            self.site.add(slot, job)
        if not arrivals and slot not in self.site.events:
            return NOTHING
        self.site.events.discard(slot)
        return Decision(self.site.start(slot), tuple(job.name for job in arrivals))
