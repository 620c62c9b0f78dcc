"""OASiS online: known objectives, posted prices and their bounds, ledger, truth."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import hindsched as hs
from hindsched.instances.io import read
from hindsched.models.base import Commitments
from hindsched.online.oasis.algorithms import OasisReoptimise, theorem
from hindsched.online.oasis.prices import ExponentialPrices, price_bounds
from hindsched.online.simulator import simulate
from hindsched.solutions.base import build_solution
from hindsched.solvers.base import build_oracle
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.families.oasis.methods import rest_of
from tests.strategies.oasis import make, oasis_instances

DATA = Path(__file__).resolve().parent.parent / "data" / "instances"


def shared(name: str) -> Any:
    return read(DATA / f"{name}.json")


# Where the literal L makes prices nearly equal, their last digit decides; sums of products have
# another one on processors with AVX-512 (the first of two numbers) than on those without.


@pytest.mark.parametrize(
    ("name", "objectives"),
    [
        ("oasis-t10-i10-h5-s1", (248.11, 247.56)),
        ("oasis-t10-i10-h10-s0", (159.55,)),
        ("oasis-t10-i10-h25-s0", (75.52,)),
    ],
)
def test_known_objectives_with_the_literal_lower_bound(
    name: str, objectives: tuple[float, ...]
) -> None:
    result = simulate(shared(name), "oasis")
    assert any(result.objective == pytest.approx(known, abs=0.01) for known in objectives)
    assert result.violations == []


@pytest.mark.parametrize(
    ("name", "literal", "thresholded"),
    [
        ("oasis-t100-i100-h50-s0", (94.42,), (230.16,)),
        ("oasis-t300-i300-h50-s0", (865.58,), (1411.26,)),
    ],
)
def test_the_literal_lower_bound_admits_jobs_that_earn_nothing(
    name: str, literal: tuple[float, ...], thresholded: tuple[float, ...]
) -> None:
    objectives = [
        simulate(shared(name), "oasis", settings={"least_payoff": least}).objective
        for least in (0.0, 1e-12)
    ]
    for objective, known in zip(objectives, (literal, thresholded), strict=True):
        assert any(objective == pytest.approx(known_value, abs=0.1) for known_value in known)


def test_prices_run_from_lower_to_upper() -> None:
    instance = shared("oasis-t10-i10-h5-s1")
    rows = build_oracle(instance, rows="servers").rows
    bounds = price_bounds(instance)
    price = ExponentialPrices(rows, bounds)
    every = np.arange(rows.size)
    empty = rows.unpack(price(every, np.zeros(rows.size)))
    full = rows.unpack(price(every, rows.capacity))
    for name, bound in bounds.items():
        for index, log_upper in enumerate(bound.log_upper):
            if math.isfinite(log_upper):
                has_capacity = rows.unpack(rows.capacity)[name][:, index] > 0
                lower = empty[name][:, index][has_capacity]
                assert lower == pytest.approx(math.exp(bound.log_lowers[index]))
                assert full[name][:, index] == pytest.approx(math.exp(log_upper))
            else:
                assert not full[name][:, index].any()


def test_ledger_adds_up_and_certifies_the_final_prices() -> None:
    instance = shared("oasis-t10-i10-h25-s0")
    result = simulate(instance, "oasis", settings={"lower_floor": 0.1})
    ledger = result.report["ledger"]
    assert sum(row["primal"] for row in ledger) == pytest.approx(result.objective)
    assert all(row["payoff"] > 0 for row in ledger)
    oracle = build_oracle(instance, rows="servers")
    final, rows = oracle.rows.pack(result.prices), oracle.rows
    assert oracle.bound(final) >= 182.359
    empty = ExponentialPrices(rows, price_bounds(instance, 0.1))(
        np.arange(rows.size), np.zeros(rows.size)
    )
    raised = float((final - empty) @ rows.capacity)
    payoffs = sum(row["payoff"] for row in ledger)
    assert sum(row["dual"] for row in ledger) == pytest.approx(payoffs + raised)


def test_the_ratio_is_twice_the_logarithm_of_upper_over_lower_price():
    stated = theorem(shared("oasis-t10-i10-h5-s1"))
    pools = [pool for name, pool in stated["quantities"].items() if name != "alpha"]
    widest = max(max(pool["log_upper"].values()) - pool["log_lower"] for pool in pools)
    assert stated["value"] == pytest.approx(2 * max(1, widest))


# `reoptimise` of oasis: what is left as an instance of its own, against the program of it.


class Compared(OasisReoptimise):
    """Solves every rest by the program over real servers as well."""

    def start(self, environment: Any) -> None:
        super().start(environment)
        self.solved: list[tuple[float, float]] = []

    def _plan_again(self, slot: int) -> None:
        rolling = self._rolling
        rolling.advance(slot)
        program = rolling.build()
        alone = solve_program(program.model, SolveOptions(gap=1e-7))
        rest = rest_of(rolling.instance, rolling.commitments())
        for index, facts in program.plan.jobs.items():
            name = rolling.instance.jobs[index].name
            job = next(job for job in rest.jobs if job.name == name)
            assert (job.arrival, rest.work_of(job)) == (facts.first, facts.work)
            ends = list(facts.utilities)
            values = list(facts.utilities.values())
            np.testing.assert_allclose(rest.utilities(job)[ends], values, 1e-12)
            assert rest.most_workers(job) == facts.most[ends[-1]]
        assert len(rest.jobs) == len(program.plan.jobs)
        super()._plan_again(slot)
        decided = sum(program.plan.decided.values())
        plan = build_solution(rest, self._plan)
        assert plan.is_feasible()
        assert alone.objective is not None
        self.solved.append((plan.objective() + decided, alone.objective))


def compare(instance: Any) -> int:
    algorithm = Compared()
    run = hs.simulate(instance, algorithm)
    assert run.violations == []
    assert run.report["limits_reached"] == 0
    planned, alone = np.array(algorithm.solved).T
    np.testing.assert_allclose(planned, alone, rtol=1.1e-4, atol=1e-6)
    return len(planned)


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_every_plan_is_optimal_over_real_servers(seed):
    assert compare(hs.generate("oasis", seed=seed, jobs=7, horizon=7)) >= 3


@given(oasis_instances())
def test_every_plan_is_optimal_on_odd_instances(instance):
    compare(instance)


def test_the_rest_knows_what_was_done_and_who_was_refused():
    instance = hs.generate("oasis", seed=1, jobs=3, horizon=9)
    first, second, third = instance.jobs
    row = {"from": first.arrival, "to": first.arrival, "workers": {"w1": 2}, "ps": {"p1": 1}}
    slot = max(job.arrival for job in instance.jobs) + 1
    rows = {first.name: [row]}
    given_up = frozenset({second.name})
    rest = rest_of(instance, Commitments(now=slot, assignments=rows, rejected=given_up))
    assert [job.name for job in rest.jobs] == [first.name, third.name]
    assert rest.work.tolist() == [instance.work[0] - 2, instance.work[2]]
    assert rest.arrival.tolist() == [slot, slot]
    assert rest.worker_capacity is instance.worker_capacity


def test_servers_without_capacity_for_ps_stop_no_algorithm():
    instance = hs.read(str(DATA.parent / "attacks" / "oasis-no-ps-capacity.json"))
    for name in ("oasis", "fifo", "dual-price", "drf"):
        run = hs.simulate(instance, name)
        assert run.violations == []
        assert run.objective == 1


@pytest.mark.parametrize("engine", ["oracle", "model", "slots"])
def test_where_no_job_can_end_in_time_nothing_has_a_price(engine):
    instance = make([{"epochs": 2, "ps": {"mbps": 1}}], [{"mbps": 1}], [{"mbps": 1}], horizon=1)
    run = hs.simulate(instance, "oasis", settings={"engine": engine})
    assert run.objective == 0
    assert not any(np.any(np.asarray(prices)) for prices in run.prices.values())
