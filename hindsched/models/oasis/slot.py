"""The oasis family's per-slot program (32) in CVXPY, with Parameters: one model for every slot.

=================  ==========================================================
symbol             meaning
=================  ==========================================================
``y``              workers by worker server, (H,)
``z``              parameter servers by PS server, (K,)
``D(t) M (...)``   workers that the slot's workload needs: `workload`
=================  ==========================================================

The model is compiled once; prices, room and workload of a slot (and the job's own numbers) are
Parameters, so that a loop over slots or jobs only sets values.
"""

from __future__ import annotations

import cvxpy as cp

from hindsched.arrays import Floats
from hindsched.instances.decimals import how_many_left, loosened
from hindsched.instances.oasis.instance import OasisInstance, OasisJob


class SlotProgram:
    """Cheapest deployment of one job in one slot: (32) under (3), (6), (7), (30), (31).

    Parameters
    ----------
    instance : OasisInstance
        The cluster.
    integer : bool
        Whether y and z are whole numbers, (12) and (13); otherwise the relaxation.

    Attributes
    ----------
    problem : cvxpy.Problem
        Follows the rules of disciplined parametrised programming.
    workers, ps : cvxpy.Variable
        y and z.
    """

    def __init__(self, instance: OasisInstance, *, integer: bool = True) -> None:
        self.instance = instance
        num_workers, num_ps = len(instance.worker_servers), len(instance.ps_servers)
        self.workers = cp.Variable(num_workers, integer=integer, name="y")
        self.ps = cp.Variable(num_ps, integer=integer, name="z")
        self.worker_price = cp.Parameter(num_workers, nonneg=True, name="worker_price")
        self.ps_price = cp.Parameter(num_ps, nonneg=True, name="ps_price")
        self.worker_room = cp.Parameter(num_workers, nonneg=True, name="worker_room")
        self.ps_room = cp.Parameter(num_ps, nonneg=True, name="ps_room")
        self.workload = cp.Parameter(nonneg=True, name="workload")
        self.chunks = cp.Parameter(nonneg=True, name="chunks")
        self.bandwidth_share = cp.Parameter(nonneg=True, name="bandwidth_share")
        y, z = cp.sum(self.workers), cp.sum(self.ps)
        self.constraints = {
            "(32)": y >= self.workload,
            "(3)": y <= self.chunks,
            "(6)": self.bandwidth_share * y <= z,
            "(7)": z <= y,
            "(30)": self.workers <= self.worker_room,
            "(31)": self.ps <= self.ps_room,
        }
        cost = self.worker_price @ self.workers + self.ps_price @ self.ps
        signs = [self.workers >= 0, self.ps >= 0]
        self.problem = cp.Problem(cp.Minimize(cost), [*self.constraints.values(), *signs])

    def set(
        self,
        job: OasisJob,
        workload: float,
        worker_prices: Floats,
        ps_prices: Floats,
        worker_residual: Floats | None = None,
        ps_residual: Floats | None = None,
    ) -> None:
        """Set the Parameters for a job in a slot.

        Parameters
        ----------
        job : OasisJob
            The job.
        workload : float
            Worker-slots to do in the slot, the right side of (32)'s first row.
        worker_prices, ps_prices : ndarray, shape (H, R), (K, R)
            Prices in the slot.
        worker_residual, ps_residual : ndarray, shape (H, R), (K, R), optional
            What is left of the capacities; None for all of it.
        """
        instance = self.instance
        worker, ps = instance.demand_of(job)
        free = [
            loosened(capacity if left is None else left, capacity)
            for capacity, left in (
                (instance.worker_capacity, worker_residual),
                (instance.ps_capacity, ps_residual),
            )
        ]
        self.worker_price.value = worker_prices @ worker
        self.ps_price.value = ps_prices @ ps
        self.worker_room.value = how_many_left(free[0], worker, job.chunks).astype(float)
        self.ps_room.value = how_many_left(free[1], ps, job.chunks).astype(float)
        self.workload.value = workload
        self.chunks.value = float(job.chunks)
        self.bandwidth_share.value = instance.ps_per_worker(job)
