"""The placement problem (13)/(21): cheapest workers and PSs of one job in one fixed window.

============  =============================================  ===========
``y[h]``      workers on server h                            (13b), (13c)
``s[h]``      PSs on server h                                (13d), (13e)
``on[h]``     1 iff server h holds anything, for (13a)/(21a)
============  =============================================  ===========
"""

from __future__ import annotations

from collections.abc import Sequence

import pyomo.environ as pyo

Matrix = Sequence[Sequence[float]]


def build_placement(
    omega: Matrix,
    delta: Matrix,
    e: Sequence[float],
    b: float,
    N: int,
    distributed: bool,
    z: Sequence[float] | None = None,
    B: float = 1.0,
) -> pyo.ConcreteModel:
    """Build (13), or (21) without parameter servers.

    Parameters
    ----------
    omega : (servers, resources)
        What is free in every slot of the window.
    delta : (servers, resources)
        Window prices, the sum over its slots.
    e, z : (resources,)
        Demand of a worker and of a PS; `z` None for Ring-AllReduce.
    b, B : float
        Bandwidth of a worker and of a PS.
    N : int
        Number of workers that (13c) asks for.
    distributed : bool
        q = 0 (at least two servers) or q = 1 (exactly one).
    """
    H, R = range(len(omega)), range(len(e))
    model = pyo.ConcreteModel()
    model.y = pyo.Var(H, within=pyo.NonNegativeIntegers, bounds=(0, N))
    model.on = pyo.Var(H, within=pyo.Binary)
    most = dict.fromkeys(H, 0)
    if z is not None:
        most = {h: min(int(omega[h][r] / z[r] + 1e-9) for r in R if z[r] > 0) for h in H}
    model.s = pyo.Var(H, within=pyo.NonNegativeIntegers, bounds=lambda _, h: (0, most[h]))
    model.holds_ps = pyo.Var(H, within=pyo.Binary)
    model.eq_13a = pyo.ConstraintList(doc="q")
    model.eq_13c = pyo.Constraint(expr=pyo.quicksum(model.y[h] for h in H) == N)
    model.eq_13d = pyo.ConstraintList(doc="bandwidth of the PSs")
    model.eq_2h = pyo.ConstraintList(doc="capacity")
    cost = []
    for h in H:
        model.eq_13a.add(model.y[h] <= N * model.on[h])
        model.eq_13a.add(model.s[h] <= most[h] * model.on[h])
        model.eq_13a.add(model.on[h] <= model.y[h] + model.s[h])
        model.eq_13d.add(model.s[h] <= most[h] * model.holds_ps[h])
        elsewhere = pyo.quicksum(model.y[k] for k in H if k != h)
        model.eq_13d.add(b * elsewhere <= B * model.s[h] + b * N * (1 - model.holds_ps[h]))
        for r in R:
            used = e[r] * model.y[h] + (z[r] * model.s[h] if z is not None else 0)
            model.eq_2h.add(used <= omega[h][r])
            cost.append(delta[h][r] * used)
    used_servers = pyo.quicksum(model.on[h] for h in H)
    model.eq_13a.add(used_servers >= 2 if distributed else used_servers == 1)
    if z is not None:
        model.eq_13e = pyo.Constraint(expr=pyo.quicksum(model.s[h] for h in H) >= 1)
    model.objective = pyo.Objective(expr=pyo.quicksum(cost), sense=pyo.minimize)
    return model
