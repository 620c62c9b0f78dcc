"""Trees close at the brute-force optimum, say so to both checkers, and are bounds when stopped."""

import copy
import json
import math
import signal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hindsched as hs
from hindsched.errors import InputError
from hindsched.kernel.reading import RefusedFile
from hindsched.online.simulator import simulate
from hindsched.solvers.base import build_oracle
from hindsched.solvers.certificates.file import verify_certificate
from hindsched.solvers.door import api
from hindsched.solvers.door.result import Status, StoppedBy
from hindsched.solvers.families.gang.replay import incumbents
from hindsched.solvers.families.mlbroker.methods import find_schedule
from hindsched.solvers.methods.base import serve_nobody
from hindsched.solvers.tree import method
from hindsched.solvers.tree.branch_and_bound import BranchAndBound
from hindsched.solvers.tree.method import certify_optimum
from tests.kernel.agreement import KERNELS, bound_of, exact
from tests.second_opinion.settle import optimum
from tests.strategies.astraea import astraea_instances
from tests.strategies.batchsched import tiny_instances as batchsched_instances
from tests.strategies.edgecloud import tiny_instances as edgecloud_instances
from tests.strategies.gang import tiny_instances as gang_instances
from tests.strategies.mlbroker import instances as mlbroker_instances
from tests.strategies.oasis import flat, make, oasis_instances
from tests.toy_family import PROBLEMS, brute_force, install
from tests.toy_family import tiny_instances as toy_instances

SMALL = "oasis-t10-i10-h10-s0"
"""Its optimum is 287.0644; prices alone do not prove it."""
SCHEDULED = "oasis-t10-i10-h25-s0"


def grow(oracle, nodes=400, incumbent=None, prices=None):
    """A tree from prices 0, of at most so many nodes; no clock decides anything."""
    prices = np.zeros(oracle.rows.size) if prices is None else prices
    tree = BranchAndBound(oracle, prices, gap=1e-6, incumbent=incumbent)
    tree.run(lambda: None if tree.nodes < nodes else 0.0)
    return tree


def proven(instance, data):
    """What the exact kernel proves of a file."""
    return bound_of(KERNELS[instance.family], exact(instance.to_dict()), exact(data))


def check_closed(tree, best):
    """Incumbent and bound meet at the optimum; the file says so to anyone."""
    certificate, instance = tree.certificate(), tree.oracle.instance
    assert tree.is_closed, f"{tree.nodes} nodes"
    assert tree.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert not tree.incumbent.violations()
    assert certificate.bound == pytest.approx(best, rel=1.1e-6, abs=1e-6)
    data = json.loads(json.dumps(certificate.to_dict()))
    if tree.oracle.step is not None or instance.family != "edgecloud":
        assert verify_certificate(instance, data).bound == pytest.approx(certificate.bound)
    if instance.family in KERNELS:
        found, sign = proven(instance, data), 1 if instance.sense == "min" else -1
        end = float(found.high if sign == 1 else found.low)
        assert sign * certificate.bound <= sign * end + 1e-9 * abs(end) + 1e-12
        assert sign * end <= sign * best + 1e-6
    return certificate.num_leaves or 1


def nobody(instance):
    """The schedule that serves nobody."""
    return serve_nobody(instance, instance.formulations[0])


TREES = {
    "oasis": (oasis_instances(), "servers", nobody),
    "batchsched": (batchsched_instances(), "servers", nobody),
    "astraea": (astraea_instances(), "servers", nobody),
    "edgecloud": (
        st.booleans().flatmap(lambda s: edgecloud_instances(clouds=(None, 0), storage=s)),
        "groups", lambda _: None,
    ),
    "mlbroker": (
        mlbroker_instances(), "servers", lambda i: find_schedule(i, "tight"),
    ),
    "gang": (
        gang_instances(most_jobs=4).map(lambda one: one.with_fields(placement="pool")),
        "intervals",
        lambda i: min(incumbents(i, "non-preemptive"), key=lambda one: one.objective()),
    ),
}  # fmt: skip


@pytest.mark.parametrize("family", TREES)
def test_trees_close_at_the_optimum(family):
    strategy, rows, start_of = TREES[family]
    leaves = []

    @given(strategy)
    def check(instance):
        best = optimum(instance)
        if math.isinf(best):
            return
        oracle = build_oracle(instance, rows=rows)
        if family == "edgecloud" and len(leaves) % 2:  # more is left to the branching
            oracle.step = None
        tree = grow(oracle, incumbent=start_of(instance))
        if tree.is_closed or family != "edgecloud":  # groups do not tell who works when
            leaves.append(check_closed(tree, best))

    check()
    assert len(leaves) > 15
    assert max(leaves) > 1 or family == "edgecloud"  # prices alone would not have done


