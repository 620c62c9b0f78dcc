"""The edgecloud family's pricing oracle: a job's best response over edge workers and the cloud.

Linking rows are (2d), a worker trains one job at a time, in three layouts: ``groups`` has a row a
(server, worker type, slot), which loses nothing because such workers are identical; ``types`` adds
up all workers of a type, a relaxation for large instances; ``servers`` has a row a worker, on which
schedules are placed, over the slots 1..horizon. A finite cloud and limited storage (7b) add rows of
their own (storage not in ``types``). Slots behind the last row are free.

A block is one job of problem (2) itself, with whole chunks, so that with the duals of LP (4)+ the
bound is at least the value of that program. Where the cloud is finite or PSs are, the block ignores
what others do there, which errs outward. A response on what is left takes all of them into account;
it is the best one, except that in a cloud with few workers left chunks take the earliest windows,
and in ``literal`` the first workers of a server that stores little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import ClassVar, Literal

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.base import Instance
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.solutions.base import Assignment, Solution
from hindsched.solutions.edgecloud.runs import ChunkRun, Runs, active_spans
from hindsched.solutions.edgecloud.solution import EdgecloudSolution
from hindsched.solvers.families.edgecloud.block import (
    CHUNKS,
    CLOUD_CHUNKS,
    EdgecloudPlan,
    JobView,
    RestrictedJob,
)
from hindsched.solvers.families.edgecloud.priced_rows import (
    AXIS_NAMES,
    PS_SETS,
    SET_NAMES,
    PricedRows,
)
from hindsched.solvers.oracles.base import BlockOracle, Response
from hindsched.solvers.oracles.decisions import COMPLETES, COMPLETION, Axes, Feature, Limits

ORACLE_ROWS = ("groups", "types", "servers")
TREE_ROWS = ("groups",)
"""Layouts in which a job without migration can be restricted."""


def tree_rows(instance: Instance, formulation: str) -> tuple[str, ...]:
    """Layouts that a tree can be grown on."""
    return TREE_ROWS if formulation == "no-migration" else ()


class EdgecloudOracle(BlockOracle):
    """Best responses of an edgecloud instance's jobs; every job must finish.

    Without migration a branching on ``groups`` splits when a job completes and how many of its
    chunks are where.
    """

    sense: ClassVar[Literal["max", "min"]] = "min"
    instance: EdgecloudInstance

    def __init__(self, instance: EdgecloudInstance, formulation: str, layout: str) -> None:
        self.instance = instance
        self.formulation = formulation
        self.layout = layout
        self.priced = PricedRows(instance, layout)
        self.last = self.priced.last
        self.rows = self.priced.rows
        if formulation == "no-migration" and layout in TREE_ROWS:
            places = (AXIS_NAMES[layout], self.priced.places.labels)
            found: dict[str, Axes] = {COMPLETION: (), CLOUD_CHUNKS: (), CHUNKS: (places,)}
            self.features, self.step = MappingProxyType(found), Fraction(1)

    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Best schedule of one job; a residual is known in the layout ``servers`` only."""
        if residual is not None and self.layout != "servers":
            raise TypeError(f"layout {self.layout} does not place schedules on servers")
        view = JobView(self.priced, self.formulation, block, prices, residual)
        return view.literal() if self.formulation == "literal" else view.no_migration()

    def paid(self, prices: Floats) -> Floats:
        """Prices without those of PSs, for which no block pays."""
        found = prices.copy()
        for name in self.rows.slices.keys() & set(PS_SETS):
            found[self.rows.slices[name]] = 0.0
        return found

    def values(self, prices: Floats) -> Floats:
        """Values of all blocks; the schedules behind them are not written down."""
        jobs = range(self.num_blocks)
        views = (JobView(self.priced, self.formulation, j, prices, None) for j in jobs)
        return np.array([view.value() for view in views])

    def bound(self, prices: Floats) -> float:
        """Bound at `prices`; see the base class."""
        return self.round_outward(
            [*self.price_terms(prices).tolist(), *self.values(prices).tolist()]
        )

    def restricted_response(self, block: int, prices: Floats, limits: Limits) -> Response | None:
        """Best schedule of one job within limits; see the base class."""
        if not limits:
            return self.best_response(block, prices)
        return RestrictedJob(self.priced, block, prices, limits).best()

    def features_of(self, block: int, response: Response) -> dict[Feature, int]:
        """Completion, and chunks by place and in the cloud."""
        plan: EdgecloudPlan = response.plan
        found = {COMPLETES: plan.completion, Feature(CLOUD_CHUNKS): len(plan.cloud)}
        for row, parts in plan.edge.items():
            found[Feature(CHUNKS, (row,))] = sum(number for _, number in parts)
        return found

    def place(self, responses: Sequence[Response | None]) -> Solution | None:
        """Solution with all schedules at once; chunks of a group go to the first free worker."""
        if self.layout != "groups" or self.formulation == "literal":
            return super().place(responses)
        parts = [
            (slots, block, row, number)
            for block, response in enumerate(responses)
            if response is not None
            for row, found in response.plan.edge.items()
            for slots, number in found
        ]
        taken: dict[int, set[int]] = {}
        edges: list[dict[int, list[tuple[list[int], int]]]] = [{} for _ in responses]
        for slots, block, row, number in sorted(parts):
            free = [
                worker
                for worker in self.priced.places.members[row]
                if taken.setdefault(worker, set()).isdisjoint(slots)
            ]
            if len(free) < number:
                return None
            for worker in free[:number]:
                taken[worker] |= set(slots)
                edges[block].setdefault(worker, []).append((slots, 1))
        placed = [
            None if response is None else replace(response, plan=replace(response.plan, edge=edge))
            for response, edge in zip(responses, edges, strict=True)
        ]
        return EdgecloudOracle(self.instance, self.formulation, "servers").place(placed)

    def assignments(self, block: int, response: Response) -> list[Assignment]:
        """Rows of the solution file in the layout ``servers``; the PS in the cloud if it may be."""
        if self.layout != "servers":
            return super().assignments(block, response)
        plan: EdgecloudPlan = response.plan
        job = self.instance.jobs[block]
        cloud = len(self.instance.worker_list)
        runs: list[ChunkRun] = []
        chunk = 0
        for row, parts in plan.edge.items():
            for slots, _ in parts:  # one worker a row: one chunk a part
                chunk += 1
                runs += [ChunkRun(block, chunk, row, t, t) for t in slots]
        for first, last in plan.cloud:
            chunk += 1
            runs.append(ChunkRun(block, chunk, cloud, first, last))
        by_slot: dict[int, list[int]] = {}
        for (row, t), units in plan.units.items():
            by_slot.setdefault(t, []).extend([min(row, cloud)] * units)
        for t, found in by_slot.items():
            lanes = enumerate(sorted(found), 1)
            runs += [ChunkRun(block, lane, place, t, t) for lane, place in lanes]
        merged = Runs.of(runs)
        rows: list[Assignment] = []
        for _, number, place, first, last in merged.rows():
            where: Assignment = {"server": self.instance.cloud.name}
            if place < cloud:
                s, worker, _ = self.instance.worker_list[place]
                where = {"server": self.instance.servers[s].name, "worker": worker}
            rows.append({"chunk": number, **where, "from": first, "to": last})
        name = self.instance.cloud.name if self.instance.cloud_ps(job.ps_type) != 0 else None
        if name is None:
            name = next(s.name for s in self.instance.servers if job.ps_type in s.ps)
        rows += [{"ps": name, "from": a, "to": b} for _, a, b in active_spans(merged)]
        return rows

    def use_of(self, solution: Solution) -> list[Response | None]:
        """Use of this layout's rows by a solution; see the base class."""
        assert isinstance(solution, EdgecloudSolution)
        instance, priced = self.instance, self.priced
        home = {w: row for row, members in enumerate(priced.places.members) for w in members}
        rows: list[list[int]] = [[] for _ in instance.jobs]
        amounts: list[list[float]] = [[] for _ in instance.jobs]

        def use(j: int, name: str, key: object, first: int, last: int, amount: float) -> None:
            base = priced.first(name, key)
            if base is not None:
                slots = range(first, min(last, self.last) + 1)
                rows[j] += [base + t - 1 for t in slots]
                amounts[j] += [amount] * len(slots)

        for j, _, place, first, last in solution.runs.rows():
            if place in home:
                use(j, SET_NAMES[self.layout], home[place], first, last, 1.0)
            else:
                use(j, "cloud_capacity", instance.jobs[j].worker_type, first, last, 1.0)
        for (j, s), count in solution.stored_chunks().items():
            if gb := instance.jobs[j].chunk_gb:
                end = solution.completion(instance.jobs[j].name) or 0
                use(j, "storage", s, instance.jobs[j].arrival, end, count * gb)
        for j, server, first, last in solution.holds.rows():
            for name in PS_SETS[: 1 + (server == len(instance.servers))]:
                use(j, name, instance.jobs[j].ps_type, first, last, 1.0)
        found: list[Response | None] = []
        for j, job in enumerate(instance.jobs):
            time, index = float(solution.job_completion_times[j]), np.array(rows[j], dtype=np.int64)
            plan = solution.completion(job.name)
            found.append(Response(time, time, index, np.array(amounts[j]), plan))
        return found

    def prices_on_servers(self, prices: Floats) -> Floats:
        """Prices of a group or type repeated on each of its workers; see the base class."""
        if self.layout == "servers":
            return prices
        return self._on(EdgecloudOracle(self.instance, self.formulation, "servers"), prices)

    def prices_of(self, other: BlockOracle, prices: Floats) -> Floats:
        """Prices of another layout on this one's rows, in which each worker is a row."""
        assert isinstance(other, EdgecloudOracle)
        return other._on(self, prices)

    def _on(self, target: EdgecloudOracle, prices: Floats) -> Floats:
        """Prices on the rows of a layout with a row a worker."""
        mine = self.rows.unpack(prices)
        width = min(self.last, target.last)
        on_workers = np.zeros((len(self.instance.worker_list), target.last))
        for row, members in enumerate(self.priced.places.members):
            for w in members:
                on_workers[w, :width] = mine[SET_NAMES[self.layout]][row, :width]
        arrays = {"worker_capacity": on_workers}
        for name in ("cloud_capacity", "storage"):
            if name in mine and name in target.rows.slices:
                wide = np.zeros((mine[name].shape[0], target.last))
                wide[:, :width] = mine[name][:, :width]
                arrays[name] = wide
        return target.rows.pack(arrays)


build = EdgecloudOracle
"""Build the oracle with one of the layouts `ORACLE_ROWS`."""
