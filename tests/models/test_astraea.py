"""The astraea programs against the brute force over raw decisions, and the known answers."""

from __future__ import annotations

import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hindsched.instances.astraea.instance import AstraeaInstance
from hindsched.instances.io import read
from hindsched.models.astraea import offline as models
from hindsched.models.astraea.dual import build_dual
from hindsched.models.base import Commitments
from hindsched.online.simulator import simulate
from hindsched.solutions.astraea.solution import AstraeaSolution
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.oracles.base import build_oracle
from tests.astraea_example import worked_example
from tests.brute_force.astraea import capacity_binds, optimum
from tests.strategies.astraea import astraea_instances

EXACT = SolveOptions(gap=1e-7)
ONLINE = ("astraea", "dual-price")


def fixed(examples):
    return settings(max_examples=examples)


def solved(instance, formulation):
    """Optimum of a form, its point checked and its objective recomputed."""
    model = models.build_offline(instance, formulation)
    result = solve_program(model.pyomo, EXACT)
    assert result.has_point
    solution = model.extract()
    assert solution.violations() == []
    assert solution.objective() == pytest.approx(result.objective, abs=1e-5)
    return solution.objective()


def check_against_brute_force(instance):
    best = optimum(instance)
    checked = AstraeaSolution.from_assignments(instance, best.assignments)
    assert checked.violations() == []
    assert checked.objective() == pytest.approx(best.value, abs=1e-9)
    assert solved(instance, "optional,modes") == pytest.approx(best.value, abs=1e-5)
    return best.value


def test_modes_equal_the_brute_force_on_200_instances():
    binds, beaten = [], []

    def check(instance):
        value = check_against_brute_force(instance)
        binds.append(capacity_binds(instance, value))
        online = max(simulate(instance, name).objective for name in ONLINE)
        assert online <= value + 1e-6
        beaten.append(online < value - 1e-6)

    fixed(150)(given(astraea_instances())(check))()
    fixed(50)(given(astraea_instances(types=2))(check))()
    assert len(binds) >= 200
    assert sum(binds) >= 0.3 * len(binds)
    assert sum(beaten) >= 0.2 * len(beaten)


def test_literal_equals_modes_on_50_instances():
    compared = []

    def check(instance, must):
        obligation = "must-complete" if must else "optional"
        best = optimum(instance, must_complete=must)
        for writing in ("modes", "literal"):
            model = models.build_offline(instance, f"{obligation},{writing}")
            result = solve_program(model.pyomo, EXACT)
            assert result.has_point == (best is not None)
            if best is not None:
                solution = model.extract()
                assert solution.violations() == []
                assert solution.objective() == pytest.approx(best.value, abs=1e-5)
        compared.append(best is not None)

    fixed(40)(given(astraea_instances(), st.booleans())(check))()
    fixed(10)(given(astraea_instances(types=2), st.booleans())(check))()
    assert len(compared) >= 50
    assert sum(compared) > 0


@fixed(30)
@given(astraea_instances(), st.sampled_from(["modes", "literal"]))
def test_a_loaded_solution_satisfies_both_forms(instance, writing):
    best = optimum(instance)
    solution = AstraeaSolution.from_assignments(instance, best.assignments)
    model = models.build_offline(instance, f"optional,{writing}")
    model.load(solution)
    assert pyo.value(model.pyomo.eq_3) == pytest.approx(best.value, abs=1e-9)
    for row in model.pyomo.component_data_objects(pyo.Constraint, active=True):
        assert row.slack() >= -1e-9, row.name
    again = model.extract()
    assert again.objective() == pytest.approx(best.value)


@fixed(30)
@given(astraea_instances())
def test_relaxations_from_tight_to_loose_and_the_dual(instance):
    best = optimum(instance).value
    dual = build_dual(instance)
    schedules = solve_program(dual.pyomo, EXACT).objective
    prices = dual.prices()
    oracle = build_oracle(instance, rows="servers")
    assert oracle.bound(oracle.rows.pack(prices)) == pytest.approx(schedules, abs=1e-5)
    bounds = [best, schedules]
    for writing in ("modes", "literal"):
        relaxed = models.build_offline(instance, f"optional,{writing}", relax=True)
        linear = solve_program(relaxed.pyomo, EXACT, want_duals=True)
        bounds.append(linear.objective)
        posted = oracle.rows.pack(relaxed.capacity_prices(linear.duals))
        assert oracle.bound(posted) >= best - 1e-6
    assert bounds == pytest.approx(sorted(bounds), abs=1e-6)


