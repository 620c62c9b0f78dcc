"""What is remembered of empty clusters."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from hindsched.solutions.window_placing import EmptyCluster


def cluster():
    return SimpleNamespace(
        server_capacity=np.array([[4.0, 7.0]]), worker_demand=np.array([[1.0, 1.25]]),
        ps_demand=np.zeros((0, 2)), ps_ratio=np.zeros((1, 0)), has_ps=False,
    )  # fmt: skip


def test_an_array_changed_in_place_is_another_cluster():
    """Neither the one that is remembered nor an equal one changes with it."""
    changed = cluster()
    before = EmptyCluster.of(changed)
    changed.worker_demand[:] = 3.0
    assert EmptyCluster.of(changed).hosts(0, 0, 1, 2) == []
    assert EmptyCluster.of(cluster()) is before
    assert before.hosts(0, 0, 1, 2) == [(0, 2)]
