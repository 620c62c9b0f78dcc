"""The oasis family's offline program (1)-(13) in Pyomo.

The forms of the offline problem agree at integer points: ``printed`` has one constraint component
an equation number, server by server; ``strong`` and ``cumulative`` are aggregated over identical
servers and link the completion more tightly (`block.py`). A solution of an aggregated program
counts only once it is placed on real servers: until then its value is an upper bound.

==================  =====================================================  ======================
paper               here                                                   indices
==================  =====================================================  ======================
``x_i``             ``job[i].x`` (printed), ``job[i].admitted``            job
``y_ih(t)``         ``job[i].y``                                           pool, slot
``z_ik(t)``         ``job[i].z``                                           pool, slot
``t_i``             ``job[i].u``: 1 at the completion                      slot
(1)                 ``eq_1``                                               the objective
(2), (3), (6)-(10)  ``job[i].eq_2``, ..., ``job[i].eq_10``                 see `block.py`
(4), (5)            ``eq_4``, ``eq_5``, scaled by one server's capacity    pool, resource, slot
(11)-(13)           the variables' domains
(27), (30), (31)    ``eq_27``, ``eq_30``, ``eq_31``: `subproblem.py`       server, slot
==================  =====================================================  ======================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from hindsched.arrays import Floats, Ints
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models import algebra as pyo
from hindsched.models.algebra import Expr, Model, Variable
from hindsched.models.base import Commitments, Duals, OfflineProgram, choose_form
from hindsched.models.oasis.block import FORMS as WRITINGS
from hindsched.models.oasis.block import Deployment, Domains, Form, add_job
from hindsched.models.oasis.program import Parts, Pools, plan_program
from hindsched.models.oasis.reading import load_block, placed_counts, read_counts, wanted_counts
from hindsched.models.oasis.subproblem import build_subproblem
from hindsched.models.oasis.symbols import SYMBOLS, OasisNames
from hindsched.models.sums import Uses, gather, row_prices, sum_rows
from hindsched.solutions.oasis.solution import OasisSolution

__all__ = ["FORMS", "ON_SERVERS", "OasisProgram", "build_offline", "build_subproblem"]

STRONG_SIZE = 60_000
RELAXED_STRONG_SIZE = 6_000
"""Triples (job, end, slot) up to which the strong form is the default, and in a relaxation: its
program takes the simplex method far longer than the cumulative one, whose bound is nearly as good.
"""


FORMS: dict[str, tuple[Form, ...]] = {"standard": WRITINGS}
ON_SERVERS = {"aggregate": False}


@dataclass(kw_only=True, eq=False, repr=False)
class OasisProgram(OasisNames, OfflineProgram[OasisSolution]):
    """The offline program (1)-(13).

    Parameters
    ----------
    parts : Parts
        Pools of servers and jobs.
    """

    SYMBOLS = SYMBOLS
    OBJECTIVE_UNIT = "utility"

    instance: OasisInstance
    parts: Parts

    def block(self, job: int) -> Model:
        """The Pyomo block of an open job, by the job's position."""
        return self.model.job[job]

    def load(self, solution: OasisSolution) -> None:
        """Set the variables from a feasible solution that keeps the program's commitments.

        Forms other than the printed one do exactly the work of a job: workers beyond it are dropped
        from the end.
        """
        for index, facts in self.parts.open_jobs.items():
            job, block = self.instance.jobs[index], self.block(index)
            admitted = solution.completion(job.name) is not None
            if self.form == "printed":
                end = solution.completion(job.name)
                block.x.set_value(int(admitted))
                for e in block.u:
                    block.u[e].set_value(int(e == end))
                counts = wanted_counts(self.instance, job, solution, None)
            else:
                counts = wanted_counts(self.instance, job, solution, facts)
                load_block(block, self.form, counts[0].sum(axis=1))
            for variable, placed, pools in (
                (block.y, counts[0], self.parts.worker_pools),
                (block.z, counts[1], self.parts.ps_pools),
            ):
                for (pool, slot), var in variable.items():
                    var.set_value(int(placed[slot - 1, pools.members[pool]].sum()))

    def extract(self) -> OasisSolution | None:
        """Read the solution at the variables' values; None if it could not be placed on servers.

        Jobs whose ``admitted`` rounds to 0 are left out. The result is checked by the caller with
        ``violations()``.
        """
        instance = self.instance
        workers, ps = {}, {}
        open_jobs = []
        for job in self.parts.jobs:
            name = instance.jobs[job.index].name
            if job.facts is None:
                if job.utility != 0 or job.history[0].sum() >= instance.work[job.index]:
                    workers[name], ps[name] = job.history
            elif round(pyo.value(self.block(job.index).admitted, exception=False) or 0) == 1:
                open_jobs.append(job)
        if self.form == "printed":
            for job in open_jobs:
                block, name = self.block(job.index), instance.jobs[job.index].name
                workers[name] = read_counts(block.y, self.parts.worker_pools, instance.horizon).T
                ps[name] = read_counts(block.z, self.parts.ps_pools, instance.horizon).T
            return OasisSolution(instance, workers, ps, formulation=self.formulation)
        placed = placed_counts(
            instance, self.parts, {j.index: self.block(j.index) for j in open_jobs}
        )
        if placed is None:
            return None
        for position, job in enumerate(open_jobs):
            name = instance.jobs[job.index].name
            workers[name] = placed[0][position] + job.history[0]
            ps[name] = placed[1][position] + job.history[1]
        return OasisSolution(instance, workers, ps, formulation=self.formulation)

    def capacity_prices(self, duals: Duals) -> dict[str, Floats]:
        """Duals of (4) and (5): ``worker_capacity`` (H, R, T) and ``ps_capacity`` (K, R, T)."""
        instance = self.instance
        prices: dict[str, Floats] = {}
        for name, rows, pools, capacity in (
            ("worker_capacity", self.model.eq_4, self.parts.worker_pools, instance.worker_capacity),
            ("ps_capacity", self.model.eq_5, self.parts.ps_pools, instance.ps_capacity),
        ):
            array = prices[name] = np.zeros((*capacity.shape, instance.horizon))
            (pool, resource, slot), found = row_prices(rows, duals)
            if not found.any():
                continue
            scale = np.where(pools.capacity > 0, pools.capacity, 1.0)
            by_pool = np.zeros((len(pools.members), *array.shape[1:]))
            by_pool[pool, resource, slot - 1] = found / scale[pool, resource]
            for number, members in enumerate(pools.members):
                array[members] = by_pool[number]
        return prices


