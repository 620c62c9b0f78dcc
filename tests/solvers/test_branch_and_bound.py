"""Branch and bound: trees that close at the brute-force optimum, and trees that stop before."""

import json
import signal
import threading

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from hindsched.instances.io import read
from hindsched.instances.oasis.instance import OasisInstance
from hindsched.online.simulator import simulate
from hindsched.solvers.certificates.file import verify_certificate
from hindsched.solvers.door.api import solve
from hindsched.solvers.door.status import Status, StoppedBy
from hindsched.solvers.methods.base import serve_nobody
from hindsched.solvers.oracles.base import build_oracle
from hindsched.solvers.tree.branch_and_bound import BranchAndBound
from hindsched.solvers.tree.method import certify_optimum
from tests.brute_force import astraea as astraea_brute_force
from tests.brute_force import batchsched as batchsched_brute_force
from tests.brute_force import oasis as oasis_brute_force
from tests.strategies.astraea import astraea_instances
from tests.strategies.batchsched import tiny_instances
from tests.strategies.oasis import oasis_instances
from tests.toy_family import PROBLEMS, brute_force, install
from tests.toy_family import tiny_instances as toy_instances

EXAMPLES = settings(
    deadline=None, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate)
)
MOST_NODES = 400
OPTIMA = {
    "oasis-t10-i10-h25-s0": 182.358776424672,
    "oasis-t10-i10-h5-s1": 250.338,
    "batchsched-ps-j5-s200": 243.0,
    "batchsched-rar-j5-s200": 251.0,
    "astraea-j5-s40": 347.643944,
}


def instance_of(name):
    return read(f"tests/data/instances/{name}.json")


def grow(oracle, nodes=MOST_NODES, incumbent=None):
    """A tree from prices 0, of at most so many nodes; no clock decides anything."""
    tree = BranchAndBound(oracle, np.zeros(oracle.rows.size), gap=1e-6, incumbent=incumbent)
    tree.run(lambda: None if tree.nodes < nodes else 0.0)
    return tree


def check_closed(tree, instance, optimum):
    """The tree proves its own incumbent optimal; its file says so to anyone."""
    certificate = tree.certificate()
    assert tree.is_closed, f"{tree.nodes} nodes"
    assert tree.objective == pytest.approx(optimum, rel=1e-6, abs=1e-6)
    assert not tree.incumbent.violations()
    assert certificate.bound == pytest.approx(optimum, rel=1.1e-6, abs=1e-6)
    data = json.loads(json.dumps(certificate.to_dict()))
    assert verify_certificate(instance, data).bound == certificate.bound
    return certificate.num_leaves or 1


