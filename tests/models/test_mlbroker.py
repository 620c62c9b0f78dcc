"""mlbroker's programs: against a brute force, hand-worked answers, and against each other."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.errors import InputError
from hindsched.instances.catalogue import named_instance
from hindsched.instances.generators.registry import generate as generate_any
from hindsched.instances.mlbroker.generator import generate
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.base import offline_program
from hindsched.models.mlbroker.printed_slot import PrintedSlots
from hindsched.models.mlbroker.sets import big_m
from hindsched.models.mlbroker.slot_program import RegularisedSlot
from hindsched.solutions.base import build_solution
from hindsched.solvers.base import build_oracle
from hindsched.solvers.door.convex import solve_convex
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.families.mlbroker.convex import solve_fractional
from hindsched.solvers.families.mlbroker.methods import relaxation_bound
from hindsched.solvers.model import model
from tests.second_opinion.settle import optimum
from tests.strategies.mlbroker import flicker, instances, make, two_jobs


def solved(instance, formulation, **build):
    result = solve_program(offline_program(instance, formulation, **build).model)
    assert result.status == "optimal"
    return result.objective


@pytest.mark.parametrize("formulation", ["tight", "paper"])
@given(instance=instances())
def test_equals_brute_force(formulation, instance):
    program = offline_program(instance, formulation)
    result = solve_program(program.model)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(optimum(instance, formulation), abs=1e-6)
    solution = program.extract()
    assert not solution.violations()
    assert solution.objective() == pytest.approx(result.objective, abs=1e-6)


@pytest.mark.parametrize("formulation", ["tight", "paper"])
def test_known_optimum(formulation):
    instance = named_instance("mlbroker-r3-t2-s51")
    assert solved(instance, formulation) == pytest.approx(184.72025, abs=1e-4)


def test_k3_flicker():
    assert solved(flicker(), "paper") == pytest.approx(14)
    assert solved(flicker(), "tight") == pytest.approx(16)
    follow = {
        "j1": [
            {"from": t, "to": t, "workers": {r: 1}, "ps": r}
            for t, r in ((1, "r1"), (2, "r2"), (3, "r1"), (4, "r2"))
        ]
    }
    assert build_solution(flicker(), follow).objective() == pytest.approx(20)


@pytest.mark.parametrize(("distance", "answer"), [(0.5, 62), (1, 64)])
def test_k7_two_jobs(distance, answer):
    instance = two_jobs(distance)
    assert solved(instance, "tight") == pytest.approx(answer)
    assert solved(instance, "tight", relax=True) == pytest.approx(answer)
    if distance == 0.5:
        assert relaxation_bound(instance, "chord") == pytest.approx(58)
        assert relaxation_bound(instance, "paper") == pytest.approx(56)
        loose = solved(instance, "paper", relax=True, factor=10.0)
        assert loose == pytest.approx(0, abs=1e-6)


def test_k1_in_the_slot_program():
    """The same bill inside the program: one job of 30 units at the only centre."""
    instance = make(1, 1, 0, [(4, 3, 10)], [{"n": 1, "P": 1, "D": [[30]]}])
    slot = SlotData.at(instance, 1)
    assert big_m(slot).tolist() == [[20]]
    assert slot.chord == pytest.approx(100 / 30)
    for factor, answer in ((1, 100), (2, 90), (4, 70), (11, 0)):
        program = RegularisedSlot(slot, np.zeros((1, 1)), factor=factor)
        problem = cp.Problem(cp.Minimize(program.static), program.problem.constraints)
        assert solve_convex(problem).objective == pytest.approx(answer, rel=1e-6, abs=1e-6)


@given(
    instance=instances(centers=3, slots=2, jobs=2, workers=4, kinds=2, weights=False),
    epsilon=st.sampled_from([0.01, 0.582, 10]),
    data=st.data(),
)
def test_the_reductions_leave_the_printed_optimum(instance, epsilon, data):
    printed = PrintedSlots(instance, epsilon)
    cells = st.integers(0, 4).map(lambda n: n / 4)
    for t in (1, 2):
        slot = SlotData.at(instance, t)
        if not slot.jobs:
            continue
        before = np.array([[data.draw(cells) for _ in range(3)] for _ in slot.jobs])
        found = solve_convex(RegularisedSlot(slot, before, epsilon=epsilon).problem).objective
        printed.set(t, before)
        assert found == pytest.approx(solve_convex(printed.problem).objective, rel=1e-5, abs=1e-5)


def test_the_printed_slots_are_compiled_once_for_a_run():
    instance, chains, found = generate("small", 2), [], []
    printed = PrintedSlots(instance)
    assert printed.problem.is_dcp(dpp=True)
    for t in range(1, instance.horizon + 1):
        printed.set(t)
        chains.append(printed.problem.get_problem_data(cp.CLARABEL)[1])
        found.append(solve_convex(printed.problem).objective)
    assert all(chain is chains[0] for chain in chains)
    assert len(set(found)) > 1


@given(instance=instances(centers=3, jobs=2, kinds=1))
def test_corrected_dual_is_the_dual(instance):
    program = model(instance, formulation="paper")
    primal = program.relax().solve()
    dual = program.dual().solve()
    assert dual.objective == pytest.approx(primal.objective, abs=1e-6)
    assert not dual.violations
    tiers = dual.objective - dual.payoffs.sum()
    assert tiers <= 1e-6  # xi + e rho <= 0 as M >= e
    # prices of either side bound the optimum as they stand
    best = solved(instance, "tight")
    oracle = build_oracle(instance)
    for prices in (dual.prices, primal.capacity_prices()):
        assert oracle.bound(oracle.rows.pack(prices)) <= best + 1e-6


def test_slot_program_of_an_instance():
    """(10) in CVXPY has the face of the other programs."""
    instance = generate("small", 0)
    slot = model(instance).slot(2)
    view = SlotData.at(instance, 2)
    found = slot.solve()
    assert found.status == "optimal"
    direct = solve_fractional(view, np.zeros(view.data.shape))
    workers = found.values["workers"].unstack("datacenter").loc[list(view.jobs)]
    assert workers.to_numpy() * view.needed[:, None] == pytest.approx(direct.workers, abs=1e-4)
    assert found.duals["eq_8f"].index.names == ["job"]
    slot.set(direct.present, epsilon=1.0)
    again = solve_fractional(view, direct.present, epsilon=1.0)
    assert slot.solve().objective == pytest.approx(again.objective, rel=1e-6)
    for part in slot.program.components():
        assert part.doc.startswith("("), part
    assert slot.cvxpy.is_dcp()
    for bad in (0, instance.horizon + 1):
        with pytest.raises(InputError, match="slot"):
            model(instance).slot(bad)
    with pytest.raises(InputError, match="convex programs"):
        model(generate_any("oasis", jobs=2, horizon=6)).slot(1)
