"""One tie rule: rounding decides nothing, and every engine takes the same schedule."""

import os

import numpy as np
import pytest

import hindsched as hs
from hindsched.online.batchsched import algorithms as batchsched
from hindsched.online.engines.batching import ExponentialLedger
from hindsched.online.oasis.prices import ExponentialPrices
from hindsched.solvers.base import build_oracle
from hindsched.solvers.families.windows.oracle import WORKERS
from hindsched.solvers.kernels.ties import TIE
from hindsched.solvers.oracles.decisions import COMPLETES

RUNS = {
    "oasis": ("oasis", {"jobs": 8, "horizon": 10}),
    "batchsched": ("batchsched-exact", {"jobs": 5, "servers": 3}),
    "astraea": ("astraea", {"jobs": 6, "horizon": 10}),
}
ENGINES = {"oasis": ("oracle", "model", "slots")}
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


def check_engines(family, seeds):
    engines = ENGINES.get(family, ("oracle", "model"))
    for seed in seeds:
        settings = SETTINGS[family][0]
        decided = [decisions(family, seed, engine=engine, **settings) for engine in engines]
        assert all(other == decided[0] for other in decided[1:]), seed


@pytest.mark.parametrize("family", RUNS)
def test_the_last_bits_of_prices_move_no_decision(family, monkeypatch):
    check_last_bits(family, range(10), monkeypatch)


@pytest.mark.parametrize("family", RUNS)
def test_all_engines_decide_alike(family):
    check_engines(family, range(10))


def test_programs_of_what_may_beat_the_known_schedule_decide_alike(monkeypatch):
    monkeypatch.setattr(batchsched, "MOST_IN_SUBPROBLEM", 0)
    check_engines("batchsched", range(10))
    monkeypatch.setitem(RUNS, "batchsched", ("batchsched-exact", {"jobs": 8, "servers": 2}))
    check_engines("batchsched", range(5))


@pytest.mark.parametrize("family", ["astraea", "batchsched"])
def test_windows_on_servers_end_first_with_fewest_workers_and_the_last_bits_move_none(family):
    for seed in range(6):
        oracle = build_oracle(hs.generate(family, seed=seed), rows="servers")
        draws = np.random.default_rng(seed)
        prices = draws.choice([0.0, 0.0, 0.3, 2.0], oracle.rows.size)
        for block in range(oracle.num_decided):
            found = oracle.restricted_response(block, prices, {})
            (row,) = found.plan
            again = oracle.restricted_response(block, LAST_BITS * prices, {})
            assert str(again.plan) == str(found.plan)
            for limits in (
                {COMPLETES: (1, row.last - 1)},
                {COMPLETES: (row.last, row.last), WORKERS: (1, row.num_workers - 1)},
            ):
                other = oracle.restricted_response(block, prices, limits)
                gain = 1 if oracle.sense == "max" else -1
                size = TIE * max(abs(found.objective), abs(found.value))
                assert other is None or gain * (found.value - other.value) > 0.5 * size


@pytest.mark.nightly
@pytest.mark.parametrize("family", RUNS)
def test_all_engines_and_last_bits_on_many_instances(family, monkeypatch):
    check_last_bits(family, MANY, monkeypatch)
    check_engines(family, MANY)
