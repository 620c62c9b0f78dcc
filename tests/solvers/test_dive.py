"""Dives of oasis: feasible schedules, the fluid program above them, slots packed at their best."""

from __future__ import annotations

import itertools
from threading import Event

import highspy
import numpy as np
import pytest

import hindsched as hs
from hindsched.solvers.bounds.lagrangian import subgradient_bound
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.families.oasis import dive as dive_module
from hindsched.solvers.families.oasis import packing_inequalities, slot_packing
from hindsched.solvers.families.oasis import progress as progress_module
from hindsched.solvers.families.oasis.dive import Dive
from hindsched.solvers.families.oasis.fluid import (
    FluidProgram,
    most_columns,
    stretches,
)
from hindsched.solvers.families.oasis.packing_inequalities import PackingInequalities, separated
from hindsched.solvers.families.oasis.progress import Progress
from hindsched.solvers.families.oasis.slot_packing import Wish, pack_slot
from hindsched.solvers.families.oasis.sparse_program import SparseProgram
from hindsched.solvers.methods import auto, duel
from hindsched.solvers.oracles.base import build_oracle
from hindsched.solvers.search.dives import Dives, dive_of

FOREVER = 1e6
OPTIMA = {
    "oasis-t10-i10-h5-s1": 250.338,
    "oasis-t10-i10-h10-s0": 287.064,
    "oasis-t10-i10-h25-s0": 182.359,
}
"""Proven by trees."""


def prices_of(instance):
    oracle = build_oracle(instance)
    return oracle, subgradient_bound(oracle, SolveOptions(), max_iterations=60).prices


def dived(oracle, prices, number, least=0.0):
    dive = Dive(oracle, prices, least, number, Event())
    while not dive.is_over:
        dive.step(FOREVER)
    return dive.solution()


def fluid_of(oracle, prices, fine=None):
    jobs = oracle.num_blocks
    progress = Progress(np.zeros(jobs, dtype=np.int64), set(range(jobs)), oracle.instance.horizon)
    fine = oracle.instance.horizon if fine is None else fine
    found = PackingInequalities(oracle, Event())
    return FluidProgram(oracle, prices, 0.0, 0.0, Event(), progress, fine, found)


@pytest.mark.parametrize(("name", "optimum"), OPTIMA.items())
def test_schedules_are_feasible_and_near_the_optimum(name, optimum):
    instance = hs.named_instance(name)
    oracle, prices = prices_of(instance)
    found = [dived(oracle, prices, number) for number in range(3)]
    assert all(solution.is_feasible() for solution in found)
    best = max(solution.objective() for solution in found)
    assert 0.85 * optimum <= best <= optimum + 1e-3


@pytest.mark.parametrize(("name", "optimum"), OPTIMA.items())
def test_where_late_slots_are_added_up_schedules_are_feasible_and_near_it_too(
    name, optimum, monkeypatch
):
    oracle, prices = prices_of(hs.named_instance(name))
    monkeypatch.setattr(dive_module, "FINES", (4,))
    limit = most_columns(oracle, 4)
    assert limit < most_columns(oracle, oracle.instance.horizon)
    monkeypatch.setattr(dive_module, "MOST_WHOLE", limit)
    dive = Dive(oracle, prices, 0.0, 0, Event())
    built = []
    while not dive.is_over:
        dive.step(FOREVER)
        if dive._fluid not in built:
            built.append(dive._fluid)
    assert len(built) >= 3
    assert dive.solution().is_feasible()
    assert 0.75 * optimum <= dive.solution().objective() <= optimum + 1e-3


@pytest.mark.parametrize(
    ("first", "last", "fine"), [(1, 300, 32), (7, 7, 4), (3, 40, 1), (5, 9, 9)]
)
def test_stretches_are_all_slots_in_order(first, last, fine):
    found = stretches(first, last, fine)
    slots = [slot for each in found for slot in range(each.first, each.last + 1)]
    assert slots == list(range(first, last + 1))
    assert [each.size for each in found[:fine]] == [1] * min(fine, last - first + 1)


@pytest.mark.parametrize("fine", [1, 3])
@pytest.mark.parametrize("name", OPTIMA)
def test_stretches_change_the_fluid_program_little(name, fine):
    oracle, prices = prices_of(hs.named_instance(name))
    whole, added_up = fluid_of(oracle, prices), fluid_of(oracle, prices, fine)
    assert whole.solve(FOREVER)
    assert added_up.solve(FOREVER)
    assert added_up.num_columns < whole.num_columns
    assert added_up.objective == pytest.approx(whole.objective, rel=0.1)


