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

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.instances.batchsched.instance import BatchschedInstance, BatchschedJob
from hindsched.instances.batchsched.modes import modes
from hindsched.json_types import JsonObject
from hindsched.online.baselines.baseline import Drf, Fifo
from hindsched.online.baselines.infeasible_baselines import relaxing, relaxing_baselines
from hindsched.online.baselines.ranked import Tiresias, TiresiasL
from hindsched.online.batchsched.baselines import AntMan, Wspt, greedy_right_to_left
from hindsched.online.batchsched.engines import BatchschedDualPrice, BatchschedReoptimise
from hindsched.online.batchsched.left_shift import LeftShift
from hindsched.online.batchsched.theorem import (
    OBSERVED_ALPHA,
    densities,
    least_volume,
    resource_units,
    theorem,
)
from hindsched.online.engines.batching import (
    Admission,
    BatchRound,
    ExponentialLedger,
    GeometricBatches,
    Offer,
    post_prices,
)
from hindsched.online.engines.primal_dual import Engine
from hindsched.online.protocol import Environment
from hindsched.online.registry import Factory
from hindsched.solutions.base import Assignment
from hindsched.solutions.batchsched.solution import read_row, write_row
from hindsched.solvers.door.subproblem import model_response
from hindsched.solvers.families.batchsched.oracle import ServerOracle, schedule_of
from hindsched.solvers.families.batchsched.oracle_search import ModeIndex, Schedule, ScheduleSearch

Order = Literal["index", "weight", "density"]
TIE_WEIGHT = 1e-6
"""Share of a job's value that the model engine sets on completing earlier."""


