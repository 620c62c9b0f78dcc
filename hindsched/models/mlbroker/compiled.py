"""CVXPY's own canonical data of one job's program, repeated for all jobs of a slot.

CVXPY canonicalises a program with Parameters once: afterwards its cone program is an affine map of
their values. `Template` keeps that map of `RegularisedSlot` with *one* job; `Template.repeat` gives
the cone program of any number of jobs by applying the map to all of their values at once. What
belongs to a job (variables, rows) stands once a job, what its slot shares (the bill) once, and
every job adds its part to the linking rows. Whatever the values hold at 0, as a closed connection,
then leaves the program.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from hindsched.arrays import Bools, Floats, Ints
from hindsched.errors import SolveFailed
from hindsched.models.mlbroker.slot_program import Price, RegularisedSlot, Switching, Values

ZERO, NONNEGATIVE, EXPONENTIAL = range(3)


@dataclass(frozen=True)
class ConeProgram:
    """``min cost.x`` over ``matrix x + s = side`` with s in a product of cones.

    ``columns`` are of each variable's entries by name, (jobs or 1, size); -1 if held at 0.
    """

    cost: Floats  # weighted USD, (n,)
    matrix: sp.csc_array  # rows by cone: zero, non-negative, exponential; (m, n)
    side: Floats  # (m,)
    heights: tuple[int, int, int]  # rows of each cone; of the exponential one in threes
    bounded: Bools  # which x are non-negative, (n,); there are no rows for that
    columns: dict[str, Ints]

    def values(self, point: Floats, name: str) -> Floats:
        """A variable's values at a point, (jobs or 1, size)."""
        at = self.columns[name]
        found: Floats = np.where(at < 0, 0.0, point[at])
        return found

    def violation(self, point: Floats) -> float:
        """Worst violation of the linear rows and bounds, relative to 1 + the right side."""
        linear = self.heights[ZERO] + self.heights[NONNEGATIVE]
        off = (self.matrix @ point - self.side)[:linear]
        off[: self.heights[ZERO]] = np.abs(off[: self.heights[ZERO]])
        worst = (off / (1.0 + np.abs(self.side[:linear]))).max(initial=0.0)
        return float(max(worst, -point[self.bounded].min(initial=0.0)))


class Template:
    """The compiled program of one job and its slot."""

    def __init__(self, program: RegularisedSlot) -> None:
        assert program.problem.is_dpp(), "every number of a slot is a Parameter"
        for parameter in program.problem.parameters():
            parameter.value = np.zeros(parameter.shape)
        data, _, _ = program.problem.get_problem_data(cp.CLARABEL)
        compiled, dims = data[cp.settings.PARAM_PROB], data["dims"]
        height, width = data["A"].shape
        self._first = {
            parameter.name(): compiled.param_id_to_col[parameter.id]
            for parameter in compiled.parameters
        }
        self._columns = {
            compiled.id_to_var[key].name(): np.arange(at, at + compiled.id_to_var[key].size)
            for key, at in compiled.var_id_to_col.items()
        }
        self._cost = sp.csr_array(compiled.q)[:width]
        tensor = sp.csr_array(compiled.A)  # a row for every entry of [-A b], column by column
        entry = np.flatnonzero(np.diff(tensor.indptr[: height * width + 1]))
        self._row, self._column = entry % height, entry // height
        self._entries, self._side = -tensor[entry], tensor[height * width :]
        self._cone = np.repeat(range(3), [dims.zero, dims.nonneg, 3 * dims.exp])
        self._own_column = np.ones(width, dtype=bool)
        if program.bill is not None:
            for variable in (program.bill.used, program.bill.bill):
                self._own_column[self._columns[variable.name()]] = False
        # a row is shared if its slot's variables stand in it, as in all rows of the bill
        self._own_row = np.ones(height, dtype=bool)
        self._own_row[self._row[~self._own_column[self._column]]] = False

    def parameters(self, own: Values, shared: Values) -> Floats:
        """Values of the Parameters of one slot's jobs, a column each, shape (P, J)."""
        jobs = len(own["before"])
        found = np.zeros((self._entries.shape[1], jobs))
        found[-1] = 1.0  # the constant
        for name, first in self._first.items():
            value = own[name] if name in own else np.repeat(shared[name][None], jobs, axis=0)
            flat = value.T.reshape(-1, jobs)  # in CVXPY's order, columns first
            found[first : first + len(flat)] = flat
        return found

    def repeat(self, parameters: Floats) -> ConeProgram:
        """The cone program of the jobs of a slot, from a column each of `parameters`, (P, J).

        `SolveFailed` if the values leave a row that nothing can satisfy.
        """
        jobs = parameters.shape[1]
        width = _numbers(self._own_column, np.zeros_like(self._own_column, dtype=int), jobs)
        height = _numbers(self._own_row, self._cone, jobs)
        entries = self._entries @ parameters
        own = self._own_column[self._column]
        row, column, value = (
            np.concatenate([array[own].ravel(), array[~own, :1].ravel()])
            for array in (height[self._row], width[self._column], entries)
        )
        cost, side = np.zeros(width.max() + 1), np.zeros(height.max() + 1)
        cone = np.zeros(side.size, dtype=np.int64)
        cost[width] = self._cost @ parameters
        side[height] = self._side @ parameters
        cone[height] = self._cone[:, None]
        columns = {
            name: width[at].T if self._own_column[at[0]] else width[at, :1].T
            for name, at in self._columns.items()
        }
        return _presolved(row, column, value, cost, side, cone, columns)


