"""Decisions: how they intersect, what files may say of them, and what they leave of a job."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hindsched.errors import InputError
from hindsched.solvers.base import build_oracle
from hindsched.solvers.oracles.decisions import (
    COMPLETES,
    NEVER,
    BranchDecision,
    Feature,
    from_file,
    limits_of,
    to_file,
    window_of,
)
from hindsched.solvers.oracles.restricted import RestrictedOracle
from tests.strategies.oasis import make

FEATURES = {"completion": (), "on": (("server", ("a", 1)), ("slot", (1, 2, 3)))}
BLOCKS = ["A", "B"]
AT = Feature("on", (1, 2))
ROW = {"job": "B", "of": "on", "server": 1, "slot": 3, "at_most": 2}


def test_limits_are_the_intersection_by_block() -> None:
    found = limits_of(
        [
            BranchDecision.at_most(0, AT, 5), BranchDecision.at_least(0, AT, 2),
            BranchDecision.at_most(0, AT, 7), BranchDecision.at_least(0, AT, 1),
            BranchDecision.at_least(1, AT, 3), BranchDecision.at_most(0, COMPLETES, 4),
        ]
    )  # fmt: skip
    assert found == {0: {AT: (2, 5), COMPLETES: (0, 4)}, 1: {AT: (3, NEVER)}}
    assert window_of(found[1], AT) == (3, NEVER)
    assert window_of(found[1], COMPLETES) == (0, NEVER)


def test_files_say_what_decisions_say() -> None:
    decisions = (
        BranchDecision.at_most(1, AT, 2), BranchDecision.at_least(0, Feature("on", (0, 0)), 1),
        BranchDecision.at_most(0, COMPLETES, 0), BranchDecision.at_least(0, COMPLETES, NEVER),
        BranchDecision.at_most(0, COMPLETES, NEVER - 1),
        BranchDecision.at_most(0, COMPLETES, NEVER - 2),
        BranchDecision.at_least(0, COMPLETES, NEVER - 2),
    )  # fmt: skip
    written = to_file(decisions, FEATURES, BLOCKS)
    assert written == [
        ROW, {"job": "A", "of": "on", "server": "a", "slot": 1, "at_least": 1},
        {"job": "A", "of": "completion", "at_most": 0},
        {"job": "A", "admitted": False}, {"job": "A", "admitted": True},
        {"job": "A", "of": "completion", "at_most": NEVER - 2},
        {"job": "A", "of": "completion", "at_least": NEVER - 2},
    ]  # fmt: skip
    assert from_file(written, FEATURES, BLOCKS, "here") == decisions


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, r"^here: .*a list of decisions"),
        ([ROW, 3], r"^here\[1\]: .*an object"),
        ([{**ROW, "job": "C"}], r"^here\[0\]\.job: C: must be a job of the instance"),
        ([{"job": "A", "admitted": 1}], r"^here\[0\]\.admitted: 1: must be true or false"),
        ([{"job": "A", "admitted": True, "of": 3}], r"^here\[0\]\.of: 3: .* completion, on"),
        ([{**ROW, "of": "off"}], r"^here\[0\]\.of: off: must be one of completion, on"),
        ([{**ROW, "at_least": 2}], r"^here\[0\]: .*keys at_most, job, of, server, slot"),
        ([{"job": "A", "of": "on", "slot": 1, "server": 1}], r"keys at_least, job, of, server"),
        ([{**ROW, "slot": 4}], r"^here\[0\]\.slot: 4: must be a label"),
        ([{**ROW, "slot": True}], r"^here\[0\]\.slot: "),
        ([{**ROW, "at_most": -1}], r"^here\[0\]\.at_most: -1: must be a whole number from 0"),
        ([{**ROW, "at_most": NEVER - 1}], r"^here\[0\]\.at_most: "),
        ([{"job": "A", "of": "completion", "at_least": 0}], r"at_least: 0: .*number from 1"),
    ],
)  # fmt: skip
def test_bad_decisions_are_named(data: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_file(data, FEATURES, BLOCKS, "here")


def test_a_job_of_endless_work_has_no_schedule_and_needs_no_table() -> None:
    """A hundred thousand million worker-slots in a tree's certificate asked for terabytes."""
    oracle = build_oracle(_two_jobs(epochs=10**7, minibatches=10**4))
    decision = BranchDecision.at_most(0, COMPLETES, 2)
    (answer, _) = RestrictedOracle(oracle, [decision]).responses(np.zeros(oracle.rows.size))
    assert answer is None or answer.plan is None


def _two_jobs(**changes: Any) -> Any:
    utility = {"kind": "linear", "slope": -2, "intercept": 10}
    job = {"worker": {"gpu": 1, "mbps": 1}, "ps": {"mbps": 1}, "utility": utility} | changes
    return make([job] * 2, [{"gpu": 1, "mbps": 1}], [{"mbps": 1}], horizon=2)
