"""Gang online: runs at events, replayed policies, plans, and what is known of the policies."""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hindsched as hs
from hindsched.analysis.tasks import theorem_of
from hindsched.errors import Refused, SolveFailed
from hindsched.instances.gang.generator import generate
from hindsched.instances.gang.instance import GangInstance, gang_data
from hindsched.models.base import Commitments
from hindsched.models.gang.sets import gang_sets
from hindsched.online.gang.algorithms import ONLINE
from hindsched.online.protocol import Capabilities, Decision, OnlineAlgorithm
from hindsched.online.simulator import simulate
from hindsched.solutions.base import build_solution
from hindsched.solvers.families.gang.replay import POLICIES, replay, replay_by_key
from hindsched.solvers.families.gang.search import best_plan, open_jobs, plan_in_order
from hindsched.solvers.kernels.gang.sequences import total_cost
from tests.second_opinion.settle import optimum

FIRST_FIT = Path(__file__).parents[2] / "examples" / "schedulers" / "first_fit.py"
UNINFORMED = [name for name in POLICIES if not POLICIES[name].clairvoyant]


def instance_of(jobs, gpus=4):
    """Jobs as (submit, duration, gpus) and their weight, 1 unless told."""
    keys = "submit", "duration", "gpus", "weight"
    records = [
        {"name": f"j{number}", **dict(zip(keys, job, strict=False))}
        for number, job in enumerate(jobs)
    ]
    return GangInstance.parse(gang_data("by-hand", records, gpus=gpus))


def servers(*sizes):
    named = [{"name": f"s{number}", "gpus": size} for number, size in enumerate(sizes)]
    return {"servers": named, "placement": "consolidated"}


@st.composite
def lists(draw):
    """Contended lists on a pool or on servers, with ties, idle times and equal moments."""
    sizes = draw(st.sampled_from([(4,), (7,), (2, 2), (4, 2, 1)]))
    cluster = {"gpus": sizes[0]} if len(sizes) == 1 else servers(*sizes)
    seconds = draw(st.sampled_from([1, 1, 30, 0.5]))
    jobs = draw(
        st.lists(
            st.tuples(
                st.integers(0, 12), st.integers(1, 9), st.integers(1, sum(sizes)),
                st.sampled_from([1, 1, 2, 0.3]),
            ),
            min_size=1,
            max_size=14,
        )
    )  # fmt: skip
    records = [
        {"name": f"j{number}", "submit": submit * seconds, "duration": duration * seconds,
         "gpus": gpus, "weight": weight}
        for number, (submit, duration, gpus, weight) in enumerate(jobs)
    ]  # fmt: skip
    return GangInstance.parse(gang_data("list", records, slot_seconds=seconds, **cluster))


class Starts(OnlineAlgorithm):
    """Gives the rows that it was built with, by job and slot of the decision."""

    card = Capabilities(knows_durations=False)

    def __init__(self, rows=(), wakes=()):
        self.rows, self.wakes = rows, list(wakes)

    def start(self, environment):
        self.heard, self.stepped, self.shown = [], [], []
        self.asked = list(self.wakes)

    def completed(self, slot, jobs):
        self.heard.append((slot, jobs))

    def wake_up(self):
        return self.asked[0] if self.asked else None

    def step(self, slot, arrivals):
        self.asked = [wake for wake in self.asked if wake > slot]
        self.stepped.append(slot)
        self.shown += arrivals
        given = {}
        for when, job, row in self.rows:
            if when == slot:
                given.setdefault(job, []).append(row)
        return Decision(given)


@given(lists(), st.sampled_from([1.0, 1.5, 4.0]), st.sampled_from([0, 5, 40]))
def test_policies_decide_through_the_simulator_what_the_replay_decides(
    instance, estimates, threshold
):
    for name in POLICIES:
        factory = ONLINE.algorithms[name]
        given_settings = {}
        if name in ("easy", "conservative"):
            given_settings = {"estimates": estimates}
        elif name == "las":
            given_settings = {"threshold_gpu_seconds": threshold * instance.slot_seconds}
        replayed = replay(instance, name, **given_settings)
        run = simulate(instance, factory(**given_settings))
        assert run.solution.assignments() == replayed.assignments(), name
        assert run.solution.formulation == replayed.formulation
        assert run.violations == []


