"""The program: which car drives up when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.models.base import Duals, FamilyModels, OfflineProgram

from .solution import TollboothSolution


@dataclass(kw_only=True, eq=False, repr=False)
class TollboothProgram(OfflineProgram):
    """x[job, slot]: whether the car drives up in the slot."""

    def extract(self) -> TollboothSolution:
        """Read the solution off the variables."""
        starts = [key for key, x in self.model.x.items() if round(x.value or 0.0)]
        instance: Any = self.instance
        rows = {instance.jobs[j].name: [instance.row(instance.jobs[j], t)] for j, t in starts}
        return TollboothSolution(instance, rows, self.formulation)

    def load(self, solution: Any) -> None:
        """Set the variables to a solution."""
        for (j, t), x in self.model.x.items():
            x.value = float(solution.start(self.instance.jobs[j].name) == t)

    def capacity_prices(self, duals: Duals) -> dict[str, Floats]:
        """Prices of the booths by slot, shape (1, slots): the duals of (2)."""
        rows = [duals.get(self.model.eq_2[t], 0.0) for t in self.model.eq_2]
        return {"booths": np.maximum(0.0, np.array([rows]))}


def build_offline(
    instance: Any,
    formulation: str,
    *,
    form: Any = None,
    relax: bool = False,
    **_: Any,
) -> TollboothProgram:
    """Build the program (1), (2)."""
    model = pyo.ConcreteModel()
    jobs = instance.jobs
    keys = [(j, t) for j, job in enumerate(jobs) for t in instance.starts(job)]
    model.x = pyo.Var(keys, domain=pyo.UnitInterval if relax else pyo.Binary, doc="(0) starts")
    model.toll = pyo.Objective(
        expr=pyo.quicksum(jobs[j].toll * model.x[j, t] for j, t in keys), sense=pyo.maximize
    )

    @model.Constraint(range(len(jobs)), doc="(1) a car passes once")
    def eq_1(m: Any, j: int) -> Any:
        once = [m.x[j, t] for t in instance.starts(jobs[j])]
        return pyo.quicksum(once) <= 1 if once else pyo.Constraint.Skip

    @model.Constraint(range(1, instance.horizon + 1), doc="(2) a car holds a booth")
    def eq_2(m: Any, slot: int) -> Any:
        held = [m.x[j, t] for j, t in keys if t <= slot < t + jobs[j].length]
        return pyo.quicksum(held) <= instance.booths if held else pyo.Constraint.Skip

    return TollboothProgram(
        instance=instance, formulation=formulation, model=model, form="printed",
        relaxed=relax,
    )  # fmt: skip


MODELS = FamilyModels(forms={"standard": ("printed",)}, build_offline=build_offline)