def build_offline(
    instance: OasisInstance,
    formulation: str | None = None,
    *,
    form: Form | None = None,
    relax: bool = False,
    commitments: Commitments | None = None,
    incumbent: OasisSolution | None = None,
    aggregate: bool = True,
    domains: Domains | None = None,
) -> OasisProgram:
    """Build the offline program (1)-(13).

    Parameters
    ----------
    instance : OasisInstance
        The instance.
    formulation : str, optional
        The family has one.
    form : {"strong", "cumulative", "printed"}, optional
        See `block.py`; all have the same optimum. By default the strong form, or the cumulative
        one where the strong one would have more (job, end, slot) triples than `STRONG_SIZE`, or
        `RELAXED_STRONG_SIZE` in a relaxation.
    relax : bool
        The linear relaxation.
    commitments : Commitments, optional
        What can no longer be changed. A job that is neither locked nor rejected keeps what ran
        before `now` if it is admitted, and may still be given up.
    incumbent : OasisSolution, optional
        Not used: the horizon is hard.
    aggregate : bool
        Whether the forms other than the printed one add up identical servers; without it the
        program is larger, but every optimum is a solution.
    domains : Domains, optional
        Which variables are integer; by default all without `relax`, none with it.

    Returns
    -------
    OasisProgram
        Blocks ``job[i]``, linking rows ``eq_4`` and ``eq_5`` over (pool, resource, slot), each
        scaled by the capacity of one server, and the objective ``eq_1``.

    Examples
    --------
    >>> import hindsched as hs
    >>> program = build_offline(hs.generate("oasis", jobs=2, horizon=6), form="printed")
    >>> [part.name for part in program.components("constraint")][:2]
    ['eq_4', 'eq_5']
    """
    formulation, _ = choose_form(FORMS, instance.check_formulation(formulation), form)
    domains = domains or Domains(not relax, not relax)
    again = partial(
        build_offline, instance, formulation, relax=relax, commitments=commitments,
        form=form, aggregate=aggregate,
    )  # fmt: skip
    parts = plan_program(instance, commitments or Commitments(), form or "strong", aggregate)
    if form is None:
        size = sum(facts.size for facts in parts.open_jobs.values())
        form = "strong" if size <= (RELAXED_STRONG_SIZE if relax else STRONG_SIZE) else "cumulative"
    model = pyo.ConcreteModel(name=instance.name)
    model.job = pyo.Block(list(parts.open_jobs))
    deployed = {
        index: add_job(model.job[index], facts, form, domains, must_run=False)
        for index, facts in parts.open_jobs.items()
    }
    decided = float(sum(job.utility for job in parts.jobs))
    model.eq_1 = pyo.Objective(
        expr=pyo.quicksum([model.job[i].utility for i in parts.open_jobs]) + decided,
        sense=pyo.maximize,
        doc="(1) utility of the admitted jobs",
    )
    _add_capacity(model, instance, parts, deployed)
    if form == "printed":
        _add_history(model, parts)
    return OasisProgram(
        instance=instance, formulation=formulation, form=form, relaxed=relax, model=model,
        again=again, parts=parts,
    )  # fmt: skip


