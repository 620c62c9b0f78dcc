"""Packing patterns, the program of the ends and its leaves against enumerations and brute force."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.oasis.ends import build_ends_program
from hindsched.models.oasis.leaf import build_leaf
from hindsched.models.oasis.patterns import maximal_patterns
from hindsched.solvers.door.api import check_result
from hindsched.solvers.door.options import DEFAULT_GAP, SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.door.status import Status
from hindsched.solvers.families.oasis.methods import METHODS
from tests.brute_force.oasis import optimum
from tests.strategies.oasis import oasis_instances

EXACT = SolveOptions(gap=1e-7)


@given(
    st.lists(st.integers(0, 5), min_size=2, max_size=2),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), min_size=1, max_size=3),
    st.integers(1, 4),
)
def test_patterns_are_the_maximal_points_of_a_server(
    capacity: list[int], demands: list[tuple[int, int]], most: int
) -> None:
    demand = np.array(demands, dtype=float)
    held = [
        point
        for point in itertools.product(range(most + 1), repeat=len(demands))
        if all(np.array(point) @ demand <= capacity)
    ]
    maximal = [p for p in held if not any(q != p and all(np.array(q) >= np.array(p)) for q in held)]
    found = maximal_patterns(np.array(capacity, dtype=float), demand, [most] * len(demands), 10_000)
    assert found is not None
    assert sorted(found) == sorted(maximal)


def test_too_many_patterns_are_left_out() -> None:
    demand = np.ones((3, 1))
    assert len(maximal_patterns(np.array([4.0]), demand, [4, 4, 4], 15) or ()) == 15
    assert maximal_patterns(np.array([4.0]), demand, [4, 4, 4], 14) is None


@given(oasis_instances())
def test_the_program_of_the_ends_bounds_and_the_method_attains_the_optimum(instance: Any) -> None:
    best = optimum(instance).value
    ends = solve_program(build_ends_program(instance).model, EXACT)
    assert ends.objective is not None
    assert ends.objective >= best - 1e-6
    result = check_result(METHODS["milp"](instance, "standard", EXACT, None), DEFAULT_GAP)
    assert result.status == Status.OPTIMAL
    assert result.objective == pytest.approx(best, abs=1e-5)
    assert result.solution is not None
    assert result.solution.violations() == []


def _with_deadlines(instance: OasisInstance, ends: dict[int, int]) -> OasisInstance:
    """Only the jobs of `ends`; each earns 1 by its end and nothing after it."""
    jobs = []
    for index, end in ends.items():
        job = instance.jobs[index].model_dump(mode="json")
        target = end - job["arrival"] + 0.5
        job["utility"] = {"kind": "sigmoid", "priority": 1, "decay": 100, "target": target}
        jobs.append(job)
    return OasisInstance.parse({**instance.model_dump(mode="json"), "jobs": jobs})


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
    leaf = build_leaf(instance, ends)
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


def test_a_server_with_too_many_patterns_keeps_its_capacity_rows() -> None:
    """40 GPUs hold 1-GPU workers of five jobs in thousands of ways, but only 40 of the 50."""
    jobs = [
        {
            "name": f"j{i}", "arrival": 1, "epochs": 1, "chunks": 10, "minibatches": 1,
            "minibatch_slots": 1, "gradient_mb": 0, "worker": {"gpu": 1}, "ps": {"gpu": 1},
            "utility": {"kind": "linear", "slope": -1, "intercept": 5},
        }
        for i in range(5)
    ]  # fmt: skip
    instance = OasisInstance.parse(
        {
            "format": "hindsched/1", "family": "oasis", "name": "wide", "horizon": 2,
            "slot_seconds": 60, "resources": ["gpu", "mbps"], "bandwidth_resource": "mbps",
            "worker_servers": [{"name": "w", "capacity": {"gpu": 40}}],
            "ps_servers": [{"name": "p", "capacity": {"gpu": 9}}], "jobs": jobs,
        }
    )  # fmt: skip
    early = build_leaf(instance, dict.fromkeys(range(5), 1))
    assert len(early.model.on_workers.capacity_of) == 1
    assert solve_program(early.model).status == Status.INFEASIBLE
    late = build_leaf(instance, {0: 2, **dict.fromkeys(range(1, 5), 1)})
    assert solve_program(late.model).has_point
    assert late.extract().violations() == []
    result = METHODS["milp"](instance, "standard", EXACT, None)
    assert result.objective == pytest.approx(4 * 5 + 4)
