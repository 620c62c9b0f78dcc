"""``optimus``: workers by marginal gain (Peng et al., "Optimus", EuroSys 2018).

From the paper's allocation rule as it is commonly told; the full text was not at hand.
"""

from __future__ import annotations

import heapq
import math

from hindsched.online.baselines.elastic import Baseline


class Optimus(Baseline):
    """Each job gets one worker; every further one goes where it saves most time for its share.

    At every arrival and completion all is allocated anew. First every job gets one worker, with the
    parameter servers it then needs, in the order of remaining slots x dominant share on one worker.
    Then one worker more goes, again and again, to the job whose remaining time falls most a unit of
    the dominant share of one of its workers, until no worker fits or none saves time. Remaining
    time is remaining work over the speed of so many workers on the empty cluster. What it is not:
    Optimus fits speed and remaining work from loss curves, which a job here tells when it arrives;
    it adds workers and parameter servers apart, where here the servers follow from the workers; and
    it stops at the first worker that does not help, also where several together would.
    """

    def reallocate(self) -> None:
        """One worker each, then by marginal gain."""
        self.release_all()
        for name in sorted(self.jobs, key=lambda name: self._time(name, 1) * self._share(name)):
            placement = self.cluster.extend(self.jobs[name], None)
            if placement is not None:
                self.held[name] = placement
        queue = [(-self._gain(name), order, name) for order, name in enumerate(self.held)]
        heapq.heapify(queue)
        while queue:
            gain, order, name = heapq.heappop(queue)
            grown = self.cluster.extend(self.jobs[name], self.held[name]) if gain < 0 else None
            if grown is not None:
                self.held[name] = grown
                heapq.heappush(queue, (-self._gain(name), order, name))

    def _gain(self, name: str) -> float:
        """Slots that one worker more saves, a unit of dominant share; 0 for none."""
        held = self.held[name].num_workers
        if held >= self.cluster.max_workers(self.jobs[name]):
            return 0.0
        return (self._time(name, held) - self._time(name, held + 1)) / self._share(name)

    def _share(self, name: str) -> float:
        return max(1e-12, self.cluster.dominant_share(self.jobs[name], 1))

    def _time(self, name: str, workers: int) -> float:
        """Remaining slots on so many workers."""
        speed = self.cluster.speed(self.jobs[name], workers)
        return self.remaining[name] / speed if speed else math.inf
