"""The exact kernel on mlbroker: optima are never beaten, transports and searches are exact."""

from __future__ import annotations

from fractions import Fraction

import pytest

import hindsched as hs
from hindsched.kernel import mlbroker
from hindsched.kernel.reading import RefusedFile
from tests.kernel.agreement import bound_of, checked, exact
from tests.strategies.mlbroker import make


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
    assert bound_of(mlbroker, problem, free).low == 2 + 2


@pytest.mark.parametrize("span", [(2, 2), (1, 1), (2, 9)])
def test_a_slot_belongs_to_the_life_and_to_one_row(span):
    problem = hs.generate("mlbroker", jobs=1, seed=1)
    assert problem.jobs[0].arrival == 2
    good = hs.solve(problem, "milp").solution.to_dict()
    row, twice = good["jobs"][0]["assignments"][0], span == (2, 2)
    changed = row | {"from": span[0], "to": span[1]}
    good["jobs"][0]["assignments"] = [changed] * (1 + twice)
    if twice:
        with pytest.raises(RefusedFile, match="two rows of slot 2"):
            checked(mlbroker, exact(problem.to_dict()), exact(good))
    else:
        found = checked(mlbroker, exact(problem.to_dict()), exact(good)).violations
        assert "within its life" in {broken.rule for broken in found}
