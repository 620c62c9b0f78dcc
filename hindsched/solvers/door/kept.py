"""A program that is kept for a run: one HiGHS object, to which jobs come as columns and rows.

A job's part of the family's offline program is declared in Pyomo and compiled once, when the job
arrives: its own rows and columns are appended, and its entries in the rows that link the jobs. What
is decided is fixed by bounds, capacities are right sides, and the basis of the last solve stays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC
from scipy.sparse import csc_array, csr_array

from hindsched.arrays import Bools, Floats, Ints
from hindsched.errors import SolveFailed
from hindsched.instances.base import Instance, JobRecord
from hindsched.models import base
from hindsched.solutions.base import Assignment, build_solution
from hindsched.solvers.door.highs import Stop
from hindsched.solvers.door.result import Status
from hindsched.solvers.door.standard_form import LinearProgram, compile_program
from hindsched.solvers.door.work import count_work, interrupted

Link = tuple[str, Any, int]
"""A row or column that links jobs: its component's name, its index, and 1 for a second side."""
BuildPart = Callable[[Instance], base.OfflineProgram]
"""Builds the offline program of a cluster with one job."""
STATUS = {
    highspy.HighsModelStatus.kOptimal: Status.OPTIMAL,
    highspy.HighsModelStatus.kModelEmpty: Status.OPTIMAL,
    highspy.HighsModelStatus.kInfeasible: Status.INFEASIBLE,
    highspy.HighsModelStatus.kUnboundedOrInfeasible: Status.INFEASIBLE,
    highspy.HighsModelStatus.kIterationLimit: Status.NO_SOLUTION,
    highspy.HighsModelStatus.kInterrupt: Status.NO_SOLUTION,
}
SIMPLEX = {"presolve": "off", "solver": "simplex"}
"""Of relaxations: the basis of the last solve is worth more than presolve."""


@dataclass(eq=False)
class CompiledBlock:
    """A job's part of the program."""

    program: base.OfflineProgram  # of the job alone
    compiled: LinearProgram
    columns: Ints  # where each of its columns stands in the kept program
    own: Bools  # of its columns, those that no other job shares
    rows: Ints  # where each of its rows stands
    linking: Ints  # positions of those that link jobs


