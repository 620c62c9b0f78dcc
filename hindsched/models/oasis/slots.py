"""The oasis family's per-slot program (32) in CVXPY, with Parameters: one model for every slot.

=================  ==========================================================
symbol             meaning
=================  ==========================================================
``y``              workers by worker server, (H,)
``z``              parameter servers by PS server, (K,)
``D(t) M (...)``   workers that the slot's workload needs: `workload`
=================  ==========================================================
"""

from __future__ import annotations

import cvxpy as cp

from hindsched.arrays import Floats
from hindsched.instances.decimals import how_many_left, loosened
from hindsched.instances.oasis.instance import OasisInstance, OasisJob


class SlotProgram:
    """Cheapest deployment of one job in one slot: (32) under (3), (6), (7), (30), (31).

    Compiled once: a loop over slots or jobs only sets Parameters.

    Parameters
    ----------
    instance : OasisInstance
        The cluster.
    integer : bool
        Whether y and z are whole numbers, (12) and (13); otherwise the relaxation.
    """

    def __init__(self, instance: OasisInstance, *, integer: bool = True) -> None:
        self.instance = instance
        H, K = len(instance.worker_servers), len(instance.ps_servers)
        self.workers = y = cp.Variable(H, integer=integer, name="y")
        self.ps = z = cp.Variable(K, integer=integer, name="z")
        self.worker_price = cp.Parameter(H, nonneg=True, name="worker_price")
        self.ps_price = cp.Parameter(K, nonneg=True, name="ps_price")
        self.worker_room = cp.Parameter(H, nonneg=True, name="worker_room")
        self.ps_room = cp.Parameter(K, nonneg=True, name="ps_room")
        self.workload = cp.Parameter(nonneg=True, name="workload")
        self.chunks = cp.Parameter(nonneg=True, name="chunks")
        self.ps_per_worker = cp.Parameter(nonneg=True, name="ps_per_worker")
        self.constraints = {
            "(32)": cp.sum(y) >= self.workload,
            "(3)": cp.sum(y) <= self.chunks,
            "(6)": self.ps_per_worker * cp.sum(y) <= cp.sum(z),
            "(7)": cp.sum(z) <= cp.sum(y),
            "(12)": y >= 0,
            "(13)": z >= 0,
            "(30)": y <= self.worker_room,
            "(31)": z <= self.ps_room,
        }
        cost = self.worker_price @ y + self.ps_price @ z
        self.problem = cp.Problem(cp.Minimize(cost), list(self.constraints.values()))

    def set(
        self, job: OasisJob, workload: float, prices: tuple[Floats, Floats],
        left: tuple[Floats, Floats] | None = None,
    ) -> None:  # fmt: skip
        """Set the Parameters for a job in a slot.

        Parameters
        ----------
        job : OasisJob
            The job.
        workload : float
            Worker-slots to do in the slot, the right side of (32)'s first row.
        prices : pair of ndarray, shapes (H, R), (K, R)
            Prices in the slot.
        left : pair of ndarray, shapes (H, R), (K, R), optional
            What is left of the capacities; None for all of it.
        """
        instance = self.instance
        whole = instance.worker_capacity, instance.ps_capacity
        for demand, price, room, prices_, capacity, free in zip(
            instance.demand_of(job), (self.worker_price, self.ps_price),
            (self.worker_room, self.ps_room), prices, whole, left or whole, strict=True,
        ):  # fmt: skip
            price.value = prices_ @ demand
            room.value = how_many_left(loosened(free, capacity), demand, job.chunks).astype(float)
        self.workload.value = workload
        self.chunks.value = float(job.chunks)
        self.ps_per_worker.value = instance.ps_per_worker(job)
