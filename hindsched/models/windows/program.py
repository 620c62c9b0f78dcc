"""What the offline programs, the subproblems and the duals of both families do alike.

The duals are those of problems (8)/(17) of batchsched and (5) of astraea over whole schedules. A
schedule of a job is one window with one placement that satisfies everything but the capacities:
here all of them are listed, so this is for small clusters. (8)/(17) is a round's: every job may
start in slot 1, and a schedule that ends in time is worth the job's weight. In (5) a schedule is
worth its revenue. Payoffs are u of (9)/(18) and mu of (6), prices delta and eta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.modes import WindowInstance
from hindsched.models.algebra import Expr, Model, RowKey, use_by_cell
from hindsched.models.base import Duals, OfflineProgram, Prices, Subproblem, Terms, row_prices
from hindsched.models.declared import DeclarativeProgram
from hindsched.models.schedule_dual import Priced, ScheduleDual, schedule_dual
from hindsched.models.windows.block import Family, ModesJob, ProgramJob, equation
from hindsched.models.windows.sets import Column, Spans, WindowJobSets, host_use, sets_by_job
from hindsched.solutions.base import Solution
from hindsched.solutions.capacity_timeline import CapacityTimeline
from hindsched.solutions.window_solution import WindowRow, merge_rows

Planned = TypeVar("Planned", bound=Solution)


@dataclass(kw_only=True, eq=False, repr=False)
class WindowNames(DeclarativeProgram):
    """Servers, resources and types read by their names."""

    family: Family

    def name_of(self, index: str, place: int) -> str | None:
        names = self.family.names.get(index, ())
        return names[place] if 0 <= place < len(names) else None


@dataclass(kw_only=True, eq=False, repr=False)
class WindowProgram(WindowNames, OfflineProgram[Planned]):
    """The offline program of jobs in one window, or that of one of their rounds."""

    fixed: Mapping[str, Sequence[WindowRow]]  # rows of the jobs that can no longer change
    slots: int  # last slot
    blocks: Mapping[int, ProgramJob]

    def extract(self) -> Planned:
        rows = {j: block.read() for j, block in self.blocks.items()}
        solution: Planned = self.family.solution_of(
            self.instance, rows, self.formulation, self.fixed
        )
        return solution

    def load(self, solution: Planned) -> None:
        for j, block in self.blocks.items():
            name = self.instance.jobs[j].name
            block.write(_complete_rows(solution, name))

    def capacity_prices(self, duals: Duals) -> dict[str, Floats]:
        """Duals of the capacity rows as prices, by their name, shape (servers, kinds, slots)."""
        by_name, servers = dict[str, Floats](), len(self.family.cluster.server_capacity)
        objective = next(self.model.component_data_objects(pyo.Objective, active=True))
        sign = 1 if objective.sense == pyo.maximize else -1
        for name, number, _, kinds in self.family.capacities:
            prices = np.zeros((servers, len(kinds), self.slots))
            rows = self.model.component(f"eq_{number}")
            for (h, r, t), price in row_prices(rows, duals, sign).items():
                prices[h, r, t - 1] = price
            by_name[name] = prices
        return by_name


def _complete_rows(solution: Any, name: str) -> Sequence[WindowRow]:
    """A completed job's rows, as one window."""
    if solution.completion(name) is None:
        return ()
    rows = merge_rows(replace(row, payment=None) for row in solution.rows[name])
    if len(rows) > 1:
        raise InputError("incumbent", name, "must run in one window on one placement")
    return rows


def add_blocks(
    model: Model, family: Family, sets: Mapping[int, WindowJobSets], relax: bool = False
) -> dict[int, ModesJob]:
    """Add the jobs' blocks."""
    model.job = pyo.Block(list(sets))
    return {j: ModesJob(model.job[j], family, job_sets, relax) for j, job_sets in sets.items()}


def add_capacity_rows(
    model: Model,
    family: Family,
    blocks: Mapping[int, ModesJob],
    free: CapacityTimeline[Floats],
) -> dict[RowKey, list[Expr]]:
    """What all jobs use of a server's resource in a slot is what is free there; return the use."""
    used = use_by_cell(use for block in blocks.values() for use in block.uses())
    for _, number, doc, kinds in family.capacities:

        @equation(model, number, doc, [(h, r - kinds[0], t) for h, r, t in used if r in kinds])
        def fits(_: Model, h: int, r: int, t: int, first: int = kinds.start) -> Expr:
            return total(used[h, first + r, t]) <= float(free.at(t)[h, first + r])

    return used


