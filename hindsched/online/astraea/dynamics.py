"""What astraea's decisions do, and the cluster as baselines see it."""

from __future__ import annotations

from hindsched.instances.astraea.instance import AstraeaJob
from hindsched.online.astraea.cluster import AstraeaCluster, build_cluster
from hindsched.online.astraea.private import private_clusters
from hindsched.online.cluster_state import OptionalJobsState, whole_window


class State(OptionalJobsState[AstraeaJob]):
    """Rows of windows; jobs that did not do their work in time were given up."""

    def reveal_slot(self, job: AstraeaJob) -> int:
        """A job that arrives at time r is told in slot r + 1, the first it may use."""
        return job.arrival + 1

    def relaxed(self, formulation: str) -> str:
        """Jobs may pause, resize and move."""
        return f"{formulation.partition(',')[0]},preemptive"


committed_rows = whole_window


__all__ = ["AstraeaCluster", "State", "build_cluster", "committed_rows", "private_clusters"]