def test_events_by_hand():
    instance = instance_of([(0, 5, 4), (2, 3, 2), (2, 100_000_000, 2)])
    rows = [
        (1, "j0", {"from": 1, "gpus": 4}),
        (6, "j1", {"from": 6, "gpus": 2}),
        (7, "j2", {"from": 8, "gpus": 2}),
    ]
    algorithm = Starts(rows, wakes=[7])
    run = simulate(instance, algorithm)
    assert run.violations == []
    assert algorithm.stepped == [1, 3, 6, 7, 8, 9, 100_000_008]
    assert algorithm.heard == [(6, ("j0",)), (9, ("j1",)), (100_000_008, ("j2",))]
    assert run.objective == 5 + 6 + 100_000_005
    assert [hasattr(job, "duration") for job in algorithm.shown] == [False] * 3


def test_a_paused_job_goes_on_where_it_was():
    instance = instance_of([(0, 4, 3), (1, 2, 4)])
    rows = [
        (1, "j0", {"from": 1, "gpus": 3}),
        (2, "j0", {"to": 1}),
        (2, "j1", {"from": 2, "gpus": 4}),
        (4, "j0", {"from": 4, "gpus": 3}),
    ]
    run = simulate(instance, Starts(rows), formulation="preemptive")
    assert run.solution.completion("j0") == 6
    assert run.in_feasible_set
    with pytest.raises(Refused, match=r"\(4\) at job j0 in slot 4"):
        simulate(instance, Starts(rows))


def test_an_elastic_job_changes_its_width():
    instance = instance_of([(0, 4, 2), (1, 1, 1)])
    rows = [
        (1, "j0", {"from": 1, "gpus": 4}),
        (2, "j0", {"to": 1}),
        (2, "j0", {"from": 2, "gpus": 3}),
        (2, "j1", {"from": 2, "gpus": 1}),
    ]
    run = simulate(instance, Starts(rows), formulation="elastic")
    assert (run.solution.completion("j0"), run.objective) == (3, 4)


ONE = ((0, 4, 3), (1, 2, 4))
REFUSED = [
    ([(1, "j1", {"from": 1, "gpus": 4})], "no peeking.*has not arrived"),
    ([(1, "j0", {"from": 1, "gpus": 2}), (5, "j1", {"from": 5, "gpus": 4})], r"\(3\) at job j0"),
    ([(1, "j0", {"from": 1, "gpus": 3}), (2, "j1", {"from": 2, "gpus": 4})], r"\(5\).*lacks 3"),
    ([(1, "j0", {"from": 1, "gpus": 3}), (2, "j0", {"from": 2, "gpus": 3})], r"\(7\).*already"),
    ([(1, "j0", {"from": 1, "gpus": 3}), (5, "j0", {"from": 5, "gpus": 3})], r"\(1\).*is done"),
    (
        [
            (1, "j0", {"from": 1, "to": 2, "gpus": 3}),
            (3, "j0", {"from": 4, "gpus": 3}),
            (6, "j1", {"from": 6, "gpus": 4}),
        ],
        r"\(4\) at job j0 in slot 4",
    ),
    ([(1, "j0", {"to": 0})], "irrevocable.*only an open run"),
    ([(1, "j0", {"from": 1})], "row at slot 1: j0.*keys"),
    ([(1, "j0", {"from": 1, "gpus": 3, "speed": 2})], "row at slot 1: j0.*keys"),
    ([(1, "j0", {"to": "now"})], "irrevocable.*only an open run"),
    ([(2, "j0", {"from": 1, "gpus": 3})], "irrevocable.*row begins in the past"),
    ([(1, "j0", {"from": True, "gpus": 3})], "row at slot 1: j0.*must be a slot"),
    ([(1, "j0", {"from": 1, "gpus": 10**400})], "row at slot 1: j0"),
]


