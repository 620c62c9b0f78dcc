"""The dual (19), (20) of the oasis family's schedule program (14)-(18).

=========================  ==========================================  ======================
paper                      meaning                                     here
=========================  ==========================================  ======================
``mu_i``                   payoff of a job                             ``mu[i]``
``p_h^r(t)``               price of all that a worker server has       ``p[h, r, t]``
``q_k^r(t)``               price of all that a PS server has           ``q[k, r, t]``
``l`` in ``L_i``           a schedule of a job                         ``eq_20[i, l]``
=========================  ==========================================  ======================

The program begins without a row of (20); rows are added as best responses break them (row
generation). With the rows of all schedules of all jobs the optimum is that of the linear relaxation
of (14); with fewer it is a lower bound on it.
"""

from __future__ import annotations

from dataclasses import dataclass

from hindsched.instances.oasis.instance import OasisInstance
from hindsched.models.declared import symbols
from hindsched.models.schedule_dual import Priced, ScheduleDual, schedule_dual


@dataclass(kw_only=True, eq=False, repr=False)
class OasisDual(ScheduleDual):
    """(19) with the rows (20) of the schedules known so far."""

    SYMBOLS = symbols(
        """job: mu; worker server, resource, slot: p; PS server, resource, slot: q;
        job, schedule: eq_20""",
        "utility: mu; utility a server's whole capacity: p q; share of the schedule: eq_20",
    )

    instance: OasisInstance
    grows: bool = True

    def name_of(self, index: str, place: int) -> str | None:
        instance = self.instance
        if index == "resource":
            return instance.resources[place]
        if index == "worker server":
            return instance.worker_servers[place].name
        return instance.ps_servers[place].name if index == "PS server" else None


def build_dual(instance: OasisInstance, formulation: str) -> OasisDual:
    """Build (19), without a row of (20); a price is of all that a server has."""
    workers, ps = instance.worker_capacity, instance.ps_capacity
    priced = {
        "worker_capacity": Priced("p", "a worker server's resource", workers, workers),
        "ps_capacity": Priced("q", "a PS server's resource", ps, ps),
    }
    made: OasisDual = schedule_dual(
        OasisDual, instance, "19", "20", "mu", priced, instance.horizon,
        formulation=formulation, whose="dual (19) of (14), the choice of schedules,",
    )  # fmt: skip
    return made