@dataclass(kw_only=True, eq=False, repr=False)
class WindowSubproblem(WindowNames, Subproblem):
    """One job's best schedule at prices: its block with mutable prices and what is left."""

    slots: int  # that have prices; what lies behind them cannot be used
    block: ModesJob

    def set(self, prices: Prices, room: Prices | None = None) -> None:
        """Set prices and what is left, by the capacities' names, shape (servers, kinds, slots)."""
        names = [capacity.name for capacity in self.family.capacities]
        price = np.concatenate([prices[name] for name in names], axis=1).tolist()
        left = np.repeat(self.family.cluster.server_capacity[:, :, None], self.slots, axis=2)
        if room is not None:
            left = np.concatenate([room[name] for name in names], axis=1)
        free = left.tolist()
        for h, r, t in self.model.price:
            self.model.price[h, r, t].set_value(price[h][r][t - 1])
            self.model.room[h, r, t].set_value(free[h][r][t - 1])

    def ties(self) -> Iterator[Terms]:
        """The end, the mode, workers beside PSs on the first servers; then where the others are."""
        chosen, job = self.block.block.u, self.block.job

        def rank(column: Column) -> tuple[int, ...]:
            mode, _, host, beside = column
            return job.last_slot(column), self.rank_of(mode), mode, host, -beside

        yield [(chosen[column], at) for at, column in enumerate(sorted(chosen, key=rank))]
        yield [(units, server) for (_, _, _, server), units in self.block.block.y.items()]

    def rank_of(self, mode: int) -> int:
        """Which of modes that end together comes first: that with fewer workers."""
        return self.block.job.modes[mode].workers

    def extract(self) -> Any:
        rows = {self.position: self.block.read()}
        return self.family.solution_of(self.instance, rows, self.formulation)


def subproblem_model(
    position: int, family: Family, job: WindowJobSets, once: str, fits: str
) -> tuple[Model, ModesJob, dict[RowKey, list[Expr]], Expr]:
    """A job's block with mutable prices and room; `once`: it runs, `fits`: it fits, their numbers.

    Also what it uses by cell, and what it pays for that.
    """
    model = pyo.ConcreteModel(name=family.cluster.jobs[position].name)
    block = add_blocks(model, family, {position: job})[position]
    used = use_by_cell(block.uses())
    capacity = {cell: float(family.cluster.server_capacity[cell[:2]]) for cell in used}
    model.price = pyo.Param(list(used), mutable=True, initialize=0.0, within=pyo.Reals)
    model.room = pyo.Param(list(used), mutable=True, initialize=capacity, within=pyo.Reals)

    @equation(model, once, "the job runs")
    def runs(_: Model) -> Expr:
        return block.once()

    @equation(model, fits, "what runs fits in what is left of its server", list(used))
    def left(m: Model, h: int, r: int, t: int) -> Expr:
        return total(used[h, r, t]) <= m.room[h, r, t]

    paid = total(model.price[cell] * total(taken) for cell, taken in used.items())
    return model, block, used, paid


class ListedSchedule(NamedTuple):
    """What a schedule of a job is worth, and what it uses, (servers, resources, slots)."""

    job: int
    worth: float
    use: Floats


@dataclass(kw_only=True, eq=False, repr=False)
class WindowDual(WindowNames, ScheduleDual):
    """A dual with the rows of all schedules."""

    LETTERS: ClassVar[tuple[str, ...]] = ("price",)
    """Of the prices, by set of capacities."""

    listed: list[ListedSchedule] = field(default_factory=list)


def splits(count: int, room: Sequence[int]) -> list[tuple[int, ...]]:
    """All ways to put `count` workers on servers with this room."""
    if not room:
        return [()] if count == 0 else []
    return [
        (here, *rest)
        for here in range(min(room[0], count) + 1) for rest in splits(count - here, room[1:])
    ]  # fmt: skip


def schedules(
    instance: WindowInstance, spans: Spans, worth: Callable[[int, int], float], slots: int
) -> Iterator[ListedSchedule]:
    """All schedules: the jobs' columns, with every way to place the workers beside no PS.

    `worth` gives a job's value by its last slot.
    """
    for j, job in sets_by_job(instance, spans).items():
        for column in job.columns:
            k, first, n, g = column
            mode, last = job.modes[k], job.last_slot(column)
            worker = instance.worker_demand[mode.worker_type]
            on_host = np.zeros_like(instance.server_capacity)
            if n >= 0:
                on_host[n] = host_use(instance, mode, g)
            room = instance.worker_room[:, mode.worker_type].tolist()
            for split in splits(mode.workers - g, [0 if h == n else m for h, m in enumerate(room)]):
                use = np.zeros((*on_host.shape, slots))
                use[:, :, first - 1 : last] = (on_host + np.outer(split, worker))[:, :, None]
                yield ListedSchedule(j, float(worth(j, last)), use)


def build_schedule_dual(
    kind: type[WindowDual], family: Family, formulation: str, row: str, spans: Spans,
    worth: Callable[[int, int], float], slots: int, whose: str,
) -> Any:  # fmt: skip
    """The dual of a `kind` with its rows."""
    priced = dict[str, Priced]()
    for letter, part in zip(kind.LETTERS, family.capacities, strict=True):
        capacity = family.cluster.server_capacity[:, list(part.kinds)]
        priced[part.name] = Priced(letter, "a server's resource", capacity, np.ones_like(capacity))
    dual = schedule_dual(
        kind, family.cluster, row.rstrip("a"), row, "payoff", priced, slots,
        formulation=formulation, family=family, whose=whose,
        listed=list(schedules(family.cluster, spans, worth, slots)),
    )  # fmt: skip
    for job, value, use in dual.listed:
        dual.add_row(job, value, family.by_name(use))
    return dual
