"""The programs of ``models/mlbroker/convex.py`` of an instance, with a face: (10) and P_f (9)."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.convex import ConvexPart, ConvexProgram
from hindsched.models.declared import IndexValue, Symbol
from hindsched.models.mlbroker.big_m import big_m
from hindsched.models.mlbroker.convex import (
    LINKING,
    JobInSlot,
    Price,
    RegularisedSlot,
    Switching,
    TieredBill,
    slot_constraints,
    slot_values,
)
from hindsched.models.mlbroker.symbols import MlbrokerNames

DOCS = {
    "workers": "(9k) y / N, workers",
    "server": "(9k) s, the PS",
    "present": "(9k) v, deployment",
    "flow": "(9k) q / (P N), data sent to another centre",
    "link": "(9k) g / N, connections to a PS in another centre",
    "launched": "(9k) z, launches; in (10) what the regulariser has in its place",
    "used": "(2) h / hmax, units that all jobs rent",
    "bill": "(9k) x / (a hmax), what a resource costs",
    "eq_8a": "(8a) workers train what stays and what comes in",
    "eq_8b": "(8b) no more data leaves than there is",
    "eq_8c": "(8c) the full price, relaxed",
    "eq_8d": "(8d) the discounted price, relaxed",
    "eq_8e": "(8e) one of the two, added up",
    "eq_8f": "(8f) one PS",
    "eq_8g": "(8g) U v >= y + s with U = N + 1",
    "eq_8h": "(8h) a launch where the job was not deployed",
    "eq_8i": "(8i) every worker has a connection",
    "eq_8j": "(8j) the PS has N connections",
    "regulariser": "(10) the regulariser",
    "closed_flow": "(8b) no data where it may not go, or is not",
    "closed_link": "(ours) no connection that no optimum needs",
    LINKING: "(2) what all jobs rent",
}
"""A sentence by component."""
_PLACE, _TIER = "datacenter", "datacenter, resource"
SYMBOLS = {
    "workers": Symbol(_PLACE, "shares of N"),
    "server": Symbol(_PLACE, "PSs"),
    "present": Symbol(_PLACE, "deployments"),
    "launched": Symbol(_PLACE, "launches"),
    "flow": Symbol("from, to", "shares of P N GB"),
    "link": Symbol("from, to", "shares of N"),
    "used": Symbol(_TIER, "shares of hmax"),
    "bill": Symbol(_TIER, "shares of a hmax"),
    "closed_flow": Symbol("from, to"),
    "closed_link": Symbol("from, to"),
    **{f"eq_8{letter}": Symbol(_PLACE, "USD a share of P N GB") for letter in "ab"},
    **{f"eq_8{letter}": Symbol(_TIER, "USD a share of a hmax") for letter in "cde"},
    "eq_8f": Symbol("", "USD"),
    "eq_8g": Symbol(_PLACE, "USD a deployment"),
    "eq_8h": Symbol(_PLACE, "USD a launch"),
    **{f"eq_8{letter}": Symbol(_PLACE, "USD a share of N") for letter in "ij"},
    "regulariser": Symbol(_PLACE, "USD a launch"),
    LINKING: Symbol(_TIER, "USD a share of hmax"),
}
"""Indices and units by component, after slot and job."""


class _Face(MlbrokerNames, ConvexProgram):
    """Labels of mlbroker's convex programs."""

    SYMBOLS = SYMBOLS
    OBJECTIVE_UNIT = "USD"

    instance: MlbrokerInstance


@dataclass(kw_only=True, eq=False, repr=False)
class SlotFace(_Face):
    """(10) of one slot of an instance.

    Parameters
    ----------
    slot : int
        Which slot.
    regularised : RegularisedSlot
        The program.
    """

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


