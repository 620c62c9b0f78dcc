"""Every algorithm of astraea, and what Lemmas 1 and 3 and Theorem 1 say of an instance.

The rivals ``gandiva-fair`` and ``hived`` follow their one-line descriptions in astraea's paper and
general knowledge; the full texts (Chaudhary et al., EuroSys 2020; Zhao et al., OSDI 2020) were not
at hand; cells and their binding after HiveD's published scheduler.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob, tenant_alone
from hindsched.instances.base import JobRecord, LinearUtility, PowerUtility
from hindsched.instances.modes import modes, ps_for
from hindsched.models.astraea.offline import spans
from hindsched.models.windows.sets import num_columns
from hindsched.online import protocol
from hindsched.online.astraea.dynamics import AstraeaCluster, AstraeaState
from hindsched.online.astraea.paper import Astraea, AstraeaLiteral, most_a_unit
from hindsched.online.base import FamilyOnline
from hindsched.online.baselines.baseline import FixedWidth
from hindsched.online.baselines.cluster import Placement
from hindsched.online.cluster_state import whole_window
from hindsched.online.engines.batching import Admission, Alpha
from hindsched.online.engines.dual_price import RESIDUAL, DualPrice
from hindsched.online.engines.reoptimise import Reoptimise
from hindsched.online.engines.server_batches import ServerBatches
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
    gangs : {"drawn", "half", "ideal"}
        Width of the gangs, see `hindsched.online.baselines.cluster.Gangs`.
    """

    relaxes_constraints = True
    every_slot = True

    def start(self, environment: Any) -> None:
        """Begin with an empty cluster."""
        super().start(environment)
        self._passes: dict[str, float] = {}
        self._places: dict[str, Placement] = {}
        cluster = environment.cluster
        total = max(1, int(cluster.worker_quota.sum()))
        shares = (cluster.worker_quota.sum(axis=1) / total).tolist()
        self._tickets = dict(zip((t.name for t in cluster.tenants), shares, strict=True))

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
            equal_in_twelve_digits = float(f"{self._passes[name]:.12g}")  # is a tie
            return tickets[name] <= 0, equal_in_twelve_digits

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
    gangs : {"drawn", "half", "ideal"}
        Width of the gangs, see `hindsched.online.baselines.cluster.Gangs`.
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


class TenantBatches(ServerBatches):
    """A_online on one tenant's own servers; names are those of the whole cluster."""

    solution = AstraeaSolution

    def __init__(self, instance: AstraeaInstance, tenant: int, alpha: Alpha) -> None:
        super().__init__(alpha)
        self.cluster: AstraeaInstance = tenant_alone(instance, tenant)

    def weight(self, job: AstraeaJob) -> float:
        """w_j: jobs are counted."""
        return 1.0

    def run_round(self, jobs: list[JobRecord], horizon: int) -> list[Admission]:
        """Nothing without servers."""
        return super().run_round(jobs, horizon) if self.cluster.servers else []


class AstraeaBatchsche(protocol.OnlineAlgorithm):
    """A_online of batchsched for each tenant on its own servers, without sharing.

    Each tenant's jobs wait for geometric batches; a batch is planned by posted exponential prices
    per server and type that maximise the number of jobs within the batch's horizon, in sub-rounds.
    F, the range of weights per volume, is estimated from the tenant's jobs seen so far.

    Parameters
    ----------
    alpha : int or "per-batch", optional
        Sub-rounds of a batch, see `GeometricBatches`: the printed 4, per batch, or None for
        work-conserving batches.
    """

    card = protocol.Capabilities(published="MobiHoc 2020")

    def __init__(self, alpha: Alpha = None) -> None:
        self.alpha = alpha

    def start(self, environment: protocol.Environment) -> None:
        """Begin with every tenant's servers empty."""
        cluster: AstraeaInstance = environment.cluster
        self._tenants = {
            tenant.name: TenantBatches(cluster, u, self.alpha)
            for u, tenant in enumerate(cluster.tenants)
        }
        for batches in self._tenants.values():
            batches.start(environment)
        self._horizon = cluster.horizon

    def step(self, slot: int, arrivals: tuple[AstraeaJob, ...]) -> protocol.Decision:
        """Let every tenant's batches decide; a plan past the horizon is not given out."""
        rows: dict[str, Sequence[Assignment]] = {}
        for name, batches in self._tenants.items():
            tenant_arrivals = tuple(job for job in arrivals if job.tenant == name)
            planned = batches.step(slot, tenant_arrivals).assignments.items()
            rows |= {job: plan for job, plan in planned if plan[-1]["to"] <= self._horizon}
        return protocol.Decision(rows, tuple(rows))

    def report(self) -> protocol.Report:
        """Batches by tenant."""
        return {"tenants": {name: batches.report() for name, batches in self._tenants.items()}}


