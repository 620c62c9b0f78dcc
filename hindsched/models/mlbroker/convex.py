"""The slot's convex set, written once in CVXPY with Parameters, and the programs made of it.

==================  ==========================================  ==============================
paper               here                                        scaling, shape
==================  ==========================================  ==============================
``y_i^r``           `SlotBlock.workers`                         y / N, (J, R)
``s_i^r``           `SlotBlock.server`                          (J, R)
``v_i^r``           `SlotBlock.present`                         (J, R)
``q_i^{rr'}``       `SlotBlock.flow`                            q / (P N), (J R, R)
``g_i^{rr'}``       `SlotBlock.link`                            g / N, (J R, R)
``x_k^r``           `SlotBlock.bill`                            weighted USD, (R, K)
``u^1, u^2``        `SlotBlock.below`, `SlotBlock.beyond`       (R, K)
``M``               `big_m`                                     weighted USD, (R, K)
``U``               N + 1                                       workers, (J,)
``eps, sigma``      `epsilon`, ln(1 + 1 / epsilon)              1
==================  ==========================================  ==============================

The scaling is what makes the programs solvable: in GB and workers an interior-point solver fails on
most slots. Data, N and all prices are Parameters, so that a problem is compiled once and re-solved
for every slot with as many jobs (``Problem.is_dpp()``).
"""

from __future__ import annotations

from typing import Any, Literal

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from hindsched.errors import InputError
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import Floats, SlotData

Price = Literal["paper", "chord"]
Switching = Literal["entropy", "relu"]


def big_m(slot: SlotData, kind: str = "symmetric", factor: float = 1.0) -> Floats:
    """M of (8c) and (8d) per centre and resource, shape (R, K), weighted USD.

    Parameters
    ----------
    kind : {"symmetric", "loose"}
        ``symmetric``: the least M that is valid in both rows, max(e, (a - b) hmax - e);
        ``loose``: a hmax + e, at which the relaxed bill x is 0 and the relaxation says nothing.
    factor : float
        Multiplies it; at least 1 keeps it valid.
    """
    most = slot.largest_use.sum(axis=0)
    if kind == "symmetric":
        size = np.maximum(slot.fee, (slot.unit - slot.discounted) * most - slot.fee)
    elif kind == "loose":
        size = slot.unit * most + slot.fee
    else:
        raise InputError("big_m", kind, "must be symmetric or loose")
    return np.asarray(factor * size)


