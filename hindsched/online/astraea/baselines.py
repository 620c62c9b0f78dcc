"""``gandiva-fair`` and ``hived``: after the one-line descriptions in astraea's paper.

And general knowledge; the full texts (Chaudhary et al., EuroSys 2020; Zhao et al., OSDI 2020) were
not at hand; cells and their binding after HiveD's published scheduler. What is simulated, and what
is left out, stands in the docstrings. With one GPU type Gandiva_fair's trading is void.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from hindsched.instances.astraea.instance import AstraeaJob
from hindsched.online.baselines.baseline import FixedWidth
from hindsched.online.baselines.ranked import comparable
from hindsched.online.dynamics import Placement
from hindsched.online.protocol import Decision


class GandivaFair(FixedWidth):
    """Stride scheduling of gangs in every slot, by tickets.

    A tenant has tickets in proportion to its quota of workers, split equally over its present jobs;
    a job's stride is 1 / tickets. In each slot jobs are asked in the order of their passes (then of
    arrival); one whose gang (its fixed number of workers and the PSs they need) fits runs, in its
    previous place if that is free, else by first fit, blind to locality, and its pass grows by
    gang x stride. A new job begins at the smallest pass of the present jobs. Jobs are paused and
    moved at no cost and keep their progress. A tenant without a quota is asked last. Left out of
    Gandiva_fair: trading between generations of GPUs, a scheduler a server.

    Parameters
    ----------
    gangs : {"drawn", "half", "ideal", "best"}
        Width of the gangs, see `hindsched.online.dynamics.Gangs`.
    """

    relaxes_constraints = True

    def start(self, environment: Any) -> None:
        """Begin with an empty cluster."""
        super().start(environment)
        self._passes: dict[str, float] = {}
        self._places: dict[str, Placement] = {}
        cluster = environment.cluster
        total = max(1, int(cluster.worker_quota.sum()))
        shares = (cluster.worker_quota.sum(axis=1) / total).tolist()
        self._tickets = dict(zip((t.name for t in cluster.tenants), shares, strict=True))

    def step(self, slot: int, arrivals: tuple[AstraeaJob, ...]) -> Decision:
        """Decide anew in every slot."""
        self._event = True
        return super().step(slot, arrivals)

    def reallocate(self) -> None:
        """Walk the jobs by pass and run the gangs that fit."""
        self.release_all()
        lowest = min((self._passes[name] for name in self.jobs if name in self._passes), default=0)
        for name in self.jobs:
            self._passes.setdefault(name, lowest)
        present = Counter(job.tenant for job in self.jobs.values())
        tickets = {
            name: self._tickets[job.tenant] / present[job.tenant] for name, job in self.jobs.items()
        }

        def order(name: str) -> tuple[bool, float]:
            return tickets[name] <= 0, comparable(self._passes[name])

        for name in sorted(self.jobs, key=order):
            gang = self.cluster.fixed_workers(self.jobs[name])
            if self.resume(name, self._places) or self.hold(name, gang):
                self._places[name] = self.held[name]
                self._passes[name] += gang / tickets[name] if tickets[name] > 0 else 0.0


class Hived(FixedWidth):
    """A tenant's jobs are guaranteed its own servers; idle servers run others' jobs meanwhile.

    At every arrival and completion each tenant's waiting jobs are asked in the order of arrival,
    nobody overtaking: a job whose gang fits what is free of the tenant's own servers (the smallest
    server that takes it whole, else the fullest servers) becomes guaranteed and keeps its place to
    the end. A tenant's servers are virtual cells, bound to physical ones of the same shape while
    guaranteed jobs use them: to those where fewest opportunistic workers run, which are preempted.
    A gang too large for its tenant's servers waits in no queue. All other jobs, in the order of
    arrival, run opportunistically on whatever is idle, in their previous place if that is free. A
    preempted job keeps its progress; an opportunistic job moves home when its turn comes. Left out
    of HiveD: cells below and above a server, priorities beyond the two, failed nodes.

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
        before = self.held
        self.held = {name: held for name, held in before.items() if name in self._guaranteed}
        occupied: Counter[int] = Counter()
        for name in before.keys() - self.held.keys():
            cluster.release(self.jobs[name], before[name])
            for server, workers in before[name].workers.items():
                occupied[cluster.index["workers"][server]] += workers
        blocked: set[str] = set()
        for name, job in self.jobs.items():
            if name in self._guaranteed or job.tenant in blocked:
                continue
            if not cluster.ever_fits_home(job):
                continue
            placement = cluster.place_at_home(job, occupied)
            if placement is None:
                blocked.add(job.tenant)
            else:
                self._guaranteed.add(name)
                self.held[name] = placement
        for name, job in self.jobs.items():
            if name not in self.held and not self.resume(name, before):
                self.hold(name, cluster.fixed_workers(job))
