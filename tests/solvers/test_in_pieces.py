"""Formulation ``preemptive`` of batchsched and astraea: rows judged, bounds by prices."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import assume, given, settings

import hindsched as hs
from hindsched.errors import InputError
from hindsched.instances.modes import in_pieces
from hindsched.kernel.reading import RefusedFile as RefusedByKernel
from hindsched.models.base import subproblem
from hindsched.online.baselines.ranked import Tiresias
from hindsched.solvers.base import build_oracle
from hindsched.solvers.certificates.certificate import certify
from tests.brute_force.batchsched import optimum_in_pieces as best_batchsched
from tests.kernel.agreement import KERNELS, certificate, checked, exact, kernel_bound, random_prices
from tests.online.test_baselines import gangs, tenants
from tests.second_opinion.settle import placements
from tests.strategies.batchsched import tiny_instances


def pausing_pays() -> Any:
    """A long job of 2 workers on 2 GPUs; a short, heavy one arrives while it runs."""
    return gangs((1, 2, 4), (2, 2, 2, {"weight": 9}))


def agree(instance: Any, formulation: str, best: float) -> None:
    """No bound passes what brute force finds; the kernel says the same."""
    bound = hs.solve(instance, "bound", formulation=formulation, options={"work_limit": 3})
    if math.isinf(best):
        assert bound.status == "infeasible"
        return
    sign = 1 if instance.sense == "max" else -1
    assert sign * bound.bound >= sign * best - 1e-6 * abs(best)
    proven = kernel_bound(instance, bound.certificate.to_dict())
    assert sign * float(proven.high) >= sign * best - 1e-6 * abs(best)


@settings(max_examples=8)
@given(tiny_instances(num_jobs=2, horizon=3))
def test_batchsched_by_brute_force(instance):
    few = [{slots for slots, _ in placements(instance, job)} for job in instance.jobs]
    assume(all(len(own) <= 2 for own in few))  # rates, of which the states that are tried follow
    agree(instance, "preemptive", best_batchsched(instance))


def test_pausing_pays_by_hand():
    """(2 + 4 slots) + 9 x (2 slots of its own) against waiting for the long job."""
    instance = pausing_pays()
    run = hs.simulate(instance, Tiresias(), formulation="preemptive")
    assert run.objective == best_batchsched(instance) == 7 + 9 * 4
    assert run.violations == []
    assert hs.solve(instance, "milp").objective > run.objective


@pytest.mark.parametrize("method", ["auto", "bound"])
@pytest.mark.parametrize("family", ["batchsched", "astraea"])
def test_every_method_bounds_it(family, method):
    instance = hs.generate(family, preset="small", jobs=2)
    best = hs.solve(instance, "auto", formulation="preemptive", options={"work_limit": 20})
    found = hs.solve(instance, method, formulation="preemptive", options={"work_limit": 20})
    sign = 1 if instance.sense == "max" else -1
    assert sign * found.bound >= sign * best.objective - 1e-6
    assert in_pieces(found.formulation)
    if found.certificate is not None:
        assert found.certificate.layout == "preemptive"


def test_without_a_program_prices_and_search_go_on():
    instance = hs.generate("batchsched", preset="small", jobs=6)
    found = hs.solve(instance, formulation="preemptive", gap=0.0, options={"work_limit": 200})
    assert found.details["program_failed"] == "jobs in pieces have no program"
    assert found.details["neighbourhoods"] + found.details["bound_iterations"] > 150


def test_only_its_layout_bounds_it():
    instance = pausing_pays()
    for rows in ("cluster", "servers"):
        oracle = build_oracle(instance, "preemptive", rows=rows)
        prices = random_prices(oracle, 1)
        with pytest.raises(InputError, match="prove no bound"):
            certify(oracle, prices)
        with pytest.raises(RefusedByKernel, match="layout"):
            kernel_bound(instance, certificate(oracle, prices, 0, layout=rows))
    with pytest.raises(InputError, match="cannot restrict"):
        hs.solve(instance, "tree", formulation="preemptive")
    for method in ("milp", "relaxation"):
        with pytest.raises(InputError, match="has no program; modes and literal have one"):
            hs.solve(instance, method, formulation="preemptive")
    with pytest.raises(InputError, match="has no program"):
        subproblem(instance, 0, "preemptive")


def test_a_pause_stands_in_this_formulation_only():
    """The same rows: feasible here, (2a) in the paper's problem; never two at once."""
    instance = pausing_pays()
    run = hs.simulate(instance, Tiresias(), formulation="preemptive")
    rows = run.solution.assignments()
    assert len(rows["j0"]) == 2
    whole = hs.build_solution(instance, rows)
    assert {broken.rule for broken in whole.violations()} == {"(2a)"}
    kernel = KERNELS["batchsched"]
    data = hs.build_solution(instance, rows, "preemptive").to_dict()
    assert checked(kernel, exact(instance.to_dict()), exact(data)).violations == ()
    data["formulation"] = "modes"
    assert checked(kernel, exact(instance.to_dict()), exact(data)).violations
    twice = {**rows, "j0": [rows["j0"][0], rows["j0"][0] | {"from": 1, "to": 9}]}
    broken = hs.build_solution(instance, twice, "preemptive").to_dict() | {
        "formulation": "preemptive"
    }
    assert checked(
        kernel, exact(instance.to_dict()), exact(json.loads(json.dumps(broken)))
    ).violations


def test_a_job_that_no_server_can_serve_has_no_work_to_do():
    instance = tenants([0], {"a": (0, 1)}, ("j", "a", 1, 1, 1))
    for formulation, status in (("optional", "no_solution"), ("must-complete", "infeasible")):
        result = hs.solve(instance, "bound", formulation=f"{formulation},preemptive")
        assert result.status == status
