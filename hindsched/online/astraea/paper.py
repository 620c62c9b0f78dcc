"""Astraea (Algorithms 1-5): batches, rounds, posted prices, sharing of what quotas leave unused.

=======================  ==========================================================
paper                    here
=======================  ==========================================================
``tau_l = 2^l``          the batches' horizons (`GeometricBatches`)
``lambda``               `rounds`
``theta_w, theta_p``     `price_bases`
``eta(t)``               ``theta^(h(t) / sum_s C_s) - 1``, `ExponentialLedger`
``q - use1``, ``a``      `TenantRound.unused`, frozen after phase 1
=======================  ==========================================================

Phase 1 of a round schedules each tenant's jobs within its fair share; phase 2 offers what is left
to the remaining jobs, which pay the posted prices. The printed subroutines violate (3i) and price
centralised placements by their first slot only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from hindsched.arrays import Floats, Ints
from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob
from hindsched.instances.astraea.modes import durations, modes
from hindsched.instances.base import JobRecord
from hindsched.instances.decimals import NEAR
from hindsched.instances.modes import Modes
from hindsched.models.astraea import offline as models
from hindsched.models.base import Subproblem
from hindsched.online.engines.batching import Admission, ExponentialLedger, GeometricBatches, Offer
from hindsched.online.engines.primal_dual import Engine
from hindsched.online.protocol import Environment
from hindsched.solutions.astraea.solution import AstraeaSolution
from hindsched.solutions.base import Assignment
from hindsched.solutions.window_solution import WindowRow
from hindsched.solvers.door.subproblem import pays_more, solve_subproblem
from hindsched.solvers.kernels.astraea.shared_window import best_offer, spread_workers
from hindsched.solvers.kernels.ties import TIE

Origin = Literal["round", "arrival", "absolute"]
Rounds = Annotated[int, Field(ge=1, le=10_000)]  # more are a mistake: Lemma 1 asks for hundreds
Theta = Annotated[float, Field(gt=1, le=1e15)]  # prices beyond drown the cents of the revenues
Scale = Annotated[float, Field(gt=0, le=1e15)]
ROUNDING = 1e-9
"""A payoff below 0 by this share of the highest value is below 0 in whatever order it is added."""


class TenantRound:
    """An empty cluster of some slots: room by server, use by tenant, prices by type.

    `bases` are theta by worker type and by PS type.
    """

    def __init__(self, instance: AstraeaInstance, slots: int, bases: tuple[Floats, Floats]) -> None:
        self.instance, self.slots = instance, slots
        self.split = len(instance.worker_types)
        total = [instance.worker_count.sum(axis=0), instance.ps_count.sum(axis=0)]
        self.ledger = ExponentialLedger(np.concatenate(total), slots, np.concatenate(bases))
        self.free_workers = np.repeat(instance.worker_count[None], slots, axis=0)
        self.free_ps = np.repeat(instance.ps_count[None], slots, axis=0)
        self.unused_workers = np.repeat(instance.worker_quota[None], slots, axis=0)
        self.unused_ps = np.repeat(instance.ps_quota[None], slots, axis=0)

    def offer(
        self, job: AstraeaJob, table: Modes, values: Floats, *, shared: bool,
        least: float = -math.inf,
    ) -> Offer | None:  # fmt: skip
        """Best schedule of a job in its tenant's quota or, if `shared` (phase 2), in all left.

        `values` are by the last slot, (slots + 1,); a lower payoff than `least` is not looked for.
        """
        prices, tenant = self.ledger.prices(), self.instance.tenant_index[job.tenant]
        best: Offer | None = None
        chosen: tuple[int, int, int] = (0, 0, 0)
        for w, p in np.ndindex(self.split, len(self.instance.ps_types)):
            own = table.take((table.worker_type == w) & (table.ps_type == p))
            if not len(own):
                continue
            if shared:
                left = self.ledger.residual[:, [w, self.split + p]].astype(np.int64)
                quota = left[:, 0], left[:, 1]
            else:
                quota = self.unused_workers[:, tenant, w], self.unused_ps[:, tenant, p]
            parts = (self.free_workers[:, :, w], self.free_ps[:, :, p], *quota,
                     prices[:, w], prices[:, self.split + p])  # fmt: skip
            free = tuple(np.ascontiguousarray(part) for part in parts)
            ratio = float(self.instance.ps_ratio[w, p])
            payoff, cost, mode, start, host, num_ps = best_offer(
                tuple(own.columns), values, free, ratio, least
            )
            if mode < 0:
                continue
            count, length = int(own.workers[mode]), int(own.duration[mode])
            key = start + length, count, num_ps
            tie = TIE * abs(values[start + length])
            if best is not None and payoff <= least + tie and key >= chosen:
                continue
            least, chosen = max(least, payoff), key
            workers, ps = np.zeros((2, len(self.instance.servers)), dtype=np.int64)
            workers[host], ps[host] = count, num_ps
            if not own.one_server[mode]:
                workers = spread_workers(count, host, free[0], start, length)
            best = self.offer_of(WindowRow(start + 1, start + length, w, p, workers, ps), cost)
        return best

    def offer_of(self, row: WindowRow, cost: float) -> Offer:
        """Offer of a schedule that costs `cost`: its demand is by worker type, then by PS type."""
        demand = np.zeros(self.ledger.capacity.size)
        demand[row.worker_type] = row.num_workers
        demand[self.split + row.ps_type] = int(row.ps.sum())
        return Offer(row.first, row.slots, demand, float(cost), row)

    def end_phase(self) -> None:
        """Nothing: what is left is read from the servers themselves."""

    def book(self, job: AstraeaJob, offer: Offer, *, shared: bool) -> list[WindowRow]:
        """Take an offer's units; in phase 2 return its rows with what it pays in each slot."""
        row: WindowRow = offer.plan
        span = slice(row.first - 1, row.last)
        rows, num_ps = [row], int(row.ps.sum())
        if shared:
            prices = self.ledger.prices(row.first, row.last)
            for_workers = (prices[:, row.worker_type] * row.num_workers).tolist()
            for_ps = (prices[:, self.split + row.ps_type] * num_ps).tolist()
            rows = [
                replace(row, first=slot, last=slot, payment=payment)
                for slot, payment in enumerate(zip(for_workers, for_ps, strict=True), row.first)
            ]
        else:
            tenant = self.instance.tenant_index[job.tenant]
            self.unused_workers[span, tenant, row.worker_type] -= row.num_workers
            self.unused_ps[span, tenant, row.ps_type] -= num_ps
        self.ledger.book(offer)
        self.free_workers[span, :, row.worker_type] -= row.workers
        self.free_ps[span, :, row.ps_type] -= row.ps
        return rows


