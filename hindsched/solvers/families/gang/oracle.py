"""Pricing oracle of gang: best responses of jobs to a price per GPU-second over time.

The bound is ``sum_j best_j - GPUs x integral of the prices``; what a job's best response is depends
on the formulation's kind (`best_responses`). The time after the last interval is free and without
end, so no horizon is cut. Servers' bounds are those of one pool: a relaxation.

Linking rows are GPUs in use over intervals of slots, which the prices bring along: a price per
GPU-second holds for every slot of an interval, so its row says that the GPU-seconds used in it are
at most GPUs x its length. Any cutting of time gives valid rows, and a certificate names its own:
``{"gpus": [{"from", "to", "price"}, ...]}``, slots inclusive, what is not named costs nothing.
GPUs of several kinds have prices each (``gpu_kind`` in every row); a job takes the cheapest of its
kinds, in one piece once, else from slot to slot.

For the makespan the bound needs no prices: see `makespan_bound`.

Jobs in one piece can be restricted: a branching splits their `completion` slot, which is that of
one that misses its deadline, where only deadlines count, after all slots.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from hindsched.arrays import Bools, Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.decimals import common_step, exactly
from hindsched.instances.gang.instance import (
    MOST_PROGRAM_SLOTS,
    MOST_SLOTS,
    GangInstance,
    split_formulation,
)
from hindsched.json_types import JsonObject
from hindsched.solutions.base import Assignment, Solution, build_solution
from hindsched.solutions.gang.solution import GangSolution
from hindsched.solutions.rows import read_span
from hindsched.solvers.kernels.gang.best_responses import (
    pausing_responses,
    rigid_responses,
    soft_responses,
)
from hindsched.solvers.kernels.gang.sequences import GangJobs
from hindsched.solvers.kernels.gang.timeline import FOREVER
from hindsched.solvers.oracles.base import (
    RELATIVE_ROUNDING,
    BranchingOracle,
    PricingOracle,
    Response,
)
from hindsched.solvers.oracles.decisions import COMPLETES, COMPLETION, Feature, Limits, window_of
from hindsched.solvers.oracles.rows import AxisLabel, Rows, RowSet, priced_rows

ROW_SET = "gpus"
KEYS = {"from", "to", "price"}


class IntervalRows(Rows):
    """One row an interval: interval k is the slots ``cut[k] + 1 .. cut[k + 1]``, cuts rising.

    Where GPUs are of several kinds, those of the first kind, then those of the next.
    """

    def __init__(self, instance: GangInstance, cut: Ints) -> None:
        self.cut, self.kinds = cut, list(instance.gpu_kinds)
        length = float(instance.slot_seconds) * np.diff(cut)
        labels = tuple(f"{first + 1}-{last}" for first, last in pairwise(cut))
        axes: tuple[tuple[str, tuple[AxisLabel, ...]], ...] = (("interval", labels),)
        capacity = np.outer(list(instance.gpu_kinds.values()), length)
        if len(self.kinds) > 1:
            axes = (("gpu_kind", tuple(self.kinds)), *axes)
        super().__init__([RowSet(ROW_SET, axes, capacity.reshape([len(x) for _, x in axes]))])

    def by_kind(self, flat: Floats) -> Floats:
        """A vector over the rows as a table, (kinds, intervals)."""
        return np.asarray(flat, dtype=float).reshape(len(self.kinds), self.cut.size - 1)

    def to_file(self, flat: Floats) -> dict[str, list[JsonObject]]:
        """Write the prices above 0, neighbours of one price together."""
        rows: list[JsonObject] = []
        first, last = self.cut[:-1].tolist(), self.cut[1:].tolist()
        for kind, prices in zip(self.kinds, self.by_kind(flat).tolist(), strict=True):
            named = {"gpu_kind": kind} if len(self.kinds) > 1 else {}
            before = len(rows)
            for begin, end, price in zip(first, last, prices, strict=True):
                goes_on = len(rows) > before and rows[-1]["to"] == begin
                if price and goes_on and rows[-1]["price"] == price:
                    rows[-1]["to"] = end
                elif price:
                    rows.append({"from": begin + 1, "to": end, "price": price, **named})
        return {ROW_SET: rows}

    def from_file(self, prices: object, where: str = "prices") -> Floats:
        """Read `to_file`'s rows; every interval of these rows has one price."""
        flat = np.zeros(self.size)
        table = self.by_kind(flat)
        for kind, first, last, price in read_prices(prices, where, self.kinds):
            low, high = np.searchsorted(self.cut, [first - 1, last])
            if high >= self.cut.size or self.cut[low] != first - 1 or self.cut[high] != last:
                rule = "must begin and end where intervals do"
                raise InputError(f"{where}.{ROW_SET}", f"{first}-{last}", rule)
            table[self.kinds.index(kind), low:high] = price
        return flat

    def label(self, index: int) -> dict[str, AxisLabel]:
        """Name a row: its first slot, and the interval."""
        kind, at = divmod(index, self.cut.size - 1)
        first, last = int(self.cut[at]) + 1, int(self.cut[at + 1])
        named: dict[str, AxisLabel] = {"gpu_kind": self.kinds[kind]} if len(self.kinds) > 1 else {}
        return {"rows": ROW_SET, **named, "interval": f"{first}-{last}", "slot": first}


