"""(10) of one slot of an instance as an object that says what its parts are."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.convex import ConvexPart, ConvexProgram
from hindsched.models.declared import Symbol
from hindsched.models.mlbroker.convex import (
    LINKING,
    JobInSlot,
    Price,
    RegularisedSlot,
    Switching,
    TieredBill,
    slot_values,
)
from hindsched.models.mlbroker.symbols import MlbrokerNames

_PLACE, _TIER, _PAIR = "datacenter", "datacenter, resource", "from, to"
PARTS = {
    "workers": ("(9k) y / N, workers", _PLACE, "shares of N"),
    "server": ("(9k) s, the PS", _PLACE, "PSs"),
    "present": ("(9k) v, deployment", _PLACE, "deployments"),
    "flow": ("(9k) q / (P N), data sent to another centre", _PAIR, "shares of P N GB"),
    "link": ("(9k) g / N, connections to a PS in another centre", _PAIR, "shares of N"),
    "launched": ("(9k) z, launches, or what the regulariser has there", _PLACE, "launches"),
    "used": ("(2) h / hmax, units that all jobs rent", _TIER, "shares of hmax"),
    "bill": ("(9k) x / (a hmax), what a resource costs", _TIER, "shares of a hmax"),
    "eq_8a": ("(8a) workers train what stays and what comes in", _PLACE, "USD a share of P N GB"),
    "eq_8b": ("(8b) no more data leaves than there is", _PLACE, "USD a share of P N GB"),
    "eq_8c": ("(8c) the full price, relaxed", _TIER, "USD a share of a hmax"),
    "eq_8d": ("(8d) the discounted price, relaxed", _TIER, "USD a share of a hmax"),
    "eq_8e": ("(8e) one of the two, added up", _TIER, "USD a share of a hmax"),
    "eq_8f": ("(8f) one PS", "", "USD"),
    "eq_8g": ("(8g) U v >= y + s with U = N + 1", _PLACE, "USD a deployment"),
    "eq_8h": ("(8h) a launch where the job was not deployed", _PLACE, "USD a launch"),
    "eq_8i": ("(8i) every worker has a connection", _PLACE, "USD a share of N"),
    "eq_8j": ("(8j) the PS has N connections", _PLACE, "USD a share of N"),
    "regulariser": ("(10) the regulariser", _PLACE, "USD a launch"),
    "closed_flow": ("(8b) no data where it may not go, or is not", _PAIR, ""),
    "closed_link": ("(ours) no connection that no optimum needs", _PAIR, ""),
    LINKING: ("(2) what all jobs rent", _TIER, "USD a share of hmax"),
}
"""A sentence, the indices after the job's, and the unit, by component."""
SYMBOLS = {name: Symbol(indices, unit) for name, (_, indices, unit) in PARTS.items()}


@dataclass(kw_only=True, eq=False, repr=False)
class SlotProgram(MlbrokerNames, ConvexProgram):
    """(10) of one slot of an instance.

    Parameters
    ----------
    slot : int
        Which slot.
    regularised : RegularisedSlot
        The program.
    """

    SYMBOLS = SYMBOLS
    OBJECTIVE_UNIT = "USD"

    instance: MlbrokerInstance
    slot: int
    regularised: RegularisedSlot

    @property
    def title(self) -> str:
        """Family, instance, slot and kind."""
        kind = f"{self.regularised.price} price, {self.regularised.switching} switching"
        return f"{self.instance.family}: (10) in slot {self.slot} of {self.instance.name}, {kind}"

    def set(
        self,
        before: Floats | None = None,
        *,
        epsilon: float = 0.01,
        big: Floats | None = None,
        unit_price: Floats | None = None,
        prune: bool = True,
    ) -> None:
        """Set the Parameters.

        Parameters
        ----------
        before : ndarray, shape (J, R), optional
            v of the live jobs in the slot before; 0 if None.
        epsilon, big, unit_price, prune
            As in `slot_values`.
        """
        view = SlotData.at(self.instance, self.slot)
        values = slot_values(
            view, np.zeros(view.data.shape) if before is None else before,
            self.regularised.price, self.regularised.switching, epsilon=epsilon, big=big,
            unit_price=unit_price, prune=prune,
        )  # fmt: skip
        self.regularised.set(*values)


def build_slot(
    instance: MlbrokerInstance,
    slot: int,
    *,
    price: Price = "paper",
    switching: Switching = "entropy",
) -> SlotProgram:
    """Build the per-slot program (10), with v of the slot before 0 until it is set.

    Parameters
    ----------
    instance : MlbrokerInstance
        The instance.
    slot : int
        Which slot; some job must be live in it.
    price, switching
        As in `RegularisedSlot`.

    Examples
    --------
    >>> import hindsched as hs
    >>> build_slot(hs.generate("mlbroker", preset="small"), 2).problem.is_dpp()
    True
    """
    if not 1 <= slot <= instance.horizon:
        raise InputError("slot", slot, f"must be between 1 and {instance.horizon}")
    view = SlotData.at(instance, slot)
    if not view.jobs:
        raise InputError("slot", slot, "must have a live job")
    program = RegularisedSlot(
        len(view.jobs), view.num_centers, len(instance.resources), price, switching
    )
    objective = ConvexPart("objective", "(10) cost and regularised switching", (), {})
    parts: dict[str, ConvexPart] = {"eq_10": objective}
    owners: list[tuple[tuple[str, ...], JobInSlot | TieredBill]] = [
        ((name,), job) for name, job in zip(view.jobs, program.jobs, strict=True)
    ]
    owners += [((), program.bill)] if program.bill is not None else []
    for at, part in owners:
        for name, one in {**part.variables, **part.constraints}.items():
            kind = "variable" if isinstance(one, cp.Variable) else "constraint"
            empty = ConvexPart(kind, PARTS[name][0], ("job",) if at else (), {})
            parts.setdefault(name, empty).copies[at] = one
    made = SlotProgram(
        instance=instance, formulation="paper", problem=program.problem, parts=parts, slot=slot,
        regularised=program,
    )  # fmt: skip
    made.set()
    return made