class ModelRound(TenantRound):
    """A round in which schedules are found by subproblem (9) as an integer program.

    A job keeps its program until it is placed, as long as its values by slot stay the same.
    """

    def __init__(self, instance: AstraeaInstance, slots: int, bases: tuple[Floats, Floats]) -> None:
        super().__init__(instance, slots, bases)
        self.kept: dict[str, tuple[Floats, Subproblem]] = {}

    def _subproblem(self, job: AstraeaJob, values: Floats) -> Subproblem:
        kept = self.kept.get(job.name)
        if kept is None or not np.array_equal(kept[0], values):
            local = job.model_copy(update={"arrival": 0})
            alone = self.instance.with_fields(horizon=self.slots, jobs=(local,))
            program = models.build_subproblem(
                alone, 0, alone.check_formulation(None), values=values
            )
            kept = self.kept[job.name] = values.copy(), program
        return kept[1]

    def offer(
        self, job: AstraeaJob, table: Modes, values: Floats, *, shared: bool,
        least: float = -math.inf,
    ) -> Offer | None:  # fmt: skip
        """Best schedule within the quota, by the solver."""
        if not np.isfinite(values).any():
            return None
        split = self.split
        price = np.repeat(self.ledger.prices().T[None], len(self.instance.servers), axis=0)
        tenant = self.instance.tenant_index[job.tenant]
        quota = None
        if not shared:
            parts = (self.unused_workers[:, tenant], self.unused_ps[:, tenant])
            quota = np.concatenate(parts, axis=1).astype(float)
        free = self.free_workers.transpose(1, 2, 0), self.free_ps.transpose(1, 2, 0)
        solution = solve_subproblem(
            self._subproblem(job, values),
            {"worker_capacity": price[:, :split], "ps_capacity": price[:, split:]},
            {"worker_capacity": free[0].astype(float), "ps_capacity": free[1].astype(float)},
            quota,
        )
        if solution is None:
            return None
        row = solution.rows[job.name][0]
        free_of_charge = self.offer_of(row, 0.0)
        paid = self.ledger.prices(row.first, row.last) @ free_of_charge.demand
        found = replace(free_of_charge, cost=float(paid.sum()))
        other = super().offer(job, table, values, shared=shared)
        if other is None:
            return found
        ours, theirs = (float(values[each.last]) - each.cost for each in (found, other))
        return found if pays_more(ours, theirs, abs(float(values[1]))) else other

    def book(self, job: AstraeaJob, offer: Offer, *, shared: bool) -> list[WindowRow]:
        """Take an offer's units; the job's program goes."""
        self.kept.pop(job.name, None)
        return super().book(job, offer, shared=shared)


