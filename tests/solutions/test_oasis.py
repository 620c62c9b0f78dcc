"""One hand-made solution breaks exactly each constraint, and the checker names it and no other."""

from __future__ import annotations

import numpy as np
import pytest

from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solutions.oasis.solution import OasisSolution


def make(**changes):
    """One job that arrives in slot 2 and needs 4 worker-slots, at most 3 workers at once."""
    job = {
        "name": "j", "arrival": 2, "epochs": 2, "chunks": 3, "minibatches": 1,
        "minibatch_slots": 0.65, "gradient_mb": 0, "worker": {"gpu": 1, "mbps": 2},
        "ps": {"cpu": 1, "mbps": 3},
        "utility": {"kind": "sigmoid", "priority": 10, "decay": 1, "target": 1},
    }  # fmt: skip
    return OasisInstance.parse(
        {
            "format": "hindsched/1", "family": "oasis", "name": "hand", "horizon": 5,
            "slot_seconds": 60, "resources": ["gpu", "cpu", "mbps"], "bandwidth_resource": "mbps",
            "worker_servers": [
                {"name": "w1", "capacity": {"gpu": 2, "mbps": 20}},
                {"name": "w2", "capacity": {"gpu": 3, "mbps": 20}},
            ],
            "ps_servers": [
                {"name": "p1", "capacity": {"cpu": 2, "mbps": 20}},
                {"name": "p2", "capacity": {"cpu": 4, "mbps": 20}},
            ],
            "jobs": [{**job, **changes}],
        }
    )  # fmt: skip


def row(first, last, workers, ps):
    return {"from": first, "to": last, "workers": workers, "ps": ps}


GOOD = [row(2, 3, {"w1": 1, "w2": 1}, {"p1": 1, "p2": 1})]


def built(rows, **changes):
    return OasisSolution.from_assignments(make(**changes), {"j": rows})


def numbers(solution):
    return {violation.rule for violation in solution.violations()}


def test_a_good_solution():
    solution = built(GOOD)
    assert solution.violations() == []
    assert solution.completion("j") == 3
    assert solution.objective() == pytest.approx(10 / (1 + 1))
    assert solution.assignments() == {"j": GOOD}
    frame = solution.to_frame()
    assert frame.loc[0, "work"] == 4
    assert frame.loc[0, "worker_slots"] == 4
    assert frame.loc[0, "start"] == 2
    used = {(r["slot"], r["role"], r["resource"]): r["used"] for r in solution.usage_rows()}
    assert used[2, "ps", "mbps"] == 3
    assert used[3, "worker", "mbps"] == 2


def test_the_work_is_rounded_up():
    assert make().work.tolist() == [4]  # 2 x 3 x 1 x 0.65 = 3.9
    assert make(minibatch_slots=0.5 + 1e-12).work.tolist() == [4], "a hair above 3"
    assert make(gradient_mb=15).work.tolist() == [16]  # 2 x 15 x 8 / 2 / 60 = 2 more a mini-batch


def test_a_job_without_all_its_work_earns_nothing():
    solution = built([row(2, 2, {"w2": 3}, {"p2": 2})])
    assert solution.completion("j") is None
    assert solution.objective() == 0
    assert built([]).violations() == []


def test_run_length_merges_neighbours_and_splits_changes():
    rows = [row(2, 2, {"w1": 1}, {"p1": 1}), row(3, 3, {"w1": 1}, {"p1": 1}),
            row(5, 5, {"w2": 2}, {"p2": 2})]  # fmt: skip
    merged = built(rows).assignments()["j"]
    assert merged == [row(2, 3, {"w1": 1}, {"p1": 1}), row(5, 5, {"w2": 2}, {"p2": 2})]
    assert built(merged).assignments()["j"] == merged


def test_shapes_are_checked():
    with pytest.raises(ValueError, match="shape"):
        OasisSolution(make(), {"j": np.zeros((4, 2))}, {})
