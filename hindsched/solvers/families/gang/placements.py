"""Pricing oracle of consolidated gang jobs in one piece, with a price for every server and slot.

A pool's prices cannot see that jobs do not fit on servers. Here a job pays for the GPUs that it
holds on each: all on one server, or where none has so many, whole servers and part of one at most,
(6). The cheapest placement is found server by server over (GPUs so far, servers held in part), for
all starts at once. The slots after the last row are free.

A branching splits the `completion` slot and then the GPUs held on a server (`server_gpus`), which
together say all of a schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.gang.instance import MOST_PROGRAM_SLOTS, GangInstance, split_formulation
from hindsched.solutions.base import Assignment, Solution
from hindsched.solutions.gang.solution import GangSolution
from hindsched.solvers.families.gang.intervals import ROW_SET, IntervalRows
from hindsched.solvers.families.gang.pool import GangOracle, job_costs
from hindsched.solvers.oracles.base import BlockOracle, Response
from hindsched.solvers.oracles.decisions import COMPLETES, COMPLETION, Feature, Limits, window_of
from hindsched.solvers.oracles.rows import Rows, RowSet, slot_labels

SERVER_GPUS = "server_gpus"
LAYOUT = "placements"


class GangPlacementsOracle(GangOracle):
    """Best responses of consolidated jobs to prices of every server's GPUs, slot by slot.

    Parameters
    ----------
    instance : GangInstance
        An instance whose placement is consolidated.
    formulation : str
        Of jobs in one piece: ``non-preemptive`` or ``non-preemptive,deadlines``.
    """

    rows: Rows  # type: ignore[assignment]

    def __init__(self, instance: GangInstance, formulation: str) -> None:
        kind, goal = split_formulation(formulation)
        wrong = kind != "non-preemptive" or goal == "makespan" or not instance.is_consolidated
        last = max(1, instance.serial_end)
        if wrong or last > MOST_PROGRAM_SLOTS:
            rule = f"are only of consolidated jobs in one piece and {MOST_PROGRAM_SLOTS} slots"
            raise InputError("rows", LAYOUT, rule)
        super().__init__(instance, formulation)
        self.layout = LAYOUT
        servers = instance.servers or ()
        names = tuple(server.name for server in servers)
        sizes = instance.server_gpus.astype(float) * float(instance.slot_seconds)
        axes = (("server", names), ("slot", slot_labels(last, len(names))))
        self.rows = Rows([RowSet(ROW_SET, axes, np.repeat(sizes[:, None], last, axis=1))])
        self.last, self.sizes = last, instance.server_gpus.tolist()
        self.features = {COMPLETION: (), SERVER_GPUS: (("server", names),)}

    def on_rows(self, rows: Rows) -> GangPlacementsOracle:
        """Itself: the rows are the instance's."""
        return self

    def on_rows_of_file(self, prices: object) -> GangPlacementsOracle:
        """Itself: the rows are the instance's."""
        return self

    def prices_of(self, other: BlockOracle, prices: Floats) -> Floats:
        """Prices of the pool on every server."""
        assert isinstance(other.rows, IntervalRows)
        known = np.append(prices, 0.0)
        at = np.searchsorted(other.rows.cut, np.arange(self.last), side="right") - 1
        return np.tile(known[at], len(self.sizes))

    def prices_from(self, layout: str, rows: Rows, prices: Floats) -> Floats | None:
        """A certificate's prices, if they are of this layout."""
        return prices if layout == LAYOUT else None

    def block_values(self, prices: Floats) -> tuple[Floats, Floats]:
        """Values and total use of all jobs."""
        return BlockOracle.block_values(self, prices)

    def round_outward(self, terms: Sequence[float], size: float | None = None) -> float:
        """Sum exactly; running sums of prices are far within the allowance at so few slots."""
        return BlockOracle.round_outward(self, terms, size)

    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Best start and placement of a job, or to miss its deadline."""
        if residual is not None:
            raise TypeError("an interval's residual capacity says nothing of its slots")
        found, outside = self.restricted_response(block, prices, {}), self.outside(block)
        if found is None or (outside is not None and outside.value <= found.value):
            return outside
        return found

    def restricted_response(self, block: int, prices: Floats, limits: Limits) -> Response | None:
        """Best start and placement of a job whose completion and GPUs on servers have limits."""
        submit, length = int(self.blocks.submit[block]), int(self.blocks.duration[block])
        low, high = window_of(limits, COMPLETES)
        begin = max(submit, low - length)
        stop = min(int(self.blocks.latest[block]), high) - length
        stop = min(stop, max(begin, self.last))  # behind the rows the first start is the best
        if begin > stop:
            return None
        starts = np.arange(begin, stop + 1)
        own = float(self.blocks.slope[block]) * (starts + length - submit)
        sums = np.zeros((len(self.sizes), self.last + 1))
        seconds = float(self.instance.slot_seconds)
        np.cumsum(prices.reshape(len(self.sizes), self.last) * seconds, axis=1, out=sums[:, 1:])
        ends = np.minimum(starts + length, self.last), np.minimum(starts, self.last)
        costs = sums[:, ends[0]] - sums[:, ends[1]]
        least, _ = self._placed(block, costs, limits)
        if least is None:
            return None
        best = int(np.argmin(own + least))
        _, held = self._placed(block, costs[:, [best]], limits)
        start = int(starts[best])
        slots = np.arange(start, min(start + length, self.last))
        rows = [server * self.last + slots for server, n in enumerate(held) if n]
        amounts = [np.full(slots.size, n * seconds) for n in held if n]
        index, use = np.concatenate(rows).astype(np.int64), np.concatenate(amounts)
        cost = float(own[best])
        return Response(cost + float(prices[index] @ use), cost, index, use, (start, held))

    def _placed(
        self, block: int, costs: Floats, limits: Limits
    ) -> tuple[Floats | None, tuple[int, ...]]:
        """Least price of a job's GPUs by start, and the placement that is best at the first."""
        gpus = int(self.instance.job_gpus[block])
        narrow = gpus <= max(self.sizes)
        none: Floats = np.zeros(costs.shape[1])
        states: dict[tuple[int, int], tuple[Floats, tuple[int, ...]]] = {(0, 0): (none, ())}
        for server, size in enumerate(self.sizes):
            low, high = window_of(limits, Feature(SERVER_GPUS, (server,)))
            after: dict[tuple[int, int], tuple[Floats, tuple[int, ...]]] = {}
            for (used, parts), (cost, held) in states.items():
                most = min(high, size, gpus - used)
                for n in (0, gpus) if narrow else range(most + 1):
                    key = used + n, parts + (not narrow and 0 < n < size)
                    if not low <= n <= most or key[1] > 1:
                        continue
                    total, way = cost + n * costs[server], (*held, n)
                    if key in after:
                        known, other = after[key]
                        way = way if total[0] < known[0] else other
                        total = np.minimum(known, total)
                    after[key] = total, way
            states = after
        ends = [states[gpus, parts] for parts in (0, 1) if (gpus, parts) in states]
        if not ends:
            return None, ()
        least = np.minimum.reduce([cost for cost, _ in ends])
        return least, min(ends, key=lambda end: end[0][0])[1]

    def features_of(self, block: int, response: Response) -> dict[Feature, int]:
        """Completion, and the GPUs on every server that has some."""
        start, held = response.plan
        found = {Feature(SERVER_GPUS, (server,)): n for server, n in enumerate(held) if n}
        return {COMPLETES: start + int(self.instance.durations[block]), **found}

    def plan_at(self, block: int, start: int) -> Any:
        """Plan of a job that begins at a time and has all servers to itself."""
        return start, self._placed(block, np.zeros((len(self.sizes), 1)), {})[1]

    def assignments(self, block: int, response: Response) -> list[Assignment]:
        """Rows of a job that runs in one piece on servers."""
        start, held = response.plan
        names = [server.name for server in self.instance.servers or ()]
        servers = {name: n for name, n in zip(names, held, strict=True) if n}
        end = start + int(self.instance.durations[block])
        return [{"from": start + 1, "to": end, "servers": servers}]

    def use_of(self, solution: Solution) -> list[Response | None]:
        """GPU-seconds that a solution holds by server and slot, job by job."""
        assert isinstance(solution, GangSolution)
        rows, seconds = solution.rows, float(self.instance.slot_seconds)
        held: list[tuple[list[Ints], list[Floats]]] = [([], []) for _ in self.instance.jobs]
        spans = zip(
            rows.place_row.tolist(), rows.place_server.tolist(), rows.place_gpus.tolist(),
            strict=True,
        )  # fmt: skip
        for row, server, gpus in spans:
            slots = np.arange(int(rows.start[row]), min(int(rows.end[row]), self.last))
            at, amounts = held[int(rows.job[row])]
            at.append(server * self.last + slots)
            amounts.append(np.full(slots.size, gpus * seconds))
        found: list[Response | None] = []
        for cost, (at, amounts) in zip(job_costs(solution), held, strict=True):
            index = np.concatenate([np.zeros(0, dtype=np.int64), *at]).astype(np.int64)
            found.append(Response(cost, cost, index, np.concatenate([np.zeros(0), *amounts]), 0))
        return found