def most_a_unit(jobs: Iterable[tuple[AstraeaJob, Modes]]) -> tuple[float, float]:
    """The least theta - 1 of workers and of PSs: ``max(1, max f(1) / least volume)`` over jobs."""
    workers, ps = 1.0, 1.0
    for job, table in jobs:
        if len(table):
            best = job.utility.value(1)
            workers = max(workers, best / float((table.workers * table.duration).min()))
            ps = max(ps, best / float(table.duration.min()))
    return workers, ps


class Astraea(GeometricBatches):
    """Algorithms 1-5 with the repaired subroutines, which are exact for (9).

    Parameters
    ----------
    rounds : int
        lambda, rounds in a batch (the example has 2; Lemma 1's formula gives hundreds).
    theta_workers, theta_ps : float, optional
        theta; by default the least that the paper's condition allows for the batch.
    theta_scale : float
        Factor on theta - 1 (Figure 11).
    origin : {"round", "arrival", "absolute"}
        What a decision's utility counts from: the round's first slot as printed, the job's
        arrival, or time 0.
    guard : bool
        Refuse a schedule whose real revenue (by the instance's origin) is not positive.
    engine : {"oracle", "model"}
        Who finds a job's best schedule: the repaired subroutines, or subproblem (9) as an integer
        program. Their decisions are equal.
    """

    make_round: ClassVar[type[TenantRound]] = TenantRound

    def __init__(
        self,
        rounds: Rounds = 2,
        theta_workers: Theta | None = None,
        theta_ps: Theta | None = None,
        theta_scale: Scale = 1.0,
        origin: Origin = "round",
        guard: bool = False,
        engine: Engine = "oracle",
    ) -> None:
        super().__init__(alpha=rounds, first_horizon=2)
        self.theta_workers, self.theta_ps, self.theta_scale = theta_workers, theta_ps, theta_scale
        self.origin, self.guard, self.engine = origin, guard, engine

    def start(self, environment: Environment) -> None:
        """Begin with no jobs."""
        super().start(environment)
        self.cluster: AstraeaInstance = environment.cluster
        self._tables: dict[str, Modes] = {}
        self._rows: dict[str, list[WindowRow]] = {}
        self._kept: dict[str, tuple[Floats, Subproblem]] = {}

    def table(self, job: AstraeaJob) -> Modes:
        """Modes of a job."""
        if job.name not in self._tables:
            self._tables[job.name] = modes(self.cluster, job)
        return self._tables[job.name]

    def _plan(self, batch: list[JobRecord], horizon: int) -> dict[str, list[Assignment]]:
        """Plan a batch in order of arrival, then tenant, then the file."""
        order = self.cluster.tenant_index
        batch = sorted(batch, key=lambda job: (job.arrival, order[job.tenant]))
        return super()._plan(batch, horizon)

    def price_bases(self, jobs: list[AstraeaJob]) -> tuple[Floats, Floats]:
        """Theta of workers and PSs: as set, or the least that the paper's condition allows."""
        workers, ps = most_a_unit((job, self.table(job)) for job in jobs)
        given_w, given_p, scale = self.theta_workers, self.theta_ps, self.theta_scale
        return (
            np.full(len(self.cluster.worker_types), given_w or 1.0 + scale * workers),
            np.full(len(self.cluster.ps_types), given_p or 1.0 + scale * ps),
        )

    def values(self, job: AstraeaJob, slots: int, base: int) -> Floats:
        """Utility by the last slot of a window in the round, shape (slots + 1,)."""
        shift = {"round": 0, "arrival": base - job.arrival, "absolute": base}[self.origin]
        ends = np.arange(1.0, min(slots, self.cluster.horizon - base) + 1)
        values = job.utility.values(ends + shift)
        if self.guard:
            values[self.cluster.revenues(job, ends + base) <= 0] = -math.inf
        table = np.full(slots + 1, -math.inf)
        table[1 : ends.size + 1] = values
        return table

    def run_round(self, jobs: list[AstraeaJob], horizon: int) -> list[Admission]:
        """Phase 1 within fair shares, phase 2 on what all tenants leave unused."""
        base = self.round_base
        kind = ModelRound if self.engine == "model" else self.make_round
        current = kind(self.cluster, horizon, self.price_bases(self.batch))
        if isinstance(current, ModelRound):
            current.kept = self._kept
        admitted: list[Admission] = []
        left = list(jobs)
        for shared in (False, True):
            refused: list[AstraeaJob] = []
            for job in left:
                values = self.values(job, horizon, base)
                least = -ROUNDING * abs(float(values[1]))
                table = self.table(job)
                offer = current.offer(job, table, values, shared=shared, least=least)
                if offer is None or not values[offer.last] - offer.cost > 0:
                    refused.append(job)
                    continue
                payoff = float(values[offer.last]) - offer.cost
                before = current.ledger.value()
                self._rows[job.name] = current.book(job, offer, shared=shared)
                rise = current.ledger.value() - before
                admitted.append(Admission(job, offer, float(values[offer.last]), payoff + rise))
            left = refused
            current.end_phase()
        self.post(current.ledger, [*self.cluster.worker_types, *self.cluster.ps_types])
        return admitted

    def rows(self, admission: Admission, base: int) -> list[Assignment]:
        """Rows of the solution file, one a stretch of equal payment."""
        own = self._rows[admission.job.name]
        moved = [replace(row, first=row.first + base, last=row.last + base) for row in own]
        return [AstraeaSolution.write_row(self.cluster, row) for row in moved]


