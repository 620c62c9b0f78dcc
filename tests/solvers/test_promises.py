"""Promises of ends: what is decided about them, remembered, made smaller and cut off."""

from __future__ import annotations

import numpy as np
import pytest

import hindsched as hs
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.oasis.ends import build_ends_program
from hindsched.solutions.base import build_solution
from hindsched.solvers.door.kept import keeping
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.status import Status
from hindsched.solvers.families.oasis import methods
from hindsched.solvers.families.oasis.conflicts import Promises

TORN = hs.generate("oasis", "paper", 7, jobs=4, horizon=5, servers=3, max_duration=3)
"""The ends that its program promises first cannot be kept."""
EVERYBODY = dict.fromkeys(range(4), 5)


def test_what_is_weaker_than_kept_or_stronger_than_impossible_is_known() -> None:
    promises = Promises(TORN, SolveOptions())
    assert promises.known(EVERYBODY) is None
    assert promises.decide(EVERYBODY, None).status is Status.INFEASIBLE
    assert promises.known({**EVERYBODY, 0: 4}) is False
    assert promises.known({0: 5, 1: 5}) is None
    kept = next(job for job in range(4) if promises.decide({job: 4}, None).has_point)
    assert promises.known({kept: 5}) is True
    assert promises.known({}) is True
    assert promises.known({kept: 3}) is None
    assert promises.best is not None
    assert promises.best.is_feasible()


def test_nothing_is_decided_twice_while_conflicts_shrink() -> None:
    promises = Promises(TORN, SolveOptions())
    assert promises.decide(EVERYBODY, None).status is Status.INFEASIBLE
    first = promises.conflicts(EVERYBODY, EVERYBODY, lambda: False)
    count = promises.count
    assert count > 1
    assert promises.conflicts(EVERYBODY, EVERYBODY, lambda: False) == first
    assert promises.count == count
    for conflict in first:
        assert promises.known(conflict) is False


def test_conflicts_are_the_smallest_and_cut_off_no_schedule() -> None:
    promises = Promises(TORN, SolveOptions())
    promises.decide(EVERYBODY, None)
    best = hs.solve(TORN, "milp", time_limit=60).objective
    program = build_ends_program(TORN)
    before = solve_program(program.model, SolveOptions()).bound
    for conflict in promises.conflicts(EVERYBODY, EVERYBODY, lambda: False):
        for job in conflict:
            fewer = {i: end for i, end in conflict.items() if i != job}
            assert not fewer or promises.decide(fewer, None).has_point
        program.forbid(conflict)
    after = solve_program(program.model, SolveOptions()).bound
    assert best is not None
    assert best - 1e-6 <= after <= before + 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_decided_promises_are_kept_or_break_the_best_schedule_of_nobody(seed: int) -> None:
    """What is found ends in time; where nothing is, the known optimum does not end so either."""
    instance = hs.generate("oasis", "paper", seed, jobs=5, horizon=5, servers=3, max_duration=3)
    assert isinstance(instance, OasisInstance)
    random = np.random.default_rng(seed)
    best = hs.solve(instance, "milp", time_limit=60).solution
    assert best is not None
    completions = [best.completion(job.name) for job in instance.jobs]  # type: ignore[attr-defined]
    for _ in range(6):
        ends = {
            at: int(random.integers(job.arrival, instance.horizon + 1))
            for at, job in enumerate(instance.jobs)
            if random.random() < 0.8
        }
        promises = Promises(instance, SolveOptions())
        found = promises.decide(ends, 30.0)
        if found.status is Status.INFEASIBLE:
            assert not all(
                completions[at] is not None and completions[at] <= end for at, end in ends.items()
            )
        else:
            kept = promises.best
            assert kept is not None
            assert kept.is_feasible()
            assert all(
                kept.completion(instance.jobs[at].name) <= end  # type: ignore[operator]
                for at, end in ends.items()
            )


def test_the_program_keeps_the_schedules_of_its_smaller_conflicts() -> None:
    options, nobody = SolveOptions(time_limit=60), build_solution(TORN, {})
    with keeping() as kept:
        best = methods.milp(TORN, "standard", options, incumbent=nobody).objective
    found = [result.objective for result in kept]
    assert found[-1] == pytest.approx(best)
    assert found == sorted(found, key=float)
