"""The batchsched checker: every constraint number is broken alone by one hand-made solution."""

from __future__ import annotations

from hindsched.instances.batchsched.instance import PARAMETER_SERVER, RING_ALLREDUCE
from hindsched.solutions.batchsched.solution import BatchschedSolution
from tests.strategies.batchsched import instance

JOB = {"arrival": 2, "weight": 3, "epochs": 1, "chunks": 2, "minibatches": 2, "gradient_mb": 0.5,
       "minibatch_slots": [0.75, 0.75], "update_slots": [0.25, 0.25]}  # fmt: skip
PS = instance(PARAMETER_SERVER, [(2, 3), (2, 3)], [(1, 1), (1, 2)], [1, 1], [JOB])
RAR_JOB = {**JOB, "reduce_slots": 0.25}
del RAR_JOB["update_slots"]
RAR = instance(RING_ALLREDUCE, [(2, 3), (2, 3)], [(1, 1), (1, 2)], [], [RAR_JOB])


def row(first, last, workers, ps=None, worker_type="w0", ps_type="p0"):
    made = {"from": first, "to": last, "worker_type": worker_type, "workers": workers}
    return made if ps is None else {**made, "ps_type": ps_type, "ps": ps}


def numbers(inst, rows):
    solution = BatchschedSolution.from_assignments(inst, {"j0": rows} if rows else {})
    return [violation.rule for violation in solution.violations()]


GOOD = row(2, 3, {"s0": 2}, {"s0": 1})


def test_a_good_solution_and_its_objective():
    solution = BatchschedSolution.from_assignments(PS, {"j0": [GOOD]})
    assert solution.violations() == []
    assert solution.completion("j0") == 3
    assert solution.objective() == 3 * (2 + 2)
    assert solution.assignments() == {"j0": [GOOD]}
    assert numbers(RAR, [row(2, 4, {"s0": 2})]) == []


def test_rows_that_follow_each_other_are_one_window():
    parts = [row(2, 2, {"s0": 2}, {"s0": 1}), row(3, 3, {"s0": 2}, {"s0": 1})]
    assert numbers(PS, parts) == []
