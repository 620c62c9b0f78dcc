"""mlbroker's ``auto``: bound, search, program and the tree that certifies its optimum."""

import numpy as np
import pytest

from hindsched.instances.mlbroker.generator import SUITES, generate
from hindsched.instances.mlbroker.slot import SlotData
from hindsched.limits import OutOfTime
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.work import now
from hindsched.solvers.families.mlbroker import methods
from hindsched.solvers.families.mlbroker import oracle as in_oracle
from hindsched.solvers.families.mlbroker.oracle import TIER, WORKERS
from hindsched.solvers.oracles.base import build_oracle
from hindsched.solvers.oracles.decisions import Feature


@pytest.fixture
def torn():
    """An instance whose prices alone do not close the gap."""
    return next(one for one in SUITES["small"]() if one.name.endswith("r3-t3-j4-s0"))


def test_an_optimum_of_the_program_is_certified_by_a_tree(torn):
    found = solve(torn, time_limit=60)
    assert found.method == "bound+search+milp"
    assert found.status == "optimal"
    assert found.proof == "certificate"
    assert found.certificate.num_leaves > 1
    assert found.details["certified_bound"] == found.certificate.bound


def test_paper_has_no_tree_but_the_program(torn):
    found = solve(torn, formulation="paper", time_limit=60)
    assert found.method == "bound+search+milp"
    assert found.status == "optimal"


def within_of(draw, oracle):
    """Random limits on workers of a job and on a tier."""
    jobs, broker = len(oracle.instance.jobs), len(oracle.instance.jobs)
    job = int(draw.integers(jobs))
    slot = oracle.instance.jobs[job].arrival - 1
    place = int(draw.integers(len(oracle.instance.datacenters)))
    return {
        job: {Feature(WORKERS, (place, slot)): (0, int(draw.integers(2)))},
        broker: {Feature(TIER, (place, 0, slot)): (0, 0)},
    }


@pytest.mark.parametrize("most", [100, 1])
def test_answers_that_are_remembered_are_those_that_would_be_given(torn, monkeypatch, most):
    monkeypatch.setattr(in_oracle, "MOST_ANSWERS", most)
    draw = np.random.default_rng(0)
    remembering = build_oracle(torn, "tight")
    prices = [draw.uniform(0, 2, remembering.rows.size) for _ in range(3)]
    for _ in range(40):
        limits, at = within_of(draw, remembering), prices[int(draw.integers(3))]
        bound, plans = remembering.priced_within(at, limits)
        fresh, own = build_oracle(torn, "tight").priced_within(at, limits)
        assert bound == fresh
        for one, other in zip(plans, own, strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_prices_lead_to_a_schedule_as_soon_as_there_is_a_bound():
    """Without time for any other search the jobs' answers to the prices are relocated."""
    instance = generate("paper", 1, datacenters=6, horizon=6, jobs=12)
    bounded, plans = methods._certified(instance, "tight", SolveOptions(), None)
    rushed = methods.find_schedule(instance, "tight", now() - 1.0, plans)
    views = [SlotData.at(instance, t) for t in range(1, instance.horizon + 1)]
    answers = methods._slots_of(instance, views, plans)
    assert rushed.objective() == pytest.approx(sum(slot.cost for slot in answers))
    assert rushed.is_feasible()
    assert rushed.objective() < 1.01 * bounded.bound
    assert methods.find_schedule(instance, "tight", plans=plans).objective() <= rushed.objective()


def test_a_search_that_overruns_the_limit_leaves_bound_and_answers(torn, monkeypatch):
    """On a loaded machine the search may not come to its first look at the clock."""

    def endless(*_, **__):
        raise OutOfTime

    monkeypatch.setattr(methods, "find_schedule", endless)
    found = solve(torn, time_limit=60)
    assert found.stopped_by == "time_limit"
    assert found.certificate.bound == found.bound
    assert found.solution.is_feasible()
    assert found.objective < 1.1 * found.bound
