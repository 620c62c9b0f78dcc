"""mlbroker's online algorithms: by hand, laws, what they are told, bounds and theorems."""

from __future__ import annotations

import itertools
import json
import math
import sys

import numpy as np
import pytest
from hypothesis import given

from hindsched.errors import InputError, Refused
from hindsched.instances.catalogue import known_instance
from hindsched.instances.mlbroker.generator import generate
from hindsched.models.mlbroker.offline import build_offline
from hindsched.online.mlbroker.algorithms import ALGORITHMS, Mlbroker, theorem
from hindsched.online.mlbroker.baselines import Local, RecedingHorizon
from hindsched.online.mlbroker.theorem import r1, r2_paper, ski_rental_ratio
from hindsched.online.protocol import Capabilities, Decision, OnlineAlgorithm
from hindsched.online.registry import algorithms, build_algorithm
from hindsched.online.simulator import simulate
from hindsched.solvers.door.program import solve_program
from hindsched.solvers.families.mlbroker.bound import lagrangian_certificate, relaxation_bound
from tests.strategies.mlbroker import flicker, instances, make, scaled, two_jobs

QUICK = [name for name in ALGORITHMS if name != "reoptimise"]


# Every algorithm


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("seed", [0, 1])
def test_pinned_and_weighted_instances(name, seed):
    data = generate("small", seed, pinned_probability=0.4, deployment_gb=50).to_dict()
    data["cost_weights"] = {"transfer": 2, "deployment": 0.5}
    instance = type(generate("small", 0)).parse(data)
    result = simulate(instance, name, seed=seed)
    assert not result.violations
    assert result.objective >= lagrangian_certificate(instance).bound - 1e-6


def test_no_algorithm_beats_a_bound():
    """All algorithms, all valid bounds, the proven optimum: 30 random instances."""
    slack = 1e-6

    @given(instance=instances(centers=3, slots=2, jobs=2, workers=3, kinds=1))
    def run(instance):
        best = solve_program(build_offline(instance).model).objective
        bounds = [
            relaxation_bound(instance, "chord"),
            relaxation_bound(instance, "paper"),
            solve_program(build_offline(instance, relax=True).model).objective,
            lagrangian_certificate(instance, iterations=0).bound,
            lagrangian_certificate(instance, iterations=50).bound,
        ]
        assert max(bounds) <= best + slack * (1 + best)
        for name in QUICK:
            result = simulate(instance, name)
            assert not result.violations
            assert result.objective >= best - slack * (1 + best)

    run()


@pytest.mark.parametrize("name", QUICK)
def test_ratios_do_not_depend_on_the_currency(name):
    for seed in (0, 3):
        dollars = generate("small", seed, deployment_gb=20)
        cents = scaled(dollars, 100.0)
        one, other = (simulate(instance, name).objective for instance in (dollars, cents))
        assert other == pytest.approx(100 * one, rel=1e-6)
        bound = lagrangian_certificate(dollars).bound
        assert lagrangian_certificate(cents).bound == pytest.approx(100 * bound, rel=1e-6)


def test_the_truth_refuses():
    instance = two_jobs(0.5)

    def run(rows):
        class Scripted(OnlineAlgorithm):
            def start(self, environment):
                pass

            def step(self, slot, arrivals):
                return Decision(rows)

        return simulate(instance, Scripted())

    good = {"from": 1, "to": 1, "workers": {"r1": 8}, "ps": "r1"}
    assert run({"j1": [good], "j2": [good]}).objective == pytest.approx(62)
    with pytest.raises(Refused, match=r"by .8f. at job j2, slot 1"):
        run({"j1": [good]})
    with pytest.raises(Refused, match=r"8a.-.8b. at job j1"):
        run({"j1": [{**good, "workers": {"r1": 7}}], "j2": [good]})
    with pytest.raises(Refused, match="cover a slot twice"):
        run({"j1": [good, good], "j2": [good]})
    with pytest.raises(Refused, match="rows must say from and to"):
        run({"j1": [{"workers": {"r1": 8}, "ps": "r1"}], "j2": [good]})
    with pytest.raises(Refused, match="data centre"):
        run({"j1": [{**good, "ps": "r7"}], "j2": [good]})