def cuts_of(prices: object, where: str = "prices", kinds: Sequence[str] = ("",)) -> Ints:
    """Ends of the intervals that a file's prices, or those of a tree's leaves, name, from 0 on."""
    ends = [0]
    leaves = [prices]
    if isinstance(prices, list):
        leaves = [leaf.get("prices") for leaf in prices if isinstance(leaf, dict)]
    for each in leaves:
        for _, first, last, _ in read_prices(each, where, kinds):
            ends += [first - 1, last]
    return np.unique(np.array(ends, dtype=np.int64))


def read_prices(
    prices: object, where: str, kinds: Sequence[str]
) -> list[tuple[str, int, int, float]]:
    """Rows (kind, first slot, last slot, price) of a file, of each kind in order of time."""
    if prices == {}:
        return []
    if not isinstance(prices, dict) or set(prices) != {ROW_SET}:
        raise InputError(where, prices, f"must be an object with the rows {ROW_SET}")
    rows: list[tuple[str, int, int, float]] = []
    ends = dict.fromkeys(kinds, 0)
    keys = KEYS | ({"gpu_kind"} if len(ends) > 1 else set())
    for here, row, price in priced_rows(prices[ROW_SET], f"{where}.{ROW_SET}", keys):
        kind = row["gpu_kind"] if len(ends) > 1 else kinds[0]
        if kind not in ends:
            raise InputError(f"{here}.gpu_kind", kind, f"must be one of {', '.join(ends)}")
        first, last = read_span(here, row, MOST_SLOTS)
        if first <= ends[kind]:
            raise InputError(f"{here}.from", first, f"must follow slot {ends[kind]}")
        ends[kind] = last
        rows.append((kind, first, last, price))
    return rows


LAYOUT = "intervals"


class SoftResponses(NamedTuple):
    """Smoothed responses of all jobs in one piece."""

    soft: float  # sum of the soft minima
    hard: float  # of the true ones
    use: Floats  # expected GPU-slots held by row
    expected: Floats  # expected starts, (jobs,)


def patterns(allowed: Bools) -> Iterator[tuple[Ints, Ints]]:
    """Jobs that may run on the same kinds, and these kinds."""
    if allowed.all():
        yield np.arange(allowed.shape[0]), np.arange(allowed.shape[1])
        return
    sets, of_job = np.unique(allowed, axis=0, return_inverse=True)
    for number, kinds in enumerate(sets):
        yield np.flatnonzero(of_job.ravel() == number), np.flatnonzero(kinds)