# Algorithms 3-5 as printed. Every (first slot, number of workers) is tried, server by server. Kept
# as printed: MINCOSTD takes a host with fewer PSs than (3i) needs, both hold PSs against
# the *worker* quota, and MINCOSTC prices a whole window by its first slot. Repaired, because
# nothing runs otherwise: ``t+ = t- + d - 1`` and prices that follow from what is booked (the
# paper's own example does both). Quotas in phase 2 are a_w(t), frozen after phase 1.

Placed = tuple[float, Ints, Ints]  # cost, workers and PSs by server


class Window(NamedTuple):
    """What Algorithms 4 and 5 are told of a window."""

    num_workers: int  # D_w
    workers: Ints  # free on each server throughout
    ps: Ints
    quota: int  # of *workers*, against which the printed lines hold PSs too
    prices: Floats  # of a worker and of a PS, (slots, 2)
    ratio: float  # b_w / b_p


def min_cost_d(window: Window) -> Placed | None:
    """Algorithm 4, MINCOSTD; None for a cost of infinity."""
    most_here = np.minimum(window.num_workers - 1, window.workers)
    best, fewest = -1, 0
    for s, on_host in enumerate(most_here.tolist()):
        needed = math.ceil((window.num_workers - on_host) * window.ratio - NEAR)
        there = min(needed, int(window.ps[s]), window.quota)
        if there >= 1 and (best < 0 or there < fewest):
            best, fewest = s, there
    if best < 0:
        return None
    workers, ps = np.zeros_like(window.workers), np.zeros_like(window.ps)
    workers[best], ps[best] = most_here[best], fewest
    left = window.num_workers - int(workers[best])
    for s in np.argsort(window.workers, kind="stable"):
        if s != best:
            workers[s] = min(int(window.workers[s]), left)
            left -= int(workers[s])
    if left > 0:
        return None
    return float((window.prices @ [window.num_workers, fewest]).sum()), workers, ps