class SlotBlock:
    """The feasible set of one slot for `jobs` jobs: (8a)-(8g), (8i), (8j) and (9k).

    Parameters
    ----------
    jobs, centers, kinds : int
        J, R and K.
    price : {"paper", "chord"}
        ``paper``: the bill x with the relaxed big-M rows (8c)-(8e); ``chord``: the envelope of the
        concave price, linear, so that the jobs are independent.
    conditioned : bool
        Whether the PS's place is given (a Parameter) in place of a variable: every worker then
        talks to it, (8i) and (8j) vanish, and (8g) splits into ``y <= N v`` and ``s <= v``.

    Attributes
    ----------
    constraints : dict
        CVXPY constraints by the paper's equation number.
    costs : dict
        ``transfer``, ``resource`` and ``communication`` as expressions, weighted USD.
    """

    def __init__(
        self, jobs: int, centers: int, kinds: int, price: Price = "paper", conditioned: bool = False
    ) -> None:
        if price not in ("paper", "chord"):
            raise InputError("price", price, "must be paper or chord")
        self.shape = (jobs, centers, kinds)
        self.price, self.conditioned = price, conditioned
        self.workers = cp.Variable((jobs, centers), nonneg=True, name="workers")
        self.present = cp.Variable((jobs, centers), nonneg=True, name="present")
        self.flow = cp.Variable((jobs * centers, centers), nonneg=True, name="flow")
        self.share = cp.Parameter((jobs, centers), nonneg=True, name="data share D / (P N)")
        self.arc = cp.Parameter((jobs * centers, centers), nonneg=True, name="w1 d P N")
        self.stays = cp.Parameter((jobs * centers, centers), nonneg=True, name="forbidden arcs")
        self.demand = cp.Parameter((jobs, kinds), nonneg=True, name="n N")
        self.server_demand = cp.Parameter((jobs, kinds), nonneg=True, name="m")
        self.size = cp.Parameter((jobs, 1), nonneg=True, name="N / U")
        self.one = cp.Parameter((jobs, 1), nonneg=True, name="1 / U")
        self.busy = cp.Parameter((jobs, 1), nonneg=True, name="1 if N > 0")
        into = sp.csr_matrix(sp.kron(sp.eye_array(jobs), np.ones((1, centers))))
        ones = np.ones((1, centers))
        sent = cp.reshape(cp.sum(self.flow, axis=1), (jobs, centers), order="C")
        self.constraints: dict[str, Any] = {
            "eq_8a": self.workers >= into @ self.flow,
            "eq_8b": sent == self.share,
            "pinned": cp.sum(cp.multiply(self.stays, self.flow)) == 0,
        }
        self.costs: dict[str, Any] = {"transfer": cp.sum(cp.multiply(self.arc, self.flow))}
        if conditioned:
            self.server = cp.Parameter((jobs, centers), nonneg=True, name="server")
            self.talk = cp.Parameter((jobs, centers), nonneg=True, name="w4 B N d to the PS")
            self.constraints["eq_8g_workers"] = self.present >= self.workers
            self.constraints["eq_8g_server"] = self.present >= self.server
            total = cp.sum(self.workers, axis=1, keepdims=True)
            self.constraints["workers_needed"] = total >= self.busy
            self.costs["communication"] = cp.sum(cp.multiply(self.talk, self.workers))
        else:
            self.server = cp.Variable((jobs, centers), nonneg=True, name="server")
            self.link = cp.Variable((jobs * centers, centers), nonneg=True, name="link")
            self.talk = cp.Parameter((jobs * centers, centers), nonneg=True, name="w4 B N d")
            linked = cp.reshape(cp.sum(self.link, axis=1), (jobs, centers), order="C")
            self.constraints["eq_8f"] = self.server @ ones.T == 1
            self.constraints["eq_8g"] = self.present >= (
                cp.multiply(self.size @ ones, self.workers)
                + cp.multiply(self.one @ ones, self.server)
            )
            self.constraints["eq_8i"] = linked == self.workers
            self.constraints["eq_8j"] = into @ self.link >= cp.multiply(
                self.busy @ ones, self.server
            )
            self.costs["communication"] = cp.sum(cp.multiply(self.talk, self.link))
        self.used = self.workers.T @ self.demand + self.server.T @ self.server_demand
        if price == "chord":
            self.unit_demand = cp.Parameter((jobs, centers), nonneg=True, name="chord n N")
            self.unit_server = cp.Parameter((jobs, centers), nonneg=True, name="chord m")
            self.costs["resource"] = cp.sum(cp.multiply(self.unit_demand, self.workers))
            servers = cp.sum(cp.multiply(self.unit_server, self.server))
            if conditioned:  # a product of parameters is no DPP expression
                self.server_bill = cp.Parameter(nonneg=True, name="chord m s")
                servers = self.server_bill
            self.costs["resource"] += servers
        else:
            self.bill = cp.Variable((centers, kinds), nonneg=True, name="bill")
            self.below = cp.Variable((centers, kinds), nonneg=True, name="u1")
            self.beyond = cp.Variable((centers, kinds), nonneg=True, name="u2")
            self.big = cp.Parameter((centers, kinds), nonneg=True, name="M")
            self.fee = cp.Parameter((centers, kinds), nonneg=True, name="e")
            self._tiered_rows(jobs, centers, kinds)
            self.costs["resource"] = cp.sum(self.bill)

    def _tiered_rows(self, jobs: int, centers: int, kinds: int) -> None:
        """(8c)-(8e), one parameter per (job, resource) and price so that products stay DPP."""
        self.full: list[Any] = []
        self.tier: list[Any] = []
        full_rows, tier_rows = [], []
        for kind in range(kinds):
            bills = []
            for name in ("a", "b"):
                per_worker = cp.Parameter((jobs, centers), nonneg=True, name=f"{name} n N {kind}")
                per_server = cp.Parameter((jobs, centers), nonneg=True, name=f"{name} m {kind}")
                bill = cp.sum(cp.multiply(per_worker, self.workers), axis=0)
                bill += cp.sum(cp.multiply(per_server, self.server), axis=0)
                bills.append(((per_worker, per_server), bill))
            self.full.append(bills[0][0])
            self.tier.append(bills[1][0])
            full_rows.append(cp.reshape(bills[0][1], (centers, 1), order="C"))
            tier_rows.append(cp.reshape(bills[1][1], (centers, 1), order="C"))
        full, tier = cp.hstack(full_rows), cp.hstack(tier_rows)
        self.constraints["eq_8c"] = self.bill >= full - cp.multiply(self.big, self.below)
        self.constraints["eq_8d"] = self.bill >= tier + self.fee - cp.multiply(
            self.big, self.beyond
        )
        self.constraints["eq_8e"] = self.below + self.beyond == 1

    def set(
        self,
        slot: SlotData,
        *,
        unit_price: Floats | None = None,
        big: Floats | None = None,
        ps: Any = None,
    ) -> None:
        """Give the Parameters the values of a slot.

        Parameters
        ----------
        slot : SlotData
            The slot; it must have as many jobs as the block.
        unit_price : ndarray, shape (R, K), optional
            Weighted unit price of the chord form; the slot's own chord if None.
        big : ndarray, shape (R, K), optional
            M; symmetric and minimal if None.
        ps : ndarray of int, shape (J,), optional
            Place of the PS of a conditioned block.
        """
        jobs, centers, kinds = self.shape
        if len(slot.jobs) != jobs:
            raise InputError("jobs", len(slot.jobs), f"the block was built for {jobs} jobs")
        needed = np.maximum(slot.needed, 1).astype(float)
        room = (slot.capacity * needed)[:, None]
        self.share.value = slot.data / room
        finite = np.where(np.isinf(slot.arc), 0.0, slot.arc)
        self.arc.value = (finite * room[:, :, None]).reshape(jobs * centers, centers)
        self.stays.value = np.isinf(slot.arc).astype(float).reshape(jobs * centers, centers)
        per_worker = slot.worker * needed[:, None]
        self.demand.value, self.server_demand.value = per_worker, slot.server
        self.size.value = (needed / (slot.needed + 1))[:, None]
        self.busy.value = (slot.needed > 0).astype(float)[:, None]
        self.one.value = (1.0 / (slot.needed + 1))[:, None]
        talk = (slot.exchange * needed)[:, None, None] * slot.distance
        if self.conditioned:
            place = (np.asarray(ps)[:, None] == np.arange(centers)).astype(float)
            self.server.value = place
            self.talk.value = np.einsum("jrp,jp->jr", talk, place)
        else:
            self.talk.value = talk.reshape(jobs * centers, centers)
        if self.price == "chord":
            price = slot.chord if unit_price is None else unit_price
            self.unit_demand.value = per_worker @ price.T
            if self.conditioned:
                self.server_bill.value = float((slot.server @ price.T * place).sum())
            self.unit_server.value = slot.server @ price.T
            return
        self.big.value = big_m(slot) if big is None else big
        self.fee.value = slot.fee
        for kind in range(kinds):
            for pair, price in ((self.full, slot.unit), (self.tier, slot.discounted)):
                pair[kind][0].value = np.outer(per_worker[:, kind], price[:, kind])
                pair[kind][1].value = np.outer(slot.server[:, kind], price[:, kind])

    def static_cost(self) -> Any:
        """C1 + C2 + C4 as an expression, weighted USD."""
        return cp.sum([self.costs[key] for key in ("transfer", "resource", "communication")])


