"""Packing patterns: how many units of each job one server holds at once.

A pattern is maximal if no further unit fits. In a slot the servers of a group of n_g identical ones
run at most n_g patterns, so that

    y_ig(t) <= sum over patterns l of l_i r_gl(t),    sum_l r_gl(t) <= n_g

holds with integer r for exactly those counts that the servers can hold, and with fractional r for
their convex hull: much tighter than (4) added up, where a 3-GPU and a 2-GPU worker share a 4-GPU
server once and a quarter times. A server that is large beside the workers has too many patterns,
and there (4) is nearly as tight anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyomo.environ as pyo
from pyomo.environ import quicksum as total

from hindsched.arrays import Floats
from hindsched.models.algebra import Domain, Expr, Model
from hindsched.models.oasis.sets import Cell, Servers

FindPatterns = Callable[[Floats, Floats, Sequence[int]], Sequence[Sequence[int]] | None]
"""``find(capacity, demand, most)``: the maximal patterns of a server (R,) that holds at most so
many units of each demand (J, R); None if they are too many."""


class Patterns(NamedTuple):
    """Jobs that may run on a group in a slot, and the patterns of one server over them."""

    jobs: tuple[int, ...]
    patterns: Sequence[Sequence[int]]


def add_patterns(
    b: Model, servers: Servers, able: Mapping[Cell, Sequence[int]], demand: Floats,
    most: Sequence[int], find: FindPatterns, domain: Domain,
) -> dict[Cell, Patterns]:  # fmt: skip
    """Let the servers of groups run patterns in slots, no more of them than servers.

    `able` are the jobs that may run by group and slot, `demand` (I, R) is of a unit of each job,
    `most` how many of them anybody would want. The block gets ``runs`` over (group, slot, pattern)
    and the expressions ``held`` over (job, group, slot), units that the patterns hold. Returned are
    the patterns by group and slot, but where they are too many.
    """
    found = dict[Cell, Patterns]()
    for (group, t), jobs in able.items():
        own = list(jobs)
        patterns = find(servers.capacity[group], demand[own], [most[i] for i in own])
        if patterns is not None:
            found[group, t] = Patterns(tuple(own), patterns)
    numbers = {cell: range(len(own.patterns)) for cell, own in found.items()}
    b.runs = pyo.Var(
        [(*cell, n) for cell, own in numbers.items() for n in own], domain=domain,
        doc="(ours) servers that run a pattern",
    )  # fmt: skip

    @b.Constraint(list(found), doc="(ours) no more patterns than servers")
    def limit(b: Model, g: int, t: int) -> Expr:
        return total(b.runs[g, t, n] for n in numbers[g, t]) <= int(servers.size[g])

    @b.Expression([(i, *cell) for cell, own in found.items() for i in own.jobs])
    def held(b: Model, i: int, g: int, t: int) -> Expr:
        units = np.array(found[g, t].patterns)[:, found[g, t].jobs.index(i)].tolist()
        return total(units[n] * b.runs[g, t, n] for n in numbers[g, t] if units[n])

    return found