def test_a_dive_reaches_the_optimum_where_all_jobs_fit():
    instance = hs.generate("oasis", "small", 0, jobs=4, servers=50)
    oracle, prices = prices_of(instance)
    best = sum(
        job.utility.value(int(shortest) - 1)
        for job, shortest in zip(instance.jobs, instance.min_duration, strict=True)
    )
    found = dived(oracle, prices, 0)
    assert found.is_feasible()
    assert found.objective() == pytest.approx(best, rel=1e-4)  # ends that differ by less are one


@pytest.mark.parametrize(("name", "optimum"), OPTIMA.items())
def test_the_fluid_program_is_above_the_optimum_with_its_inequalities_too(name, optimum):
    oracle, prices = prices_of(hs.named_instance(name))
    fluid = fluid_of(oracle, prices)
    assert fluid.solve(FOREVER)
    first, added = fluid.objective, 0
    for _ in range(4):
        added += fluid.add_packing_inequalities()
        assert fluid.solve(FOREVER)
        assert fluid.objective >= optimum - 1e-3
    assert fluid.objective <= first + 1e-9
    if name.endswith("h5-s1"):
        assert added
        assert fluid.objective < first - 1e-3


def test_weights_hold_for_every_pattern_and_cut_off_what_no_mix_holds():
    patterns = np.array([[2, 0, 1], [0, 1, 1], [1, 1, 0]])
    inside = separated(patterns, patterns.mean(axis=0), Event())
    units = np.array([1.0, 0.9, 0.6])
    outside = separated(patterns, units, Event())
    assert inside is None
    assert (patterns @ outside).max() <= 1 + 1e-9
    assert outside @ units > 1 + 1e-3


def test_a_closed_slot_is_gone_and_what_was_done_in_it_counts():
    instance = hs.generate("oasis", "small", 0, servers=14)
    oracle, prices = prices_of(instance)
    fluid = fluid_of(oracle, prices)
    assert fluid.solve(FOREVER)
    job = max(fluid.ends, key=lambda each: fluid.ends[each][0].utility)
    total = oracle.block(job).task.total
    for slot in range(1, instance.horizon + 1):
        fluid.close(slot, {job: total} if slot == instance.jobs[job].arrival else {})
    assert fluid.solve(FOREVER)
    assert fluid.done(job) == total
    assert fluid.objective == pytest.approx(fluid.ends[job][0].utility)


def many_ends(seed=0):
    """A fluid program, solved, and a job of it that has several ends, at least two reachable."""
    instance = hs.generate("oasis", "small", seed, servers=14)
    oracle, prices = prices_of(instance)
    fluid = fluid_of(oracle, prices)
    assert fluid.solve(FOREVER)
    job = max(fluid.ends, key=lambda each: len(fluid.ends[each]))
    assert len(fluid.ends[job]) >= 3
    return oracle, fluid, job


def test_ends_that_a_job_meets_no_more_are_ruled_out_and_the_others_ask_for_all_that_is_left():
    oracle, fluid, job = many_ends()
    task = oracle.block(job).task
    most = task.needed.size - 1
    for slot in range(1, task.arrival + 1):
        fluid.close(slot, {job: 1} if slot == task.arrival else {})
        assert fluid.solve(FOREVER)
        left = task.total - fluid.done(job)
        for end in fluid.ends[job]:
            if most * (end.last - slot) < left and end.last >= task.arrival:
                assert slot < task.arrival or fluid.values[end.column] == 0.0
    for number in range(len(fluid.ends[job])):
        shares = sum(fluid.values[end.column] for end in fluid.ends[job][: number + 1])
        last = fluid.ends[job][number].last
        done = sum(
            fluid.values[column]
            for (other, slot), column in fluid.workers.items()
            if other == job and task.arrival < slot <= last
        )
        assert done >= left * shares - 1e-6


@pytest.mark.parametrize("number", [0, 1])
def test_an_end_is_decided_for_the_side_that_is_worth_more(number):
    _, fluid, job = many_ends()
    columns = [end.column for end in fluid.ends[job]]
    worth = []
    for ruled_out in (columns[number + 1 :], columns[: number + 1]):
        for column in ruled_out:
            fluid._highs.changeColBounds(column, 0.0, 0.0)
        assert fluid.solve(FOREVER)
        worth.append(fluid.objective)
        for column in ruled_out:
            fluid._highs.changeColBounds(column, 0.0, 1.0)
    assert fluid.decide_end(job, number, FOREVER)
    assert fluid.solve(FOREVER)
    assert fluid.objective == pytest.approx(max(worth))
    side = slice(number + 1) if worth[0] >= worth[1] else slice(number + 1, None)
    assert all(fluid.values[column] == 0.0 for column in set(columns) - set(columns[side]))