class GangOracle(PricingOracle):
    """Best responses of jobs to prices over intervals that end at `cut`, in slots, rising from 0.

    By default single slots, where there are not too many, else intervals of equal length.
    """

    sense: ClassVar[Literal["max", "min"]] = "min"
    instance: GangInstance
    rows: IntervalRows

    def __init__(self, instance: GangInstance, formulation: str, cut: Ints | None = None) -> None:
        self.instance = instance
        self.formulation = formulation
        self.layout = LAYOUT
        self.kind, self.goal = split_formulation(formulation)
        if cut is None:
            end = max(instance.serial_end, 1)
            pieces = min(end, MOST_PROGRAM_SLOTS)
            cut = np.unique(np.linspace(0, end, pieces + 1).astype(np.int64))
        self.cut = cut if self.goal != "makespan" else np.zeros(1, dtype=np.int64)
        self.rows = IntervalRows(instance, self.cut)

    def on_rows(self, rows: Rows) -> GangOracle:
        """The same oracle on other intervals."""
        assert isinstance(rows, IntervalRows)
        return type(self)(self.instance, self.formulation, rows.cut)

    def on_rows_of_file(self, prices: Any) -> GangOracle:
        """The same oracle on the intervals that a file's prices name."""
        cut = cuts_of(prices, kinds=list(self.instance.gpu_kinds))
        if self.goal == "makespan" and cut.size > 1:
            raise InputError("prices.gpus", prices["gpus"], "must be empty for the makespan")
        return type(self)(self.instance, self.formulation, cut)

    @cached_property
    def blocks(self) -> GangJobs:
        """The jobs' blocks in slots, costs in the objective's unit."""
        return job_blocks(self.instance, self.formulation)

    @cached_property
    def factor(self) -> Floats:
        """GPU-slots of a unit of a pausing job's work, shape (jobs,)."""
        gpus = self.instance.job_gpus
        return (gpus if self.kind == "preemptive" else np.ones_like(gpus)).astype(float)

    def all_responses(
        self, prices: Floats, blocks: GangJobs, factor: Floats, allowed: Bools
    ) -> Any:
        """Starts or completions, values, and GPU-seconds by row, of all blocks given.

        `allowed` says on which kinds each block may run.
        """
        seconds = float(self.instance.slot_seconds)
        table = self.rows.by_kind(prices) * seconds
        use = np.zeros_like(table)
        time, value = np.full(allowed.shape[0], -1), blocks.skip.copy()
        rigid = self.kind == "non-preemptive"
        for members, kinds in patterns(allowed):
            some = GangJobs._make(column[members] for column in blocks)
            if not rigid:
                on, intervals = kinds[table[kinds].argmin(axis=0)], np.arange(table.shape[1])
                time[members], value[members], held = pausing_responses(
                    self.cut, table[on, intervals], some, factor[members]
                )
                use[on, intervals] += held
                continue
            chosen = np.zeros(members.size, dtype=np.int64)
            if kinds.size > 1:
                chosen = np.argmin(
                    [rigid_responses(self.cut, table[k], some)[1] for k in kinds], axis=0
                )
            for number, k in enumerate(kinds):
                on = np.flatnonzero(chosen == number)
                few = GangJobs._make(column[on] for column in some)
                at, worth, held = rigid_responses(self.cut, table[k], few)
                time[members[on]], value[members[on]] = at, worth
                use[k] += held
        return time, value, use.ravel() * seconds

    def soft_responses(self, cut: Ints, prices: Floats, mu: float) -> SoftResponses:
        """Responses of jobs in one piece smoothed by `mu`, at prices per slot on any intervals."""
        blocks, allowed = self.blocks, self.instance.allowed_kinds
        table = np.asarray(prices).reshape(allowed.shape[1], cut.size - 1)
        use, expected = np.zeros_like(table), np.zeros(allowed.shape[0])
        soft, hard = np.zeros((2, allowed.shape[0]))
        for members, kinds in patterns(allowed):
            some = GangJobs._make(column[members] for column in blocks)
            shares = np.ones((kinds.size, members.size))
            if kinds.size > 1:
                values = np.array(
                    [soft_responses(cut, table[k], some, mu, shares[0])[0] for k in kinds]
                )
                least = values.min(axis=0)
                shares = np.exp((least - values) / mu)
                mass = shares.sum(axis=0)
                soft[members], shares = least - mu * np.log(mass), shares / mass
                hard[members] = np.inf
            for k, share in zip(kinds, shares, strict=True):
                worth, best, held, start = soft_responses(cut, table[k], some, mu, share)
                if kinds.size == 1:
                    soft[members] = worth
                    hard[members] = best
                else:
                    hard[members] = np.minimum(hard[members], best)
                use[k] += held
                expected[members] += share * start
        return SoftResponses(float(soft.sum()), float(hard.sum()), use.ravel(), expected)

    def block_values(self, prices: Floats) -> tuple[Floats, Floats]:
        """Values of all jobs and the GPU-seconds that they use by interval."""
        if self.goal == "makespan":
            return np.zeros(self.num_blocks), np.zeros(0)
        allowed = self.instance.allowed_kinds
        _, value, use = self.all_responses(prices, self.blocks, self.factor, allowed)
        return value, use

    def best_response(self, block: int, prices: Floats) -> Response | None:
        """Best schedule of one job; `plan` is its start (pausing kinds: its completion)."""
        job = GangJobs._make(column[block : block + 1] for column in self.blocks)
        only = slice(block, block + 1)
        factor, allowed = self.factor[only], self.instance.allowed_kinds[only]
        time, value, use = self.all_responses(prices, job, factor, allowed)
        rows = np.flatnonzero(use)
        cost = float(value[0] - prices[rows] @ use[rows])
        plan = int(time[0]) if time[0] >= 0 else None
        return Response(float(value[0]), cost, rows, use[rows], plan)

    def outside(self, block: int) -> Response | None:
        """To miss its deadline, where a job pays for nothing else."""
        cost = float(self.blocks.skip[block])
        empty = np.zeros(0, dtype=np.int64)
        return None if math.isinf(cost) else Response(cost, cost, empty, np.zeros(0))

    def prices_from(self, layout: str, rows: Rows, prices: Floats) -> Floats | None:
        """A certificate's prices on these intervals: of each, the one that holds at its start."""
        if layout != self.layout or not isinstance(rows, IntervalRows):
            return None
        known = np.pad(rows.by_kind(prices), ((0, 0), (0, 1)))
        at = np.searchsorted(rows.cut, self.cut[:-1], side="right") - 1
        return np.asarray(known[:, at]).ravel()

    def bound(self, prices: Floats) -> float:
        """Bound at `prices`, rounded outward by what its sums may have cancelled."""
        if self.goal == "makespan":
            return makespan_bound(self.instance, self.kind)
        return super().bound(prices)

    def round_outward(self, terms: Sequence[float], size: float | None = None) -> float:
        """Sum exactly; a running integral of prices is wrong by its size at most."""
        down = super().round_outward(terms, size)
        paid = -sum(term for term in terms[: self.rows.size])  # GPUs x integral of the prices
        width = self.instance.most_gpus if self.kind == "elastic" else self.instance.job_gpus
        share = width / min(self.instance.gpu_kinds.values())
        steps = 4.0 * (self.rows.size + 4) * np.finfo(float).eps
        return float(down - steps * paid * float(share.sum()) * (1 + RELATIVE_ROUNDING))

    def use_of(self, solution: Solution) -> list[Response | None]:
        """GPU-seconds that a solution holds by interval, job by job."""
        assert isinstance(solution, GangSolution)
        rows, seconds = solution.rows, float(self.instance.slot_seconds)
        first = np.maximum(np.searchsorted(self.cut, rows.start, side="right") - 1, 0)
        until = np.minimum(np.searchsorted(self.cut, rows.end), self.cut.size - 1)
        held: list[dict[int, float]] = [{} for _ in self.instance.jobs]
        on = np.zeros(rows.job.size, dtype=np.int64)
        if self.instance.has_kinds:
            on = np.array([kind for *_, kind in self.instance.places])[rows.held.argmax(axis=1)]
        for row, job in enumerate(rows.job.tolist()):
            shift = int(on[row]) * (self.cut.size - 1)
            for k in range(first[row], until[row]):
                begin, end = max(self.cut[k], rows.start[row]), min(self.cut[k + 1], rows.end[row])
                amount = float((end - begin) * rows.gpus[row] * seconds)
                held[job][shift + k] = held[job].get(shift + k, 0.0) + amount
        return [
            Response(cost, cost, np.array([*used], dtype=np.int64), np.array([*used.values()]), 0)
            for cost, used in zip(job_costs(solution), held, strict=True)
        ]


