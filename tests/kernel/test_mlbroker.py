"""The exact kernel on mlbroker: optima are never beaten, transports and searches are exact."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import hindsched as hs
from hindsched.kernel import mlbroker
from hindsched.kernel.mlbroker import bound, placement, transport
from hindsched.kernel.reading import Refused
from tests.kernel.agreement import checked, exact
from tests.strategies.mlbroker import make

DATA = Path(__file__).parents[1] / "data"
FORMULATIONS = ("tight", "paper")


def proven(problem, formulation, prices):
    """The kernel's bound at prices by row set."""
    data = {"formulation": formulation, "kind": "lagrangian", "prices": exact(prices)}
    return bound(exact(problem.to_dict()), data, lambda *_: None).low


@given(st.integers(0, 10**9))
def test_transport_is_the_linear_program(seed):
    draws = np.random.default_rng(seed)
    sources, sinks = (int(draws.integers(1, 5)) for _ in range(2))
    supply = [int(x) for x in draws.integers(0, 9, sources)]
    room = [int(x) for x in draws.integers(0, 9, sinks)]
    price = [
        [int(x) if x < 12 else None for x in row] for row in draws.integers(0, 15, (sources, sinks))
    ]
    cost, left, flow = transport(supply, room, price)
    big = 10**6  # what finds no room goes to a sink that is dearer than everything
    full = [[big**2 if x is None else x for x in row] + [big] for row in price]
    out = [[i == k for k in range(sources) for _ in range(sinks + 1)] for i in range(sources)]
    into = [[j == k for _ in range(sources) for k in range(sinks + 1)] for j in range(sinks)]
    lp = linprog(np.ravel(full), A_ub=into, b_ub=room, A_eq=out, b_eq=supply)
    assert left == (lp.fun + 1) // big
    if not left:
        assert cost == pytest.approx(lp.fun, rel=1e-9)
    for j, limit in enumerate(room):
        assert 0 <= sum(row.get(j, 0) for row in flow) <= limit
    assert sum(sum(row.values()) for row in flow) == sum(supply) - left


@given(st.integers(0, 10**9))
def test_a_slot_is_searched_to_its_optimum(seed):
    """Against all worker counts within limits, and fewer cases prove less."""
    draws = np.random.default_rng(seed)
    size = int(draws.integers(1, 4))
    data, room = [int(x) for x in draws.integers(0, 12, size)], int(draws.integers(2, 7))
    needed = -(-sum(data) // room)
    if needed == 0 or needed > 4:
        return
    fine = 1 << 64
    worker = (draws.integers(0, 9, (size, size)) * 1).tolist()
    ps, launch = draws.integers(0, 9, size).tolist(), draws.integers(0, 30, size).tolist()
    arc = draws.integers(0, 9, (size, size)).tolist()
    for r in range(size):
        arc[r] = [0 if q == r else x for q, x in enumerate(arc[r])]
        if draws.random() < 0.2:
            arc[r] = [x if q == r else None for q, x in enumerate(arc[r])]
    limits, serve = [(0, needed)] * size, [True] * size
    if draws.random() < 0.5:
        limits = [tuple(sorted(draws.integers(0, needed + 1, 2).tolist())) for _ in range(size)]
        serve = (draws.random(size) < 0.7).tolist()
    best = None
    for y in itertools.product(*(range(low, high + 1) for low, high in limits)):
        cost, left, _ = transport(data, [room * n for n in y], arc)
        for p in (p for p in range(size) if serve[p] and not left):
            value = ps[p] + sum(
                y[r] * worker[p][r] + launch[r] * (y[r] > 0 and r != p) for r in range(size)
            )
            best = min(x for x in (best, room * value + cost) if x is not None)
    scaled_up = [
        [[x and x * fine for x in row] for row in table] for table in (worker, arc, [ps, launch])
    ]
    worker, arc, (ps, launch) = scaled_up
    arguments = (data, room, needed, worker, ps, arc, launch, limits, serve)
    found = placement(*arguments)
    if best is None:
        assert found is None
        return
    assert 0 <= best * fine - found <= room * needed * size
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mlbroker, "CASES", size)
        assert placement(*arguments) <= found


def one_job(data, **more):
    job = {"n": 1, "m": 1, "P": 1, "B": 2, "c": 3, "D": data}
    return exact(make(2, len(data), 10, [(2, 1, 1)] * 2, [job | more]).to_dict())


def plan(*rows):
    rows = [{"workers": workers, "ps": ps} for workers, ps in rows]
    return {"formulation": "tight", "jobs": [{"name": "j1", "assignments": rows}]}


@pytest.mark.parametrize(
    ("tiny", "where"),
    [(9e-7, "without a worker"), (1e-15, "without a worker"), (1.0000009, "too many for one")],
)
def test_data_without_room_is_no_rounding(tiny, where):
    workers = {} if where == "without a worker" else {"r1": 1}
    found = checked(mlbroker, one_job([[tiny, 0]]), plan((workers, "r1")))
    broken = next(v for v in found.violations if v.rule == "(8a)-(8b)")
    assert broken.amount == Fraction(str(tiny)) - len(workers)
    found = checked(mlbroker, one_job([[tiny, 0]]), plan(({"r1": 2}, "r1")))
    assert not found.violations


def test_a_slot_without_a_ps_is_named():
    problem = one_job([[1, 0], [1, 0]])
    assert [v.rule for v in checked(mlbroker, problem, plan(({"r1": 1}, "r1"))).violations] == [
        "(8f)", "(8a)-(8b)",
    ]  # fmt: skip
    free = {"formulation": "tight", "kind": "lagrangian", "prices": {}}
    # A worker and the PS rent 2 units in r1: min(2 h, h + 1) = 3 a slot, 3 to launch once.
    assert checked(mlbroker, problem, plan(*[({"r1": 1}, "r1")] * 2)).value.low == 3 + 3 + 3
    # Free prices buy every unit at the lower one and launch for nothing.
    assert bound(problem, free, lambda *_: None).low == 2 + 2


def test_needed_workers_are_exact():
    """N = 2 where data passes the room of one worker by 1e-12; the bound pays both."""
    free = {"formulation": "tight", "kind": "lagrangian", "prices": {}}
    for data, workers in ((1, 1), (1.000000000001, 2), (0.3, 1), (2**31 + 5, 2**31 + 5)):
        found = bound(one_job([[data, 0]]), free, lambda *_: None)
        assert found.low == 1 + workers


@pytest.mark.parametrize("span", [(2, 2), (1, 1), (2, 9)])
def test_a_slot_belongs_to_the_life_and_to_one_row(span):
    problem = hs.generate("mlbroker", jobs=1, seed=1)
    assert problem.jobs[0].arrival == 2
    good = hs.solve(problem, "milp").solution.to_dict()
    row, twice = good["jobs"][0]["assignments"][0], span == (2, 2)
    changed = row | {"from": span[0], "to": span[1]}
    good["jobs"][0]["assignments"] = [changed] * (1 + twice)
    if twice:
        with pytest.raises(Refused, match="two rows of slot 2"):
            checked(mlbroker, exact(problem.to_dict()), exact(good))
    else:
        found = checked(mlbroker, exact(problem.to_dict()), exact(good)).violations
        assert "within its life" in {broken.rule for broken in found}