class AstraeaDualPrice(DualPrice):
    """Best responses to the capacity duals of the relaxation over whole schedules.

    By default decided jobs are fixed and nothing is scaled.
    """

    over_schedules = True


class AstraeaReoptimise(Reoptimise):
    """`Reoptimise`, with plans over whole schedules where a step's program is large."""

    def num_columns(self, slot: int) -> int:
        """Columns of the jobs that have not begun."""
        known = self._rolling.instance
        assert isinstance(known, AstraeaInstance)
        open_jobs = [j for j, job in enumerate(known.jobs) if job.name not in self._locked]
        return num_columns(known, spans(known, open_jobs, must=False, now=slot))


LARGEST_LOG = 700.0  # beyond e^700 a ratio is no number any more; its logarithm is still given


def theorem(instance: AstraeaInstance) -> protocol.Theorem:
    """Theorem 1: an additive bound for linear utilities, a ratio for power utilities.

    The value is OPT - ALG for ``additive`` and OPT / ALG for ``ratio``, the inverse of the paper's;
    None where no theorem applies or the number overflows. ``lambda`` is Lemma 1's, where f is the
    utility of completing in the first slot; ``sigma`` Lemma 3's, with logarithms to base 2: then
    one admission raises the dual objective by at most sigma times its value, if the two conditions
    on revenue and share hold; ``batches`` is L: 2^L covers the last arrival and all shortest
    durations.
    """
    tables = {job.name: modes(instance, job) for job in instance.jobs}
    jobs = [job for job in instance.jobs if len(tables[job.name])]
    if not jobs:
        return protocol.theorem_record("ratio", None)
    theta_w, theta_p = (1.0 + most for most in most_a_unit((job, tables[job.name]) for job in jobs))
    sigma = 2.0 * (math.log2(theta_w) + math.log2(theta_p))
    rounds = _lemma_rounds([job.utility.value(1) for job in jobs], sigma)
    longest = max(int(tables[job.name].duration.min()) for job in jobs)
    latest = max(job.arrival for job in jobs)
    batches = max(1, math.ceil(math.log2(max(longest, latest + 1))))
    kind, log_value = _guarantee(jobs, rounds, batches)
    least_value, largest_share = _extremes(instance, jobs, 2**batches, (theta_w, theta_p))
    flat = max(map(_flatness, jobs))
    slots = rounds * 2 ** (batches + 1)
    assumed: list[protocol.Assumption] = [
        ("utilities are all linear or all power (Theorem 1)",
         len({job.utility.kind for job in jobs}) == 1, None),
        ("slopes below 0 and intercepts above 0, or exponents above 0 (Theorem 1)", flat < 0, flat),
        ("utilities take the completion slot itself: origin absolute (Theorem 1)",
         instance.utility_origin == "absolute", None),
        ("every schedule earns 1 per worker-slot and PS-slot at least (theta - 1 >= 1)",
         least_value >= 1, least_value),
        ("a job takes at most 1 / log2 theta of a type's workers or PSs (Lemma 3)",
         largest_share <= 1, largest_share),
        ("the horizon is no limit: lambda 2^(L + 1) slots",
         slots <= instance.horizon, float(slots)),
    ]  # fmt: skip
    enough = "lambda rounds of Lemma 1 are run (the algorithm's default is 2)"
    overflows = log_value is None or log_value > LARGEST_LOG
    return protocol.theorem_record(
        kind, None if log_value is None or overflows else math.exp(log_value), assumed,
        [(enough, rounds <= 2, float(rounds))],
        log10_value=None if log_value is None else log_value / math.log(10), sigma=sigma,
        theta_workers=theta_w, theta_ps=theta_p, batches=batches, **{"lambda": rounds},
    )  # fmt: skip


