"""What the offline programs and the subproblems of both families do alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.models.base import PRINTED, Duals, OfflineProgram
from hindsched.models.windows.block import Expr, JobBlock
from hindsched.models.windows.printed import Paper, PrintedSets, read_window, write_window
from hindsched.models.windows.sets import Cell, WindowCluster
from hindsched.solutions.base import Solution
from hindsched.solutions.window_row import WindowRow

Planned = TypeVar("Planned", bound=Solution)
SLOTS = "slots"
"""The one form of jobs in pieces."""


class Printed(NamedTuple):
    """The printed program of a family: its sets, and the way to and from schedules."""

    sets: PrintedSets
    paper: Paper
    read_span: Callable[[Any, PrintedSets, int], tuple[int, int] | None]
    write_own: Callable[[Any, PrintedSets, int, WindowRow], None]


@dataclass(kw_only=True, eq=False, repr=False)
class WindowProgram(OfflineProgram[Planned]):
    """The offline program of a family whose jobs run in one window, or that of one of its rounds.

    Parameters
    ----------
    cluster : WindowCluster
        The servers as the rules see them.
    fixed : dict
        Rows of the jobs that can no longer change.
    blocks : dict
        Blocks of the open jobs by position, in the forms ``modes`` and ``slots``.
    printed : Printed, optional
        What stands in their place in the form ``printed``.
    """

    SOLUTION: ClassVar[Callable[..., Any]]
    ROW: ClassVar[Callable[..., Any]]

    cluster: WindowCluster
    fixed: Mapping[str, Sequence[WindowRow]]
    blocks: dict[int, JobBlock] = field(default_factory=dict)
    printed: Printed | None = None

    def extract(self) -> Planned:
        """Solution at the variables' present values."""
        windows = {j: block.read(self.cluster) for j, block in self.blocks.items()}
        if self.printed is not None:
            sets, paper, read_span, _ = self.printed
            spans = {j: read_span(self.model, sets, j) for j in sets.jobs}
            windows = {
                j: [read_window(self.model, sets, paper, j, *span)]
                for j, span in spans.items() if span
            }  # fmt: skip
        names = [job.name for job in self.instance.jobs]
        found = {
            names[j]: tuple(type(self).ROW(*window) for window in own)
            for j, own in windows.items() if own
        }  # fmt: skip
        made: Planned = type(self).SOLUTION(
            self.instance, {**self.fixed, **found}, self.formulation
        )
        return made

    def load(self, solution: Planned) -> None:
        """Set the variables from a solution: a start for the solver."""
        in_pieces = self.form == SLOTS
        if self.form == PRINTED:
            for variable in self.model.component_data_objects(pyo.Var):
                variable.set_value(0, skip_validation=True)
        for j in self.blocks if self.printed is None else self.printed.sets.jobs:
            rows = complete_rows(solution, self.instance.jobs[j].name, in_pieces)
            if self.printed is None:
                self.blocks[j].write(self.cluster, rows)
            elif rows:
                sets, paper, _, write_own = self.printed
                write_window(self.model, sets, paper, j, rows[0])
                write_own(self.model, sets, j, rows[0])


def complete_rows(solution: Any, name: str, in_pieces: bool) -> Sequence[WindowRow]:
    """A completed job's rows, as one window unless its slots need not touch."""
    rows: Sequence[WindowRow] = solution.rows.get(name, ())
    if solution.completion(name) is None:
        return ()
    if in_pieces or len(rows) == 1:
        return rows
    first, last = rows[0], rows[-1]
    if not all(row.same_placement(first) for row in rows):
        raise InputError("incumbent", name, "must keep its placement")
    return [
        WindowRow(first.first, last.last, first.worker_type, first.ps_type, first.workers, first.ps)
    ]


def prices_of(rows: Any, duals: Duals, shape: tuple[int, ...], sign: int) -> Floats:
    """Duals of capacity rows (server, kind, slot) as prices, never negative.

    `sign` is 1 where more capacity raises the objective, -1 where it lowers it.
    """
    found = np.zeros(shape)
    for (h, r, t), row in rows.items():
        found[h, r, t - 1] = max(0.0, sign * duals.get(row, 0.0))
    return found


def add_prices(model: Any, used: Mapping[Cell, Sequence[Expr]], capacity: Floats) -> Expr:
    """Mutable prices and what is left of the servers, for a subproblem; return what is paid."""
    whole = {cell: float(capacity[cell[:2]]) for cell in used}
    model.price = pyo.Param(list(used), mutable=True, initialize=0.0, within=pyo.Reals)
    model.room = pyo.Param(list(used), mutable=True, initialize=whole, within=pyo.Reals)
    return pyo.quicksum(model.price[cell] * pyo.quicksum(taken) for cell, taken in used.items())


def set_prices(model: Any, price: Floats, left: Floats) -> None:
    """Set a subproblem's prices and what is left, both of shape (servers, resources, slots)."""
    prices, room = price.tolist(), left.tolist()
    for h, r, t in model.price:
        model.price[h, r, t].set_value(prices[h][r][t - 1])
        model.room[h, r, t].set_value(room[h][r][t - 1])
