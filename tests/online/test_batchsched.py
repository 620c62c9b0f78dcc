"""batchsched's online algorithms: known answers, engines, rivals by hand, theorem."""

from __future__ import annotations

import numpy as np
import pytest

from hindsched.instances.batchsched.generator import generate
from hindsched.instances.batchsched.instance import (
    PARAMETER_SERVER,
    RING_ALLREDUCE,
    BatchschedInstance,
)
from hindsched.instances.catalogue import named_instance
from hindsched.online.batchsched.algorithms import (
    BatchschedDualPrice,
    GreedyRtl,
    declared_estimates,
    theorem,
)
from hindsched.online.engines.batching import (
    BatchRound,
    ExponentialLedger,
    Offer,
    enough_rounds,
    post_prices,
)
from hindsched.online.engines.dual_price import DualPrice
from hindsched.online.simulator import environment_of, simulate
from tests.online.test_baselines import gangs
from tests.strategies.batchsched import known_b

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
        ("batchsched-terminating", {}, 67, {"j1": 3, "j0": 5, "j2": 5}),
        ("batchsched-adaptive", {}, 67, {"j1": 3, "j0": 5, "j2": 5}),
    ],
)
def test_b1_and_b2(architecture, name, settings, objective, begin, engine):
    settings = {**settings, "price_base": 1000}
    run = simulate(known_b(architecture), name, settings=settings, engine=engine)
    assert run.violations == []
    assert run.objective == objective
    assert starts(run) == begin


@pytest.mark.parametrize(
    ("name", "settings", "begin"),
    [
        # Batches at 2 and 4. As printed those slots begin at 4 tau: 9-10 and 11-12, then 17.
        ("batchsched", {}, [9, 11, 17]),
        # The first batch takes two sub-rounds of tau = 2 slots, 3-4 and 5-6, and ends.
        ("batchsched-terminating", {}, [3, 5, 7]),
        ("batchsched-adaptive", {"tight_slots": False}, [3, 4, 5]),
        # gamma = 2 log2 1.2 < 1: one sub-round is enough, and the second job waits for tau = 4.
        ("batchsched-terminating", {"price_base": 1.2}, [3, 5, 6]),
    ],
)
def test_a_batch_that_ends_when_all_is_planned(name, settings, begin):
    one_gpu = ([(1, 9)], [(1, 1)], [1])
    inst = gangs((1, 1, 1), (1, 1, 1), (2, 1, 1), sizes=one_gpu)
    run = simulate(inst, name, settings=settings)
    assert run.violations == []
    assert starts(run) == {f"j{k}": slot for k, slot in enumerate(begin)}


def test_rounds_after_which_a_doubling_approximation_has_all_weight():
    assert [enough_rounds(total, 1, 2.0) for total in (1, 7, 8)] == [1, 3, 4]  # 8 / 2^3 = 1
    assert enough_rounds(8, 1, 1.0) == 1


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
    assert (ledger.capacity - ledger.use)[1, 0] == 0


def test_dual_increments_add_up_to_payoffs_and_the_worth_of_capacities():
    """As weak duality needs them: an accepted job pays its value."""

    class OneServer(BatchRound):
        def __init__(self):
            self.ledger = ExponentialLedger(np.array([4.0]), 3, 9.0)

        def offer(self, job, limit):
            cost = float(self.ledger.prices(1, 2).sum())
            return Offer(1, 2, np.array([1.0]), cost) if cost < limit else None

    batch_round = OneServer()
    admitted = post_prices(batch_round, ["first", "second", "third"], [5.0, 6.0, 0.1])
    assert [admission.job for admission in admitted] == ["first", "second"]
    payoffs = sum(admission.value - admission.offer.cost for admission in admitted)
    worth = 2 * 4 * (9**0.5 - 1)  # two slots, half of four units used
    assert sum(admission.dual for admission in admitted) == pytest.approx(payoffs + worth)


def test_theorem_and_estimates():
    inst = generate("paper", 0, jobs=30)
    low, high = declared_estimates(inst)["density"].values()
    assert 0 < low < high
    stated = theorem(inst)
    assert stated["kind"] == "ratio"
    assert stated["value"] == 4 * stated["alpha"]
    assert 100 < stated["alpha"] < 500  # "close to 4", says the paper
    assert stated["max_weight_ratio"] == pytest.approx(2 * stated["log2_lambda"])
    assert stated["alpha_constant"] == 4
    thin, share, known = stated["assumptions"]
    assert not thin["holds"]
    assert thin["worst"] > 1
    assert not share["holds"]
    assert share["worst"] == pytest.approx(stated["log2_lambda"])  # a worker takes a server
    assert known["worst"] == pytest.approx(high / low)


def test_theorem_3_asks_for_all_that_a_job_takes_on_a_server():
    """Two workers and a PS take 2 of 4 GPUs and 4 of 8 cores; one of them at most a quarter."""
    data = named_instance("batchsched/worst/theorem-1").to_dict()
    for server in data["servers"]:
        server["capacity"] |= {"gpu": 4, "cpu": 8}
    stated = theorem(BatchschedInstance.parse(data))
    assert stated["assumptions"][1]["worst"] == pytest.approx(stated["log2_lambda"] / 2)


def test_greedy_rtl_accepts_by_density_as_late_as_possible():
    inst = gangs((1, 2, 2), (1, 2, 2, {"weight": 5}), (1, 2, 2, {"weight": 3}))
    algorithm = GreedyRtl()
    algorithm.start(environment_of(inst, declared_estimates(inst), 0, "modes"))
    offers = {each.job.name: each.offer for each in algorithm.run_round(list(inst.jobs), 5)}
    assert {name: (s.start, s.last) for name, s in offers.items()} == {"j1": (3, 4), "j2": (1, 2)}


def test_slots_that_one_arrival_adds_are_there_for_the_next(monkeypatch):
    monkeypatch.setattr(BatchschedDualPrice, "step", DualPrice.step)  # adds none before
    run = simulate(gangs(*[(1, 2, 8)] * 3), "dual-price")
    assert [run.solution.completion(f"j{k}") for k in range(3)] == [8, 16, 24]