def test_no_slot_is_packed_while_an_end_is_torn_that_asks_for_more_workers_now(monkeypatch):
    oracle, prices = prices_of(hs.named_instance("oasis-t10-i10-h10-s0"))
    dive = Dive(oracle, prices, 0.0, 0, Event())
    decided, decide_end = [], FluidProgram.decide_end

    def decides(fluid, job, number, seconds):
        ends = fluid.ends[job]
        assert 0 < sum(fluid.values[end.column] for end in ends[: number + 1]) < 1
        decided.append(job)
        return decide_end(fluid, job, number, seconds)

    def packs(*arguments):
        assert dive._urgent_tear(dive._fluid, dive._progress.slot) is None
        return pack_slot(*arguments)

    monkeypatch.setattr(FluidProgram, "decide_end", decides)
    monkeypatch.setattr(dive_module, "pack_slot", packs)
    while not dive.is_over:
        dive.step(FOREVER)
    assert decided
    assert dive.solution().is_feasible()


def test_later_ends_are_open_again_where_a_promised_one_is_missed():
    oracle, fluid, job = many_ends()
    task = oracle.block(job).task
    for end in fluid.ends[job][1:]:
        fluid._highs.changeColBounds(end.column, 0.0, 0.0)
    fluid._promised[job] = 0
    fluid.require(job)
    slot = 0
    while job in fluid._promised:
        slot += 1
        fluid.close(slot, {})
    most = task.needed.size - 1
    first, *others = fluid.ends[job]
    reached = [most * (end.last - slot) >= task.total for end in others]
    assert most * (first.last - slot) < task.total
    assert fluid._highs.getCol(first.column)[3] == 0.0
    assert [fluid._highs.getCol(end.column)[3] for end in others] == [float(r) for r in reached]
    assert any(reached)


def test_weights_that_are_known_are_tried_first_and_hold_in_every_pattern(monkeypatch):
    oracle = build_oracle(hs.named_instance("oasis-t10-i10-h5-s1"))
    found = PackingInequalities(oracle, Event())
    fluid = fluid_of(oracle, np.zeros(oracle.rows.size))
    assert fluid.solve(FOREVER)
    monkeypatch.setattr(fluid, "_inequalities", found)
    assert fluid.add_packing_inequalities()
    (side, group), known = next((key, each) for key, each in found._known.items() if each)
    weights = known[0]
    units = {job: 1.01 / (weight * len(weights)) for job, weight in weights.items()}
    monkeypatch.setattr(packing_inequalities, "separated", None)
    assert found.violated(side, group, units) in known
    patterns = found._patterns_of(side, group, tuple(weights))
    assert (patterns @ np.array([*weights.values()])).max() <= 1 + 1e-9


def test_what_single_jobs_hold_by_turns_needs_no_inequality():
    oracle = build_oracle(hs.named_instance("oasis-t10-i10-h5-s1"))
    found = PackingInequalities(oracle, Event())
    room = oracle.block(0).worker_room / oracle.worker_groups.size
    other = oracle.block(1).worker_room / oracle.worker_groups.size
    group = int(np.argmax(np.minimum(room, other)))
    assert min(room[group], other[group]) > 0
    assert found.violated(0, group, {0: room[group] / 2, 1: other[group] / 2}) is None


@pytest.mark.parametrize("most_patterns", [0, 100])
def test_a_slot_is_packed_as_well_as_by_hand(most_patterns, monkeypatch):
    monkeypatch.setattr(slot_packing, "MOST_PATTERNS", most_patterns)
    instance = hs.generate("oasis", "small", 3, jobs=3, servers=4)
    oracle = build_oracle(instance)
    wishes = [Wish(job, 2.0, 3, 1.0 + job, 0, 0.0) for job in range(3)]
    placed = pack_slot(oracle, wishes, FOREVER, Event())
    counts = {job: int(workers.sum()) for job, (workers, _) in placed.items()}

    def worth(job, count):
        return wishes[job].worth * (min(count, 2) + 0.8 * max(0, count - 2))

    reached = sum(worth(job, count) for job, count in counts.items())
    best = max(
        sum(worth(job, count) for job, count in enumerate(each))
        for each in itertools.product(range(4), repeat=3)
        if fits(oracle, each)
    )
    assert reached == pytest.approx(best, rel=0.006)


