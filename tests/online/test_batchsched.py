"""batchsched's online algorithms: known answers, engines, rivals by hand, their laws, theorem."""

from __future__ import annotations

import numpy as np
import pytest

from hindsched.errors import InputError
from hindsched.instances.batchsched.generator import generate
from hindsched.instances.batchsched.instance import PARAMETER_SERVER, RING_ALLREDUCE
from hindsched.online.batchsched.algorithms import declared_estimates, theorem
from hindsched.online.engines.batching import ExponentialLedger, Offer
from hindsched.online.simulator import simulate
from tests.strategies.batchsched import instance, known_b

BOTH = (PARAMETER_SERVER, RING_ALLREDUCE)


def starts(run):
    return {row["job"]: row["start"] for row in run.solution.job_rows()}


@pytest.mark.parametrize("engine", ["oracle", "model"])
@pytest.mark.parametrize("architecture", BOTH)
@pytest.mark.parametrize(
    ("name", "settings", "objective", "begin"),
    [
        ("batchsched", {"alpha": 2}, 103, {"j1": 5, "j0": 9, "j2": 9}),
        ("batchsched", {"alpha": 4}, 175, {"j1": 9, "j0": 17, "j2": 17}),
        ("batchsched-exact", {"alpha": 2}, 103, {"j1": 5, "j0": 9, "j2": 9}),
        ("batchsched-adaptive", {}, 67, {"j1": 3, "j0": 5, "j2": 5}),
    ],
)
def test_b1_and_b2(architecture, name, settings, objective, begin, engine):
    settings = {**settings, "price_base": 1000}
    run = simulate(known_b(architecture), name, settings=settings, engine=engine)
    assert run.violations == []
    assert run.objective == objective
    assert starts(run) == begin


def test_b2_adaptive_tight():
    settings = {"price_base": 1000, "tight_slots": True}
    assert (
        simulate(known_b(RING_ALLREDUCE), "batchsched-adaptive", settings=settings).objective == 67
    )


@pytest.mark.parametrize("architecture", BOTH)
def test_engines_pay_the_same(architecture):
    """Of plans that pay alike each takes its own, and duals follow the plan."""
    for seed in range(5):
        inst = generate("small", seed, jobs=4, architecture=architecture)
        ledgers = [
            simulate(inst, "batchsched-exact", engine=engine).report["ledger"]
            for engine in ("oracle", "model")
        ]
        for ours, theirs in zip(*ledgers, strict=True):
            assert ours["primal"] - ours["cost"] == pytest.approx(theirs["primal"] - theirs["cost"])
            if ours["dual"] != pytest.approx(theirs["dual"]):
                break  # from here on prices differ


@pytest.mark.parametrize("architecture", BOTH)
def test_left_shift_ends_no_job_later(architecture):
    gained = 0.0
    for seed in range(4):
        inst = generate("small", seed, jobs=8, horizon=6, architecture=architecture)
        planned, shifted = (
            simulate(inst, "batchsched-adaptive", settings={"left_shift": shift})
            for shift in (False, True)
        )
        assert shifted.violations == []
        for job in inst.jobs:
            later = shifted.solution.completion(job.name)
            assert later <= planned.solution.completion(job.name)
        gained += planned.objective - shifted.objective
    assert gained > 0


def test_exponential_prices():
    ledger = ExponentialLedger(np.array([2.0, 0.0]), 3, 9.0)
    assert ledger.prices().sum() == 0
    ledger.book(Offer(2, 2, np.array([1.0, 0.0]), 0.0))
    assert ledger.prices()[:, 0] == pytest.approx([0, 2, 2])
    ledger.book(Offer(2, 1, np.array([1.0, 0.0]), 0.0))
    assert ledger.prices()[1, 0] == pytest.approx(8)
    assert ledger.residual[1, 0] == 0


def test_theorem_and_estimates():
    inst = generate("paper", 0, jobs=30)
    low, high = declared_estimates(inst)["density"].values()
    assert 0 < low < high
    said = theorem(inst)
    assert said["kind"] == "ratio"
    assert said["value"] == 4 * said["alpha"]
    assert 100 < said["alpha"] < 500  # "close to 4", says the paper
    assert said["max_weight_ratio"] == pytest.approx(2 * said["log2_lambda"])
    assert said["alpha_constant"] == 4
    thin, share, known = said["assumptions"]
    assert not thin["holds"]
    assert thin["worst"] > 1
    assert not share["holds"]
    assert share["worst"] == pytest.approx(said["log2_lambda"])  # some worker takes a whole server
    assert known["worst"] == pytest.approx(high / low)


def test_the_theorems_assumptions_can_hold():
    """One job that fills little of a huge cluster in its only way."""
    job = {
        "arrival": 1, "weight": 1, "epochs": 1, "chunks": 1, "minibatches": 2,
        "minibatch_slots": [1.0], "update_slots": [0], "gradient_mb": 0,
    }  # fmt: skip
    inst = instance(PARAMETER_SERVER, [(1000, 1000)], [(1, 1)], [1], [job])
    thin, share, _ = theorem(inst)["assumptions"]
    assert thin["holds"]
    assert thin["worst"] == pytest.approx(1.0)
    assert share["holds"]


def test_settings_are_checked():
    inst = known_b(PARAMETER_SERVER)
    infinite = float("inf")
    for settings in (
        {"alpha": 0},
        {"price_base": 1.0},
        {"price_base": infinite},
        {"density_scale": 0},
        {"density_scale": infinite},
        {"order": "size"},
    ):
        with pytest.raises(InputError):
            simulate(inst, "batchsched", settings=settings)
