"""Small conic programs straight to Clarabel: where stating one takes longer than solving it."""

from __future__ import annotations

from dataclasses import dataclass

import clarabel
import numpy as np
from scipy.sparse import csc_array

from hindsched.arrays import Floats


@dataclass(frozen=True)
class Cones:
    """Minimise ``cost x`` subject to ``right - matrix x`` in cones.

    Parameters
    ----------
    cost : array (columns,)
        Of the variables.
    matrix : array (rows, columns)
        The rows, dense.
    right : array (rows,)
        Their right-hand sides.
    triples : int
        The last 3 x `triples` rows are second-order cones of three; all before are ``>= 0``.
    """

    cost: Floats
    matrix: Floats
    right: Floats
    triples: int

    def solve(self, **settings: object) -> Floats | None:
        """The point that Clarabel calls solved; None if it says anything else.

        Parameters
        ----------
        **settings
            By Clarabel's own names.
        """
        own = clarabel.DefaultSettings()
        for name, value in {"verbose": False, **settings}.items():
            setattr(own, name, value)
        cones = [clarabel.NonnegativeConeT(len(self.right) - 3 * self.triples)]
        cones += [clarabel.SecondOrderConeT(3)] * self.triples
        size = len(self.cost)
        solver = clarabel.DefaultSolver(
            csc_array((size, size)), self.cost, csc_array(self.matrix), self.right, cones, own
        )
        found = solver.solve()
        return np.array(found.x) if str(found.status) == "Solved" else None
