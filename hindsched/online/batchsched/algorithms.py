"""A_online (Algorithm 1) in its variants, and every algorithm of its evaluation.

``batchsched`` is the paper's: alpha sub-rounds of Algorithm 3 with Algorithm 4 and exactly these
repairs: N-hat reset per (t, n), g <= N - 1, s >= 1 and the least sufficient, no feasible g means
infeasible. ``batchsched-exact`` places by the exact routine instead. ``batchsched-adaptive`` is
exact and work-conserving.

=================  ========================================================================
``tau_i``          horizon of a batch               ``alpha``   number of sub-rounds
``lambda``         base of the prices, ``2 tau H R F + 1`` with the batch's own horizon
``F``              largest over smallest weight per least volume (`density_range`)
=================  ========================================================================

Resources are counted in units of their mean capacity a server, and weights in units of the
smallest weight per least volume, as the assumption ``1 <= w / sum f <= F`` of the paper needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from hindsched.instances.base import Instance, JobRecord
from hindsched.instances.batchsched.instance import BatchschedInstance, BatchschedJob
from hindsched.instances.batchsched.modes import modes
from hindsched.instances.modes import Modes
from hindsched.json_types import JsonObject
from hindsched.models.base import Subproblem
from hindsched.models.windows.sets import EmptyCluster
from hindsched.online.baselines.baseline import Drf, Fifo
from hindsched.online.baselines.infeasible_baselines import relaxing, relaxing_baselines
from hindsched.online.baselines.ranked import Tiresias, TiresiasL
from hindsched.online.batchsched.baselines import AntMan, Wspt
from hindsched.online.batchsched.rounds import LeftShift, ServerRound, greedy_right_to_left
from hindsched.online.batchsched.theorem import (
    OBSERVED_ALPHA,
    densities,
    least_volume,
    resource_units,
    theorem,
)
from hindsched.online.engines.batching import (
    Admission,
    GeometricBatches,
    Offer,
    Rows,
    post_prices,
)
from hindsched.online.engines.dual_price import DualPrice
from hindsched.online.engines.primal_dual import Engine
from hindsched.online.engines.reoptimise import Reoptimise
from hindsched.online.protocol import Count, Decision, Environment, Positive
from hindsched.online.registry import Factory
from hindsched.solutions.base import Assignment
from hindsched.solutions.batchsched.solution import BatchschedSolution
from hindsched.solvers.families.batchsched.oracle import ServerOracle
from hindsched.solvers.families.batchsched.schedules import Schedule
from hindsched.solvers.oracles.base import BlockOracle

Order = Literal["index", "weight", "density"]
PriceBase = Annotated[float, Field(gt=1, allow_inf_nan=False)]


class BatchschedOnline(GeometricBatches):
    """A_online with Algorithm 4 (repaired) in alpha sub-rounds.

    Parameters
    ----------
    alpha : int, optional
        Sub-rounds set aside in each batch; None for work-conserving batches.
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

    def __init__(
        self,
        alpha: Count | None = OBSERVED_ALPHA,
        order: Order = "index",
        tight_slots: bool = False,
        price_base: PriceBase | None = None,
        density_scale: Positive = 1.0,
        declared: bool = True,
        engine: Engine = "oracle",
    ) -> None:
        super().__init__(alpha)
        self.order, self.tight_slots, self.price_base = order, tight_slots, price_base
        self.density_scale, self.declared, self.engine = density_scale, declared, engine

    def start(self, environment: Environment) -> None:
        """Begin with no jobs."""
        super().start(environment)
        self.cluster: BatchschedInstance = environment.cluster
        self._modes: dict[str, Modes] = {}
        self._density: dict[str, float] = {}
        self._kept: dict[str, tuple[int, Subproblem]] = {}

    def modes_of(self, job: BatchschedJob) -> Modes:
        """Modes of a job, prepared once."""
        if job.name not in self._modes:
            self._modes[job.name] = modes(self.cluster, job)
        return self._modes[job.name]

    def density(self, job: BatchschedJob) -> float:
        """Weight per least volume of a job."""
        if job.name not in self._density:
            self._density[job.name] = float(job.weight) / least_volume(self.cluster, job)
        return self._density[job.name]

    def density_range(self) -> tuple[float, float]:
        """Smallest and largest density: declared, or of the jobs seen so far."""
        if self.declared:
            density = self.environment.estimates["density"]
            low, high = density["lowest"], density["highest"]
            return float(low), float(high)
        return min(self._density.values()), max(self._density.values())

    def base(self, horizon: int) -> float:
        """``lambda = 2 tau H R F + 1``."""
        if self.price_base is not None:
            return self.price_base
        low, high = self.density_range()
        servers, resources = self.cluster.server_capacity.shape
        return 2.0 * horizon * servers * resources * self.density_scale * high / low + 1.0

    def run_round(self, jobs: list[BatchschedJob], horizon: int) -> list[Admission]:
        """Algorithm 3 on an empty cluster."""
        for job in jobs:
            self.density(job)
        key: dict[str, Callable[[BatchschedJob], float]] = {
            "index": lambda job: 0.0,
            "weight": lambda job: -float(job.weight),
            "density": lambda job: -self.density(job),
        }
        ordered = sorted(jobs, key=key[self.order])
        last = horizon if self.tight_slots else horizon - 1
        if last < 1:
            return []
        return self.plan_round(ordered, horizon, last)

    def plan_round(self, jobs: list[BatchschedJob], horizon: int, last: int) -> list[Admission]:
        """Post prices to the jobs in order."""
        batch_round = ServerRound(
            self.cluster, horizon, last, self.base(horizon), self.modes_of, self.greedy,
            self.engine, self._kept,
        )  # fmt: skip
        unit = self.density_range()[0]
        admitted = post_prices(batch_round, jobs, [float(job.weight) / unit for job in jobs])
        units = np.broadcast_to(resource_units(self.cluster), self.cluster.server_capacity.shape)
        resources = [*self.cluster.resources] * len(self.cluster.servers)
        self.post(batch_round.ledger, resources, units=units.ravel(), worth=unit)
        return admitted

    def rows(self, admission: Admission, base: int) -> list[Assignment]:
        """Row of the solution file."""
        return self.written(admission.offer.plan.shifted(base))

    def written(self, schedule: Schedule) -> list[Assignment]:
        """Row of the solution file for a schedule in absolute slots."""
        return [BatchschedSolution.write_row(self.cluster, schedule.row())]


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
        Move every job of a planned batch to its earliest window (`LeftShift`): none ends later.
    """

    def __init__(
        self, alpha: Count | None = None, order: Order = "index", tight_slots: bool = False,
        price_base: PriceBase | None = None, density_scale: Positive = 1.0, declared: bool = True,
        engine: Engine = "oracle", left_shift: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(alpha, order, tight_slots, price_base, density_scale, declared, engine)
        self.left_shift = left_shift

    def start(self, environment: Environment) -> None:
        """Begin with no jobs."""
        super().start(environment)
        self._shift = LeftShift(self.cluster)

    def settle(self, horizon: int, rows: Rows) -> Rows:
        """Move the batch's jobs to their earliest windows, if so set."""
        if not self.left_shift or not rows:
            return rows
        planned = []
        for job in self.batch:
            if job.name in rows:
                row = BatchschedSolution.read_row(self.cluster, job.name, rows[job.name][0])
                planned.append((job, self.modes_of(job), Schedule.of(row, 0.0)))
        placed = self._shift.shift(horizon, planned)
        self.last_slot = self._shift.last
        return {name: self.written(schedule) for name, schedule in placed.items()}


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
        schedules = greedy_right_to_left(
            self.cluster, [(job, self.modes_of(job), self.density(job)) for job in jobs], last
        )
        by_name = {job.name: job for job in jobs}
        admitted = []
        for name, schedule in schedules.items():
            offer = Offer(schedule.start, schedule.duration, np.zeros(0), 0.0, schedule)
            admitted.append(Admission(by_name[name], offer, float(by_name[name].weight), 0.0))
        return admitted


