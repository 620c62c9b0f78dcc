"""(10), the program of one slot: as printed, and scaled and with Parameters, the fast statement.

==================  ========================  ====================================================
paper               here                      scaling, shape
==================  ========================  ====================================================
``y_i^r``           `JobInSlot.workers`       y / N, (R,)
``s_i^r``           `JobInSlot.server`        (R,)
``v_i^r``           `JobInSlot.present`       (R,)
``q_i^{rr'}``       `JobInSlot.flow`          q / (P N), r' other than r, (R, R)
``g_i^{rr'}``       `JobInSlot.link`          g / N, r' other than r, (R, R)
``z_i^r``           `JobInSlot.launched`      (R,)
``h_k^r``           `TieredBill.used`         units rented / hmax, (R, K)
``x_k^r``           `TieredBill.bill`         x / (a hmax), (R, K)
``M``               `big_m`                   weighted USD, (R, K)
``U``               N + 1                     workers
``eps, sigma``      `epsilon`, ln(1 + 1/eps)  1
==================  ========================  ====================================================

The scaling is what makes the programs solvable: in GB and workers, as in `printed_slot`, an
interior-point solver fails on most slots. The statement is smaller than the printed one by four
reductions, none of which changes the optimum:

1. u1, u2 are projected out of the relaxed (8c)-(8e), which leaves three lines below the bill;
2. the units rented h are variables, so that the jobs of a slot meet in them alone;
3. data that stays and workers beside the PS are what (8b) and (8i) leave over;
4. a connection r -> r' is closed if no optimum needs it. Moving a share of the PS from r' to r
   saves ``d^{rr'} B N`` of talk and adds at most ``sum_k a_k^r m_k`` of rent (the bill's slope is
   at most a) and ``c / U`` of switching (the slope of the regulariser and of (8h) is at most c).

Every number of a slot is a Parameter (`RegularisedSlot.problem.is_dpp()`): a program is compiled
once, see ``compiled.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import cvxpy as cp
import numpy as np

from hindsched.arrays import Floats
from hindsched.errors import InputError
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.convex import ConvexPart, ConvexProgram
from hindsched.models.declared import Symbol
from hindsched.models.mlbroker.sets import MlbrokerNames, big_m

Price = Literal["paper", "chord"]
Switching = Literal["entropy", "relu"]
Values = dict[str, Floats]
"""Values of Parameters by name; for the jobs of a slot with a leading axis (J, ...)."""


def printed_slot(slot: SlotData, before: Floats, epsilon: float = 0.01) -> cp.Problem:
    """(10) as printed, with tiers u1, u2; costs weighted, `before` is v of the slot before."""
    jobs, centers = slot.data.shape
    sigma, big = np.log1p(1 / epsilon), big_m(slot)
    x, u1, u2 = (cp.Variable(slot.unit.shape, nonneg=True) for _ in range(3))
    cost, h, rows = cp.sum(x), 0.0, [u1 + u2 == 1]  # (8e)
    for i in range(jobs):
        y, s, v = (cp.Variable(centers, nonneg=True) for _ in range(3))
        q, g = (cp.Variable((centers, centers), nonneg=True) for _ in range(2))
        sent = np.isfinite(slot.arc[i])
        rows += [
            slot.capacity[i] * y >= cp.sum(q, axis=0),  # (8a)
            cp.sum(q, axis=1) == slot.data[i],  # (8b)
            cp.multiply(~sent, q) == 0,
            cp.sum(s) == 1,  # (8f)
            (slot.needed[i] + 1) * v >= y + s,  # (8g)
            cp.sum(g, axis=1) == y,  # (8i)
            cp.sum(g, axis=0) >= slot.needed[i] * s,  # (8j)
        ]
        h += cp.outer(y, slot.worker[i]) + cp.outer(s, slot.server[i])  # (2)
        cost += cp.sum(cp.multiply(np.where(sent, slot.arc[i], 0.0), q))  # C1
        cost += cp.sum(cp.multiply(slot.exchange[i] * slot.distance, g))  # C4
        entropy = cp.rel_entr(v + epsilon, before[i] + epsilon) - v
        cost += slot.deployment[i] / sigma * cp.sum(entropy)  # C3, regularised
    rows += [
        x >= cp.multiply(slot.unit, h) - cp.multiply(big, u1),  # (8c)
        x >= cp.multiply(slot.discounted, h) + slot.fee - cp.multiply(big, u2),  # (8d)
    ]
    return cp.Problem(cp.Minimize(cost), rows)


class _Part:
    """A part of a program with its Parameters, variables and constraints by name."""

    def __init__(self) -> None:
        self.parameters: dict[str, cp.Parameter] = {}
        self.variables: dict[str, cp.Variable] = {}
        self.constraints: dict[str, cp.Constraint] = {}

    def parameter(self, name: str, *shape: int) -> cp.Parameter:
        """A non-negative Parameter."""
        self.parameters[name] = cp.Parameter(shape, nonneg=True, name=name)
        return self.parameters[name]

    def variable(self, name: str, *shape: int, nonneg: bool = True) -> cp.Variable:
        """A variable."""
        self.variables[name] = cp.Variable(shape, nonneg=nonneg, name=name)
        return self.variables[name]

    def set(self, values: Mapping[str, Floats | float]) -> None:
        """Give the Parameters their values; names of other parts are passed over."""
        for name in self.parameters.keys() & values.keys():
            self.parameters[name].value = np.asarray(values[name])


class JobInSlot(_Part):
    """One job in one slot: (8a), (8b), (8f), (8g), (8i), (8j), (9k), and its switching cost.

    In weighted USD ``static`` is C1 + C4, ``rent`` C2 at given unit prices, ``switching`` C3 or
    what is in its place; ``rented`` are units / hmax, (R, K).
    """

    def __init__(self, centers: int, kinds: int, switching: Switching = "entropy") -> None:
        super().__init__()
        given, pair = self.parameter, (centers, centers)
        self.workers = self.variable("workers", centers)
        self.server = self.variable("server", centers)
        self.present = self.variable("present", centers, nonneg=False)  # v >= 0 by (8g)
        self.flow = self.variable("flow", *pair)
        self.link = self.variable("link", *pair)
        share, busy = given("D / (P N)", centers), given("1 if N > 0")
        leaving, coming = cp.sum(self.flow, axis=1), cp.sum(self.flow, axis=0)
        calling, called = cp.sum(self.link, axis=1), cp.sum(self.link, axis=0)
        used = given("N / U") * self.workers + given("1 / U") * self.server
        self.constraints = {
            "eq_8a": self.workers >= share - leaving + coming,
            "eq_8b": leaving <= share,
            "eq_8f": cp.sum(self.server) == 1,
            "eq_8g": self.present >= used,
            "eq_8i": calling <= self.workers,
            "eq_8j": self.workers - calling + called >= busy * self.server,
            "closed_flow": cp.multiply(given("closed q", *pair), self.flow) == 0,
            "closed_link": cp.multiply(given("closed g", *pair), self.link) == 0,
        }
        self.static = cp.sum(cp.multiply(given("w1 d P N", *pair), self.flow)) + cp.sum(
            cp.multiply(given("w4 d B N", *pair), self.link)
        )
        self.rented = cp.outer(self.workers, given("n N / hmax", kinds)) + cp.outer(
            self.server, given("m / hmax", kinds)
        )
        self.rent = (
            given("price n N", centers) @ self.workers + given("price m", centers) @ self.server
        )
        self.launched = self.variable("launched", centers, nonneg=switching == "relu")
        before, launch = given("before", centers), given("launch")
        if switching == "relu":
            self.constraints["eq_8h"] = self.launched >= self.present - before
            self.switching = launch * cp.sum(self.launched)
        else:  # launched >= (v + eps) ln((v + eps) / (v_before + eps))
            epsilon = given("eps")
            entropy = cp.rel_entr(self.present + epsilon, before + epsilon)
            self.constraints["regulariser"] = self.launched >= entropy
            self.switching = launch * cp.sum(self.launched - self.present)


class TieredBill(_Part):
    """The broker's bill of one slot, (8c)-(8e) relaxed, on the units that all jobs rent."""

    def __init__(self, centers: int, kinds: int) -> None:
        super().__init__()
        given, shape = self.parameter, (centers, kinds)
        self.used = self.variable("used", *shape, nonneg=False)
        self.bill = self.variable("bill", *shape)
        big = given("M", *shape)
        full = cp.multiply(given("a", *shape), self.used) - big
        tier = cp.multiply(given("b", *shape), self.used) + given("e", *shape)
        self.constraints = {
            "eq_8c": self.bill >= full,
            "eq_8d": self.bill >= tier - big,
            "eq_8e": 2 * self.bill >= full + tier,  # (8c) + (8d) with u1 + u2 = 1
        }
        self.cost = cp.sum(cp.multiply(given("a hmax", *shape), self.bill))


