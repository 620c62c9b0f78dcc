"""What mlbroker's kernels are given: a job at linear prices, a job, a slot's jobs, the tiers.

===============  =====================================================
paper            here
===============  =====================================================
``D^r, P, N``    `data` (R,), `capacity`, `needed`
``ceil(D / P)``  `pinned` (R,), where data stays
``n_k, m_k``     `worker`, `server` (K,)
``kappa_r``      `worker_price`: sum_k price n_k (weighted USD)
``mu_r``         `ps_price`: sum_k price m_k
``B d^{rr'}``    `exchange` (R, R)
``d^{rr'}``      `arc` (R, R), infinite where pinned data would leave
``a, b, e``      `unit`, `discounted`, `fee` (R, K)
===============  =====================================================
"""

from __future__ import annotations

from typing import NamedTuple

from hindsched.arrays import Floats, Ints


class PricedBlock(NamedTuple):
    """One job in one slot at linear prices.

    Parameters
    ----------
    data : ndarray, shape (R,)
        D, GB.
    capacity : float
        P, GB a worker.
    needed : int
        N.
    pinned : ndarray of int, shape (R,)
        Least workers in each centre for data that may not leave it.
    worker_price, ps_price : ndarray, shape (R,)
        Weighted price of what a worker and the PS rent.
    exchange : ndarray, shape (R, R)
        Weighted price of a worker's exchange with the PS, by their centres.
    arc : ndarray, shape (R, R)
        Weighted transfer price a GB, infinite where pinned data would leave.
    launch : ndarray, shape (R,)
        Weighted cost of using a centre, 0 where the job already runs.
    """

    data: Floats
    capacity: float
    needed: int
    pinned: Ints
    worker_price: Floats
    ps_price: Floats
    exchange: Floats
    arc: Floats
    launch: Floats


class Job(NamedTuple):
    """One job in one slot: as `PricedBlock`, with what it rents in place of prices.

    Parameters
    ----------
    worker, server : ndarray, shape (K,)
        n and m.
    """

    data: Floats
    capacity: float
    needed: int
    pinned: Ints
    worker: Floats
    server: Floats
    exchange: Floats
    arc: Floats
    launch: Floats


class SlotJobs(NamedTuple):
    """The jobs of a slot.

    Parameters
    ----------
    data, capacity, needed, pinned : ndarray, shapes (J, R), (J,), (J,), (J, R)
        D, P, N and the least workers for pinned data of each job.
    worker, server : ndarray, shape (J, K)
        n and m.
    exchange : ndarray, shape (J,)
        B in GB; times `distance` it is the weighted price of a remote worker.
    distance : ndarray, shape (R, R)
        Weighted d for communication.
    arc : ndarray, shape (J, R, R)
        Weighted transfer price, infinite where pinned data would leave.
    launch : ndarray, shape (J, R)
        Weighted launch cost, 0 where the job already runs.
    """

    data: Floats
    capacity: Floats
    needed: Ints
    pinned: Ints
    worker: Floats
    server: Floats
    exchange: Floats
    distance: Floats
    arc: Floats
    launch: Floats


class Tiers(NamedTuple):
    """Weighted a, b and e, each of shape (R, K)."""

    unit: Floats
    discounted: Floats
    fee: Floats
