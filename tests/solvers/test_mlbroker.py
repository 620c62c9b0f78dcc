"""mlbroker's kernels, pricing oracle, certified bounds, methods, and the direct convex path."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindsched.instances.mlbroker.generator import generate
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.models.base import offline_program, subproblem
from hindsched.models.mlbroker.sets import most_rented
from hindsched.solvers.base import build_oracle
from hindsched.solvers.certificates.file import verify_certificate
from hindsched.solvers.door.api import methods, solve
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.families.mlbroker.convex import solve_fractional
from hindsched.solvers.families.mlbroker.methods import (
    find_schedule,
    lagrangian_certificate,
    relaxation_bound,
)
from hindsched.solvers.families.mlbroker.placements import (
    best_responses,
    priced_placement,
    slot_cost,
    tight_placement,
)
from tests.strategies.mlbroker import instances, make, two_jobs


def quarters(draw, low, high):
    return draw(st.integers(4 * low, 4 * high)) / 4


@given(instance=instances(centers=3, slots=2, jobs=2, workers=4, kinds=1), data=st.data())
def test_oracle_equals_the_subproblem(instance, data):
    """Best responses of every block at random prices, launches falling over a job's life."""
    oracle = build_oracle(instance)
    arrays = {
        name: np.zeros(v.shape) for name, v in oracle.rows.unpack(oracle.rows.capacity).items()
    }
    for index in np.ndindex(arrays["discount"].shape):
        arrays["discount"][index] = quarters(data.draw, 0, 3)
    for r, j, t in np.ndindex(arrays["deployment"].shape):
        highest = arrays["deployment"][r, j, t - 1] if t > instance.jobs[j].arrival - 1 else 8
        arrays["deployment"][r, j, t] = min(highest, quarters(data.draw, 0, 8))
    prices = oracle.rows.pack(arrays)
    values = 0.0
    for block in range(oracle.num_blocks):
        response = oracle.best_response(block, prices)
        if block < len(instance.jobs):
            sub = subproblem(instance, block)
            sub.set(arrays)
            result = solve_program(sub.model)
            assert result.status == "optimal"
            answer = result.objective
        else:  # the broker buys a tier where its shares pay the fee
            nobody = np.zeros((*instance.alive.shape, len(instance.datacenters)), dtype=int)
            use = most_rented(instance, nobody) * instance.alive[:, :, None]
            earned = np.einsum("rkjt,jtk->trk", arrays["discount"], use)
            fee = instance.weights[1] * instance.tier_fee
            answer = np.minimum(0, fee - earned).sum()
        assert response.value == pytest.approx(answer, abs=1e-6)
        used = response.objective + prices[response.rows] @ response.amounts
        assert response.value == pytest.approx(used, abs=1e-6)
        values += response.value
    assert oracle.bound(prices) == pytest.approx(values, abs=1e-6)


@given(
    instance=instances(centers=3, slots=3, jobs=2), formulation=st.sampled_from(["tight", "paper"])
)
def test_certificates_lie_below_the_optimum(instance, formulation):
    best = solve_program(offline_program(instance, formulation).model).objective
    for iterations in (0, 100):
        found = lagrangian_certificate(instance, formulation, iterations=iterations)
        assert found.bound <= best + 1e-6 * (1 + best)
        assert verify_certificate(instance, found.to_dict()).bound == pytest.approx(found.bound)


def test_the_lagrangian_bound_is_the_best():
    """And on the paper's kind of instance it leaves next to no gap."""
    instance = generate("paper", 1, datacenters=6, horizon=6, jobs=12, gpu_threshold=(40, 60))
    chord = relaxation_bound(instance, "chord")
    conditioned = lagrangian_certificate(instance, iterations=0).bound
    lagrangian = solve(instance, "bound").bound
    found = find_schedule(instance, "tight").objective()
    assert chord <= conditioned + 1e-6 * conditioned
    assert conditioned <= lagrangian + 1e-9 * lagrangian
    assert lagrangian <= found
    assert found / lagrangian < 1.005


