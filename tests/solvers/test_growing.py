"""Trees that go on: rounded leaves of batchsched, and resuming."""

import json
from fractions import Fraction
from threading import Event

import numpy as np
import pytest

from hindsched.instances.catalogue import named_instance
from hindsched.instances.io import parse_instance
from hindsched.kernel import batchsched as batchsched_kernel
from hindsched.kernel.reading import Refused
from hindsched.solvers.certificates.file import verify_certificate
from hindsched.solvers.door.options import SolveOptions
from hindsched.solvers.door.status import StoppedBy
from hindsched.solvers.methods.base import bound
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
