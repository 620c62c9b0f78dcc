"""``drf``: dominant resource fairness by progressive filling (Ghodsi et al., NSDI 2011)."""

from __future__ import annotations

from hindsched.online.baselines.elastic import Baseline
from hindsched.online.dynamics import Cluster, Placement


class Drf(Baseline):
    """Dominant resource fairness.

    Every job is admitted. At every arrival and completion the allocation is made anew by
    progressive filling: one more worker, with the parameter servers it then needs, goes to the
    unfinished job with the smallest dominant share among those for which one more still fits and
    that have fewer workers than they can use. Ties go to the earlier arrival. Reallocation is
    free.

    Parameters
    ----------
    static : bool
        Fill only what is free, among the jobs that hold nothing: a job that has started keeps its
        placement to its end, so that nothing is paused or resized.
    """

    def __init__(self, static: bool = False) -> None:
        self.static = static
        self.feasible_set = static or type(self).feasible_set  # type: ignore[misc]

    def reallocate(self) -> None:
        """Fill progressively from nothing, or what is free."""
        if not self.static:
            self.release_all()
        waiting = {name: job for name, job in self.jobs.items() if name not in self.held}
        self.held = {**self.held, **progressive_filling(self.cluster, waiting)}


def progressive_filling(cluster: Cluster, jobs: dict[str, object]) -> dict[str, Placement]:
    """Book workers one by one, always for the smallest dominant share that can still grow.

    Parameters
    ----------
    cluster : Cluster
        With nothing booked by `jobs`.
    jobs : dict
        Unfinished jobs by name in the order of arrival.

    Returns
    -------
    dict
        What each job holds; jobs that hold nothing are absent.
    """
    held: dict[str, Placement] = {}
    share = dict.fromkeys(jobs, 0.0)
    # A job for which one more worker does not fit never fits again: capacity only shrinks here.
    growing = list(jobs)
    while growing:
        name = min(growing, key=share.__getitem__)
        job = jobs[name]
        present = held.get(name)
        workers = present.num_workers if present else 0
        extended = None
        if workers < cluster.max_workers(job):
            extended = cluster.extend(job, present)
        if extended is None:
            growing.remove(name)
            continue
        held[name] = extended
        share[name] = cluster.dominant_share(job, extended.num_workers)
    return held
