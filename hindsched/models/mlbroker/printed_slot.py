"""(10), the program of one slot, as the paper prints it: one object for a run, with Parameters.

It is built and compiled once, padded to as many jobs as live at once in any slot; a slot sets its
Parameters. A padded job has no data and no PS, and all that it might take has a price.

==================  ==========================================
``y s v``           workers, PS, deployment, (J, R)
``q g``             GB sent and connections r -> r', (J R, R)
``z``               the regulariser's part of a job, (J, R)
``x u1 u2``         bill, (8c) is off, (8d) is off, (R, K)
==================  ==========================================

It is not what a run solves. In 15 data centres it compiles with 1.0, 2.3, 7.0 GB in 2, 6, 19 s for
13, 22, 41 jobs at once, as the compiled form has a part for each of up to 27,000 Parameters; then a
slot takes 0.2 to 2 s, many by Clarabel's third try, as GB and workers are far apart in size.
`slot_program`, reduced and scaled, to the same optimum, takes 0.07, 0.12, 0.22 s a slot with 0.03
GB, built anew each time. With 5 jobs in 3 data centres both take some 0.01 s.
"""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from hindsched.arrays import Floats
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.mlbroker.sets import big_m


class PrintedSlots:
    """(10) of any slot of an instance; costs weighted, M the least that is valid, U = N + 1.

    Examples
    --------
    >>> import hindsched as hs
    >>> program = PrintedSlots(hs.generate("mlbroker", seed=1))
    >>> program.set(slot=1)
    >>> program.problem.is_dcp(dpp=True)
    True
    """

    def __init__(self, instance: MlbrokerInstance, epsilon: float = 0.01) -> None:
        self.instance = instance
        self.jobs = J = max(1, int(instance.alive.sum(axis=0).max()))
        R, K = len(instance.datacenters), len(instance.resources)
        view = SlotData.at(instance, 1)  # what it says of the data centres holds in all slots
        y, s, v = (cp.Variable((J, R), nonneg=True) for _ in range(3))
        z = cp.Variable((J, R))
        q, g = (cp.Variable((J * R, R), nonneg=True) for _ in range(2))
        x, u1, u2 = (cp.Variable((R, K), nonneg=True) for _ in range(3))
        self._job = {name: cp.Parameter((J, 1), nonneg=True) for name in (
            "alive", "needed", "capacity", "exchange", "deployment",
        )}  # fmt: skip
        self._units = [cp.Parameter((J, K), nonneg=True) for _ in range(2)]  # a worker's, a PS's
        self._data, self._before = (cp.Parameter((J, R), nonneg=True) for _ in range(2))
        self._arc, self._closed = (cp.Parameter((J * R, R), nonneg=True) for _ in range(2))
        self._big = cp.Parameter((R, K), nonneg=True)
        P, N, e, c = (self._job[name] for name in ("capacity", "needed", "exchange", "deployment"))
        everywhere, into = np.ones((1, R)), np.kron(np.eye(J), np.ones((1, R)))

        def out(ways: cp.Variable) -> cp.Expression:
            return cp.reshape(cp.sum(ways, axis=1), (J, R), order="C")

        h = y.T @ self._units[0] + s.T @ self._units[1]  # (2)
        distance = np.tile(view.distance, (J, 1))
        talk = into @ cp.sum(cp.multiply(distance, g), axis=1, keepdims=True)
        self.constraints = {
            "(8a)": cp.multiply(P @ everywhere, y) >= into @ q,
            "(8b)": out(q) == self._data,
            "closed": cp.multiply(self._closed, q) == 0,  # ways that data may not take
            "(8c)": x >= cp.multiply(view.unit, h) - cp.multiply(self._big, u1),
            "(8d)": x >= cp.multiply(view.discounted, h) + view.fee - cp.multiply(self._big, u2),
            "(8e)": u1 + u2 == 1,
            "(8f)": cp.sum(s, axis=1, keepdims=True) == self._job["alive"],
            "(8g)": cp.multiply((N + 1) @ everywhere, v) >= y + s,
            "(8i)": out(g) == y,
            "(8j)": into @ g >= cp.multiply(N @ everywhere, s),
            "regulariser": z >= cp.rel_entr(v + epsilon, self._before + epsilon) - v,
        }
        self.objective = (
            cp.sum(cp.multiply(self._arc, q)) + cp.sum(x) + cp.sum(cp.multiply(e, talk))
            + cp.sum(cp.multiply(c @ everywhere, z)) / float(np.log1p(1 / epsilon))
        )  # fmt: skip
        self.problem = cp.Problem(cp.Minimize(self.objective), list(self.constraints.values()))

    def set(self, slot: int, before: Floats | None = None) -> None:
        """Set the Parameters to a slot; `before` is v of its jobs in the slot before, (J, R)."""
        view = SlotData.at(self.instance, slot)
        count, closed = len(view.jobs), ~np.isfinite(view.arc)

        def padded(values: Floats, fill: float) -> Floats:
            rows: Floats = np.full((self.jobs, *values.shape[1:]), fill)
            rows[:count] = values
            return rows

        for name, fill in (("needed", 0.0), ("capacity", 1.0), ("exchange", 1.0),
                           ("deployment", 1.0)):  # fmt: skip
            self._job[name].value = padded(getattr(view, name)[:, None], fill)
        self._job["alive"].value = padded(np.ones((count, 1)), 0.0)
        for units, values in zip(self._units, (view.worker, view.server), strict=True):
            units.value = padded(values, 1.0)
        self._data.value = padded(view.data, 0.0)
        self._before.value = padded(np.zeros(view.data.shape) if before is None else before, 0.0)
        ways = self._arc.shape
        self._arc.value = padded(np.where(closed, 0.0, view.arc), 1.0).reshape(ways)
        self._closed.value = padded(closed.astype(float), 0.0).reshape(ways)
        self._big.value = big_m(view)