@dataclass(kw_only=True, eq=False, repr=False)
class FractionalProgram(_Face):
    """P_f (9): the offline relaxation.

    Parameters
    ----------
    price : {"paper", "chord"}
        Relaxed big-M bill, or each slot's chord.
    """

    price: Price

    @property
    def title(self) -> str:
        """Family, instance and kind."""
        return f"{self.instance.family}: P_f (9) of {self.instance.name}, {self.price} price"


def build_slot(
    instance: MlbrokerInstance,
    slot: int,
    *,
    price: Price = "paper",
    switching: Switching = "entropy",
) -> SlotFace:
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
    parts: dict[str, ConvexPart] = {"eq_10": _objective("(10) cost and regularised switching")}
    for name, job in zip(view.jobs, program.jobs, strict=True):
        _add(parts, ("job",), (name,), job)
    _add(parts, (), (), program.bill, program.constraints.get(LINKING))
    face = SlotFace(
        instance=instance, formulation="paper", problem=program.problem, parts=parts, slot=slot,
        regularised=program,
    )  # fmt: skip
    face.set()
    return face


def build_fractional(
    instance: MlbrokerInstance,
    *,
    price: Price = "paper",
    kind: str = "symmetric",
    factor: float = 1.0,
) -> FractionalProgram:
    """Build P_f (9): the slots' sets linked by (8h), integrality dropped, weighted USD.

    Parameters
    ----------
    instance : MlbrokerInstance
        The instance.
    price : {"paper", "chord"}
        Relaxed big-M bill, or each slot's chord.
    kind, factor
        M, see `big_m`.

    Examples
    --------
    >>> import hindsched as hs
    >>> build_fractional(hs.generate("mlbroker", preset="small")).problem.is_dpp()
    True
    """
    centers, kinds = len(instance.datacenters), len(instance.resources)
    costs: list[cp.Expression] = [cp.Constant(0.0)]
    constraints: list[cp.Constraint] = []
    parts: dict[str, ConvexPart] = {"eq_9": _objective("(9) cost of all slots")}
    before: dict[str, cp.Variable] = {}
    for number in range(1, instance.horizon + 1):
        slot = SlotData.at(instance, number)
        big = big_m(slot, kind, factor)
        own, shared = slot_values(slot, np.zeros(slot.data.shape), price, "relu", big=big)
        nothing = cp.Constant(np.zeros(centers))
        jobs = [JobInSlot(centers, kinds, "relu", before.get(n, nothing)) for n in slot.jobs]
        for index, (name, job) in enumerate(zip(slot.jobs, jobs, strict=True)):
            job.set({key: value[index] for key, value in own.items()})
            _add(parts, ("slot", "job"), (number, name), job)
        bill = TieredBill(centers, kinds) if price == "paper" and jobs else None
        if bill is not None:
            bill.set(shared)
        static, rows = slot_constraints(jobs, bill)
        _add(parts, ("slot",), (number,), bill, rows.get(LINKING))
        costs += [static, *(job.costs["switching"] for job in jobs)]
        constraints += rows.values()
        before = {name: job.present for name, job in zip(slot.jobs, jobs, strict=True)}
    problem = cp.Problem(cp.Minimize(cp.sum(costs)), constraints)
    return FractionalProgram(
        instance=instance, formulation="paper", problem=problem, parts=parts, price=price
    )


def _objective(doc: str) -> ConvexPart:
    return ConvexPart("objective", doc, (), {})


def _add(
    parts: dict[str, ConvexPart],
    indices: tuple[str, ...],
    at: tuple[IndexValue, ...],
    part: JobInSlot | TieredBill | None,
    linking: cp.Constraint | None = None,
) -> None:
    """Add a job's or a bill's variables and constraints under the values `at` of `indices`."""
    if part is None:
        return
    found: dict[str, cp.Variable | cp.Constraint] = {**part.variables, **part.constraints}
    if linking is not None:
        found[LINKING] = linking
    for name, one in found.items():
        kind = "variable" if isinstance(one, cp.Variable) else "constraint"
        parts.setdefault(name, ConvexPart(kind, DOCS[name], indices, {})).copies[at] = one
