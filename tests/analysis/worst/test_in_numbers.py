"""Values without objects are those of the runs and schedules that anyone can check."""

from itertools import product

import numpy as np
import pytest

import hindsched as hs
from hindsched.instances.search.space import find_space
from hindsched.solvers.families.gang.in_numbers import value_of_reference, value_of_run
from hindsched.solvers.kernels.gang.equal_machines import MOST_NODES, starts_on_machines

PRESETS = ("small", "one-gpu", "machines", "smith")


def drawn(preset, count):
    space = find_space("gang", preset).with_ranges({"jobs": [1, 5], "duration": [1, 12]})
    random = np.random.default_rng(7)
    for _ in range(count):
        yield space.instance(space.draw(random)), space.formulation


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("algorithm", ["fifo", "wspt", "easy"])
def test_a_run_in_numbers_is_the_run(preset, algorithm):
    for instance, formulation in drawn(preset, 5):
        run = hs.simulate(instance, algorithm, formulation=formulation)
        assert value_of_run(instance, algorithm, run.solution.formulation, {}) == run.objective


def test_policies_that_pause_have_no_value_where_nobody_may():
    instance, _ = next(drawn("one-gpu", 1))
    assert value_of_run(instance, "srtf", "non-preemptive", {}) is None
    run = hs.simulate(instance, "srtf", formulation="preemptive")
    assert value_of_run(instance, "srtf", "preemptive", {}) == run.objective
    assert value_of_run(instance, "reoptimise", "non-preemptive", {}) is None


@pytest.mark.parametrize("preset", PRESETS)
def test_a_reference_in_numbers_is_a_schedule_and_its_bound_holds(preset):
    for instance, formulation in drawn(preset, 5):
        formulation = instance.check_formulation(formulation)
        bound, value = value_of_reference(instance, "orders", formulation, np.inf)
        assert value_of_reference(instance, "orders", formulation, bound / 2) == (bound, np.inf)
        best = hs.solve(instance, "milp", formulation=formulation, time_limit=20)
        assert str(best.status) == "optimal"
        assert bound <= best.objective * (1 + 1e-9)
        assert value >= best.objective * (1 - 1e-9)
        if preset != "small":  # no proof, but on so few jobs the best order is found
            assert value == pytest.approx(best.objective)


def test_the_least_makespan_on_equal_machines():
    random = np.random.default_rng(1)
    for _ in range(60):
        machines, jobs = int(random.integers(1, 4)), int(random.integers(1, 8))
        duration = random.integers(1, 9, jobs)
        least = min(
            np.bincount(where, weights=duration, minlength=machines).max()
            for where in product(range(machines), repeat=jobs)
        )
        starts, nodes = starts_on_machines(duration, machines)
        assert nodes < MOST_NODES
        assert (starts + duration).max() == least
        events = np.concatenate([starts, starts + duration])
        assert all(((starts <= at) & (at < starts + duration)).sum() <= machines for at in events)
