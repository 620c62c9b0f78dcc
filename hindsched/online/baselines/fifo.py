"""``fifo``: order of arrival, head-of-line blocking, a fixed number of workers, never paused."""

from __future__ import annotations

from hindsched.online.baselines.elastic import FixedWidth


class Fifo(FixedWidth):
    """First in, first out.

    A job has a fixed number of workers, starts when every earlier job has started and its workers
    fit, and runs without pause until its work is done. Nobody overtakes the head of the queue.

    Parameters
    ----------
    gangs : {"drawn", "half", "ideal", "best"}
        Width of the gangs, see `hindsched.online.dynamics.Gangs`.
    """

    def reallocate(self) -> None:
        """Start waiting jobs in the order of arrival until the head of the queue does not fit."""
        for name, job in self.jobs.items():
            if name in self.held:
                continue
            placement = self.cluster.place(job, self.cluster.fixed_workers(job))
            if placement is None:
                break
            self.held[name] = placement
