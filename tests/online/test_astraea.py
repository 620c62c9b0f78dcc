"""Astraea online: the worked example number by number, money, settings, rivals by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from hindsched.instances.generators.registry import generate
from hindsched.online.astraea.algorithms import theorem
from hindsched.online.astraea.paper import Astraea, TenantRound
from hindsched.online.simulator import simulate
from hindsched.solutions.astraea.solution import AstraeaSolution
from hindsched.solutions.window_solution import row_use
from tests.astraea_example import worked_example
from tests.strategies.astraea import astraea_instances

PAPER = {"theta_workers": 16.0, "theta_ps": 16.0}


def starts(result):
    return {name: (rows[0].first, rows[-1].last) for name, rows in result.solution.rows.items()}


def test_worked_example_with_two_rounds():
    result = simulate(worked_example(), "astraea", settings={**PAPER, "rounds": 2})
    assert starts(result) == {"j11": (9, 10), "j12": (10, 12), "j21": (11, 12), "j22": (65, 94)}
    assert result.objective == 168
    revenue = {name: result.solution.revenue(name) for name in result.solution.rows}
    assert revenue == {"j11": 86, "j12": 82, "j21": 82, "j22": -82}
    assert result.violations == []


def test_worked_example_with_one_round():
    result = simulate(worked_example(), "astraea", settings={**PAPER, "rounds": 1})
    assert starts(result) == {"j11": (5, 6), "j12": (6, 8), "j21": (7, 8), "j22": (33, 62)}
    assert result.objective == 256


def test_the_guard_refuses_the_job_that_is_run_at_a_loss():
    result = simulate(worked_example(), "astraea", settings={**PAPER, "guard": True})
    assert "j22" not in result.solution.rows
    assert result.objective == 86 + 82 + 82


def test_worked_example_step_by_step():
    """Fair shares in the order of the file: prices, and what the windows not taken are worth."""
    example = worked_example()
    current = TenantRound(example, 4, (np.array([16.0]), np.array([16.0])))
    algorithm = Astraea()
    algorithm.cluster, algorithm._tables = example, {}
    steps = {
        # taken (first slot, last), payoff, prices of a worker after it, others: slots -> payoff
        "j11": ((9, 10), 96, [1, 1, 0, 0], {(10, 11): 94, (11, 12): 92}),
        "j12": ((10, 12), 89, [1, 3, 1, 1], {(9, 11): 88}),
        "j21": ((11, 12), 86, [1, 3, 3, 3], {(9, 10): 84, (10, 11): 82}),
    }
    for job in example.jobs:
        values = algorithm.values(job, 4, 8)
        offer = current.offer(job, algorithm.table(job), values, shared=False)
        if job.name == "j22":
            assert offer is None
            continue
        taken, payoff, after, others = steps[job.name]
        prices = current.ledger.prices()
        for (first, last), worth in {**others, taken: payoff}.items():
            cost = float((prices[first - 9 : last - 8] @ [2, 1]).sum())
            assert values[last - 8] - cost == pytest.approx(worth)
        assert (offer.start + 8, offer.last + 8) == taken
        assert values[offer.last] - offer.cost == pytest.approx(payoff)
        current.book(job, offer, shared=False)
        assert current.ledger.prices() == pytest.approx(np.repeat(after, 2).reshape(4, 2))


def test_gain_of_the_printed_schedule_is_8():
    solution = AstraeaSolution.from_assignments(
        worked_example(),
        {
            "j11": [{"from": 9, "to": 10, "workers": {"s1": 2}, "ps": {"s1": 1}}],
            "j21": [{"from": 11, "to": 12, "workers": {"s2": 2}, "ps": {"s2": 1}}],
            "j12": [
                {
                    "from": 9,
                    "to": 12,
                    "workers": {"s3": 2, "s4": 1},
                    "ps": {"s3": 1},
                    "payment": {"workers": 3, "ps": 1},
                }
            ],
        },
    )
    assert solution.violations() == []
    assert solution.gains() == {"u1": 8, "u2": 8}
    assert solution.payments() == {"u1": 16, "u2": 0}
    rows = {row["tenant"]: row for row in solution.tenant_rows()}
    assert rows["u2"]["revenue"] == 82 + 8  # j21 completes at 12, arrival 3
    assert sum(row["revenue"] for row in rows.values()) == solution.objective()


def test_money_is_conserved():
    with_payments = 0
    for seed in range(40):
        more = {"tenants": 2 + seed % 2, "worker_types": 1 + (seed % 5 == 0)}
        instance = generate(
            "astraea", "small", seed, jobs=6 + seed % 3, servers=3, arrival_span=1, **more
        )
        result = simulate(instance, "astraea", settings={"rounds": 1 + seed % 2})
        gains, paid = result.solution.gains(), result.solution.payments()
        assert sum(gains.values()) == sum(paid.values())
        incomes = sum(result.solution.incomes().values())
        earned = (result.solution.revenue(job.name) for job in instance.jobs)
        assert incomes == sum(Fraction(value) for value in earned if value is not None)
        assert float(incomes) == pytest.approx(result.objective, rel=1e-12)
        with_payments += sum(paid.values()) > 0
    assert with_payments >= 10


@given(astraea_instances(horizon=24))
def test_fair_shares_are_kept_and_paid_jobs_pay_the_posted_prices(instance):
    result = simulate(instance, "astraea", settings={"rounds": 1})
    solution = result.solution
    left = np.repeat(instance.tenant_quota[None], solution.last_slot, axis=0)
    for job in instance.jobs:
        for row in solution.rows.get(job.name, ()):
            if row.payment is None:  # it runs within the fair share
                used = row_use(instance, row).sum(axis=0).astype(int)
                left[row.first - 1 : row.last, instance.tenant_index[job.tenant]] -= used
    assert (left >= 0).all()
    for row in result.report["ledger"]:
        assert row["dual"] >= 0
    duals = sum(row["dual"] for row in result.report["ledger"])
    primals = sum(row["primal"] for row in result.report["ledger"])
    assert duals >= primals - 1e-9  # weak duality, batch by batch


@given(astraea_instances(horizon=16))
def test_literal_differs_only_by_its_errata(instance):
    """Placements too few PSs serve, and payments for what the worker quota let exceed."""
    printed = simulate(instance, "astraea-literal")
    assert {b.rule for b in printed.solution.violations()} <= {"(3i)", "(2)"}


def test_theorem_of_linear_and_power_utilities():
    linear = theorem(generate("astraea", "small", 0, utility_origin="absolute"))
    assert linear["kind"] == "additive"
    assert linear["value"] > 0
    slopes = [j.utility.slope for j in generate("astraea", "small", 0).jobs]
    lam, big_l = linear["lambda"], linear["batches"]
    expected = len(slopes) * (
        (2**big_l - 1) * max(slopes) - (2 ** (big_l + 1) - 1) * (2 * lam - 1) * min(slopes)
    )
    assert linear["value"] == pytest.approx(expected)
    power = theorem(generate("astraea", "small", 0, utility="power"))
    assert power["kind"] == "ratio"
    assert power["value"] > 1
    held = {row["name"]: row["holds"] for row in power["assumptions"]}
    assert held["utilities take the completion slot itself: origin absolute (Theorem 1)"] is False
    paper = theorem(generate("astraea", "paper", 0))
    assert 151 <= paper["lambda"] <= 582
    mixed = theorem(generate("astraea", "paper", 0, utility="mixed"))
    assert mixed["value"] is None
