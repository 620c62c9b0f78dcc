"""OASiS online: known objectives, posted prices and their bounds, ledger, truth."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hindsched.errors import InputError, Refused
from hindsched.instances.io import read
from hindsched.online.oasis.algorithms import theorem
from hindsched.online.oasis.prices import ExponentialPrices, pool_facts
from hindsched.online.protocol import Decision, Environment, OnlineAlgorithm
from hindsched.online.simulator import simulate
from hindsched.solvers.oracles.base import build_oracle

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


@pytest.mark.parametrize("engine", ["oracle", "model"])
def test_a_threshold_on_the_payoff_keeps_worthless_jobs_out(engine: str) -> None:
    instance = shared("oasis-t10-i10-h25-s0")

    def payoffs(least: float) -> list[float]:
        settings = {"engine": engine, "least_payoff": least}
        ledger = simulate(instance, "oasis", settings=settings).report["ledger"]
        return [row["payoff"] for row in ledger]

    smallest = min(payoffs(0.0))
    assert smallest > 0
    assert min(payoffs(smallest * (1 + 1e-6))) > smallest * (1 + 1e-6)


@pytest.mark.parametrize(
    ("name", "literal", "thresholded"),
    [
        ("oasis-t100-i100-h50-s0", (95.03,), (226.8, 226.4)),
        ("oasis-t300-i300-h50-s0", (867.9, 863.5), (1409.1, 1410.1)),
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
        assert any(objective == pytest.approx(one, abs=0.1) for one in known)


@pytest.mark.parametrize(
    ("name", "alpha"),
    [("oasis-t100-i100-h50-s0", 533), ("oasis-t300-i300-h50-s0", 1765)],
)
def test_theorem_value_is_vacuous_at_scale(name: str, alpha: float) -> None:
    quantities = theorem(shared(name))
    assert quantities["value"] == pytest.approx(2 * alpha, abs=2)
    broken = [a["name"] for a in quantities["assumptions"] if not a["holds"]]
    assert "demands much smaller than capacities" in broken


def test_theorem_without_jobs() -> None:
    empty = shared("oasis-t10-i10-h5-s1").with_jobs(())
    assert theorem(empty)["value"] is None


def test_chunk_program_never_pays_more_than_the_exact_response() -> None:
    instance = shared("oasis-t100-i100-h50-s0")
    exact = simulate(instance, "oasis", settings={"lower_floor": 0.1})
    chunk = simulate(instance, "oasis-chunk", settings={"lower_floor": 0.1})
    assert chunk.violations == exact.violations == []
    # The first job sees the same prices in both.
    first, second = (run.report["ledger"][0] for run in (exact, chunk))
    assert first["payoff"] >= second["payoff"] - 1e-9


def test_the_chunk_program_has_no_engine_to_choose() -> None:
    with pytest.raises(InputError, match="oasis-chunk has the settings: lower_floor"):
        simulate(shared("oasis-t10-i10-h5-s1"), "oasis-chunk", engine="model")


def test_prices_run_from_lower_to_upper() -> None:
    instance = shared("oasis-t10-i10-h5-s1")
    rows = build_oracle(instance, rows="servers").rows
    facts = pool_facts(instance)
    bounds = {name: pool.bounds(0.0, "file") for name, pool in facts.items()}
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


def test_upper_bound_is_an_upper_bound_and_lower_a_lower_one() -> None:
    # (23): no job earns more per unit of any resource; (25) with eta: the first dual is bounded.
    instance = shared("oasis-t10-i10-h10-s0")
    for pool, demand in (
        ("worker_capacity", instance.worker_demand),
        ("ps_capacity", instance.ps_demand),
    ):
        bounds = pool_facts(instance)[pool].bounds(0.0, "file")
        for job, unit in zip(instance.jobs, demand, strict=True):
            best = job.utility.value(instance.min_duration_of(job) - 1)
            for needed, log_upper in zip(unit, bounds.log_upper, strict=True):
                if needed > 0:
                    assert math.log(best) <= log_upper + math.log(needed) + 1e-12


def test_capacity_units_make_the_lower_bound_free_of_the_files_units() -> None:
    instance = shared("oasis-t10-i10-h5-s1")
    data = instance.to_dict()
    for key in ("worker_servers", "ps_servers"):
        for server in data[key]:
            server["capacity"]["memory_gb"] = server["capacity"].get("memory_gb", 0) * 1024
    for job in data["jobs"]:
        for key in ("worker", "ps"):
            job[key]["memory_gb"] = job[key].get("memory_gb", 0) * 1024
    scaled = type(instance).parse(data)
    alphas = {
        units: [theorem(i, units=units)["value"] for i in (instance, scaled)]
        for units in ("file", "capacity")
    }
    assert alphas["capacity"][0] == pytest.approx(alphas["capacity"][1])
    assert alphas["file"][0] != pytest.approx(alphas["file"][1])


def test_ledger_adds_up_and_certifies_the_final_prices() -> None:
    instance = shared("oasis-t10-i10-h25-s0")
    result = simulate(instance, "oasis", settings={"lower_floor": 0.1})
    ledger = result.report["ledger"]
    assert sum(row["primal"] for row in ledger) == pytest.approx(result.objective)
    assert all(row["payoff"] > 0 for row in ledger)
    oracle = build_oracle(instance, rows="servers")
    bound = oracle.bound(oracle.rows.pack(result.prices))
    assert bound >= 182.359


def test_settings_are_checked() -> None:
    instance = shared("oasis-t10-i10-h5-s1")
    for settings in (
        {"lower_floor": 2}, {"upper_scale": 0}, {"lower": -1}, {"upper": {"gpu": 0}},
        {"upper": {"nonsense": 1}}, {"nonsense": 1}, {"engine": "magic"}, {"least_payoff": -1},
    ):  # fmt: skip
        with pytest.raises(InputError):
            simulate(instance, "oasis", settings=settings)


def test_given_bounds_replace_the_exact_ones() -> None:
    instance = shared("oasis-t10-i10-h5-s1")
    exact = simulate(instance, "oasis")
    greedy = simulate(instance, "oasis", settings={"lower": 1e-300})
    prices = [np.concatenate([v.ravel() for v in r.prices.values()]) for r in (exact, greedy)]
    assert prices[0][prices[0] > 0].min() > prices[1][prices[1] > 0].min()


class Fixed(OnlineAlgorithm):
    """Gives out prepared rows in prepared slots."""

    def __init__(self, rows: dict[int, dict[str, Any]]) -> None:
        self.rows = rows

    def start(self, environment: Environment) -> None:
        pass

    def step(self, slot: int, arrivals: tuple[Any, ...]) -> Decision:
        return Decision(self.rows.get(slot, {}))


def tiny() -> Any:
    job = {
        "name": "a", "arrival": 2, "epochs": 1, "chunks": 2, "minibatches": 1,
        "minibatch_slots": 1, "gradient_mb": 0, "worker": {"gpu": 1, "mbps": 10},
        "ps": {"mbps": 10}, "utility": {"kind": "linear", "slope": -1, "intercept": 5},
    }  # fmt: skip
    return shared("oasis-t10-i10-h5-s1").parse(
        {
            "format": "hindsched/1", "family": "oasis", "name": "tiny", "horizon": 4,
            "slot_seconds": 60, "resources": ["gpu", "mbps"], "bandwidth_resource": "mbps",
            "worker_servers": [{"name": "w", "capacity": {"gpu": 2, "mbps": 100}}],
            "ps_servers": [{"name": "p", "capacity": {"mbps": 20}}], "jobs": [job],
        }
    )  # fmt: skip


def row(first: int, last: int, workers: int, ps: int) -> dict[str, Any]:
    return {"from": first, "to": last, "workers": {"w": workers}, "ps": {"p": ps}}


@pytest.mark.parametrize(
    ("slot", "rows", "constraint"),
    [
        (1, [row(1, 1, 1, 1)], "no peeking"),
        (3, [row(2, 2, 1, 1)], "irrevocable"),
        (2, [row(2, 5, 1, 1)], "row"),
        (2, [row(2, 2, 2, 1)], "(6)"),
        (2, [row(2, 2, 1.5, 2)], "row"),
        (2, [row(2, 2, -1, 0)], "row"),
        (2, [row(2, 2, 1, 1), row(2, 2, 1, 1)], "row"),
    ],
)
def test_a_run_is_refused_by_name(slot: int, rows: list[Any], constraint: str) -> None:
    with pytest.raises(Refused) as caught:
        simulate(tiny(), Fixed({slot: {"a": rows}}))
    assert caught.value.constraint == constraint


def test_a_run_is_refused_more_workers_than_chunks() -> None:
    instance = tiny()
    data = instance.to_dict()
    data["worker_servers"][0]["capacity"]["gpu"] = 9
    with pytest.raises(Refused, match=r"\(3\)"):
        simulate(instance.parse(data), Fixed({2: {"a": [row(2, 2, 3, 2)]}}))


def test_a_job_that_runs_in_vain_earns_nothing_and_is_named() -> None:
    result = simulate(tiny(), Fixed({2: {"a": [row(2, 2, 1, 1)]}}))
    assert result.objective == 0
    assert result.violations == []
    assert result.report["unfinished"] == ["a"]


def test_a_finished_job_earns_the_utility_of_its_completion() -> None:
    result = simulate(tiny(), Fixed({2: {"a": [row(2, 3, 1, 1)]}}))
    assert result.objective == 5 - 1
    assert result.solution.completion("a") == 3
