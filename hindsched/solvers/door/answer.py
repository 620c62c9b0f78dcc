"""What a solver says of a linear program, before anybody believes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hindsched.arrays import Floats
from hindsched.solvers.door.status import Status, StoppedBy

Progress = Callable[[float | None, float | None, float, str], None]
"""``progress(bound, objective, seconds, message)``; bound and objective in the model's sense."""


@dataclass(frozen=True)
class Answer:
    """A backend's own account of one run, in the minimising form of `LinearProgram`.

    Parameters
    ----------
    status : Status
        What the solver claims.
    stopped_by : StoppedBy
        Why it stopped.
    point : ndarray, optional
        Value of each column, given only if the solver's own primal status says feasible.
    bound : float, optional
        Lower bound on the minimum, offset included.
    row_duals, column_duals : ndarray, optional
        Derivative of the minimum with respect to each row's right side and each column's bound;
        None after a mixed-integer program.
    backend : str
        Solver and version.
    details : dict
        Nodes, iterations and the like.
    """

    status: Status
    stopped_by: StoppedBy
    point: Floats | None = None
    bound: float | None = None
    row_duals: Floats | None = None
    column_duals: Floats | None = None
    backend: str = ""
    details: Mapping[str, object] = field(default_factory=dict)
