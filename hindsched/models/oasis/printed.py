"""One oasis job as the paper prints it: (2), (3), (6)-(10), one rule an equation number.

=============  =====================================  ============  =====================
paper          meaning                                here          indices
=============  =====================================  ============  =====================
``x_i``        the job is admitted                    ``x``
``y_ih(t)``    workers on a server                    ``y``         worker server, slot
``z_ik(t)``    PSs on a server                        ``z``         PS server, slot
``t_i``        the slot in which the job ends (8)     ``u``         end: 1 where it is
=============  =====================================  ============  =====================

(8) is the only equation that is no linear one: the largest t with a worker. With one binary for
each slot it reads: one end if the job is admitted, no worker after it, a worker in it.
"""

from __future__ import annotations

import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.models.algebra import Expr, Model
from hindsched.models.oasis.block import Domains, add_totals
from hindsched.models.oasis.sets import JobSets


def add_printed_job(b: Model, job: JobSets, H: range, K: range, domains: Domains) -> None:
    """Fill a block with a job's variables and rules, on all servers H and K in every slot."""
    T, before = range(1, job.horizon + 1), range(1, job.first)
    after = range(job.first, job.horizon + 1)
    b.x = pyo.Var(domain=domains.choice, doc="(11) the job is admitted")
    b.y = pyo.Var(H, T, domain=domains.count, doc="(12) workers of a job")
    b.z = pyo.Var(K, T, domain=domains.count, doc="(13) parameter servers of a job")
    b.u = pyo.Var(after, domain=domains.choice, doc="(8) the job ends in this slot")
    b.admitted = pyo.Expression(expr=b.x)
    b.utility = pyo.Expression(expr=total(job.utilities[e] * b.u[e] for e in after))
    add_totals(b, job.horizon)

    @b.Constraint(doc="(2) an admitted job does its work")
    def eq_2(b: Model) -> Expr:
        return total(b.workers[t] for t in T) >= job.work * b.x

    @b.Constraint(after, doc="(3) no more workers at once than chunks")
    def eq_3(b: Model, t: int) -> Expr:
        return b.workers[t] <= job.chunks * b.x

    @b.Constraint(T, doc="(6) the PSs have bandwidth for all workers")
    def eq_6(b: Model, t: int) -> Expr:
        return job.ps_per_worker * b.workers[t] <= b.servers[t]

    @b.Constraint(T, doc="(7) no more PSs than workers")
    def eq_7(b: Model, t: int) -> Expr:
        return b.servers[t] <= b.workers[t]

    @b.Constraint(doc="(8) an admitted job has one completion slot")
    def eq_8_one(b: Model) -> Expr:
        return total(b.u[e] for e in after) == b.x

    @b.Constraint(after, doc="(8) no worker after the completion slot")
    def eq_8_none_after(b: Model, t: int) -> Expr:
        return b.workers[t] <= job.chunks * total(b.u[e] for e in after if e >= t)

    @b.Constraint(after, doc="(8) a worker in the completion slot")
    def eq_8_busy(b: Model, e: int) -> Expr:
        return b.u[e] <= b.workers[e]

    @b.Constraint(H, before, doc="(9) no worker before the arrival")
    def eq_9(b: Model, h: int, t: int) -> Expr:
        return b.y[h, t] == 0

    @b.Constraint(K, before, doc="(10) no PS before the arrival")
    def eq_10(b: Model, k: int, t: int) -> Expr:
        return b.z[k, t] == 0
