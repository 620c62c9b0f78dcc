"""Astraea (Algorithms 1-5): batches, rounds, posted prices, sharing of what quotas leave unused.

=======================  ==========================================================
paper                    here
=======================  ==========================================================
``tau_l = 2^l``          the batches' horizons (`GeometricBatches`)
``lambda``               `rounds`
``theta_w, theta_p``     `price_bases`
``eta(t)``               ``theta^(h(t) / sum_s C_s) - 1``, `ExponentialLedger`
``q - use1``, ``a``      `TenantRound.unused`, which phase 2 leaves as it is
=======================  ==========================================================

Phase 1 of a round schedules each tenant's jobs within its fair share; phase 2 offers what is left
to the remaining jobs, which pay the posted prices. The printed subroutines violate (3i) and price
centralised placements by their first slot only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from hindsched.arrays import Floats, Ints
from hindsched.instances.astraea.instance import AstraeaInstance, AstraeaJob
from hindsched.instances.base import JobRecord
from hindsched.instances.modes import Modes, durations, modes, ps_for
from hindsched.models.astraea import offline as models
from hindsched.online.baselines.cluster import fill
from hindsched.online.engines.batching import Admission, ExponentialLedger, GeometricBatches, Offer
from hindsched.online.engines.primal_dual import Engine
from hindsched.online.protocol import Environment
from hindsched.solutions.astraea.solution import AstraeaSolution
from hindsched.solutions.base import Assignment
from hindsched.solutions.window_solution import WindowRow, row_use
from hindsched.solvers.door.subproblem import solve_subproblem
from hindsched.solvers.families.windows.schedules import cheapest_row

Origin = Literal["round", "arrival", "absolute"]
Rounds = Annotated[int, Field(ge=1, le=10_000)]  # more are a mistake: Lemma 1 asks for hundreds
Theta = Annotated[float, Field(gt=1, le=1e15)]  # prices beyond drown the cents of the revenues
Scale = Annotated[float, Field(gt=0, le=1e15)]
ROUNDING = 1e-9
"""A payoff below 0 by this share of the highest value is below 0 in whatever order it is added."""


def place(
    count: int, room: Ints, quota: int, ratio: float, *, together: bool, printed: bool = False
) -> Ints | None:
    """Workers and PSs by server, (2, servers), as Algorithms 4 and 5 place them; None if nowhere.

    `room` is what is free of workers and of PSs throughout a window, (2, servers), `quota` bounds
    the PSs. Algorithm 5 (`together`) takes the server with the smallest room that takes all, as
    `printed` the first. Algorithm 4 takes the host that needs the fewest PSs (3i), as `printed`
    also one with fewer than it needs; the other workers go to servers in order of room.
    """
    placed = np.zeros_like(room)
    if together:
        able = np.flatnonzero((room[0] >= count) & (room[1] >= 1))
        if quota < 1 or not able.size:
            return None
        placed[:, able[0] if printed else able[np.argmin(room[0, able])]] = count, 1
        return placed
    on_host = np.minimum(count - 1, room[0])
    needed, most = ps_for(count - on_host, ratio), np.minimum(room[1], quota)
    held = np.minimum(needed, most)
    serves = held >= 1 if printed else needed <= most
    able = np.flatnonzero(serves & (printed | (room[0].sum() - room[0] >= count - on_host)))
    if not able.size:
        return None
    host = able[np.argmin(held[able])]
    placed[:, host] = on_host[host], held[host]
    others = [s for s in np.argsort(room[0], kind="stable") if s != host]
    for s, taken in fill(room[0], others, count - int(on_host[host])).items():
        placed[0, s] = taken
    return placed if placed[0].sum() == count else None


class TenantRound:
    """An empty cluster of some slots: room by server, use by tenant, prices by type.

    Types of workers stand before those of PSs. `bases` are theta by worker type and by PS type.
    """

    def __init__(self, instance: AstraeaInstance, slots: int, bases: tuple[Floats, Floats]) -> None:
        self.instance, self.slots = instance, slots
        self.split = len(instance.worker_types)
        units = instance.server_capacity.astype(np.int64)
        self.ledger = ExponentialLedger(units.sum(axis=0), slots, np.concatenate(bases))
        self.free = np.repeat(units[None], slots, axis=0)  # (slots, servers, types)
        self.unused = np.repeat(instance.tenant_quota[None], slots, axis=0)

    def offer(
        self, job: AstraeaJob, table: Modes, values: Floats, *, shared: bool,
        least: float = -math.inf,
    ) -> Offer | None:  # fmt: skip
        """Best schedule of a job in its tenant's quota or, if `shared` (phase 2), in all left.

        `values` are by the last slot, (slots + 1,); a lower payoff than `least` is not looked for.
        """
        quota = self.unused[:, self.instance.tenant_index[job.tenant]]
        if shared:
            quota = (self.ledger.capacity - self.ledger.use).astype(np.int64)
        servers, prices = len(self.instance.servers), self.ledger.prices()
        last = int(np.flatnonzero(np.isfinite(values)).max(initial=0))
        order = np.argsort(table.workers, kind="stable")  # the first mode takes a tie
        schedule = cheapest_row(
            self.instance, table.take(order), -values, (1, last), (1, last),
            np.ascontiguousarray(self.free.transpose(1, 2, 0), dtype=float),
            np.repeat(prices.T[None], servers, axis=0), quota=np.ascontiguousarray(quota.T),
            limit=-least,
        )  # fmt: skip
        if schedule is None:
            return None
        return self.offer_of(self._placed(schedule[1], quota))

    def _placed(self, row: WindowRow, quota: Ints) -> WindowRow:
        """The schedule where Algorithms 4 and 5 place it, as prices are alike on all servers."""
        span, kinds = slice(row.first - 1, row.last), [row.worker_type, self.split + row.ps_type]
        placed = place(
            row.num_workers, self.free[span][..., kinds].min(axis=0).T,
            int(quota[span, kinds[1]].min()),
            float(self.instance.ps_ratio[row.worker_type, row.ps_type]), together=row.one_server,
        )  # fmt: skip
        assert placed is not None
        return replace(row, workers=placed[0], ps=placed[1])

    def offer_of(self, row: WindowRow, cost: float | None = None) -> Offer:
        """Offer of a schedule: its demand is by worker type, then by PS type; its cost, as said."""
        demand = row_use(self.instance, row).sum(axis=0)
        if cost is None:
            cost = float((self.ledger.prices(row.first, row.last) @ demand).sum())
        return Offer(row.first, row.slots, demand, cost, row)

    def book(self, job: AstraeaJob, offer: Offer, *, shared: bool) -> list[WindowRow]:
        """Take an offer's units; in phase 2 return its rows with what it pays in each slot."""
        row: WindowRow = offer.plan
        span, rows = slice(row.first - 1, row.last), [row]
        if shared:
            paid = self.ledger.prices(row.first, row.last) * offer.demand
            for_workers, for_ps = paid[:, row.worker_type], paid[:, self.split + row.ps_type]
            payments = zip(for_workers.tolist(), for_ps.tolist(), strict=True)
            rows = [
                replace(row, first=slot, last=slot, payment=payment)
                for slot, payment in enumerate(payments, row.first)
            ]
        else:
            tenant = self.instance.tenant_index[job.tenant]
            self.unused[span, tenant] -= offer.demand.astype(np.int64)
        self.ledger.book(offer)
        self.free[span] -= row_use(self.instance, row).astype(np.int64)
        return rows


