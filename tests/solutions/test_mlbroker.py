"""mlbroker's accounting, by hand and against its definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from hindsched.errors import InputError
from hindsched.instances.mlbroker.transport import min_cost_flow
from hindsched.solutions.base import build_solution
from hindsched.solvers.families.mlbroker.methods import find_schedule
from tests.strategies.mlbroker import flicker, instances, make, two_jobs


@given(data=st.data(), sources=st.integers(1, 5), sinks=st.integers(1, 5))
def test_transport_is_the_cheapest(data, sources, sinks):
    """Against linear programming; prices break the triangle inequality, some arcs are closed."""
    supply = np.array([data.draw(st.integers(0, 9)) / 2 for _ in range(sources)])
    room = np.array([data.draw(st.integers(0, 9)) for _ in range(sinks)], dtype=float)
    prices = [data.draw(st.sampled_from([0, 0.5, 1, 2, 7, np.inf])) for _ in range(sources * sinks)]
    price = np.array(prices).reshape(sources, sinks)
    cost, left, flow = min_cost_flow(supply, room, price, np.inf)
    assert np.allclose(flow.sum(axis=1).sum() + left, supply.sum())
    assert (flow.sum(axis=0) <= room + 1e-9).all()
    assert (flow >= 0).all()
    assert not flow[np.isinf(price)].any()
    out = np.kron(np.eye(sources), np.ones(sinks))
    into = np.kron(np.ones(sources), np.eye(sinks))
    open_arcs = [(0, 0 if np.isinf(p) else None) for p in prices]
    finite = [0 if np.isinf(p) else p for p in prices]
    sent = linprog(-np.ones(len(prices)), A_ub=np.vstack([out, into]),
                   b_ub=np.concatenate([supply, room]), bounds=open_arcs)  # fmt: skip
    assert supply.sum() - left == pytest.approx(-sent.fun, abs=1e-9)
    if left == 0:
        best = linprog(finite, A_eq=out, b_eq=supply, A_ub=into, b_ub=room, bounds=open_arcs)
        assert cost == pytest.approx(best.fun, abs=1e-9)
        limit = data.draw(st.integers(0, 40)) / 2
        limited, _, same = min_cost_flow(supply, room, price, limit)
        if cost <= limit:
            assert limited == cost
            assert (same == flow).all()
        else:
            assert limit < limited <= cost + 1e-9


def placed(instance, *slots):
    """A solution of one job: a (workers by centre, PS) pair per slot."""
    rows = [
        {"from": t, "to": t, "workers": workers, "ps": ps}
        for t, (workers, ps) in enumerate(slots, start=1)
    ]
    return {"j1": rows}


def test_hand_worked_costs():
    """Two slots: 3 GB moved, a tier reached, two launches, two remote workers."""
    job = {"n": 2, "m": 1, "P": 4, "B": 5, "c": 7, "D": [[8, 3], [0, 4]]}
    instance = make(2, 2, 0.5, [(4, 3, 5), (6, 2, 100)], [job])
    solution = build_solution(instance, placed(instance, ({"r1": 3}, "r2"), ({"r2": 1}, "r2")))
    costs = solution.costs
    assert costs.transfer.tolist() == [[1.5, 0]]
    assert costs.used.tolist() == [[[6], [1]], [[0], [3]]]
    assert costs.resource.tolist() == [[[4 * 5 + 3 * 1], [6]], [[0], [18]]]
    assert costs.deployment.tolist() == [[14, 0]]
    assert costs.communication.tolist() == [[3 * 5 * 0.5, 0]]
    assert solution.objective() == pytest.approx(1.5 + 29 + 18 + 14 + 7.5)
    assert not solution.violations()
    assert solution.completion("j1") == 2


def test_launches_count_again_after_a_break_but_not_as_printed():
    rows = placed(
        flicker(), ({"r1": 1}, "r1"), ({"r2": 1}, "r2"), ({"r1": 1}, "r1"), ({"r2": 1}, "r2")
    )
    assert build_solution(flicker(), rows).costs.by_cost["deployment"] == 12
    assert build_solution(flicker(), rows, "paper").costs.by_cost["deployment"] == 6


def test_missing_data_is_counted_never_clipped():
    instance = two_jobs(0.5)
    rows = {
        "j1": [{"from": 1, "to": 1, "workers": {"r1": 5}, "ps": "r1"}],
        "j2": [],
    }
    solution = build_solution(instance, rows)
    broken = {(v.rule, v.where): v.amount for v in solution.violations()}
    assert broken["(8a)-(8b)", "job j1 in slot 1"] == pytest.approx(3)
    assert broken["(8f)", "job j2 in slot 1"] == 1
    assert broken["(8a)-(8b)", "job j2 in slot 1"] == pytest.approx(8)
    assert solution.completion("j2") is None


def test_pinned_data_must_stay():
    data = two_jobs(0.5).to_dict()
    data["jobs"][0]["pinned_datacenters"] = ["r1"]
    instance = type(two_jobs(1)).parse(data)
    away = {
        "j1": [{"from": 1, "to": 1, "workers": {"r2": 8}, "ps": "r2"}],
        "j2": [{"from": 1, "to": 1, "workers": {"r2": 8}, "ps": "r2"}],
    }
    assert [v.amount for v in build_solution(instance, away).violations()] == [8]
    assert build_solution(two_jobs(0.5), away).is_feasible()


@given(instance=instances(centers=3, slots=3, jobs=2, kinds=2))
def test_rows_and_parts_add_up(instance):
    solution = find_schedule(instance, "tight")
    again = build_solution(instance, solution.assignments())
    assert np.array_equal(again.workers, solution.workers)
    assert np.array_equal(again.ps, solution.ps)
    assert sum(row["value"] for row in solution.job_rows()) == pytest.approx(solution.objective())
    margin = solution.broker_margin()
    assert margin["charged"] <= margin["alone"] + 1e-9
    assert margin["margin"] == pytest.approx(margin["charged"] - margin["paid"])


def test_a_slot_cannot_be_covered_twice():
    row = {"from": 1, "to": 2, "workers": {"r1": 1}, "ps": "r1"}
    with pytest.raises(InputError, match="must not overlap"):
        build_solution(flicker(), {"j1": [row, {**row, "from": 2}]})