@fixed(25)
@given(astraea_instances())
def test_commitments_are_kept(instance):
    """From slot 3 on: the first job is locked, the last is rejected."""
    plan = optimum(instance).assignments
    names = [job.name for job in instance.jobs]
    commitments = Commitments(
        now=3,
        assignments={name: plan[name] for name in names[:2] if name in plan},
        locked=frozenset(names[:1]) & set(plan),
        rejected=frozenset(names[-1:]),
    )
    values = []
    for writing in ("modes", "literal"):
        model = models.build_offline(instance, f"optional,{writing}", commitments=commitments)
        result = solve_program(model.pyomo, EXACT)
        solution = model.extract()
        assert solution.violations() == []
        assert solution.objective() == pytest.approx(result.objective, abs=1e-5)
        values.append(result.objective)
        rows = solution.assignments()
        assert names[-1] not in rows
        for name in names[:2]:
            kept = name in commitments.locked or (
                name in commitments.assignments and plan[name][0]["from"] < 3
            )
            if kept:
                assert rows[name] == plan[name]
            elif name in rows:
                assert rows[name][0]["from"] >= 3
        for name in names[2:]:
            assert rows.get(name, [{"from": 3}])[0]["from"] >= 3
    assert values[0] == pytest.approx(values[1], abs=1e-5)


def merged(first, second):
    """Two one-type instances side by side: each keeps its types, servers and jobs."""
    left, right, never = first.to_dict(), second.to_dict(), 1000.0
    found = {"servers": [], "tenants": [], "jobs": []}
    for data, own, other in ((left, "a", "b"), (right, "b", "a")):

        def typed(value, rest, own=own, other=other):
            return {own: value, other: rest}

        for name, keys, rest in (
            ("servers", ("workers", "ps"), 0),
            ("tenants", ("worker_quota", "ps_quota"), 0),
            ("jobs", ("minibatch_slots", "update_slots"), never),
        ):
            for item in data[name]:
                changed = {key: typed(item[key], rest) for key in keys}
                if name == "jobs":
                    changed["tenant"] = own + item["tenant"]
                found[name].append({**item, **changed, "name": own + item["name"]})
    bandwidths = {
        key: {"a": left[key], "b": right[key]}
        for key in ("worker_bandwidth_mbps", "ps_bandwidth_mbps")
    }
    return AstraeaInstance.parse({**left, "name": "merged", **bandwidths, **found})


@fixed(20)
@given(astraea_instances(most_jobs=3), astraea_instances(most_jobs=3))
def test_two_types_that_never_meet_earn_the_sum(first, second):
    second = AstraeaInstance.parse({**second.to_dict(), "utility_origin": first.utility_origin})
    both = merged(first, second)
    total = optimum(first).value + optimum(second).value
    assert solved(both, "optional,modes") == pytest.approx(total, abs=1e-5)
    pinned = {"theta_workers": 9.0, "theta_ps": 9.0, "rounds": 1}
    parts = [simulate(part, "astraea", settings=pinned).objective for part in (first, second)]
    together = simulate(both, "astraea", settings=pinned).objective
    assert together == pytest.approx(sum(parts), abs=1e-9)


def test_known_optimum_in_both_forms():
    instance = read("tests/data/instances/astraea-j5-s40.json")
    for writing in ("modes", "literal"):
        assert solved(instance, f"optional,{writing}") == pytest.approx(347.643944, abs=1e-5)


def test_worked_example_round_problem_and_offline_optimum():
    example = worked_example()
    values = []
    for form in ("modes", "printed"):
        model = models.build_round(example, 4, form)
        values.append(solve_program(model.pyomo, EXACT).objective)
        solution = model.extract()
        assert solution.completion("j22") is None
    assert values == pytest.approx([286, 286], abs=1e-5)  # 96 + 94 + 96
    # 96 + 94 + 96 + 40: j22 on 2 workers of one server for 30 slots
    assert solved(worked_example(horizon=40), "optional,modes") == pytest.approx(326, abs=1e-5)
    must = models.build_offline(worked_example(horizon=40), "must-complete,modes")
    assert solve_program(must.pyomo, EXACT).objective == pytest.approx(326, abs=1e-5)


def test_psp_trap_of_3i_is_infeasible():
    """A2: three servers of one worker and one PS hold no job of three workers."""
    example = worked_example(("j12",), horizon=20).to_dict()
    example["servers"] = [{"name": f"s{s}", "workers": 1, "ps": 1} for s in (1, 2, 3)]
    example["tenants"] = [
        {"name": "u1", "worker_quota": 3, "ps_quota": 3},
        {"name": "u2", "worker_quota": 0, "ps_quota": 0},
    ]
    instance = AstraeaInstance.parse(example)
    rows = {"from": 4, "to": 7, "workers": {"s1": 1, "s2": 1, "s3": 1}, "ps": {"s1": 1}}
    solution = AstraeaSolution.from_assignments(instance, {"j12": [rows]})
    assert [broken.rule for broken in solution.violations()] == ["(3i)"]
    model = models.build_offline(instance)
    solve_program(model.pyomo, EXACT)
    assert model.extract().rows["j12"][0].num_workers <= 2
