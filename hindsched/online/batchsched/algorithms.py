"""A_online (Algorithm 1) in its variants, every algorithm of its evaluation, Theorems 3 and 5.

``batchsched`` is the paper's: alpha sub-rounds of Algorithm 3 with Algorithm 4 and exactly these
repairs: N-hat reset per (t, n), g <= N - 1, s >= 1 and the least sufficient, no feasible g means
infeasible. ``batchsched-terminating`` follows the paper's words after Theorem 5: alpha per batch by
(6), and a batch ends when all of it is planned. ``batchsched-exact`` places by the exact routine
instead. ``batchsched-adaptive`` is exact and work-conserving.

``tau_i`` is a batch's horizon, ``alpha`` its number of sub-rounds; for lambda and F see
`engines.server_batches`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from hindsched.arrays import Floats
from hindsched.instances.base import Instance, JobRecord
from hindsched.instances.batchsched.instance import BatchschedInstance, BatchschedJob
from hindsched.instances.modes import modes, ps_for
from hindsched.json_types import JsonObject
from hindsched.models.base import Subproblem, subproblem
from hindsched.models.windows.sets import num_columns
from hindsched.online.base import FamilyOnline
from hindsched.online.baselines.baseline import Fifo
from hindsched.online.baselines.cluster import largest_share
from hindsched.online.baselines.ranked import Tiresias, TiresiasL
from hindsched.online.batchsched.baselines import AntMan, BatchschedDrf, Wspt
from hindsched.online.batchsched.dynamics import BatchschedCluster, BatchschedState
from hindsched.online.cluster_state import whole_window
from hindsched.online.engines.batching import (
    PER_BATCH,
    Admission,
    Alpha,
    Offer,
    Rows,
    enough_rounds,
)
from hindsched.online.engines.dual_price import RESIDUAL, DualPrice
from hindsched.online.engines.primal_dual import Engine
from hindsched.online.engines.reoptimise import Reoptimise
from hindsched.online.engines.server_batches import (
    ServerBatches,
    ServerRound,
    resource_units,
    volumes,
)
from hindsched.online.protocol import (
    Decision,
    Environment,
    Positive,
    Theorem,
    theorem_record,
)
from hindsched.solutions.base import Assignment
from hindsched.solutions.batchsched.solution import BatchschedSolution
from hindsched.solutions.window_solution import WindowRow
from hindsched.solvers.door.subproblem import solve_subproblem
from hindsched.solvers.families.batchsched.oracle import BatchschedServers
from hindsched.solvers.families.windows.schedules import ScheduleSearch
from hindsched.solvers.oracles.base import PlacingOracle

Order = Literal["index", "weight", "density"]
PriceBase = Annotated[float, Field(gt=1, allow_inf_nan=False)]
OBSERVED_ALPHA = 4  # what the paper observes in its simulations


class ServerModelRound(ServerRound):
    """A sub-round of the engine ``model``; programs are kept by job until it is placed."""

    batches: BatchschedOnline

    def find(self, job: BatchschedJob, limit: float) -> WindowRow | None:
        """Solve the subproblem as an integer program, in which completion has no weight."""
        kept = self.batches.kept.get(job.name)
        if kept is None or kept[0] != self.last:
            alone = job.model_copy(update={"arrival": 1, "weight": 0.0})
            program = subproblem(self.instance.with_jobs((alone,)), 0, slots=self.last)
            kept = self.batches.kept[job.name] = self.last, program
        prices, room = (
            {"capacity": values[:, :, : self.last]}
            for values in (self.search.prices, self.search.residual)
        )
        solution = solve_subproblem(kept[1], prices, room)
        if solution is None:
            return None
        row: WindowRow = solution.rows[job.name][0]
        return row if self.search.price(row) < limit else None

    def book(self, job: BatchschedJob, offer: Offer) -> None:
        """Take the schedule's resources and post the new prices; the job's program goes."""
        self.batches.kept.pop(job.name, None)
        super().book(job, offer)


class BatchschedOnline(ServerBatches):
    """A_online with Algorithm 4 (repaired) in alpha sub-rounds.

    Parameters
    ----------
    alpha : int or "per-batch", optional
        Sub-rounds of a batch, see `GeometricBatches`; None for work-conserving batches.
    order : {"index", "weight", "density"}
        Order in which Algorithm 3 asks the jobs; the paper's is ``index``.
    tight_slots : bool
        Let schedules of a batch use slot tau itself: (7b) as printed never does.
    price_base : float, optional
        lambda in place of ``2 tau H R F + 1``.
    density_scale : float
        Factor on F (the paper's Figures 4 and 11).
    declared : bool
        Whether F and the smallest density are declared in advance or estimated from the jobs seen.
    engine : {"oracle", "model"}
        Who finds the cheapest schedule; the model is always exact.
    """

    greedy = True
    solution = BatchschedSolution

    def __init__(
        self, alpha: Alpha = OBSERVED_ALPHA, order: Order = "index",
        tight_slots: bool = False, price_base: PriceBase | None = None,
        density_scale: Positive = 1.0, declared: bool = True, engine: Engine = "oracle",
    ) -> None:  # fmt: skip
        super().__init__(alpha)
        self.order, self.tight_slots, self.price_base = order, tight_slots, price_base
        self.density_scale, self.declared, self.engine = density_scale, declared, engine

    def start(self, environment: Environment) -> None:
        """Begin with no jobs."""
        super().start(environment)
        self.cluster: BatchschedInstance = environment.cluster
        self.kept: dict[str, tuple[int, Subproblem]] = {}
        self.make_round = ServerModelRound if self.engine == "model" else ServerRound

    def density_range(self) -> tuple[float, float]:
        """Smallest and largest density: declared, or of the jobs seen so far."""
        if not self.declared:
            return super().density_range()
        density = self.environment.estimates["density"]
        return float(density["lowest"]), float(density["highest"])

    def base(self, horizon: int) -> float:
        """Lambda, as set or with F as scaled."""
        if self.price_base is not None:
            return self.price_base
        return self.density_scale * (super().base(horizon) - 1.0) + 1.0

    def ordered(self, jobs: list[BatchschedJob]) -> list[BatchschedJob]:
        """As of `order`."""
        if self.order == "index":
            return jobs
        worth = self.weight if self.order == "weight" else self.density
        return sorted(jobs, key=worth, reverse=True)


class BatchschedExact(BatchschedOnline):
    """A_online with the exact placement routine in place of Algorithm 4."""

    greedy = False


class BatchschedAdaptive(BatchschedExact):
    """Exact and work-conserving: batches and sub-rounds follow each other without waiting.

    Parameters
    ----------
    alpha, order, tight_slots, price_base, density_scale, declared, engine
        As in `BatchschedOnline`.
    left_shift : bool
        Move every job of a planned batch, in the order of their starts, to its earliest window, on
        whatever servers; types, workers and duration stay. None ends later than planned.
    """

    def __init__(
        self, alpha: Alpha = None, order: Order = "index", tight_slots: bool = False,
        price_base: PriceBase | None = None, density_scale: Positive = 1.0, declared: bool = True,
        engine: Engine = "oracle", left_shift: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(alpha, order, tight_slots, price_base, density_scale, declared, engine)
        self.left_shift = left_shift

    def start(self, environment: Environment) -> None:
        """Begin with no jobs."""
        super().start(environment)
        self._running: list[WindowRow] = []

    def settle(self, horizon: int, rows: Rows) -> Rows:
        """Move the batch's jobs, which start after slot `horizon`, if so set; all others stay."""
        if not self.left_shift or not rows:
            return rows
        read = BatchschedSolution.read_row
        planned = {name: read(self.cluster, name, job_rows[0]) for name, job_rows in rows.items()}
        self._running = [row for row in self._running if row.last > horizon]
        rows_now = [*self._running, *planned.values()]
        search = ScheduleSearch(self.cluster, max(row.last for row in rows_now) - horizon)
        for row in rows_now:
            search.book(replace(row, first=max(1, row.first - horizon), last=row.last - horizon))
        jobs = {job.name: job for job in self.batch}
        for name, row in sorted(planned.items(), key=lambda item: item[1].first):
            present, table = row.moved(-horizon), self.modes_of(jobs[name])
            search.book(present, sign=-1.0)
            kind = row.worker_type, max(0, row.ps_type), row.num_workers, row.slots
            columns = table.worker_type, table.ps_type, table.workers, table.duration
            same = np.all([column == value for column, value in zip(columns, kind, strict=True)], 0)
            earlier = search.cheapest(table.take(same), rate=1.0)
            best = present if earlier is None or earlier.last > present.last else earlier
            search.book(best)
            self._running.append(best.moved(horizon))
            rows[name] = [BatchschedSolution.write_row(self.cluster, self._running[-1])]
        self.last_slot = max(row.last for row in self._running)
        return rows


class GreedyRtl(BatchschedAdaptive):
    """The work-conserving batches with GreedyRTL in place of Algorithm 3.

    After "Near-optimal scheduling mechanisms for deadline-sensitive jobs in large computing
    clusters" (Jain, Menache, Naor and Yaniv, SPAA 2012), from general knowledge, not its full text:
    jobs by weight over least volume, each as late as possible before the deadline with the least
    volume, skipped if it does not fit. Left out: that a job may run in parts, with more or fewer
    machines from slot to slot, which batchsched's problem does not let it; and the payments.

    Parameters
    ----------
    tight_slots : bool
        As in `BatchschedOnline`.
    """

    def __init__(self, tight_slots: bool = False) -> None:
        super().__init__(tight_slots=tight_slots)

    def plan_round(self, jobs: list[BatchschedJob], horizon: int, last: int) -> list[Admission]:
        """Accept by density, each as late as it fits."""
        search, admitted = ScheduleSearch(self.cluster, last), list[Admission]()
        # Prices that fall towards the deadline make the cheapest schedule the least volume, and
        # among equal volumes the latest: the slope is too small to outweigh a difference in volume.
        per_slot = 1.0 + 1e-6 / last * np.arange(last - 1, -1, -1)
        prices = (1.0 / resource_units(self.cluster))[:, None] * per_slot
        search.post(1, np.broadcast_to(prices, search.prices.shape))
        for job in sorted(jobs, key=self.density, reverse=True):
            row = search.cheapest(self.modes_of(job))
            if row is not None:
                search.book(row)
                offer = Offer(row.first, row.slots, np.zeros(0), 0.0, row)
                admitted.append(Admission(job, offer, float(job.weight), 0.0))
        return admitted


class BatchschedReoptimise(Reoptimise):
    """`Reoptimise`; HiGHS' presolve takes most of the time of programs of modes on real servers."""

    solver_options: ClassVar[Mapping[str, object]] = {"presolve": "off"}

    def num_columns(self, slot: int) -> int:
        """Columns of the jobs that have not begun."""
        known = self._rolling.instance
        assert isinstance(known, BatchschedInstance)
        planned = [row["to"] for rows in self._plan.values() for row in rows]
        new = [job for job in known.jobs if job.name not in self._plan]
        # those that have no plan come behind, one after the other
        slots = max([slot, *planned]) + sum(int(modes(known, job).duration.max()) for job in new)
        self._slots = slots
        spans = {
            j: (max(job.arrival, slot), slots)
            for j, job in enumerate(known.jobs) if job.name not in self._locked
        }  # fmt: skip
        return num_columns(known, spans)

    def oracle_of(self, jobs: Sequence[JobRecord]) -> PlacingOracle:
        """Oracle over as many slots as all known jobs need."""
        cluster: BatchschedInstance = self._environment.cluster.with_jobs(tuple(jobs))
        return BatchschedServers(cluster, self._environment.formulation, self._slots)


class BatchschedDualPrice(DualPrice):
    """Best responses to the capacity duals of the relaxation over whole schedules on real servers.

    By default decided jobs are fixed and nothing is scaled: every job must run, and capacity that
    is kept for jobs to come only delays those that are there.
    """

    over_schedules = True

    def start(self, environment: Environment) -> None:
        """Begin with an empty cluster and prices 0."""
        self._slots = max(8, environment.cluster.horizon)
        self._last = 0
        super().start(environment)

    def build_oracle(self, cluster: Instance, formulation: str) -> PlacingOracle:
        """Oracle over as many slots as are laid out now."""
        assert isinstance(cluster, BatchschedInstance)
        return BatchschedServers(cluster, formulation, self._slots)

    def step(self, slot: int, arrivals: tuple[BatchschedJob, ...]) -> Decision:
        """Lay out enough slots for the arrivals to run one after the other behind all others."""
        cluster: BatchschedInstance = self._environment.cluster
        shortest = sum(int(modes(cluster, job).duration.min()) for job in arrivals)
        self._grow(max(slot, self._last + 1) + shortest)
        return super().step(slot, arrivals)

    def _respond(self, oracle: PlacingOracle, block: int) -> list[Assignment] | None:
        """Best response; every job must run, so slots are added until one fits."""
        while True:
            if oracle.rows.size < self._layout.size:  # also since an arrival before it
                oracle = self.build_oracle(oracle.instance, oracle.formulation)
            rows = super()._respond(oracle, block)
            if rows is not None:
                self._last = max([self._last, *(row["to"] for row in rows)])
                return rows
            self._grow(2 * self._slots)

    def _grow(self, slots: int) -> None:
        if slots > self._slots:
            self._slots = max(slots, 2 * self._slots)
            environment = self._environment
            self.lengthen(self.build_oracle(environment.cluster, environment.formulation).rows)


def densities(instance: BatchschedInstance) -> Floats:
    """Weight per least volume of every job."""
    least = [volumes(instance, modes(instance, job)).min() for job in instance.jobs]
    return np.array([job.weight for job in instance.jobs]) / least


def theorem(instance: BatchschedInstance) -> Theorem:
    """Theorem 5: A_online is ``4 alpha``-competitive, with the theorem's alpha.

    Beside it stand the paper's further quantities: log2 lambda, Theorem 3's ``2 log2 lambda``, the
    alpha of (6) per batch and the constant one that the paper observes. ``worst`` is by what factor
    an assumption is missed. Logarithms are to base 2, as ``1 + log log lambda`` in Theorem 5
    implies; lambda takes the horizon at which the last batch is planned.
    """
    if not instance.jobs:
        return theorem_record("ratio", None)
    density = densities(instance)
    servers, resources = instance.server_capacity.shape
    last = max(int(modes(instance, job).duration.min()) for job in instance.jobs)
    horizon = 1 << math.ceil(
        math.log2(max(last + 1, max(job.arrival for job in instance.jobs) + 1))
    )
    spread = float(density.max() / density.min())
    log_base = math.log2(2.0 * horizon * servers * resources * spread + 1.0)
    gamma = 2.0 * log_base
    weights = np.array([job.weight for job in instance.jobs], dtype=float)
    alpha = enough_rounds(float(weights.sum()), float(weights.min()), gamma)
    batches: dict[int, float] = {}
    for job in instance.jobs:
        first = 1 << math.ceil(math.log2(job.arrival + 1))
        batches[first] = batches.get(first, 0.0) + float(job.weight)
    per_batch = {
        tau: enough_rounds(w, float(weights.min()), gamma) for tau, w in sorted(batches.items())
    }
    share = largest_share([(_demands_on_a_server(instance), instance.server_capacity)])
    # In units of the smallest density every job's least volume satisfies 1 <= w / sum f <= F.
    most = [volumes(instance, modes(instance, job)).max() for job in instance.jobs]
    thinnest = float((weights / most).min() / density.min())
    assumed = [
        ("1 <= weight / (resources x slots) <= F for every schedule (Section 5.1)",
         thinnest >= 1.0, 1.0 / thinnest),
        ("demand of a job on a server / capacity <= 1 / log2 lambda (Theorem 3)",
         share <= 1.0 / log_base, share * log_base),
    ]  # fmt: skip
    known = ("F, the weights and their minimum are known in advance", False, spread)
    return theorem_record(
        "ratio", 4.0 * alpha, assumed, [known], alpha=alpha, alpha_constant=OBSERVED_ALPHA,
        alpha_per_batch={str(tau): value for tau, value in per_batch.items()},
        log2_lambda=log_base, max_weight_ratio=gamma,
    )  # fmt: skip


def _demands_on_a_server(instance: BatchschedInstance) -> Floats:
    """What all workers and PSs of a job may take on one server, by mode: (demands, R)."""
    columns = [np.column_stack(modes(instance, job).columns[:4]) for job in instance.jobs]
    units = set[tuple[int, int, int, int]]()  # workers of a type and PSs of a type
    for m, p, together, count in np.unique(np.concatenate(columns), axis=0).tolist():
        if not (together and instance.has_ps):
            units.update((w, m, 0, p) for w in range(1, count + 1))
        if instance.has_ps:
            hosts = np.arange(count if together else 0, count + together)
            ps = ps_for(count - hosts, instance.ps_ratio[m, p])
            units.update((w, m, s, p) for w, s in zip(hosts.tolist(), ps.tolist(), strict=True))
    workers, m, ps, p = np.array(list(units), dtype=np.int64).reshape(-1, 4).T
    demands: Floats = workers[:, None] * instance.worker_demand[m]
    return demands + ps[:, None] * instance.ps_demand[p] if instance.has_ps else demands


def declared_estimates(instance: BatchschedInstance) -> JsonObject:
    """Smallest and largest weight per least volume: the future's share."""
    values = densities(instance)
    low, high = (float(values.min()), float(values.max())) if values.size else (1.0, 1.0)
    return {"density": {"lowest": low, "highest": high}}


ONLINE = FamilyOnline(
    algorithms={
        "batchsched": BatchschedOnline,
        "batchsched-terminating": partial(BatchschedOnline, alpha=PER_BATCH),
        "batchsched-exact": BatchschedExact,
        "batchsched-adaptive": BatchschedAdaptive,
        "dual-price": partial(BatchschedDualPrice, learning=RESIDUAL, expected=0),
        "reoptimise": BatchschedReoptimise,
        "fifo": Fifo,
        "drf": BatchschedDrf,
        "antman": AntMan,
        "tiresias": Tiresias,
        "tiresias-l": TiresiasL,
        "wspt": Wspt,
        "greedy-rtl": GreedyRtl,
    },
    state=BatchschedState,
    committed_rows=whole_window,
    build_cluster=BatchschedCluster,
    declared_estimates=declared_estimates,
    theorems={"batchsched": theorem},
)
