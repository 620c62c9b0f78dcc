"""The best slot of a car at prices on the booths."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from hindsched.arrays import Floats
from hindsched.solutions.base import Assignment
from hindsched.solvers.oracles.base import PlacingOracle, Response
from hindsched.solvers.oracles.rows import Rows, RowSet


class TollboothOracle(PlacingOracle):
    """Rows: booths by slot."""

    sense: ClassVar[Literal["max", "min"]] = "max"
    instance: Any
    layout = "servers"
    optional = True

    def __init__(self, instance: Any, formulation: str) -> None:
        self.instance, self.formulation = instance, formulation
        axes = (("server", ("booth",)), ("slot", tuple(range(1, instance.horizon + 1))))
        capacity = np.full((1, instance.horizon), float(instance.booths))
        self.rows = Rows([RowSet("booths", axes, capacity)])

    def best_response(
        self, block: int, prices: Floats, residual: Floats | None = None
    ) -> Response | None:
        """Best start of a car at prices by row, within residual booths; None for none."""
        job = self.instance.jobs[block]
        responses = [self._response(job, start, prices) for start in self.instance.starts(job)]
        if residual is not None:
            responses = [response for response in responses if (residual[response.rows] >= 1).all()]
        return max(responses, key=lambda response: response.value, default=None)

    def _response(self, job: Any, start: int, prices: Floats) -> Response:
        rows = np.arange(start - 1, start - 1 + job.length)
        value = job.toll - float(prices[rows].sum())
        return Response(value, float(job.toll), rows, np.ones(job.length), start)

    def assignments(self, block: int, response: Response) -> list[Assignment]:
        """Rows in the file's form."""
        return [self.instance.row(self.instance.jobs[block], response.plan)]

    def use_of(self, solution: Any) -> list[Response | None]:
        """What every car of a solution uses, None for one that stays out."""
        nothing = np.zeros(self.rows.size)
        starts = [solution.start(job.name) for job in self.instance.jobs]
        return [
            None if start is None else self._response(job, start, nothing)
            for job, start in zip(self.instance.jobs, starts, strict=True)
        ]
