"""batchsched's online algorithms: known answers, engines, rivals by hand, their laws, theorem."""

from __future__ import annotations

import numpy as np
import pytest

from hindsched.errors import InputError
from hindsched.instances.batchsched import PARAMETER_SERVER, RING_ALLREDUCE
from hindsched.instances.generators.batchsched import generate
from hindsched.online.algorithms.batchsched import declared_estimates, theorem
from hindsched.online.batching import ExponentialLedger, Offer
from hindsched.online.rivals.antman import AntMan
from hindsched.online.rivals.tiresias import Tiresias, TiresiasL
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
    inst = generate("small", 1, jobs=4, architecture=architecture)
    ledgers = [
        simulate(inst, "batchsched-exact", engine=engine).report["ledger"]
        for engine in ("oracle", "model")
    ]
    first = [rows[0] for rows in ledgers]
    assert first[0]["dual"] == pytest.approx(first[1]["dual"])


@pytest.mark.parametrize("architecture", BOTH)
def test_printed_enumeration_of_durations_gives_no_better_schedule(architecture):
    inst = generate("small", 2, jobs=4, architecture=architecture)
    every = simulate(inst, "batchsched-exact", settings={"every_duration": True})
    pruned = simulate(inst, "batchsched-exact")
    assert every.objective == pytest.approx(pruned.objective)


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


def test_fifo_by_hand_nobody_overtakes():
    run = simulate(gangs([(1, 1, 3, {}), (1, 2, 1, {}), (2, 1, 1, {})]), "fifo")
    assert windows(run) == {"j0": [(1, 3, 1)], "j1": [(4, 4, 2)], "j2": [(5, 5, 1)]}
    assert run.in_feasible_set
    assert run.violations == []


def test_tiresias_by_hand():
    # j0: 2 workers x 4 slots; j1 arrives in 2 with 1 worker x 2 slots: less left, so j0 pauses.
    run = simulate(gangs([(1, 2, 4, {}), (2, 1, 2, {})]), "tiresias")
    assert windows(run) == {"j0": [(1, 1, 2), (4, 6, 2)], "j1": [(2, 3, 1)]}
    assert not run.in_feasible_set
    assert run.solution.rival_violations() == []


def test_tiresias_l_by_hand():
    # j0 leaves the first queue after 1 slot x 2 workers >= 2; j1 arrives in 2 and is in the first.
    run = simulate(gangs([(1, 2, 3, {}), (2, 2, 1, {})]), "tiresias-l", settings={"limits": [2.0]})
    assert windows(run) == {"j0": [(1, 1, 2), (3, 4, 2)], "j1": [(2, 2, 2)]}


def test_antman_by_hand():
    # j0 is opportunistic and takes both GPUs; j1 is guaranteed, needs one, and never waits for it.
    rows = [(1, 2, 3, {"resource_guarantee": False}), (2, 1, 2, {"resource_guarantee": True})]
    run = simulate(gangs(rows), "antman")
    assert windows(run) == {"j0": [(1, 1, 2), (2, 3, 1), (4, 4, 2)], "j1": [(2, 3, 1)]}
    assert run.solution.rival_violations() == []


def test_wspt_by_hand():
    # Equal sizes: the heavier job goes first, and the light one starts when it ends.
    run = simulate(gangs([(1, 2, 2, {}), (1, 2, 2, {"weight": 5})]), "wspt")
    assert windows(run) == {"j0": [(3, 4, 2)], "j1": [(1, 2, 2)]}
    assert run.violations == []


def test_greedy_rtl_accepts_by_density_as_late_as_possible():
    from hindsched.online.algorithms.batchsched_density import densities
    from hindsched.online.rivals.greedy_rtl import greedy_right_to_left
    from hindsched.solvers.pricing.batchsched_search import ScheduleSearch

    inst = gangs([(1, 2, 2, {}), (1, 2, 2, {"weight": 5}), (1, 2, 2, {"weight": 3})])
    search = ScheduleSearch(inst, 4, 2)
    density = densities(inst)
    batch = [(job, search.index(job), density[j]) for j, job in enumerate(inst.jobs)]
    found = greedy_right_to_left(inst, batch, 4)
    assert {name: (s.start, s.last) for name, s in found.items()} == {"j1": (3, 4), "j2": (1, 2)}


class LawfulTiresias(Tiresias):
    """At every event no job waits whose gang would fit in place of a later-ranked one."""

    def reallocate(self):
        ranked = sorted(self.jobs, key=lambda name: self.key(name))
        super().reallocate()
        waiting = [name for name in ranked if name not in self.held]
        for name in waiting:
            later = [other for other in ranked[ranked.index(name) :] if other in self.held]
            for other in later:
                self.cluster.release(self.jobs[other], self.held[other])
            gang = self.cluster.place(self.jobs[name], self.cluster.fixed_workers(self.jobs[name]))
            assert gang is None
            for other in later:
                self.cluster.book(self.jobs[other], self.held[other])


class LawfulTiresiasL(LawfulTiresias, TiresiasL):
    pass


class LawfulAntMan(AntMan):
    """The first waiting guaranteed job would not fit even without any opportunistic one."""

    def reallocate(self):
        super().reallocate()
        waiting = [n for n in self.jobs if n not in self.held and self.is_guaranteed(n)]
        for name in waiting[:1]:
            others = [n for n in self.held if not self.is_guaranteed(n)]
            for other in others:
                self.cluster.release(self.jobs[other], self.held[other])
            gang = self.cluster.place(self.jobs[name], self.cluster.fixed_workers(self.jobs[name]))
            assert gang is None
            for other in others:
                self.cluster.book(self.jobs[other], self.held[other])


@pytest.mark.parametrize("architecture", BOTH)
@pytest.mark.parametrize("rival", [LawfulTiresias, LawfulTiresiasL, LawfulAntMan])
def test_laws_hold_at_every_event(rival, architecture):
    for seed in range(4):
        inst = generate("small", seed, jobs=7, horizon=3, architecture=architecture)
        run = simulate(inst, rival(), seed=seed)
        assert run.solution.rival_violations() == []
        assert all(run.solution.completion(job.name) for job in inst.jobs)


def test_no_two_algorithms_decide_alike():
    names = ("batchsched", "batchsched-adaptive", "fifo", "drf", "antman", "tiresias", "wspt",
             "tiresias-l", "greedy-rtl")  # fmt: skip
    instances = [generate("small", seed, jobs=7, horizon=3) for seed in range(3)]
    seen = [
        str([simulate(inst, name).solution.assignments() for inst in instances]) for name in names
    ]
    assert len(set(seen)) == len(names)


def test_theorem_and_estimates():
    inst = generate("paper", 0, jobs=30)
    low, high = declared_estimates(inst)["density_range"]
    assert 0 < low < high
    said = theorem(inst)
    assert said["kind"] == "ratio"
    assert said["value"] == 4 * said["alpha"]
    assert 100 < said["alpha"] < 500  # "close to 4", says the paper
    assert said["max_weight_ratio"] == pytest.approx(2 * said["log2_lambda"])
    assert not said["assumptions"][0]["holds"]


def test_settings_are_checked():
    inst = known_b(PARAMETER_SERVER)
    for settings in ({"alpha": 0}, {"price_base": 1.0}, {"density_scale": 0}, {"order": "size"}):
        with pytest.raises(InputError):
            simulate(inst, "batchsched", settings=settings)