class KeptProgram:
    """A growing program in one HiGHS object.

    Parameters
    ----------
    build : callable
        The offline program of a cluster with one job: always in the same form, over the same slots.
    cluster : Instance
        The cluster; its jobs are not looked at.
    last : int
        Last slot of the program.
    iterations : int, optional
        Simplex iterations a solve.
    """

    def __init__(
        self, build: BuildPart, cluster: Instance, last: int, *, iterations: int | None = None
    ) -> None:
        self.cluster, self.last, self._build = cluster.with_jobs(()), last, build
        self._models = base.family_models(cluster.family)
        self.parts: dict[str, CompiledBlock] = {}
        self._pricing: list[CompiledBlock] = []  # which brought the linking rows
        self._slots = np.zeros(0, dtype=np.int64)  # of linking rows; 0: no such row
        self._sides = np.zeros((2, 0))  # of rows, as they are declared
        self._used = np.zeros(0)  # of linking rows, by fixed columns
        self._rows: dict[Link, int] = {}
        self._columns: dict[Link, int] = {}
        self._offset, self._sign = 0.0, 1
        self._stop = Stop(interrupted())
        self._highs = highspy.Highs()
        limit = {} if iterations is None else {"simplex_iteration_limit": iterations}
        for name, value in {"output_flag": False, "threads": 1, **SIMPLEX, **limit}.items():
            if self._highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
                raise SolveFailed(f"HiGHS {self._highs.version()} refuses {name} = {value}")
        self._stop.listen(self._highs)

    @classmethod
    def relaxation(
        cls, cluster: Instance, formulation: str, *, last: int | None = None,
        iterations: int | None = None,
    ) -> KeptProgram:  # fmt: skip
        """The linear relaxation of a family's offline program, identical servers added up.

        Jobs may wait until slot `last`, by default the horizon.
        """
        models, last = base.family_models(cluster.family), last or cluster.horizon
        settings = dict(models.aggregated)
        waits = base.ScenarioPolicy(base.ALONE, last) if models.decisions else None
        if waits is not None:
            settings["policy"] = waits

        def build(instance: Instance) -> base.OfflineProgram:
            return base.offline_program(instance, formulation, relax=True, **settings)

        return cls(build, cluster, last, iterations=iterations)

    def add(self, job: JobRecord) -> CompiledBlock:
        """Declare, compile and append a job's part."""
        with PauseGC():  # nothing is garbage yet
            program = self._build(self.cluster.with_jobs((job,)))
            compiled = compile_program(program.model)
        own_rows = _links(compiled.rows, program, self._models.linking)
        own_columns = _links(compiled.columns, program, self._models.shared)
        old_rows, old_columns = self._highs.getNumRow(), self._highs.getNumCol()
        columns, new_columns = _places(own_columns, self._columns, old_columns)
        rows, new_rows = _places(own_rows, self._rows, old_rows)
        matrix = csr_array(compiled.matrix)
        self._add_columns(compiled, matrix, rows < old_rows, rows, new_columns)
        self._add_rows(compiled, matrix, columns, new_rows)
        slots = np.array([0 if link is None else self._slot_of(link) for link in own_rows], int)
        self._slots = np.append(self._slots, slots[new_rows])
        sides = np.array([compiled.row_lower[new_rows], compiled.row_upper[new_rows]])
        self._sides = np.append(self._sides, sides, axis=1)
        self._used = np.append(self._used, np.zeros(int(new_rows.sum())))
        self._offset += compiled.offset
        self._sign = compiled.sign
        linking = np.flatnonzero(slots)
        own = np.array([link is None for link in own_columns], dtype=bool)
        part = self.parts[job.name] = CompiledBlock(program, compiled, columns, own, rows, linking)
        if new_rows[linking].any():
            self._pricing.append(part)
        return part

    def _add_columns(
        self, compiled: LinearProgram, matrix: csr_array, stands: Bools, rows: Ints, new: Bools
    ) -> None:
        """New columns, with their entries in rows that stand already."""
        entries = csc_array(matrix[stands][:, new])
        at = rows[stands][entries.indices].astype(np.int32)
        count = int(new.sum())
        self._check(self._highs.addCols(
            count, compiled.cost[new], compiled.lower[new], compiled.upper[new], entries.nnz,
            entries.indptr[:-1].astype(np.int32), at, entries.data.astype(float),
        ))  # fmt: skip
        if compiled.integer[new].any():
            first = self._highs.getNumCol() - count
            whole = first + np.flatnonzero(compiled.integer[new]).astype(np.int32)
            kinds = np.full(whole.size, highspy.HighsVarType.kInteger)
            self._check(self._highs.changeColsIntegrality(whole.size, whole, kinds))

    def _add_rows(
        self, compiled: LinearProgram, matrix: csr_array, columns: Ints, new: Bools
    ) -> None:
        """New rows, with all their entries."""
        entries = csr_array(matrix[new])
        self._check(self._highs.addRows(
            int(new.sum()), compiled.row_lower[new], compiled.row_upper[new], entries.nnz,
            entries.indptr[:-1].astype(np.int32), columns[entries.indices].astype(np.int32),
            entries.data.astype(float),
        ))  # fmt: skip

    def scale_capacities(self, shares: Floats) -> None:
        """Multiply what is not fixed of the capacities by a share of each slot, shape (slots,)."""
        rows = np.flatnonzero(self._slots)
        if not rows.size:
            return
        factors = shares[np.minimum(self._slots[rows], shares.size) - 1]
        used = self._used[rows]
        lower, upper = used + factors * (self._sides[:, rows] - used)
        self._check(self._highs.changeRowsBounds(rows.size, rows.astype(np.int32), lower, upper))

    def _slot_of(self, link: Link) -> int:
        index = link[1]
        return int(index[self._models.linking_slot] if isinstance(index, tuple) else index)

    def fix(self, job: str, rows: list[Assignment]) -> None:
        """Fix a job's own columns at what its rows of a solution file say; no costs are shared."""
        part = self.parts[job]
        alone, formulation = part.program.instance, part.program.formulation
        part.program.load(build_solution(alone, {job: rows} if rows else {}, formulation))
        values = np.array([float(v.value or 0.0) for v in part.compiled.columns])
        columns, own = part.columns[part.own].astype(np.int32), values[part.own]
        self._check(self._highs.changeColsBounds(columns.size, columns, own, own))
        use = part.compiled.matrix @ values
        self._used[part.rows[part.linking]] += use[part.linking]

    def solve(self) -> Status:
        """Solve from the last basis: optimal, infeasible, or no solution where a limit ended it."""
        count_work()
        self._stop.after(None)
        self._highs.run()
        status = self._highs.getModelStatus()
        if status not in STATUS:
            text = self._highs.modelStatusToString(status)
            raise SolveFailed(f"the kept program ended with {text}")
        return STATUS[status]

    @property
    def objective(self) -> float:
        """Value of the last optimum."""
        value = self._highs.getInfo().objective_function_value + self._offset
        return self._sign * float(value)

    def capacity_prices(self) -> dict[str, Floats]:
        """Duals of the capacities by the oracle's row sets, as `OfflineProgram.capacity_prices`.

        A set without a positive dual may be absent.
        """
        values = self._sign * np.array(self._highs.getSolution().row_dual)
        prices: dict[str, Floats] = {}
        for part in self._pricing:
            priced = part.linking[values[part.rows[part.linking]] != 0.0].tolist()
            if not priced:
                continue
            duals = pyo.ComponentMap(
                (part.compiled.rows[at], float(values[part.rows[at]])) for at in priced
            )
            for name, array in part.program.capacity_prices(duals).items():
                prices[name] = _highest(prices.get(name, array), array)
        return prices

    def job_prices(self, job: str) -> dict[str, Floats]:
        """Duals of a job's own rows, by the row sets of the oracle over this job alone."""
        part = self.parts[job]
        duals = self._sign * np.array(self._highs.getSolution().row_dual)[part.rows]
        by_row = pyo.ComponentMap(zip(part.compiled.rows, duals.tolist(), strict=True))
        return part.program.capacity_prices(by_row)

    def _check(self, status: Any) -> None:
        if status == highspy.HighsStatus.kError:
            raise SolveFailed(f"HiGHS {self._highs.version()} refuses a part of the kept program")


