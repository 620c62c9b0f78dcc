"""mlbroker's online algorithms: the paper's (Algorithms 1-3), the better ones and the baselines.

Of the paper's claims r1 (Theorem 3), r2 (Theorem 4) and r1 r2 (Theorem 5) the first is a claim: its
proof uses a dual (11) that violates weak duality. r2 has no meaning: it adds USD/GB to GB/GB,
compares GB with USD on the way, and divides by the least data of any centre; the same instance in
cents has another r2. Both are computed as printed; nothing is tested against r2.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Literal

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.online.base import FamilyOnline
from hindsched.online.cluster_state import this_slot
from hindsched.online.mlbroker.baselines import (
    Central,
    Local,
    OasisStyle,
    ReoptimiseWithForecasts,
)
from hindsched.online.mlbroker.dynamics import Broker, MlbrokerState
from hindsched.online.mlbroker.rounding import Rounding, repair, round_server, round_workers
from hindsched.online.protocol import (
    Capabilities,
    Count,
    Environment,
    Positive,
    Report,
    Theorem,
    theorem_record,
)
from hindsched.solvers.door.kept import KeptProgram
from hindsched.solvers.door.result import Status
from hindsched.solvers.families.mlbroker.placements import (
    priced_placement,
    tight_placement,
)


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
    """

    randomised = True
    solved: dict[int, Any] | None = None
    """Solutions of (10) by slot, to be shared by runs that differ in the rounding only."""

    def __init__(
        self, epsilon: Positive = 0.01, price: Literal["paper", "chord"] = "paper",
        switching: Literal["entropy", "relu"] = "entropy", rounding: Rounding = "paper",
    ) -> None:  # fmt: skip
        self.epsilon, self.price, self.switching = epsilon, price, switching
        self.rounding = rounding

    def start(self, environment: Environment) -> None:
        """Forget v of the slots before, and the counters."""
        super().start(environment)
        # CVXPY takes long to load: not before a run, and outside the times of its decisions
        from hindsched.solvers.families.mlbroker.convex import solve_fractional

        self._solve_fractional = solve_fractional
        self._v: dict[str, Floats] = {}
        self._sums: Any = Counter()
        self._backends: Counter[str] = Counter()

    def place(self, slot: int, view: SlotData, launch: Floats) -> tuple[Ints, Ints]:
        """Solve (10) after the fractional v of the slot before, and round."""
        zeros = np.zeros(view.num_centers)
        before = np.array([self._v.get(name, zeros) for name in view.jobs])
        fractional = None if self.solved is None else self.solved.get(slot)
        if fractional is None:
            fractional = self._solve_fractional(
                view, before, price=self.price, switching=self.switching, epsilon=self.epsilon
            )
        if self.solved is not None:
            self.solved[slot] = fractional
        self._v = dict(zip(view.jobs, fractional.present, strict=True))
        self._backends[fractional.backend] += 1
        workers = round_workers(view, fractional.workers, slot, self.seed, self.rounding)
        workers, repairs = repair(view, workers, fractional.workers)
        ps = round_server(view, fractional.server, slot, self.seed, self.rounding)
        self._sums.update({
            "fractional_cost": fractional.static + fractional.switching,
            "workers_needed": float(view.needed.sum()),
            "workers_fractional": float(fractional.workers.sum()),
            "workers_placed": float(workers.sum()),
            "infeasible_repairs": repairs,
        })  # fmt: skip
        return workers, ps

    def report(self) -> Report:
        """Cost of the fractional solution in P_f, workers against N, repairs, solver steps."""
        return {**self._sums, "solver_steps": dict(self._backends)}


class MlbrokerTight(Broker):
    """Chord price, PS-conditioned relaxation, largest remainder."""

    def place(self, slot: int, view: SlotData, launch: Floats) -> tuple[Ints, Ints]:
        """Place the slot."""
        workers, ps, _ = tight_placement(view, launch)
        return workers, ps


class MlbrokerPrices(Broker):
    """Tier-price iteration: buy tiers, let each job take its exact best response, repeat."""

    def start(self, environment: Environment) -> None:
        """Forget the prices of the slot before."""
        super().start(environment)
        self._start: list[Floats] = []

    def place(self, slot: int, view: SlotData, launch: Floats) -> tuple[Ints, Ints]:
        """Place the slot; the tiers of the slot before are one of the starts."""
        (workers, ps, _), price = priced_placement(view, launch, starts=self._start)
        self._start = [price]
        return workers, ps


