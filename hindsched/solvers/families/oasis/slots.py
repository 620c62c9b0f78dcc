"""Algorithm 2 with the per-slot program (32) as COST_t: the engine ``slots`` of algorithm oasis.

The recursion over slots and worker-slots is the oracle's, with its ties; what n workers cost in a
slot, and where they run, comes from `OasisSlotProgram`, one CVXPY problem for the whole run at the
prices of the slot, the dearest being 1. Where they lie further apart than `WIDEST`, which no linear
programming code can add up, the solver is given each server's place in the order of prices: units
of a job are alike and each server's limit is its own, so that the optimum depends on that alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import SolveFailed
from hindsched.instances.decimals import how_many_left, loosened
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.oasis.slot_program import OasisSlotProgram
from hindsched.solvers.door.convex import solve_convex
from hindsched.solvers.door.result import Status
from hindsched.solvers.families.oasis.oracle import OasisOracle
from hindsched.solvers.families.oasis.plans import OasisPlan, Placements
from hindsched.solvers.kernels.oasis.worker_slot_program import relax_states, trace_back
from hindsched.solvers.kernels.ties import TIE
from hindsched.solvers.oracles.base import Response

WIDEST = 1e12
"""How far apart positive prices of a slot may lie."""
WHOLE = 1e-6
"""How far from whole numbers a vertex of (32) may lie by rounding."""


class SlotEngine:
    """Best responses by Algorithm 2 over worker-slots, slot by slot through one program (32)."""

    def __init__(self, cluster: OasisInstance) -> None:
        self.program = OasisSlotProgram(cluster)
        self.ranked = 0  # solves by places in the order of prices

    def best_response(
        self, oracle: OasisOracle, block: int, prices: Floats, residual: Floats, above: float
    ) -> Response | None:
        """Best schedule worth more than `above`, or None; see `OasisOracle.best_response`."""
        job, horizon = oracle.block(block), oracle.instance.horizon
        needed, steps, total, utilities, arrival = job.task
        left = loosened(residual, oracle.rows.capacity)
        views = (oracle.rows.unpack(flat).values() for flat in (prices, left))
        paid, fits = list[Floats](), list[Ints]()  # by server and slot
        for price, free, room, demand in zip(*views, job.rooms, job.demands, strict=True):
            paid.append(np.einsum("hrt,r->ht", price, demand))
            fit = how_many_left(free.transpose(0, 2, 1), demand, needed.size)
            fits.append(np.minimum(fit, room[:, None]))
        table = np.full((horizon + 1, total + 1), np.inf)
        table[arrival - 1, 0] = 0.0
        costs = np.full((horizon + 1, needed.size), np.inf)
        deployed: dict[int, tuple[Ints, Ints]] = {}
        known: dict[bytes, tuple[Ints, Ints]] = {}  # empty slots are alike
        best, end = above, 0
        for t in range(arrival, horizon + 1):
            if utilities[t] <= best:
                break
            worker_price, ps_price = (each[:, t - 1] for each in paid)
            rooms = [each[:, t - 1] for each in fits]
            levels = price_levels(worker_price), price_levels(ps_price)
            asked = [
                self._scaled(*side)
                for side in zip((worker_price, ps_price), levels, rooms, strict=True)
            ]
            key = b"".join(each.tobytes() for each in (*asked, *rooms))
            if key not in known:
                known[key] = self._deployments(needed, asked, levels, rooms)
            deployed[t] = workers, ps = known[key]
            costs[t, : len(workers)] = workers @ worker_price + ps @ ps_price
            relax_states(
                table[t - 1], 0, total, table[t], 0, total, costs[t], steps, len(workers) - 1
            )
            if utilities[t] - table[t, total] > best + TIE * utilities[t]:
                best, end = float(utilities[t] - table[t, total]), t
        if end == 0:
            return None
        windows = np.tile(np.array([0, total]), (horizon + 1, 1))
        chosen = np.zeros(horizon + 1, dtype=np.int64)
        trace_back(table, costs, windows, steps, total, arrival, end, TIE, chosen)
        counts = [np.zeros((horizon, room.size), dtype=np.int64) for room in job.rooms]
        for t in np.flatnonzero(chosen).tolist():
            for side, placed in zip(counts, deployed[t], strict=True):
                side[t - 1] = placed[chosen[t]]
        plan = OasisPlan(end, *(Placements.of(side) for side in counts))
        used = oracle.use_of_plan(block, plan)
        return Response(best, float(utilities[end]), *used, plan)

    def _scaled(self, prices: Floats, levels: Ints, room: Ints) -> Floats:
        """Prices of servers with room, the least that is not 0 being 1, or their levels."""
        positive = prices[(room > 0) & (prices > 0)]
        if not positive.size:
            return np.zeros_like(prices)
        if positive.max() > WIDEST * positive.min():
            self.ranked += 1
            return levels.astype(float) + 1.0
        scaled: Floats = np.where(room > 0, prices / positive.min(), 0.0)
        return scaled

    def _deployments(
        self, needed: Ints, prices: Sequence[Floats], levels: Sequence[Ints], room: Sequence[Ints]
    ) -> tuple[Ints, Ints]:
        """Workers and PSs by server (columns) of 0, 1, ... workers (rows), as many as fit."""
        program, most = self.program, min(needed.size - 1, int(room[0].sum()))
        while needed[most] > room[1].sum():
            most -= 1
        deployed = [np.zeros((most + 1, each.size), dtype=np.int64) for each in room]
        for first in range(1, most + 1, program.workloads):
            sizes = np.arange(first, min(first + program.workloads, most + 1))
            program.set(sizes, needed[sizes], prices, room)
            result = solve_convex(program.problem)
            if result.status != Status.OPTIMAL:
                raise SolveFailed(f"(32) of {first} workers or more: {result.status}")
            required = sizes, needed[sizes]
            variables = program.workers, program.ps
            for variable, sums, counts, limit in zip(
                variables, required, deployed, room, strict=True
            ):
                values = variable.value[: len(sizes)]
                rounded = counts[sizes] = np.rint(values).astype(np.int64)
                fit = (rounded.sum(axis=1) == sums).all() and (rounded <= limit).all()
                if not fit or np.abs(values - rounded).max() > WHOLE:
                    raise SolveFailed(f"(32) of {first} workers or more: its point is not whole")
        for placed, level, limit in zip(deployed, levels, room, strict=True):
            for servers in (np.flatnonzero(level == each) for each in range(level.max() + 1)):
                before = np.cumsum(limit[servers]) - limit[servers]
                alike = placed[:, servers].sum(axis=1, keepdims=True)
                placed[:, servers] = np.clip(alike - before, 0, limit[servers])
        return deployed[0], deployed[1]


def price_levels(prices: Floats) -> Ints:
    """Each server's level in the order of prices, from 0; equal prices (`TIE`) are on one."""
    order = np.argsort(prices, kind="stable")
    listed = prices[order]
    levels = np.empty(order.size, dtype=np.int64)
    levels[order] = np.cumsum(np.append(False, listed[1:] > listed[:-1] * (1.0 + TIE)))
    return levels
