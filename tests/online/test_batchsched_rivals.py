"""batchsched's rivals: schedules worked by hand, and laws that hold at every event."""

from __future__ import annotations

import math

import pytest

from hindsched.errors import InputError, Refused
from hindsched.instances.batchsched.generator import generate
from hindsched.instances.batchsched.instance import PARAMETER_SERVER, RING_ALLREDUCE
from hindsched.online.baselines.baseline import Drf, Fifo
from hindsched.online.baselines.infeasible_baselines import relaxing
from hindsched.online.baselines.ranked import Tiresias, TiresiasL
from hindsched.online.batchsched.baselines import AntMan, Wspt
from hindsched.online.batchsched.rounds import greedy_right_to_left
from hindsched.online.batchsched.theorem import densities
from hindsched.online.protocol import Decision, OnlineAlgorithm
from hindsched.online.simulator import simulate
from hindsched.solvers.families.batchsched.oracle_search import ScheduleSearch
from tests.strategies.batchsched import SLOT_SECONDS, instance

BOTH = (PARAMETER_SERVER, RING_ALLREDUCE)
ResizingDrf = relaxing(Drf)
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
    assert run.solution.violations() == []


def test_tiresias_l_by_hand():
    # j0 leaves the first queue after 1 slot x 2 workers >= 2; j1 arrives in 2 and is in the first.
    run = simulate(
        gangs([(1, 2, 3, {}), (2, 2, 1, {})]), "tiresias-l", settings={"limits": [2 * HOURS]}
    )
    assert windows(run) == {"j0": [(1, 1, 2), (3, 4, 2)], "j1": [(2, 2, 2)]}


def test_tiresias_l_gives_way_when_a_limit_is_crossed_and_nothing_else_happens():
    jobs = gangs([(1, 2, 4, {}), (1, 2, 1, {})])
    run = simulate(jobs, "tiresias-l", settings={"limits": [4 * HOURS]})
    assert windows(run) == {"j0": [(1, 2, 2), (4, 5, 2)], "j1": [(3, 3, 2)]}
    # j0 has run for two slots and waited for one when it is back in slot 4.
    settings = {"limits": [4 * HOURS], "promotion": 0.5}
    jobs = gangs([(1, 2, 3, {}), (1, 2, 4, {})])
    assert windows(simulate(jobs, "tiresias-l", settings=settings))["j0"] == [(1, 2, 2), (4, 4, 2)]


def test_tiresias_restores_a_job_that_resumes():
    # As above, but j0 holds its gang for one slot in vain when it resumes in slot 4.
    jobs = gangs([(1, 2, 4, {}), (2, 1, 2, {})])
    run = simulate(jobs, "tiresias", settings={"restore_slots": 1})
    assert windows(run) == {"j0": [(1, 1, 2), (5, 7, 2)], "j1": [(2, 3, 1)]}
    assert run.solution.violations() == []


def test_tiresias_l_promotes_a_job_that_waits_long():
    # j0 falls into the second queue after slot 1 and waits for j1, j2, j3, which need a slot each;
    # with promotion 2 it starts over in the first queue, ahead by arrival, after waiting 2 slots.
    jobs = gangs([(1, 2, 2, {}), (2, 2, 1, {}), (2, 2, 1, {}), (2, 2, 1, {})])
    limits = {"limits": [2 * HOURS]}
    waits = simulate(jobs, "tiresias-l", settings=limits)
    assert windows(waits)["j0"] == [(1, 1, 2), (5, 5, 2)]
    promoted = simulate(jobs, "tiresias-l", settings={**limits, "promotion": 2.0})
    assert windows(promoted)["j0"] == [(1, 1, 2), (4, 4, 2)]


def test_drf_by_hand():
    # Alone j0 takes both GPUs; with j1 each has one; j0's last slot of work has both again.
    jobs = gangs([(1, 2, 3, {}), (2, 2, 1, {})])
    run = simulate(jobs, "drf")
    assert windows(run) == {"j0": [(1, 1, 2), (2, 3, 1), (4, 4, 2)], "j1": [(2, 3, 1)]}
    assert not run.in_feasible_set
    assert run.solution.violations() == []
    static = simulate(jobs, "drf", settings={"static": True})
    assert windows(static) == {"j0": [(1, 3, 2)], "j1": [(4, 4, 2)]}
    assert static.in_feasible_set
    assert static.violations == []