class RegularisedSlot:
    """The per-slot program (10) of J jobs, R centres and K kinds, or with the plain switching cost.

    The price ``paper`` is the bill with the relaxed big-M rows (8c)-(8e); ``chord`` the linear
    envelope of the concave price, at which the jobs are independent. Switching is the regulariser
    of (10), ``entropy``, or (8h) and c max(v - v_before, 0) as in P_f, ``relu``. The objective
    lacks the terms of (10) that do not depend on the decision.
    """

    def __init__(
        self, jobs: int, centers: int, kinds: int, price: Price = "paper",
        switching: Switching = "entropy",
    ) -> None:  # fmt: skip
        if price not in ("paper", "chord"):
            raise InputError("price", price, "must be paper or chord")
        if switching not in ("entropy", "relu"):
            raise InputError("switching", switching, "must be entropy or relu")
        self.price, self.switching = price, switching
        self.jobs = [JobInSlot(centers, kinds, switching) for _ in range(jobs)]
        self.bill = TieredBill(centers, kinds) if price == "paper" else None
        rows = [row for job in self.jobs for row in job.constraints.values()]
        self.static = cp.sum([job.static for job in self.jobs])  # C1 + C2 + C4
        if self.bill is None:
            self.static += cp.sum([job.rent for job in self.jobs])
        else:
            rented = cp.sum([job.rented for job in self.jobs])
            self.bill.constraints["rented"] = self.bill.used == rented  # all that the jobs share
            rows += self.bill.constraints.values()
            self.static += self.bill.cost
        switching_cost = cp.sum([job.switching for job in self.jobs])
        self.problem = cp.Problem(cp.Minimize(self.static + switching_cost), rows)

    def set(self, own: Values, shared: Values) -> None:
        """Give all Parameters the values of a slot with as many jobs, from `slot_values`."""
        if len(own["before"]) != len(self.jobs):
            raise InputError("jobs", len(own["before"]), f"the program is for {len(self.jobs)}")
        for index, job in enumerate(self.jobs):
            job.set({name: value[index] for name, value in own.items()})
        if self.bill is not None:
            self.bill.set(shared)


