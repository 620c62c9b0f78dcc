"""Polishing of a candidate's numbers by CMA-ES (Hansen), the package ``cma``."""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Iterator

import numpy as np

from hindsched.analysis.worst.evaluate import Evaluation
from hindsched.instances.search.fields import Field, Place
from hindsched.instances.search.space import SearchSpace, copied
from hindsched.json_types import Draft
from hindsched.limits import time_left

STEP = 0.15
"""First step, as a share of every range."""
ROUNDS = 6
"""Rounds of one polishing."""
WORST = 1e12
"""What is told of candidates that have no ratio."""
SECONDS_TO_LOAD = 4.0
"""CMA-ES brings scipy's statistics and matplotlib, and no limit acts while modules load."""


def can_polish() -> bool:
    """Whether the package is installed."""
    return importlib.util.find_spec("cma") is not None


def is_late_to_load() -> bool:
    """Whether CMA-ES is still to be loaded, and the limit leaves no time for that."""
    return "cma" not in sys.modules and time_left(math.inf) < SECONDS_TO_LOAD


def numbers_of(space: SearchSpace, data: Draft) -> list[tuple[Field, Place]]:
    """Every number of a candidate that lies in a range."""
    return [
        (item, place)
        for item, holder in space.all_fields(data)
        if not (item.is_fixed or item.choices or item.repeats)
        for place in item.places(holder)
    ]


class Polish:
    """CMA-ES over a candidate's numbers: ask for candidates, tell what they were worth.

    Parameters
    ----------
    space : SearchSpace
        The space.
    data : Draft
        Where it begins.
    seed : int
        Of its draws.
    """

    def __init__(self, space: SearchSpace, data: Draft, seed: int) -> None:
        import cma

        self.space, self.data = space, data
        begin = [item.to_unit(item.read(place)) for item, place in numbers_of(space, data)]
        options = {"bounds": [0, 1], "seed": 1 + seed, "verbose": -9, "verb_disp": 0, "verb_log": 0}
        self.strategy = cma.CMAEvolutionStrategy(begin, STEP, options)

    def rounds(self) -> Iterator[list[Draft]]:
        """Candidates of each round; `tell` comes between two of them."""
        for _ in range(ROUNDS):
            if self.strategy.stop():
                return
            self.points = self.strategy.ask()
            yield [self._candidate(point) for point in self.points]

    def tell(self, found: list[Evaluation]) -> None:
        """What the candidates of this round were worth."""
        scores = [min(item.score, WORST) if math.isfinite(item.score) else None for item in found]
        self.strategy.tell(self.points, [WORST if s is None else -s for s in scores])

    def _candidate(self, point: np.ndarray) -> Draft:
        made = copied(self.data)
        for (item, place), value in zip(numbers_of(self.space, made), point, strict=True):
            item.write(place, item.from_unit(float(value)))
        return self.space.normal(made)