class BatchschedReoptimise(Reoptimise):
    """`Reoptimise`; HiGHS' presolve takes most of the time of programs of modes on real servers."""

    solver_options: ClassVar[Mapping[str, object]] = {"presolve": "off"}

    def num_columns(self, slot: int) -> int:
        """Columns of the jobs that have not begun."""
        known = self._rolling.instance
        assert isinstance(known, BatchschedInstance)
        empty, tables = EmptyCluster(known), {job.name: modes(known, job) for job in known.jobs}
        planned = [row["to"] for rows in self._plan.values() for row in rows]
        last = max([slot, *planned])  # then those that have no plan, one behind the other
        new = (table.duration.max() for name, table in tables.items() if name not in self._plan)
        self._slots = last + sum(map(int, new))
        return sum(
            empty.num_columns(tables[job.name], max(job.arrival, slot), self._slots)
            for job in known.jobs if job.name not in self._locked
        )  # fmt: skip

    def oracle_of(self, jobs: Sequence[JobRecord]) -> BlockOracle:
        """Oracle over as many slots as all known jobs need."""
        cluster: BatchschedInstance = self._environment.cluster.with_jobs(tuple(jobs))
        return ServerOracle(cluster, self._environment.formulation, self._slots)


class BatchschedDualPrice(DualPrice):
    """Best responses to the capacity duals of the relaxation over the jobs seen so far.

    The relaxation is the one over whole schedules on real servers; each job that arrives alone
    finds prices of 0, because what it takes is no one else's yet.

    Parameters
    ----------
    iterations : int
        Simplex iterations a relaxation; see `DualPrice`.
    """

    over_schedules = True

    def start(self, environment: Environment) -> None:
        """Begin with an empty cluster and prices 0."""
        self._slots = max(8, environment.cluster.horizon)
        self._last = 0
        super().start(environment)

    def build_oracle(self, cluster: Instance, formulation: str) -> BlockOracle:
        """Oracle over as many slots as are laid out now."""
        assert isinstance(cluster, BatchschedInstance)
        return ServerOracle(cluster, formulation, self._slots)

    def step(self, slot: int, arrivals: tuple[BatchschedJob, ...]) -> Decision:
        """Lay out enough slots for the arrivals to run one after the other behind all others."""
        cluster: BatchschedInstance = self._environment.cluster
        shortest = sum(int(modes(cluster, job).duration.min()) for job in arrivals)
        self._grow(max(slot, self._last + 1) + shortest)
        return super().step(slot, arrivals)

    def _respond(self, oracle: BlockOracle, block: int) -> list[Assignment] | None:
        """Best response; every job must run, so slots are added until one fits."""
        while True:
            rows = super()._respond(oracle, block)
            if rows is not None:
                self._last = max([self._last, *(row["to"] for row in rows)])
                return rows
            self._grow(2 * self._slots)
            oracle = self.build_oracle(oracle.instance, oracle.formulation)

    def _grow(self, slots: int) -> None:
        if slots > self._slots:
            self._slots = max(slots, 2 * self._slots)
            environment = self._environment
            self.lengthen(self.build_oracle(environment.cluster, environment.formulation).rows)


ALGORITHMS: dict[str, Factory] = {
    "batchsched": BatchschedOnline,
    "batchsched-exact": BatchschedExact,
    "batchsched-adaptive": BatchschedAdaptive,
    "dual-price": BatchschedDualPrice,
    "reoptimise": BatchschedReoptimise,
    "fifo": Fifo,
    "drf": relaxing(Drf),
    "antman": AntMan,
    "tiresias": Tiresias,
    "tiresias-l": TiresiasL,
    "wspt": Wspt,
    "greedy-rtl": GreedyRtl,
    **relaxing_baselines(rigid=True),
}


def declared_estimates(instance: BatchschedInstance) -> JsonObject:
    """Smallest and largest weight per least volume: the future's share."""
    found = densities(instance)
    low, high = (float(found.min()), float(found.max())) if found.size else (1.0, 1.0)
    return {"density": {"lowest": low, "highest": high}}


__all__ = ["ALGORITHMS", "declared_estimates", "theorem"]