def test_a_slot_placed_ahead_is_not_placed_again():
    class Hasty(OnlineAlgorithm):
        def start(self, environment):
            pass

        def step(self, slot, arrivals):
            workers = {"r1": 1} if slot == 1 else {"r2": 1}
            row = {"from": slot, "to": min(4, slot + 1), "workers": workers, "ps": "r1"}
            return Decision({"j1": [row]})

    with pytest.raises(Refused, match="has a row of these slots"):
        simulate(flicker(), Hasty())


def test_same_fractional_cost_through_cvxpy():
    instance = generate("small", 2)
    costs = [
        simulate(instance, "mlbroker", engine=engine).report["fractional_cost"]
        for engine in ("oracle", "model")
    ]
    assert costs[0] == pytest.approx(costs[1], rel=1e-5)


@pytest.mark.parametrize("rounding", ["round2", "independent", "greedy", "largest-remainder"])
def test_options_of_mlbroker(rounding):
    chosen = {"rounding": rounding, "price": "chord", "switching": "relu", "relocation": "true"}
    instance = generate("small", 2)
    result = simulate(instance, "mlbroker", settings=chosen)
    assert not result.violations
    tight = simulate(instance, "mlbroker-tight").objective
    assert tight <= simulate(instance, "mlbroker").objective
    assert result.report["workers_placed"] >= result.report["workers_needed"] - 1e-9


def test_loose_big_m_makes_the_relaxation_worthless():
    instance = generate("small", 0)
    runs = [
        simulate(instance, "mlbroker", settings={"big_m_kind": kind}).report["fractional_cost"]
        for kind in ("symmetric", "loose")
    ]
    assert runs[1] < 0.05 * runs[0]


@pytest.mark.parametrize(
    "chosen",
    [
        {"epsilon": 0},
        {"epsilon": math.nan},
        {"epsilon": math.inf},
        {"big_m_factor": 0},
        {"big_m_factor": math.inf},
        {"rounding": "up"},
        {"price": "none"},
    ],
)
def test_bad_settings(chosen):
    with pytest.raises(InputError):
        simulate(generate("small", 0), "mlbroker", settings=chosen)


def test_receding_horizon():
    """Without noise a noisy forecast is a perfect one."""
    instance = generate("small", 0, horizon=6, life_slots=(3, 6), deployment_gb=300)
    one, two, noisy = (
        simulate(instance, "receding-horizon", settings=chosen, seed=2)
        for chosen in ({}, {"forecast": "noisy", "noise": 0}, {"forecast": "noisy", "noise": 0.5})
    )
    assert one.objective == two.objective
    assert not noisy.violations
    again = simulate(instance, "receding-horizon", seed=3)
    assert again.solution.assignments() == one.solution.assignments()
    assert not RecedingHorizon().randomised
    assert RecedingHorizon(forecast="noisy").randomised
    with pytest.raises(InputError):
        simulate(instance, "receding-horizon", settings={"window": 0})
    for noise in (-1, math.nan, 1000):
        with pytest.raises(InputError, match=r"set\.noise"):
            simulate(instance, "receding-horizon", settings={"noise": noise})


# Theorems


@pytest.mark.parametrize(
    ("epsilon", "value"), [(0.01, 6.661), (1 / (math.e - 1), 3.582), (1, 3.386), (10, 3.048)]
)
def test_k8_r1(epsilon, value):
    assert r1(epsilon) == pytest.approx(value, abs=6e-4)


def test_best_epsilon_for_a_ski_rental():
    best = 1 / (math.e - 1)
    assert ski_rental_ratio(best) == pytest.approx(math.e / (math.e - 1))
    assert all(ski_rental_ratio(e) > ski_rental_ratio(best) for e in (0.01, 0.1, 1, 10))


@pytest.mark.parametrize("epsilon", [0.01, 1.0])
def test_r1_bounds_the_fractional_algorithm(epsilon):
    """A_fractional <= r1 P_f, a claim (its proof fails), on 100 random instances in all."""

    @given(instance=instances(centers=3, slots=3, jobs=2, workers=3, kinds=1))
    def run(instance):
        result = simulate(instance, Mlbroker(epsilon=epsilon))
        optimum = relaxation_bound(instance, "paper")
        assert result.report["fractional_cost"] <= r1(epsilon) * optimum + 1e-4 * (1 + optimum)

    run()