FAMILIES = {
    "oasis": (oasis_instances(), "servers", lambda i: oasis_brute_force.optimum(i).value),
    "batchsched": (tiny_instances(), "servers", batchsched_brute_force.optimum),
    "astraea": (astraea_instances(), "servers", lambda i: astraea_brute_force.optimum(i).value),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_tiny_tree_closes_at_the_brute_force_optimum(family):
    strategy, rows, optimum_of = FAMILIES[family]
    leaves = []

    @settings(EXAMPLES, max_examples=100)
    @given(instance=strategy)
    def check(instance):
        oracle = build_oracle(instance, rows=rows)
        tree = grow(oracle, incumbent=serve_nobody(instance, oracle.formulation))
        leaves.append(check_closed(tree, instance, optimum_of(instance)))

    check()
    assert sum(count > 1 for count in leaves) >= 5  # prices alone would not have done


@pytest.mark.parametrize(("layout", "least"), [("groups", 90), ("patterns", 100)])
def test_groups_that_hold_more_than_their_servers_leave_a_bound(layout, least):
    """Of 100 trees on groups 96 close, on patterns all: groups hold what servers cannot."""
    closed = []

    @settings(EXAMPLES, max_examples=100)
    @given(instance=oasis_instances())
    def check(instance):
        optimum = oasis_brute_force.optimum(instance).value
        oracle = build_oracle(instance, rows=layout)
        tree = grow(oracle, 30, serve_nobody(instance, oracle.formulation))
        closed.append(tree.is_closed)
        if tree.is_closed:
            check_closed(tree, instance, optimum)
        else:
            assert tree.certificate().bound >= optimum

    check()
    assert sum(closed) >= least


def three_on_two():
    """Three jobs, each wants a PS of 2 Mbps; each of two PS servers holds one, both hold three."""
    job = {
        "arrival": 1, "epochs": 1, "chunks": 1, "minibatches": 1, "minibatch_slots": 1,
        "gradient_mb": 0, "worker": {"mbps": 1}, "ps": {"mbps": 2},
        "utility": {"kind": "linear", "slope": 0, "intercept": 1},
    }  # fmt: skip
    return OasisInstance.parse(
        {
            "format": "hindsched/1", "family": "oasis", "name": "three", "horizon": 1,
            "slot_seconds": 8, "resources": ["mbps"], "bandwidth_resource": "mbps",
            "worker_servers": [{"name": "w1", "capacity": {"mbps": 9}}],
            "ps_servers": [{"name": f"p{k}", "capacity": {"mbps": 3}} for k in (1, 2)],
            "jobs": [{"name": f"j{k}", **job} for k in (1, 2, 3)],
        }
    )  # fmt: skip


def test_what_groups_cannot_prove_is_proven_by_patterns():
    instance = three_on_two()
    groups = grow(build_oracle(instance, rows="groups"), 200)
    assert not groups.is_closed
    assert groups.stopped_by is StoppedBy.CONVERGED
    assert groups.certificate().bound == pytest.approx(3.0)
    result = solve(instance, "tree", time_limit=20.0)
    assert (result.status, result.objective) == (Status.OPTIMAL, 2.0)
    verified = verify_certificate(instance, result.certificate.to_dict())
    assert (verified.layout, verified.bound) == ("patterns", pytest.approx(2.0))


def test_a_layout_that_leaves_nodes_open_is_followed_by_the_next(monkeypatch):
    instance = three_on_two()
    monkeypatch.setattr("hindsched.solvers.families.oasis.oracle.TREE_ROWS", ("groups", "servers"))
    result = solve(instance, "tree", time_limit=20.0)
    assert (result.status, result.objective) == (Status.OPTIMAL, 2.0)
    verified = verify_certificate(instance, result.certificate.to_dict())
    assert (verified.layout, verified.bound) == ("servers", pytest.approx(2.0))


@pytest.mark.parametrize(("family", "formulation"), PROBLEMS)
def test_every_kind_of_problem(family, formulation, monkeypatch):
    install(monkeypatch)
    branched = []

    @settings(EXAMPLES, max_examples=60)
    @given(instance=toy_instances(family), layout=st.sampled_from(["groups", "servers"]))
    def check(instance, layout):
        optimum = brute_force(instance, formulation)
        if optimum is None or not instance.jobs:
            return
        oracle = build_oracle(instance, formulation, rows="servers")
        branched.append(check_closed(grow(oracle), instance, optimum) > 1)

    check()
    assert sum(branched) >= 3


@pytest.mark.parametrize("nodes", [0, 1, 3, 6])
def test_an_open_tree_is_a_bound_between_its_root_and_the_optimum(nodes):
    instance = instance_of("oasis-t10-i10-h10-s0")
    oracle = build_oracle(instance, rows="groups")
    tree = grow(oracle, nodes, serve_nobody(instance, oracle.formulation))
    certificate = tree.certificate()
    assert not tree.is_closed
    assert tree.stopped_by is StoppedBy.TIME_LIMIT
    # Until both sides of the first split are bounded the root's prices prove as much.
    assert certificate.kind == ("tree" if nodes > 5 else "lagrangian")
    root = oracle.bound(np.zeros(oracle.rows.size))
    assert 287.0643 <= certificate.bound <= root
    assert certificate.bound == pytest.approx(tree.bound, rel=1e-9)
    assert verify_certificate(instance, certificate.to_dict()).bound == certificate.bound


def test_more_nodes_never_prove_less():
    instance = instance_of("oasis-t10-i10-h25-s0")
    oracle = build_oracle(instance, rows="groups")
    nobody = serve_nobody(instance, oracle.formulation)
    bounds = [grow(oracle, nodes, nobody).certificate().bound for nodes in (0, 1, 2, 4)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < bounds[0]


def test_ctrl_c_keeps_the_tree_so_far():
    instance = instance_of("oasis-t10-i10-h10-s0")
    seen = []

    def interrupt_in_the_tree(bound, objective, seconds, message):
        if "open" in message and not seen:
            seen.append(bound)
            signal.raise_signal(signal.SIGINT)

    assert threading.current_thread() is threading.main_thread()
    result = solve(instance, "tree", time_limit=60.0, on_progress=interrupt_in_the_tree)
    assert seen
    assert result.stopped_by is StoppedBy.INTERRUPTED
    assert result.status is Status.FEASIBLE
    assert not result.solution.violations()
    assert result.objective <= 287.0644 <= result.bound <= seen[0] * (1 + 1e-9)
    assert verify_certificate(instance, result.certificate.to_dict()).bound == result.bound


@pytest.mark.parametrize("name", OPTIMA)
def test_known_optima_are_proven(name):
    instance = instance_of(name)
    result = solve(instance, "tree", time_limit=500.0)
    assert result.method == "tree"
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(OPTIMA[name], rel=1e-6)
    verified = verify_certificate(instance, result.certificate.to_dict())
    assert verified.bound == pytest.approx(result.objective, rel=1e-6)


def test_an_optimum_that_a_solver_vouches_for_gets_a_tree():
    instance = instance_of("oasis-t10-i10-h25-s0")
    solved = solve(instance, "milp", time_limit=120.0)
    assert solved.status is Status.OPTIMAL
    assert solved.certificate is None
    proven = certify_optimum(solved)
    assert proven.solution is solved.solution
    assert proven.bound == solved.bound
    assert proven.certificate.kind == "tree"
    assert proven.certificate.bound == pytest.approx(solved.objective, rel=1e-6)
    assert proven.details["certified_bound"] == proven.certificate.bound
    assert "leaves" in proven.details["tree"]
    assert certify_optimum(proven) is proven


def test_what_is_no_optimum_or_too_large_gets_no_tree(monkeypatch):
    instance = instance_of("oasis-t10-i10-h25-s0")
    bounded = solve(instance, "bound", time_limit=1.0)
    assert certify_optimum(bounded) is bounded
    solved = solve(instance, "milp", time_limit=120.0)
    monkeypatch.setattr("hindsched.solvers.tree.method.SMALL_TREE", 10)
    told = certify_optimum(solved)
    assert told.certificate is None
    assert "not grown" in told.details["tree"]


def test_what_is_next_to_nothing_is_relative_to_the_objective():
    """Of two jobs worth 2.0e-8 and 2.2e-8 that do not fit together the better one runs."""
    one = {"gpu": 1, "net": 1}
    jobs = [
        {"name": name, "arrival": 1, "epochs": 1, "chunks": 1, "minibatches": 1,
         "minibatch_slots": 1, "gradient_mb": 0, "worker": one, "ps": one,
         "utility": {"kind": "linear", "slope": 0, "intercept": worth}}
        for name, worth in (("first", 2.0e-8), ("better", 2.2e-8))
    ]  # fmt: skip
    server = {"capacity": one}
    instance = OasisInstance.parse(
        {"name": "tiny", "horizon": 1, "slot_seconds": 1, "resources": ["gpu", "net"],
         "bandwidth_resource": "net", "worker_servers": [{"name": "w", **server}],
         "ps_servers": [{"name": "p", **server}], "jobs": jobs}
    )  # fmt: skip
    incumbent = simulate(instance, "fifo").solution
    assert incumbent.objective() == 2.0e-8
    oracle = build_oracle(instance, rows="servers")
    prices = np.zeros(oracle.rows.size)
    prices[0] = 2.1e-8
    assert oracle.bound(prices) == pytest.approx(2.2e-8, rel=1e-6)
    tree = BranchAndBound(oracle, prices, gap=1e-6, incumbent=incumbent)
    tree.run(lambda: None if tree.nodes < 20 else 0.0)
    assert (tree.is_closed, tree.objective) == (True, 2.2e-8)
