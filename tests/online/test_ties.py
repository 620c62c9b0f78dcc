"""One tie rule: rounding decides nothing, and every engine takes the same schedule."""

import os

import numpy as np
import pytest

import hindsched as hs
from hindsched.online.astraea.paper import TenantModelRound, TenantRound
from hindsched.online.batchsched.algorithms import ServerModelRound
from hindsched.online.engines import primal_dual
from hindsched.online.engines.batching import ExponentialLedger
from hindsched.online.engines.server_batches import ServerRound
from hindsched.online.oasis.prices import ExponentialPrices
from hindsched.solvers.base import build_oracle
from hindsched.solvers.door.subproblem import INDISTINCT
from hindsched.solvers.families.oasis.oracle import OasisServers
from hindsched.solvers.families.windows.oracle import WORKERS
from hindsched.solvers.families.windows.schedules import ScheduleSearch
from hindsched.solvers.kernels.ties import TIE
from hindsched.solvers.oracles.decisions import COMPLETES

RUNS = {
    "oasis": ("oasis", {"jobs": 8, "horizon": 8}),
    "batchsched": ("batchsched-exact", {"jobs": 5, "servers": 3}),
    "astraea": ("astraea", {"jobs": 6, "horizon": 10}),
}
ENGINES = {"oasis": ("slots",)}
SETTINGS = {"oasis": [{"lower_floor": 0.1}, {}], "batchsched": [{}], "astraea": [{}]}
LAST_BITS = 1 + 2.0**-50
MANY = range(10, 10 + min(200, int(os.environ.get("SECOND_OPINION", "20")) // 4))


def decisions(family, seed, **settings):
    algorithm, size = RUNS[family]
    instance = hs.generate(family, seed=seed, **size)
    run = hs.simulate(instance, algorithm, settings=settings)
    assert run.violations == []
    return {
        name: [{key: value for key, value in row.items() if key != "payment"} for row in rows]
        for name, rows in run.solution.assignments().items()
    }


def with_other_last_bits(monkeypatch):
    oasis, ledger = ExponentialPrices.__call__, ExponentialLedger.prices
    monkeypatch.setattr(ExponentialPrices, "__call__", lambda *a: LAST_BITS * oasis(*a))
    monkeypatch.setattr(ExponentialLedger, "prices", lambda *a: LAST_BITS * ledger(*a))


def check_last_bits(family, seeds, monkeypatch):
    for settings in SETTINGS[family]:
        before = [decisions(family, seed, **settings) for seed in seeds]
        with monkeypatch.context() as patched:
            with_other_last_bits(patched)
            assert [decisions(family, seed, **settings) for seed in seeds] == before


def traced(monkeypatch):
    """Every decision of the engine ``model`` beside the oracle's in the same state."""
    pairs = []  # schedule and payoff of both, and the size of what the payoff adds up
    respond, offer, find = (
        primal_dual.model_response, TenantModelRound.offer, ServerModelRound.find
    )  # fmt: skip

    def both_respond(oracle, block, prices, residual):
        ours = respond(oracle, block, prices, residual)
        theirs = oracle.best_response(block, prices, residual)
        pairs.append([
            each and (oracle.assignments(block, each), each.value, 2 * each.objective - each.value)
            for each in (ours, theirs)
        ])  # fmt: skip
        return ours

    def both_offer(self, job, table, values, *, shared, least=-np.inf):
        ours = offer(self, job, table, values, shared=shared)
        theirs = TenantRound.offer(self, job, table, values, shared=shared)
        pairs.append([
            each and (each.plan, values[each.last] - each.cost, values[each.last] + each.cost)
            for each in (ours, theirs)
        ])  # fmt: skip
        return ours

    def both_find(self, job, limit):
        ours, theirs = find(self, job, limit), ServerRound.find(self, job, limit)
        costs = [each and self.search.price(each) for each in (ours, theirs)]
        pairs.append([
            each and (each, -cost, cost) for each, cost in zip((ours, theirs), costs, strict=True)
        ])  # fmt: skip
        return ours

    monkeypatch.setattr(primal_dual, "model_response", both_respond)
    monkeypatch.setattr(TenantModelRound, "offer", both_offer)
    monkeypatch.setattr(ServerModelRound, "find", both_find)
    return pairs


def check_engines(family, seeds, monkeypatch):
    """Decisions differ only where payoffs do by less than a solver can tell."""
    settings, differ = SETTINGS[family][0], 0
    with monkeypatch.context() as patched:
        pairs = traced(patched)
        for seed in seeds:
            decisions(family, seed, engine="model", **settings)
    for ours, theirs in pairs:
        if str(ours and ours[0]) != str(theirs and theirs[0]):
            differ += 1
            assert abs(ours[1] - theirs[1]) <= INDISTINCT * abs(ours[2]), (ours, theirs)
    assert pairs
    assert differ <= 0.01 * len(pairs)
    for engine in ENGINES.get(family, ()):
        for seed in seeds:
            by_oracle = decisions(family, seed, **settings)
            assert decisions(family, seed, engine=engine, **settings) == by_oracle


def asked(*_, **__):
    raise AssertionError("the oracle is asked")


@pytest.mark.parametrize("family", RUNS)
def test_the_last_bits_of_prices_move_no_decision(family, monkeypatch):
    check_last_bits(family, range(10), monkeypatch)


@pytest.mark.parametrize("family", RUNS)
def test_all_engines_decide_alike(family, monkeypatch):
    check_engines(family, range(10), monkeypatch)


@pytest.mark.parametrize("family", RUNS)
def test_the_program_decides_without_the_oracle(family, monkeypatch):
    settings = SETTINGS[family][0]
    by_oracle = [decisions(family, seed, **settings) for seed in range(3)]
    monkeypatch.setattr(OasisServers, "best_response", asked)
    monkeypatch.setattr(ScheduleSearch, "cheapest", asked)
    monkeypatch.setattr(TenantRound, "offer", asked)
    assert [decisions(family, seed, engine="model", **settings) for seed in range(3)] == by_oracle
    with pytest.raises(AssertionError, match="is asked"):
        decisions(family, 0, **settings)


@pytest.mark.parametrize("family", ["astraea", "batchsched"])
def test_windows_on_servers_end_first_with_fewest_workers_and_the_last_bits_move_none(family):
    for seed in range(6):
        oracle = build_oracle(hs.generate(family, seed=seed), rows="servers")
        draws = np.random.default_rng(seed)
        prices = draws.choice([0.0, 0.0, 0.3, 2.0], oracle.rows.size)
        for block in range(oracle.num_decided):
            best = oracle.restricted_response(block, prices, {})
            (row,) = best.plan
            again = oracle.restricted_response(block, LAST_BITS * prices, {})
            assert str(again.plan) == str(best.plan)
            for limits in (
                {COMPLETES: (1, row.last - 1)},
                {COMPLETES: (row.last, row.last), WORKERS: (1, row.num_workers - 1)},
            ):
                other = oracle.restricted_response(block, prices, limits)
                gain = 1 if oracle.sense == "max" else -1
                size = TIE * max(abs(best.objective), abs(best.value))
                assert other is None or gain * (best.value - other.value) > 0.5 * size


@pytest.mark.nightly
@pytest.mark.parametrize("family", RUNS)
def test_all_engines_and_last_bits_on_many_instances(family, monkeypatch):
    check_last_bits(family, MANY, monkeypatch)
    check_engines(family, range(10, 110), monkeypatch)