def test_r2_changes_with_the_currency():
    dollars = generate("small", 0)
    one, other = (r2_paper(instance)["r2"] for instance in (dollars, scaled(dollars, 100.0)))
    assert other > 10 * one
    found = theorem(dollars)
    assert found["value"] == pytest.approx(r1(0.01) * one)
    assert "bounds nothing" in found["warning"]
    nothing = theorem(known_instance("mlbroker-r3-t2-s51").with_jobs(()))
    assert nothing["value"] is None
    data = dollars.to_dict()
    data["jobs"][0]["data_gb"][0] = [0.0, 5.0, 5.0]
    assert theorem(type(dollars).parse(data))["value"] is None


WITHOUT = [
    name
    for name in algorithms("mlbroker")
    if build_algorithm("mlbroker", name).card.forecasts is None
]


class Noting(Local):
    """Writes down what it is shown and told."""

    def start(self, environment):
        super().start(environment)
        self.shown, self.news = {}, {}

    def told(self, slot, news):
        super().told(slot, news)
        self.news[slot] = news

    def step(self, slot, arrivals):
        self.shown |= {job.name: job.data_gb for job in arrivals}
        return super().step(slot, arrivals)


class Forecasting(Noting):
    card = Capabilities(forecasts="all of it")


def test_a_record_holds_the_first_slot_and_every_slot_tells_its_own():
    tiny = generate("small", 1)
    noting = Noting()
    simulate(tiny, noting)
    assert any(len(job.data_gb) > 1 for job in tiny.jobs)
    for job in tiny.jobs:
        assert noting.shown[job.name] == job.data_gb[:1]
        told = [
            noting.news[slot][job.name]["data_gb"] for slot in range(job.arrival, job.departure + 1)
        ]
        assert np.array_equal(told, job.data_gb)
        others = set(noting.news) - set(range(job.arrival, job.departure + 1))
        assert not any(job.name in noting.news[slot] for slot in others)


def test_forecasts_are_shown_to_those_whose_card_says_so():
    tiny = generate("small", 1)
    forecasting = Forecasting()
    simulate(tiny, forecasting)
    assert forecasting.shown == {job.name: job.data_gb for job in tiny.jobs}


@pytest.mark.parametrize("name", WITHOUT)
def test_a_card_without_forecasts_is_told_nothing_of_later_slots(name):
    """Other data after the slot 2, the same decisions up to it."""
    tiny = generate("small", 2)
    other = []
    for job in tiny.jobs:
        known = max(0, 3 - job.arrival)
        later = tuple(tuple(2.5 * gb + 1 for gb in row) for row in job.data_gb[known:])
        other.append(job.model_copy(update={"data_gb": job.data_gb[:known] + later}))
    decided = [
        {
            job: [row for row in rows if row["to"] <= 2]
            for job, rows in simulate(each, name, seed=1).solution.assignments().items()
        }
        for each in (tiny, tiny.with_jobs(tuple(other)))
    ]
    assert decided[0] == decided[1]


def test_a_program_is_told_the_slot_s_data(tmp_path):
    """The message of a step names every live job's data; the record holds one list."""
    log = tmp_path / "log"
    script = tmp_path / "logs.py"
    script.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        f"    open({str(log)!r}, 'a').write(line)\n"
        "    kind = json.loads(line)['type']\n"
        "    answers = {'hello': 'hello', 'start': 'ready', 'step': 'decision'}\n"
        "    print(json.dumps({'type': answers.get(kind, kind), 'protocol': 1}), flush=True)\n"
    )
    tiny = generate("small", 1)
    with pytest.raises(Exception, match=r"\(8f\)|scheduler"):
        simulate(tiny, f"exec:{sys.executable} {script}")
    steps = [json.loads(line) for line in log.read_text().splitlines()]
    step = next(one for one in steps if one.get("arrivals"))
    news = {one["job"]: one["data_gb"] for one in step["events"] if one["type"] == "job-news"}
    for job in step["arrivals"]:
        assert job["data_gb"] == [news[job["name"]]]


