"""The exact kernel on mlbroker: optima are never beaten, transports and searches are exact."""

from __future__ import annotations

import gzip
import itertools
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import hindsched as hs
from hindsched.kernel import mlbroker
from hindsched.kernel.__main__ import main
from hindsched.kernel.mlbroker import bound, placement, transport
from hindsched.kernel.reading import Refused
from hindsched.solvers.oracles.base import build_oracle
from tests.brute_force.mlbroker import optimum
from tests.kernel.agreement import checked
from tests.strategies.mlbroker import instances, make, scaled

DATA = Path(__file__).parents[1] / "data"
ATTACKS = {  # the bounds that were accepted, and the optima
    "mlbroker-cancelled-presence": 129,
    "mlbroker-not-optimal": 128.0001,
    "mlbroker-pinned": 124.70783344495732,
    "mlbroker-tier-price": 7,
    "mlbroker-tiny": 2.3088e-9,
}
FORMULATIONS = ("tight", "paper")


def exact(data):
    """JSON data with the numbers that a file would show."""
    return json.loads(json.dumps(data), parse_float=Fraction)


def proven(problem, formulation, prices):
    """The kernel's bound at prices by row set."""
    data = {"formulation": formulation, "kind": "lagrangian", "prices": exact(prices)}
    return bound(exact(problem.to_dict()), data, lambda *_: None).low


def unpacked(folder, tmp_path):
    """The path of an attack's instance, unpacked if it is packed."""
    (path,) = folder.glob("instance.json*")
    if path.suffix == ".gz":
        plain = tmp_path / path.stem
        plain.write_bytes(gzip.decompress(path.read_bytes()))
        return plain
    return path


def random_prices(oracle, draws):
    """Prices of about the tiers' gains and the launches' costs, a third of them 0."""
    gains = oracle.instance.unit_price.max() + 1
    launch = oracle.instance.deployment.max(initial=0) + 1
    arrays = {}
    for row_set in oracle.rows.sets:
        size = gains if row_set.name == "discount" else launch
        values = size * draws.uniform(0, 1.5, row_set.shape)
        arrays[row_set.name] = values * (draws.random(row_set.shape) < 0.67)
    return oracle.rows.pack(arrays)


@given(instances(kinds=2), st.integers(0, 10**6), st.sampled_from([1, 1e-9, 1e9]))
def test_the_bound_never_passes_the_optimum(tiny, seed, factor):
    draws = np.random.default_rng(seed)
    tiny = scaled(tiny, factor)
    for formulation in FORMULATIONS:
        best = optimum(tiny.to_dict(), formulation)
        oracle = build_oracle(tiny, formulation)
        for wild in (1, 1, 1e12):
            prices = random_prices(oracle, draws)
            prices *= np.where(draws.random(prices.size) < 0.3, wild, 1)
            found = proven(tiny, formulation, oracle.rows.to_file(prices))
            assert found <= Fraction(best) * (1 + Fraction(1, 10**9))


@given(
    instances(centers=3, kinds=2, workers=3),
    st.integers(0, 10**6),
    st.sampled_from([1, 1, 1e-12, 1e9]),
    st.sampled_from([1, 1, 1e-9, 1e15]),
)
def test_the_fast_path_agrees_on_the_safe_side(tiny, seed, factor, wild):
    draws = np.random.default_rng(seed)
    tiny = scaled(tiny, factor)
    for formulation in FORMULATIONS:
        oracle = build_oracle(tiny, formulation)
        prices = random_prices(oracle, draws)
        prices *= factor * np.where(draws.random(prices.size) < 0.3, wild, 1)
        fast = oracle.bound(prices)
        found = proven(tiny, formulation, oracle.rows.to_file(prices))
        terms = float(prices.sum()) + abs(fast) + factor
        assert fast <= found
        assert float(found) - fast <= 1e-7 * terms


@given(instances(kinds=2), st.integers(0, 10**6))
def test_schedules_cost_what_the_package_says(tiny, seed):
    draws = np.random.default_rng(seed)
    for formulation in FORMULATIONS:
        rows = {
            record.name: [
                {
                    "from": t,
                    "to": t,
                    "workers": {c.name: int(draws.integers(0, 4)) for c in tiny.datacenters},
                    "ps": tiny.datacenters[int(draws.integers(2))].name,
                }
                for t in range(record.arrival, record.departure + 1)
                if draws.random() < 0.95
            ]
            for record in tiny.jobs
        }
        solution = hs.build_solution(tiny, rows, formulation)
        found = checked(mlbroker, exact(tiny.to_dict()), exact(solution.to_dict()))
        assert bool(found.violations) == bool(solution.violations())
        if not found.violations:
            assert float(found.objective.low) == pytest.approx(solution.objective(), rel=1e-9)


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


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_are_refused(name, capsys, tmp_path):
    folder = DATA / "attacks" / name
    instance = unpacked(folder, tmp_path)
    files = [str(instance), str(folder / "solution.json"), str(folder / "certificate.json")]
    assert main(files) == 2
    said = capsys.readouterr().out
    assert "feasible" in said.split("\n")
    assert "states more than what is proven" in said
    data = json.loads(instance.read_text(), parse_float=Fraction)
    prices = json.loads((folder / "certificate.json").read_text(), parse_float=Fraction)
    assert bound(data, prices, lambda *_: None).high <= Fraction(str(ATTACKS[name])) + Fraction(
        1, 10**15
    )


def test_known_instance():
    """The optimum 184.72025 to within the fast path's rounding; paper's loopholes below it."""
    problem = hs.read(DATA / "instances" / "mlbroker-r3-t2-s51.json")
    for formulation, least in (("tight", 184.7202474), ("paper", 183.02371)):
        result = hs.solve(problem, method="bound", formulation=formulation)
        found = bound(
            exact(problem.to_dict()), exact(result.certificate.to_dict()), lambda *_: None
        )
        assert found.low == found.high
        assert max(result.bound, least) <= found.low <= 184.72025
        schedule = hs.solve(problem, method="milp", formulation=formulation).solution
        verdict = checked(mlbroker, exact(problem.to_dict()), exact(schedule.to_dict()))
        assert not verdict.violations
        assert found.low <= verdict.objective.low
        assert float(verdict.objective.low) == pytest.approx(184.72025, abs=1e-5)


@pytest.mark.parametrize("name", [*ATTACKS, "edgecloud-literal-short-block"])
def test_the_fast_path_refuses_the_attacks(name, tmp_path):
    """It solves them, too: tiny and huge amounts end in no exception of Python's."""
    folder = DATA / "attacks" / name
    problem = hs.read(unpacked(folder, tmp_path))
    certificate = folder / "certificate.json"
    with pytest.raises(hs.InputError, match="the prices prove"):
        hs.read_certificate(certificate, problem)
    if name != "mlbroker-tiny":  # 2000 slots in a loop of Python: seconds
        formulation = json.loads(certificate.read_text())["formulation"]
        result = hs.solve(problem, formulation=formulation)
        best = {**ATTACKS, "edgecloud-literal-short-block": 9}[name]
        assert result.objective == pytest.approx(best, rel=1e-9)
        assert result.certificate.bound <= best


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