def _extremes(
    instance: AstraeaInstance, jobs: list[AstraeaJob], latest: int, thetas: tuple[float, float]
) -> tuple[float, float]:
    """What Lemma 3's increments need, at the worst of all jobs' schedules.

    The least revenue a worker-slot or PS-slot, at a completion in slot `latest` of a round, and the
    largest share of a type's workers or PSs that a job takes, times log2 theta.
    """
    least, largest = math.inf, 0.0
    totals = instance.worker_count.sum(axis=0), instance.ps_count.sum(axis=0)
    for job in jobs:
        table = modes(instance, job)
        table = table.take(table.duration <= latest)
        if not len(table):
            continue
        elsewhere = table.workers * (1 - table.one_server)
        ps = ps_for(elsewhere, instance.ps_ratio[table.worker_type, table.ps_type])
        ps = np.minimum(ps, instance.ps_count.max(axis=0)[table.ps_type])
        earned = job.utility.value(latest) / (np.maximum(table.workers, ps) * table.duration)
        least = min(least, float(earned.min()))
        for count, types, total, theta in zip(
            (table.workers, ps), (table.worker_type, table.ps_type), totals, thetas, strict=True
        ):
            largest = max(largest, float((count / total[types]).max()) * math.log2(theta))
    return least, largest


def _flatness(job: AstraeaJob) -> float:
    """Below 0 iff the utility is of Theorem 1's form: the slope, -intercept or -exponent."""
    if isinstance(job.utility, LinearUtility):
        return max(float(job.utility.slope), -float(job.utility.intercept))
    return -float(job.utility.exponent)


def _lemma_rounds(first: list[float], sigma: float) -> int:
    """Lemma 1's lambda."""
    positive = [value for value in first if value > 0]
    if not positive:
        return 1
    shrink = math.log(sigma) - math.log(sigma - 1.0)
    return math.floor((math.log(math.fsum(positive)) - math.log(min(positive))) / shrink) + 1


def _guarantee(jobs: list[AstraeaJob], rounds: int, batches: int) -> tuple[str, float | None]:
    """Kind and natural logarithm of Theorem 1's value; None where it does not apply."""
    linear = [job.utility for job in jobs if isinstance(job.utility, LinearUtility)]
    power = [job.utility for job in jobs if isinstance(job.utility, PowerUtility)]
    if len(linear) == len(jobs):
        slopes = [float(utility.slope) for utility in linear]
        value = len(jobs) * (
            (2**batches - 1) * max(slopes)
            - (2 ** (batches + 1) - 1) * (2 * rounds - 1) * min(slopes)
        )
        return "additive", math.log(value) if value > 0 else None
    if len(power) == len(jobs):
        exponents = [float(utility.exponent) for utility in power]
        scales = [float(utility.scale) for utility in power]
        low, high = min(exponents), max(exponents)
        log_value = high * math.log(4 * rounds) + (high - low) * (batches - 2) * math.log(2)
        log_value += low * math.log(max(scales)) - high * math.log(min(scales))
        return "ratio", log_value
    return "ratio", None


ONLINE = FamilyOnline(
    algorithms={
        "astraea": Astraea,
        "astraea-literal": AstraeaLiteral,
        "dual-price": partial(AstraeaDualPrice, learning=RESIDUAL, expected=0),
        "reoptimise": AstraeaReoptimise,
        "batchsche": AstraeaBatchsche,
        "gandiva-fair": GandivaFair,
        "hived": Hived,
    },
    state=AstraeaState,
    committed_rows=whole_window,
    build_cluster=AstraeaCluster,
    theorems={"astraea": theorem},
)
