"""One hand-made solution breaks exactly each constraint, and the checker names it and no other."""

from __future__ import annotations

import numpy as np
import pytest

from hindsched.errors import InputError
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.solutions.base import read_solution, write_solution
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


@pytest.mark.parametrize(
    ("rows", "where"),
    [
        ([row(0, 3, {}, {})], "assignments[0].from"),
        ([row(2, 6, {}, {})], "assignments[0].to"),
        ([row(3, 2, {}, {})], "assignments[0].to"),
        ([row(2, 3, {"w9": 1}, {})], "assignments[0].workers"),
        ([row(2, 3, {"w1": 1.5}, {})], "assignments[0].workers.w1"),
        ([row(2, 3, {"w1": True}, {})], "assignments[0].workers.w1"),
        ([row(2, 3, [], {})], "assignments[0].workers"),
        ([{"from": 2, "to": 3, "workers": {}, "cloud": 1}], "assignments[0]"),
        ([3], "assignments[0]"),
    ],
)
def test_malformed_rows_are_one_line_errors(rows, where):
    with pytest.raises(InputError) as caught:
        built(rows)
    assert where in caught.value.where
    assert "\n" not in str(caught.value)


def test_an_unknown_job_is_an_error():
    with pytest.raises(InputError, match="must name a job"):
        OasisSolution.from_assignments(make(), {"k": GOOD})


def test_files_round_trip_and_belong_to_their_instance(tmp_path):
    solution = built(GOOD)
    path = tmp_path / "s.json"
    write_solution(solution, path, {"method": "hand"})
    again = read_solution(path, solution.instance)
    assert again.assignments() == solution.assignments()
    assert (again.workers["j"] == solution.workers["j"]).all()
    with pytest.raises(InputError, match="instance_sha256"):
        read_solution(path, make(arrival=1))


def test_run_length_merges_neighbours_and_splits_changes():
    rows = [row(2, 2, {"w1": 1}, {"p1": 1}), row(3, 3, {"w1": 1}, {"p1": 1}),
            row(5, 5, {"w2": 2}, {"p2": 2})]  # fmt: skip
    merged = built(rows).assignments()["j"]
    assert merged == [row(2, 3, {"w1": 1}, {"p1": 1}), row(5, 5, {"w2": 2}, {"p2": 2})]
    assert built(merged).assignments()["j"] == merged


def test_shapes_are_checked():
    with pytest.raises(ValueError, match="shape"):
        OasisSolution(make(), {"j": np.zeros((4, 2))}, {})
