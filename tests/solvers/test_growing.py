"""Trees that go on: rounded leaves of batchsched, ends decided by leaves, pace, and resuming."""

import json
from fractions import Fraction
from threading import Event

import numpy as np
import pytest

from hindsched.instances.io import parse_instance
from hindsched.instances.library import named_instance
from hindsched.kernel import batchsched as batchsched_kernel
from hindsched.kernel.reading import Refused
from hindsched.solvers.certificates.file import verify_certificate
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.status import StoppedBy
from hindsched.solvers.families.oasis.nodes import EndsProgram
from hindsched.solvers.methods.base import bound, serve_nobody
from hindsched.solvers.oracles.base import build_oracle
from hindsched.solvers.tree import method as tree
from hindsched.solvers.tree.branch_and_bound import BranchAndBound
from tests.kernel.agreement import exact, silent


def test_a_leaf_of_batchsched_is_rounded_up_to_a_multiple_of_the_weights():
    instance = named_instance("batchsched/small/rar-j6-s13")
    oracle = build_oracle(instance, rows="servers")
    assert oracle.step == 1
    grown = BranchAndBound(oracle, np.zeros(oracle.rows.size), gap=1e-6)
    grown.run(lambda: None if grown.nodes < 8 else 0.0)
    certificate = grown.certificate()
    assert certificate.bound == int(certificate.bound) <= 104
    data = json.loads(json.dumps(certificate.to_dict()))
    assert verify_certificate(instance, data).bound == certificate.bound
    proven = batchsched_kernel.bound(exact(instance.to_dict()), exact(data), silent)
    assert proven.low == certificate.bound
    oracle.step = None
    older = json.loads(json.dumps(grown.certificate().to_dict()))  # its leaves are not rounded
    found = verify_certificate(instance, older)
    assert found.claimed == older["bound"] < certificate.bound == found.bound
    assert found.claims_less
    worst = min((leaf for leaf in data["prices"]), key=lambda leaf: leaf["bound"])
    worst["bound"] += 1e-6
    with pytest.raises(Refused, match="more than what is proven"):
        batchsched_kernel.bound(exact(instance.to_dict()), exact(data), silent)


def test_the_step_of_batchsched_is_what_all_weights_are_multiples_of():
    data = named_instance("batchsched/small/rar-j4-s10").to_dict()
    for job, weight in zip(data["jobs"], (0.6, 0.9, 1.5, 3.0), strict=True):
        job["weight"] = weight
    instance = parse_instance(data)
    assert build_oracle(instance, rows="servers").step == Fraction(3, 10)


def test_a_leaf_finds_the_schedule_that_an_oasis_node_promises():
    """Without any search near the nodes the tree closes: each solution is a leaf's."""
    instance = named_instance("oasis/small/t8-j8-h3-d4-s1")
    oracle = build_oracle(instance, rows="patterns")
    nobody = serve_nobody(instance, oracle.formulation)
    grown = BranchAndBound(
        oracle, np.zeros(oracle.rows.size), gap=1e-6, incumbent=nobody, program=EndsProgram
    )
    grown.run(lambda: None if grown.nodes < 100 else 0.0)
    assert grown.is_closed
    assert grown.objective == pytest.approx(208.98710128392844)


def test_a_tree_goes_on_where_it_stopped():
    instance = named_instance("batchsched/small/rar-j6-s13")
    known = bound(instance, instance.formulations[0], SolveOptions(work_limit=50), None)
    growing = tree.Growing(known, known.certificate.prices, 1e-6, Event(), None)
    stopped = growing.run(lambda: float(growing._tree.nodes < 3))
    assert stopped.stopped_by is StoppedBy.TIME_LIMIT
    ended = growing.run(lambda: 1.0)
    assert ended.stopped_by is StoppedBy.GAP
    assert ended.objective == ended.certificate.bound == 104
    assert ended.details["nodes"] > stopped.details["nodes"] == 3


@pytest.mark.parametrize(
    ("gaps", "each", "left", "slow"),
    [
        ([10.0] * 50, 0.01, 0.0, False),  # it is tried first
        ([10.0] * 50, 1.0, 0.0, True),  # for some seconds only
        ([10.0] * 200, 0.01, 1e4, True),
        ([200.0 - n for n in range(200)], 0.01, 3.0, False),
        ([400.0 - n for n in range(200)], 0.01, 3.0, False),
        ([400.0 - n for n in range(200)], 0.01, 1.5, True),
        ([100.0, *[9.0] * 200], 0.01, 0.01, False),  # nearly closed
    ],
)
def test_a_tree_is_slow_if_its_pace_does_not_close_the_gap_in_time(
    gaps, each, left, slow, monkeypatch
):
    monkeypatch.setattr(tree, "TRIAL", 100)
    pace = tree.Pace()
    for node, gap in enumerate(gaps):
        pace.note(each * node, 1000.0 + gap)
    assert pace.is_slow(1000.0, left) is slow
