"""The registered algorithms of gang: plans made again at arrivals, policies, and what is proven."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from hindsched.instances.gang.instance import GangInstance
from hindsched.models.gang.offline import program_size
from hindsched.models.gang.sets import GangSets, gang_sets
from hindsched.online import protocol
from hindsched.online.base import FamilyOnline
from hindsched.online.engines.reoptimise import Reoptimise
from hindsched.online.gang.dynamics import GangState, committed_rows
from hindsched.online.gang.queue_policies import KNOWN_POLICIES, held
from hindsched.solvers.families.gang import search
from hindsched.solvers.oracles.rows import PriceRow

MOST_SLOTS, MOST_COLUMNS = 1_000, 30_000
"""Size up to which the program is solved; beyond, plans are orders of the open jobs."""


class GangReoptimise(Reoptimise):
    """Solve the program over the known jobs at each arrival; where it is too large, search.

    Parameters
    ----------
    nodes, gap, time_limit
        Of the program; see the engine.
    exchanges : int
        Exchanges of jobs that a search tries, the same on every machine.
    """

    def __init__(
        self, nodes: protocol.Count = 200, gap: float = 1e-4, exchanges: protocol.Natural = 2_000,
        time_limit: protocol.Positive | None = None,
    ) -> None:  # fmt: skip
        super().__init__(nodes, gap, time_limit)
        self.exchanges = exchanges

    def start(self, environment: protocol.Environment) -> None:
        """Begin with no jobs and no plan."""
        super().start(environment)
        self._counts["searches"] = 0

    def _plan_again(self, slot: int) -> None:
        """Solve, or search from the present plan and from orders that policies take."""
        known, formulation = self._rolling.instance, self._environment.formulation
        assert isinstance(known, GangInstance)
        if known.serial_end <= MOST_SLOTS and program_size(known, formulation)[0] <= MOST_COLUMNS:
            super()._plan_again(slot)
            return
        view, left = self._left(slot)
        begun = {name: rows[-1]["from"] for name, rows in self._plan.items()}
        names = [known.jobs[task.job].name for task in view.tasks]
        open_jobs = left.open
        area = np.array([task.work * task.gpus for task in view.tasks], dtype=float)
        worth = np.where(open_jobs.slope > 0, open_jobs.slope, open_jobs.skip)
        keys = [
            np.array([begun.get(name, np.inf) for name in names]),
            np.divide(area, worth, out=np.full(area.size, np.inf), where=worth > 0),
            open_jobs.duration.astype(float),
        ]
        self._follow(view, left, search.best_plan(left, keys, self.exchanges))
        self._counts["searches"] += 1

    def _left(self, slot: int) -> tuple[GangSets, search.OpenJobs]:
        """Open jobs, and what is fixed."""
        rolling, formulation = self._rolling, self._environment.formulation
        rolling.advance(slot)
        known = rolling.instance
        assert isinstance(known, GangInstance)
        view = gang_sets(known, formulation, rolling.commitments(), None)
        return view, search.open_jobs(known, formulation, view)

    def _follow(self, view: GangSets, left: search.OpenJobs, plan: search.GangPlan) -> None:
        """Begin the open jobs as a plan says."""
        instance = self._rolling.instance
        assert isinstance(instance, GangInstance)
        ends = plan.starts + left.open.duration
        self._plan = {}
        for number, task in enumerate(view.tasks):
            job = instance.jobs[task.job]
            span = {"from": int(plan.starts[number]) + 1, "to": int(ends[number])}
            self._plan[job.name] = [{**span, **held(instance, job.gpus, plan.held[number])}]


class GangDualPrice(GangReoptimise):
    """Prices of the bound over the known jobs; who expects to start first at them is placed first.

    `learning` and `expected` of the other families decide nothing here: every open job is placed
    anew at each arrival, so all that compete are undecided, and prices only order them.

    Parameters
    ----------
    iterations : int
        Steps of each climb of the prices, the same on every machine.
    """

    def __init__(self, iterations: protocol.Count = 15) -> None:
        super().__init__()
        self.iterations = iterations

    def start(self, environment: protocol.Environment) -> None:
        """Begin without prices."""
        super().start(environment)
        self._counts = {"climbs": 0}
        self._posted: dict[int, float] = {}

    def _plan_again(self, slot: int) -> None:
        """Climb prices over the open jobs and place these by the starts that they expect."""
        view, left = self._left(slot)
        known = self._rolling.instance
        instance = known.with_jobs(tuple(known.jobs[task.job] for task in view.tasks))
        assert isinstance(instance, GangInstance)
        ascent = search.expected_starts(instance, left, self.iterations)
        self._posted = dict(zip((ascent.oracle.cut[:-1] + 1).tolist(), ascent.prices.tolist(),
                                strict=True))  # fmt: skip
        self._follow(view, left, search.plan_in_order(left, ascent.expected))
        self._counts["climbs"] += 1

    def price_path(self) -> Sequence[PriceRow]:
        """Last posted prices, by the first slot of their intervals."""
        return [
            {"slot": slot, "resource": "gpus", "price": price}
            for slot, price in self._posted.items()
        ]

    def report(self) -> protocol.Report:
        """Count the climbs."""
        return {**self._counts, "iterations_a_climb": self.iterations}


def srtf_theorem(instance: GangInstance) -> protocol.Theorem:
    """One GPU and equal weights: optimal, also among schedules that pause (Schrage 1968)."""
    weights = instance.weights
    spread = float(weights.max() / weights.min()) if weights.size else 1.0
    return _promise(1.0, {"one GPU": instance.total_gpus, "all weights are equal": spread})


def wspt_theorem(instance: GangInstance) -> protocol.Theorem:
    """Single GPUs and one submission: optimal on one GPU (Smith 1956), else (1 + sqrt 2) / 2.

    The factor is that of Kawaguchi & Kyan (1986); it holds for total weighted completion time since
    the submission.
    """
    value = 1.0 if instance.total_gpus == 1 else (1 + math.sqrt(2)) / 2
    widest = int(instance.job_gpus.max(initial=1))
    moments = max(1, np.unique(instance.submits).size)
    missed = {"every job asks for one GPU": widest, "all jobs are submitted at once": moments}
    return _promise(value, missed)


def _promise(value: float, missed: Mapping[str, float]) -> protocol.Theorem:
    """A ratio, and None where an assumption is missed by a factor above 1."""
    assumed = [(name, times <= 1, float(times)) for name, times in missed.items()]
    return protocol.theorem_record("ratio", value if max(missed.values()) <= 1 else None, assumed)


ONLINE = FamilyOnline(
    algorithms={
        **KNOWN_POLICIES,
        "dual-price": GangDualPrice,
        "reoptimise": GangReoptimise,
    },
    state=GangState,
    committed_rows=committed_rows,
    theorems={"srtf": srtf_theorem, "wspt": wspt_theorem},
)
