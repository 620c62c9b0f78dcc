"""What is left of the jobs to schedule, and the last slot that an optimal schedule needs.

No job of some optimal schedule ends later than if, once all jobs are there and all that is fixed
has ended, what is left ran one job after another: jobs that end later could be run so instead, in
the order of their completions, and each would end earlier. Where completion times count, no job of
an optimal schedule ends later than the cost of a known schedule allows it to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

from hindsched.errors import InputError
from hindsched.instances.decimals import exactly
from hindsched.instances.gang.instance import KINDS, GangInstance, split_formulation
from hindsched.models.base import ScenarioPolicy
from hindsched.solutions.base import Commitments
from hindsched.solutions.gang.solution import GangSolution


class GangTask(NamedTuple):
    """What is left of one job, in units of work: a slot on its GPUs, or, if elastic, on one GPU."""

    job: int  # position in the instance
    first: int  # first slot that it may use
    last: int  # the last one that a program gives it
    work: int  # units left
    width: int  # most units a slot
    gpus: int  # that a unit holds

    @property
    def fastest(self) -> int:
        """Slots that it takes at least."""
        return -(-self.work // self.width)

    @property
    def slots(self) -> range:
        """Slots that it may use."""
        return range(self.first, self.last + 1)

    @property
    def ends(self) -> range:
        """Slots in which it may be complete."""
        return range(self.first + self.fastest - 1, self.last + 1)


@dataclass(frozen=True)
class GangSets:
    """What a program decides and what it cannot change."""

    tasks: tuple[GangTask, ...]  # the open jobs
    fixed: GangSolution  # what all jobs hold for good
    slots: int  # last slot of the program


def whole_task(instance: GangInstance, job: int, kind: str, last: int = 0) -> GangTask:
    """All of a job; `last` is the last slot that it may use."""
    gpus, duration = int(instance.job_gpus[job]), int(instance.durations[job])
    first = int(instance.submits[job]) + 1
    if kind == KINDS[-1]:
        return GangTask(job, first, last, duration * gpus, int(instance.most_gpus[job]), 1)
    return GangTask(job, first, last, duration, 1, gpus)


def priced_task(instance: GangInstance, job: int, kind: str, slots: int) -> GangTask:
    """All of a job, with slots enough to run after the first `slots`."""
    task = whole_task(instance, job, kind)
    return task._replace(last=max(slots, task.first - 1) + task.fastest)


def gang_sets(
    instance: GangInstance, formulation: str, commitments: Commitments,
    incumbent: GangSolution | None, policy: ScenarioPolicy | None = None,
) -> GangSets:  # fmt: skip
    """Open jobs with the slots that they may need.

    All rows of locked jobs are fixed, of jobs in one piece that have begun, and what others held
    before ``now``. Nothing worse than `incumbent` is looked at; until the last arrival in any of
    its futures a policy (`policy`) may wait.
    """
    if instance.has_kinds:
        rule = "programs and replanning know GPUs of one kind: prices, search and policies more"
        raise InputError("servers", f"{len(instance.gpu_kinds)} kinds", rule)
    kind, goal = split_formulation(formulation)
    fixed = _fixed(instance, formulation, commitments)
    tasks = []
    for job in range(len(instance.jobs)):
        if fixed.completions[job] < 0:
            left = int(fixed.work[job] - fixed.work_done[job])
            task = whole_task(instance, job, kind)
            tasks.append(task._replace(first=max(task.first, commitments.now), work=left))
    held_until = int(fixed.rows.end.max(initial=0))
    ready = max([held_until, *(task.first - 1 for task in tasks)], default=held_until)
    if policy is not None:
        ready = max(ready, policy.last_arrival - 1)
    serial = [-(-task.work * task.gpus // int(instance.job_gpus[task.job])) for task in tasks]
    last = ready + sum(serial)
    if incumbent is not None:
        known = int(incumbent.completions.max(initial=0))
        last = known if goal == "makespan" else max(last, known)
    latest = [last] * len(tasks)
    worst = None if policy is None else policy.worst_cost
    if goal == "completion" and (policy is None or worst is not None):
        weights, below = instance.exact_weights
        weight = [weights[task.job] for task in tasks]
        submit = [int(instance.submits[task.job]) for task in tasks]
        earliest = [task.first - 1 + task.fastest for task in tasks]
        if worst is not None:
            most = int(Fraction(worst) * below / exactly(instance.slot_seconds))
        else:
            ends = _serial_ends(serial, weight, ready)
            if incumbent is not None:
                ends = [int(incumbent.completions[task.job]) for task in tasks]
            most = sum(w * (end - s) for w, end, s in zip(weight, ends, submit, strict=True))
        least = sum(w * (end - s) for w, end, s in zip(weight, earliest, submit, strict=True))
        spare = max(0, most - least)
        latest = [min(last, end + spare // w) for w, end in zip(weight, earliest, strict=True)]
    done = tuple(task._replace(last=end) for task, end in zip(tasks, latest, strict=True))
    return GangSets(done, fixed, max([held_until, *latest]))


def _fixed(instance: GangInstance, formulation: str, commitments: Commitments) -> GangSolution:
    kind, _ = split_formulation(formulation)
    rows = {}
    for job in instance.jobs:
        held = commitments.history(job.name)
        if job.name in commitments.locked or (held and kind == KINDS[0]):
            held = list(commitments.assignments.get(job.name, ()))
        if held:
            rows[job.name] = held
    fixed = GangSolution.from_assignments(instance, rows, formulation)
    for job, end in zip(instance.jobs, fixed.completions.tolist(), strict=True):
        if end < 0 and (job.name in commitments.locked or (job.name in rows and kind == KINDS[0])):
            raise InputError("commitments", job.name, "must complete a job that cannot be changed")
    return fixed


def _serial_ends(serial: Sequence[int], weight: Sequence[int], ready: int) -> list[int]:
    """Completions when the jobs run one after another from `ready` on, the densest first."""
    order = sorted(range(len(serial)), key=lambda i: serial[i] / weight[i])
    ends = dict(zip(order, accumulate((serial[i] for i in order), initial=ready), strict=False))
    return [ends[i] + serial[i] for i in range(len(serial))]
