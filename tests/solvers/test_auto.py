import signal

import numpy as np
import pytest

from hindsched.errors import SolveFailed
from hindsched.instances.base import FAMILIES
from hindsched.instances.generators.registry import generate
from hindsched.instances.io import parse_instance, read
from hindsched.solvers.certificates.file import verify_certificate
from hindsched.solvers.door import api
from hindsched.solvers.door.api import check_result, solve
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.result import Result, Status, StoppedBy
from hindsched.solvers.families.edgecloud.oracle import EdgecloudServers
from hindsched.solvers.families.oasis.solvers import OasisSolvers
from hindsched.solvers.methods import auto
from hindsched.solvers.methods.auto import solve_auto
from tests.toy_family import PROBLEMS, ToySolvers, brute_force, install, make, random_instance


@pytest.fixture(autouse=True)
def _toy(monkeypatch):
    install(monkeypatch)


T10 = "tests/data/instances/oasis-t10-i10-h10-s0.json"
T100 = "tests/data/instances/oasis-t100-i100-h50-s0.json"


@pytest.fixture
def no_tree(monkeypatch):
    """A route to the program: a tree would prove these instances before."""
    for solvers in (ToySolvers, OasisSolvers):
        monkeypatch.setattr(solvers, "tree_layouts", lambda *_: ())


def no_program(instance, formulation, options, on_progress, *, incumbent=None):
    """A program that finds nothing and bounds nothing."""
    return Result(instance, formulation, "milp", Status.NO_SOLUTION, StoppedBy.TIME_LIMIT)


@pytest.mark.parametrize(("family", "formulation"), PROBLEMS)
def test_ends_with_an_interval_that_holds_the_optimum(family, formulation, no_tree):
    jobs = [(1, 2, 1, 9), (1, 1, 2, 5), (2, 1, 1, 7), (1, 1, 1, 3)]
    instance = make(family, jobs, [2, 1], 7)
    seen = []
    result = solve_auto(
        instance,
        formulation,
        SolveOptions(time_limit=2.0),
        lambda *news: seen.append(news),
        program=no_program,
    )
    optimum = brute_force(instance, formulation)
    low, high = sorted((result.objective, result.bound))
    assert low - 1e-6 <= optimum <= high + 1e-6
    assert result.certificate.bound == result.bound
    assert verify_certificate(instance, result.certificate.to_dict()).bound == result.bound
    bound, objective, _, message = seen[-1]
    assert bound == pytest.approx(result.bound)
    assert objective == pytest.approx(result.objective)
    assert "bounds" in message
    seconds = [news[2] for news in seen]
    assert seconds == sorted(seconds)


def test_small_instances_are_proven_by_the_program(no_tree):
    result = solve(read("tests/data/instances/oasis-t10-i10-h25-s0.json"), time_limit=60.0)
    assert result.method == "prices+search+milp"
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(182.359, abs=1e-3)
    assert "at most" in result.details["why"]
    assert result.certified_bound >= result.bound


def test_a_tree_comes_before_the_program():
    def fails(*arguments, **keywords):
        raise AssertionError("the tree is enough")

    # One and a half jobs fit in a slot: prices alone cannot close the gap.
    instance = make("toymax", [(1, 1, 2, 6), (1, 1, 2, 6), (1, 1, 2, 6)], [3], 2)
    result = solve_auto(instance, "optional", SolveOptions(time_limit=10.0), program=fails)
    assert (result.method, result.stopped_by) == ("prices+search+tree", StoppedBy.GAP)
    assert result.objective == brute_force(instance, "optional")
    certificate = verify_certificate(instance, result.certificate.to_dict())
    assert certificate.bound == result.bound
    assert result.certificate.num_leaves > 1


def test_large_instances_alternate_and_are_certified():
    instance = read(T100)
    result = solve(instance, work_limit=400)
    assert result.method == "prices+search"
    assert result.stopped_by is StoppedBy.ITERATION_LIMIT
    assert "above" in result.details["why"]
    assert result.certificate.bound == result.bound
    assert 1383.4 <= result.bound <= 1400.0  # the Lagrangian bound is 1383.44
    assert result.objective >= 1150.0


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seconds", [0.0, 0.05])
def test_every_family_has_an_interval_at_once(family, seconds):
    instance = generate(family, "small", 1)
    result = solve(instance, time_limit=seconds)
    assert result.objective is not None
    assert verify_certificate(instance, result.certificate.to_dict()).bound is not None
    beyond = result.objective - result.bound
    assert (beyond if instance.sense == "max" else -beyond) <= 0