class SlotProgram:
    """The per-slot program (10): the slot block with the regularised or plain switching cost.

    Parameters
    ----------
    block : SlotBlock
        The slot's convex set.
    switching : {"entropy", "relu"}
        ``entropy``: the paper's regulariser; ``relu``: c max(v - v_before, 0).
    epsilon : float
        eps of the regulariser.

    Notes
    -----
    The objective is (10) but for the constant ``-sum c/sigma (v_before + eps) ...`` terms that do
    not depend on the decision; `switching_cost` is the value of the switching term as printed.
    """

    def __init__(
        self, block: SlotBlock, switching: Switching = "entropy", epsilon: float = 0.01
    ) -> None:
        if not 0 < epsilon < np.inf:
            raise InputError("epsilon", epsilon, "must be above 0 and finite")
        if switching not in ("entropy", "relu"):
            raise InputError("switching", switching, "must be entropy or relu")
        jobs, centers, _ = block.shape
        self.block, self.epsilon = block, epsilon
        self.sigma = float(np.log1p(1.0 / epsilon))
        constraints = dict(block.constraints)
        self.launch = cp.Parameter((jobs, centers), nonneg=True, name="c or c / sigma")
        if switching == "entropy":
            self.memory = cp.Parameter((jobs, centers), name="c / sigma ln(v_before + eps)")
            shifted = block.present + epsilon
            self.switching = (
                cp.sum(cp.multiply(self.launch, -cp.entr(shifted)))
                - cp.sum(cp.multiply(self.memory, shifted))
                - cp.sum(cp.multiply(self.launch, block.present))
            )
        else:
            self.before = cp.Parameter((jobs, centers), nonneg=True, name="v_before")
            self.launched = cp.Variable((jobs, centers), nonneg=True, name="z")
            self.switching = cp.sum(cp.multiply(self.launch, self.launched))
            constraints["eq_8h"] = self.launched >= block.present - self.before
        self.kind = switching
        self.problem = cp.Problem(
            cp.Minimize(block.static_cost() + self.switching), list(constraints.values())
        )

    def set(self, slot: SlotData, before: Floats, **values: Any) -> None:
        """Give all Parameters their values; `before` is v of the slot before, shape (J, R)."""
        self.block.set(slot, **values)
        cost = np.repeat(slot.deployment[:, None], slot.num_centers, axis=1)
        if self.kind == "entropy":
            self.launch.value = cost / self.sigma
            self.memory.value = cost / self.sigma * np.log(before + self.epsilon)
        else:
            self.launch.value = cost
            self.before.value = before