def _highest(left: Floats, right: Floats) -> Floats:
    """The larger of two arrays of prices, the shorter one 0 in further slots (the last axis)."""
    if left.shape[-1] < right.shape[-1]:
        left, right = right, left
    highest = left.copy()
    span = highest[..., : right.shape[-1]]
    np.maximum(span, right, out=span)
    return highest


def _links(items: Any, program: base.OfflineProgram, names: Collection[str]) -> list[Link | None]:
    """What links jobs, by row or column of a job's part; None for what is the job's own."""
    links: list[Link | None] = []
    seen: dict[tuple[str, Any], int] = {}
    for item in items:
        parent = item.parent_component()
        if parent.parent_block() is not program.model or parent.local_name not in names:
            links.append(None)
            continue
        key = parent.local_name, item.index()
        seen[key] = seen.get(key, -1) + 1
        links.append((*key, seen[key]))
    return links


def _places(links: list[Link | None], known: dict[Link, int], first: int) -> tuple[Ints, Bools]:
    """Where rows or columns stand in the kept program, and which are new; learns new links."""
    places, new = np.empty(len(links), dtype=np.int64), np.zeros(len(links), dtype=bool)
    for at, link in enumerate(links):
        if link is not None and link in known:
            places[at] = known[link]
            continue
        places[at], new[at] = first, True
        if link is not None:
            known[link] = first
        first += 1
    return places, new
