"""The edgecloud family's pricing oracle: a job's best response over edge workers and the cloud.

Linking rows are (2d), a worker trains one job at a time, in three layouts: ``groups`` has a row a
(server, worker type, slot), which loses nothing because such workers are identical; ``types`` adds
up all workers of a type, a relaxation for large instances; ``servers`` has a row a worker, on which
schedules are placed, over the slots 1..horizon unless `last` says otherwise. A finite cloud and
limited storage (7b) add rows of their own (storage not in ``types``). Slots behind the last row are
free.

A block is one job of problem (2) itself, with whole chunks, so that with the duals of LP (4)+ the
bound is at least the value of that program. Where the cloud is finite or PSs are, the block ignores
what others do there, which errs outward. A response on what is left takes all of them into account;
it is the best one, except that in a cloud with few workers left chunks take the earliest windows,
and in ``literal`` the first workers of a server that stores little.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.solutions.base import Assignment, Solution
from hindsched.solutions.edgecloud.runs import (
    ChunkRun,
    Runs,
    active_spans,
    place_parameter_servers,
)
from hindsched.solutions.edgecloud.solution import EdgecloudSolution
from hindsched.solvers.families.edgecloud.best_schedule import (
    CHUNKS,
    CLOUD,
    CLOUD_CHUNKS,
    Part,
    PricedJob,
)
from hindsched.solvers.families.edgecloud.priced_rows import (
    AXIS_NAMES,
    PS_SETS,
    SET_NAMES,
    PricedRows,
    RowUse,
)
from hindsched.solvers.oracles.base import (
    BranchingOracle,
    PlacingOracle,
    PricingOracle,
    Response,
)
from hindsched.solvers.oracles.decisions import COMPLETES, COMPLETION, Feature, Limits


class EdgecloudOracle(PricingOracle):
    """Best responses of an edgecloud instance's jobs; every job must finish."""

    sense: ClassVar[Literal["max", "min"]] = "min"
    instance: EdgecloudInstance

    def __init__(
        self, instance: EdgecloudInstance, formulation: str, layout: str, last: int | None = None
    ) -> None:
        self.instance = instance
        self.formulation = formulation
        self.layout = layout
        self.priced = PricedRows(instance, layout, last)
        self.last = self.priced.last
        self.rows = self.priced.rows

    def best_response(self, block: int, prices: Floats) -> Response | None:
        """Best schedule of one job; see the base class."""
        return PricedJob(self.priced, self.formulation, block, prices).best()

    def paid(self, prices: Floats) -> Floats:
        """Prices without those of PSs, for which no block pays."""
        paid = prices.copy()
        for name in self.rows.slices.keys() & set(PS_SETS):
            paid[self.rows.slices[name]] = 0.0
        return paid

    def use_of(self, solution: Solution) -> list[Response | None]:
        """Use of this layout's rows by a solution; see the base class."""
        assert isinstance(solution, EdgecloudSolution)
        instance, priced = self.instance, self.priced
        home = {w: row for row, members in enumerate(priced.members) for w in members}
        uses = [RowUse(priced) for _ in instance.jobs]
        for j, _, place, first, last in solution.runs.rows():
            slots = range(first, last + 1)
            if place in home:
                uses[j].add(SET_NAMES[self.layout], home[place], slots, 1.0)
            else:
                uses[j].add("cloud_capacity", instance.jobs[j].worker_type, slots, 1.0)
        for (j, s), count in solution.stored_chunks().items():
            job = instance.jobs[j]
            stay = range(job.arrival, (solution.completion(job.name) or 0) + 1)
            uses[j].add("storage", s, stay, count * (job.chunk_gb or 0.0))
        for j, _, server, first, last in solution.holds.rows():
            for name in PS_SETS[: 1 + (server == len(instance.servers))]:
                uses[j].add(name, instance.jobs[j].ps_type, range(first, last + 1), 1.0)
        responses: list[Response | None] = []
        for j, use in enumerate(uses):
            time, index = float(solution.job_completion_times[j]), np.array(use.rows, np.int64)
            plan = solution.completion(instance.jobs[j].name)
            responses.append(Response(time, time, index, np.array(use.amounts), plan))
        return responses

    def prices_on_servers(self, prices: Floats) -> Floats:
        """Prices of a group or type repeated on each of its workers; see the base class."""
        if self.layout == "servers":
            return prices
        target = EdgecloudServers(self.instance, self.formulation)
        by_set, width = self.rows.unpack(prices), min(self.last, target.last)
        owner = {w: row for row, members in enumerate(self.priced.members) for w in members}
        rows = [owner[w] for w in range(len(owner))]
        by_set["worker_capacity"] = by_set[SET_NAMES[self.layout]][rows]
        arrays = {}
        for name in target.rows.slices.keys() & {"worker_capacity", "cloud_capacity", "storage"}:
            if name in by_set:
                arrays[name] = np.zeros((len(by_set[name]), target.last))
                arrays[name][:, :width] = by_set[name][:, :width]
        return target.rows.pack(arrays)


