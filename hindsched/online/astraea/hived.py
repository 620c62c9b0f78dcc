"""``hived``: virtual private clusters with opportunistic jobs (Zhao et al., OSDI 2020).

After the one-line description in astraea's paper and general knowledge; the full text was not at
hand. What is simulated stands in the docstring.
"""

from __future__ import annotations

from typing import Any

from hindsched.online.baselines.baseline import FixedWidth
from hindsched.online.dynamics import Placement


class Hived(FixedWidth):
    """A tenant's jobs are guaranteed its own servers; idle servers run others' jobs meanwhile.

    At every arrival and completion each tenant's waiting jobs are asked in the order of arrival,
    nobody overtaking: a job whose gang fits what is free of the tenant's own servers (the smallest
    server that takes it whole, else the fullest servers) becomes guaranteed and keeps its place to
    the end. Foreign jobs count as free: they are preempted. A gang too large for its
    tenant's servers waits in no queue. All other jobs, in the order of arrival,
    run opportunistically on whatever is idle, in their previous place if that is free. A preempted
    job keeps its progress; an opportunistic job moves home when its turn comes.

    Parameters
    ----------
    gangs : {"drawn", "half", "ideal", "best"}
        Width of the gangs, see `hindsched.online.dynamics.Gangs`.
    """

    relaxes_constraints = True

    def start(self, environment: Any) -> None:
        """Begin with an empty cluster."""
        super().start(environment)
        self._guaranteed: set[str] = set()

    def reallocate(self) -> None:
        """Guaranteed jobs first, then opportunistic ones on what is idle."""
        cluster: Any = self.cluster
        held: dict[str, Placement] = {}
        before: dict[str, Placement] = {}
        for name, placement in self.held.items():
            if name in self._guaranteed:
                held[name] = placement
            else:
                cluster.release(self.jobs[name], placement)
                before[name] = placement
        blocked: set[str] = set()
        for name, job in self.jobs.items():
            if name in self._guaranteed or cluster.owner(job) in blocked:
                continue
            if not cluster.ever_fits_home(job):
                continue
            placement = cluster.place_at_home(job)
            if placement is None:
                blocked.add(cluster.owner(job))
                continue
            self._guaranteed.add(name)
            held[name] = placement
        for name, job in self.jobs.items():
            if name in held:
                continue
            if name in before and cluster.fits(job, before[name]):
                cluster.book(job, before[name])
                held[name] = before[name]
                continue
            placement = cluster.place(job, cluster.fixed_workers(job))
            if placement is not None:
                held[name] = placement
        self.held = held