@given(instance=instances(centers=3, slots=1, jobs=3, workers=4, kinds=2))
def test_slot_placements_are_feasible_and_exactly_priced(instance):
    slot = SlotData.at(instance, 1)
    if not slot.jobs:
        return
    launch = np.repeat(slot.deployment[:, None], 3, axis=1)
    tight = tight_placement(slot, launch)
    priced, _ = priced_placement(slot, launch)
    alone = best_responses(slot, launch, slot.unit)
    assert priced.cost <= slot_cost(slot, launch, *alone) + 1e-9
    for placement in (tight, priced):
        assert np.isfinite(placement.cost)
        assert placement.cost == slot_cost(slot, launch, placement.workers, placement.ps)
    assert slot_cost(slot, launch, 0 * tight.workers, tight.ps) == np.inf or not slot.data.any()


def test_k7_jobs_that_choose_apart_miss_the_shared_discount():
    instance = two_jobs(0.5)
    slot = SlotData.at(instance, 1)
    launch = np.zeros((2, 2))
    alone = best_responses(slot, launch, slot.unit)
    assert slot_cost(slot, launch, *alone) == pytest.approx(64)
    assert tight_placement(slot, launch).cost == pytest.approx(64)
    assert priced_placement(slot, launch)[0].cost == pytest.approx(64)
    assert solve(instance).objective == pytest.approx(62)
    assert find_schedule(two_jobs(1), "tight").objective() == pytest.approx(64)


@pytest.mark.parametrize("method", ["auto", "milp", "relaxation", "bound", "search"])
@pytest.mark.parametrize("formulation", ["tight", "paper"])
def test_methods(method, formulation):
    instance = generate("small", 2, deployment_gb=100)
    best = solve(instance, "milp", formulation=formulation).objective
    result = solve(instance, method, formulation=formulation, time_limit=60)
    assert method in methods("mlbroker")
    if result.solution is not None:
        assert result.objective >= best - 1e-6 * best
    if result.bound is not None:
        assert result.bound <= best + 1e-6 * best
    if method in ("auto", "milp"):
        assert result.status == "optimal"
    certified = method in ("auto", "bound", "relaxation")
    assert (result.certificate is not None) == certified


# The convex path


def ski_rental():
    """K2: data at A, then at B for good; leaving it costs 0.05 a slot, moving 1 once."""
    slots = 23
    moved = [[1, 0]] + [[0, 1]] * (slots - 1)
    job = {"n": 1, "m": 0, "P": 1, "B": 100, "c": 1, "D": moved}
    data = make(2, slots, 0, [(2, 2, 1e9)] * 2, [job])
    return MlbrokerInstance.parse(data.to_dict() | {"transfer_usd_per_gb": [[0, 10], [0.05, 0]]})


@pytest.mark.parametrize(
    ("epsilon", "excess"), [(0.01, 1.7674), (1 / (np.e - 1), 1.5568), (1, 1.5322)]
)
def test_k2_ski_rental(epsilon, excess):
    instance = ski_rental()
    sigma = np.log1p(1 / epsilon)
    before, total = np.zeros((1, 2)), 0.0
    for t in range(1, instance.horizon + 1):
        found = solve_fractional(SlotData.at(instance, t), before, price="chord", epsilon=epsilon)
        before = found.present
        total += found.static + found.switching
        if t > 1:
            expected = min(1.0, epsilon * (np.exp(0.05 * sigma * (t - 1)) - 1))
            assert found.present[0, 1] == pytest.approx(expected, abs=2e-3)
    assert total - (2 * instance.horizon + 1) == pytest.approx(excess, abs=2e-3)
    assert relaxation_bound(instance, "chord") == pytest.approx(2 * instance.horizon + 2)


@pytest.mark.parametrize(
    ("cost", "first", "others"), [(1, 5, 0), (10, 1.813, 0.797), (100, 1.254, 0.936)]
)
def test_k6_the_regulariser_spreads_new_jobs(cost, first, others):
    job = {"n": 1, "m": 1, "P": 20, "B": 1, "c": cost, "D": [[100, 0, 0, 0, 0]]}
    instance = make(5, 1, 0.01, [(1, 1, 1e6)] * 5, [job])
    slot, before = SlotData.at(instance, 1), np.zeros((1, 5))
    for price in ("chord", "paper"):
        found = solve_fractional(slot, before, price=price, epsilon=0.01)
        assert found.workers[0] == pytest.approx([first] + [others] * 4, abs=2e-2)
    plain = solve_fractional(slot, before, switching="relu")
    assert plain.workers[0] == pytest.approx([5, 0, 0, 0, 0], abs=1e-3)