def slot_values(
    slot: SlotData, before: Floats, price: Price = "paper", switching: Switching = "entropy", *,
    epsilon: float = 0.01, big: Floats | None = None,
) -> tuple[Values, Values]:  # fmt: skip
    """Values of the Parameters of a slot: of each `JobInSlot`, and of the `TieredBill`.

    `before` is v of the slot before, (J, R), 0 for a new job; `big` is M, (R, K), symmetric and
    minimal if None;connections that no optimum needs are closed.
    """
    if not 0 < epsilon < np.inf:
        raise InputError("epsilon", epsilon, "must be above 0 and finite")
    jobs, centers = slot.data.shape
    needed = np.maximum(slot.needed, 1).astype(float)
    limit = (slot.needed + 1).astype(float)  # U
    room = slot.capacity * needed
    most = slot.largest_use.sum(axis=0)
    most = np.where(most > 0, most, 1.0)
    linear = slot.chord if price == "chord" else np.zeros_like(slot.unit)
    per_worker = slot.worker * needed[:, None]
    apart = ~np.eye(centers, dtype=bool)
    talk = (slot.exchange * needed)[:, None, None] * slot.distance
    moves = np.isfinite(slot.arc) & apart & (slot.data > 0)[:, :, None]
    links = np.broadcast_to(apart, talk.shape) & (slot.needed > 0)[:, None, None]
    steepest = slot.chord if price == "chord" else slot.unit
    dearest = slot.server @ steepest.T + (slot.deployment / limit)[:, None]
    links = links & (talk < dearest[:, :, None])
    own = {
        "D / (P N)": slot.data / room[:, None],
        "1 if N > 0": (slot.needed > 0).astype(float),
        "N / U": needed / limit,
        "1 / U": 1.0 / limit,
        "closed q": (~moves).astype(float),
        "closed g": (~links).astype(float),
        "w1 d P N": np.where(moves, slot.arc, 0.0) * room[:, None, None],
        "w4 d B N": talk,
        "n N / hmax": per_worker / most,
        "m / hmax": slot.server / most,
        "price n N": per_worker @ linear.T,
        "price m": slot.server @ linear.T,
        "before": before.reshape(jobs, centers),
        "launch": slot.deployment / (np.log1p(1.0 / epsilon) if switching == "entropy" else 1.0),
        "eps": np.full(jobs, epsilon),
    }
    if price == "chord":
        return own, {}
    full = np.where(slot.unit > 0, slot.unit * most, 1.0)
    shared = {
        "a": slot.unit * most / full,
        "b": slot.discounted * most / full,
        "e": slot.fee / full,
        "M": (big_m(slot) if big is None else big) / full,
        "a hmax": full,
    }
    return own, shared


