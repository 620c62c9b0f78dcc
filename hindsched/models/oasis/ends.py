"""The program that decides who is admitted and when each job ends, and nothing else.

==============  ==================================================  ==================
symbol          meaning                                             indices
==============  ==================================================  ==================
``u``           the job ends in this slot                           job, end
``y``, ``z``    workers and parameter servers (PSs), fractional     job, group, slot
``done``        workers up to and with this slot                    job, slot
``ended``       share of the job that has ended by this slot        job, slot
``workers``     a block: patterns that the groups of servers run    group, slot
``ps``          the same of PSs
==============  ==================================================  ==================

A relaxation of (1)-(13): servers are added up in groups of identical ones, and counts are
fractional, but lie in the convex hull of what each small server can hold (`patterns.py`), and whole
PSs serve whole workers as far as a convex function can say it. Its optimum is an upper bound, far
below the linear relaxation's, and mostly attained: `leaf.py` decides whether.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo

from hindsched.arrays import Floats
from hindsched.instances.decimals import how_many_fit
from hindsched.instances.oasis.instance import OasisInstance, OasisJob
from hindsched.models.oasis.patterns import ServerGroups, patterns_by_slot, run_patterns
from hindsched.models.oasis.rounding import lines_below
from hindsched.solutions.oasis.solution import OasisSolution

MERGE_TOLERANCE = 1e-12
"""Ends whose utilities differ by less, relative to the best, are one: the last slot, the largest
utility, so that a bound stays a bound."""
Ends = dict[int, int]
"""Latest end slot by the position of each admitted job."""


@dataclass(frozen=True)
class _Job:
    """A job's facts: worker-slots of work, most workers, room by group, utility by end."""

    work: int
    most: int
    slots: range
    utility: dict[int, float]
    worker_room: dict[int, int]
    ps_room: dict[int, int]
    ps_per_worker: float
    lines: list[tuple[float, float]]

    def ends_by(self, slot: int) -> list[int]:
        """Ends up to and with a slot."""
        return [end for end in self.utility if end <= slot]

    @classmethod
    def of(
        cls, instance: OasisInstance, index: int, workers: ServerGroups, ps: ServerGroups
    ) -> _Job:
        job: OasisJob = instance.jobs[index]
        needed = instance.ps_needed_up_to(job, job.chunks)
        rooms = [
            how_many_fit(groups.capacity, demand[index], most) * [len(g) for g in groups.members]
            for groups, demand, most in (
                (workers, instance.worker_demand, job.chunks),
                (ps, instance.ps_demand, max(1, int(needed[-1]))),
            )
        ]
        most, work = instance.most_workers(job), instance.work_of(job)
        utilities = instance.utilities(job)
        first = job.arrival + (-(-work // most) if most else instance.horizon) - 1
        return cls(
            work=work,
            most=most,
            slots=range(job.arrival, instance.horizon + 1),
            utility=_merged(utilities.tolist(), first),
            worker_room={g: int(n) for g, n in enumerate(rooms[0]) if n > 0},
            ps_room={k: int(n) for k, n in enumerate(rooms[1]) if n > 0},
            ps_per_worker=instance.ps_per_worker(job),
            lines=lines_below(needed[: most + 1]),
        )


def _merged(utilities: list[float], first: int) -> dict[int, float]:
    """Utility by end from a first one on; ends of the same utility are merged into their last."""
    kept: dict[int, float] = {}
    for end in range(first, len(utilities)):
        last = max(kept, default=0)
        if kept and kept[last] - utilities[end] <= MERGE_TOLERANCE * abs(utilities[first]):
            kept[end] = kept.pop(last)
        else:
            kept[end] = utilities[end]
    return kept


@dataclass(frozen=True)
class EndsProgram:
    """The program of the ends, with an empty list ``conflicts`` for cuts.

    Parameters
    ----------
    instance : OasisInstance
        The instance.
    model : ConcreteModel
        See the table above.
    jobs : dict
        Facts of the jobs that can end in time, by position.
    workers, ps : ServerGroups
        Servers of either role.
    """

    instance: OasisInstance
    model: Any
    jobs: dict[int, _Job]
    workers: ServerGroups
    ps: ServerGroups

    def load(self, solution: OasisSolution) -> None:
        """Set the variables from a feasible solution; workers beyond a job's work are dropped."""
        m = self.model
        for variables, counts, groups in (
            (m.y, solution.workers, self.workers),
            (m.z, solution.ps, self.ps),
        ):
            for (i, group, t), variable in variables.items():
                own = counts.get(self.instance.jobs[i].name)
                placed = 0 if own is None else int(own[t - 1, groups.members[group]].sum())
                variable.set_value(placed)
        for i, job in self.jobs.items():
            completion = solution.completion(self.instance.jobs[i].name)
            end = min((e for e in job.utility if completion and e >= completion), default=None)
            done = 0
            for e in job.utility:
                m.u[i, e].set_value(int(e == end))
            for t in job.slots:
                done += sum(m.y[i, g, t].value for g in job.worker_room)
                m.done[i, t].set_value(min(done, job.work))
                m.ended[i, t].set_value(int(end is not None and end <= t))

    def promised(self) -> Ends:
        """Admitted jobs and their ends at the program's present point."""
        return {i: e for (i, e), chosen in self.model.u.items() if round(chosen.value or 0.0) == 1}

    def last(self) -> Ends:
        """The last end of each job."""
        return {i: max(job.utility) for i, job in self.jobs.items()}

    def forbid(self, conflict: Ends) -> None:
        """Forbid promises together: sum over jobs i, ends e <= E_i of u_ie <= number - 1."""
        u = self.model.u
        kept = [u[i, e] for i, latest in conflict.items() for e in self.jobs[i].ends_by(latest)]
        self.model.conflicts.add(sum(kept) <= len(conflict) - 1)


def build_ends_program(instance: OasisInstance) -> EndsProgram:
    """Build the program of the ends.

    Parameters
    ----------
    instance : OasisInstance
        The instance.
    """
    worker_groups = ServerGroups.of(instance.worker_capacity)
    ps_groups = ServerGroups.of(instance.ps_capacity)
    jobs = {i: _Job.of(instance, i, worker_groups, ps_groups) for i in range(len(instance.jobs))}
    jobs = {i: job for i, job in jobs.items() if job.utility}
    m = pyo.ConcreteModel(name=f"ends of {instance.name}")
    cells = [(i, t) for i, job in jobs.items() for t in job.slots]
    m.u = pyo.Var(
        [(i, e) for i, job in jobs.items() for e in job.utility],
        domain=pyo.Binary,
        doc="(11) the job ends in this slot",
    )
    m.y = pyo.Var(
        [(i, g, t) for i, t in cells for g in jobs[i].worker_room],
        bounds=lambda _, i, g, t: (0, jobs[i].worker_room[g]),
        doc="(12) workers of a job",
    )
    m.z = pyo.Var(
        [(i, k, t) for i, t in cells for k in jobs[i].ps_room],
        bounds=lambda _, i, k, t: (0, jobs[i].ps_room[k]),
        doc="(13) parameter servers of a job",
    )
    m.done = pyo.Var(cells, bounds=lambda _, i, t: (0, jobs[i].work), doc="(ours) work done")
    m.ended = pyo.Var(cells, bounds=(0, 1), doc="(ours) share that has ended")
    workers = {(i, t): sum((m.y[i, g, t] for g in jobs[i].worker_room), 0.0) for i, t in cells}
    ps = {(i, t): sum((m.z[i, k, t] for k in jobs[i].ps_room), 0.0) for i, t in cells}
    admitted = {i: sum(m.u[i, e] for e in job.utility) for i, job in jobs.items()}

    def running(i: int, t: int) -> Any:
        """Share of a job that is admitted and has not ended before a slot."""
        return admitted[i] - (m.ended[i, t - 1] if t > jobs[i].slots[0] else 0.0)

    m.eq_1 = pyo.Objective(
        expr=sum((f * m.u[i, e] for i, job in jobs.items() for e, f in job.utility.items()), 0.0),
        sense=pyo.maximize,
        doc="(1) utility of the admitted jobs",
    )

    @m.Constraint(cells, doc="(2) the work done, slot by slot")
    def eq_2_sum(m: Any, i: int, t: int) -> Any:
        before = m.done[i, t - 1] if t > jobs[i].slots[0] else 0.0
        return m.done[i, t] == before + workers[i, t]

    @m.Constraint(cells, doc="(2) what has ended has done its work")
    def eq_2(m: Any, i: int, t: int) -> Any:
        return m.done[i, t] >= jobs[i].work * m.ended[i, t]

    @m.Constraint(cells, doc="(3) no more workers at once than chunks, none after the end")
    def eq_3(m: Any, i: int, t: int) -> Any:
        return workers[i, t] <= jobs[i].most * running(i, t)

    m.eq_4 = _capacity(m.y, worker_groups, instance.worker_demand, "(4) workers within servers")
    m.eq_5 = _capacity(m.z, ps_groups, instance.ps_demand, "(5) PSs within servers")

    @m.Constraint(cells, doc="(6) the PSs have bandwidth for all workers")
    def eq_6(m: Any, i: int, t: int) -> Any:
        return ps[i, t] - jobs[i].ps_per_worker * workers[i, t] >= 0

    @m.Constraint(
        [(i, t, n) for i, t in cells for n in range(len(jobs[i].lines))],
        doc="(6) whole PSs serve whole workers; after its end a job needs none",
    )
    def eq_6_whole(m: Any, i: int, t: int, n: int) -> Any:
        slope, at_none = jobs[i].lines[n]
        return ps[i, t] - slope * workers[i, t] - at_none * running(i, t) >= 0

    @m.Constraint(cells, doc="(7) no more PSs than workers")
    def eq_7(m: Any, i: int, t: int) -> Any:
        return ps[i, t] - workers[i, t] <= 0

    @m.Constraint(cells, doc="(8) the share that has ended, slot by slot")
    def eq_8(m: Any, i: int, t: int) -> Any:
        before = m.ended[i, t - 1] if t > jobs[i].slots[0] else 0.0
        return m.ended[i, t] == before + (m.u[i, t] if t in jobs[i].utility else 0.0)

    @m.Constraint(list(jobs), doc="(11) the job runs at most once")
    def eq_11(m: Any, i: int) -> Any:
        return admitted[i] <= 1

    for name, counts, groups, demand in (
        ("workers", m.y, worker_groups, instance.worker_demand),
        ("ps", m.z, ps_groups, instance.ps_demand),
    ):
        m.add_component(name, pyo.Block())
        _pack(m.component(name), counts, groups, demand, instance)
    m.conflicts = pyo.ConstraintList(doc="(ours) promises that no schedule keeps together")
    return EndsProgram(instance, m, jobs, worker_groups, ps_groups)


def _capacity(counts: Any, groups: ServerGroups, demand: Floats, doc: str) -> Any:
    """(4) or (5), added up over the servers of a group and scaled by what one of them has."""
    used: dict[tuple[int, int, int], list[Any]] = {}
    for (i, group, t), count in counts.items():
        for r in np.flatnonzero(demand[i]).tolist():
            share = float(demand[i, r] / groups.capacity[group, r])
            used.setdefault((group, r, t), []).append(share * count)
    return pyo.Constraint(
        list(used),
        rule=lambda _, group, r, t: sum(used[group, r, t]) <= len(groups.members[group]),
        doc=doc,
    )


def _pack(
    block: Any, counts: Any, groups: ServerGroups, demand: Floats, instance: OasisInstance
) -> None:
    """Counts within the hull of the patterns, where several jobs may share a group's servers."""
    chunks = [job.chunks for job in instance.jobs]
    able: dict[tuple[int, int], list[int]] = {}
    for i, group, t in counts:
        able.setdefault((group, t), []).append(i)
    patterns = patterns_by_slot(
        groups, demand, chunks, range(1, instance.horizon + 1),
        lambda group, t: tuple(able.get((group, t), ())), least_jobs=2,
    )  # fmt: skip
    run_patterns(block, patterns, pyo.NonNegativeReals)

    @block.Constraint(list(block.held), doc="(ours) counts that the servers of a group can hold")
    def packed(b: Any, i: int, group: int, t: int) -> Any:
        return counts[i, group, t] <= b.held[i, group, t]