@pytest.mark.parametrize(("family", "formulation"), PROBLEMS)
def test_every_kind_of_problem(family, formulation, monkeypatch):
    install(monkeypatch)
    branched = []

    @settings(max_examples=100)  # it counts what it saw
    @given(toy_instances(family))
    def check(instance):
        optimum = brute_force(instance, formulation)
        if optimum is not None and instance.jobs:
            oracle = build_oracle(instance, formulation, rows="servers")
            branched.append(check_closed(grow(oracle), optimum) > 1)

    check()
    assert sum(branched) >= 3


def test_what_groups_cannot_prove_is_proven_by_patterns():
    """Each of two PS servers holds one PS of 2 Mbps, and both together three."""
    instance = make([{"ps": {"mbps": 2}}] * 3, [{"mbps": 9}], [{"mbps": 3}] * 2)
    groups = grow(build_oracle(instance, rows="groups"), 200)
    assert not groups.is_closed
    assert groups.stopped_by is StoppedBy.CONVERGED
    assert groups.certificate().bound == pytest.approx(3.0)
    result = hs.solve(instance, "tree", time_limit=20.0)
    assert (result.status, result.objective) == (Status.OPTIMAL, 2.0)
    verified = verify_certificate(instance, result.certificate.to_dict())
    assert (verified.certificate.layout, verified.bound) == ("patterns", pytest.approx(2.0))


@pytest.mark.parametrize("nodes", [0, 1, 3, 6])
def test_an_open_tree_is_a_bound_between_its_root_and_the_optimum(nodes):
    instance = hs.named_instance(SMALL)
    oracle = build_oracle(instance, rows="groups")
    tree = grow(oracle, nodes, nobody(instance))
    certificate = tree.certificate()
    assert not tree.is_closed
    assert tree.stopped_by is StoppedBy.TIME_LIMIT
    # Until both sides of the first split are bounded the root's prices prove as much.
    assert certificate.kind == ("tree" if nodes > 5 else "lagrangian")
    assert 287.0643 <= certificate.bound <= oracle.bound(np.zeros(oracle.rows.size))
    assert certificate.bound == pytest.approx(tree.bound, rel=1e-9)
    assert verify_certificate(instance, certificate.to_dict()).bound == certificate.bound


def test_ctrl_c_keeps_the_tree_so_far(monkeypatch):
    instance = hs.named_instance(SMALL)
    seen = []

    def interrupt_in_the_tree(bound, objective, seconds, message):
        if "open" in message and not seen:
            seen.append(bound)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(api, "LineProgress", lambda limit: interrupt_in_the_tree)
    result = hs.solve(instance, "tree", time_limit=60.0, progress=True)
    assert (result.stopped_by, result.status) == (StoppedBy.INTERRUPTED, Status.FEASIBLE)
    assert not result.solution.violations()
    assert result.objective <= 287.0644 <= result.bound <= seen[0] * (1 + 1e-9)
    assert verify_certificate(instance, result.certificate.to_dict()).bound == result.bound


def test_an_optimum_that_a_solver_vouches_for_gets_a_tree(monkeypatch):
    instance = hs.named_instance(SCHEDULED)
    solved = hs.solve(instance, "milp", time_limit=120.0)
    assert (solved.status, solved.certificate) == (Status.OPTIMAL, None)
    proven = certify_optimum(solved)
    assert (proven.solution, proven.bound) == (solved.solution, solved.bound)
    assert proven.certificate.kind == "tree"
    assert proven.certificate.bound == pytest.approx(solved.objective, rel=1e-6)
    assert proven.certified_bound == proven.certificate.bound
    assert certify_optimum(proven) is proven
    monkeypatch.setattr(method, "SMALL_TREE", 10)
    told = certify_optimum(solved)
    assert told.certificate is None
    assert "not grown" in told.details["tree"]
    bounded = hs.solve(instance, "bound", time_limit=1.0)
    assert certify_optimum(bounded) is bounded