class GangRigidOracle(GangOracle, BranchingOracle):
    """Best responses of jobs in one piece, split by when they complete."""

    def __init__(self, instance: GangInstance, formulation: str, cut: Ints | None = None) -> None:
        super().__init__(instance, formulation, cut)
        self.features = {COMPLETION: ()}
        self.step = objective_step(instance, self.goal)

    def restricted_response(self, block: int, prices: Floats, limits: Limits) -> Response | None:
        """Best start of a job in one piece that completes within limits."""
        low, high = window_of(limits, COMPLETES)
        job = GangJobs._make(column[block : block + 1].copy() for column in self.blocks)
        job.skip[0] = np.inf
        waits = max(0, low - int(job.submit[0] + job.duration[0]))
        job.submit[0] += waits
        job.latest[0] = min(int(job.latest[0]), high)
        only = slice(block, block + 1)
        factor, allowed = self.factor[only], self.instance.allowed_kinds[only]
        time, _, use = self.all_responses(prices, job, factor, allowed)
        if time[0] < 0:
            return None
        rows = np.flatnonzero(use)
        paid = float(prices[rows] @ use[rows])
        cost = float(job.slope[0]) * int(time[0] + waits + job.duration[0] - job.submit[0])
        return Response(cost + paid, cost, rows, use[rows], int(time[0]))

    def features_of(self, block: int, response: Response) -> dict[Feature, int]:
        """The slot in which a job in one piece completes."""
        return {COMPLETES: int(response.plan) + int(self.instance.durations[block])}

    def place(self, responses: Sequence[Response | None]) -> Solution | None:
        """Every job at its start; those that miss their deadlines one after another at the end."""
        if self.instance.names_places:  # a pool's prices do not see on which server
            return None
        starts = [None if each is None else int(each.plan) for each in responses]
        durations = self.instance.durations.tolist()
        spans = zip(starts, durations, strict=True)
        ends = [start + duration for start, duration in spans if start is not None]
        end = max([int(self.instance.submits.max(initial=0)), *ends])
        rows: dict[str, list[Assignment]] = {}
        for job, start, duration in zip(self.instance.jobs, starts, durations, strict=True):
            if start is None:
                start, end = end, end + duration
            rows[job.name] = [{"from": start + 1, "to": start + duration, "gpus": job.gpus}]
        return build_solution(self.instance, rows, self.formulation)