def min_cost_c(window: Window) -> Placed | None:
    """Algorithm 5, MINCOSTC: any server that takes all; the first is taken. None for infinity."""
    able = np.flatnonzero((window.workers >= window.num_workers) & (window.ps >= 1))
    if window.quota < 1 or not able.size:
        return None
    workers, ps = np.zeros_like(window.workers), np.zeros_like(window.ps)
    workers[able[0]], ps[able[0]] = window.num_workers, 1
    return len(window.prices) * float(window.prices[0] @ [window.num_workers, 1]), workers, ps


class LiteralRound(TenantRound):
    """A round in which schedules are found by the printed loops."""

    _frozen: Ints | None = None

    def end_phase(self) -> None:
        """After phase 1: a_w(t) is what all tenants leave unused of their quotas."""
        if self._frozen is None:
            self._frozen = self.unused_workers.sum(axis=1)

    def offer(
        self, job: AstraeaJob, table: Modes, values: Floats, *, shared: bool,
        least: float = -math.inf,
    ) -> Offer | None:  # fmt: skip
        """Algorithm 3: the first of the best among all (slot, workers), centralised on ties."""
        length = durations(self.instance, job)
        prices = self.ledger.prices()
        tenant = self.instance.tenant_index[job.tenant]
        best, chosen = 0.0, None
        for w, p in np.ndindex(length.shape[:2]):
            quota = self.unused_workers[:, tenant, w]
            if shared and self._frozen is not None:
                quota = np.maximum(quota, self._frozen[:, w])
            own = prices[:, [w, len(self.instance.worker_types) + p]]
            for first, count in np.ndindex(self.slots, length.shape[3]):
                here: tuple[float, Offer] | None = None
                for zeta, place in ((0, min_cost_d), (1, min_cost_c)):  # lines 4-9
                    d = int(length[w, p, zeta, count])
                    span = slice(first, first + d)
                    if first + d > self.slots or quota[span].min() < count + 1:
                        continue
                    workers = self.free_workers[span, :, w].min(axis=0)
                    ps = self.free_ps[span, :, p].min(axis=0)
                    ratio = float(self.instance.ps_ratio[w, p])
                    placed = place(
                        Window(count + 1, workers, ps, int(quota[span].min()), own[span], ratio)
                    )
                    if placed is None:
                        continue
                    payoff = float(values[first + d]) - placed[0]
                    if here is None or payoff >= here[0]:
                        row = WindowRow(first + 1, first + d, w, p, placed[1], placed[2])
                        here = payoff, self.offer_of(row, placed[0])
                if here is not None and here[0] > best:
                    best, chosen = here
        return chosen


class AstraeaLiteral(Astraea):
    """Astraea with the printed subroutines (Algorithms 3-5), whose placements may break (3i).

    Parameters
    ----------
    rounds, theta_workers, theta_ps, theta_scale, origin, guard
        As in `Astraea`.
    """

    relaxes_constraints = True
    make_round = LiteralRound

    def __init__(
        self, rounds: Rounds = 2, theta_workers: Theta | None = None, theta_ps: Theta | None = None,
        theta_scale: Scale = 1.0, origin: Origin = "round", guard: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(rounds, theta_workers, theta_ps, theta_scale, origin, guard)
