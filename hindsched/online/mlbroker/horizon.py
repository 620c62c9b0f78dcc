"""``receding-horizon``: plan the live jobs over a window of forecasts, follow the first slot.

Not in the paper, which calls the future unknown. What a longer view is worth against the myopic
``mlbroker-prices`` is the value of smoothing launches, and what noise costs is the price of wrong
forecasts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.mlbroker.instance import MlbrokerJob
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.online.engines.reoptimise import Reoptimise
from hindsched.online.mlbroker.dynamics import Broker
from hindsched.online.protocol import Capabilities, draws
from hindsched.solvers.families.mlbroker.plan import first_of_plan

LARGEST_NOISE = 10.0
"""Deviation of a forecast's logarithm beyond which its factor would overflow."""


class ReoptimiseWithForecasts(Reoptimise):
    """`Reoptimise`, which plans with the live jobs' data in all later slots."""

    solver_options: ClassVar[Mapping[str, object]] = {
        # Bounds of these programs are the work: half of HiGHS's time went into finding twice what
        # its other heuristics find, and into beginning again with a presolved root.
        "mip_heuristic_run_root_reduced_cost": False,
        "mip_heuristic_run_feasibility_jump": False,
        "mip_allow_restart": False,
    }
    card = Capabilities(forecasts="the live jobs' data in all later slots, exact")


class RecedingHorizon(Broker):
    """Plan over a window with forecasts of the live jobs' data; future arrivals stay unknown.

    Parameters
    ----------
    window : int
        Slots planned together, the present one included.
    forecast : {"perfect", "noisy"}
        ``perfect``: the jobs' own future data. ``noisy``: the same times a log-normal factor per
        centre and slot, keyed by (seed, job, slot).
    noise : float
        Deviation of the factor's logarithm, at most 10.
    relocation : bool
        Whether the present slot's placement ends with the local search, a launch shared among the
        slots in a row that the plan uses it in.
    """

    card = Capabilities(forecasts="the live jobs' data in later slots, exact or with noise")

    def __init__(
        self,
        window: int = 4,
        forecast: Literal["perfect", "noisy"] = "perfect",
        noise: float = 0.2,
        relocation: bool = True,
    ) -> None:
        if window < 1:
            raise InputError("set.window", window, "must be at least 1")
        if not 0 <= noise <= LARGEST_NOISE:
            raise InputError("set.noise", noise, f"must be between 0 and {LARGEST_NOISE}")
        self.window, self.forecast, self.noise = window, forecast, noise
        self.relocation = relocation
        # whether the seed can change a decision
        self.randomised = forecast == "noisy"  # type: ignore[misc]

    def place(self, slot: int, view: SlotData, launch: Floats) -> tuple[Ints, Ints]:
        """Plan the window and return the present slot's part."""
        views = [view]
        for ahead in range(slot + 1, slot + self.window):
            jobs = [job for job in self.live if job.departure >= ahead]
            if not jobs:
                break
            views.append(SlotData.of(self.cluster, jobs, [self._data(j, ahead) for j in jobs]))
        found = first_of_plan(views, self.present, self.relocation)
        return found.workers, found.ps

    def _data(self, job: MlbrokerJob, slot: int) -> Floats:
        data = np.array(job.data_gb[slot - job.arrival], dtype=float)
        if self.forecast == "perfect":
            return data
        generator = draws(self.seed, job.name, f"forecast {slot}")
        noisy: Floats = data * np.exp(self.noise * generator.standard_normal(data.size))
        return noisy
