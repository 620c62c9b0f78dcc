"""Free parameter servers (PSs) as a run goes on, and who holds the others."""

from __future__ import annotations

import math
from typing import Generic, TypeVar

from hindsched.instances.edgecloud.instance import EdgecloudInstance, EdgecloudJob
from hindsched.online.protocol import draws

Key = TypeVar("Key", int, str)
"""A job's number or name, whichever the scheduler uses."""


def place_name(cluster: EdgecloudInstance, server: int) -> str:
    """Name of a server by position; their number means the cloud."""
    return cluster.servers[server].name if server < len(cluster.servers) else cluster.cloud.name


class ParameterServers(Generic[Key]):
    """PSs by type and place.

    Parameters
    ----------
    cluster : EdgecloudInstance
        The cluster.
    seed : int, optional
        Seed of the random choice among free PSs at the edge; None takes the first one.

    Attributes
    ----------
    held : dict
        Job -> type and server of its PS; the number of servers means the cloud.
    """

    def __init__(self, cluster: EdgecloudInstance, seed: int | None = None) -> None:
        self.cluster, self.seed = cluster, seed
        self.cloud = len(cluster.servers)
        self.held: dict[Key, tuple[str, int]] = {}
        self._free: dict[str, list[int]] = {}
        for s, server in enumerate(cluster.servers):
            for kind in server.ps:
                self._free.setdefault(kind, []).append(s)
        self._on_edge = {kind: len(free) for kind, free in self._free.items()}

    def count(self, kind: str) -> float:
        """PSs of a type anywhere; inf if the cloud's are unlimited."""
        in_cloud = self.cluster.cloud_ps(kind)
        return math.inf if in_cloud is None else self._on_edge.get(kind, 0) + in_cloud

    def cloud_is_free(self, kind: str) -> bool:
        """Whether a PS of a type is free in the cloud."""
        limit = self.cluster.cloud_ps(kind)
        return limit is None or sum(h == (kind, self.cloud) for h in self.held.values()) < limit

    def give_back(self, key: Key) -> None:
        """Free a job's PS."""
        kind, place = self.held.pop(key)
        if place != self.cloud:
            self._free[kind].append(place)

    def take_again(self, key: Key, former: tuple[str, int]) -> bool:
        """Give a job back the PS that it had in the slot before, if that is free."""
        kind, place = former
        if not self.is_free(former):
            return False
        if place != self.cloud:
            self._free[kind].remove(place)
        self.held[key] = former
        return True

    def is_free(self, former: tuple[str, int]) -> bool:
        """Whether a PS that was held before is free."""
        kind, place = former
        return self.cloud_is_free(kind) if place == self.cloud else place in self._free[kind]

    def take(self, key: Key, job: EdgecloudJob, slot: int, together: bool = False) -> int | None:
        """Give a job a free PS at the edge, else one in the cloud; None if none is free.

        Parameters
        ----------
        key : int or str
            The job's number or name.
        job : EdgecloudJob
            The job.
        slot : int
            The slot in which it starts to run.
        together : bool
            The job is wholly in the cloud, so that its PS must be there.
        """
        kind = job.ps_type
        free = self._free.get(kind)
        place = self.cloud
        if free and not together:
            place = free.pop(self._choice(job, slot, free))
        elif not self.cloud_is_free(kind):
            return None
        self.held[key] = (kind, place)
        return place

    def _choice(self, job: EdgecloudJob, slot: int, free: list[int]) -> int:
        if self.seed is None:
            return free.index(min(free))
        return int(draws(self.seed, job.name, f"ps {slot}").integers(len(free)))