def fits(oracle, counts):
    """Whether servers hold these workers with their PSs, by trying everything."""
    instance = oracle.instance
    for capacity, demand, units in (
        (instance.worker_capacity, instance.worker_demand, list(counts)),
        (
            instance.ps_capacity,
            instance.ps_demand,
            [int(oracle.block(job).task.needed[n]) for job, n in enumerate(counts)],
        ),
    ):
        items = [job for job, count in enumerate(units) for _ in range(count)]
        if not placeable(items, demand, capacity.astype(float).copy()):
            return False
    return True


def placeable(items, demand, free):
    if not items:
        return True
    for server in range(len(free)):
        if (free[server] + 1e-9 >= demand[items[0]]).all():
            free[server] -= demand[items[0]]
            if placeable(items[1:], demand, free):
                return True
            free[server] += demand[items[0]]
    return False


def test_over_a_long_horizon_the_fluid_program_has_fewer_rows_and_is_above(monkeypatch):
    oracle, prices = prices_of(hs.named_instance("oasis-t10-i10-h10-s0"))
    short = fluid_of(oracle, prices)
    monkeypatch.setattr(progress_module, "LONG", 10)
    long = fluid_of(oracle, prices)
    assert long._highs.getNumRow() < short._highs.getNumRow()
    assert long.num_columns == short.num_columns
    assert short.solve(FOREVER)
    assert long.solve(FOREVER)
    assert long.objective >= short.objective - 1e-6


def test_who_must_run_now_runs_before_who_is_worth_more_a_worker():
    instance = hs.generate("oasis", "small", 3, jobs=3, servers=4)
    oracle = build_oracle(instance)
    many = [oracle.block(job).task.needed.size - 1 for job in range(3)]
    rest = [Wish(job, float(many[job]), many[job], 5.0, 0, 0.0) for job in (1, 2)]
    idle = Wish(0, float(many[0]), many[0], 1e-3, 0, 0.0)
    alone = int(pack_slot(oracle, [idle], FOREVER, Event())[0][0].sum())
    due = Wish(0, float(many[0]), many[0], 1e-3, alone, 1e6)
    before = pack_slot(oracle, [idle, *rest], FOREVER, Event())
    after = pack_slot(oracle, [due, *rest], FOREVER, Event())
    assert int(after[0][0].sum()) >= alone
    assert 0 not in before or int(before[0][0].sum()) < alone


def test_no_inequality_where_a_server_holds_more_units_than_patterns_count():
    found = packing_inequalities._patterns(np.array([2.0]), np.array([[1.0], [0.25]]))
    assert sorted(found.tolist()) == [[0, 8], [1, 4], [2, 0]]
    small = np.array([[2.0, 0.0], [0.0, 1e-3]])  # 5,000 fit beside one of the other
    assert packing_inequalities._patterns(np.array([2.0, 5.0]), small) is None


