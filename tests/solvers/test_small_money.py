"""Money in tiny and huge units: what solvers with absolute tolerances get is scaled."""

import pytest

import hindsched as hs
from hindsched.instances.base import Instance
from hindsched.instances.catalogue import named_instance
from hindsched.instances.oasis.generator import generate
from hindsched.solvers.bounds.column_generation import column_generation_bound
from hindsched.solvers.bounds.lagrangian import subgradient_bound
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.standard_form import objective_factor
from hindsched.solvers.oracles.base import build_oracle

FACTOR = 2.0**-27
MONEY = {
    "unit_usd", "discounted_usd", "transfer_usd_per_gb", "deployment_usd", "weight", "priority",
    "slope", "intercept",
}  # fmt: skip
WORK = 4000


def times(value, factor):
    """A record with its money times a factor."""
    if isinstance(value, dict):
        return {
            key: scaled(own, factor) if key in MONEY else times(own, factor)
            for key, own in value.items()
        }
    return [times(own, factor) for own in value] if isinstance(value, list) else value


def scaled(money, factor):
    return [scaled(own, factor) for own in money] if isinstance(money, list) else money * factor


def cheaper(instance: Instance, factor: float = FACTOR) -> Instance:
    return type(instance).parse(times(instance.to_dict(), factor))


@pytest.mark.parametrize(
    "instance",
    [
        generate("small", 5),
        named_instance("mlbroker/small/r3-t4-j5-s1"),
        named_instance("batchsched/small/ps-j5-s11"),
    ],
    ids=lambda instance: instance.family,
)
def test_trees_close_whatever_the_currency(instance):
    best = solve(instance, "tree", threads=1, work_limit=WORK)
    small = solve(cheaper(instance), "tree", threads=1, work_limit=WORK)
    assert best.status == small.status == "optimal"
    assert small.objective == pytest.approx(FACTOR * best.objective, rel=1e-6)


@pytest.mark.parametrize("factor", [2.0**-40, 2.0**40])
@pytest.mark.parametrize(
    "instance",
    [
        hs.generate("oasis", "small", 0),
        hs.generate("astraea", "small", 0),
        hs.generate("batchsched", "small", 1),
        hs.generate("gang", "small", 0),
        hs.generate("mlbroker", "small", 1),
    ],
    ids=lambda instance: instance.family,
)
def test_bounds_are_as_good_whatever_the_currency(instance, factor):
    small = cheaper(instance, factor)
    assert small != instance
    oracle, other = build_oracle(instance), build_oracle(small)
    best = column_generation_bound(oracle).bound
    assert column_generation_bound(other).bound == pytest.approx(factor * best, rel=1e-6)
    best = subgradient_bound(oracle, max_iterations=400).bound
    found = subgradient_bound(other, max_iterations=400).bound
    assert found == pytest.approx(factor * best, rel=1e-9)


@pytest.mark.parametrize("largest", [0.0, 0.25, 100.0, 1e6])
def test_moderate_costs_stay(largest):
    assert objective_factor([largest / 2, -largest]) == 1


@pytest.mark.parametrize("largest", [1e-300, 1e-6, 0.01, 1e7, 1e19])
def test_other_costs_are_passed_as_some_thousands(largest):
    factor = objective_factor([-largest])
    assert 2**13 <= factor * largest < 2**14
