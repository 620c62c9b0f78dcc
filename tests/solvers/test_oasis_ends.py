"""The program of the ends, its leaves and conflict cuts, against the brute force."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hindsched as hs
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.base import offline_program
from hindsched.models.oasis.ends import build_ends, build_packing
from hindsched.solutions.base import build_solution
from hindsched.solvers.door.api import check_result
from hindsched.solvers.door.options import DEFAULT_GAP, SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.result import Status
from hindsched.solvers.families.oasis.methods import schedule_within, solve_by_ends
from hindsched.solvers.families.oasis.packing import find_patterns
from tests.second_opinion.settle import optimum
from tests.strategies.oasis import flat, make, oasis_instances

EXACT = SolveOptions(gap=1e-7)
TORN = hs.generate("oasis", "paper", 7, jobs=4, horizon=5, servers=3, max_duration=3)
"""The ends that its program promises first cannot be kept."""
EVERYBODY = dict.fromkeys(range(4), 5)


@given(oasis_instances())
def test_the_program_of_the_ends_bounds_and_the_method_attains_the_optimum(instance: Any) -> None:
    best = optimum(instance)
    ends = solve_program(build_ends(instance, find_patterns).model, EXACT)
    assert ends.objective is not None
    assert ends.objective >= best - 1e-6
    nobody = build_solution(instance, {})
    result = check_result(solve_by_ends(instance, "standard", EXACT, incumbent=nobody), DEFAULT_GAP)
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
        result = solve_by_ends(instance, "standard", SolveOptions(time_limit=limit))
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
    for block in program.model.job.values():
        block.eq_6_whole.deactivate()
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
    possible = optimum(_with_deadlines(instance, ends)) > len(ends) - 0.5
    leaf = build_packing(instance, ends, find_patterns)
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


def check_method(instance: OasisInstance, value: float, cuts: int) -> None:
    assert optimum(instance) == pytest.approx(value)
    nobody = build_solution(instance, {})
    result = check_result(solve_by_ends(instance, "standard", EXACT, incumbent=nobody), DEFAULT_GAP)
    assert result.status == Status.OPTIMAL
    assert result.objective == pytest.approx(value)
    assert result.details["conflict_cuts"] == cuts


def test_patterns_see_that_an_aggregated_optimum_does_not_fit() -> None:
    """Three 2-GPU workers fill two 3-GPU servers in the sum, and two fit."""
    jobs = [{"worker": {"gpu": 2}, "utility": flat(value)} for value in (3, 2, 1)]
    instance = make(jobs, [{"gpu": 3}] * 2, [{}])
    relaxation = offline_program(instance, aggregate=True)
    assert solve_program(relaxation.model, EXACT).objective == pytest.approx(6)
    assert relaxation.extract() is None
    check_method(instance, 5, cuts=0)


def test_a_server_with_too_many_patterns_keeps_its_capacity_rows() -> None:
    """40 GPUs hold 1-GPU workers of five jobs in thousands of ways, but only 40 of the 50."""
    job = {"worker": {"gpu": 1}, "ps": {"gpu": 1}, "chunks": 10}
    instance = make([job] * 5, [{"gpu": 40}], [{"gpu": 9}])
    early = build_packing(instance, dict.fromkeys(range(5), 1), find_patterns)
    assert len(early.model.on_workers.eq_4_5) == 1
    assert solve_program(early.model).status == Status.INFEASIBLE
    fewer = build_packing(instance, dict.fromkeys(range(4), 1), find_patterns)
    assert solve_program(fewer.model).has_point
    assert fewer.extract().violations() == []


def test_promises_that_no_schedule_keeps_are_cut_off() -> None:
    """Three worker-slots a job: where two run in one slot and one in the next, a PS serves both
    slots, of which the program counts the second by a half."""
    job = {"chunks": 2, "minibatch_slots": 0.6, "gradient_mb": 0.25}
    jobs = [
        {"worker": {"gpu": 1, "mbps": 1}, "ps": {"mbps": 2}, "minibatch_slots": 1,
         "utility": {"kind": "sigmoid", "priority": 8, "decay": 1.5, "target": 1}},
        {"worker": {"mbps": 1}, "ps": {"gpu": 1, "mbps": 2},
         "utility": {"kind": "linear", "slope": -2, "intercept": 3}},
        {"worker": {"gpu": 1, "mbps": 1}, "ps": {"gpu": 1, "mbps": 2}, "epochs": 2,
         "gradient_mb": 0, "utility": {"kind": "linear", "slope": -4, "intercept": 7}},
    ]  # fmt: skip
    workers = [{"gpu": 2, "mbps": 1}, {"gpu": 1, "mbps": 1}]
    ps = [{"gpu": 2, "mbps": 1}, {"gpu": 1, "mbps": 3}]
    instance = make([job | own for own in jobs], workers, ps, horizon=4)
    check_method(instance, optimum(instance), cuts=1)


def test_a_cut_forbids_no_schedule() -> None:
    result, schedule = schedule_within(TORN, EVERYBODY, EXACT)  # type: ignore[arg-type]
    assert result.status == Status.INFEASIBLE
    assert schedule is None
    program = build_ends(TORN, find_patterns)  # type: ignore[arg-type]
    before = solve_program(program.model, SolveOptions()).bound
    program.forbid(EVERYBODY)
    after = solve_program(program.model, SolveOptions()).bound
    best = solve_by_ends(TORN, "standard", SolveOptions(time_limit=60)).objective
    assert best - 1e-6 <= after <= before + 1e-6
