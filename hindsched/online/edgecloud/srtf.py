"""``srtf``: shortest remaining time first, over gangs of edge workers."""

from __future__ import annotations

from hindsched.online.edgecloud.gang_scheduling import Gang, GangScheduler


class Srtf(GangScheduler):
    """At each event the gangs run in order of remaining work / (workers x rate)."""

    def priority(self, gang: Gang) -> tuple[float, ...]:
        """Remaining slots on the gang's workers."""
        return (gang.left / gang.size,)