class ServerRound(BatchRound):
    """A sub-round on an empty cluster with one price a server, resource and slot.

    Parameters
    ----------
    instance : BatchschedInstance
        The cluster.
    horizon, last : int
        tau, and the last slot that schedules may use.
    base : float
        lambda.
    index : callable
        Modes of a job.
    most_workers : int
        Most workers of any job of the batch.
    greedy : bool
        Place by Algorithm 4.
    engine : {"oracle", "model"}
        Who finds the cheapest schedule.
    """

    def __init__(
        self,
        instance: BatchschedInstance,
        horizon: int,
        last: int,
        base: float,
        index: Callable[[BatchschedJob], ModeIndex],
        most_workers: int,
        greedy: bool,
        engine: Engine,
    ) -> None:
        self.instance, self.last = instance, last
        self.greedy, self.engine, self._index = greedy, engine, index
        self._unit = resource_units(instance)
        capacity = (instance.server_capacity / self._unit).ravel()
        self.ledger = ExponentialLedger(capacity, horizon, base)
        self.search = ScheduleSearch(instance, horizon, most_workers)

    def offer(self, job: BatchschedJob, limit: float) -> Offer | None:
        """Cheapest schedule; ties go to the earlier completion, then the order of modes."""
        if self.engine == "model":
            schedule = self._by_model(job, limit)
        else:
            schedule = self.search.cheapest(
                self._index(job), limit=limit, last=self.last, greedy=self.greedy
            )
        if schedule is None:
            return None
        demand = (self.search.use(schedule) / self._unit).ravel()
        return Offer(schedule.start, schedule.duration, demand, schedule.cost, schedule)

    def _by_model(self, job: BatchschedJob, limit: float) -> Schedule | None:
        """Solve the subproblem as an integer program.

        A weight too small to matter stands for the oracle's rule that among schedules of equal
        cost the earlier completion is taken.
        """
        tie = TIE_WEIGHT * limit / self.last
        free = job.model_copy(update={"arrival": 1, "weight": tie})
        oracle = ServerOracle(self.instance.with_jobs((free,)), None, self.last)
        arrays = [
            np.ascontiguousarray(values[: self.last].transpose(1, 2, 0)).ravel()
            for values in (self.search.prices, self.search.residual)
        ]
        if not len(oracle.index(0).modes):
            return None
        response = model_response(oracle, 0, arrays[0], arrays[1])
        if response is None or response.plan is None:
            return None
        cost = response.value - response.objective
        return None if cost >= limit else schedule_of(response.plan[0], cost)

    def book(self, job: BatchschedJob, offer: Offer) -> None:
        """Take the schedule's resources and post the new prices."""
        self.ledger.book(offer)
        self.search.book(offer.plan)
        shape = (offer.duration, *self.instance.server_capacity.shape)
        prices = self.ledger.prices(offer.start, offer.last).reshape(shape) / self._unit
        servers = np.flatnonzero(self.search.use(offer.plan).any(axis=1))
        self.search.set_prices(offer.start, offer.last, servers, prices[:, servers])


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
    every_duration : bool
        Enumerate every duration as Algorithms 4-7 do, not only those that fewer slots of the same
        workers do not give; slow.
    engine : {"oracle", "model"}
        Who finds the cheapest schedule; the model is always exact.
    """

    greedy = True

    def __init__(
        self,
        alpha: int | None = OBSERVED_ALPHA,
        order: Order = "index",
        tight_slots: bool = False,
        price_base: float | None = None,
        density_scale: float = 1.0,
        declared: bool = True,
        every_duration: bool = False,
        engine: Engine = "oracle",
    ) -> None:
        super().__init__(alpha)
        if price_base is not None and not 1 < price_base < math.inf:
            raise InputError("set.price_base", price_base, "must exceed 1 and be finite")
        if not 0 < density_scale < math.inf:
            raise InputError("set.density_scale", density_scale, "must be positive and finite")
        self.order, self.tight_slots, self.price_base = order, tight_slots, price_base
        self.density_scale, self.declared = density_scale, declared
        self.every_duration, self.engine = every_duration, engine

    def start(self, environment: Environment) -> None:
        """Begin with no jobs."""
        super().start(environment)
        self.cluster: BatchschedInstance = environment.cluster  # type: ignore[assignment]
        self._modes: dict[str, ModeIndex] = {}
        self._density: dict[str, float] = {}

    def index(self, job: BatchschedJob) -> ModeIndex:
        """Modes of a job, prepared once."""
        if job.name not in self._modes:
            longest = self._horizon if self.every_duration else None
            table = modes(self.cluster, job, every_duration=longest)
            if self.every_duration:
                return ModeIndex.of(table)
            self._modes[job.name] = ModeIndex.of(table)
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
            self.cluster,
            horizon,
            last,
            self.base(horizon),
            self.index,
            max(job.chunks for job in jobs),
            self.greedy,
            self.engine,
        )
        unit = self.density_range()[0]
        admitted = post_prices(batch_round, jobs, [float(job.weight) / unit for job in jobs])
        units = np.broadcast_to(resource_units(self.cluster), self.cluster.server_capacity.shape)
        resources = [*self.cluster.resources] * len(self.cluster.servers)
        self.post(batch_round.ledger, resources, units=units.ravel(), worth=unit)
        return admitted

    def rows(self, admission: Admission, base: int) -> list[Assignment]:
        """Row of the solution file."""
        schedule: Schedule = admission.offer.plan
        return self.written(schedule.shifted(base))

    def written(self, schedule: Schedule) -> list[Assignment]:
        """Rows of the solution file for a schedule in absolute slots."""
        return [write_row(self.cluster, schedule.row())]


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
        self,
        alpha: int | None = None,
        order: Order = "index",
        tight_slots: bool = False,
        price_base: float | None = None,
        density_scale: float = 1.0,
        declared: bool = True,
        engine: Engine = "oracle",
        left_shift: bool = False,
    ) -> None:
        super().__init__(
            alpha, order, tight_slots, price_base, density_scale, declared, False, engine
        )
        self.left_shift = left_shift

    def start(self, environment: Environment) -> None:
        """Begin with no jobs."""
        super().start(environment)
        self._shift = LeftShift(self.cluster)

    def settle(
        self, horizon: int, rows: dict[str, list[Assignment]]
    ) -> dict[str, list[Assignment]]:
        """Move the batch's jobs to their earliest windows, if so set."""
        if not self.left_shift or not rows:
            return rows
        planned = []
        for job in self.batch:
            if job.name in rows:
                row = read_row(self.cluster, job.name, rows[job.name][0])
                planned.append((job, self.index(job), schedule_of(row, 0.0)))
        placed = self._shift.shift(horizon, planned)
        self.last_slot = self._shift.last
        return {name: self.written(schedule) for name, schedule in placed.items()}


class GreedyRtl(BatchschedAdaptive):
    """The work-conserving batches with GreedyRTL (Jain et al.) in place of Algorithm 3.

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
            self.cluster, [(job, self.index(job), self.density(job)) for job in jobs], last
        )
        by_name = {job.name: job for job in jobs}
        admitted = []
        for name, schedule in schedules.items():
            offer = Offer(schedule.start, schedule.duration, np.zeros(0), 0.0, schedule)
            admitted.append(Admission(by_name[name], offer, float(by_name[name].weight), 0.0))
        return admitted


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


def declared_estimates(instance: Instance) -> JsonObject:
    """Smallest and largest weight per least volume, and the total weight: the future's share."""
    assert isinstance(instance, BatchschedInstance)
    found = densities(instance)
    low, high = (float(found.min()), float(found.max())) if found.size else (1.0, 1.0)
    return {"density": {"lowest": low, "highest": high}}


__all__ = ["ALGORITHMS", "declared_estimates", "theorem"]
