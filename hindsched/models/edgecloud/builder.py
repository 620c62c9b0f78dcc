"""What both edgecloud programs set up alike: windows, zeta, the unfinished slots, the objective."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from hindsched.instances.edgecloud.instance import EdgecloudInstance
from hindsched.models import algebra as pyo
from hindsched.models.algebra import Expr, Model
from hindsched.models.edgecloud.side_rows import may_wait_in_cloud
from hindsched.models.sums import Terms, consecutive, sum_rows, variable, weighted
from hindsched.solutions.edgecloud.frozen_schedule import Past


class ProgramBuilder(ABC):
    """Builds a program of problem (2) over the open jobs of a past.

    Parameters
    ----------
    instance : EdgecloudInstance
        The instance.
    past : Past
        What is fixed.
    last : dict of int to int
        Last slot in which each open job may have to run.
    relax : bool
        Drop integrality.
    edge_ps_only : bool
        Ask for an edge PS in every slot in which a job uses an edge worker.

    Attributes
    ----------
    name : str
        Name of the program.
    """

    name: ClassVar[str]

    def __init__(
        self,
        instance: EdgecloudInstance,
        past: Past,
        last: dict[int, int],
        relax: bool,
        edge_ps_only: bool,
    ) -> None:
        self.instance, self.past, self.last = instance, past, last
        self.relax, self.edge_ps_only = relax, edge_ps_only
        self.jobs = past.open_jobs
        self.edge = instance.edge_slots.tolist()
        self.all_cloud = instance.cloud_slots.tolist()
        self.arrival = instance.arrivals.tolist()
        self.chunks = instance.chunks.tolist()
        self.upload = {j: instance.upload[j].tolist() for j in self.jobs}
        self.at_cloud = {
            j: max(past.now, self.arrival[j] + int(instance.cloud_upload[j])) for j in self.jobs
        }
        self.finite = {j: may_wait_in_cloud(instance, j) for j in self.jobs}
        self.binary = pyo.UnitInterval if relax else pyo.Binary
        self.whole = pyo.NonNegativeReals if relax else pyo.NonNegativeIntegers
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Read what the formulation needs further of the instance."""

    def build(self) -> pyo.ConcreteModel:
        """The whole program."""
        m = pyo.ConcreteModel(self.name)
        self.variables(m)
        self.zeta_and_unfinished(m)
        self.constraints(m)
        ends = {j: self.known_until[j] for j in self.jobs}
        for run in self.past.rows:  # a locked job's time is decided
            if run.job not in self.known_until:
                ends[run.job] = max(ends.get(run.job, 0), run.last)
        constant = sum(end - self.arrival[j] + 1 for j, end in ends.items())
        m.objective = pyo.Objective(
            expr=weighted(m.C) + float(constant),
            doc="(2) total completion time of the jobs",
        )
        return m

    @abstractmethod
    def variables(self, m: Model) -> None:
        """The variables that say what runs."""

    @abstractmethod
    def constraints(self, m: Model) -> None:
        """All constraints but the order of the unfinished slots."""

    @abstractmethod
    def known_unfinished(self, j: int) -> int:
        """Last slot in which job j is unfinished whatever is done."""

    def first_slot(self, j: int, server: int) -> int:
        """First slot in which job j may run on a server (2i)."""
        found: int = max(self.past.now, self.arrival[j] + self.upload[j][server])
        return found

    def zeta_and_unfinished(self, m: Model) -> None:
        """Zeta, where it is not decided yet (2g), (2h), and C with its order (2j)."""
        m.zeta = pyo.Var(
            self.jobs, domain=self.binary, doc="(2g) the whole job, with its PS, is in the cloud"
        )
        for j in self.jobs:
            job = self.instance.jobs[j]
            closed = not self.instance.has_cloud(job) or self.instance.cloud_ps(job.ps_type) == 0
            if closed or j in self.past.on_edge:
                m.zeta[j].fix(0)
        self.known_until = {j: self.known_unfinished(j) for j in self.jobs}
        m.C = variable(
            [(j, t) for j in self.jobs for t in range(self.known_until[j] + 1, self.last[j] + 1)],
            self.binary,
            "(2j) the job is unfinished in this slot",
        )
        self.first_c = dict[int, int]()  # position of each job's first C
        self.num_c = dict[int, int]()
        pairs, before = list[tuple[int, int]](), list[int]()
        position = 0
        for j in self.jobs:
            self.first_c[j] = position
            slots = range(self.known_until[j] + 1, self.last[j])
            pairs += [(j, t) for t in slots]
            before += range(position, position + len(slots))
            self.num_c[j] = max(0, self.last[j] - self.known_until[j])
            position += self.num_c[j]
        row, c = np.arange(len(pairs)), np.array(before, dtype=np.int64)
        ones = np.ones(len(pairs))
        m.eq_2j_order = sum_rows(
            pairs, [Terms(m.C, row, c, ones), Terms(m.C, row, c + 1, -ones)], ">=", 0.0,
            "(2j) what is unfinished was so before",
        )  # fmt: skip

    def job_time(self, m: Model, j: int) -> Expr:
        """Completion - arrival + 1 as an expression (2j)."""
        slots = range(self.known_until[j] + 1, self.last[j] + 1)
        constant = self.known_until[j] - self.arrival[j] + 1
        return constant + consecutive(m.C, [(j, t) for t in slots], self.first_c[j])

    def unfinished_at(self, m: Model, j: int, slot: int, share: Expr) -> Expr:
        """Job j is unfinished in `slot` if `share` (at most 1) is 1."""
        if slot > self.last[j]:
            return share <= 0
        if slot <= self.known_until[j]:
            return pyo.Constraint.Skip
        first = self.first_c[j] + slot - self.known_until[j] - 1
        return consecutive(m.C, [(j, slot)], first) >= share
