"""Good schedules for gang: orders that the prices suggest, then moves in their sequences.

The expected starts of the smoothed bound say in which order jobs run; placed in that order, each as
early as possible (alpha points: Hall, Schulz, Shmoys & Wein 1997; Goemans et al. 2002), they are a
good schedule already. From the best one `resequence` anneals in cycles of different reach and heat.
The search is for jobs in one piece in one pool, whose schedules are of the other kinds as well;
where jobs may pause, the best replayed policy is better.

`OpenJobs` are planned the same way beside what is fixed, which stands first in every order, at such
a price if it came later that no exchange ever moves it; on servers without the moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.gang.instance import KINDS, OBJECTIVES, GangInstance, split_formulation
from hindsched.models.gang.sets import GangSets
from hindsched.solutions.gang.solution import GangSolution, pool_rows
from hindsched.solvers.door.work import Clock, count_work, now
from hindsched.solvers.families.gang.oracle import GangOracle, job_blocks
from hindsched.solvers.families.gang.prices import DualAscent
from hindsched.solvers.kernels.draws import Words
from hindsched.solvers.kernels.gang import event_queue, sequences
from hindsched.solvers.kernels.gang.timeline import FOREVER

ALPHAS = (0.0, 0.5, 1.0)
"""Which part of a job counts for its place in the order."""
CYCLES = ((1_000, 0.03), (300, 0.03), (3_000, 0.2), (1_000, 0.5))
"""Longest stretch of the sequence in which a move is made, and heat relative to the mean cost of a
job's own duration: of long lists the first, cold cycles are all that there is time for."""
CYCLE_SHARE, LEAST_CYCLE_SECONDS = 0.4, 2.0
"""Share of the time left that a cycle takes, and seconds at least."""
MOST_MEMORY = 10_000_000
"""Jobs x GPUs up to which moves are made: beyond it takes too long to place what follows one."""
PLACED = 50_000
"""Jobs placed by moves that count as a unit of work."""
COOLING = 0.01
"""Heat at the end of a cycle over that at its begin."""
ROUNDS, LOOK_SECONDS = 2_000, 0.25
"""Moves between two looks at the clock at first, and seconds between them later."""
HEATS, HOT = 20, 0.3
"""Heats of `annealed`, from hot to cold, and the first relative to the mean cost."""
RESTARTS, HEATED = 12, (1.0, 3.0, 10.0)
"""How often `well_annealed` begins anew, and how hot relative to `HOT`."""
NEVER_LATE = 1e30
"""Cost of what is fixed, if it came later."""
REACH = 100
"""Longest stretch of the sequence in which a move is made."""
STAGES = (0.3, 0.03)
"""Smoothing of the prices, relative to the mean cost of a job's own duration."""
INTERVALS = 200


def can_move(jobs: int, gpus: int) -> bool:
    """Whether a list is small enough for moves."""
    return jobs >= 2 and jobs * gpus <= MOST_MEMORY


def mean_cost(jobs: sequences.GangJobs) -> float:
    """Mean cost of a job's own duration, or of its missing the deadline; above 0."""
    costs = np.where(jobs.slope > 0, jobs.slope * jobs.duration, jobs.skip)
    return max(float(costs.mean()) if costs.size else 0.0, 1e-12)


def _seeded(seed: int) -> Words:
    return np.array([2 * seed + 88172645463325252], dtype=np.uint64)


