"""The edgecloud family's programs against raw decisions, known optima and each other."""

from __future__ import annotations

import math

import pytest
from hypothesis import given

from hindsched.instances.io import read
from hindsched.models.base import Commitments, offline_program
from hindsched.models.edgecloud.relaxations import build_fractional, build_ilp_4
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.program import solve_program
from tests.second_opinion.settle import optimum
from tests.strategies.edgecloud import instance, job, tiny_instances

FORMULATIONS = ("no-migration", "literal")
TWO = [{"name": "a", "workers": ["t1"], "ps": ["p"]}, {"name": "b", "workers": ["t1"], "ps": ["p"]}]
UP = {"a": 1, "b": 2, "cloud": 6}


def example_1():
    return instance(
        TWO, [job("j0", 1, 2, 3, 2, UP), job("j1", 2, 1, 2, 2, UP), job("j2", 3, 2, 1, 1, UP)]
    )


def agrees(tiny, formulation):
    """Program and brute force have one optimum, and its solution passes the checker."""
    best = optimum(tiny, formulation)
    found = solve(tiny, "milp", formulation=formulation)
    if best == math.inf:
        assert found.solution is None
        return
    assert found.objective == pytest.approx(best)
    assert found.bound == pytest.approx(best, abs=1e-4)
    assert found.solution.violations() == []


@given(
    tiny_instances()
    | tiny_instances(max_jobs=2, storage=True)
    | tiny_instances(max_jobs=2, finite_ps=True, clouds=(None, None, 0, 1))
)
def test_programs_equal_brute_force(tiny):
    for formulation in FORMULATIONS:
        agrees(tiny, formulation)


def test_jobs_in_an_unlimited_cloud_wait_for_its_only_ps():
    """Nothing but a cloud with one PS: two jobs of 2 slots each, one after the other."""
    up = {"cloud": 1}
    tiny = instance([], [job("j0", 1, 2, 2, 2, up), job("j1", 1, 1, 2, 2, up)], {"ps": {"p": 1}})
    for formulation in FORMULATIONS:
        agrees(tiny, formulation)
        assert solve(tiny, "milp", formulation=formulation).objective == 3 + 5


def test_what_cannot_be_stored_is_infeasible_for_every_method():
    """Two chunks of 1 GB, a server of 1 GB and no cloud; the bounds still end."""
    servers = [{"name": "a", "workers": ["t1"], "ps": ["p"], "storage_gb": 1}]
    closed = {"workers": {"t1": 0}}
    tiny = instance(servers, [job("j", 1, 2, 3, 3, {"a": 0}, chunk_gb=1)], closed)
    for method in ("milp", "auto"):
        assert solve(tiny, method).status == "infeasible"
    assert solve(tiny, "tree").status == "no_solution"
    for method in ("relaxation", "bound"):
        assert solve(tiny, method, time_limit=2).bound >= 6 - 1e-6


@pytest.mark.parametrize(
    ("name", "formulation", "value"),
    [
        ("edgecloud-j5-s601", "no-migration", 40),
        ("edgecloud-j5-s601", "literal", 38),
        ("edgecloud-j7-s600", "no-migration", 52),
        ("edgecloud-j7-s600", "literal", 50),
    ],
)
def test_known_optima(name, formulation, value):
    known = read(f"tests/data/instances/{name}.json")
    found = solve(known, "milp", formulation=formulation)
    assert found.status == "optimal"
    assert found.objective == value
    assert found.solution.violations() == []


def test_example_1_in_all_programs():
    tiny = example_1()
    for formulation in FORMULATIONS:
        assert solve(tiny, "milp", formulation=formulation).objective == 13
    assert solve_program(build_fractional(tiny, plus=False).pyomo).objective == pytest.approx(
        41 / 6
    )
    assert solve_program(build_fractional(tiny).pyomo).objective == pytest.approx(11.25)


@given(tiny_instances())
def test_relaxations_are_ordered(tiny):
    """Lemma 1 and its refinements: ILP (4) <= (2), LP (4) <= LP (4)+ <= (2)."""
    literal = solve(tiny, "milp", formulation="literal").objective
    moved = solve(tiny, "milp").objective
    lp = solve_program(build_fractional(tiny, plus=False).pyomo).objective
    plus = solve_program(build_fractional(tiny).pyomo).objective
    by_type = solve_program(build_fractional(tiny, layout="types").pyomo).objective
    one = solve_program(build_ilp_4(tiny).pyomo).objective
    assert one <= literal + 1e-6
    assert lp <= plus + 1e-6
    assert by_type <= plus + 1e-6
    assert plus <= literal + 1e-6
    assert literal <= moved + 1e-6


LATE = dict.fromkeys(range(4), 60)


@given(tiny_instances(max_jobs=4, clouds=(None, 0, 0, 1)))
def test_no_job_of_problem_4_needs_later_slots(tiny):
    slots = tiny.cloud_slots.tolist()
    later = build_fractional(tiny, plus=False, edge=slots, last=LATE, integral=True)
    found = solve_program(build_ilp_4(tiny).pyomo).objective
    assert found == pytest.approx(solve_program(later.pyomo).objective, abs=1e-6)


def test_a_job_of_problem_4_may_wait_for_longer_than_in_problem_2():
    """In slot 50 the long job has one slot left, which costs 5 / 50 more behind the short one.

    Storage for chunks without a size changes nothing.
    """
    jobs = [job("long", 1, 1, 50, 50, {"a": 0}), job("short", 50, 1, 5, 5, {"a": 0})]
    least = sum(range(49)) / 50 + 54 / 50 + sum(range(5)) / 5
    for room in ({}, {"storage_gb": 1}):
        server = {"name": "a", "workers": ["t1"], "ps": ["p"], **room}
        tiny = instance([server], jobs, {"workers": {"t1": 0}})
        assert solve_program(build_ilp_4(tiny).pyomo).objective == pytest.approx(least)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("ps", [(0, 1), (1, 0), (1, 1)])
def test_the_parameter_servers_of_locked_jobs_are_taken(formulation, ps):
    """A job of 3 slots stops in slots 4 to 6, where a locked one holds the only PS, or does not."""
    up = {"a": 0, "cloud": 0}
    servers = [{"name": "a", "workers": ["t1", "t1"], "ps": ["p"] * ps[0]}]
    tiny = instance(
        servers, [job("j0", 1, 1, 3, 3, up), job("j1", 1, 1, 3, 3, up)], {"ps": {"p": ps[1]}}
    )
    where = "a" if ps[0] else "cloud"
    promised = [
        {"chunk": 1, "server": "a", "worker": 1, "from": 4, "to": 6},
        {"ps": where, "from": 4, "to": 6},
    ]
    past = Commitments(now=2, assignments={"j0": promised}, locked=frozenset({"j0"}))
    program = offline_program(tiny, formulation, commitments=past)
    assert solve_program(program.pyomo).objective == 6 + (4 if sum(ps) == 2 else 7)
    found = program.extract()
    assert found.violations() == []
    assert found.assignments()["j0"] == promised