def _add_capacity(
    model: Model,
    instance: OasisInstance,
    parts: Parts,
    deployed: Mapping[int, Deployment],
) -> None:
    """(4) and (5): one row a (pool, resource, slot) that some job can use."""
    jobs = deployed.items()
    for name, uses, pools, doc in (
        ("eq_4",
         [(own.y, own.cells_of_y, instance.worker_demand[i]) for i, own in jobs],
         parts.worker_pools, "(4) workers within what their servers have"),
        ("eq_5",
         [(own.z, own.cells_of_z, instance.ps_demand[i]) for i, own in jobs],
         parts.ps_pools, "(5) PSs within what their servers have"),
    ):  # fmt: skip
        scale = np.where(pools.capacity > 0, pools.capacity, 1.0)
        keys, terms = gather([_use(*own, scale) for own in uses])
        pool, resource, slot = keys.T
        sides = _free(pools, scale)[pool, slot, resource]
        model.add_component(name, sum_rows(keys, terms, "<=", sides, doc))


def _use(variable: Variable, cells: Ints, demand: Floats, scale: Floats) -> Uses:
    """What a job uses of (pool, resource, slot), in units of one server's capacity."""
    used = np.flatnonzero(demand > 0)
    pool, slot = cells.T
    key = np.empty((len(cells), len(used), 3), dtype=np.int64)
    key[:, :, 0], key[:, :, 1], key[:, :, 2] = pool[:, None], used, slot[:, None]
    amount = demand[used] / scale[pool][:, used]
    element = np.arange(len(cells)).repeat(len(used))
    return Uses(variable, key.reshape(-1, 3), element, amount.ravel())


def _free(pools: Pools, scale: Floats) -> Floats:
    """What is free of (pool, slot, resource), in units of one server's capacity."""
    free: Floats = np.maximum(0.0, pools.free / scale[:, None, :])
    return free * pools.size[:, None, None]


def _add_history(model: Model, parts: Parts) -> None:
    """Printed form: before `now` an admitted job runs exactly what ran."""
    workers: dict[tuple[int, int, int], int] = {}
    ps: dict[tuple[int, int, int], int] = {}
    for job in parts.jobs:
        if job.facts is not None:
            for found, past in zip((workers, ps), job.history, strict=True):
                for (slot, server), count in np.ndenumerate(past):
                    if slot + 1 >= job.facts.first:
                        found[job.index, server, slot + 1] = int(count)

    @model.Constraint(list(workers), doc="(ours) workers that ran before this program")
    def worker_history(m: Model, i: int, server: int, slot: int) -> Expr:
        return m.job[i].y[server, slot] == workers[i, server, slot] * m.job[i].admitted

    @model.Constraint(list(ps), doc="(ours) PSs that ran before this program")
    def ps_history(m: Model, i: int, server: int, slot: int) -> Expr:
        return m.job[i].z[server, slot] == ps[i, server, slot] * m.job[i].admitted
