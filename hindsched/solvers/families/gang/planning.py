"""Plans for the open jobs beside what is fixed, by events: no program, any slots.

An order of the open jobs is a plan: each takes its earliest start on what is fixed and on the jobs
before it, in one piece, which every kind allows. What is fixed stands in the same list, first in
every order, and at such a price if it came later that no exchange ever moves it.

On servers whoever fits starts, first in order, where the policies of the same kind would place it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.gang.instance import KINDS, OBJECTIVES, GangInstance, split_formulation
from hindsched.models.gang.sets import Outlook
from hindsched.solvers.door.work import Clock
from hindsched.solvers.families.gang.oracle import GangOracle, job_blocks
from hindsched.solvers.families.gang.prices import Climb
from hindsched.solvers.families.gang.search import annealed, can_move, mean_cost
from hindsched.solvers.kernels.gang.orders import FOREVER, Jobs, starts_in_order, total_cost
from hindsched.solvers.kernels.gang.queueing import Cluster, run_queue_beside
from hindsched.solvers.kernels.gang.responses import Blocks

NEVER_LATE = 1e30
"""Cost of what is fixed, if it came later."""
REACH = 100
"""Longest stretch of the sequence in which a move is made."""
STAGES = (0.3, 0.03)
"""Smoothing of the prices, relative to the mean cost of a job's own duration."""
INTERVALS = 200


class OpenJobs(NamedTuple):
    """What is left to plan."""

    # what is fixed and still holds GPUs, row by row; then the open jobs in the view's order
    jobs: Jobs
    fixed: int  # number of such rows
    room: int  # GPUs in all
    # row, server and GPUs of what is fixed, by row; empty in a pool, (places,)
    places: tuple[Ints, Ints, Ints]


class Placed(NamedTuple):
    """A plan on servers."""

    starts: Ints  # when they begin, (open jobs,)
    cluster: Cluster  # where what is fixed stands, and then the open jobs


def open_jobs(instance: GangInstance, formulation: str, view: Outlook) -> OpenJobs:
    """What a view of the known jobs leaves to plan; makespans are planned by completions."""
    kind, goal = split_formulation(formulation)
    if goal == OBJECTIVES[1]:
        formulation = kind
    blocks, rows = job_blocks(instance, formulation), view.fixed.rows
    own = np.array([task.job for task in view.tasks], dtype=np.int64)
    gpus = instance.job_gpus[own]
    submit = np.array([task.first - 1 for task in view.tasks], dtype=np.int64)
    units = np.array([task.work * task.gpus for task in view.tasks], dtype=np.int64)
    still = rows.end > submit.min(initial=FOREVER)
    none = np.zeros(int(still.sum()))
    columns = (
        (rows.start[still], submit),
        (rows.end[still] - rows.start[still], -(-units // gpus)),
        (rows.gpus[still], gpus),
        (none, blocks.slope[own]),
        (rows.end[still], blocks.latest[own]),
        (none + NEVER_LATE, np.where(np.isfinite(blocks.skip), blocks.skip, 0.0)[own]),
    )
    jobs = Jobs._make(map(np.concatenate, columns))
    named = still[rows.place_row]
    row = (np.cumsum(still) - 1)[rows.place_row[named]]
    places = (row, rows.place_server[named], rows.place_gpus[named])
    return OpenJobs(jobs, none.size, instance.total_gpus, places)


def plan_in_order(left: OpenJobs, key: Floats) -> Ints:
    """Starts of the open jobs, those of smaller keys first."""
    order = np.concatenate([np.arange(left.fixed), left.fixed + np.argsort(key, kind="stable")])
    return starts_in_order(order, left.jobs, left.room)[left.fixed :]


def best_plan(left: OpenJobs, plans: list[Ints], rounds: int) -> Ints:
    """The cheapest of some plans, improved by so many exchanges of jobs."""
    jobs, fixed = left.jobs, left.fixed
    known = [np.concatenate([jobs.submit[:fixed], plan]) for plan in plans]
    start = min(known, key=lambda start: total_cost(jobs, start)).copy()
    if can_move(start.size, left.room):
        scale = mean_cost(Jobs._make(column[fixed:] for column in jobs))
        start = annealed(start, jobs, left.room, rounds, REACH, scale)
    return start[fixed:]


def plan_on_servers(left: OpenJobs, sizes: Ints, key: Floats) -> Placed:
    """Start and place whichever open job fits, those of smaller keys first."""
    jobs, fixed = left.jobs, left.fixed
    whole = np.concatenate([np.zeros(fixed), key])
    columns = (jobs.submit, jobs.duration, jobs.gpus, whole)
    start, cluster = run_queue_beside(sizes, jobs.due[:fixed], left.places, *columns)
    return Placed(start[fixed:], cluster)


def best_on_servers(left: OpenJobs, sizes: Ints, keys: list[Floats]) -> Placed:
    """The cheapest plan of some orders."""
    own = Jobs._make(column[left.fixed :] for column in left.jobs)
    plans = [plan_on_servers(left, sizes, key) for key in keys]
    return min(plans, key=lambda plan: total_cost(own, plan.starts))


class LeftOracle(GangOracle):
    """Best responses of the open jobs, in one piece, to prices of the GPUs that are left."""

    def __init__(self, instance: GangInstance, left: OpenJobs, cut: Ints) -> None:
        jobs, fixed = left.jobs, left.fixed
        own = Jobs._make(column[fixed:] for column in jobs)
        counts_ends = bool(own.slope.any())
        super().__init__(instance, KINDS[0] if counts_ends else f"{KINDS[0]},{OBJECTIVES[2]}", cut)
        skip = np.where(own.slope > 0, np.inf, own.penalty)
        sizes = own.duration, own.gpus, own.gpus
        self.blocks = Blocks(own.submit, *sizes, own.slope, own.due, skip)
        free = self.rows.sets[0].capacity
        for start, end, gpus in zip(jobs.submit[:fixed], jobs.due[:fixed], jobs.gpus, strict=False):
            held = np.minimum(cut[1:], end) - np.maximum(cut[:-1], start)
            free -= np.maximum(held, 0) * (gpus * float(instance.slot_seconds))


def expected_starts(instance: GangInstance, left: OpenJobs, iterations: int) -> Climb:
    """Prices of the GPUs that are left, and the starts that open jobs expect at them.

    `iterations` are the steps of each climb: the result does not depend on the machine.
    """
    jobs, fixed = left.jobs, left.fixed
    ends = plan_in_order(left, jobs.duration[fixed:].astype(float)) + jobs.duration[fixed:]
    times = np.linspace(jobs.submit[fixed:].min(), ends.max(), INTERVALS + 1)
    cut = np.unique(np.concatenate([[0], times.astype(np.int64)]))
    oracle = LeftOracle(instance, left, cut)
    climb = Climb(oracle, np.zeros(oracle.rows.size), Clock(math.inf))
    for share in STAGES:
        climb.smooth(share, iterations)
    return climb
