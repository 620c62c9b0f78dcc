"""The kernels of batchsched's search count as whole numbers do, and choose as sorting does."""

from __future__ import annotations

import numpy as np
import pytest

import hindsched as hs
from hindsched.solvers.families.batchsched.search import search_of
from hindsched.solvers.kernels.batchsched.window_moves import smallest
from hindsched.solvers.kernels.batchsched.window_plan import GIVE_BACK, TAKE
from hindsched.solvers.oracles.base import build_oracle
from tests.solvers.booking import book

RING = {"architecture": "ring-allreduce"}


def searched(changes, seed):
    """A search of a small cluster after some moves, on which a worker type needs no memory."""
    instance = hs.generate("batchsched", "paper", seed, jobs=15, servers=12,
                           capacity_fraction=None, **changes)  # fmt: skip
    data = instance.model_dump()
    del data["worker_types"][0]["demand"][instance.resources[1]]
    instance = type(instance).model_validate(data)
    assert instance.worker_demand[0, 1] == 0.0
    oracle = build_oracle(instance, rows="servers")
    found = search_of(oracle, np.zeros(oracle.rows.size), seed=seed)
    found.construct()
    calls = iter(range(60))
    found.improve(lambda: next(calls, None) is None)
    return found


@pytest.mark.parametrize("changes", [{}, RING])
@pytest.mark.parametrize("seed", range(3))
def test_room_is_what_whole_numbers_say(changes, seed):
    level = searched(changes, seed)._real
    (seat,) = level.seats
    servers, types, resources = level.every.worker.shape
    for job in (0, 7, 14, None):
        room = seat.cluster.room.astype(int)
        expected = np.full(room.shape, 32000)
        for h, m, r in np.ndindex(servers, types, resources):
            if needed := int(level.every.worker[h, m, r]):
                free = seat.cluster.free[h, r].astype(int)
                expected[m, :, h] = np.minimum(expected[m, :, h], free // needed)
        assert (room == expected).all()
        assert (seat.cluster.total == expected.sum(axis=2)).all()
        if job is not None:
            book(GIVE_BACK, job, seat.plan, seat.cluster, level.every)
    assert (expected.max(axis=1) > expected.min(axis=1)).any()
    for job in (0, 7, 14):
        book(TAKE, job, seat.plan, seat.cluster, level.every)


def test_the_smallest_are_those_of_a_stable_order():
    random = np.random.default_rng(0)
    for _ in range(300):
        keys = random.integers(0, 12, random.integers(1, 40)).astype(float)
        count = int(random.integers(1, len(keys) + 1))
        assert (smallest(keys, count) == np.argsort(keys, kind="stable")[:count]).all()
