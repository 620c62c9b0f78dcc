"""Numbers that no generator makes: what rounding lets in, and a thousand jobs at once."""

import pytest

from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solvers.door.api import solve
from hindsched.solvers.oracles.base import build_oracle
from hindsched.solvers.search import NeighbourhoodSearch


def at_once(gpus, capacity=1, slots=1):
    """Jobs of one worker and one slot each, worth 1, 2, ..., on one server."""
    jobs = [
        {
            "name": f"j{number}", "arrival": 1, "epochs": 1, "chunks": 1, "minibatches": 1,
            "minibatch_slots": 1, "gradient_mb": 0, "worker": {"gpu": gpu}, "ps": {},
            "utility": {"kind": "linear", "slope": 0, "intercept": 1 + number},
        }
        for number, gpu in enumerate(gpus)
    ]  # fmt: skip
    server = {"name": "s", "capacity": {"gpu": capacity, "bw": 1}}
    return OasisInstance.parse(
        {
            "format": "hindsched/1", "family": "oasis", "name": "at-once", "horizon": slots,
            "slot_seconds": 3600, "resources": ["gpu", "bw"], "bandwidth_resource": "bw",
            "worker_servers": [server], "ps_servers": [server], "jobs": jobs,
        }
    )  # fmt: skip


@pytest.mark.parametrize("gpus", [(1 / 6, 5 / 6), (5 / 6, 1 / 6)])
def test_jobs_that_only_rounding_lets_in_are_left_out(gpus):
    """5/6 is written 0.8333333333333334: with 0.16666666666666666 it is more than 1."""
    instance = at_once(gpus)
    search = NeighbourhoodSearch(build_oracle(instance, rows="servers"))
    search.construct()
    found = search.solution()
    assert not found.violations()
    assert search.objective == found.objective() == 2
    best = solve(instance)
    assert best.status == "optimal"
    assert best.objective == 2


def test_more_jobs_than_calls_within_calls():
    """Patterns are not looked for among a thousand jobs in one slot."""
    many = 1200
    result = solve(at_once([1] * many, capacity=3), "milp", time_limit=60)
    assert result.objective == many + (many - 1) + (many - 2)