def test_antman_by_weight_guarantees_from_the_median_on():
    rows = [(1, 2, 3, {"weight": 1}), (2, 1, 2, {"weight": 5})]
    run = simulate(gangs(rows), "antman", settings={"rule": "weight"})
    # j0 is the median of the jobs seen in slot 1, so it is guaranteed and does not give way.
    assert windows(run) == {"j0": [(1, 3, 2)], "j1": [(4, 5, 1)]}
    rows = [(1, 2, 3, {"weight": 1}), (1, 1, 2, {"weight": 5})]
    run = simulate(gangs(rows), "antman", settings={"rule": "weight"})
    assert windows(run) == {"j0": [(1, 2, 1), (3, 4, 2)], "j1": [(1, 2, 1)]}


def test_antman_by_hand():
    # j0 is opportunistic and takes both GPUs; j1 is guaranteed, needs one, and never waits for it.
    rows = [(1, 2, 3, {"resource_guarantee": False}), (2, 1, 2, {"resource_guarantee": True})]
    run = simulate(gangs(rows), "antman")
    assert windows(run) == {"j0": [(1, 1, 2), (2, 3, 1), (4, 4, 2)], "j1": [(2, 3, 1)]}
    assert run.solution.violations() == []


def test_wspt_by_hand():
    # Equal sizes: the heavier job goes first, and the light one starts when it ends.
    run = simulate(gangs([(1, 2, 2, {}), (1, 2, 2, {"weight": 5})]), "wspt")
    assert windows(run) == {"j0": [(3, 4, 2)], "j1": [(1, 2, 2)]}
    assert run.violations == []


def test_greedy_rtl_accepts_by_density_as_late_as_possible():
    inst = gangs([(1, 2, 2, {}), (1, 2, 2, {"weight": 5}), (1, 2, 2, {"weight": 3})])
    search = ScheduleSearch(inst, 4, 2)
    density = densities(inst)
    batch = [(job, search.index(job), density[j]) for j, job in enumerate(inst.jobs)]
    found = greedy_right_to_left(inst, batch, 4)
    assert {name: (s.start, s.last) for name, s in found.items()} == {"j1": (3, 4), "j2": (1, 2)}


# Laws, asserted after every reallocation.


class NobodyOvertakes:
    """fifo: whoever waits arrived after everyone who holds something."""

    def check(self):
        waiting = [name not in self.held for name in self.jobs]
        assert waiting == sorted(waiting)


class NothingFitsAnyMore:
    """drf: no job that can still use one more worker would get one."""

    def check(self):
        for name, job in self.jobs.items():
            held = self.held.get(name)
            if (held.num_workers if held else 0) < self.cluster.max_workers(job):
                assert self.cluster.extend(job, held) is None


class RankedFirst:
    """tiresias: no job waits whose gang would fit in place of later-ranked ones."""

    def check(self):
        ranked = sorted(self.jobs, key=lambda name: self.key(name))
        for name in [name for name in ranked if name not in self.held]:
            later = [other for other in ranked[ranked.index(name) :] if other in self.held]
            assert not fits_without(self, name, later)


class GuaranteedNeverWait:
    """antman: the first waiting guaranteed job would not fit even without opportunistic ones."""

    def check(self):
        waiting = [n for n in self.jobs if n not in self.held and self.is_guaranteed(n)]
        for name in waiting[:1]:
            others = [n for n in self.held if not self.is_guaranteed(n)]
            assert not fits_without(self, name, others)


def fits_without(rival, name, others):
    """Whether a job's gang would fit if others held nothing."""
    for other in others:
        rival.cluster.release(rival.jobs[other], rival.held[other])
    job = rival.jobs[name]
    gang = rival.cluster.place(job, rival.cluster.fixed_workers(job))
    if gang is not None:
        rival.cluster.release(job, gang)
    for other in others:
        rival.cluster.book(rival.jobs[other], rival.held[other])
    return gang is not None


LAWS = [
    (Fifo, NobodyOvertakes),
    (ResizingDrf, NothingFitsAnyMore),
    (Tiresias, RankedFirst),
    (TiresiasL, RankedFirst),
    (AntMan, GuaranteedNeverWait),
]