@pytest.mark.parametrize(("rows", "message"), REFUSED)
def test_what_breaks_a_rule_is_refused_by_name(rows, message):
    with pytest.raises(Refused, match=message) as refusal:
        simulate(instance_of(ONE), Starts(rows))
    assert "\n" not in str(refusal.value)


def test_a_run_that_waits_for_nothing_is_stopped(monkeypatch):
    instance = instance_of(ONE)
    with pytest.raises(SolveFailed, match=r"Starts.* left jobs unfinished after slot 2"):
        simulate(instance, Starts())
    monkeypatch.setattr("hindsched.online.simulator.STEPS_WITHOUT_PROGRESS", 30)
    with pytest.raises(SolveFailed, match="left jobs unfinished for 30 slots"):
        simulate(instance, Starts(wakes=range(3, 100)))
    with pytest.raises(Refused, match="wake-up at slot 0: 0 is no later slot"):
        simulate(instance, Starts(wakes=[0]))


def test_a_scheduler_in_another_process_is_told_of_ends_and_not_of_durations():
    instance = hs.generate("gang", preset="small", seed=4, jobs=15)
    mine = hs.External([sys.executable, str(FIRST_FIT)], knows_durations=False)
    run = simulate(instance, mine)
    assert run.solution.assignments() == replay(instance, "fifo-skip").assignments()


@pytest.mark.parametrize("name", UNINFORMED)
def test_durations_of_running_jobs_change_nothing_before_their_ends(name):
    instance = hs.generate("gang", preset="servers", seed=5, jobs=40, load=2.0)
    run = simulate(instance, name)
    cut = int(np.median(run.solution.completions))
    runs_on = run.solution.completions > cut
    longer = tuple(
        job.model_copy(update={"duration": job.duration * 3}) if more else job
        for job, more in zip(instance.jobs, runs_on, strict=True)
    )
    other = simulate(instance.with_jobs(longer), name).solution.rows
    rows = run.solution.rows

    def begun(rows):
        early = rows.start < cut
        return set(zip(rows.job[early].tolist(), rows.start[early].tolist(), strict=True))

    assert begun(rows) == begun(other)


BUSY = {"jobs": 50, "gpus": 16, "load": 1.5, "weight": (1, 5), "deadline_factor": (1.2, 3.0)}

BUSY_SERVERS = {**BUSY, "jobs": 30, "servers": 4}
LONG = {"pool": ("paper", 2, BUSY), "servers": ("servers", 3, BUSY_SERVERS)}


def half_begun(instance):
    """What a queue began up to the middle of its starts, that slot, and what is left to plan."""
    known = replay(instance, "fifo")
    now = int(np.quantile(known.starts, 0.5))
    runs = known.assignments()
    begun = {name: rows for name, rows in runs.items() if rows[0]["from"] <= now}
    view = gang_sets(
        instance, "non-preemptive", Commitments(now + 1, begun, frozenset(begun)), None
    )
    left = open_jobs(instance, "non-preemptive", view)
    assert left.fixed > 0
    assert len(view.tasks) > 5
    return begun, now, view, left


@pytest.mark.parametrize("formulation", GangInstance.formulations)
@pytest.mark.parametrize("algorithm", ["reoptimise", "dual-price"])
@pytest.mark.parametrize("place", LONG)
def test_plans_for_hundreds_of_thousands_of_slots_are_feasible(place, algorithm, formulation):
    preset, seed, settings = LONG[place]
    instance = generate(preset, seed, **settings)
    assert instance.is_consolidated == (place == "servers")
    assert instance.serial_end > 100_000
    run = hs.simulate(instance, algorithm, formulation=formulation)
    assert run.violations == []
    counted = run.report["searches" if algorithm == "reoptimise" else "climbs"]
    assert counted == np.unique(instance.submits).size
    again = hs.simulate(instance, algorithm, formulation=formulation)
    assert again.solution.to_dict() == run.solution.to_dict()


