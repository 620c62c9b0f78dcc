"""``tiresias-l``: least attained service in discretised queues, over gangs of edge workers."""

from __future__ import annotations

import math

from hindsched.errors import InputError
from hindsched.online.dynamics import Gangs
from hindsched.online.edgecloud.gang_scheduling import Gang, GangScheduler
from hindsched.online.protocol import Environment


class LeastAttainedService(GangScheduler):
    """Two-dimensional LAS: jobs sink through queues as their worker-time grows; FIFO inside.

    Parameters
    ----------
    limits_s : list of float
        Worker-seconds of attained service at which a job falls into the next queue. The authors'
        simulator uses the first of its limits, 3250.
    promote : float, optional
        A suspended job that has waited `promote` times as long as it has run starts over in the
        first queue; None for never.
    cloud, gangs
        As for every gang scheduler.
    """

    def __init__(
        self,
        limits_s: list[float] | None = None,
        promote: float | None = None,
        cloud: bool = True,
        gangs: Gangs = "ideal",
    ) -> None:
        super().__init__(cloud, gangs)
        self.limits_s = [3250.0] if limits_s is None else limits_s
        if any(not 0 < limit < math.inf for limit in self.limits_s) or (
            sorted(self.limits_s) != self.limits_s
        ):
            raise InputError("set.limits_s", limits_s, "must be positive and rise")
        self.promote = promote

    def start(self, environment: Environment) -> None:
        """Begin with an idle edge; limits are counted in worker-slots."""
        super().start(environment)
        self._limits = [limit / self.cluster.slot_seconds for limit in self.limits_s]

    def priority(self, gang: Gang) -> tuple[float, ...]:
        """Number of the queue; ties go by arrival."""
        run = gang.attained / gang.size
        if self.promote is not None and run and gang.waited >= self.promote * run:
            return (0.0,)
        return (float(sum(gang.attained >= limit for limit in self._limits)),)

    def next_change(self, gang: Gang) -> int | None:
        """Slots until the gang falls into the next queue."""
        for limit in self._limits:
            if gang.attained < limit:
                return math.ceil((limit - gang.attained) / gang.size - 1e-9)
        return None
