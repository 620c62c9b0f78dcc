"""What a slot packs is feasible exactly, whatever a solver's tolerance allows."""

from threading import Event

import numpy as np

from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solvers.door.api import solve
from hindsched.solvers.families.oasis.slot_packing import Wish, drop_overload, pack_slot
from hindsched.solvers.oracles.base import build_oracle


def test_servers_hold_exactly_what_a_slot_packs():
    """A solver's tolerance of 1e-6 lets a worker of 0.5000004 stand beside one of 0.5."""

    def cluster(name, capacity):
        return [{"name": name, "capacity": {"gpu": capacity, "bw": 10}}]

    def job(name, gpu):
        return {
            "name": name, "arrival": 1, "epochs": 1, "chunks": 1, "minibatches": 1,
            "minibatch_slots": 1, "gradient_mb": 0, "worker": {"gpu": gpu}, "ps": {},
            "utility": {"kind": "linear", "slope": 0, "intercept": 1},
        }  # fmt: skip

    instance = OasisInstance.parse(
        {
            "format": "hindsched/1", "family": "oasis", "name": "hair", "horizon": 1,
            "slot_seconds": 3600, "resources": ["gpu", "bw"], "bandwidth_resource": "bw",
            "worker_servers": cluster("w", 1), "ps_servers": cluster("p", 1),
            "jobs": [job("j1", 0.5), job("j2", 0.5000004)],
        }
    )  # fmt: skip
    oracle = build_oracle(instance)
    wishes = [Wish(number, 1.0, 1, 1.0, 1, 1.0) for number in range(2)]
    placed = pack_slot(oracle, wishes, 10.0, Event())
    assert len(placed) == 1
    assert solve(instance, "milp").objective == 1


def test_overloaded_servers_lose_the_last_units():
    counts = np.array([[1, 2, 0], [1, 1, 3], [1, 0, 1]])
    drop_overload(counts, np.array([[3, 9], [2, 9], [9, 3]]), np.array([[1, 0], [1, 0], [1, 1]]))
    assert counts.tolist() == [[1, 2, 0], [1, 0, 3], [1, 0, 1]]


def test_jobs_without_ps_keep_no_other_from_its_own():
    """Patterns are maximal: a server for one PS held 30 units of each of twenty such jobs."""

    def cluster(name, number, capacity):
        return [{"name": f"{name}{n}", "capacity": capacity} for n in range(number)]

    def job(name, chunks, worker, ps):
        return {
            "name": name, "arrival": 1, "epochs": 5, "chunks": chunks, "minibatches": 1,
            "minibatch_slots": 1, "gradient_mb": 0, "worker": worker, "ps": ps,
            "utility": {"kind": "linear", "slope": 0, "intercept": 100},
        }  # fmt: skip

    alone = [job(f"b{n}", 30, {"gpu": 1}, {}) for n in range(20)]
    instance = OasisInstance.parse(
        {
            "format": "hindsched/1", "family": "oasis", "name": "idle", "horizon": 100,
            "slot_seconds": 3600, "resources": ["cpu", "gpu", "bw"], "bandwidth_resource": "bw",
            "worker_servers": [
                *cluster("wa", 1, {"cpu": 40, "bw": 1e6}), *cluster("wb", 1, {"gpu": 30}),
            ],
            "ps_servers": cluster("p", 40, {"cpu": 1, "bw": 100}),
            "jobs": [job("a", 400, {"cpu": 1, "bw": 1}, {"cpu": 1, "bw": 1}), *alone],
        }
    )  # fmt: skip
    wishes = [
        Wish(0, 40.0, 40, 1.0, 0, 0.0),
        *(Wish(n, 1.5, 30, 2.0, 0, 0.0) for n in range(1, 21)),
    ]
    placed = pack_slot(build_oracle(instance), wishes, 10.0, Event())
    assert placed[0][0].sum() == placed[0][1].sum() == 40
    assert sum(workers.sum() for workers, _ in placed.values()) == 70