PLACE, TIER, PAIR = "datacenter", "datacenter, resource", "from, to"
SLOT_PARTS = {
    "workers": ("(9k) y / N, workers", PLACE, "shares of N"),
    "server": ("(9k) s, the PS", PLACE, "PSs"),
    "present": ("(9k) v, deployment", PLACE, "deployments"),
    "flow": ("(9k) q / (P N), data sent to another centre", PAIR, "shares of P N GB"),
    "link": ("(9k) g / N, connections to a PS in another centre", PAIR, "shares of N"),
    "launched": ("(9k) z, launches, or what the regulariser has there", PLACE, "launches"),
    "used": ("(2) h / hmax, units that all jobs rent", TIER, "shares of hmax"),
    "bill": ("(9k) x / (a hmax), what a resource costs", TIER, "shares of a hmax"),
    "eq_8a": ("(8a) workers train what stays and what comes in", PLACE, "USD a share of P N GB"),
    "eq_8b": ("(8b) no more data leaves than there is", PLACE, "USD a share of P N GB"),
    "eq_8c": ("(8c) the full price, relaxed", TIER, "USD a share of a hmax"),
    "eq_8d": ("(8d) the discounted price, relaxed", TIER, "USD a share of a hmax"),
    "eq_8e": ("(8e) one of the two, added up", TIER, "USD a share of a hmax"),
    "eq_8f": ("(8f) one PS", "", "USD"),
    "eq_8g": ("(8g) U v >= y + s with U = N + 1", PLACE, "USD a deployment"),
    "eq_8h": ("(8h) a launch where the job was not deployed", PLACE, "USD a launch"),
    "eq_8i": ("(8i) every worker has a connection", PLACE, "USD a share of N"),
    "eq_8j": ("(8j) the PS has N connections", PLACE, "USD a share of N"),
    "regulariser": ("(10) the regulariser", PLACE, "USD a launch"),
    "closed_flow": ("(8b) no data where it may not go, or is not", PAIR, ""),
    "closed_link": ("(ours) no connection that no optimum needs", PAIR, ""),
    "rented": ("(2) what all jobs rent", TIER, "USD a share of hmax"),
}
"""Sentence, indices after the job's, and unit, by component of (10) of one slot."""


@dataclass(kw_only=True, eq=False, repr=False)
class SlotProgram(MlbrokerNames, ConvexProgram):
    """(10) of one slot of an instance."""

    SYMBOLS: ClassVar[Mapping[str, Symbol]] = {
        name: Symbol(indices, unit) for name, (_, indices, unit) in SLOT_PARTS.items()
    }

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
    instance: MlbrokerInstance, slot: int, *, price: Price = "paper",
    switching: Switching = "entropy",
) -> SlotProgram:  # fmt: skip
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
