"""The program of the ends, its leaves and conflict cuts, against the brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hindsched as hs
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.oasis import offline
from hindsched.models.oasis.ends import build_ends, lines_below
from hindsched.models.oasis.leaf import build_leaf
from hindsched.solutions.base import build_solution
from hindsched.solvers.door.api import check_result
from hindsched.solvers.door.options import DEFAULT_GAP, SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.result import keeping
from hindsched.solvers.door.status import Status
from hindsched.solvers.families.oasis.methods import milp
from hindsched.solvers.families.oasis.promises import Promises, find_patterns
from tests.brute_force.oasis import optimum
from tests.strategies.oasis import oasis_instances

EXACT = SolveOptions(gap=1e-7)
TORN = hs.generate("oasis", "paper", 7, jobs=4, horizon=5, servers=3, max_duration=3)
"""The ends that its program promises first cannot be kept."""
EVERYBODY = dict.fromkeys(range(4), 5)


def test_lines_are_the_convex_function_below() -> None:
    needed = np.array([0, 1, 1, 1, 2, 2, 4])
    lines = lines_below(needed)
    below = [max(slope * n + at_none for slope, at_none in lines) for n in range(needed.size)]
    assert all(low <= own + 1e-12 for low, own in zip(below, needed, strict=True))
    assert (below[0], below[-1]) == (0.0, pytest.approx(4.0))
    slopes = [slope for slope, _ in lines]
    assert slopes == sorted(slopes)


@given(oasis_instances())
def test_the_program_of_the_ends_bounds_and_the_method_attains_the_optimum(instance: Any) -> None:
    best = optimum(instance).value
    ends = solve_program(build_ends(instance, find_patterns).model, EXACT)
    assert ends.objective is not None
    assert ends.objective >= best - 1e-6
    nobody = build_solution(instance, {})
    result = check_result(milp(instance, "standard", EXACT, incumbent=nobody), DEFAULT_GAP)
    assert result.status == Status.OPTIMAL
    assert result.objective == pytest.approx(best, abs=1e-5)
    assert result.bound == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "best"), [("h5-s1", 250.338), ("h10-s0", 287.064), ("h25-s0", 182.359)]
)
def test_the_paper_s_small_instances(name: str, best: float) -> None:
    """Their ends are attained, and a time limit gives an interval with the optimum."""
    instance: Any = hs.read(f"tests/data/instances/oasis-t10-i10-{name}.json")
    found = solve_program(build_ends(instance, find_patterns).model, SolveOptions())
    assert found.bound == pytest.approx(best, abs=1.5e-3)
    for limit in (0.0, 0.5, 60.0):
        result = milp(instance, "standard", SolveOptions(time_limit=limit))
        assert result.solution is not None
        assert result.solution.violations() == []
        assert result.objective <= best * (1 + 1e-4)
        assert result.bound is None or result.bound >= best * (1 - 1e-4)
    assert result.objective == pytest.approx(best, abs=1.5e-3)


def test_whole_ps_exclude_ends_that_fractions_of_them_allow() -> None:
    instance = hs.generate("oasis", "paper", 11, jobs=4, horizon=5, servers=3, max_duration=3)
    program = build_ends(instance, find_patterns)  # type: ignore[arg-type]
    best = hs.solve(instance, "milp", time_limit=60).objective
    assert solve_program(program.model, EXACT).bound == pytest.approx(best)
    program.model.eq_6_whole.deactivate()
    assert solve_program(program.model, EXACT).bound > 1.1 * best


@given(oasis_instances(), st.data())
def test_a_leaf_has_a_point_exactly_if_the_promises_can_be_kept(instance: Any, data: Any) -> None:
    ends = {
        index: data.draw(st.integers(job.arrival, instance.horizon))
        for index, job in enumerate(instance.jobs)
        if data.draw(st.integers(0, 3))
    }
    if not ends:
        return
    possible = optimum(_with_deadlines(instance, ends)).value > len(ends) - 0.5
    leaf = build_leaf(instance, ends, find_patterns)
    result = solve_program(leaf.model, EXACT)
    assert result.has_point == possible
    assert possible or result.status == Status.INFEASIBLE
    if possible:
        solution = leaf.extract()
        assert solution.violations() == []
        for index, end in ends.items():
            completion = solution.completion(instance.jobs[index].name)
            assert completion is not None
            assert completion <= end


def _with_deadlines(instance: OasisInstance, ends: dict[int, int]) -> OasisInstance:
    """Only the jobs of `ends`; each earns 1 by its end and nothing after it."""
    jobs = []
    for index, end in ends.items():
        job = instance.jobs[index].model_dump(mode="json")
        target = end - job["arrival"] + 0.5
        job["utility"] = {"kind": "sigmoid", "priority": 1, "decay": 100, "target": target}
        jobs.append(job)
    return OasisInstance.parse({**instance.model_dump(mode="json"), "jobs": jobs})


def one_slot(worker: Any, ps: Any, capacities: Any, values: Any, **more: Any) -> OasisInstance:
    """Jobs of one worker-slot each, in a cluster of one slot."""
    job = {"arrival": 1, "epochs": 1, "chunks": 1, "minibatches": 1, "minibatch_slots": 1,
           "gradient_mb": 0, "worker": worker, "ps": ps}  # fmt: skip
    flat = [{"kind": "linear", "slope": 0, "intercept": value} for value in values]
    servers = [[{"name": f"{role}{i}", "capacity": c} for i, c in enumerate(own)]
               for role, own in zip("wp", capacities, strict=True)]  # fmt: skip
    return OasisInstance.parse(
        {
            "family": "oasis", "name": "one-slot", "horizon": 1, "slot_seconds": 60,
            "resources": ["gpu", "mbps"], "bandwidth_resource": "mbps",
            "worker_servers": servers[0], "ps_servers": servers[1],
            "jobs": [{**job, "name": f"j{i}", "utility": u, **more} for i, u in enumerate(flat)],
        }
    )  # fmt: skip


def check_method(instance: OasisInstance, value: float, cuts: int) -> None:
    assert optimum(instance).value == pytest.approx(value)
    nobody = build_solution(instance, {})
    result = check_result(milp(instance, "standard", EXACT, incumbent=nobody), DEFAULT_GAP)
    assert result.status == Status.OPTIMAL
    assert result.objective == pytest.approx(value)
    assert result.details["conflict_cuts"] == cuts


def test_patterns_see_that_an_aggregated_optimum_does_not_fit() -> None:
    """Three 2-GPU workers fill two 3-GPU servers in the sum, and two fit."""
    instance = one_slot({"gpu": 2}, {}, ([{"gpu": 3}, {"gpu": 3}], [{}]), (3, 2, 1))
    relaxation = offline.build_offline(instance, aggregate=True)
    assert solve_program(relaxation.model, EXACT).objective == pytest.approx(6)
    assert relaxation.extract() is None
    check_method(instance, 5, cuts=0)


def test_whole_ps_are_counted() -> None:
    """Two workers need half a PS each, and the one PS that fits serves one job."""
    worker, ps = {"gpu": 1, "mbps": 1}, {"mbps": 2}
    capacities = ([{"gpu": 2, "mbps": 2}], [{"mbps": 2}])
    check_method(one_slot(worker, ps, capacities, (3, 2)), 3, cuts=0)


def test_a_server_with_too_many_patterns_keeps_its_capacity_rows() -> None:
    """40 GPUs hold 1-GPU workers of five jobs in thousands of ways, but only 40 of the 50."""
    capacities = ([{"gpu": 40}], [{"gpu": 9}])
    instance = one_slot({"gpu": 1}, {"gpu": 1}, capacities, (5,) * 5, epochs=1, chunks=10)
    early = build_leaf(instance, dict.fromkeys(range(5), 1), find_patterns)
    assert len(early.model.on_workers.eq_4_5) == 1
    assert solve_program(early.model).status == Status.INFEASIBLE
    fewer = build_leaf(instance, dict.fromkeys(range(4), 1), find_patterns)
    assert solve_program(fewer.model).has_point
    assert fewer.extract().violations() == []


def test_promises_that_no_schedule_keeps_are_cut_off() -> None:
    """Three worker-slots a job: where two run in one slot and one in the next, a PS serves both
    slots, of which the program counts the second by a half."""
    job = {"arrival": 1, "epochs": 1, "chunks": 2, "minibatches": 1, "minibatch_slots": 0.6,
           "gradient_mb": 0.25}  # fmt: skip
    jobs = [
        {"name": "j1", "worker": {"gpu": 1, "mbps": 1}, "ps": {"mbps": 2}, "minibatch_slots": 1,
         "utility": {"kind": "sigmoid", "priority": 8, "decay": 1.5, "target": 1}},
        {"name": "j2", "worker": {"mbps": 1}, "ps": {"gpu": 1, "mbps": 2},
         "utility": {"kind": "linear", "slope": -2, "intercept": 3}},
        {"name": "j3", "worker": {"gpu": 1, "mbps": 1}, "ps": {"gpu": 1, "mbps": 2}, "epochs": 2,
         "gradient_mb": 0, "utility": {"kind": "linear", "slope": -4, "intercept": 7}},
    ]  # fmt: skip
    servers = {
        "worker_servers": [{"gpu": 2, "mbps": 1}, {"gpu": 1, "mbps": 1}],
        "ps_servers": [{"gpu": 2, "mbps": 1}, {"gpu": 1, "mbps": 3}],
    }
    instance = OasisInstance.parse({
        "family": "oasis", "name": "promises", "horizon": 4, "slot_seconds": 8,
        "resources": ["gpu", "mbps"], "bandwidth_resource": "mbps",
        "jobs": [job | own for own in jobs],
        **{side: [{"name": f"{side[0]}{i}", "capacity": c} for i, c in enumerate(own)]
           for side, own in servers.items()},
    })  # fmt: skip
    check_method(instance, optimum(instance).value, cuts=1)


def test_what_is_weaker_than_kept_or_stronger_than_impossible_is_known() -> None:
    promises = Promises(TORN, SolveOptions())  # type: ignore[arg-type]
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


def test_conflicts_are_the_smallest_decided_once_and_cut_off_no_schedule() -> None:
    promises = Promises(TORN, SolveOptions())  # type: ignore[arg-type]
    promises.decide(EVERYBODY, None)
    conflicts = promises.conflicts(EVERYBODY, EVERYBODY, lambda: False)
    count = promises.count
    assert promises.conflicts(EVERYBODY, EVERYBODY, lambda: False) == conflicts
    assert promises.count == count
    program = build_ends(TORN, find_patterns)  # type: ignore[arg-type]
    before = solve_program(program.model, SolveOptions()).bound
    for conflict in conflicts:
        assert promises.known(conflict) is False
        for job in conflict:
            fewer = {i: end for i, end in conflict.items() if i != job}
            assert not fewer or promises.decide(fewer, None).has_point
        program.forbid(conflict)
    after = solve_program(program.model, SolveOptions()).bound
    with keeping() as kept:
        best = milp(TORN, "standard", SolveOptions(time_limit=60)).objective
    assert best - 1e-6 <= after <= before + 1e-6
    found = [result.objective for result in kept]
    assert found == sorted(found, key=float)