def test_what_is_next_to_nothing_is_relative_to_the_objective():
    """Of two jobs worth 2.0e-8 and 2.2e-8 that do not fit together the better one runs."""
    one = {"gpu": 1, "mbps": 1}
    jobs = [{"worker": one, "ps": one, "utility": flat(worth)} for worth in (2.0e-8, 2.2e-8)]
    instance = make(jobs, [one], [one])
    incumbent = simulate(instance, "fifo").solution
    assert incumbent.objective() == 2.0e-8
    oracle = build_oracle(instance, rows="servers")
    prices = np.zeros(oracle.rows.size)
    prices[0] = 2.1e-8
    assert oracle.bound(prices) == pytest.approx(2.2e-8, rel=1e-6)
    tree = grow(oracle, 20, incumbent, prices)
    assert (tree.is_closed, tree.objective) == (True, 2.2e-8)


@pytest.mark.parametrize(
    "formulation", ["preemptive", "elastic,deadlines", "non-preemptive,makespan"]
)
def test_gang_refuses_trees_of_jobs_that_pause_and_of_makespans(formulation):
    with pytest.raises(InputError, match="cannot restrict"):
        hs.solve(hs.generate("gang", seed=1, jobs=2), "tree", formulation=formulation, time_limit=1)


# Leaves of batchsched are rounded up to a multiple of the weights, and trees go on.


def test_a_leaf_of_batchsched_is_rounded_up_to_a_multiple_of_the_weights():
    instance = hs.named_instance("batchsched/small/rar-j6-s13")
    oracle = build_oracle(instance, rows="servers")
    assert oracle.step == 1
    grown = grow(oracle, 8)
    certificate = grown.certificate()
    assert certificate.bound == int(certificate.bound) <= 104
    data = json.loads(json.dumps(certificate.to_dict()))
    assert verify_certificate(instance, data).bound == certificate.bound
    assert proven(instance, data).low == certificate.bound
    oracle.step = None
    older = json.loads(json.dumps(grown.certificate().to_dict()))  # its leaves are not rounded
    found = verify_certificate(instance, older)
    assert found.claimed == older["bound"] < certificate.bound == found.bound
    assert found.claims_less
    min(data["prices"], key=lambda leaf: leaf["bound"])["bound"] += 1e-6
    with pytest.raises(RefusedFile, match="more than what is proven"):
        proven(instance, data)


def test_the_step_of_batchsched_is_what_all_weights_are_multiples_of():
    data = hs.named_instance("batchsched/small/rar-j4-s10").to_dict()
    for job, weight in zip(data["jobs"], (0.6, 0.9, 1.5, 3.0), strict=True):
        job["weight"] = weight
    assert build_oracle(hs.read(data), rows="servers").step == Fraction(3, 10)


# Forged trees of the other families (those of oasis: `test_tree_certificate`).


@pytest.fixture(scope="module", params=["gang", "edgecloud", "mlbroker"])
def open_tree(request):
    """A tree of some leaves on an instance of suite ``small``, closed or not."""
    instance = hs.suite(request.param, "small")[2]
    certificate = grow(build_oracle(instance), nodes=9).certificate()
    assert certificate.num_leaves >= 2
    data = certificate.to_dict()
    assert certificate.bound <= float(proven(instance, data).high) * (1 + 1e-12)
    return instance, data


def first_row(data):
    """The first price of the leaf with most prices."""
    leaf = max(data["prices"], key=lambda leaf: sum(map(len, leaf["prices"].values())))
    return next(rows[0] for rows in leaf["prices"].values() if rows)


TAMPERINGS = {
    "leaf": lambda d: d["prices"][0].update(bound=d["prices"][0]["bound"] * 1.01),
    "called empty": lambda d: d["prices"][0].update(bound=None, prices={}),
    "missing": lambda d: d["prices"].pop(),
    "twice": lambda d: d["prices"].append(copy.deepcopy(d["prices"][0])),
    "another split": lambda d: d["prices"][0]["decisions"][0].update(at_most=77),
    "unknown feature": lambda d: d["prices"][0]["decisions"][0].update(of="luck"),
    "unknown job": lambda d: d["prices"][0]["decisions"][0].update(job="nobody"),
    "unknown key": lambda d: first_row(d).update(note=1),
    "negative price": lambda d: first_row(d).update(price=-1.0),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_tampered_trees_are_refused_by_both(open_tree, name):
    instance, data = open_tree
    changed = copy.deepcopy(data)
    TAMPERINGS[name](changed)
    with pytest.raises(InputError):
        verify_certificate(instance, changed)
    with pytest.raises((RefusedFile, LookupError)):
        proven(instance, changed)
