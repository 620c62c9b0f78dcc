"""``tiresias-l``: least attained service in discretised queues, over gangs of edge workers."""

from __future__ import annotations

import math

from hindsched.errors import InputError
from hindsched.online.dynamics import Gangs
from hindsched.online.edgecloud.gang_scheduling import Gang, GangScheduler
from hindsched.online.protocol import Environment
from hindsched.solutions.base import Assignment


class LeastAttainedService(GangScheduler):
    """Two-dimensional LAS: jobs sink through queues as their worker-time grows; FIFO inside.

    Parameters
    ----------
    limits_s : list of float
        Worker-seconds of attained service at which a job falls into the next queue. The authors'
        simulator uses the first of its limits, 3250.
    promote : float, optional
        A suspended job that has waited `promote` times as long as it has run starts over in the
        first queue, its service forgotten; None for never.
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
        if promote is not None and not promote >= 0:
            raise InputError("set.promote", promote, "must be at least 0")
        self.promote = promote

    def start(self, environment: Environment) -> None:
        """Begin with an idle edge; limits are counted in worker-slots."""
        super().start(environment)
        seconds = self.cluster.slot_seconds * (1 + 1e-9)  # a quotient's rounding is no more service
        self._limits = [limit / seconds for limit in self.limits_s]

    def _account(self, slot: int, rows: dict[str, list[Assignment]]) -> None:
        super()._account(slot, rows)
        for gang in self.present.values():
            if not gang.workers and self._slots_to_promotion(gang) == 0:
                gang.forgotten, gang.waited = gang.attained, 0

    def _slots_to_promotion(self, gang: Gang) -> int | None:
        """Slots that a suspended gang must still wait; None for one that is never promoted."""
        run = gang.service / gang.size
        if self.promote is None or not run or math.isinf(self.promote):
            return None
        return max(0, math.ceil(self.promote * run - gang.waited))

    def priority(self, gang: Gang) -> tuple[float, ...]:
        """Number of the queue; ties go by arrival."""
        return (float(sum(gang.service >= limit for limit in self._limits)),)

    def next_change(self, gang: Gang) -> int | None:
        """Slots until the gang falls into the next queue, or is back in the first."""
        if not gang.workers:
            wait = self._slots_to_promotion(gang)
            return None if wait is None else max(1, wait)
        for limit in self._limits:
            if gang.service < limit:
                return math.ceil((limit - gang.service) / gang.size)
        return None
