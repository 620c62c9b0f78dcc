"""Sub-rounds of batchsched whose schedules the subproblem finds, as an integer program."""

from __future__ import annotations

from typing import Any

from hindsched.instances.batchsched.instance import BatchschedJob
from hindsched.models.base import Subproblem, subproblem
from hindsched.models.batchsched.offline import MOST_IN_SUBPROBLEM
from hindsched.models.windows.sets import JobSets, priced_sets
from hindsched.online.engines.batching import Offer
from hindsched.online.engines.server_batches import ServerRound
from hindsched.solutions.window_solution import WindowRow
from hindsched.solvers.door.subproblem import UNTOLD, pays_more, solve_subproblem

TIE_WEIGHT = 1e-6  # share of a job's value that the model engine sets on completing earlier


class ModelRound(ServerRound):
    """A sub-round of the engine ``model``; programs are kept by job until it is placed."""

    def __init__(self, batches: Any, horizon: int, last: int, base: float) -> None:
        super().__init__(batches, horizon, last, base)
        self.kept: dict[str, tuple[int, Subproblem]] = batches.kept

    def find(self, job: BatchschedJob, limit: float) -> WindowRow | None:
        """Solve the subproblem as an integer program; the oracle's schedule takes ties.

        A weight too small to matter stands for the oracle's rule that among schedules of equal
        cost the earlier completion is taken.
        """
        table = self.batches.modes_of(job)
        other = self.search.cheapest(table, limit=limit, last=self.last)
        kept, few = self.kept.get(job.name), self._few_sets(job, limit, other)
        if kept is None or kept[0] != self.last or few is not None:
            tie = TIE_WEIGHT * limit / self.last
            alone = job.model_copy(update={"arrival": 1, "weight": tie})
            instance = self.instance.with_jobs((alone,))
            program = subproblem(instance, 0, slots=self.last, sets=few)
            kept = self.kept[job.name] = self.last, program
        prices, room = (
            {"capacity": values[:, :, : self.last]}
            for values in (self.search.prices, self.search.residual)
        )
        solution = solve_subproblem(kept[1], prices, room)
        if solution is None:
            return None
        found: WindowRow = solution.rows[job.name][0]
        cost = self.search.price(found)
        if other is None:
            return found if cost < limit and pays_more(-cost, -limit, limit) else None
        return found if pays_more(-cost, -self.search.price(other), limit) else other

    def _few_sets(
        self, job: BatchschedJob, limit: float, other: WindowRow | None
    ) -> JobSets | None:
        """Where a job has too many columns, those that may beat the known schedule; else None.

        They may cost less, or as much and end earlier; those of the known window are among them.
        """
        table = self.batches.modes_of(job)
        if len(table) * self.last * len(self.instance.servers) <= MOST_IN_SUBPROBLEM:
            return None
        room, prices = self.search.residual[..., : self.last], self.search.prices[..., : self.last]
        cost = limit if other is None else self.search.price(other)
        untold = UNTOLD * max(1.0, limit)

        def most(k: int, t: int) -> float:
            count, end = int(table.workers[k]), t + int(table.duration[k]) - 1
            if other is None or end < other.last:
                return cost + untold
            own = (t, end, count, table.worker_type[k]) == (
                other.first, other.last, other.num_workers, other.worker_type
            )  # fmt: skip
            return cost + untold if own else cost - untold

        return priced_sets(self.instance, table, room, prices, most)

    def book(self, job: BatchschedJob, offer: Offer) -> None:
        """Take the schedule's resources and post the new prices; the job's program goes."""
        self.kept.pop(job.name, None)
        super().book(job, offer)
