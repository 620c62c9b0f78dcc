"""Rivals of mlbroker, and a view ahead: local, central, oasis-style, reoptimise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.mlbroker.instance import MlbrokerInstance, workers_for
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.mlbroker.sets import decided
from hindsched.online.engines.reoptimise import Reoptimise
from hindsched.online.mlbroker.dynamics import Broker
from hindsched.online.protocol import Capabilities, draws
from hindsched.solutions.mlbroker.solution import MlbrokerSolution, used_by
from hindsched.solvers.door.program import within_gap
from hindsched.solvers.door.work import Clock
from hindsched.solvers.families.mlbroker.methods import SHARE_OF_BOUND, lagrangian_certificate
from hindsched.solvers.families.mlbroker.oracle import MlbrokerOracle
from hindsched.solvers.families.mlbroker.placements import (
    ONLINE_NODE_LIMIT,
    Planner,
    best_responses,
    kernel_jobs,
)
from hindsched.solvers.kernels.mlbroker.geo_placement import (
    average_prices,
    best_placement,
    priced_job,
)


class Local(Broker):
    """ceil(D / P) workers in every centre; the PS is drawn uniformly once, at arrival (C1 = 0)."""

    randomised = True

    def place(self, slot: int, view: SlotData, launch: Floats) -> tuple[Ints, Ints]:
        """Workers where the data is."""
        workers = workers_for(view.data[:, :, None], view.capacity[:, None])
        ps = [int(draws(self.seed, name, "ps").integers(view.num_centers)) for name in view.jobs]
        return workers, np.array(ps, dtype=np.int64)


class Central(Broker):
    """PS and all workers in the centre of least full price, transfer and launch, anew each slot.

    Data that may not leave its centre keeps its workers there, the rest is brought together
    (C4 = 0 without pinned data).
    """

    def place(self, slot: int, view: SlotData, launch: Floats) -> tuple[Ints, Ints]:
        """Choose each job's centre by itself."""
        workers = np.zeros(view.data.shape, dtype=np.int64)
        ps = np.zeros(len(view.jobs), dtype=np.int64)
        for j in range(len(view.jobs)):
            stays = view.pinned[j]
            reach = np.where(np.isinf(view.arc[j]), 0.0, view.arc[j])
            best = np.inf
            for r in range(view.num_centers):
                placed = stays.copy()
                placed[r] = max(placed[r], view.needed[j] - (stays.sum() - stays[r]))
                price = view.unit[r] @ (view.worker[j] * placed[r] + view.server[j])
                moved = np.where(stays > 0, 0.0, view.data[j]) @ reach[:, r]
                cost = price + moved + launch[j, r]
                if cost < best:
                    best, workers[j], ps[j] = cost, placed, r
        return workers, ps


class OasisStyle(Broker):
    """Exact best response of every job, none of them seeing the volume discount it helps to earn.

    Parameters
    ----------
    prices : {"unit", "marginal"}
        ``unit``: the full price a, as the paper runs it. ``marginal``: jobs choose one after the
        other at the average price that joining the earlier ones in a centre would have.
    """

    def __init__(self, prices: Literal["unit", "marginal"] = "unit") -> None:
        self.prices_seen = prices

    def place(self, slot: int, view: SlotData, launch: Floats) -> tuple[Ints, Ints]:
        """Let each job respond."""
        if self.prices_seen == "unit":
            return best_responses(view, launch, view.unit)
        workers = np.zeros(view.data.shape, dtype=np.int64)
        ps = np.zeros(len(view.jobs), dtype=np.int64)
        jobs, used = kernel_jobs(view, launch), np.zeros(view.unit.shape)
        for j in range(len(view.jobs)):
            block = priced_job(jobs, j, *average_prices(jobs, j, used))
            _, _, workers[j], ps[j] = best_placement(block, ONLINE_NODE_LIMIT)
            used += np.outer(workers[j], view.worker[j])
            used[ps[j]] += view.server[j]
        return workers, ps


class ReoptimiseWithForecasts(Reoptimise):
    """`Reoptimise`, which plans with the live jobs' data in all later slots."""

    solver_options: ClassVar[Mapping[str, object]] = {
        # Bounds of these programs are the work: half of HiGHS's time went into finding twice what
        # its other heuristics find, and into beginning again with a presolved root.
        "mip_heuristic_run_root_reduced_cost": False,
        "mip_heuristic_run_feasibility_jump": False,
        "mip_allow_restart": False,
    }
    card = Capabilities(forecasts="the live jobs' data in all later slots, exact")

    def num_columns(self, slot: int) -> int:
        """Columns of the live jobs' slots from now on."""
        known = self._rolling.instance
        assert isinstance(known, MlbrokerInstance)
        if self._environment.formulation != "tight":
            return 0
        centers = len(known.datacenters)
        each = centers * (2 * centers + 4 + len(known.resources))
        return each * sum(max(0, job.departure - slot + 1) for job in known.jobs)

    def _plan_whole_schedules(self, slot: int) -> bool:
        """Plan the live jobs from now on by tier prices, which prove how far from the best."""
        clock = Clock(math.inf if self.time_limit is None else self.time_limit)
        known = self._rolling.instance
        assert isinstance(known, MlbrokerInstance)
        left = [
            job.model_copy(update={"arrival": slot, "data_gb": job.data_gb[slot - job.arrival :]})
            for job in known.jobs
            if job.departure >= slot
        ]
        rest = known.with_jobs(tuple(left))
        workers, server = decided(known, self._rolling.commitments())
        held = used_by(workers[:, slot - 2], server[:, slot - 2])[known.alive[:, slot - 1]]
        oracle = MlbrokerOracle(rest, "tight")
        proven = lagrangian_certificate(
            rest, oracle=oracle, clock=clock.first(SHARE_OF_BOUND * clock.seconds), held=held
        )
        planner = Planner(rest, held, clock)
        answers = planner.answered(oracle.priced_within(proven.prices, {})[1])
        cost, plan = planner.best(answers)
        self._plan = MlbrokerSolution(rest, *plan, "tight").assignments()
        self._count(slot, cost, proven.bound, not within_gap(cost, proven.bound, self.gap))
        return True