def _numbers(own: Bools, key: Ints, jobs: int) -> Ints:
    """Place of each row (or column) of a template in the whole, shape (size, jobs).

    Rows of a lower `key` come first; what is not a job's own has one place.
    """
    numbers = np.empty((own.size, jobs), dtype=np.int64)
    first = 0
    for kind in np.unique(key):
        for mine, copies in ((False, 1), (True, jobs)):
            at = np.flatnonzero((key == kind) & (own == mine))
            numbers[at] = first + np.arange(at.size)[:, None] + at.size * np.arange(copies)
            first += at.size * copies
    return numbers


def _presolved(
    row: Ints, column: Ints, value: Floats, cost: Floats, side: Floats, cone: Ints,
    columns: dict[str, Ints],
) -> ConeProgram:  # fmt: skip
    """Leave out what is 0: entries, variables that an equation holds there, rows left empty."""
    filled = value != 0.0
    row, column, value = row[filled], column[filled], value[filled]
    linear = cone != EXPONENTIAL
    alone = (np.bincount(row, minlength=side.size) == 1) & (side == 0.0) & linear
    single = alone[row]
    free = np.ones(cost.size, dtype=bool)
    free[column[single & (cone[row] == ZERO)]] = False
    kept = free[column]
    row, column, value = row[kept], column[kept], value[kept]
    count = np.bincount(row, minlength=side.size)
    empty = (count == 0) & linear
    if (side[empty] < 0).any() or (side[empty & (cone == ZERO)] != 0).any():
        raise SolveFailed("a row without variables cannot hold")
    # rows that only say x >= 0 are bounds
    single = ((count == 1) & (side == 0.0) & (cone == NONNEGATIVE))[row] & (value < 0.0)
    bounded = np.zeros(cost.size, dtype=bool)
    bounded[column[single]] = True
    standing = ~empty
    standing[row[single]] = False
    kept = standing[row]
    new_row, new_column = np.cumsum(standing) - 1, np.cumsum(free) - 1
    shape = (int(standing.sum()), int(free.sum()))
    matrix = sp.csc_array(
        (value[kept], (new_row[row[kept]], new_column[column[kept]])), shape=shape
    )
    left = np.bincount(cone[standing], minlength=3)
    return ConeProgram(
        cost=cost[free],
        matrix=matrix,
        side=side[standing],
        heights=(int(left[ZERO]), int(left[NONNEGATIVE]), int(left[EXPONENTIAL])),
        bounded=bounded[free],
        columns={name: np.where(free[at], new_column[at], -1) for name, at in columns.items()},
    )


@lru_cache(maxsize=32)
def template(centers: int, kinds: int, price: Price, switching: Switching) -> Template:
    """The compiled program of one job for R centres and K resources."""
    return Template(RegularisedSlot(1, centers, kinds, price, switching))