@pytest.mark.parametrize("name", ["local", "central", "oasis-style"])
def test_k7_nobody_alone_earns_the_discount(name):
    assert simulate(two_jobs(0.5), name).objective == pytest.approx(64)
    assert simulate(two_jobs(1), name).objective == pytest.approx(64)


@pytest.mark.parametrize("name", ["mlbroker-tight", "mlbroker-cheaper"])
def test_k7_together_they_do(name):
    assert simulate(two_jobs(0.5), name).objective == pytest.approx(62)
    assert simulate(two_jobs(1), name).objective == pytest.approx(64)


def three_centers():
    """One job, 10 GB at r1 and 3 GB at r2, workers of 4 GB; r3 is cheap but far."""
    job = {"n": 2, "m": 1, "P": 4, "B": 1, "c": 1, "D": [[10, 3, 0]]}
    return make(3, 1, 0.5, [(3, 3, 0), (4, 4, 0), (2, 2, 0)], [job])


def test_local_by_hand():
    """3 workers at r1, 1 at r2, the PS anywhere: 18 + 8, the PS, its launch and exchanges."""
    result = simulate(three_centers(), "local", seed=4)
    assert result.solution.workers[0, 0].tolist() == [3, 1, 0]
    ps = int(result.solution.ps[0, 0])
    price, launches = (3, 4, 2)[ps], 2 + (ps == 2)
    remote = {0: 1, 1: 3, 2: 4}[ps]
    assert result.objective == pytest.approx(18 + 8 + price + launches + 0.5 * remote)
    places = {int(simulate(three_centers(), "local", seed=s).solution.ps[0, 0]) for s in range(20)}
    assert places == {0, 1, 2}


def test_central_by_hand():
    """4 workers and the PS: r1 27 + 1.5, r2 36 + 5, r3 18 + 6.5, each and 1 to launch."""
    result = simulate(three_centers(), "central")
    assert result.solution.workers[0, 0].tolist() == [0, 0, 4]
    assert result.objective == pytest.approx(18 + 6.5 + 1)


def test_oasis_style_by_hand():
    """Best of all placements of 4 workers at full prices, by enumeration."""
    result = simulate(three_centers(), "oasis-style")
    best = min(
        simulated_cost(workers, ps)
        for workers in itertools.product(range(5), repeat=3)
        if sum(workers) == 4
        for ps in range(3)
    )
    assert result.objective == pytest.approx(best)


def simulated_cost(workers, ps):
    from hindsched.solutions.mlbroker.solution import MlbrokerSolution

    solution = MlbrokerSolution(three_centers(), np.array([[workers]]), np.array([[ps]]))
    return solution.objective() if solution.is_feasible() else math.inf


@given(instance=instances(centers=3, slots=3, jobs=3, kinds=2, pins=False))
def test_laws_of_the_rivals(instance):
    local = simulate(instance, "local").solution
    assert local.costs.by_cost["transfer"] == 0
    for index in range(len(instance.jobs)):
        assert len(set(local.ps[index][instance.alive[index]].tolist())) == 1
    central = simulate(instance, "central").solution
    assert central.costs.by_cost["communication"] == 0
    assert (central.workers.sum(axis=2) == instance.workers_needed)[instance.alive].all()
    # with full prices only, nobody does better against itself than its best response
    oasis = simulate(instance, "oasis-style").solution
    first = int(np.flatnonzero(instance.alive.any(axis=0))[0])
    assert full_price(instance, oasis, first) <= full_price(instance, central, first) + 1e-9


def full_price(instance, solution, slot):
    """Cost of a slot if the lower tier did not exist."""
    costs, w = solution.costs, instance.weights
    jobs = w[0] * costs.transfer + w[2] * costs.deployment + w[3] * costs.communication
    return float(jobs[:, slot].sum() + w[1] * (instance.unit_price * costs.used[slot]).sum())


def test_oasis_style_marginal():
    found = simulate(two_jobs(0.5), "oasis-style", settings={"prices": "marginal"})
    assert found.objective == pytest.approx(62)
