"""The linear program of a scenario of oasis: completions, workers split over them, units by group.

A job of oasis runs its work and no more, or less where it may be given up (`kernel.oasis`); rows
of capacity have prices, and units of a job on a group, within the integer packings of servers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from hindsched.analysis.foresight.certificates import ScenarioLP, Window
from hindsched.kernel import oasis
from hindsched.kernel.trees import NEVER
from hindsched.models.base import RUN
from hindsched.models.oasis.ends import lines_below
from hindsched.solvers.families.oasis.packing import find_patterns

STEPS_A_WINDOW = 30  # of the kernel's search, which are as long as its look at one window


class _Columns:
    """Columns of jobs one by one, and rows of three kinds."""

    def __init__(self) -> None:
        self.listed = list[tuple[Window, float, int, int, float]]()
        self.cells = {kind: list[tuple[int, int, float]]() for kind in ("used", "equal", "inner")}
        self.rows = {kind: dict[Any, float]() for kind in self.cells}  # right sides
        self.places = {kind: dict[Any, int]() for kind in self.cells}

    def add(
        self, window: Window, most: float, cost: float = 0.0, at: int = -1, end: int = NEVER
    ) -> int:
        """A column."""
        self.listed.append((window, cost, at, end, most))
        return len(self.listed) - 1

    def row(self, kind: str, key: Any, right: float, parts: Iterable[tuple[int, float]]) -> None:
        """More of a row."""
        place = self.places[kind].setdefault(key, len(self.places[kind]))
        self.rows[kind][key] = right
        self.cells[kind] += [(place, column, amount) for column, amount in parts if amount]

    def matrix(self, kind: str) -> Any:
        """The rows of a kind."""
        shape, cells = (len(self.rows[kind]), len(self.listed)), self.cells[kind]
        rows, columns, amounts = zip(*cells, strict=True) if cells else ((), (), ())
        return sp.csr_array((amounts, (rows, columns)), shape)


def scenario_lp(problem: oasis.Problem, weight: float, policies: str, last: int) -> ScenarioLP:
    """Jobs of oasis as its kernel has them online, on groups of servers, relaxed."""
    rows, columns, steps = oasis.OasisPricing(problem.instance, False), _Columns(), 0
    for at, job in enumerate(rows.jobs.values()):
        _add_job(columns, rows, at, job, policies == RUN, weight)
        steps += (rows.horizon + 1 - job.arrival) * job.work * job.most
    _add_patterns(columns, rows)
    windows, cost, jobs, ends, most = map(list, zip(*columns.listed, strict=True))
    used, equal, inner = (np.array(list(sides.values())) for sides in columns.rows.values())
    return ScenarioLP(
        windows, np.array(cost), np.array(jobs), np.array(ends), np.array(most),
        list(columns.rows["used"]), used, columns.matrix("used"), columns.matrix("equal"), equal,
        columns.matrix("inner"), inner, steps // STEPS_A_WINDOW + 1,
    )  # fmt: skip


def _add_job(
    columns: _Columns, rows: oasis.OasisPricing, at: int, job: Any, may_give_up: bool, weight: float
) -> None:
    """A job's completions, workers split over these, units by group."""
    alone, horizon = (at, NEVER, NEVER), rows.horizon
    soonest = job.arrival - 1 - (-job.work // job.most) if job.most else NEVER
    u = {e: columns.add((at, e, e, "completion"), 1, -weight * float(job.value(e).low), at, e)
         for e in range(soonest, horizon + 1)}  # fmt: skip
    u[NEVER] = columns.add(alone, 1, 0.0, at)
    columns.row("equal", at, 1.0, [(column, 1.0) for column in u.values()])
    if len(u) == 1 and not (may_give_up and job.most):
        return
    widest = min(job.most, job.work)
    n = {(e, t): columns.add(alone, widest) for e in u if e < NEVER or may_give_up
         for t in range(job.arrival, min(e, horizon) + 1)}  # fmt: skip
    for e, column in u.items():
        parts = [(n[e, t], 1.0) for t in range(job.arrival, horizon + 1) if (e, t) in n]
        if e < NEVER:
            columns.row("equal", (at, e), 0.0, [*parts, (column, -job.work)])
            columns.row("inner", (at, e), 0.0, [(column, 1.0), (n[e, e], -1.0)])
        else:
            columns.row("inner", (at, e), 0.0, [*parts, (column, 1.0 - job.work)])
    for (e, t), column in n.items():
        columns.row("inner", (at, e, t), 0.0, [(column, 1.0), (u[e], -widest)])
    lines = lines_below(np.array([job.needed(k) for k in range(job.most + 1)]))
    for t in range(job.arrival, horizon + 1):
        running = [e for e in u if (e, t) in n]
        units = dict[str, list[int]]()
        for side in oasis.SIDES:
            units[side] = []
            for group, (number, capacity) in rows.groups[side].items():
                room = number * job.fit(side, capacity)
                window = (at, t, t, "workers") if side == "worker" else alone
                column = columns.add(window, room)
                units[side].append(column)
                places = f"{side}_units", ("group", group), ("job", job.name)
                columns.row("used", (places, t), 0.0, [(column, 1.0)])
                for resource, amount in job.demand[side].items():
                    key = (f"{side}_capacity", ("group", group), ("resource", resource)), t
                    have = float(number * capacity.get(resource, 0))
                    columns.row("used", key, have, [(column, float(amount))])
        workers = [(n[e, t], -1.0) for e in running]
        columns.row(
            "equal", (at, "workers", t), 0.0, [*((y, 1.0) for y in units["worker"]), *workers]
        )
        for slope, none in lines:
            parts = [*((n[e, t], slope) for e in running), *((u[e], none) for e in running)]
            parts += [(z, -1.0) for z in units["ps"]]
            columns.row("inner", (at, "ps", t, slope), 0.0, parts)


def _add_patterns(columns: _Columns, rows: oasis.OasisPricing) -> None:
    """Units of jobs within the integer packings of servers, where these are few."""
    resources = rows.instance["resources"]
    groups = [(side, *item) for side in oasis.SIDES for item in rows.groups[side].items()]
    for side, group, (number, capacity) in groups:
        for t in range(1, rows.horizon + 1):
            here = f"{side}_units", ("group", group)
            keys = {(*here, ("job", name)): job for name, job in rows.jobs.items()}
            column_keys = {
                key: job for key, job in keys.items() if (key, t) in columns.rows["used"]
            }
            demand = np.array([[float(job.demand[side].get(r, 0)) for r in resources]
                               for job in column_keys.values()])  # fmt: skip
            size = np.array([float(capacity.get(r, 0)) for r in resources])
            patterns = (
                find_patterns(size, demand, [job.most for job in column_keys.values()])
                if column_keys
                else ()
            )
            if patterns is None:  # no bound on units
                for key in column_keys:
                    columns.row("used", (key, t), 1e6, [])
            for pattern in patterns or ():
                column = columns.add((0, NEVER, NEVER), number)
                columns.row("inner", (side, group, t), number, [(column, 1.0)])
                for key, units in zip(column_keys, pattern, strict=True):
                    columns.row("used", (key, t), 0.0, [(column, -float(units))])