class MlbrokerDualPrice(MlbrokerPrices):
    """Tier-price iteration from duals of the relaxation over the jobs seen, every slot.

    The relaxation is one kept program of ``tight``. Duals of ``w <= H u`` are what a unit pays of
    its tier's fee; those of (8h) what a deployment is worth to the next slot, and a launch costs so
    much less. What is over ties no later slot but by where jobs run, so nothing is fixed.

    Parameters
    ----------
    iterations : int
        Simplex iterations a relaxation; one that ends without duals leaves launches and tiers as
        they are, and is counted in the report.
    """

    card = Capabilities(forecasts="the live jobs' data in all later slots, exact")

    def __init__(self, iterations: Count = 100_000) -> None:
        self.iterations = iterations

    def start(self, environment: Environment) -> None:
        """Begin with an empty program."""
        super().start(environment)
        self._kept = KeptProgram.relaxation(self.cluster, "tight", iterations=self.iterations)
        self._duals: dict[str, dict[str, Floats]] = {}
        self._relaxations: Any = Counter()

    def place(self, slot: int, view: SlotData, launch: Floats) -> tuple[Ints, Ints]:
        """Solve the relaxation where jobs are new, then place the slot at its duals."""
        new = [job for job in self.live if job.name not in self._kept.parts]
        for job in new:
            self._kept.add(job)
        if new:
            solved = self._kept.solve() == Status.OPTIMAL
            self._relaxations["solved" if solved else "without duals"] += 1
            if solved:
                self._duals = {job.name: self._kept.job_prices(job.name) for job in self.live}
        if self._duals.keys() >= set(view.jobs):
            share = sum(self._duals[name]["discount"][:, :, 0, slot - 1] for name in view.jobs)
            later = [self._duals[name]["deployment"][:, 0, slot : slot + 1] for name in view.jobs]
            launch = np.maximum(0.0, launch - [worth.sum(axis=1) for worth in later])
            self._start.append(np.minimum(view.unit, view.discounted + share / len(view.jobs)))
        return super().place(slot, view, launch)

    def report(self) -> Report:
        """Count the relaxations, with duals and without."""
        return dict(self._relaxations)


def r1(epsilon: float) -> float:
    """Theorem 3's ratio, 2 + (1 + eps) ln(1 + 1 / eps): falls towards 3 as eps grows."""
    if not 0 < epsilon < math.inf:
        raise InputError("epsilon", epsilon, "must be above 0 and finite")
    return 2.0 + (1.0 + epsilon) * math.log1p(1.0 / epsilon)


def r2_paper(instance: MlbrokerInstance) -> dict[str, float | None]:
    """Theorem 4's sum of four terms as printed; None where it divides by 0."""
    alive = instance.alive
    if not alive.any():
        return {"r2": None, "lambda": None}
    least = instance.data.min(axis=2)[alive]
    capacity = np.repeat(instance.capacity[:, None], instance.horizon, axis=1)[alive]
    needed = instance.workers_needed[alive].astype(float)
    job = np.nonzero(alive)[0]
    if (least <= 0).any() or (needed <= 0).any():
        return {"r2": None, "lambda": None}
    centers = len(instance.datacenters)
    lam = float((capacity * (centers + 1) / least).max())
    first = (1 + lam) * float(instance.transfer_price.max())
    units = (1 + lam) * instance.worker_demand[job] + instance.ps_demand[job] / needed[:, None]
    units = units / capacity[:, None]
    full = float((units[:, None] * instance.unit_price[None]).max())
    tier = instance.discounted_price + instance.tier_fee
    second = min(full, float((units[:, None] * tier[None]).max()))
    third = float(((2 + lam) * instance.deployment[job] / (capacity * needed)).max())
    fourth = (1 + lam) * float((instance.exchange / instance.capacity).max())
    return {"r2": first + second + third + fourth, "lambda": lam}


def theorem(instance: MlbrokerInstance, epsilon: float = 0.01) -> Theorem:
    """Theorem 5's ratio r1 r2 as printed, its parts, and what speaks against it.

    The value is None where r2 divides by 0; `epsilon` is that of the regulariser.
    """
    second = r2_paper(instance)
    value = None if second["r2"] is None else r1(epsilon) * second["r2"]
    data = instance.data[instance.alive]
    least = float(data.min()) if data.size else None
    jobs, tiers = len(instance.jobs), len(instance.datacenters) * len(instance.resources)
    assumed = [
        ("K R <= number of jobs (12d)", tiers <= jobs, tiers - jobs),
        ("every centre has data of every job in every slot (lambda is finite)",
         least is not None and least > 0, least),
    ]  # fmt: skip
    beside = [
        ("the dual (11) of Theorem 3's proof obeys weak duality", False, None),
        ("r2 is free of units", False, None),
    ]
    quantities = {"r1": r1(epsilon), "r2_paper": second["r2"], "lambda": second["lambda"],
                  "epsilon": epsilon}  # fmt: skip
    warning = (
        "r2 as printed depends on the currency and on the unit of data; it bounds nothing and is "
        "shown only because the paper states it"
    )
    return theorem_record("ratio", value, assumed, beside, quantities=quantities, warning=warning)


ONLINE = FamilyOnline(
    algorithms={
        "mlbroker": Mlbroker,
        "mlbroker-tight": MlbrokerTight,
        "mlbroker-prices": MlbrokerPrices,
        "dual-price": MlbrokerDualPrice,
        "reoptimise": ReoptimiseWithForecasts,
        "local": Local,
        "central": Central,
        "oasis-style": OasisStyle,
    },
    state=MlbrokerState,
    committed_rows=this_slot,  # workers are elastic
    theorems={"mlbroker": theorem},
)
