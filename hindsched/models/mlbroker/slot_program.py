"""(10), the program of one slot, stated over all of its jobs at once and scaled.

==================  ====================  =====================================================
paper               here                  scaling, shape
==================  ====================  =====================================================
``y_i^r``           ``workers``           y / N, (J, R)
``s_i^r``           ``server``            (J, R)
``v_i^r``           ``present``           (J, R)
``q_i^{rr'}``       ``flow``              q / (P N), r' other than r, one an open way
``g_i^{rr'}``       ``link``              g / N, r' other than r, one an open way
``z_i^r``           ``launched``          (J, R)
``h_k^r``           ``used``              units rented / hmax, (R, K)
``x_k^r``           ``bill``              x / (a hmax), (R, K)
``M``               `big_m`               weighted USD, (R, K)
``U``               N + 1                 workers
``eps, sigma``      eps, ln(1 + 1/eps)    1
==================  ====================  =====================================================

The scaling is what makes the programs solvable: in GB and workers an interior-point solver fails on
most slots. The statement is smaller than the printed one by four reductions, none of which changes
the optimum (a test holds it against (10) as printed, `printed_slot`, which says what that costs):

1. u1, u2 are projected out of the relaxed (8c)-(8e), which leaves three lines below the bill;
2. the units rented h are variables, so that the jobs of a slot meet in them alone;
3. data that stays and workers beside the PS are what (8b) and (8i) leave over;
4. a connection r -> r' is closed if no optimum needs it. Moving a share of the PS from r' to r
   saves ``d^{rr'} B N`` of talk and adds at most ``sum_k a_k^r m_k`` of rent (the bill's slope is
   at most a) and ``c / U`` of switching (the slope of the regulariser and of (8h) is at most c).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from hindsched.arrays import Bools, Floats, Ints
from hindsched.errors import InputError
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.declared import Component, IndexValue, Symbol
from hindsched.models.mlbroker.sets import MlbrokerNames, big_m

if TYPE_CHECKING:
    import pandas as pd

Price = Literal["paper", "chord"]
Switching = Literal["entropy", "relu"]
PLACE, TIER, WAY = "job, datacenter", "datacenter, resource", "job, from, to"


class Part(NamedTuple):
    """A variable or constraint of (10), or its objective."""

    item: Any  # of CVXPY; None: the objective
    doc: str  # its sentence, which begins with the paper's number
    indices: str = ""
    unit: str = ""

    @property
    def kind(self) -> str:
        """``variable``, ``constraint`` or ``objective``."""
        if self.item is None:
            return "objective"
        return "variable" if isinstance(self.item, cp.Variable) else "constraint"


class RegularisedSlot:
    """(10) of a slot with live jobs, `before` being v of the slot before, (J, R), 0 for a new job.

    The price ``paper`` is the bill with the relaxed big-M rows (8c)-(8e), M times `factor`;
    ``chord`` the linear envelope of the concave price, at which the jobs are independent. Switching
    is the regulariser of (10), ``entropy``, or (8h) and c max(v - v_before, 0) as in P_f, ``relu``.
    The objective lacks the terms of (10) that do not depend on the decision; its part `static` is
    C1 + C2 + C4. `largest` is its largest coefficient, of a bill for all jobs a job's part.
    """

    def __init__(
        self, slot: SlotData, before: Floats, price: Price = "paper",
        switching: Switching = "entropy", *, epsilon: float = 0.01, factor: float = 1.0,
    ) -> None:  # fmt: skip
        if price not in ("paper", "chord"):
            raise InputError("price", price, "must be paper or chord")
        if switching not in ("entropy", "relu"):
            raise InputError("switching", switching, "must be entropy or relu")
        if not 0 < epsilon < np.inf:
            raise InputError("epsilon", epsilon, "must be above 0 and finite")
        needed = np.maximum(slot.needed, 1)[:, None]  # N
        busy = (slot.needed > 0)[:, None]
        limit = slot.needed[:, None] + 1.0  # U
        room = slot.capacity[:, None] * needed
        share, worker = slot.data / room, slot.worker * needed
        sending = slot.arc * room[:, :, None]
        talking = (slot.exchange[:, None] * needed)[:, :, None] * slot.distance
        dearest = slot.server @ (slot.chord if price == "chord" else slot.unit).T
        dearest += slot.deployment[:, None] / limit
        apart = ~np.eye(slot.num_centers, dtype=bool)
        moves = apart & np.isfinite(sending) & (slot.data > 0)[:, :, None]
        links = apart & busy[:, :, None] & (talking < dearest[:, :, None])
        launch = slot.deployment / (np.log1p(1 / epsilon) if switching == "entropy" else 1.0)

        y, s = (cp.Variable(slot.data.shape, nonneg=True) for _ in range(2))
        v = cp.Variable(slot.data.shape)  # v >= 0 by (8g)
        z = cp.Variable(slot.data.shape, nonneg=switching == "relu")
        self.flows, q, leaving, coming = _open_ways(moves)
        self.links, g, calling, called = _open_ways(links)
        used = cp.multiply(needed / limit, y) + cp.multiply(1 / limit, s)
        data, number = "shares of P N GB", "shares of N"
        self.parts = {
            "eq_10": Part(None, "(10) cost and regularised switching"),
            "workers": Part(y, "(9k) y / N, workers", PLACE, number),
            "server": Part(s, "(9k) s, the PS", PLACE, "PSs"),
            "present": Part(v, "(9k) v, deployment", PLACE, "deployments"),
            "flow": Part(q, "(9k) q / (P N), data sent to another centre", WAY, data),
            "link": Part(g, "(9k) g / N, connections to a PS in another centre", WAY, number),
            "launched": Part(
                z, "(9k) z, launches, or what the regulariser has there", PLACE, "launches"
            ),
            "eq_8a": Part(
                y >= share - leaving + coming,
                "(8a) workers train what stays and what comes in", PLACE, "USD a share of P N GB",
            ),
            "eq_8b": Part(
                leaving <= share,
                "(8b) no more data leaves than there is", PLACE, "USD a share of P N GB",
            ),
            "eq_8f": Part(cp.sum(s, axis=1) == 1, "(8f) one PS", "job", "USD"),
            "eq_8g": Part(v >= used, "(8g) U v >= y + s with U = N + 1", PLACE, "USD a deployment"),
            "eq_8i": Part(
                calling <= y, "(8i) every worker has a connection", PLACE, "USD a share of N"
            ),
            "eq_8j": Part(
                y - calling + called >= cp.multiply(busy, s),
                "(8j) the PS has N connections", PLACE, "USD a share of N",
            ),
        }  # fmt: skip
        if switching == "relu":
            self.parts["eq_8h"] = Part(
                z >= v - before,
                "(8h) a launch where the job was not deployed", PLACE, "USD a launch",
            )  # fmt: skip
            switched = launch @ cp.sum(z, axis=1)
        else:  # z >= (v + eps) ln((v + eps) / (v_before + eps))
            self.parts["regulariser"] = Part(
                z >= cp.rel_entr(v + epsilon, before + epsilon),
                "(10) the regulariser", PLACE, "USD a launch",
            )  # fmt: skip
            switched = launch @ cp.sum(z - v, axis=1)
        if price == "chord":
            rents = [worker @ slot.chord.T, slot.server @ slot.chord.T]
            rent = cp.sum(cp.multiply(rents[0], y) + cp.multiply(rents[1], s))
        else:
            bills = self._bill(slot, worker, big_m(slot, factor))
            rent = cp.sum(cp.multiply(bills, self.parts["bill"].item))
            rents = [bills / len(slot.jobs)]
        self.static = sending[moves] @ q + talking[links] @ g + rent
        each = launch, sending[moves], talking[links], *rents
        self.largest = max(float(np.max(cost, initial=0.0)) for cost in each)
        rows = [part.item for part in self.parts.values() if part.kind == "constraint"]
        self.problem = cp.Problem(cp.Minimize(self.static + switched), rows)

    def _bill(self, slot: SlotData, worker: Floats, big: Floats) -> Floats:
        """(2), (8c)-(8e) on the units that all jobs rent; returns what a bill of 1 is in USD."""
        most = slot.largest_use.sum(axis=0)
        most = np.where(most > 0, most, 1.0)  # hmax
        money = np.where(slot.unit > 0, slot.unit * most, 1.0)
        h, x = cp.Variable(slot.unit.shape), cp.Variable(slot.unit.shape, nonneg=True)
        y, s = self.parts["workers"].item, self.parts["server"].item
        full = cp.multiply(slot.unit * most / money, h) - big / money
        tier = cp.multiply(slot.discounted * most / money, h) + slot.fee / money
        rented, dual = y.T @ (worker / most) + s.T @ (slot.server / most), "USD a share of a hmax"
        self.parts |= {
            "used": Part(h, "(2) h / hmax, units that all jobs rent", TIER, "shares of hmax"),
            "bill": Part(x, "(9k) x / (a hmax), what a resource costs", TIER, "shares of a hmax"),
            "rented": Part(h == rented, "(2) what all jobs rent", TIER, "USD a share of hmax"),
            "eq_8c": Part(x >= full, "(8c) the full price, relaxed", TIER, dual),
            "eq_8d": Part(
                x >= tier - big / money, "(8d) the discounted price, relaxed", TIER, dual
            ),
            # (8c) + (8d) with u1 + u2 = 1
            "eq_8e": Part(2 * x >= full + tier, "(8e) one of the two, added up", TIER, dual),
        }
        return money


def _open_ways(allowed: Bools) -> tuple[Ints, cp.Variable, cp.Expression, cp.Expression]:
    """Open ways (j, r, r'), what takes each, and of that what leaves and comes into (j, r)."""
    ways = np.argwhere(allowed)
    places, each = allowed.shape[:2], np.arange(len(ways))
    amount = cp.Variable(len(ways), nonneg=True)

    def at(end: Ints) -> cp.Expression:
        where = np.ravel_multi_index((ways[:, 0], end), places)
        shape = places[0] * places[1], len(ways)
        ends = sp.csr_array((np.ones(len(ways)), (where, each)), shape=shape)
        return cp.reshape(ends @ amount, places, order="C")

    return ways, amount, at(ways[:, 1]), at(ways[:, 2])


@dataclass(kw_only=True, eq=False, repr=False)
class MlbrokerSlotProgram(MlbrokerNames):
    """(10) of one slot of an instance, which says what it is as the Pyomo programs do."""

    slot: int
    kind: tuple[Price, Switching]
    instance: MlbrokerInstance
    formulation: str = "paper"
    stated: RegularisedSlot = field(init=False)

    @property
    def title(self) -> str:
        """Family, instance, slot and kind."""
        kind = f"{self.kind[0]} price, {self.kind[1]} switching"
        return f"{self.instance.family}: (10) in slot {self.slot} of {self.instance.name}, {kind}"

    @property
    def cvxpy(self) -> cp.Problem:
        """The CVXPY problem, to be read, or taken apart for a problem of one's own."""
        return self.stated.problem

    def set(self, before: Floats | None = None, **values: Any) -> None:
        """State it anew: `before` is v of live jobs, (J, R), the rest as in `RegularisedSlot`."""
        view = SlotData.at(self.instance, self.slot)
        before = np.zeros(view.data.shape) if before is None else before
        self.stated = RegularisedSlot(view, before, *self.kind, **values)

    def symbol(self, name: str) -> Symbol:
        """Indices and unit of a part."""
        part = self.stated.parts.get(name)
        return Symbol() if part is None else Symbol(part.indices, part.unit)

    def components(self, *kinds: str) -> list[Component]:
        """The components by name: objective, constraints, variables."""
        return [
            Component(name, kind, part.doc, self._indices(part), part.unit,
                      1 if part.item is None else part.item.size)
            for kind in kinds or ("objective", "constraint", "variable")
            for name, part in self.stated.parts.items() if part.kind == kind
        ]  # fmt: skip

    def table(
        self, name: str, value_of: Callable[[cp.Variable | cp.Constraint], Floats | None],
        unit: str | None = None,
    ) -> pd.Series[float]:  # fmt: skip
        """Numbers by the array of a part, labelled; unit in the name."""
        part = self.stated.parts.get(name)
        if part is None or part.item is None:
            raise InputError("component", name, "must be a variable or constraint of the program")
        view = SlotData.at(self.instance, self.slot)
        sizes: Mapping[str, Sequence[IndexValue]] = {
            "job": view.jobs, "datacenter": range(view.num_centers),
            "resource": range(len(self.instance.resources)),
        }  # fmt: skip
        ways = {"flow": self.stated.flows, "link": self.stated.links}.get(name)
        if ways is None:
            keys = list(product(*(sizes[index] for index in self._indices(part))))
        else:
            keys = [(view.jobs[j], r, q) for j, r, q in ways.tolist()]
        array = value_of(part.item)
        values = [] if array is None else np.ravel(array).tolist()
        numbers = dict(zip(keys, values, strict=array is not None))
        return self._labelled(
            name, part.unit if unit is None else unit, self._indices(part), numbers
        )

    def _indices(self, part: Part) -> tuple[str, ...]:
        return tuple(filter(None, part.indices.split(", ")))


def build_slot(
    instance: MlbrokerInstance, slot: int, *, price: Price = "paper",
    switching: Switching = "entropy",
) -> MlbrokerSlotProgram:  # fmt: skip
    """Build (10) of a slot with a live job, with v of the slot before 0 until it is set."""
    if not 1 <= slot <= instance.horizon:
        raise InputError("slot", slot, f"must be between 1 and {instance.horizon}")
    if not instance.alive[:, slot - 1].any():
        raise InputError("slot", slot, "must have a live job")
    made = MlbrokerSlotProgram(instance=instance, slot=slot, kind=(price, switching))
    made.set()
    return made
