"""P_f (9), the offline relaxation, by HiGHS.

With the paper's big-M bill the slots and jobs hang together in one program; with the chord of the
concave price (the envelope that M of each row's own gives) they fall apart into one program a job.
"""

from __future__ import annotations

from hindsched.errors import SolveFailed
from hindsched.instances.mlbroker.instance import MlbrokerInstance
from hindsched.models.mlbroker.convex import Price
from hindsched.models.mlbroker.offline import build_chord, build_offline
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program


def relaxation_bound(
    instance: MlbrokerInstance,
    price: Price = "chord",
    *,
    kind: str = "symmetric",
    factor: float = 1.0,
    time_limit: float | None = None,
) -> float:
    """Optimum of P_f, weighted USD: a lower bound on every schedule's realised cost.

    Parameters
    ----------
    instance : MlbrokerInstance
        The instance.
    price : {"chord", "paper"}
        Envelope of the concave price, one program a job, or the relaxed big-M bill.
    kind, factor
        M of the paper's form, see `big_m`. A `kind` of ``loose`` gives a bound near 0.
    time_limit : float, optional
        Seconds for each program.

    Raises
    ------
    SolveFailed
        If a program is not solved to optimality.
    """
    if price == "paper":
        whole = build_offline(instance, "paper", relax=True, kind=kind, factor=factor)
        models = [whole.model]
    else:
        models = [build_chord(instance, j) for j in range(len(instance.jobs))]
    total = 0.0
    for model in models:
        found = solve_program(model, SolveOptions(time_limit=time_limit))
        if found.bound is None or not found.has_point:
            raise SolveFailed(f"P_f of {instance.name}: {found.status}, {found.stopped_by}")
        total += found.bound
    return total
