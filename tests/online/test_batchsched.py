"""batchsched's online algorithms: known answers, engines, rivals by hand, theorem."""

from __future__ import annotations

import numpy as np
import pytest

from hindsched.instances.batchsched.generator import generate
from hindsched.instances.batchsched.instance import PARAMETER_SERVER, RING_ALLREDUCE
from hindsched.online.batchsched.algorithms import declared_estimates, theorem
from hindsched.online.batchsched.rounds import greedy_right_to_left
from hindsched.online.batchsched.theorem import densities
from hindsched.online.engines.batching import ExponentialLedger, Offer
from hindsched.online.simulator import simulate
from hindsched.solvers.families.batchsched.oracle_search import ScheduleSearch
from tests.strategies.batchsched import SLOT_SECONDS, instance, known_b

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


# batchsched's rivals: schedules worked by hand.


HOURS = SLOT_SECONDS / 3600


def gangs(rows, gpus=2):
    """One server; one-worker-type jobs that ask for a fixed number of workers."""
    jobs = [
        {
            "arrival": a, "weight": 1, "epochs": 1, "chunks": n, "minibatches": work,
            "minibatch_slots": [1.0], "update_slots": [0], "gradient_mb": 0,
            "requested_workers": n, **more,
        }
        for a, n, work, more in rows
    ]  # fmt: skip
    return instance(PARAMETER_SERVER, [(gpus, 9)], [(1, 1)], [1], jobs, horizon=9)


def windows(run):
    return {
        name: [(row["from"], row["to"], sum(row["workers"].values())) for row in rows]
        for name, rows in run.solution.assignments().items()
    }


OPEN, SURE = {"resource_guarantee": False}, {"resource_guarantee": True}
BY_HAND = {
    "fifo: nobody overtakes": (
        "fifo", {}, [(1, 1, 3, {}), (1, 2, 1, {}), (2, 1, 1, {})],
        {"j0": [(1, 3, 1)], "j1": [(4, 4, 2)], "j2": [(5, 5, 1)]},
    ),
    # j0: 2 workers x 4 slots; j1 arrives in 2 with 1 worker x 2 slots: less left, so j0 pauses.
    "tiresias": (
        "tiresias", {}, [(1, 2, 4, {}), (2, 1, 2, {})],
        {"j0": [(1, 1, 2), (4, 6, 2)], "j1": [(2, 3, 1)]},
    ),
    # As above, but j0 holds its gang for one slot in vain when it resumes in slot 4.
    "tiresias restores": (
        "tiresias", {"restore_slots": 1}, [(1, 2, 4, {}), (2, 1, 2, {})],
        {"j0": [(1, 1, 2), (5, 7, 2)], "j1": [(2, 3, 1)]},
    ),
    # j0 leaves the first queue after 1 slot x 2 workers >= 2; j1 arrives in 2 and is in the first.
    "tiresias-l": (
        "tiresias-l", {"limits": [2 * HOURS]}, [(1, 2, 3, {}), (2, 2, 1, {})],
        {"j0": [(1, 1, 2), (3, 4, 2)], "j1": [(2, 2, 2)]},
    ),
    # A limit is crossed and nothing else happens.
    "tiresias-l gives way": (
        "tiresias-l", {"limits": [4 * HOURS]}, [(1, 2, 4, {}), (1, 2, 1, {})],
        {"j0": [(1, 2, 2), (4, 5, 2)], "j1": [(3, 3, 2)]},
    ),
    # j0 has run for two slots and waited for one when it is back in slot 4.
    "tiresias-l promotes": (
        "tiresias-l", {"limits": [4 * HOURS], "promotion": 0.5}, [(1, 2, 3, {}), (1, 2, 4, {})],
        {"j0": [(1, 2, 2), (4, 4, 2)], "j1": [(3, 3, 2), (5, 7, 2)]},
    ),
    # Alone j0 takes both GPUs; with j1 each has one; j0's last slot of work has both again.
    "drf": (
        "drf", {}, [(1, 2, 3, {}), (2, 2, 1, {})],
        {"j0": [(1, 1, 2), (2, 3, 1), (4, 4, 2)], "j1": [(2, 3, 1)]},
    ),
    "drf static": (
        "drf", {"static": True}, [(1, 2, 3, {}), (2, 2, 1, {})],
        {"j0": [(1, 3, 2)], "j1": [(4, 4, 2)]},
    ),
    # j0 is opportunistic and takes both GPUs; j1 is guaranteed, needs one, and never waits for it.
    "antman": (
        "antman", {}, [(1, 2, 3, OPEN), (2, 1, 2, SURE)],
        {"j0": [(1, 1, 2), (2, 3, 1), (4, 4, 2)], "j1": [(2, 3, 1)]},
    ),
    # j0 is the median of the jobs seen in slot 1, so it is guaranteed and does not give way.
    "antman by weight": (
        "antman", {"rule": "weight"}, [(1, 2, 3, {"weight": 1}), (2, 1, 2, {"weight": 5})],
        {"j0": [(1, 3, 2)], "j1": [(4, 5, 1)]},
    ),
    # Equal sizes: the heavier job goes first, and the light one starts when it ends.
    "wspt": (
        "wspt", {}, [(1, 2, 2, {}), (1, 2, 2, {"weight": 5})],
        {"j0": [(3, 4, 2)], "j1": [(1, 2, 2)]},
    ),
}  # fmt: skip
"""Rival, its settings, jobs (arrival, gang, work, more), runs (first, last, workers)."""


@pytest.mark.parametrize("case", BY_HAND)
def test_schedules_by_hand(case):
    rival, settings, jobs, expected = BY_HAND[case]
    run = simulate(gangs(jobs), rival, settings=settings)
    assert windows(run) == expected
    assert run.solution.violations() == []
    in_one_piece = all(len(rows) == 1 for rows in expected.values())
    assert run.in_feasible_set is (rival in ("fifo", "wspt") or case == "drf static")
    assert in_one_piece or not run.in_feasible_set


def test_greedy_rtl_accepts_by_density_as_late_as_possible():
    inst = gangs([(1, 2, 2, {}), (1, 2, 2, {"weight": 5}), (1, 2, 2, {"weight": 3})])
    search = ScheduleSearch(inst, 4, 2)
    density = densities(inst)
    batch = [(job, search.index(job), density[j]) for j, job in enumerate(inst.jobs)]
    found = greedy_right_to_left(inst, batch, 4)
    assert {name: (s.start, s.last) for name, s in found.items()} == {"j1": (3, 4), "j2": (1, 2)}
