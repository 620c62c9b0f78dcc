"""The oasis family's per-slot program (32) in CVXPY, with Parameters: one model for a whole run.

Algorithm 2 asks what n workers cost in a slot, for n = 0, 1, ..., N: COST_t(n). The program answers
for `workloads` of them at once, each with deployments of its own:

====================  ===================================================================
symbol                meaning
====================  ===================================================================
``y``                 workers by workload and worker server, (workloads, H)
``z``                 parameter servers by workload and PS server, (workloads, K)
``D(t) M (...)``      workers that the slot's work needs: `workload`, at most N, (3)
``p_h(t), q_k(t)``    prices of one worker or PS: `worker_price` (H,), `ps_price` (K,)
====================  ===================================================================

Without (12) and (13), that y and z are whole, it is a linear program whose vertices are whole: its
rows are sums over servers, and all right sides and rooms are whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import cvxpy as cp
import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.oasis.instance import OasisInstance


class OasisSlotProgram:
    """Cheapest deployments of one job in one slot: (32) under (3), (6), (7), (30), (31).

    Compiled once: a loop over slots and jobs only sets Parameters. A solve answers for `workloads`
    numbers of workers.
    """

    def __init__(self, instance: OasisInstance, workloads: int = 32) -> None:
        H, K = len(instance.worker_servers), len(instance.ps_servers)
        self.workloads = workloads
        self.workers = y = cp.Variable((workloads, H), name="y")
        self.ps = z = cp.Variable((workloads, K), name="z")
        self.worker_price = cp.Parameter(H, nonneg=True, name="worker_price")
        self.ps_price = cp.Parameter(K, nonneg=True, name="ps_price")
        self.worker_room = cp.Parameter((1, H), nonneg=True, name="worker_room")
        self.ps_room = cp.Parameter((1, K), nonneg=True, name="ps_room")
        self.workload = cp.Parameter(workloads, nonneg=True, name="workload")
        self.ps_needed = cp.Parameter(workloads, nonneg=True, name="ps_needed")
        each = np.ones((workloads, 1))
        self.constraints = {
            # at least; no price is negative, so that more workers than it takes never pay
            "(32)": cp.sum(y, axis=1) == self.workload,
            "(6)": cp.sum(z, axis=1) >= self.ps_needed,
            "(7)": cp.sum(z, axis=1) <= cp.sum(y, axis=1),
            "(12)": y >= 0,
            "(13)": z >= 0,
            "(30)": y <= each @ self.worker_room,
            "(31)": z <= each @ self.ps_room,
        }
        cost = cp.sum(y @ self.worker_price) + cp.sum(z @ self.ps_price)
        self.problem = cp.Problem(cp.Minimize(cost), list(self.constraints.values()))

    def set(
        self, workload: Ints, ps_needed: Ints, prices: Sequence[Floats | Ints],
        room: Sequence[Ints],
    ) -> None:  # fmt: skip
        """Set the Parameters for a job in a slot.

        The slot's work needs `workload` workers, (workloads,) or shorter, and so many of them
        `ps_needed` PSs: the right side of (6), rounded up. `prices` are of one worker (H,) and one
        PS (K,), `room` how many fit in what is left of each server, (30) and (31).
        """
        unused = (0, self.workloads - len(workload))
        self.workload.value = np.pad(workload, unused).astype(float)
        self.ps_needed.value = np.pad(ps_needed, unused).astype(float)
        self.worker_price.value, self.ps_price.value = (array.astype(float) for array in prices)
        self.worker_room.value, self.ps_room.value = (array[None].astype(float) for array in room)