class TenantModelRound(TenantRound):
    """A round in which schedules are found by subproblem (9) as an integer program.

    A job keeps its program until it is placed, as long as its values by slot stay the same.
    """

    kept: dict[str, tuple[Floats, models.AstraeaSubproblem]]  # by job, one for all rounds

    def _subproblem(self, job: AstraeaJob, values: Floats) -> models.AstraeaSubproblem:
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
        program = self._subproblem(job, values)
        price = np.repeat(self.ledger.prices().T[None], len(self.instance.servers), axis=0)
        free = self.free.transpose(1, 2, 0).astype(float)
        quota = self.unused[:, self.instance.tenant_index[job.tenant]]
        by_name = program.family.by_name
        arguments = by_name(price), by_name(free), None if shared else quota.astype(float)
        solution = solve_subproblem(program, *arguments)
        if solution is None:
            return None
        window: WindowRow = solution.rows[job.name][0]
        in_all = (self.ledger.capacity - self.ledger.use).astype(np.int64)
        return self.offer_of(self._placed(window, in_all if shared else quota))

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
        self, rounds: Rounds = 2, theta_workers: Theta | None = None, theta_ps: Theta | None = None,
        theta_scale: Scale = 1.0, origin: Origin = "round", guard: bool = False,
        engine: Engine = "oracle",
    ) -> None:  # fmt: skip
        super().__init__(alpha=rounds, first_horizon=2)
        self.theta_workers, self.theta_ps, self.theta_scale = theta_workers, theta_ps, theta_scale
        self.origin, self.guard, self.engine = origin, guard, engine

    def start(self, environment: Environment) -> None:
        """Begin with no jobs."""
        super().start(environment)
        self.cluster: AstraeaInstance = environment.cluster
        self._tables: dict[str, Modes] = {}
        self._rows: dict[str, list[WindowRow]] = {}
        self._kept: dict[str, tuple[Floats, models.AstraeaSubproblem]] = {}

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
        kind = TenantModelRound if self.engine == "model" else self.make_round
        current = kind(self.cluster, horizon, self.price_bases(self.batch))
        if isinstance(current, TenantModelRound):
            current.kept = self._kept
        admitted: list[Admission] = []
        left = list(jobs)
        for shared in (False, True):
            refused: list[AstraeaJob] = []
            for job in left:
                values = self.values(job, horizon, base)
                least = -ROUNDING * abs(float(values[1]))
                offer = current.offer(job, self.table(job), values, shared=shared, least=least)
                if offer is None or not values[offer.last] - offer.cost > 0:
                    refused.append(job)
                    continue
                payoff = float(values[offer.last]) - offer.cost
                before = current.ledger.value()
                self._rows[job.name] = current.book(job, offer, shared=shared)
                rise = current.ledger.value() - before
                admitted.append(Admission(job, offer, float(values[offer.last]), payoff + rise))
            left = refused
        self.post(current.ledger, [*self.cluster.worker_types, *self.cluster.ps_types])
        return admitted

    def rows(self, admission: Admission, base: int) -> list[Assignment]:
        """Rows of the solution file, one a stretch of equal payment."""
        windows = self._rows[admission.job.name]
        return [AstraeaSolution.write_row(self.cluster, row.moved(base)) for row in windows]


