"""What is left of a problem in a slot, as a problem of its own, and its optimum.

What ran before the slot can no longer change, and nothing after it is decided: the servers are
empty, and a job that has done some of its work has the rest of it before itself. So the rest is an
instance whose jobs are shorter and arrive later,

    arrival' = max(arrival, slot),   work' = work - done,   utility' of completion - arrival'

and the program of ends with its leaves (`methods.py`) solves it. Aggregated over identical servers
and with patterns, that program needs a few nodes where the one over real servers needs hundreds.
"""

from __future__ import annotations

from hindsched.instances.base import LinearUtility
from hindsched.instances.oasis.instance import OasisInstance, OasisJob, OasisUtility
from hindsched.models.base import Commitments
from hindsched.solutions.base import Assignment, Solution
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Result
from hindsched.solvers.door.work import (
    UNIT_SECONDS,
    catch_interrupt,
    counting,
    now,
    spend,
    units_of,
)
from hindsched.solvers.families.oasis.methods import milp


def rest_of(instance: OasisInstance, commitments: Commitments) -> OasisInstance:
    """The instance of what is open from slot ``commitments.now`` on; slots count as before.

    Jobs that are done or rejected are left out; nobody is locked, as workers are given by slot.
    """
    assert not commitments.locked
    jobs = []
    for job in instance.jobs:
        left = instance.work_of(job)
        for row in commitments.assignments.get(job.name, ()):
            left -= (row["to"] - row["from"] + 1) * sum(row.get("workers", {}).values())
        if left > 0 and job.name not in commitments.rejected:
            jobs.append(_shorter(job, left, max(job.arrival, commitments.now)))
    return instance.with_jobs(tuple(jobs))


def _shorter(job: OasisJob, work: int, arrival: int) -> OasisJob:
    """The job with so many worker-slots to do, which it may begin at `arrival`."""
    later = arrival - job.arrival
    utility: OasisUtility = job.utility
    if isinstance(utility, LinearUtility):
        moved: object = utility.intercept + later * utility.slope
        utility = utility.model_copy(update={"intercept": moved})
    else:
        utility = utility.model_copy(update={"target": utility.target - later})
    facts = {
        "arrival": arrival, "utility": utility, "gradient_mb": 0, "epochs": 1, "minibatches": 1,
        "minibatch_slots": (work - 0.5) / job.chunks,  # work is rounded up
    }  # fmt: skip
    return job.model_copy(update=facts)


def rows_from(rows: list[Assignment], slot: int) -> list[Assignment]:
    """The part of a job's rows that lies in `slot` or later."""
    return [{**row, "from": max(slot, row["from"])} for row in rows if row["to"] >= slot]


def solve_rest(rest: OasisInstance, start: Solution, options: SolveOptions, work: int) -> Result:
    """The best plan from a start, within units of work: it does not depend on the machine."""
    with catch_interrupt(), counting():  # one event for all solves
        within = options.with_time(work * UNIT_SECONDS)
        result = milp(rest, start.formulation, within, incumbent=start)
        done = units_of(now())
    spend(done)
    return result