class EdgecloudServers(EdgecloudOracle, PlacingOracle):
    """Best responses on single workers, over the slots 1..horizon unless `last` says otherwise."""

    def __init__(
        self, instance: EdgecloudInstance, formulation: str, last: int | None = None
    ) -> None:
        super().__init__(instance, formulation, "servers", last)

    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Best schedule of one job on what is left; see the base class."""
        return PricedJob(self.priced, self.formulation, block, prices, residual).best()

    def assignments(self, block: int, response: Response) -> list[Assignment]:
        """Rows of the solution file; the PS in the cloud if it may be."""
        job, servers = self.instance.jobs[block], self.instance.servers
        lanes: dict[int, int] = defaultdict(int)  # chunks so far, in ``literal`` by slot
        rows: list[ChunkRun] = []
        for row, slots, number in sorted(response.plan.parts):
            place = len(self.instance.worker_list) if row == CLOUD else row
            lane = slots[0] if self.formulation == "literal" else 0
            cuts = [i for i in range(1, len(slots)) if slots[i] > slots[i - 1] + 1]
            spans = [(slots[i], slots[k - 1]) for i, k in pairwise([0, *cuts, len(slots)])]
            for _ in range(number):
                lanes[lane] += 1
                rows += [ChunkRun(block, lanes[lane], place, *span) for span in spans]
        runs, ps = Runs.of(rows), len(servers)
        if self.instance.cloud_ps(job.ps_type) == 0:
            ps = next(s for s, server in enumerate(servers) if job.ps_type in server.ps)
        holds = Runs.of(
            [ChunkRun(block, 0, ps, first, last) for _, first, last in active_spans(runs)]
        )
        return EdgecloudSolution(self.instance, runs, holds).assignments()[job.name]

    def settled(self, solution: Solution) -> Solution:
        """Every running job with a PS where one is free: the rules of PSs link all jobs.

        In the cloud are those of the jobs whose chunks save their transfers.
        """
        assert isinstance(solution, EdgecloudSolution)
        runs, instance = solution.runs, self.instance
        worked = np.bincount(runs.job, runs.last - runs.first + 1, len(instance.jobs))
        together = np.flatnonzero(worked < instance.edge_slots * instance.chunks).tolist()
        holds = place_parameter_servers(instance, runs, together)
        return EdgecloudSolution(instance, runs, holds, self.formulation)


class EdgecloudGroups(EdgecloudOracle, BranchingOracle):
    """Best responses on groups of identical workers of jobs that do not migrate.

    A branching splits when a job completes and how many of its chunks are where.
    """

    def __init__(self, instance: EdgecloudInstance, formulation: str) -> None:
        super().__init__(instance, formulation, "groups")
        places = (AXIS_NAMES["groups"], self.priced.labels)
        self.features = {COMPLETION: (), CLOUD_CHUNKS: (), CHUNKS: (places,)}
        self.step = Fraction(1)

    def restricted_response(self, block: int, prices: Floats, limits: Limits) -> Response | None:
        """Best schedule of one job within limits; see the base class."""
        return PricedJob(self.priced, self.formulation, block, prices, limits=limits).best()

    def features_of(self, block: int, response: Response) -> dict[Feature, int]:
        """Completion, and chunks by place and in the cloud."""
        values = defaultdict(int, {COMPLETES: response.plan.completion})
        for row, _, number in response.plan.parts:
            place = Feature(CLOUD_CHUNKS) if row == CLOUD else Feature(CHUNKS, (row,))
            values[place] += number
        return values

    def place(self, responses: Sequence[Response | None]) -> Solution | None:
        """Solution with all schedules at once; chunks of a group go to the first free worker."""
        todo = [
            (slots, block, row, number)
            for block, response in enumerate(responses) if response is not None
            for row, slots, number in response.plan.parts
        ]  # fmt: skip
        taken: dict[int, set[int]] = defaultdict(set)
        parts: list[list[Part]] = [[] for _ in responses]
        for slots, block, row, number in sorted(todo):
            if row == CLOUD:
                parts[block].append((row, slots, number))
                continue
            members = self.priced.members[row]
            free = [worker for worker in members if taken[worker].isdisjoint(slots)]
            if len(free) < number:
                return None
            for worker in free[:number]:
                taken[worker].update(slots)
                parts[block].append((worker, slots, 1))
        placed = [
            None
            if response is None
            else replace(response, plan=replace(response.plan, parts=on_workers))
            for response, on_workers in zip(responses, parts, strict=True)
        ]
        return EdgecloudServers(self.instance, self.formulation).place(placed)