def is_rigid(formulation: str) -> bool:
    """Whether a formulation is of jobs in one piece that prices can tell apart by their starts."""
    kind, goal = split_formulation(formulation)
    return kind == "non-preemptive" and goal != "makespan"


def gang_oracle(instance: GangInstance, formulation: str, cut: Ints | None = None) -> GangOracle:
    """The oracle of a formulation on intervals that end at `cut`."""
    return (GangRigidOracle if is_rigid(formulation) else GangOracle)(instance, formulation, cut)


def job_blocks(instance: GangInstance, formulation: str) -> GangJobs:
    """The jobs' blocks: work, width and cost over time by the formulation."""
    kind, goal = split_formulation(formulation)
    jobs = len(instance.jobs)
    gpus = instance.job_gpus
    most = instance.most_gpus
    if kind == "preemptive":
        gpus = most = np.ones_like(gpus)
    slope = instance.weights * float(instance.slot_seconds)
    latest = np.full(jobs, FOREVER)
    skip = np.full(jobs, np.inf)
    if goal == "deadlines":
        due = instance.deadlines >= 0
        latest = np.where(due, instance.deadlines, latest)
        skip = np.where(due, instance.weights, 0.0)
        slope = np.zeros(jobs)
    return GangJobs(instance.submits, instance.durations, gpus, most, slope, latest, skip)


def objective_step(instance: GangInstance, goal: str) -> Fraction | None:
    """What every objective is a whole multiple of: slots, or missed deadlines, times weights."""
    unit = exactly(instance.slot_seconds) if goal == "completion" else 1
    return common_step(exactly(job.weight) * unit for job in instance.jobs) or None


def job_costs(solution: GangSolution) -> list[float]:
    """What each job of a feasible solution costs in its objective (the makespan: nothing)."""
    instance, ends = solution.instance, solution.completions
    if solution.goal == "deadlines":
        missed = (instance.deadlines >= 0) & (ends > instance.deadlines)
        return (missed * instance.weights).tolist()
    if solution.goal == "makespan":
        return [0.0] * len(instance.jobs)
    spans = ends - instance.submits
    return (spans * instance.weights * float(instance.slot_seconds)).tolist()


def makespan_bound(instance: GangInstance, kind: str) -> float:
    """Lower bound on the last completion in seconds since the trace's start, rounded down.

    From any time r on, the jobs submitted at r or later need their work: ``r + work / GPUs``. Jobs
    that all hold more than ``GPUs / (k + 1)`` run at most k at a time: ``r + durations / k``. No
    job ends before its submission and duration. Elastic jobs have the first of the three, and the
    third with the duration on as many GPUs as they can use.
    """
    order = np.argsort(-instance.submits, kind="stable")
    submit, duration = instance.submits[order], instance.durations[order]
    gpus, work = instance.job_gpus[order], duration * instance.job_gpus[order]
    fastest = -(-work // instance.most_gpus[order]) if kind == "elastic" else duration
    slots = max(
        int((submit + fastest).max(initial=0)), _from_each(submit, work, instance.total_gpus)
    )
    allowed = instance.allowed_kinds[order]
    for k, room in enumerate(instance.gpu_kinds.values()):
        only = allowed[:, k] & (allowed.sum(axis=1) == 1)
        slots = max(slots, _from_each(submit[only], work[only], room))
        # widths are told apart up to 64 jobs side by side
        for parallel in range(1, min(64, room) + 1) if kind != "elastic" else ():
            wide = only & (gpus * (parallel + 1) > room)
            slots = max(slots, _from_each(submit[wide], duration[wide], parallel))
    seconds = slots * exactly(instance.slot_seconds)
    nearest = float(seconds)
    return nearest if nearest <= seconds else math.nextafter(nearest, -math.inf)


def _from_each(submit: Ints, work: Ints, rate: int) -> int:
    """Latest of ``r + work submitted at r or later / rate``; submissions fall."""
    return int((submit + -(-np.cumsum(work) // rate)).max(initial=0))