def test_auto_dives_at_scale_the_same_way_twice(monkeypatch):
    monkeypatch.setattr(auto, "SMALL_SIZE", 0)
    monkeypatch.setattr(duel, "LEAST_TO_DIVE", 0)
    ended, close = [], FluidProgram.close

    def closed(fluid, slot, done):
        close(fluid, slot, done)
        if slot == instance.horizon:
            ended.append(fluid.margin)

    monkeypatch.setattr(FluidProgram, "close", closed)
    instance = hs.generate("oasis", "paper", 1, jobs=14, horizon=14, servers=8, max_duration=5)
    one, other = (hs.solve(instance, work_limit=600) for _ in range(2))
    assert ended
    assert ended == 2 * ended[: len(ended) // 2]
    assert one.solution.assignments() == other.solution.assignments()
    assert one.bound == other.bound
    assert one.solution.is_feasible()


def test_dives_end_where_the_time_will_not_do():
    instance = hs.generate("oasis", "small", 0)
    oracle, prices = prices_of(instance)
    dives = Dives(oracle, 0, 1, Event())
    clock = iter(np.linspace(1e-3, 0.0, 5000))
    while not dives.is_over:
        dives.work(prices, 0.0, lambda: None, lambda: float(next(clock)), lambda: False)
    assert dives.is_over
    assert dive_of("astraea") is None


def test_a_fluid_program_that_is_too_large_is_not_begun(monkeypatch):
    monkeypatch.setattr(dive_module, "MOST_COLUMNS", 10)
    oracle, prices = prices_of(hs.generate("oasis", "small", 0))
    assert dived(oracle, prices, 0) is None


def test_an_interrupt_ends_a_dive():
    instance = hs.generate("oasis", "small", 0)
    oracle, prices = prices_of(instance)
    interrupted = Event()
    interrupted.set()
    dive = Dive(oracle, prices, 0.0, 0, interrupted)
    for _ in range(3):
        dive.step(FOREVER)
    assert dive.solution() is None or dive.solution().is_feasible()


def test_what_a_dive_takes_is_judged_by_its_own_time_and_by_more_than_its_first_slot(monkeypatch):
    oracle, prices = prices_of(hs.named_instance("oasis-t10-i10-h10-s0"))
    dive = Dive(oracle, prices, 0.0, 0, Event())
    time = [0.0]
    monkeypatch.setattr(dive_module, "now", lambda: time[0])
    monkeypatch.setattr(dive_module, "SHARE_TO_JUDGE", 0.2)

    def packs(*arguments):
        time[0] += 1.0
        return pack_slot(*arguments)

    monkeypatch.setattr(dive_module, "pack_slot", packs)
    told = {}
    while not dive.is_over:
        dive.step(FOREVER)
        time[0] += 100.0  # others have their turns
        told[dive._progress.slot - 1] = dive.seconds_to_go()
    assert told[1] == 0.0
    assert told[2] > 0.0
    exact = {done: done * (10 - done) ** 2 / (done * (20 - done)) for done in told if done > 1}
    assert {done: told[done] for done in exact} == pytest.approx(exact)  # one second a slot


def test_alike_servers_take_patterns_where_they_are_few(monkeypatch):
    instance = hs.generate("oasis", "paper", 2, jobs=6, horizon=10, servers=25)
    oracle = build_oracle(instance)
    wishes = [Wish(job, 4.0, oracle.block(job).task.needed.size - 1, 1.0, 0, 0.0)
              for job in range(6)]  # fmt: skip
    taken, add = [], slot_packing._Side._add_patterns

    def adds(side, servers, patterns):
        taken.append(servers.size)
        add(side, servers, patterns)

    def worth(placed):
        counts = [int(workers.sum()) for workers, _ in placed.values()]
        return sum(min(count, 4) + 0.8 * max(0, count - 4) for count in counts)

    monkeypatch.setattr(slot_packing._Side, "_add_patterns", adds)
    placed = pack_slot(oracle, wishes, FOREVER, Event())
    assert max(taken) > 1
    for side, tables in enumerate((instance.worker_units.tables, instance.ps_units.tables)):
        used = sum(np.outer(held[side], tables[1][job]) for job, held in placed.items())
        assert (used <= tables[0]).all()
    for job, (workers, ps) in placed.items():
        assert workers.sum() <= wishes[job].most
        assert ps.sum() == oracle.block(job).task.needed[workers.sum()]
    taken.clear()
    monkeypatch.setattr(slot_packing, "MOST_PATTERNS", 0)
    alone = pack_slot(oracle, wishes, FOREVER, Event())
    assert not taken
    assert worth(placed) == pytest.approx(worth(alone), rel=0.02)


def test_a_program_that_a_basis_leads_astray_is_solved_from_none():
    program = SparseProgram()
    program.row([(program.column(1.0, 5.0), 1.0)], 0.0, 3.0)
    loaded = program.load(Event())
    told = [highspy.HighsModelStatus.kNotset]
    cleared = []
    loaded.highs = SolverThatSays(loaded.highs, told, cleared)
    assert loaded.solve(FOREVER)
    assert (cleared, loaded.is_optimal, loaded.objective) == ([True], True, -3.0)
    assert loaded.solve(FOREVER)
    assert cleared == [True]


class SolverThatSays:
    """HiGHS, with other words for how it ended as long as there are some."""

    def __init__(self, highs, told, cleared):
        self._highs, self._told, self._cleared = highs, told, cleared

    def __getattr__(self, name):
        return getattr(self._highs, name)

    def getModelStatus(self):
        return self._told.pop() if self._told else self._highs.getModelStatus()

    def clearSolver(self):
        self._cleared.append(True)
        return self._highs.clearSolver()
