"""The placement problems (13) and (21): cheapest workers (and PSs) of a job in one fixed window.

=============  ==============================================================================
``y[h]``       workers on server h
``s[h]``       PSs on server h                                             (13) only
``on[h]``      1 iff server h holds anything, for q of (13a)/(21a)
``is_host[h]`` 1 iff server h holds a PS, for "all h: s > 0" of (13d)      (13) only
=============  ==============================================================================

q is given: `distributed` or not. (21c) is no constraint here: the window's length and the number of
workers that (21b) fixes satisfy it or not. The sentence of Section 5.2 that (13d) "is satisfied
naturally, since the RHS is zero" holds for q = 1 only.
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
    D: int | None = None,
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
        Least number of workers (13c); their exact number Phi' in (21b).
    distributed : bool
        q = 0 (at least two servers) or q = 1 (exactly one).
    D : int, optional
        Most workers (13b); by default N.
    """
    H, R = range(len(omega)), range(len(e))
    most_workers = N if D is None or z is None else D
    model = pyo.ConcreteModel()
    model.y = pyo.Var(H, within=pyo.NonNegativeIntegers, bounds=(0, most_workers))
    model.on = pyo.Var(H, within=pyo.Binary)
    one_server = pyo.ConstraintList(doc="q = 1 iff one server holds everything")
    workers = pyo.quicksum(model.y[h] for h in H)
    if z is None:
        model.eq_21a = one_server
        model.eq_21b = pyo.Constraint(expr=workers == N)
    else:
        model.eq_13a = one_server
        model.eq_13b = pyo.Constraint(expr=workers <= most_workers)
        model.eq_13c = pyo.Constraint(expr=workers >= N)
        _parameter_servers(model, omega, z, b, B, most_workers)
    capacity = pyo.ConstraintList(doc="capacity")
    setattr(model, "eq_15b" if z is None else "eq_2h", capacity)
    cost = []
    for h in H:
        ps = 0 if z is None else model.s[h]
        one_server.add(model.y[h] <= most_workers * model.on[h])
        one_server.add(model.on[h] <= model.y[h] + ps)
        for r in R:
            used = e[r] * model.y[h] + (0 if z is None else z[r] * ps)
            if e[r] or (z is not None and z[r]):
                capacity.add(used <= omega[h][r])
                cost.append(delta[h][r] * used)
    servers = pyo.quicksum(model.on[h] for h in H)
    one_server.add(servers >= 2 if distributed else servers == 1)
    model.objective = pyo.Objective(expr=pyo.quicksum(cost), sense=pyo.minimize)
    return model


def _parameter_servers(
    model: pyo.ConcreteModel,
    omega: Matrix,
    z: Sequence[float],
    b: float,
    B: float,
    most_workers: int,
) -> None:
    """Add s, its part of (13a), (13d) and (13e)."""
    H = range(len(omega))
    most = {h: min(int(free / need + 1e-9) for free, need in zip(omega[h], z, strict=True) if need)
            for h in H}  # fmt: skip
    model.s = pyo.Var(H, within=pyo.NonNegativeIntegers, bounds=lambda _, h: (0, most[h]))
    model.is_host = pyo.Var(H, within=pyo.Binary)
    model.eq_13d = pyo.ConstraintList(doc="bandwidth of the PSs of every host")
    model.eq_13e = pyo.Constraint(expr=pyo.quicksum(model.s[h] for h in H) >= 1)
    for h in H:
        model.eq_13a.add(model.s[h] <= most[h] * model.on[h])
        model.eq_13d.add(model.s[h] <= most[h] * model.is_host[h])
        elsewhere = pyo.quicksum(model.y[k] for k in H if k != h)
        slack = b * most_workers * (1 - model.is_host[h])
        model.eq_13d.add(b * elsewhere <= B * model.s[h] + slack)
