"""Where a gang stands: on one server, or on whole ones and at most one remainder.

One pool is one server that has all GPUs, so that there is one way of placing. Small gangs take the
fullest server that holds them (the first of equals), large ones whole free servers, largest first,
and the fullest server that holds the remainder: on an empty cluster that fits every gang that is
not larger than the cluster.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from hindsched.arrays import Ints
from hindsched.instances.gang.instance import GangInstance


class Cluster(NamedTuple):
    """Free GPUs and what each job holds.

    Attributes
    ----------
    sizes, free : ndarray of int, shape (servers,)
        GPUs of each server, in all and free.
    by_size : ndarray of int, shape (servers,)
        Servers, largest first.
    offset, number : ndarray of int, shape (jobs,)
        Where a job's places stand in `server` and `held`; no places: it holds nothing.
    server, held : ndarray of int, shape (places,)
        A job's servers and the GPUs it holds there. Grows; `used` counts.
    used : ndarray of int, shape (1,)
        Entries of `server` in use.
    """

    sizes: Ints
    free: Ints
    by_size: Ints
    offset: Ints
    number: Ints
    server: Ints
    held: Ints
    used: Ints


def cluster_sizes(instance: GangInstance) -> Ints:
    """GPUs by server where that matters; one number for a pool."""
    if instance.is_consolidated:
        return instance.server_gpus
    return np.array([instance.total_gpus])


def empty_cluster(sizes: Ints, jobs: int, places: int) -> Cluster:
    """A free cluster with room for so many jobs, each placed once, and so many places in all."""
    count = np.zeros(jobs, dtype=np.int64)
    columns = (np.zeros(places, dtype=np.int64), np.zeros(places, dtype=np.int64))
    by_size = np.argsort(-sizes, kind="stable")
    free, used = sizes.copy(), np.zeros(1, dtype=np.int64)
    return Cluster(sizes, free, by_size, count.copy(), count, *columns, used)


def padded(array: Ints, size: int, value: int = 0) -> Ints:
    """The array with new entries behind the old ones."""
    return np.concatenate([array, np.full(size - array.size, value, dtype=array.dtype)])


def enlarged_cluster(cluster: Cluster, jobs: int, places: int) -> Cluster:
    """The same cluster with room for more jobs and places."""
    return cluster._replace(
        offset=padded(cluster.offset, jobs),
        number=padded(cluster.number, jobs),
        server=padded(cluster.server, places),
        held=padded(cluster.held, places),
    )


def most_places(sizes: Ints, gpus: Ints) -> Ints:
    """Most servers on which each gang can stand."""
    return np.where(gpus <= sizes.max(), 1, np.minimum(gpus, sizes.size))


@njit(cache=True)
def place(cluster: Cluster, job: int, gpus: int) -> bool:
    """Book a gang's GPUs if they fit; says whether."""
    free, sizes = cluster.free, cluster.sizes
    at = cluster.used[0]
    left, number = gpus, 0
    if gpus > sizes[cluster.by_size[0]]:
        for server in cluster.by_size:
            if free[server] == sizes[server] and sizes[server] <= left:
                cluster.server[at + number] = server
                cluster.held[at + number] = sizes[server]
                free[server] = 0
                left -= sizes[server]
                number += 1
    if left > 0:
        best = -1
        for server in range(sizes.size):
            if free[server] >= left and (best < 0 or free[server] < free[best]):
                best = server
        if best < 0:
            for index in range(at, at + number):
                free[cluster.server[index]] += cluster.held[index]
            return False
        cluster.server[at + number] = best
        cluster.held[at + number] = left
        free[best] -= left
        number += 1
    cluster.offset[job] = at
    cluster.number[job] = number
    cluster.used[0] = at + number
    return True


@njit(cache=True)
def release(cluster: Cluster, job: int) -> None:
    """Give a job's GPUs back; where it stood is kept."""
    for index in range(cluster.offset[job], cluster.offset[job] + cluster.number[job]):
        cluster.free[cluster.server[index]] += cluster.held[index]
