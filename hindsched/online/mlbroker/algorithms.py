"""mlbroker's online algorithms: the paper's (Algorithms 1-3), the better ones and the baselines.

``mlbroker``         the regularised program (10) slot by slot, then A_round
``mlbroker-tight``   chord price, PS-conditioned relaxation, largest remainder, relocation
``mlbroker-prices``  tier-price iteration with exact best responses
``mlbroker-cheaper`` the cheaper of the two in every slot
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Literal

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.base import Instance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.json_types import JsonObject
from hindsched.models.mlbroker.sets import big_m
from hindsched.online.mlbroker.baselines import (
    Central,
    Local,
    OasisStyle,
    RecedingHorizon,
    ReoptimiseWithForecasts,
)
from hindsched.online.mlbroker.dynamics import Broker
from hindsched.online.mlbroker.rounding import (
    Rounding,
    repair,
    round_server,
    round_workers,
)
from hindsched.online.mlbroker.theorem import theorem
from hindsched.online.protocol import Report
from hindsched.online.registry import Factory
from hindsched.solvers.families.mlbroker.slot import (
    SlotPlacement,
    priced_placement,
    relocated,
    tight_placement,
)

__all__ = ["ALGORITHMS", "declared_estimates", "theorem"]


class Mlbroker(Broker):
    """The paper's algorithm: A_fractional (Algorithm 1), then A_round (Algorithms 2 and 3).

    Parameters
    ----------
    epsilon : float
        eps of the regulariser.
    price : {"paper", "chord"}
        Relaxed big-M bill (8c)-(8e), or the envelope of the concave price.
    switching : {"entropy", "relu"}
        The regulariser, or the plain switching cost.
    rounding : str
        ``paper``, ``round2``, ``independent`` (IR), ``greedy`` (GR) or ``largest-remainder``.
    relocation : bool
        Whether to end with the local search at exact cost (ours).
    big_m_factor : float
        Multiplies M, see `big_m`.
    engine : {"oracle", "model"}
        Solve (10) with CVXPY's data of one job, compiled once and repeated for the live ones, or
        with CVXPY's problem of all of them.
    """

    randomised = True
    solved: dict[int, Any] | None = None
    """Solutions of (10) by slot, to be shared by runs that differ in the rounding only."""

    def __init__(
        self,
        epsilon: float = 0.01,
        price: Literal["paper", "chord"] = "paper",
        switching: Literal["entropy", "relu"] = "entropy",
        rounding: Rounding = "paper",
        relocation: bool = False,
        big_m_factor: float = 1.0,
        engine: Literal["oracle", "model"] = "oracle",
    ) -> None:
        for name, value in (("epsilon", epsilon), ("big_m_factor", big_m_factor)):
            if not 0 < value < math.inf:
                raise InputError(f"set.{name}", value, "must be above 0 and finite")
        self.epsilon, self.price, self.switching = epsilon, price, switching
        self.rounding, self.relocation = rounding, relocation
        self.big_m_factor, self.engine = big_m_factor, engine

    def begin(self) -> None:
        """Forget v of the slots before, and the counters."""
        # CVXPY takes long to load: not before a run, and outside the times of its decisions
        from hindsched.solvers.families.mlbroker.convex import solve_fractional

        self._solve_fractional = solve_fractional
        self._v: dict[str, Floats] = {}
        self._fractional_cost = 0.0
        self._fractional_workers = self._needed = self._placed = 0.0
        self._repairs = 0
        self._backends: Counter[str] = Counter()

    def place(self, slot: int, view: SlotData, launch: Floats) -> tuple[Ints, Ints]:
        """Solve (10) after the fractional v of the slot before, and round."""
        nothing = np.zeros(view.num_centers)
        before = np.array([self._v.get(name, nothing) for name in view.jobs])
        big = None
        if self.price == "paper":
            big = big_m(view, factor=self.big_m_factor)
        found = None if self.solved is None else self.solved.get(slot)
        if found is None:
            found = self._solve_fractional(
                view, before, price=self.price, switching=self.switching, epsilon=self.epsilon,
                big=big, engine=self.engine,
            )  # fmt: skip
        if self.solved is not None:
            self.solved[slot] = found
        self._v = dict(zip(view.jobs, found.present, strict=True))
        self._backends[found.backend] += 1
        self._fractional_cost += found.static + found.switching
        workers = round_workers(view, found.workers, slot, self.seed, self.rounding)
        workers, repairs = repair(view, workers, found.workers)
        ps = round_server(view, found.server, slot, self.seed, self.rounding)
        self._repairs += repairs
        if self.relocation:
            better = relocated(view, launch, workers, ps)
            workers, ps = better.workers, better.ps
        self._fractional_workers += float(found.workers.sum())
        self._needed += float(view.needed.sum())
        self._placed += float(workers.sum())
        return workers, ps

    def report(self) -> Report:
        """Cost of the fractional solution in P_f, workers against N, repairs, solver steps."""
        return {
            "fractional_cost": self._fractional_cost,
            "workers_needed": self._needed,
            "workers_fractional": self._fractional_workers,
            "workers_placed": self._placed,
            "infeasible_repairs": self._repairs,
            "solver_steps": dict(self._backends),
        }


class MlbrokerTight(Broker):
    """Chord price, PS-conditioned relaxation, largest remainder and exact-cost relocation.

    Parameters
    ----------
    relocation : bool
        Whether to end with the local search.
    """

    def __init__(self, relocation: bool = True) -> None:
        self.relocation = relocation

    def place(self, slot: int, view: SlotData, launch: Floats) -> tuple[Ints, Ints]:
        """Place the slot."""
        found = tight_placement(view, launch, relocation=self.relocation)
        return found.workers, found.ps


class MlbrokerPrices(Broker):
    """Tier-price iteration: buy tiers, let each job take its exact best response, repeat.

    Parameters
    ----------
    relocation : bool
        Whether to end with the local search.
    """

    def __init__(self, relocation: bool = False) -> None:
        self.relocation = relocation

    def begin(self) -> None:
        """Forget the prices of the slot before."""
        self._start: list[Floats] = []

    def place(self, slot: int, view: SlotData, launch: Floats) -> tuple[Ints, Ints]:
        """Place the slot; the tiers of the slot before are one of the starts."""
        found, price = priced_placement(
            view, launch, starts=self._start, relocation=self.relocation
        )
        self._start = [price]
        return found.workers, found.ps


class MlbrokerCheaper(Broker):
    """Both, and the cheaper placement in every slot at its exact cost."""

    def begin(self) -> None:
        """Forget the prices of the slot before, and the counts."""
        self._start: list[Floats] = []
        self._chosen: Counter[str] = Counter()

    def place(self, slot: int, view: SlotData, launch: Floats) -> tuple[Ints, Ints]:
        """Place the slot twice and keep the cheaper."""
        tight = tight_placement(view, launch)
        priced, price = priced_placement(view, launch, starts=self._start, relocation=True)
        self._start = [price]
        best: SlotPlacement = tight if tight.cost <= priced.cost else priced
        self._chosen["tight" if best is tight else "prices"] += 1
        return best.workers, best.ps

    def report(self) -> Report:
        """How often each of the two was chosen."""
        return {"chosen": dict(self._chosen)}


ALGORITHMS: dict[str, Factory] = {
    "mlbroker": Mlbroker,
    "mlbroker-tight": MlbrokerTight,
    "mlbroker-prices": MlbrokerPrices,
    "mlbroker-cheaper": MlbrokerCheaper,
    "receding-horizon": RecedingHorizon,
    "reoptimise": ReoptimiseWithForecasts,
    "local": Local,
    "central": Central,
    "oasis-style": OasisStyle,
}


def declared_estimates(instance: Instance) -> JsonObject:
    """Nothing of the future is told to mlbroker's algorithms in advance."""
    return {}