def test_a_run_may_begin_with_programs_and_go_on_with_searches():
    instance = hs.generate("gang", preset="small", seed=1, jobs=6)
    late = [job.model_copy(update={"submit": job.submit + 990, "name": f"{job.name}-late"})
            for job in instance.jobs]  # fmt: skip
    run = hs.simulate(instance.with_jobs((*instance.jobs, *late)), "reoptimise",
                      formulation="preemptive")  # fmt: skip
    assert run.violations == []
    assert run.report["solves"] > 0
    assert run.report["searches"] > 0


def test_a_plan_leaves_alone_what_is_fixed_and_only_improves():
    instance = generate("paper", 4, **BUSY)
    begun, now, view, left = half_begun(instance)
    key = np.arange(len(view.tasks), dtype=float)
    plan, better = plan_in_order(left, key).starts, best_plan(left, [key], 5_000).starts
    for starts in (plan, better):
        rows = dict(begun)
        for task, start in zip(view.tasks, starts.tolist(), strict=True):
            job = instance.jobs[task.job]
            rows[job.name] = [{"from": start + 1, "to": start + job.duration, "gpus": job.gpus}]
            assert start >= now
        assert build_solution(instance, rows).violations() == []
    fixed = left.jobs.submit[: left.fixed]
    cost = [total_cost(left.jobs, np.concatenate([fixed, starts])) for starts in (plan, better)]
    assert cost[1] < cost[0] < 1e30


# Known answers about the policies: optimal cases, promises and bounds.

DURATIONS = st.integers(1, 9)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 3)), min_size=1, max_size=4))
def test_srtf_is_optimal_on_one_gpu(jobs):
    instance = instance_of([(submit, duration, 1, 1) for submit, duration in jobs], 1)
    run = simulate(instance, "srtf", formulation="preemptive")
    assert run.objective == optimum(instance, "preemptive")


@given(st.lists(st.tuples(DURATIONS, st.sampled_from([1, 2, 5])), min_size=1, max_size=5))
def test_wspt_is_optimal_on_one_gpu_without_releases(jobs):
    instance = instance_of([(0, duration, 1, weight) for duration, weight in jobs], 1)

    assert simulate(instance, "wspt").objective == optimum(instance, "non-preemptive")


@pytest.mark.parametrize("machines", [2, 3, 5, 8])
def test_list_scheduling_loses_two_minus_one_over_m(machines):
    jobs = [(0, 1, 1, 1)] * (machines * (machines - 1)) + [(0, machines, 1, 1)]
    instance = instance_of(jobs, machines)
    run = simulate(instance, "fifo-skip", formulation="non-preemptive,makespan")
    longest_first = replay_by_key(
        instance, -instance.durations.astype(float), "non-preemptive,makespan"
    )
    assert longest_first.objective() == machines
    assert run.objective / machines == pytest.approx(2 - 1 / machines)


def earliest_fit(gpus, room, now, running):
    """When a head that waits at `now` fits at the latest: running jobs as (end, gpus)."""
    free = room - sum(width for _, width in running)
    for end, width in sorted(running):
        if free >= gpus:
            break
        now, free = end, free + width
    return now


contended = st.lists(
    st.tuples(st.integers(0, 20), DURATIONS, st.integers(1, 4), st.just(1)),
    min_size=2,
    max_size=25,
)