def lawful(rival, law):
    """The rival with its law asserted after every reallocation."""

    def reallocate(self):
        rival.reallocate(self)
        law.check(self)

    return type(f"Lawful{rival.__name__}", (law, rival), {"reallocate": reallocate})


def crowded(architecture):
    return [
        generate("small", seed, jobs=7, horizon=3, architecture=architecture) for seed in range(4)
    ]


@pytest.mark.parametrize("architecture", BOTH)
@pytest.mark.parametrize(("rival", "law"), LAWS)
def test_laws_hold_at_every_event(rival, law, architecture):
    for seed, inst in enumerate(crowded(architecture)):
        run = simulate(inst, lawful(rival, law)(), seed=seed)
        assert run.solution.violations() == []
        assert all(run.solution.completion(job.name) for job in inst.jobs)


@pytest.mark.parametrize("architecture", BOTH)
def test_wspt_leaves_no_earlier_window_open(architecture):
    """A law of list schedules: alone among the others' final windows no job could end earlier."""
    for inst in crowded(architecture):
        simultaneous = inst.with_jobs(
            tuple(job.model_copy(update={"arrival": 1}) for job in inst.jobs)
        )
        solution = simulate(simultaneous, Wspt()).solution
        order = sorted(
            simultaneous.jobs,
            key=lambda job: (
                -job.weight / ScheduleSearch(inst, 1, 1).index(job).modes.duration.min()
            ),
        )
        slots = solution.last_slot
        search = ScheduleSearch(simultaneous, slots, 9)
        for job in order:
            best = search.cheapest(search.index(job), rate=1.0)
            assert best.last == solution.completion(job.name)
            search.book(best)


@pytest.mark.parametrize("architecture", BOTH)
def test_greedy_rtl_skips_only_what_does_not_fit(architecture):
    last = 6
    skipped = 0
    for inst in crowded(architecture):
        index = ScheduleSearch(inst, last, 9).index
        batch = [(j, index(j), d) for j, d in zip(inst.jobs, densities(inst), strict=True)]
        accepted = greedy_right_to_left(inst, batch, last)
        search = ScheduleSearch(inst, last, 9)
        for job, modes, _ in sorted(batch, key=lambda item: -item[2]):
            if job.name in accepted:
                assert search.fits(accepted[job.name])
                search.book(accepted[job.name])
            else:
                skipped += 1
                assert search.cheapest(modes) is None
    assert skipped


class Pauses(OnlineAlgorithm):
    """Claims to be within the feasible set but pauses its first job."""

    def start(self, environment):
        pass

    def step(self, slot, arrivals):
        one = {"worker_type": "w0", "workers": {"s0": 1}, "ps_type": "p0", "ps": {"s0": 1}}
        runs = slot in (1, 3, 5)
        return Decision({"j0": [{"from": slot, "to": slot, **one}]} if runs else {})


def test_a_pause_is_refused_within_the_feasible_set():
    with pytest.raises(Refused, match="2a"):
        simulate(gangs([(1, 1, 3, {})]), Pauses())
    outside = Pauses()
    outside.relaxes_constraints = True
    run = simulate(gangs([(1, 1, 3, {})]), outside)
    assert windows(run) == {"j0": [(1, 1, 1), (3, 3, 1), (5, 5, 1)]}


@pytest.mark.parametrize(
    ("rival", "settings"),
    [
        ("antman", {"guaranteed": 2}),
        ("antman", {"patience": -1}),
        ("antman", {"rule": "size"}),
        ("tiresias", {"restore_slots": -1}),
        ("tiresias-l", {"limits": [2, 1]}),
        ("tiresias-l", {"limits": [0]}),
        ("tiresias-l", {"promotion": -1}),
        ("tiresias-l", {"promotion": math.nan}),
        ("drf", {"static": "perhaps"}),
        ("fifo", {"order": "weight"}),
    ],
)
def test_wrong_settings_are_named(rival, settings):
    with pytest.raises(InputError) as error:
        simulate(gangs([(1, 1, 1, {})]), rival, settings=settings)
    assert error.value.where == f"set.{next(iter(settings))}"
