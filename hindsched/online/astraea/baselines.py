"""``gandiva-fair``, ``hived`` and ``batchsche``, the rivals of astraea's paper.

The first two after its one-line descriptions and general knowledge; the full texts (Chaudhary et
al., EuroSys 2020; Zhao et al., OSDI 2020) were not at hand; cells and their binding after HiveD's
published scheduler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from hindsched.instances.astraea.instance import (
    AstraeaInstance,
    AstraeaJob,
    tenant_alone,
)
from hindsched.instances.base import JobRecord
from hindsched.online.baselines.baseline import FixedWidth
from hindsched.online.baselines.ranked import comparable
from hindsched.online.dynamics import Placement
from hindsched.online.engines.batching import Admission
from hindsched.online.engines.server_batches import ServerBatches
from hindsched.online.protocol import Capabilities, Decision, Environment, OnlineAlgorithm, Report
from hindsched.solutions.astraea.solution import AstraeaSolution
from hindsched.solutions.base import Assignment


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
            done = name in self._guaranteed or job.tenant in blocked
            if done or not cluster.ever_fits_home(job):
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


Weights = Literal["unit", "value"]


class TenantBatches(ServerBatches):
    """A_online on one tenant's own servers; names are those of the whole cluster."""

    solution = AstraeaSolution

    def __init__(self, instance: AstraeaInstance, tenant: int, weights: Weights) -> None:
        super().__init__(alpha=None)
        self.alone, self.weights = tenant_alone(instance, tenant), weights
        self.cluster = self.alone

    def weight(self, job: AstraeaJob) -> float:
        """w_j, kept positive."""
        return 1.0 if self.weights == "unit" else max(1e-9, float(job.utility.value(1)))

    def run_round(self, jobs: list[JobRecord], horizon: int) -> list[Admission]:
        """Nothing without servers."""
        return super().run_round(jobs, horizon) if self.alone.servers else []


class Batchsche(OnlineAlgorithm):
    """A_online of batchsched (adaptive) for each tenant on its own servers, without sharing.

    Each tenant's jobs wait for geometric batches; a batch is planned by posted exponential prices
    per server and type that maximise the number (or the value) of jobs within the batch's horizon,
    in as many sub-rounds as it takes. F, the range of weights per volume, is estimated from the
    tenant's jobs seen so far.

    Parameters
    ----------
    weights : {"unit", "value"}
        w_j: 1, or the utility of completing at once.
    """

    card = Capabilities(published="MobiHoc 2020")

    def __init__(self, weights: Weights = "unit") -> None:
        self.weights = weights

    def start(self, environment: Environment) -> None:
        """Begin with every tenant's servers empty."""
        cluster: AstraeaInstance = environment.cluster
        self._tenants = {
            tenant.name: TenantBatches(cluster, u, self.weights)
            for u, tenant in enumerate(cluster.tenants)
        }
        for batches in self._tenants.values():
            batches.start(environment)
        self._horizon = cluster.horizon

    def step(self, slot: int, arrivals: tuple[AstraeaJob, ...]) -> Decision:
        """Let every tenant's batches decide; a plan past the horizon is not given out."""
        rows: dict[str, Sequence[Assignment]] = {}
        for name, batches in self._tenants.items():
            own = tuple(job for job in arrivals if job.tenant == name)
            planned = batches.step(slot, own).assignments.items()
            rows |= {job: given for job, given in planned if given[-1]["to"] <= self._horizon}
        return Decision(rows, tuple(rows))

    def report(self) -> Report:
        """Batches by tenant."""
        return {"tenants": {name: batches.report() for name, batches in self._tenants.items()}}