def test_once_the_time_is_over_no_schedule_is_searched_where_one_is_known(monkeypatch):
    asked = []
    real = EdgecloudServers.best_response
    monkeypatch.setattr(
        EdgecloudServers, "best_response", lambda *given: asked.append(given) or real(*given)
    )
    instance = generate("edgecloud", "paper", 0, jobs=20)
    result = solve(instance, time_limit=0.0)
    assert result.status is Status.FEASIBLE
    assert verify_certificate(instance, result.certificate.to_dict()).bound == result.bound > 0
    assert len(asked) <= 1


def test_interrupt_returns_what_is_known(monkeypatch):
    monkeypatch.setattr(auto, "SMALL_SIZE", 0)
    told = []

    def interrupt_the_search(bound, objective, seconds, message):
        if not told and not message.endswith(" 0 neighbourhoods"):
            told.append((bound, objective))
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(api, "LineProgress", lambda limit: interrupt_the_search)
    result = solve(read(T10), time_limit=600.0, progress=True)
    assert result.stopped_by is StoppedBy.INTERRUPTED
    [(bound, objective)] = told
    assert objective <= result.objective
    assert result.bound <= bound * (1 + 1e-6)
    assert result.objective <= 287.065 <= result.bound + 1e-3


def test_a_failing_program_is_recorded_not_hidden(no_tree):
    def fails(*arguments, **keywords):
        raise SolveFailed("out of memory")

    # One and a half jobs fit in a slot: prices alone cannot close the gap.
    instance = make("toymax", [(1, 1, 2, 6), (1, 1, 2, 6), (1, 1, 2, 6)], [3], 2)
    result = solve_auto(instance, "optional", SolveOptions(time_limit=1.0), program=fails)
    assert result.details["program_failed"] == "out of memory"
    assert result.status is Status.FEASIBLE
    assert result.objective <= result.bound


def test_better_bound_of_the_program_counts_and_the_certificate_stays(no_tree):
    instance = make("toymax", [(1, 1, 2, 6), (1, 1, 2, 6), (1, 1, 2, 6)], [3], 2)
    optimum = brute_force(instance, "optional")

    def exact(instance, formulation, options, on_progress, *, incumbent=None):
        on_progress(optimum, None, 0.0, "root")
        return Result(
            instance, formulation, "milp", Status.OPTIMAL, StoppedBy.GAP, incumbent, optimum
        )

    news = []
    options = SolveOptions(time_limit=1.0)
    result = solve_auto(instance, "optional", options, lambda *n: news.append(n), program=exact)
    assert check_result(result, options.gap).status is Status.OPTIMAL
    assert result.bound == optimum < result.certificate.bound
    assert news[-1][0] == optimum


def test_a_known_solution_is_never_lost():
    rng = np.random.default_rng(0)
    instance = random_instance("toymax", rng, jobs=12, servers=2, horizon=12)
    known = solve_auto(instance, "optional", SolveOptions(time_limit=1.0), program=no_program)
    again = solve_auto(
        instance,
        "optional",
        SolveOptions(time_limit=0.0),
        incumbent=known.solution,
        program=no_program,
    )
    assert again.objective >= known.objective


@pytest.mark.parametrize("method", ["auto", "bound"])
def test_a_mandatory_job_without_a_schedule_makes_every_method_say_infeasible(method):
    result = solve(make("toymin", [(1, 9, 1, 1)], [1], 3), method, time_limit=1.0)
    assert result.status is Status.INFEASIBLE
    assert result.bound is None


@pytest.mark.parametrize("threads", [1, 2])
def test_jobs_that_cannot_all_be_served_are_infeasible_though_no_price_is_the_last(threads):
    job = {"tenant": "u", "arrival": 0, "epochs": 1, "chunks": 1, "minibatches": 2,
           "minibatch_slots": 1.0, "update_slots": 0, "gradient_mb": 0,
           "utility": {"kind": "linear", "slope": -1, "intercept": 10}}  # fmt: skip
    instance = parse_instance({
        "format": "hindsched/1", "family": "astraea", "name": "full", "horizon": 3,
        "slot_seconds": 1, "utility_origin": "arrival",
        "tenants": [{"name": "u", "worker_quota": 1, "ps_quota": 1}],
        "servers": [{"name": "s", "workers": 1, "ps": 1}],
        "worker_bandwidth_mbps": 1, "ps_bandwidth_mbps": 1,
        "jobs": [{"name": "a", **job}, {"name": "b", **job}],
    })  # fmt: skip
    result = solve(instance, "auto", formulation="must-complete,modes", threads=threads)
    assert result.status is Status.INFEASIBLE
