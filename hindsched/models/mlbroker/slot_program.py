"""(10) of one slot of an instance as an object that says what its parts are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.convex import ConvexPart, ConvexProgram
from hindsched.models.mlbroker.convex import (
    JobInSlot,
    Price,
    RegularisedSlot,
    Switching,
    TieredBill,
    slot_values,
)
from hindsched.models.mlbroker.symbols import SLOT_PARTS, SLOT_SYMBOLS, MlbrokerNames


@dataclass(kw_only=True, eq=False, repr=False)
class SlotProgram(MlbrokerNames, ConvexProgram):
    """(10) of one slot of an instance."""

    SYMBOLS = SLOT_SYMBOLS

    slot: int
    regularised: RegularisedSlot

    @property
    def title(self) -> str:
        """Family, instance, slot and kind."""
        kind = f"{self.regularised.price} price, {self.regularised.switching} switching"
        return f"{self.instance.family}: (10) in slot {self.slot} of {self.instance.name}, {kind}"

    def set(self, before: Floats | None = None, **values: Any) -> None:
        """Set the Parameters: `before` is v of live jobs, (J, R), the rest as in `slot_values`."""
        view, program = SlotData.at(self.instance, self.slot), self.regularised
        before = np.zeros(view.data.shape) if before is None else before
        program.set(*slot_values(view, before, program.price, program.switching, **values))


def build_slot(
    instance: MlbrokerInstance,
    slot: int,
    *,
    price: Price = "paper",
    switching: Switching = "entropy",
) -> SlotProgram:
    """Build (10) of a slot with a live job, with v of the slot before 0 until it is set."""
    if not 1 <= slot <= instance.horizon:
        raise InputError("slot", slot, f"must be between 1 and {instance.horizon}")
    view = SlotData.at(instance, slot)
    if not view.jobs:
        raise InputError("slot", slot, "must have a live job")
    kinds = len(instance.resources)
    program = RegularisedSlot(len(view.jobs), view.num_centers, kinds, price, switching)
    objective = ConvexPart("objective", "(10) cost and regularised switching", (), {})
    parts: dict[str, ConvexPart] = {"eq_10": objective}
    owners: list[tuple[tuple[str, ...], JobInSlot | TieredBill]] = [
        ((name,), job) for name, job in zip(view.jobs, program.jobs, strict=True)
    ]
    owners += [((), program.bill)] if program.bill is not None else []
    for at, part in owners:
        for name, one in {**part.variables, **part.constraints}.items():
            kind = "variable" if isinstance(one, cp.Variable) else "constraint"
            empty = ConvexPart(kind, SLOT_PARTS[name][0], ("job",) if at else (), {})
            parts.setdefault(name, empty).copies[at] = one
    made = SlotProgram(
        instance=instance, formulation="paper", problem=program.problem, parts=parts, slot=slot,
        regularised=program,
    )  # fmt: skip
    made.set()
    return made