# Algorithms 3-5 as printed. Every (first slot, number of workers) is tried, server by server. Kept
# as printed: MINCOSTD takes a host with fewer PSs than (3i) needs, both hold PSs against
# the *worker* quota, and MINCOSTC prices a whole window by its first slot. Repaired, because
# nothing runs otherwise: ``t+ = t- + d - 1`` and prices that follow from what is booked (the
# paper's own example does both). Quotas in phase 2 are a_w(t) as phase 1 leaves it.


class LiteralRound(TenantRound):
    """A round in which schedules are found by the printed loops."""

    def offer(
        self, job: AstraeaJob, table: Modes, values: Floats, *, shared: bool,
        least: float = -math.inf,
    ) -> Offer | None:  # fmt: skip
        """Algorithm 3: the first of the best among all (slot, workers), centralised on ties."""
        length = durations(self.instance, job)
        quotas = self.unused[:, self.instance.tenant_index[job.tenant]]
        if shared:  # a_w(t) is what all tenants leave unused of their quotas
            quotas = np.maximum(quotas, self.unused.sum(axis=1))
        best, chosen = 0.0, None
        for w, p in np.ndindex(length.shape[:2]):
            kinds, ratio = [w, self.split + p], float(self.instance.ps_ratio[w, p])
            quota, prices = quotas[:, w], self.ledger.prices()[:, kinds]
            for first, count in np.ndindex(self.slots, length.shape[3]):
                here: tuple[float, Offer] | None = None
                for zeta in (0, 1):  # lines 4-9
                    d = int(length[w, p, zeta, count])
                    span = slice(first, first + d)
                    if first + d > self.slots or quota[span].min() < count + 1:
                        continue
                    room = self.free[span][..., kinds].min(axis=0).T
                    placed = place(
                        count + 1, room, int(quota[span].min()), ratio, together=zeta == 1,
                        printed=True,
                    )  # fmt: skip
                    if placed is None:
                        continue
                    paid = prices[span] @ placed.sum(axis=1)
                    cost = float(d * paid[0] if zeta else paid.sum())
                    payoff = float(values[first + d]) - cost
                    if here is None or payoff >= here[0]:
                        row = WindowRow(first + 1, first + d, w, p, *placed)
                        here = payoff, self.offer_of(row, cost)
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
