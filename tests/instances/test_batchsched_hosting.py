"""Numbers of workers that the parameter servers of one server can serve."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import hindsched as hs
from hindsched.instances.batchsched.colocation import Hosting
from hindsched.instances.batchsched.modes import fewest_ps, modes
from hindsched.instances.modes import NEVER, ps_ratios
from hindsched.solvers.oracles.base import build_oracle


def fewest(servers, worker, size, share, q, n):
    """From the definition: some server holds g workers and PSs that serve the others."""
    found = []
    for free in servers.tolist():
        for g in [n] if q else range(n):
            units = max(1, math.ceil((n - g) * share))
            use = [g * e + units * z for e, z in zip(worker, size, strict=True)]
            if all(u <= c for u, c in zip(use, free, strict=True)):
                found.append(units)
    return min(found, default=NEVER)


@pytest.mark.parametrize("seed", range(40))
def test_the_best_host_is_that_of_the_definition(seed):
    draws = np.random.default_rng(seed)
    servers = draws.integers(0, 12, (int(draws.integers(1, 4)), 2)).astype(float)
    worker, ps = draws.integers(1, 4, (2, 2)), draws.integers([0, 1], 6, (2, 2))
    most = 9
    ratio = ps_ratios(worker[:, 1], ps[:, 1], most)
    hosting = Hosting(servers, worker.astype(float), ps.astype(float), ratio)
    hosting.fewest_ps(3)  # a longer table is made when it is asked for
    table = hosting.fewest_ps(most)
    for m, p, q, n in np.ndindex(table.shape):
        share = Fraction(int(worker[m, 1]), int(ps[p, 1]))
        expected = fewest(servers, worker[m].tolist(), ps[p].tolist(), share, q, n + 1)
        assert table[m, p, q, n] == expected


def test_modes_that_no_server_hosts_are_none():
    """Two servers of room for 4 workers or one PS: the workers would stand beside no PS."""
    data = hs.generate("batchsched", jobs=1, servers=2, worker_types=1, ps_types=1).to_dict()
    data["worker_types"][0]["demand"] = {"gpu": 1, "cpu": 1, "bandwidth_mbps": 100}
    data["ps_types"][0]["demand"] = {"gpu": 0, "cpu": 4, "bandwidth_mbps": 200}
    for server in data["servers"]:
        server["capacity"] = {"gpu": 4, "cpu": 4, "bandwidth_mbps": 9000}
    data["jobs"][0] |= {"chunks": 6, "epochs": 5, "minibatches": 3}
    instance = hs.read(data)
    table = modes(instance, instance.jobs[0])
    assert table.one_server.tolist() == [0, 0]  # one PS serves two workers elsewhere
    assert table.workers.tolist() == [1, 2]
    assert fewest_ps(instance, table).tolist() == [1, 1]
    oracle = build_oracle(instance)
    free = oracle.bound(np.zeros(oracle.rows.size))
    job = instance.jobs[0]
    assert free == pytest.approx(job.weight * (job.arrival + int(table.duration.min())))
    best = hs.solve(instance, options={"time_limit": 20})
    assert best.objective == pytest.approx(free)