def build_relaxation(
    instance: MlbrokerInstance,
    price: Price = "paper",
    *,
    unit_prices: Floats | None = None,
    kind: str = "symmetric",
    factor: float = 1.0,
) -> tuple[cp.Problem, list[SlotBlock | None]]:
    """P_f (9): the slots' blocks, linked by (8h), integrality dropped.

    Parameters
    ----------
    instance : MlbrokerInstance
        The instance.
    price : {"paper", "chord"}
        Relaxed big-M bill or chord. In the chord form the jobs are independent: build it for one
        job at a time with the whole instance's `unit_prices`.
    unit_prices : ndarray, shape (T, R, K), optional
        Unit prices of the chord form; each slot's own chord if None.
    kind, factor
        M, see `big_m`.

    Returns
    -------
    problem : cvxpy.Problem
        The linear program, weighted USD.
    blocks : list
        The slots' blocks; None for a slot without jobs.
    """
    centers, kinds = len(instance.datacenters), len(instance.resources)
    blocks: list[SlotBlock | None] = []
    constraints: list[Any] = []
    cost: Any = 0.0
    before: tuple[SlotData, SlotBlock] | None = None
    for slot in range(1, instance.horizon + 1):
        data = SlotData.at(instance, slot)
        if not data.jobs:
            blocks.append(None)
            before = None
            continue
        block = SlotBlock(len(data.jobs), centers, kinds, price)
        price_now = None if unit_prices is None else unit_prices[slot - 1]
        big = big_m(data, kind, factor) if price == "paper" else None
        block.set(data, unit_price=price_now, big=big)
        launched = cp.Variable((len(data.jobs), centers), nonneg=True, name=f"z {slot}")
        constraints += block.constraints.values()
        for j, name in enumerate(data.jobs):
            earlier: Any = 0.0
            if before is not None and name in before[0].jobs:
                earlier = before[1].present[before[0].jobs.index(name)]
            constraints.append(launched[j] >= block.present[j] - earlier)  # (8h)
        cost = cost + block.static_cost() + cp.sum(slot_launch(data) @ launched)
        blocks.append(block)
        before = (data, block)
    return cp.Problem(cp.Minimize(cost), constraints), blocks


def slot_launch(slot: SlotData) -> Floats:
    """Weighted launch cost of each job, shape (J,)."""
    return slot.deployment