class SequenceSearch:
    """Best schedule of jobs in one piece in one pool, by the formulation's objective."""

    def __init__(self, instance: GangInstance, formulation: str, seed: int = 0) -> None:
        self.instance, self.formulation = instance, formulation
        self.jobs = job_blocks(instance, formulation)
        self.scale, self.state = mean_cost(self.jobs), _seeded(seed)
        self.cost, self.start = math.inf, np.zeros(0, dtype=np.int64)
        sizes = np.array([instance.total_gpus])
        self.everything = OpenJobs(self.jobs, 0, np.zeros((0, 1), dtype=np.int64), sizes)

    def try_starts(self, start: Ints) -> None:
        """Take over a feasible schedule if it is the best so far."""
        cost = sequences.total_cost(self.jobs, start)
        if cost < self.cost:
            self.cost, self.start = cost, start.copy()

    def try_expected(self, expected: Floats) -> None:
        """Try the orders that expected starts suggest."""
        for alpha in ALPHAS:
            self.try_starts(
                plan_in_order(self.everything, expected + alpha * self.jobs.duration).starts
            )

    def anneal(self, clock: Clock, is_done: Callable[[], bool]) -> None:
        """Move jobs until the clock stops, or `is_done` after a cycle."""
        number = 0
        while not clock.is_over and not is_done():
            reach, heat = CYCLES[number % len(CYCLES)]
            left = clock.seconds_left
            cycle = clock.first(max(min(left, LEAST_CYCLE_SECONDS), CYCLE_SHARE * left))
            sequence, rounds = np.argsort(self.start, kind="stable"), ROUNDS
            while not cycle.is_over:
                since = now()
                gone = 1 - cycle.seconds_left / cycle.seconds
                self.move(sequence, reach, heat * self.scale * COOLING**gone, rounds)
                spent = max(now() - since, 1e-6)
                rounds = int(np.clip(rounds * LOOK_SECONDS / spent, 100, 4 * rounds))
            number += 1

    def move(self, sequence: Ints, reach: int, heat: float, rounds: int) -> None:
        """Anneal a sequence of starts in place for some rounds; keep its schedule if the best."""
        gpus = self.instance.total_gpus
        placed = sequences.resequence(sequence, self.jobs, gpus, rounds, heat, self.state, reach)
        count_work(max(1, placed // PLACED))
        self.try_starts(sequences.starts_in_sequence(sequence, self.jobs, gpus))

    def solution(self) -> GangSolution:
        """The best schedule."""
        jobs = self.jobs
        rows = pool_rows(
            np.arange(self.start.size), self.start, self.start + jobs.duration, jobs.gpus
        )
        return GangSolution(self.instance, rows, self.formulation)


def annealed(
    start: Ints,
    jobs: sequences.GangJobs,
    gpus: int,
    rounds: int,
    reach: int,
    scale: float | None = None,
) -> Ints:
    """The schedule `start` improved by so many moves: no clock decides."""
    best, scale = start, mean_cost(jobs) if scale is None else scale
    sequence, state = np.argsort(start, kind="stable"), _seeded(0)
    for step in range(HEATS if rounds else 0):
        heat = HOT * scale * COOLING ** (step / HEATS)
        sequences.resequence(sequence, jobs, gpus, max(1, rounds // HEATS), heat, state, reach)
        starts = sequences.starts_in_sequence(sequence, jobs, gpus)
        best = min(best, starts, key=lambda start: sequences.total_cost(jobs, start))
    return best


def well_annealed(solution: GangSolution, clock: Clock) -> GangSolution:
    """The schedule of few jobs in one pool improved by moves at several heats."""
    instance, start = solution.instance, solution.starts
    jobs, count = job_blocks(instance, solution.formulation), start.size
    for number in range(RESTARTS):
        if clock.is_over:
            break
        scale = HEATED[number % len(HEATED)] * mean_cost(jobs)
        rounds = ROUNDS * count + 100 * number  # other moves each time
        start = annealed(start, jobs, instance.total_gpus, rounds, count, scale)
        count_work()
    rows = pool_rows(np.arange(count), start, start + jobs.duration, jobs.gpus)
    return GangSolution(instance, rows, solution.formulation)


class OpenJobs(NamedTuple):
    """What is left to plan."""

    # what is fixed and still holds GPUs, row by row; then the open jobs in the view's order
    jobs: sequences.GangJobs
    fixed: int  # number of such rows
    held: Ints  # their GPUs by server, (rows, servers); a pool is one
    sizes: Ints  # GPUs of each server

    @property
    def open(self) -> sequences.GangJobs:
        """The open jobs alone."""
        return sequences.GangJobs._make(column[self.fixed :] for column in self.jobs)


class GangPlan(NamedTuple):
    """When the open jobs begin, and where."""

    starts: Ints  # (open jobs,)
    held: Ints  # GPUs by server; a pool is one, (open jobs, servers)


def open_jobs(instance: GangInstance, formulation: str, view: GangSets) -> OpenJobs:
    """What a view of the known jobs leaves to plan; makespans are planned by completions."""
    _, goal = split_formulation(formulation)
    goal = OBJECTIVES[0] if goal == OBJECTIVES[1] else goal
    known = job_blocks(instance, f"{KINDS[0]},{goal}")
    rows, position = view.fixed.rows, [task.job for task in view.tasks]
    still_open = sequences.GangJobs._make(column[position] for column in known)
    submit = np.array([task.first - 1 for task in view.tasks], dtype=np.int64)
    units = np.array([task.work * task.gpus for task in view.tasks], dtype=np.int64)
    still_open = still_open._replace(submit=submit, duration=-(-units // still_open.gpus))
    still = rows.end > submit.min(initial=FOREVER)
    start, end, gpus = rows.start[still], rows.end[still], rows.gpus[still]
    none = np.zeros(start.size)
    fixed = sequences.GangJobs(start, end - start, gpus, gpus, none, end, none + NEVER_LATE)
    jobs = sequences.GangJobs._make(map(np.concatenate, zip(fixed, still_open, strict=True)))
    held = rows.held[still] if instance.is_consolidated else gpus[:, None]
    sizes = np.array([gpus for _, gpus, _ in instance.places])
    return OpenJobs(jobs, none.size, held, sizes)


def plan_in_order(left: OpenJobs, key: Floats) -> GangPlan:
    """Give each open job its earliest start, those of smaller keys first."""
    jobs, fixed = left.jobs, left.fixed
    state = event_queue.empty_state(left.sizes, jobs.submit.size, event_queue.RESERVING)
    state.gpus[:], state.expected[:], state.start[:] = jobs.gpus, jobs.duration, jobs.submit
    state.held[:fixed] = left.held
    event_queue.reserve_in_order(state, fixed, fixed + np.argsort(key, kind="stable"))
    return GangPlan(state.start[fixed:], state.held[fixed:])


def best_plan(left: OpenJobs, keys: list[Floats], rounds: int) -> GangPlan:
    """The cheapest plan of some orders, in a pool improved by so many exchanges of jobs."""
    plans = [plan_in_order(left, key) for key in keys]
    best = min(plans, key=lambda plan: sequences.total_cost(left.open, plan.starts))
    start, gpus = np.append(left.jobs.submit[: left.fixed], best.starts), int(left.sizes[0])
    if left.sizes.size == 1 and can_move(start.size, gpus):
        start = annealed(start, left.jobs, gpus, rounds, REACH, mean_cost(left.open))
    return best._replace(starts=start[left.fixed :])


class ResidualOracle(GangOracle):
    """Best responses of the open jobs, in one piece, to prices of the GPUs that are left."""

    def __init__(self, instance: GangInstance, left: OpenJobs, cut: Ints) -> None:
        jobs, self.blocks = left.jobs, left.open
        goal = OBJECTIVES[0 if self.blocks.slope.any() else 2]
        super().__init__(instance, f"{KINDS[0]},{goal}", cut)
        free = self.rows.sets[0].capacity
        for row in range(left.fixed):
            held = np.minimum(cut[1:], jobs.latest[row]) - np.maximum(cut[:-1], jobs.submit[row])
            free -= np.maximum(held, 0) * (jobs.gpus[row] * float(instance.slot_seconds))


def expected_starts(instance: GangInstance, left: OpenJobs, iterations: int) -> DualAscent:
    """Prices of the GPUs that are left, and the starts that open jobs expect at them.

    `iterations` are the steps of each climb: the result does not depend on the machine.
    """
    jobs = left.open
    ends = plan_in_order(left, jobs.duration.astype(float)).starts + jobs.duration
    times = np.linspace(jobs.submit.min(), ends.max(), INTERVALS + 1)
    cut = np.unique(np.concatenate([[0], times.astype(np.int64)]))
    oracle = ResidualOracle(instance, left, cut)
    ascent = DualAscent(oracle, np.zeros(oracle.rows.size), Clock(math.inf))
    for share in STAGES:
        ascent.smooth(share, iterations)
    return ascent