@given(contended)
def test_easy_never_delays_its_head(jobs):
    instance = instance_of(jobs, 4)
    solution = simulate(instance, "easy").solution
    start, end = solution.starts, solution.completions
    queue = np.argsort(instance.submits, kind="stable")
    for now in np.unique([*start, *end, *instance.submits]):
        waiting = [j for j in queue if instance.submits[j] <= now < start[j]]
        if waiting:
            head = waiting[0]
            held = [
                (end[j], instance.job_gpus[j]) for j in queue if start[j] <= now < end[j]
            ]  # as decided at this event: with exact durations nothing is later than promised
            assert start[head] <= earliest_fit(instance.job_gpus[head], 4, now, held)


@given(contended)
def test_conservative_gives_each_job_its_earliest_start_behind_the_earlier_ones(jobs):
    instance = instance_of(jobs, 4)
    start = simulate(instance, "conservative").solution.starts
    used = np.zeros(sum(duration for _, duration, *_ in jobs) + 64, dtype=int)
    for j in np.argsort(instance.submits, kind="stable"):
        duration, gpus = instance.durations[j], instance.job_gpus[j]
        first = int(instance.submits[j])
        while (used[first : first + duration] + gpus > 4).any():
            first += 1
        used[first : first + duration] += gpus
        assert start[j] == first


def test_theorems_are_said_where_their_assumptions_hold():
    single = instance_of([(0, 3, 1, 1), (2, 1, 1, 1)], 1)
    many = instance_of([(0, 3, 1, 3), (0, 1, 1, 1)], 2)
    wide = instance_of([(0, 3, 2, 3), (1, 1, 1, 1)], 2)
    values = [
        theorem_of(instance, name)["value"]
        for instance in (single, many, wide)
        for name in ("srtf", "wspt")
    ]
    assert values == [1, None, None, pytest.approx(1.2071, abs=1e-4), None, None]
    assert theorem_of(instance_of([(4, 3, 1, 1)], 1), "wspt")["value"] == 1
    assert theorem_of(single, "fifo") is None


class Foreseeing(OnlineAlgorithm):
    """Runs the jobs that it is told from the start, shortest first."""

    card = Capabilities(online=False, clairvoyant=True)

    def start(self, environment):
        pass

    def foresee(self, jobs):
        self.jobs = sorted(jobs, key=lambda job: job.duration)

    def step(self, slot, arrivals):
        begin, rows = max(job.submit for job in self.jobs) + 1, {}
        for job in self.jobs if slot == begin else ():
            rows[job.name] = [{"from": begin, "to": begin + int(job.duration) - 1, "gpus": 1}]
            begin += int(job.duration)
        return Decision(rows)


def test_who_sees_all_jobs_is_told_them_and_marked():
    instance = instance_of([(0, 10, 1, 1), (1, 1, 1, 9), (2, 1, 1, 9)], 1)
    run = simulate(instance, Foreseeing())
    assert run.violations == []
    assert run.mark == " (sees all jobs)"


# Known answers of the replayed policies: generated instances, and the lists of a real trace.


ANSWERS = {200: (43228.75, 35699.3), 1000: (88907.0, 87290.0), 3629: (240177.8, 162328.8)}


@pytest.mark.parametrize("jobs", ANSWERS)
def test_fifo_and_first_fit_have_the_known_mean(jobs):
    folder = os.environ.get("HINDSCHED_TRACES")
    if not folder:
        pytest.skip("needs the traces that HINDSCHED_TRACES names")
    with gzip.open(Path(folder, "workloads", f"w_ef05_{jobs}_job.csv.gz")) as stream:
        rows = pd.read_csv(stream)
    columns = (rows["job_id"], rows["submit_time"], rows["duration"], rows["num_gpu"])
    records = [
        {"name": f"j{name}", "submit": int(s), "duration": int(d), "gpus": int(g)}
        for name, s, d, g in zip(*columns, strict=True)
    ]
    instance = GangInstance.parse(gang_data("list", records, gpus=16))
    for policy, known in zip(("fifo", "fifo-skip"), ANSWERS[jobs], strict=True):
        for solution in (replay(instance, policy), simulate(instance, policy).solution):
            assert solution.metrics()["mean_jct"] == pytest.approx(known, abs=0.051)
